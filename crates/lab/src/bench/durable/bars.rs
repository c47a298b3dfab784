//! The bars of durable pools, and whether they are met.

use super::report::{DISK, DurableBar, FIRN, Row};
use super::{LOGGED, MAPPED, collecting, inserts, levels, opening, volume};

/// Most time of an insertion: this multiple of a bare write, plus these microseconds.
const OVER_BARE: f64 = 1.15;
const BESIDE_BARE_US: f64 = 10.0;
/// Least rate over the best rival's.
const RATE: f64 = 2.0;
/// Least rate of eight threads over one thread's.
const SHARED: f64 = 5.0;
/// Most CPU time of an insertion at `Level::Written` beside one in the domain `process`.
const WRITTEN_US: f64 = 3.0;
/// Most time of a read over one in the domain `process`.
const READ: f64 = 1.03;
/// Most bytes over a rival's: of those that write pages, and of the one that merges logs.
const VOLUME: f64 = 0.5;
const VOLUME_OF_MERGES: f64 = 1.2;
const MERGES: &str = "fjall";
/// Most log bytes of a collection over the bytes it moves; longest stop; slowest of a hundred updates over those without a
/// collector.
const LOG_OVER_MOVED: f64 = 1.3;
const STOP_MS: f64 = 2.0;
const BESIDE: f64 = 2.0;
/// Most time to open a closed pool, and to bring home a gibibyte of log.
const OPEN_MS: f64 = 5.0;
const RECOVERY_S: f64 = 1.0;

/// The bars of what was measured.
pub(super) fn bars(rows: &[Row]) -> Vec<DurableBar> {
    let found = [
        over_bare(rows),
        over_rivals(rows, inserts::INSERT, inserts::ONE),
        over_rivals(rows, inserts::INSERT, inserts::BATCHED),
        together(rows),
        written(rows),
        read(rows, levels::GET),
        read(rows, levels::SCAN),
    ];
    let mut bars: Vec<DurableBar> = found.into_iter().flatten().collect();
    bars.extend(volumes(rows));
    bars.extend(beside_a_collection(rows));
    let limits = [
        (
            collecting::COLLECT,
            collecting::LOG_BYTES,
            "x",
            LOG_OVER_MOVED,
        ),
        (collecting::COLLECT, collecting::STOP, "ms", STOP_MS),
        (opening::OPEN, opening::CLOSED, "ms", OPEN_MS),
        (opening::OPEN, opening::RECOVERED, "s per GiB", RECOVERY_S),
    ];
    bars.extend(limits.iter().filter_map(|&(part, what, unit, most)| {
        let row = firn(rows, part, what, LOGGED)?;
        Some(DurableBar {
            what: what.to_owned(),
            firn: format!("{:.2} {unit}", row.median),
            against: String::new(),
            ratio: String::new(),
            bar: format!("at most {most} {unit}"),
            met: row.median <= most,
        })
    }));
    bars
}

fn firn<'r>(rows: &'r [Row], part: &str, what: &str, medium: &str) -> Option<&'r Row> {
    let is_it = |row: &&Row| {
        row.part == part && row.what == what && row.system == FIRN && row.medium.starts_with(medium)
    };
    rows.iter().find(is_it)
}

fn rivals<'r>(rows: &'r [Row], part: &'r str, what: &'r str) -> impl Iterator<Item = &'r Row> {
    let is_one = move |row: &&Row| row.part == part && row.what == what;
    let ours = [FIRN, DISK];
    rows.iter()
        .filter(is_one)
        .filter(move |row| !ours.contains(&row.system.as_str()))
}

fn value(row: &Row) -> String {
    format!("{:.1} {}", row.median, row.unit)
}

fn over_bare(rows: &[Row]) -> Option<DurableBar> {
    let insert = firn(rows, inserts::INSERT, inserts::COMMIT, LOGGED)?;
    let bare = rows.iter().find(|row| row.system == DISK)?;
    let over = insert.with(bare, |insert, bare| {
        insert - (OVER_BARE * bare + BESIDE_BARE_US)
    });
    let times = insert.with(bare, |insert, bare| insert / bare);
    Some(DurableBar {
        what: "durable insert beside a bare write".to_owned(),
        firn: value(insert),
        against: format!("{}: {}", bare.what, value(bare)),
        ratio: format!("{times:.2}x"),
        bar: format!("at most {OVER_BARE} x write + {BESIDE_BARE_US} us"),
        met: over <= 0.0,
    })
}

