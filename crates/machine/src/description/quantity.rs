//! A number with its unit, where it comes from, and why.

use core::fmt;

use serde::Deserialize;

use super::error::DescriptionError;

/// How a number is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Kind {
    /// The source says so.
    Spec,
    /// It was measured; the source says by whom.
    Measured,
    /// It was chosen; the source says why.
    Assumed,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Spec => "SPEC",
            Self::Measured => "MEASURED",
            Self::Assumed => "ASSUMED",
        })
    }
}

/// A number as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Quantity {
    value: f64,
    unit: String,
    kind: Kind,
    source: String,
}

/// A number of a machine, as reports show it.
#[derive(Clone, PartialEq, Debug)]
pub struct Number {
    /// Its path in the file.
    pub field: String,
    /// The value, in its unit.
    pub value: f64,
    /// The unit.
    pub unit: String,
    /// How it is known.
    pub kind: Kind,
    /// Where it comes from, or why it was chosen.
    pub source: String,
}

/// The quantity that a number gives.
#[derive(Clone, Copy)]
pub(super) enum Dimension {
    /// Things of this name, at least one and at most this many.
    Count(&'static str, u32),
    Bytes,
    /// Time, converted to cycles of a clock of this many megahertz.
    Time(u32),
    /// Time, converted to thousandths of these cycles.
    FineTime(u32),
    /// Frequency, converted to megahertz.
    Frequency,
    /// Data rate, converted to megabytes per second.
    Rate,
    /// Energy per bit, converted to femtojoules.
    Energy,
}

impl Dimension {
    fn allowed(self) -> &'static str {
        match self {
            Self::Count(unit, _) => unit,
            Self::Bytes => "B, KiB, MiB or GiB",
            Self::Time(_) | Self::FineTime(_) => "cycles, ns or us",
            Self::Frequency => "MHz or GHz",
            Self::Rate => "MB/s or GB/s",
            Self::Energy => "fJ/bit or pJ/bit",
        }
    }

    /// The unit in which the model counts.
    fn own_unit(self) -> &'static str {
        match self {
            Self::Count(unit, _) => unit,
            Self::Bytes => "B",
            Self::Time(_) => "cycles",
            Self::FineTime(_) => "thousandths of a cycle",
            Self::Frequency => "MHz",
            Self::Rate => "MB/s",
            Self::Energy => "fJ/bit",
        }
    }

    /// How many of the model's units make one of this unit.
    fn factor(self, unit: &str) -> Option<f64> {
        let per_ns = |clock_mhz: u32| f64::from(clock_mhz) / 1_000.0;
        let time = |clock_mhz| match unit {
            "cycles" => Some(1.0),
            "ns" => Some(per_ns(clock_mhz)),
            "us" => Some(per_ns(clock_mhz) * 1_000.0),
            _ => None,
        };
        match (self, unit) {
            (Self::Count(counted, _), unit) => (unit == counted).then_some(1.0),
            (Self::Time(clock_mhz), _) => time(clock_mhz),
            (Self::FineTime(clock_mhz), _) => time(clock_mhz).map(|cycles| cycles * 1_000.0),
            (Self::Bytes, "B") => Some(1.0),
            (Self::Bytes, "KiB") => Some(1024.0),
            (Self::Bytes, "MiB") => Some(1024.0 * 1024.0),
            (Self::Bytes, "GiB") => Some(1024.0 * 1024.0 * 1024.0),
            (Self::Frequency, "MHz") | (Self::Rate, "MB/s") | (Self::Energy, "fJ/bit") => Some(1.0),
            (Self::Frequency, "GHz") | (Self::Rate, "GB/s") | (Self::Energy, "pJ/bit") => {
                Some(1_000.0)
            }
            _ => None,
        }
    }

    /// The least and the greatest value allowed, in the model's unit.
    fn range(self) -> (u32, u32) {
        match self {
            Self::Count(_, most) => (1, most),
            Self::Time(_) | Self::Energy => (0, u32::MAX),
            Self::Bytes | Self::FineTime(_) | Self::Frequency | Self::Rate => (1, u32::MAX),
        }
    }
}

/// Converts the numbers of a machine for the model, and records each of them.
pub(super) struct Reader {
    pub(super) machine: String,
    pub(super) numbers: Vec<Number>,
}

impl Reader {
    /// A number, rounded. Errors: a wrong unit, a value below the minimum or above what the model can count.
    pub(super) fn read(
        &mut self,
        field: impl Into<String>,
        quantity: &Quantity,
        dimension: Dimension,
    ) -> Result<u32, DescriptionError> {
        let field = field.into();
        let Some(factor) = dimension.factor(&quantity.unit) else {
            return Err(DescriptionError::Unit {
                machine: self.machine.clone(),
                field,
                found: quantity.unit.clone(),
                allowed: dimension.allowed(),
            });
        };
        let (least, most) = dimension.range();
        let rounded = (quantity.value * factor).round();
        // A value that is not a number lies in no range.
        if !(f64::from(least)..=f64::from(most)).contains(&rounded) || quantity.value < 0.0 {
            let unit = dimension.own_unit();
            let allowed = format!("from {least} to {most} {unit}");
            return Err(self.refuse(field, quantity, allowed));
        }
        self.numbers.push(Number {
            field,
            value: quantity.value,
            unit: quantity.unit.clone(),
            kind: quantity.kind,
            source: quantity.source.clone(),
        });
        Ok(rounded as u32)
    }

    pub(super) fn refuse(
        &self,
        field: impl Into<String>,
        quantity: &Quantity,
        allowed: impl Into<String>,
    ) -> DescriptionError {
        DescriptionError::Value {
            machine: self.machine.clone(),
            field: field.into(),
            found: format!("{} {}", quantity.value, quantity.unit),
            allowed: allowed.into(),
        }
    }
}
