//! Figures as text for people.

use std::fmt::Write;

use firn_lab::{CopyReport, LoadReport, Stat};

const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
const STEP: f64 = 1024.0;

/// Bytes in the largest unit of which there is one at least.
pub fn bytes(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= STEP && unit + 1 < UNITS.len() {
        value /= STEP;
        unit += 1;
    }
    let decimals = usize::from(unit > 0);
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// A count with its thousands apart.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// What `firn load` says.
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

/// What `firn copy` says.
pub fn copied(report: &CopyReport) -> String {
    format!(
        "{} objects, {}; the file was {} long, the copy is {}",
        count(report.objects),
        bytes(report.live_bytes),
        bytes(report.file_bytes),
        bytes(report.new_file_bytes)
    )
}

/// What `firn stat` says.
pub fn stat(stat: &Stat) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<18} {value}");
    };
    line("layout", format!("{} ({} pool)", stat.layout, stat.kind));
    line("domain", domain(stat));
    line("backing", backing(stat));
    line("state", state(stat));
    line("objects", count(stat.objects));
    line("live bytes", bytes(stat.live_bytes));
    for (pages, footprint, ratio) in [
        ("4 KiB pages", stat.footprint_4k_bytes, stat.ratio_4k),
        ("2 MiB pages", stat.footprint_2m_bytes, stat.ratio_2m),
    ] {
        let ratio = ratio.map_or_else(|| "none".into(), |r| format!("{r:.3}"));
        line(pages, format!("{}, ratio {ratio}", bytes(footprint)));
    }
    let file = bytes(stat.file_bytes);
    let backed = bytes(stat.file_backed_bytes);
    line("file", format!("{file}, {backed} of them backed by blocks"));
    line("largest free", bytes(stat.largest_free_bytes));
    line(
        "transactions",
        format!("{} ({} aborted)", count(stat.commits), count(stat.aborts)),
    );
    if stat.starved > 0 {
        line("starved requests", count(stat.starved));
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

fn domain(stat: &Stat) -> String {
    let promise = match stat.domain {
        "process" => "kill -9 loses nothing, a power failure may tear the pool",
        _ => "kill -9 and power failures lose nothing",
    };
    format!("{} ({promise})", stat.domain)
}

fn backing(stat: &Stat) -> String {
    let fate = if stat.outlives_power {
        "outlives the machine's power"
    } else {
        "dies with the machine"
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
