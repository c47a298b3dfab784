//! The contents of the panels.

use firn_tools::figures::ms as ms_of_ns;
use firn_tools::top::{Change, Scene, few};
use firn_tools::{Stat, StopBucket};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Sparkline, Widget};

use super::bar::{Row, rows};
use crate::figures::{bytes, count, ratio};

/// Ratio up to which pages count as dense; above it the default collector begins.
const DENSE: f64 = 1.25;
const SPARSE: f64 = 1.5;
/// Scale of ratios for a sparkline, which takes whole numbers.
const SPARK_STEPS: f64 = 1000.0;

/// Draws the frame of a panel. Returns the area inside.
fn framed(name: &'static str, area: Rect, buffer: &mut Buffer) -> Rect {
    let block = Block::bordered().title(Line::styled(format!(" {name} "), Style::new().bold()));
    let inner = block.inner(area);
    block.render(area, buffer);
    inner
}

/// How full the pages are.
pub(super) fn occupancy(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    let inner = framed("occupancy", area, buffer);
    let figures = occupancy_rows(&scene.stat);
    let [above, below] = Layout::vertical([
        Constraint::Length(figures.len() as u16),
        Constraint::Fill(1),
    ])
    .areas(inner);
    rows(&figures, above, buffer);
    let ratios = || scene.moments.iter().filter_map(|moment| moment.ratio_2m);
    let (least, most) = ratios().fold((f64::MAX, 1.0_f64), |(least, most), ratio| {
        (least.min(ratio), most.max(ratio))
    });
    let caption = match least <= most {
        true => format!("ratio on 2 MiB pages, {least:.2} to {most:.2}"),
        false => "no objects".to_owned(),
    };
    // Drawn as the distance from one, the least possible ratio.
    let above_one = scene.moments.iter().map(|moment| {
        let ratio = moment.ratio_2m?;
        Some(((ratio - 1.0).max(0.0) * SPARK_STEPS) as u64)
    });
    spark(&caption, above_one.collect(), below, buffer);
}

fn occupancy_rows(stat: &Stat) -> Vec<Row> {
    let live = stat.live_bytes as f64;
    let pages = |name: &str, footprint: u64, of_pages: Option<f64>| {
        let figure = format!("{:>9}  ratio {}", bytes(footprint), ratio(of_pages));
        Row::new(name, figure).with_bar(live, footprint as f64, color(of_pages))
    };
    let (file, backed) = (stat.file_bytes, stat.file_backed_bytes);
    let live = format!(
        "{:>9} in {} objects",
        bytes(stat.live_bytes),
        count(stat.objects)
    );
    vec![
        Row::new("live", live),
        pages("4 KiB pages", stat.footprint_4k_bytes, stat.ratio_4k),
        pages("2 MiB pages", stat.footprint_2m_bytes, stat.ratio_2m),
        Row::new(
            "file blocks",
            format!("{:>9} of {}", bytes(backed), bytes(file)),
        )
        .with_bar(backed as f64, file as f64, Color::Blue),
    ]
}

fn color(ratio: Option<f64>) -> Color {
    match ratio {
        Some(ratio) if ratio > SPARSE => Color::Red,
        Some(ratio) if ratio > DENSE => Color::Yellow,
        _ => Color::Green,
    }
}

/// A caption and a sparkline of what was seen, the latest at the right.
fn spark(caption: &str, values: Vec<Option<u64>>, area: Rect, buffer: &mut Buffer) {
    let [above, below] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    Line::styled(caption, Style::new().dim()).render(above, buffer);
    let room = usize::from(below.width);
    let mut values: Vec<Option<u64>> = values.into_iter().take(room).collect();
    values.resize(room, None);
    values.reverse();
    Sparkline::default()
        .data(values)
        .style(Style::new().fg(Color::Cyan))
        .render(below, buffer);
}