/// Firn's rate over that of the rival that comes nearest.
fn over_rivals(rows: &[Row], part: &str, what: &'static str) -> Option<DurableBar> {
    let ours = firn(rows, part, what, LOGGED)?;
    let rate = |rival: &Row| rival.with(ours, |theirs, ours| theirs / ours);
    let best = rivals(rows, part, what).min_by(|one, other| rate(one).total_cmp(&rate(other)))?;
    Some(DurableBar {
        what: format!("rate: {what}"),
        firn: value(ours),
        against: format!("{}: {}", best.system, value(best)),
        ratio: format!("{:.2}x", rate(best)),
        bar: format!("at least {RATE}x the best rival"),
        met: rate(best) >= RATE,
    })
}

fn together(rows: &[Row]) -> Option<DurableBar> {
    let alone = firn(rows, inserts::SHARED, inserts::ALONE, LOGGED)?;
    let together = firn(rows, inserts::SHARED, inserts::TOGETHER, LOGGED)?;
    let times = alone.with(together, |alone, together| alone / together);
    Some(DurableBar {
        what: format!("rate: {}", inserts::TOGETHER),
        firn: value(together),
        against: format!("one thread: {}", value(alone)),
        ratio: format!("{times:.2}x"),
        bar: format!("at least {SHARED}x"),
        met: times >= SHARED,
    })
}

fn written(rows: &[Row]) -> Option<DurableBar> {
    let written = firn(rows, levels::LEVELS, levels::INSERT, LOGGED)?;
    let process = firn(rows, levels::LEVELS, levels::INSERT, MAPPED)?;
    let more = written.with(process, |written, process| written - process);
    Some(DurableBar {
        what: "insert at the level written, CPU time".to_owned(),
        firn: value(written),
        against: format!("domain process: {}", value(process)),
        ratio: format!("+{more:.2} us"),
        bar: format!("at most {WRITTEN_US} us more"),
        met: more <= WRITTEN_US,
    })
}

fn beside_a_collection(rows: &[Row]) -> Option<DurableBar> {
    let alone = firn(rows, collecting::COLLECT, collecting::ALONE, LOGGED)?;
    let beside = firn(rows, collecting::COLLECT, collecting::BESIDE, LOGGED)?;
    let times = beside.with(alone, |beside, alone| beside / alone);
    Some(DurableBar {
        what: beside.what.to_owned(),
        firn: value(beside),
        against: format!("{}: {}", alone.what, value(alone)),
        ratio: format!("{times:.2}x"),
        bar: format!("at most {BESIDE}x"),
        met: times <= BESIDE,
    })
}

fn read(rows: &[Row], what: &'static str) -> Option<DurableBar> {
    let logged = firn(rows, levels::READS, what, LOGGED)?;
    let mapped = firn(rows, levels::READS, what, MAPPED)?;
    let times = logged.with(mapped, |logged, mapped| logged / mapped);
    Some(DurableBar {
        what: what.to_owned(),
        firn: value(logged),
        against: format!("domain process: {}", value(mapped)),
        ratio: format!("{times:.3}x"),
        bar: format!("at most {READ}x"),
        met: times <= READ,
    })
}

fn volumes(rows: &[Row]) -> Vec<DurableBar> {
    let (part, what) = (volume::VOLUME, volume::WRITTEN);
    let Some(ours) = firn(rows, part, what, LOGGED) else {
        return Vec::new();
    };
    let bar = |rival: &Row| {
        let share = ours.with(rival, |ours, theirs| ours / theirs);
        let most = match rival.system.starts_with(MERGES) {
            true => VOLUME_OF_MERGES,
            false => VOLUME,
        };
        DurableBar {
            what: what.to_owned(),
            firn: value(ours),
            against: format!("{}: {}", rival.system, value(rival)),
            ratio: format!("{share:.2}x"),
            bar: format!("at most {most}x"),
            met: share <= most,
        }
    };
    rivals(rows, part, what).map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::super::report::{Key, Rows};
    use super::*;

    #[test]
    fn ratios_are_of_one_round_and_the_nearest_rival_counts() {
        let mut rows = Rows::on("ext4".to_owned());
        let of = |system| Key {
            part: inserts::INSERT,
            system,
            medium: LOGGED,
            level: "sync",
            what: inserts::ONE,
            unit: "us",
        };
        // The disk became ten times slower in the second round, for all.
        for (system, us) in [("firn", 10.0), ("lmdb", 50.0), ("fjall", 19.0)] {
            for slower in [1.0, 10.0, 1.0] {
                rows.add(of(system), us * slower, "");
            }
        }
        let bars = bars(&rows.all);
        let [bar] = &bars[..] else {
            panic!("one bar: {bars:?}")
        };
        assert!(bar.against.starts_with("fjall"), "{bar:?}");
        assert_eq!((bar.ratio.as_str(), bar.met), ("1.90x", false));
    }
}
