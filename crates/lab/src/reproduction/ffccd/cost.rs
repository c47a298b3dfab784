//! Table 1: the hardware's area on the chip, and its memory.

use firn_hardware::storage::{FORWARDING_BYTES_PER_PAGE, REACHED_BYTES_PER_PAGE};
use firn_machine::mechanism::ffccd;

use super::{Artefact, Bar, Context, Row};

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
