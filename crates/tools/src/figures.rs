//! Figures as text for people.

const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
const STEP: f64 = 1024.0;

/// Bytes in the largest unit that gives at least one.
pub fn bytes(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= STEP && unit + 1 < UNITS.len() {
        value /= STEP;
        unit += 1;
    }
    let decimals = usize::from(unit > 0);
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// A count with separated thousands.
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

/// Nanoseconds as milliseconds.
pub fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}
