//! What the hardware takes of chip and memory: Table 1, and section 4.3's forwarding table.

use firn_format::plan::ENTRY_WORDS;
use firn_hardware::lookup::forwarding::GRANULE_BYTES;
use firn_hardware::storage::{FORWARDING_BYTES_PER_PAGE, REACHED_BYTES_PER_PAGE};
use firn_machine::mechanism::ffccd;
use firn_units::{CHUNK_BYTES, FRAME_BYTES, WORD_BYTES};

use super::{Artefact, Bar, Context, Row, percent};

pub(super) fn table_1(_: &Context<'_>) -> Artefact {
    let parts = ffccd::CHECKLOOKUP.parts;
    let mut rows: Vec<Row> = parts
        .iter()
        .map(|part| {
            let printed = part.printed_bytes.map(|bytes| bytes as f64);
            Row::new(
                part.name,
                (printed, part.bytes as f64),
                "bytes",
                Bar::Exact,
                "",
            )
        })
        .collect();
    let total: u64 = parts.iter().map(|part| part.bytes).sum();
    rows.push(Row::new(
        "on the chip",
        (Some(2256.0), total as f64),
        "bytes",
        Bar::Exact,
        "",
    ));
    let memory = [
        ("forwarding table, a page", 259.0, FORWARDING_BYTES_PER_PAGE),
        ("reached bitmap, a page", 8.0, REACHED_BYTES_PER_PAGE),
    ];
    for (what, printed, bytes) in memory {
        rows.push(Row::new(
            what,
            (Some(printed), bytes as f64),
            "bytes",
            Bar::Exact,
            "",
        ));
    }
    let areas = parts.iter().filter_map(|part| {
        let area = part.printed_area_mm2?;
        Some(format!("{} {area} mm2", part.name))
    });
    Artefact {
        name: "table1",
        title: "Table 1: storage on the chip and in memory".into(),
        rows,
        tables: Vec::new(),
        notes: vec![
            format!(
                "Bytes are computed from the structures that the model runs. Areas are quoted, of 45 nm: {}; with \
                 the buffer's battery 0.017 mm3 for 0.3 us (section 4.4).",
                areas.collect::<Vec<_>>().join(", ")
            ),
            "Section 4.3.2 gives a look-aside entry 256 bytes of places, Table 1's size has room for 64: a quarter \
             of a page. The model's timing has whole pages."
                .into(),
        ],
        chart: None,
    }
}

/// Bits that a place among the granules of `page` takes, and bytes of a table of them over the page's.
fn table_share(page: u64) -> f64 {
    let granules = page / GRANULE_BYTES;
    let bits = f64::from(granules.ilog2());
    percent(bits * granules as f64 / 8.0, page as f64)
}

pub(super) fn section_4_3(_: &Context<'_>) -> Artefact {
    let share = |bytes: u64| percent(bytes as f64, FRAME_BYTES as f64);
    let ours = ENTRY_WORDS as u64 * WORD_BYTES;
    let printed = |what: &str, printed: f64, ours: f64, unit| {
        Row::new(what, (Some(printed), ours), unit, Bar::Exact, "")
    };
    let reached = share(REACHED_BYTES_PER_PAGE);
    Artefact {
        name: "section4.3",
        title: "Section 4.3: sizes of forwarding tables".into(),
        rows: vec![
            printed(
                "printed table, of a page",
                6.32,
                share(FORWARDING_BYTES_PER_PAGE),
                "%",
            ),
            printed(
                "with the reached bitmap",
                6.52,
                share(FORWARDING_BYTES_PER_PAGE) + reached,
                "%",
            ),
            printed(
                "the same for pages of 2 MiB",
                13.3,
                table_share(CHUNK_BYTES),
                "%",
            ),
            Row::new(
                "the heap's own table, of a page",
                (None, share(ours)),
                "%",
                Bar::None,
                "",
            ),
        ],
        tables: Vec::new(),
        notes: vec![format!(
            "The heap's table has an entry of {ours} bytes a page, with two destinations and a bitmap of what moves \
             (docs/decisions/plan-entries.md), and a word for each object where a scheme settles copies by one."
        )],
        chart: None,
    }
}
