//! Do the commands on whole pools do what their help says: limits, figures, maps, copies?

use std::process::Stdio;

use firn_heap::collector::CollectOptions;
use firn_heap::{Error, LogKind, Pool, PoolKind, PoolOptions};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::Memory;
use firn_tools::{Store, StoreOptions};
use serde_json::Value;

use crate::support::{ENTRIES, Folder, called, command, firn, json, lines_of};

#[test]
fn a_limit_is_the_pools_until_it_has_another() {
    let folder = Folder::new();
    let pool = folder.pool("pool");
    let limit = |limit: &str| json(&["limit", &pool, limit])["limit_bytes"].clone();
    let told = || json(&["stat", &pool])["limit_bytes"].clone();
    assert_eq!(
        (limit("50000000"), told()),
        (50_000_000.into(), 50_000_000.into())
    );
    assert!(
        firn(&["stat", &pool])
            .out
            .contains("limit              47.7 MiB")
    );
    firn(&["get", &pool, "key-000001"]);
    assert_eq!(told(), 50_000_000);
    assert_eq!((limit("none"), told()), (Value::Null, Value::Null));
}

#[test]
fn stat_has_its_fields_and_the_figures_are_right() {
    let folder = Folder::new();
    let pool = folder.pool("pool");
    let stat = json(&["stat", &pool]);
    for field in [
        "objects",
        "live_bytes",
        "footprint_4k_bytes",
        "footprint_2m_bytes",
        "file_bytes",
        "file_backed_bytes",
        "largest_free_bytes",
    ] {
        assert!(stat[field].as_u64().unwrap() > 0, "{field}");
    }
    assert_eq!(stat["limit_bytes"], Value::Null);
    let ratio = |field: &str| stat[field].as_f64().unwrap();
    assert!(ratio("ratio_4k") > 1.0 && ratio("ratio_2m") >= ratio("ratio_4k"));
    assert!(stat["objects"].as_u64().unwrap() > ENTRIES as u64);
    assert_eq!(
        (&stat["domain"], &stat["exact"]),
        (&"logged".into(), &true.into())
    );
    let objects = |list: &Value| -> u64 {
        let all = list.as_array().unwrap().iter();
        all.map(|of| of["objects"].as_u64().unwrap()).sum()
    };
    assert_eq!(objects(&stat["types"]), stat["objects"]);
    assert_eq!(objects(&stat["classes"]), stat["objects"]);
}

#[test]
fn stat_looks_into_a_pool_in_use_and_says_so() {
    let folder = Folder::new();
    let pool = folder.pool("pool");
    let closed = json(&["stat", &pool]);
    let mut writer = command(&["load", &pool])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stat = json(&["stat", &pool]);
    while stat["open"] != true {
        stat = json(&["stat", &pool]);
    }
    assert_eq!(stat["objects"], closed["objects"]);
    assert_eq!(stat["exact"], false);
    for refused in [
        &["scan", &pool, ""][..],
        &["check", &pool],
        &["load", &pool],
    ] {
        let called = called(command(refused).stdin(Stdio::null()).output().unwrap());
        assert_eq!(called.status, 2);
        assert!(
            called.err.contains(&pool) && called.err.contains("in use"),
            "{}",
            called.err
        );
    }
    drop(writer.stdin.take());
    assert!(writer.wait().unwrap().success());
}

