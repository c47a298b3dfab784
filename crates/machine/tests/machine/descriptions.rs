//! Do the descriptions say what the papers say, and do errors name every wrong field?

use std::collections::BTreeSet;

use firn_machine::description::{Description, DescriptionError, Kind, Latency, NAMES};

const FFCCD: &str = include_str!("../../machines/ffccd.toml");
const THYNVM: &str = include_str!("../../machines/thynvm.toml");

fn machine(name: &str) -> Description {
    Description::of(name).unwrap()
}

/// Bytes, ways and cycles of each cache.
fn caches(name: &str) -> Vec<(u64, u32, u32)> {
    let caches = machine(name).caches;
    assert!(caches.iter().rev().skip(1).all(|cache| !cache.shared));
    let facts =
        |cache: &firn_machine::description::Cache| (cache.bytes, cache.ways, cache.hit_cycles);
    caches.iter().map(facts).collect()
}

#[test]
fn ffccd_is_its_table_2() {
    let ffccd = machine("ffccd");
    assert_eq!(ffccd.core.clock_mhz, 2_600);
    assert_eq!(caches("ffccd"), [(48 << 10, 8, 4), (3 << 20, 16, 25)]);
    let fixed = |cycles| Latency::Fixed {
        read: cycles,
        write: cycles,
    };
    assert_eq!(
        (ffccd.dram.latency, ffccd.nvm.latency),
        (fixed(120), fixed(360))
    );
    assert_eq!(ffccd.dram.read_megabytes_per_s, 24_000);
    assert_eq!(ffccd.nvm.read_megabytes_per_s, 12_000);
    assert_eq!(ffccd.nvm.write_megabytes_per_s, 4_000);
    assert_eq!(ffccd.controller.accept_cycles, 30);
    let entries = |buffers: &[firn_machine::description::Buffer]| {
        buffers
            .iter()
            .map(|one| (one.entries, one.ways, one.hit_cycles))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        entries(&ffccd.translation.small),
        [(64, 4, 0), (1536, 6, 4)]
    );
    assert_eq!(entries(&ffccd.translation.huge), [(32, 4, 0), (1536, 6, 4)]);
    assert_eq!(ffccd.translation.huge_walk_cycles, 60);
}

/// Nanoseconds become cycles of the machine's clock.
#[test]
fn thynvm_is_its_table_2() {
    let thynvm = machine("thynvm");
    assert_eq!(thynvm.core.clock_mhz, 3_000);
    assert_eq!(thynvm.core.parallel_misses, 1);
    let expected = [(32 << 10, 8, 4), (256 << 10, 8, 12), (2 << 20, 16, 28)];
    assert_eq!(caches("thynvm"), expected);
    let rows = |hit, clean_miss, dirty_miss| Latency::Rows {
        banks: 16,
        row_bytes: 8 << 10,
        hit,
        clean_miss,
        dirty_miss,
    };
    assert_eq!(thynvm.dram.latency, rows(120, 240, 240));
    assert_eq!(thynvm.nvm.latency, rows(120, 384, 1_104));
}

#[test]
fn hoop_is_its_table_ii() {
    let hoop = machine("hoop");
    assert_eq!((hoop.core.count, hoop.core.clock_mhz), (16, 2_500));
    let sizes: Vec<_> = caches("hoop")
        .iter()
        .map(|&(bytes, ways, _)| (bytes, ways))
        .collect();
    assert_eq!(sizes, [(32 << 10, 4), (256 << 10, 8), (2 << 20, 16)]);
    let expected = Latency::Fixed {
        read: 125,
        write: 375,
    };
    assert_eq!(hoop.nvm.latency, expected);
    let energy = hoop.nvm.energy.unwrap();
    let buffer = [energy.buffer_read, energy.buffer_write];
    assert_eq!(buffer, [930, 1_020]);
    assert_eq!([energy.array_read, energy.array_write], [2_470, 16_820]);
}

/// An energy that no paper gives is absent, not zero.
#[test]
fn energy_is_known_of_hoops_nvm_only() {
    for name in NAMES {
        let machine = machine(name);
        assert_eq!(machine.nvm.energy.is_some(), name == "hoop", "{name}");
        assert_eq!(machine.dram.energy, None, "{name}");
    }
}

#[test]
fn every_number_says_where_it_comes_from() {
    let mut digests = BTreeSet::new();
    for name in NAMES {
        let (description, numbers) = Description::with_numbers(name).unwrap();
        assert_eq!(description.name, name);
        assert!(numbers.iter().all(|number| !number.source.is_empty()));
        for kind in [Kind::Spec, Kind::Assumed] {
            assert!(
                numbers.iter().any(|number| number.kind == kind),
                "{name}: {kind}"
            );
        }
        let fields: BTreeSet<_> = numbers.iter().map(|number| &number.field).collect();
        assert_eq!(fields.len(), numbers.len(), "each has a path of its own");
        assert!(digests.insert(description.digest()));
        let renamed = Description {
            name: "another".into(),
            ..description.clone()
        };
        assert_eq!(renamed.digest(), description.digest());
    }
}

const WAYS: &str = "ways = { value = 8, unit = \"ways\"";
const SIZE: &str = "size = { value = 48, unit = \"KiB\"";
const CLOCK: &str = "clock = { value = 2.6, unit = \"GHz\"";