/// Transactions.
pub(super) fn throughput(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    let inner = framed("throughput", area, buffer);
    let figures = throughput_rows(scene);
    let [above, below] = Layout::vertical([
        Constraint::Length(figures.len() as u16),
        Constraint::Fill(1),
    ])
    .areas(inner);
    rows(&figures, above, buffer);
    let rates = scene.moments.iter().map(|moment| moment.commits_per_second);
    let most = rates.clone().fold(0.0, f64::max);
    let caption = format!("commits a second, peak {}", count(most as u64));
    let rates = rates.map(|rate| Some(rate as u64)).collect();
    spark(&caption, rates, below, buffer);
}

fn throughput_rows(scene: &Scene) -> Vec<Row> {
    let stat = &scene.stat;
    let rate = |rate: fn(&Change) -> f64, all: u64| {
        let now = per_second(scene, |change| count(rate(change) as u64));
        format!("{now:>12}  {} in all", count(all))
    };
    let growth = per_second(scene, |change| {
        let rate = change.live_bytes_per_second;
        let sign = if rate < 0.0 { '-' } else { '+' };
        format!("{sign}{}", bytes(rate.abs() as u64))
    });
    let log = stat.log.map(|log| {
        let writes = per_second(scene, |change| {
            let writes = change.log_writes_per_second;
            let shared = if writes > 0.0 {
                change.commits_per_second / writes
            } else {
                0.0
            };
            format!("{shared:.1} a write, {} writes", count(writes as u64))
        });
        Row::new("log", format!("{writes}, {} behind", bytes(log.lag_bytes)))
    });
    let mut rows = vec![
        Row::new(
            "commits",
            rate(|change| change.commits_per_second, stat.commits),
        ),
        Row::new(
            "aborts",
            rate(|change| change.aborts_per_second, stat.aborts),
        ),
        Row::new("live bytes", format!("{growth:>12}")),
        Row::new(
            "watched for",
            format!("{:>10.0} s", scene.watched.as_secs_f64()),
        ),
    ];
    rows.extend(log);
    rows
}

/// A rate, or a dash where there is none: after the first look, and while the pool cannot be read.
fn per_second(scene: &Scene, rate: impl Fn(&Change) -> String) -> String {
    let rate = scene.change.as_ref().map(rate);
    rate.map_or_else(|| "- /s".to_owned(), |rate| format!("{rate} /s"))
}

/// The collector's work.
pub(super) fn collector(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    let inner = framed("collector", area, buffer);
    let did = &scene.stat.collector;
    let moved = per_second(scene, |change| {
        count(change.moved_objects_per_second as u64)
    });
    let moved_bytes = per_second(scene, |change| bytes(change.moved_bytes_per_second as u64));
    let processors = scene
        .change
        .map_or(0.0, |change| change.collector_processors);
    let figures = [
        Row::new("now", now(scene)),
        Row::new("moved", format!("{moved}, {moved_bytes}")),
        Row::new(
            "in all",
            format!("{}, {}", count(did.moved_objects), bytes(did.moved_bytes)),
        ),
        Row::new("given back", bytes(did.released_bytes)),
        Row::new("processor", format!("{:.0} %", processors * 100.0)),
    ];
    let all: f64 = did.steps().map(|(_, step)| step.ms).sum();
    let steps = did.steps().map(|(name, step)| {
        let time = format!("{:>9.1} ms", step.ms);
        Row::new(name, time).with_bar(step.ms, all, Color::Magenta)
    });
    let steps: Vec<Row> = steps.collect();
    // The steps are never cut off; if there are few lines, the last of the other figures are.
    let [above, below] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(steps.len() as u16)])
            .areas(inner);
    rows(&figures, above, buffer);
    rows(&steps, below, buffer);
}

fn now(scene: &Scene) -> String {
    let cycles = scene.stat.collector.cycles;
    let more = scene.change.map_or(0, |change| change.cycles);
    let state = match scene.stat.cycle_open {
        true => "moving objects",
        false => "no cycle open",
    };
    format!("{state}; {} cycles (+{more})", count(cycles))
}