#[test]
fn stat_shows_what_the_collector_of_a_pool_in_use_has_done() {
    let folder = Folder::new();
    let pool = folder.fragmented_pool("pool");
    let idle = json(&["stat", &pool])["collector"].clone();
    assert_eq!(
        (&idle["cycles"], &idle["stops"]["count"]),
        (&0.into(), &0.into())
    );
    assert!(!firn(&["stat", &pool]).out.contains("collector"));
    let store = Store::open_untraced(pool.as_ref(), &StoreOptions::default()).unwrap();
    let options = CollectOptions {
        target: 1.0,
        ..CollectOptions::default()
    };
    let collected = store.pool().collect(&options).unwrap();
    let stat = json(&["stat", &pool]);
    assert_eq!(stat["open"], true);
    let did = &stat["collector"];
    let figure = |name: &str| did[name].as_u64().unwrap();
    assert_eq!(figure("cycles"), collected.cycles);
    assert_eq!(figure("moved_objects"), collected.planned);
    for name in ["moved_bytes", "emptied_bytes", "filled_bytes"] {
        assert!(figure(name) > 0, "{name}");
    }
    for step in ["mark", "summary", "compact", "finish"] {
        let time = |name: &str| did[step][name].as_f64().unwrap();
        assert!(time("ms") > 0.0 && time("cpu_ms") > 0.0, "{step}");
    }
    let stops = &did["stops"];
    let histogram = stops["histogram"].as_array().unwrap().iter();
    let counted: u64 = histogram.map(|b| b["count"].as_u64().unwrap()).sum();
    assert_eq!(stops["count"], counted);
    assert_eq!(store.pool().collector_stops().count, counted);
    let text = firn(&["stat", &pool]).out;
    let cycles = format!("{} cycles", collected.cycles);
    for words in ["collector stops", "emptied", "of CPU time", &cycles] {
        assert!(text.contains(words), "{words}: {text}");
    }
    store.close().unwrap();
    assert_eq!(json(&["stat", &pool])["collector"]["cycles"], did["cycles"]);
}

