//! A figure, table or section of a paper, with our results beside it.

use serde::Serialize;

use super::bars::Chart;
use crate::Table;

/// A figure, table or section of a paper, with our results beside it.
#[derive(Clone, Debug, Serialize)]
pub struct Artefact {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its title.
    pub title: String,
    /// The comparisons.
    pub rows: Vec<Row>,
    /// Other counts.
    #[serde(skip)]
    pub tables: Vec<Table>,
    /// Notes below it.
    pub notes: Vec<String>,
    #[serde(skip)]
    pub(super) chart: Option<Chart>,
}

/// How far our value may be off before the page gives a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bar {
    /// Fifteen percent of the printed value.
    Reduction,
    /// Two percentage points.
    Overhead,
    /// Not at all.
    Exact,
    /// There is nothing to compare.
    None,
}

/// A figure, printed and ours.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The quantity.
    pub what: String,
    /// As printed.
    pub published: Option<f64>,
    /// Ours.
    pub ours: f64,
    /// The unit of both.
    pub unit: &'static str,
    /// Whether ours is close enough; none for a value that the paper does not print.
    pub close: Option<bool>,
    /// The reason, if it is not.
    pub reason: &'static str,
}

impl Row {
    pub(super) fn new(
        what: impl Into<String>,
        (published, ours): (Option<f64>, f64),
        unit: &'static str,
        bar: Bar,
        reason: &'static str,
    ) -> Self {
        let close = published.and_then(|published| {
            let off = (ours - published).abs();
            match bar {
                Bar::Reduction => Some(off <= 0.15 * published.abs()),
                Bar::Overhead => Some(off <= 2.0),
                Bar::Exact => Some(off <= 0.005 * published.abs()),
                Bar::None => None,
            }
        });
        Self {
            what: what.into(),
            published,
            ours,
            unit,
            close,
            reason: if close == Some(true) { "" } else { reason },
        }
    }
}

/// A part of the whole, in percent.
pub(super) fn percent(part: f64, whole: f64) -> f64 {
    if whole == 0.0 {
        0.0
    } else {
        100.0 * part / whole
    }
}

/// How much less `now` is than `before`, in percent.
pub(super) fn reduction(before: f64, now: f64) -> f64 {
    percent(before - now, before)
}

impl Artefact {
    /// The comparisons, as a table.
    pub fn table(&self) -> Table {
        let head = ["", "published", "ours", "deviation", "close", "why not"];
        Table {
            title: self.title.clone(),
            head: head.map(str::to_owned).to_vec(),
            rows: self.rows.iter().map(Row::cells).collect(),
        }
    }
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let figure = |value: f64| match self.unit {
            "bytes" => format!("{value:.0} bytes"),
            "" => format!("{value:.2}"),
            unit => format!("{value:.1} {unit}"),
        };
        let off = self.published.map(|published| self.ours - published);
        vec![
            self.what.clone(),
            self.published.map_or_else(String::new, figure),
            figure(self.ours),
            off.map_or_else(String::new, |off| format!("{off:+.2}")),
            match self.close {
                Some(true) => "yes".to_owned(),
                Some(false) => "no".to_owned(),
                None => String::new(),
            },
            self.reason.to_owned(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_off_says_why_and_what_is_close_does_not() {
        let row = |ours, bar| Row::new("", (Some(40.0), ours), "%", bar, "because");
        assert_eq!(row(45.9, Bar::Reduction).reason, "");
        assert_eq!(row(46.1, Bar::Reduction).reason, "because");
        assert_eq!(row(42.1, Bar::Overhead).close, Some(false));
        assert_eq!(row(40.1, Bar::Exact).close, Some(true));
        let unprinted = Row::new("", (None, 1.0), "%", Bar::Overhead, "because");
        assert_eq!((unprinted.close, unprinted.reason), (None, "because"));
    }
}