/// How long the collector stopped the program.
pub(super) fn stops(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    let inner = framed("program stops", area, buffer);
    let stops = &scene.stat.collector.stops;
    let (more, stood) = scene
        .change
        .map_or((0, 0.0), |change| (change.stops, change.stood_ms));
    let figures = [
        Row::new(
            "stops",
            format!("{}, total {:.1} ms", count(stops.count), stops.total_ms),
        ),
        Row::new("longest", format!("{:.3} ms", stops.longest_ms)),
        Row::new("latest", format!("+{more}, {stood:.3} ms")),
    ];
    let [above, below] = Layout::vertical([
        Constraint::Length(figures.len() as u16),
        Constraint::Fill(1),
    ])
    .areas(inner);
    rows(&figures, above, buffer);
    rows(
        &lengths(&stops.histogram, below.height.into()),
        below,
        buffer,
    );
}

/// Stops by length, one bar each.
fn lengths(histogram: &[StopBucket], lines: usize) -> Vec<Row> {
    let buckets = few(histogram, lines);
    let most = buckets.iter().map(|bucket| bucket.count).max();
    let row = |bucket: &StopBucket| {
        let name = format!(
            "{:>9} to {:>9}",
            time(bucket.from_ns),
            time(bucket.below_ns)
        );
        let figure = format!("{:>6}", count(bucket.count));
        Row::new(name, figure).with_bar(
            bucket.count as f64,
            most.unwrap_or_default() as f64,
            Color::Cyan,
        )
    };
    buckets.iter().map(row).collect()
}

fn time(ns: u64) -> String {
    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;
    match ns {
        ..US => format!("{ns} ns"),
        US..MS => format!("{:.1} us", ns as f64 / US as f64),
        _ => format!("{:.1} ms", ms_of_ns(ns)),
    }
}

/// The types that take the most bytes.
pub(super) fn types(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    let inner = framed("types by bytes", area, buffer);
    let mut types: Vec<_> = scene.stat.types.iter().collect();
    types.sort_by_key(|of| core::cmp::Reverse(of.live_bytes));
    let row = |of: &&firn_tools::TypeFigures| {
        let figure = format!("{:>9} in {}", bytes(of.live_bytes), count(of.objects));
        let all = scene.stat.live_bytes as f64;
        Row::new(&*of.name, figure).with_bar(of.live_bytes as f64, all, Color::Blue)
    };
    let shown: Vec<Row> = types.iter().take(inner.height.into()).map(row).collect();
    rows(&shown, inner, buffer);
}

/// Incidents of the pool, the latest first.
pub(super) fn incidents(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    let inner = framed("events", area, buffer);
    let told: Vec<Row> = scene
        .incidents
        .iter()
        .map(|incident| {
            let at = format!("{:>5.0} s", incident.at.as_secs_f64());
            Row::new(at, incident.what.to_string())
        })
        .collect();
    match told.is_empty() {
        true => rows(&[Row::new("", "nothing so far")], inner, buffer),
        false => rows(&told, inner, buffer),
    }
}

/// The main figures, the most important first.
pub(super) fn main_rows(scene: &Scene) -> Vec<Row> {
    let stops = &scene.stat.collector.stops;
    let commits = per_second(scene, |change| count(change.commits_per_second as u64));
    let mut all = vec![Row::new("commits", commits)];
    all.extend(occupancy_rows(&scene.stat));
    all.push(Row::new("collector", now(scene)));
    all.push(Row::new(
        "stops",
        format!("{}, longest {:.3} ms", count(stops.count), stops.longest_ms),
    ));
    if let Some(latest) = scene.incidents.front() {
        let at = latest.at.as_secs_f64();
        all.push(Row::new("latest", format!("{at:.0} s: {}", latest.what)));
    }
    all
}