#[test]
fn a_map_shows_what_stat_counts() {
    let folder = Folder::new();
    let (pool, copy) = (folder.pool("pool"), folder.arg("copy"));
    firn(&["delete", &pool, "--fraction", "0.8"]);
    firn(&["copy", &pool, &copy]);
    let (svg, png) = (folder.arg("both.svg"), folder.arg("both.PNG"));
    let drawn = json(&["map", &pool, "--beside", &copy, "-o", &svg]);
    assert_eq!(drawn["pages_a_square"], 1);
    for (path, figures) in [&pool, &copy]
        .into_iter()
        .zip(drawn["pools"].as_array().unwrap())
    {
        let stat = json(&["stat", path]);
        for same in [
            "objects",
            "live_bytes",
            "footprint_4k_bytes",
            "ratio_4k",
            "ratio_2m",
        ] {
            assert_eq!(figures[same], stat[same], "{same}");
        }
        let count = |field: &str| figures[field].as_u64().unwrap();
        let tenths = figures["pages_by_tenth"].as_array().unwrap().iter();
        let live: u64 = tenths.map(|pages| pages.as_u64().unwrap()).sum();
        assert_eq!(live * 4096, count("footprint_4k_bytes"));
        assert_eq!(
            live + count("empty_pages"),
            count("slot_pages") + count("large_pages")
        );
        let kinds = ["metadata_pages", "free_pages", "slot_pages", "large_pages"];
        assert_eq!(kinds.map(count).iter().sum::<u64>(), count("pages"));
        assert_eq!(count("pages") * 4096, stat["file_bytes"].as_u64().unwrap());
        assert_eq!(
            (count("unknown_pages"), &figures["exact"]),
            (0, &true.into())
        );
    }
    let said = firn(&["map", &pool, "--beside", &copy, "-o", &png]);
    assert!(said.out.contains(&pool) && said.out.contains(&copy) && said.out.contains(&png));
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(
        svg.starts_with("<svg") && svg.contains(">\ncopy\n<"),
        "{}",
        &svg[..400]
    );
    assert!(std::fs::read(png).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn a_map_of_a_pool_in_use_says_what_it_does_not_know() {
    let folder = Folder::new();
    let (pool, picture) = (folder.pool("pool"), folder.arg("map.svg"));
    let mut writer = command(&["load", &pool])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    while json(&["stat", &pool])["open"] != true {}
    let drawn = json(&["map", &pool, "-o", &picture]);
    assert_eq!(drawn["pools"][0]["exact"], false);
    assert!(drawn["pools"][0]["unknown_pages"].as_u64().unwrap() > 0);
    let svg = std::fs::read_to_string(&picture).unwrap();
    assert!(svg.contains("it is unknown how full pages are"));
    drop(writer.stdin.take());
    assert!(writer.wait().unwrap().success());
}

#[test]
fn a_copy_is_packed_and_holds_the_same() {
    let folder = Folder::new();
    let (pool, copy) = (folder.pool("pool"), folder.arg("copy"));
    firn(&["delete", &pool, "--fraction", "0.8"]);
    let copied = firn(&["copy", &pool, &copy]);
    assert_eq!(copied.status, 0, "{}", copied.err);
    let (before, after) = (json(&["stat", &pool]), json(&["stat", &copy]));
    assert_eq!(before["objects"], after["objects"]);
    assert_eq!(before["live_bytes"], after["live_bytes"]);
    assert!(after["ratio_4k"].as_f64() < before["ratio_4k"].as_f64());
    let content = firn(&["scan", &pool, ""]).out;
    assert_eq!(content, firn(&["scan", &copy, ""]).out);
    assert_eq!(firn(&["check", &copy]).status, 0);
    let again = firn(&["copy", &pool, &copy]);
    assert_eq!(again.status, 2);
    assert!(again.err.contains("exists"), "{}", again.err);
}

fn opened(path: &str) -> Pool<Mapped> {
    let file = Mapped::open_read_only(path, &MappedOptions::default()).unwrap();
    Pool::open_read_only(file, "").unwrap()
}

#[test]
fn a_copy_is_the_same_pool_unless_it_is_to_be_one_of_its_own() {
    let folder = Folder::new();
    let (pool, kept, own) = (folder.pool("pool"), folder.arg("kept"), folder.arg("own"));
    assert_eq!(firn(&["copy", &pool, &kept]).status, 0);
    assert_eq!(firn(&["copy", "--new-id", &pool, &own]).status, 0);
    let ids = [&pool, &kept, &own].map(|path| opened(path).pair_id());
    assert!(ids[0] == ids[1] && ids[0] != ids[2], "{ids:x?}");
    for copy in [&kept, &own] {
        assert_eq!(firn(&["scan", copy, ""]).out, lines_of(ENTRIES));
        assert_eq!(firn(&["check", copy]).status, 0);
    }
}

/// If programs store references that no type declares, a copy keeps every object at its address.
#[test]
fn a_pool_of_a_libpmemobj_program_is_copied_as_it_is() {
    let folder = Folder::new();
    let (path, kept, own) = (folder.arg("pool"), folder.arg("kept"), folder.arg("own"));
    let options = PoolOptions {
        kind: PoolKind::Explicit,
        log: LogKind::Undo,
        ..PoolOptions::new("pairs")
    };
    let file = Mapped::create(&path, 0, &MappedOptions::default()).unwrap();
    let pool = Pool::create(file, &options).unwrap();
    let what = pool.register_pairs("object").unwrap();
    let id = pool.pair_id();
    let mut session = pool.session().unwrap();
    let made = session.raw_transaction(|tx| {
        let all = [40, 500, 5_000, 3 << 20].map(|len| tx.alloc_of(what, len));
        let all = all.into_iter().collect::<Result<Vec<_>, _>>()?;
        for (i, &at) in all.iter().enumerate() {
            // The pair names the next object, and an address stands alone.
            let next = all[(i + 1) % all.len()].0;
            let words = [id, next, next, i as u64];
            tx.store(at, &words.map(u64::to_le_bytes).concat())?;
        }
        tx.set_root("first", Some(all[0]))?;
        Ok::<_, Error>(all)
    });
    let all = made.unwrap();
    drop(session);
    pool.close().unwrap();
    let refused = firn(&["copy", "--new-id", &path, &own]);
    assert_eq!(refused.status, 2);
    let told = &refused.err;
    assert!(
        told.contains(&path) && told.contains("cannot be told from numbers"),
        "{told}"
    );
    assert!(!std::path::Path::new(&own).exists());
    let copied = firn(&["copy", &path, &kept]);
    assert_eq!((copied.status, &*copied.err), (0, ""));
    let copy = opened(&kept);
    assert_eq!(copy.pair_id(), id);
    for (i, &at) in all.iter().enumerate() {
        let next = all[(i + 1) % all.len()].0;
        let word = |k: u64| copy.medium().load_u64(at + k * 8);
        assert_eq!([0, 1, 2, 3].map(word), [id, next, next, i as u64]);
    }
    drop(copy);
    assert_eq!(firn(&["check", &kept]).status, 0);
}
