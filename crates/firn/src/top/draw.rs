//! The layout of the panels.

use firn_tools::top::{Condition, Scene};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use super::bar::rows;
use super::panels;

/// The smallest terminal that has room for every panel; on a smaller one the main figures stand below each other.
const LEAST_COLUMNS: u16 = 76;
const LEAST_LINES: u16 = 22;
/// From this many lines on, panels get more than they need.
const ROOMY_LINES: u16 = 30;

/// Draws the scene in whatever room there is.
pub(super) fn draw(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    if area.is_empty() {
        return;
    }
    if area.width >= LEAST_COLUMNS && area.height >= LEAST_LINES {
        all_panels(scene, area, buffer);
    } else {
        main_figures(scene, area, buffer);
    }
}

fn all_panels(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    let roomy = u16::from(area.height >= ROOMY_LINES);
    let [top, pages, work, rest, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(8 + roomy),
        Constraint::Length(9 + roomy * 2),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(area);
    title(scene, top, buffer);
    let halves = |area| Layout::horizontal([Constraint::Fill(1); 2]).areas(area);
    let [occupancy, throughput] = halves(pages);
    panels::occupancy(scene, occupancy, buffer);
    panels::throughput(scene, throughput, buffer);
    let [collector, stops] = halves(work);
    panels::collector(scene, collector, buffer);
    panels::stops(scene, stops, buffer);
    let [types, incidents] = halves(rest);
    panels::types(scene, types, buffer);
    panels::incidents(scene, incidents, buffer);
    footer(bottom, buffer);
}

fn main_figures(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    let [top, figures, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(u16::from(area.height > 3)),
    ])
    .areas(area);
    title(scene, top, buffer);
    rows(&panels::main_rows(scene), figures, buffer);
    footer(bottom, buffer);
}

fn title(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    let idle = scene.change.is_some_and(|change| !change.is_any());
    let (condition, color) = match &scene.condition {
        Condition::Open if idle => ("open, idle".to_owned(), Color::Yellow),
        Condition::Open => ("open".to_owned(), Color::Green),
        Condition::Closed => ("closed".to_owned(), Color::Yellow),
        Condition::Lost(why) => (format!("cannot be read: {why}"), Color::Red),
    };
    let stat = &scene.stat;
    let what = format!("{} ({}), {}", stat.layout, stat.kind, stat.backing);
    // The pool's state matters more than the path to it.
    let name = scene.pool.rsplit('/').next().unwrap_or_default();
    let said = [&scene.pool, &condition, &what].map(|text| text.chars().count());
    let shown = match said.iter().sum::<usize>() + 4 > usize::from(area.width) {
        true => name,
        false => &scene.pool,
    };
    Line::from(vec![
        Span::styled(shown.to_owned(), Style::new().bold()),
        Span::raw("  "),
        Span::styled(condition, Style::new().fg(color)),
        Span::styled(format!("  {what}"), Style::new().dim()),
    ])
    .render(area, buffer);
}

fn footer(area: Rect, buffer: &mut Buffer) {
    Line::styled("q, Esc or Ctrl-C quits", Style::new().dim()).render(area, buffer);
}
