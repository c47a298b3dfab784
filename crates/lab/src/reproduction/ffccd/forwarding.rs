//! Section 4.3: the forwarding table, as printed and as corrected.

use firn_format::plan::ENTRY_WORDS;
use firn_hardware::lookup::forwarding::GRANULE_BYTES;
use firn_hardware::storage::{FORWARDING_BYTES_PER_PAGE, REACHED_BYTES_PER_PAGE};
use firn_heap::collector::scheme::{ESPRESSO, ESPRESSO_AS_PRINTED, Scheme};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, WORD_BYTES};

use super::{Artefact, Bar, Context, Row, STRUCTURES, Structure, percent};
use crate::Table;
use crate::reproduction::ffccd::matrix::Cell;
use crate::reproduction::outcome::Outcome;

/// The bits of an index among the granules of `page`, and the share of the page that a table of these indices takes.
fn table_share(page: u64) -> f64 {
    let granules = page / GRANULE_BYTES;
    let bits = f64::from(granules.ilog2());
    percent(bits * granules as f64 / 8.0, page as f64)
}

/// Bits of a page's number and of its distance, as the text gives them (section 4.3.1).
const FIELD_BITS: u64 = 36;
/// Bytes of an entry's map.
const MAP_BYTES: u64 = 256;

const SUM: &str = "36 bits and 256 bytes, which the text gives an entry, are more than its sum";

pub(super) fn cells() -> Vec<Cell> {
    let of = |structure: &Structure| SCHEMES.map(|scheme| Cell::of(structure.workload, scheme));
    STRUCTURES.iter().flat_map(of).collect()
}

/// One scheme with both tables: two destinations a page, and one.
const SCHEMES: [&Scheme; 2] = [&ESPRESSO, &ESPRESSO_AS_PRINTED];

/// The effect of the printed table's one destination per page, and of the corrected table's two.
fn destinations(context: &Context<'_>) -> Table {
    let row = |structure: &Structure| {
        let [two, one] = SCHEMES.map(|scheme| context.of(structure, scheme));
        let of = |outcome: &Outcome| {
            [
                format!("{:.3}", outcome.ratio()),
                format!(
                    "{:.1}",
                    outcome.emptied_frames as f64 * FRAME_BYTES as f64 / 1e6
                ),
                outcome.moved.to_string(),
            ]
        };
        let name = [structure.short.to_owned()].into_iter();
        name.chain(of(one)).chain(of(two)).collect()
    };
    let head = [
        "structure",
        "pages / live, as printed",
        "MB emptied",
        "objects moved",
        "pages / live, corrected",
        "MB emptied",
        "objects moved",
    ];
    Table {
        title: "One destination a page, as printed, and two (Espresso)".into(),
        head: head.map(str::to_owned).to_vec(),
        rows: STRUCTURES.iter().map(row).collect(),
    }
}

pub(super) fn make(context: &Context<'_>) -> Artefact {
    let mut rows = sizes();
    let pages_per_live = |what: &str, nth: usize| {
        let ours = context.mean(|structure| context.of(structure, SCHEMES[nth]).ratio());
        Row::new(what, (None, ours), "", Bar::None, "")
    };
    rows.extend([
        pages_per_live("pages / live with the printed table, mean", 1),
        pages_per_live("pages / live with the corrected table, mean", 0),
        Row::new(
            "the heap's own table, of a page",
            (None, share(OURS)),
            "%",
            Bar::None,
            "",
        ),
    ]);
    Artefact {
        name: "section4.3",
        title: "Section 4.3: sizes of forwarding tables".into(),
        rows,
        tables: vec![destinations(context)],
        notes: vec![format!(
            "The heap's table has an entry of {OURS} bytes a page, with two destinations and a bitmap of what moves \
             (docs/decisions/plan-entries.md), and a word for each object where a scheme settles copies by one. With one \
             destination a page what does not fit begins another page."
        )],
        chart: None,
    }
}

/// Bytes of an entry of the heap's own table.
const OURS: u64 = ENTRY_WORDS as u64 * WORD_BYTES;

/// These bytes as a share of a page.
fn share(bytes: u64) -> f64 {
    percent(bytes as f64, FRAME_BYTES as f64)
}

/// The sizes that the text gives.
fn sizes() -> Vec<Row> {
    let printed = |what: &str, printed: f64, ours: f64, unit| {
        Row::new(what, (Some(printed), ours), unit, Bar::Exact, "")
    };
    let reached = share(REACHED_BYTES_PER_PAGE);
    vec![
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
            "the printed fields, added up, a page",
            (
                Some(FORWARDING_BYTES_PER_PAGE as f64),
                MAP_BYTES as f64 + FIELD_BITS as f64 / 8.0,
            ),
            "bytes",
            Bar::Reduction,
            SUM,
        ),
    ]
}