/// A part of FFCCD's description, its replacement, and parts of the error.
const REFUSED: [(&str, &str, [&str; 2]); 19] = [
    (
        WAYS,
        "ways = { value = 0, unit = \"ways\"",
        ["cache.L1D.ways", "from 1 to"],
    ),
    (
        WAYS,
        "ways = { value = -8, unit = \"ways\"",
        ["cache.L1D.ways", "-8 ways"],
    ),
    (
        WAYS,
        "ways = { value = nan, unit = \"ways\"",
        ["cache.L1D.ways", "from 1 to"],
    ),
    (
        WAYS,
        "ways = { value = 7, unit = \"ways\"",
        ["cache.L1D.size", "a multiple of 7 ways"],
    ),
    (
        WAYS,
        "ways = { value = 8, unit = \"KiB\"",
        ["cache.L1D.ways has the unit `KiB`", "allowed are ways"],
    ),
    (WAYS, "ways = { value = 8", ["missing field `unit`", "ways"]),
    (
        WAYS,
        "wais = { value = 8, unit = \"ways\"",
        ["unknown field `wais`", "expected"],
    ),
    (
        SIZE,
        "size = { value = 48, unit = \"KB\"",
        ["cache.L1D.size", "B, KiB, MiB or GiB"],
    ),
    (
        SIZE,
        "size = { value = 48, unit = \"ns\"",
        ["cache.L1D.size", "B, KiB, MiB or GiB"],
    ),
    (
        SIZE,
        "size = { value = 5000, unit = \"GiB\"",
        ["cache.L1D.size", "to 4294967295 B"],
    ),
    (
        CLOCK,
        "clock = { value = 0, unit = \"GHz\"",
        ["core.clock", "from 1 to"],
    ),
    (
        CLOCK,
        "clock = { value = inf, unit = \"GHz\"",
        ["core.clock", "inf GHz"],
    ),
    (
        "kind = \"SPEC\", source = \"Table 2: WPQ latency\"",
        "kind = \"GUESSED\", source = \"\"",
        ["unknown variant `GUESSED`", "`SPEC`, `MEASURED`, `ASSUMED`"],
    ),
    (
        "value = 8, unit = \"cores\"",
        "value = 17, unit = \"cores\"",
        ["core.count", "to 16 cores"],
    ),
    (
        "value = 64, unit = \"entries\"",
        "value = 66, unit = \"entries\"",
        ["translation.small.0.entries", "4 ways"],
    ),
    (
        "shared = true",
        "shared = false",
        ["cache `L2`", "exactly the last cache"],
    ),
    (
        "[nvm.fixed]",
        "[nvm.rows]",
        ["unknown field `read`", "`clean_miss`"],
    ),
    (
        "[nvm.fixed]",
        "[nvm.other]",
        ["unknown field `other`", "rows"],
    ),
    (
        "[nvm.fixed]",
        "[nvm.energy]\nbuffer_read = { value = 1, unit = \"pJ\", kind = \"SPEC\", source = \"\" }\n\
             buffer_write = { value = 1, unit = \"pJ/bit\", kind = \"SPEC\", source = \"\" }\n\
             array_read = { value = 1, unit = \"pJ/bit\", kind = \"SPEC\", source = \"\" }\n\
             array_write = { value = 1, unit = \"pJ/bit\", kind = \"SPEC\", source = \"\" }\n[nvm.fixed]",
        [
            "nvm.energy.buffer_read has the unit `pJ`",
            "fJ/bit or pJ/bit",
        ],
    ),
];

#[test]
fn what_cannot_be_is_refused_by_its_name() {
    for (old, new, says) in REFUSED {
        assert!(FFCCD.contains(old), "{old}");
        let error = Description::parse(&FFCCD.replacen(old, new, 1))
            .unwrap_err()
            .to_string();
        for part in says {
            assert!(error.contains(part), "{new}: {error}");
        }
    }
    let without = THYNVM.replace("[nvm.rows]", "[nvm.fixed]");
    assert!(Description::parse(&without).is_err());
}

#[test]
fn names_and_files() {
    let unknown = Description::of("cray").unwrap_err();
    assert!(
        matches!(&unknown, DescriptionError::Unknown { known, .. } if known.contains("`hoop`"))
    );
    let missing = Description::of("no/such/machine.toml").unwrap_err();
    assert!(
        missing
            .to_string()
            .starts_with("no/such/machine.toml: reading")
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/machines/hoop.toml");
    assert_eq!(machine(path), machine("hoop"));
}

/// A text that lost a line, or has a wrong number or word in it, is read or refused, and a machine that was read runs.
#[test]
fn a_damaged_text_does_no_harm() {
    let mut random = fastrand::Rng::with_seed(1);
    let (mut read, mut refused) = (0, 0);
    for round in 0..6_000 {
        let text = if round % 2 == 0 { FFCCD } else { THYNVM };
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let at = random.usize(..lines.len());
        let words = [
            "0", "1", "-1", "1e300", "3", "ns", "ways", "\"", "}", "[core]", "nan",
        ];
        let word = words[random.usize(..words.len())];
        match random.u32(..3) {
            0 => drop(lines.remove(at)),
            1 => {
                let pieces: Vec<&str> = lines[at].split(' ').collect();
                let piece = random.usize(..pieces.len());
                let damaged = pieces
                    .iter()
                    .enumerate()
                    .map(|(index, &old)| match index == piece {
                        true => word,
                        false => old,
                    });
                lines[at] = damaged.collect::<Vec<_>>().join(" ");
            }
            _ => lines.insert(at, word.to_owned()),
        }
        match Description::parse(&lines.join("\n")) {
            Ok(description) => {
                let mut computer = firn_machine::Computer::new(&description);
                computer.store(0, firn_units::PhysAddr(64));
                computer.fence(0);
                read += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(
        read > 100 && refused > 1_000,
        "{read} read, {refused} refused"
    );
}
