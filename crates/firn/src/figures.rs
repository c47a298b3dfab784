//! Figures as text for people.

use std::fmt::Write;

pub use firn_tools::figures::{bytes, count};
use firn_tools::map::{MapFigures, MapReport};
use firn_tools::{
    BackupReport, CollectorFigures, ConvertReport, CopyReport, DefragReport, LoadReport,
    LogFigures, LogReport, Stat, StopBucket,
};

/// The output of `firn load`.
pub fn loaded(report: &LoadReport) -> String {
    let mut text = format!(
        "{} entries ({} new) in {:.2} s, {} a second",
        count(report.entries),
        count(report.new),
        report.seconds,
        count(report.per_second as u64)
    );
    if report.unreadable > 0 {
        let _ = write!(text, "; {} paths unreadable", count(report.unreadable));
    }
    text
}

/// The output of `firn copy`.
pub fn copied(report: &CopyReport) -> String {
    format!(
        "{} objects, {}; the file was {} long, the copy is {}",
        count(report.objects),
        bytes(report.live_bytes),
        bytes(report.file_bytes),
        bytes(report.new_file_bytes)
    )
}

/// The output of `firn backup`.
pub fn backed_up(report: &BackupReport) -> String {
    let mut text = format!("{} copied", bytes(report.bytes));
    if report.is_clone {
        text.push_str(" by sharing blocks");
    }
    if report.recovered {
        let _ = write!(
            text,
            ", {} of them from the log, which was held for {:.2} s; recovered and closed",
            bytes(report.log_bytes),
            report.held_seconds
        );
    }
    text
}

/// The log that `firn check` has found beside a pool.
pub fn log_beside(log: &LogReport) -> String {
    format!(
        "{}: ok, {} in {} segments; {} records in {} blocks were not home, {} blocks of the tail are not whole",
        log.path,
        bytes(log.bytes),
        count(log.slots),
        count(log.records),
        count(log.blocks),
        count(log.unfinished_blocks)
    )
}

/// The output of `firn defrag`.
pub fn defragmented(report: &DefragReport) -> String {
    let mut lines = before_and_after(report);
    lines.extend(done(report));
    lines.extend(left(report));
    let lines = lines
        .iter()
        .map(|(name, value)| format!("{name:<13} {value}"));
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// A label and its text.
type Line = (&'static str, String);

/// The pool before and after.
fn before_and_after(report: &DefragReport) -> Vec<Line> {
    let (before, after) = (&report.before, &report.after);
    let from_to = |from, to| format!("{} -> {}", bytes(from), bytes(to));
    let pages = |ratios: [Option<f64>; 2], from, to| {
        let [was, is] = ratios.map(ratio);
        format!("ratio {was} -> {is}, {}", from_to(from, to))
    };
    let small = pages(
        [before.ratio_4k, after.ratio_4k],
        before.footprint_4k_bytes,
        after.footprint_4k_bytes,
    );
    let huge = pages(
        [before.ratio_2m, after.ratio_2m],
        before.footprint_2m_bytes,
        after.footprint_2m_bytes,
    );
    let backed = from_to(before.file_backed_bytes, after.file_backed_bytes);
    vec![
        ("4 KiB pages", small),
        ("2 MiB pages", huge),
        ("file", from_to(before.file_bytes, after.file_bytes)),
        ("on the disk", backed),
    ]
}

/// The collector's work, and the time it took.
fn done(report: &DefragReport) -> [Line; 3] {
    let (after, work) = (&report.after, &report.work);
    let objects = format!(
        "{} moved in {} cycles, {} unreachable ones reclaimed ({}, {} live)",
        count(work.moved),
        count(work.cycles),
        count(work.reclaimed),
        count(after.objects),
        bytes(after.live_bytes)
    );
    let stop = format!("{:.3} ms, of {}", work.longest_stop_ms, count(work.stops));
    let time = format!(
        "{:.2} s: {:.1} ms marking, {:.1} ms planning, {:.1} ms moving, {:.1} ms ending",
        report.seconds, work.mark_ms, work.summary_ms, work.compact_ms, work.finish_ms
    );
    [("objects", objects), ("longest stop", stop), ("time", time)]
}

/// The work it left undone, and the picture.
fn left(report: &DefragReport) -> Vec<Line> {
    let mut lines = Vec::new();
    if !report.reached {
        let (target, pages, ended) = (report.target, report.pages, report.ended);
        let why = format!("{target} on {pages} pages could not be reached: {ended}");
        lines.push(("target", why));
    }
    if report.large_bytes > 0 {
        let large = bytes(report.large_bytes);
        let why = format!("{large} are objects above 1 MiB, which do not move");
        lines.push(("too large", why));
    }
    if report.lacked_room {
        let way =
            "delete objects, free space on the disk or raise the pool's limit, and run it again";
        lines.push(("way out", way.to_owned()));
    }
    if let Some(map) = &report.map {
        lines.push(("picture", map.clone()));
    }
    lines
}

pub fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "none".into(), |ratio| format!("{ratio:.3}"))
}

/// The output of `firn map`.
pub fn drawn(report: &MapReport) -> String {
    let pools: Vec<String> = report.pools.iter().map(pages).collect();
    let square = match report.pages_a_square {
        1 => "one square is a page of 4 KiB".to_owned(),
        n => format!("one square is {n} pages of 4 KiB"),
    };
    format!("{}\n{}: {square}", pools.join("\n"), report.picture)
}

