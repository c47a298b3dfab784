//! The spread of figures.

use std::time::Duration;

use serde::Serialize;

/// The least, the middle and the greatest of some figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The middle one.
    pub median: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// The spread of these figures; zeros if there are none.
    pub(crate) fn of(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        match figures[..] {
            [] => Self::default(),
            [min, ..] => Self {
                min,
                median: figures[figures.len() / 2],
                max: figures[figures.len() - 1],
            },
        }
    }

    /// The spread of these times, in milliseconds.
    pub(crate) fn of_ms(times: &[Duration]) -> Self {
        Self::of(times.iter().map(|time| time.as_secs_f64() * 1e3).collect())
    }
}
