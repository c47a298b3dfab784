//! What comments must contain: why unsafe code is sound, and where a figure comes from.

use crate::sources::Source;

/// Proofs that prove nothing: they name nobody in particular.
const STOCK: [&str; 6] = [
    "as above",
    "see above",
    "the same",
    "the caller vouches",
    "the caller guarantees",
    "the caller's",
];

/// How many lines of a file have unsafe code. The attribute that exports a function unmangled does not count.
pub fn unsafe_lines(source: &Source) -> usize {
    source.text.lines().filter(|line| is_unsafe(line)).count()
}

fn is_unsafe(line: &str) -> bool {
    let line = line.trim_start();
    !line.starts_with("//") && has_word(line, "unsafe") && !line.contains("unsafe(no_mangle)")
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.split(|c| !is_part(c)).any(|part| part == word)
}

/// Unsafe blocks and implementations whose reason is missing or a stock phrase.
pub fn unproved(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
    let mut wrong = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let begins = ["{", "impl"]
            .iter()
            .any(|next| line.contains(&["unsafe", next].join(" ")));
        if begins && is_unsafe(line) && !has_reason(&lines[..number]) {
            wrong.push(format!("{}:{}: no reason", source.path, number + 1));
        }
        if let Some((_, proof)) = line.split_once("SAFETY: ")
            && line.starts_with("//")
            && STOCK.iter().any(|phrase| proof.starts_with(phrase))
        {
            wrong.push(format!("{}:{}: {proof}", source.path, number + 1));
        }
    }
    wrong
}

/// Whether the lines before an unsafe block, back to the first line of its statement, contain a reason.
fn has_reason(before: &[&str]) -> bool {
    let ends = |line: &&&str| {
        let is_comment = line.starts_with("//") || line.starts_with("#[");
        !is_comment && (line.is_empty() || line.ends_with([';', '{', '}']))
    };
    let statement = before.iter().rev().take_while(|line| !ends(line));
    statement.into_iter().any(|line| line.contains("SAFETY: "))
}

/// Units of measured figures.
const UNITS: [&str; 5] = ["ns", "us", "µs", "ms", "%"];

/// Comments with a measured figure that do not name the page about its measurement.
pub fn naked_figures(source: &Source) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut block = String::new();
    let lines = source.text.lines().chain([""]);
    for (number, line) in lines.enumerate() {
        let line = line.trim_start();
        if line.starts_with("//") {
            block.push_str(line);
            block.push(' ');
            continue;
        }
        let text = core::mem::take(&mut block);
        let words: Vec<&str> = text.split_whitespace().collect();
        let is_figure = |pair: &[&str]| {
            let unit = pair[1].trim_end_matches([',', '.', ';', ':', ')']);
            pair[0].parse::<f64>().is_ok() && UNITS.contains(&unit)
        };
        if words.windows(2).any(is_figure) && !text.contains("docs/") {
            wrong.push(format!("{}:{number}: {}", source.path, text.trim_end()));
        }
    }
    wrong
}