fn pages(figures: &MapFigures) -> String {
    let in_use = figures.slot_pages + figures.large_pages;
    let ratio = ratio(figures.ratio_4k);
    let mut text = format!(
        "{}: {} pages in use, {} free, {} of metadata; {} live, ratio {ratio}",
        figures.pool,
        count(in_use),
        count(figures.free_pages),
        count(figures.metadata_pages),
        bytes(figures.live_bytes),
    );
    if !figures.exact {
        text.push_str("; in use or not traced, so it is unknown how full pages are");
    }
    text
}

/// The log of a pool in use.
fn log(log: &LogFigures) -> String {
    format!(
        "{}, {} behind; {} records in {} writes of {}; {} times home, {}",
        bytes(log.bytes),
        bytes(log.lag_bytes),
        count(log.records),
        count(log.writes),
        bytes(log.written_bytes),
        count(log.checkpoints),
        bytes(log.home_bytes)
    )
}

/// The output of `firn stat`.
pub fn stat(stat: &Stat) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<18} {value}");
    };
    line("layout", format!("{} ({} pool)", stat.layout, stat.kind));
    line("format", format!("version {}", stat.version));
    line("domain", domain(stat));
    line("backing", backing(stat));
    line("state", state(stat));
    line("objects", count(stat.objects));
    line("live bytes", bytes(stat.live_bytes));
    for (pages, footprint, ratio) in [
        ("4 KiB pages", stat.footprint_4k_bytes, stat.ratio_4k),
        ("2 MiB pages", stat.footprint_2m_bytes, stat.ratio_2m),
    ] {
        line(
            pages,
            format!("{}, ratio {}", bytes(footprint), self::ratio(ratio)),
        );
    }
    let file = bytes(stat.file_bytes);
    let backed = bytes(stat.file_backed_bytes);
    line("file", format!("{file}, {backed} of them backed by blocks"));
    let limit = stat.limit_bytes.map_or("none".into(), bytes);
    line("limit", limit);
    line("largest free", bytes(stat.largest_free_bytes));
    line(
        "transactions",
        format!("{} ({} aborted)", count(stat.commits), count(stat.aborts)),
    );
    if let Some(log) = &stat.log {
        line("log", self::log(log));
    }
    if stat.starved > 0 {
        line("starved requests", count(stat.starved));
    }
    for (name, value) in collector(&stat.collector) {
        line(name, value);
    }
    for t in &stat.types {
        let (objects, live) = (count(t.objects), bytes(t.live_bytes));
        let name = format!("{} (version {})", t.name, t.version);
        line("type", format!("{name}: {objects} objects, {live}"));
    }
    for class in &stat.classes {
        let size = class.slot_bytes.map_or("large".into(), bytes);
        line("class", format!("{size}: {} objects", count(class.objects)));
    }
    text.truncate(text.trim_end().len());
    text
}

/// The collector's work, one line per kind; empty if it has done nothing.
fn collector(did: &CollectorFigures) -> Vec<(&'static str, String)> {
    if *did == CollectorFigures::default() {
        return Vec::new();
    }
    let cycles = format!(
        "{} cycles; {} objects ({}) moved, {} unreachable ones reclaimed",
        count(did.cycles),
        count(did.moved_objects),
        bytes(did.moved_bytes),
        count(did.reclaimed_objects)
    );
    let mut pages = format!(
        "{} emptied, {} filled",
        bytes(did.emptied_bytes),
        bytes(did.filled_bytes)
    );
    if did.released_bytes > 0 {
        let released = bytes(did.released_bytes);
        let _ = write!(pages, ", {released} given back to the device");
    }
    let mut lines = vec![("collector", cycles), ("collected pages", pages)];
    for (name, step) in did.steps() {
        let time = format!("{:.1} ms, {:.1} ms of CPU time", step.ms, step.cpu_ms);
        lines.push((name, time));
    }
    let stops = &did.stops;
    let all = format!(
        "{}, total {:.3} ms, longest {:.3} ms",
        count(stops.count),
        stops.total_ms,
        stops.longest_ms
    );
    lines.push(("collector stops", all));
    lines.extend(stops.histogram.iter().map(|of| ("", stops_of_length(of))));
    lines
}

fn stops_of_length(bucket: &StopBucket) -> String {
    let us = |ns: u64| ns as f64 / 1e3;
    let (from, below) = (us(bucket.from_ns), us(bucket.below_ns));
    format!("{from:>10.1} to {below:>10.1} us: {}", count(bucket.count))
}

fn domain(stat: &Stat) -> String {
    let promise = match stat.domain {
        "process" => "kill -9 loses nothing, a power failure may tear the pool",
        _ => "kill -9 and power failures lose nothing",
    };
    format!("{} ({promise})", stat.domain)
}

fn backing(stat: &Stat) -> String {
    let fate = if stat.outlives_power {
        "survives a power failure"
    } else {
        "lost in a power failure"
    };
    format!("{} ({fate})", stat.backing)
}

fn state(stat: &Stat) -> String {
    let state = if stat.open {
        "open by a program, or left open by one that died"
    } else {
        "closed"
    };
    let exact = if stat.exact {
        "figures are exact"
    } else {
        "figures may lag"
    };
    format!("{state}; {exact}")
}

/// The text about a sound pool's version.
pub fn version(version: u32) -> String {
    format!(" (format version {version})")
}

pub fn converted(report: &ConvertReport) -> String {
    let ConvertReport { pool, from, to, .. } = report;
    let (before, now) = (report.from_domain, report.to_domain);
    let mut told = Vec::new();
    if from != to {
        told.push(format!(
            "converted from format version {from} to version {to}"
        ));
    }
    if before != now {
        told.push(format!("converted from domain {before} to domain {now}"));
    }
    match told.is_empty() {
        true => format!("{pool}: already has format version {to}, in domain {now}"),
        false => format!("{pool}: {}", told.join(", ")),
    }
}
