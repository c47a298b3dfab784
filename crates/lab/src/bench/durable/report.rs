//! What was measured: a row for each system and kind of work, a value for each round.

use serde::Serialize;

use super::super::figure::middle;

/// One system's values of one kind of work.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The part of the bench.
    pub part: &'static str,
    /// `firn`, `disk`, or a rival and its version.
    pub system: String,
    /// What the system keeps its data in.
    pub medium: String,
    /// How durable a commit is when it returns.
    pub level: &'static str,
    /// The work.
    pub what: &'static str,
    /// The unit of the values.
    pub unit: &'static str,
    /// The middle of the values.
    pub median: f64,
    /// One value a round. In one round, systems are measured one after the other.
    pub values: Vec<f64>,
    /// How a rival is configured.
    pub how: String,
}

/// A bar, and whether it is met.
#[derive(Clone, Debug, Serialize)]
pub struct DurableBar {
    /// The work.
    pub what: String,
    /// Firn's value.
    pub firn: String,
    /// What it is compared with.
    pub against: String,
    /// The compared number.
    pub ratio: String,
    /// The bar for it.
    pub bar: String,
    /// Whether it is met.
    pub met: bool,
}

/// All that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The rows.
    pub rows: Vec<Row>,
    /// The bars.
    pub bars: Vec<DurableBar>,
}

/// Firn, and the bare disk.
pub(super) const FIRN: &str = "firn";
pub(super) const DISK: &str = "disk";

/// The rows while they are measured.
pub(super) struct Rows {
    file_system: String,
    pub(super) all: Vec<Row>,
}

/// Which row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key<'a> {
    pub(super) part: &'static str,
    pub(super) system: &'a str,
    pub(super) medium: &'static str,
    pub(super) level: &'static str,
    pub(super) what: &'static str,
    pub(super) unit: &'static str,
}

impl Rows {
    /// Of files on a file system of this kind.
    pub(super) fn on(file_system: String) -> Self {
        Self {
            file_system,
            all: Vec::new(),
        }
    }

    /// Rows that follow are of another file system.
    pub(super) fn moved_to(self, file_system: &str) -> Self {
        Self {
            file_system: file_system.to_owned(),
            ..self
        }
    }

    /// Adds a round's value to a row.
    pub(super) fn add(&mut self, key: Key<'_>, value: f64, how: &str) {
        let medium = format!("{}, {}", key.medium, self.file_system);
        let the_row = |row: &&mut Row| {
            (row.part, row.what, row.level) == (key.part, key.what, key.level)
                && row.system == key.system
                && row.medium == medium
        };
        if let Some(row) = self.all.iter_mut().find(the_row) {
            row.values.push(value);
            row.median = middle(row.values.iter().copied());
            return;
        }
        self.all.push(Row {
            part: key.part,
            system: key.system.to_owned(),
            medium,
            level: key.level,
            what: key.what,
            unit: key.unit,
            median: value,
            values: vec![value],
            how: how.to_owned(),
        });
    }
}

impl Row {
    /// The least value.
    pub fn least(&self) -> f64 {
        self.values.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The largest value.
    pub fn most(&self) -> f64 {
        self.values
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max)
    }

    /// The middle of what each round's two values give.
    pub(super) fn with(&self, other: &Row, number: fn(f64, f64) -> f64) -> f64 {
        let pairs = self.values.iter().zip(&other.values);
        middle(pairs.map(|(one, other)| number(*one, *other)))
    }
}
