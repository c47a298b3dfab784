//! How long each suite took, read from what `cargo test` prints.

use std::time::{Duration, Instant};

/// The times of runs of `cargo test`, which are fed line by line.
#[derive(Default)]
pub struct Times {
    /// How long building took, up to the last run's.
    building: Duration,
    /// When the building of this run began, until its first suite runs.
    builds_since: Option<Instant>,
    /// Suites with their seconds, in their order.
    suites: Vec<(String, f64)>,
}

impl Times {
    pub fn new() -> Self {
        Self::default()
    }

    /// A run begins.
    pub fn begin_building(&mut self) {
        self.builds_since = Some(Instant::now());
    }

    /// A suite runs, or the run is over.
    pub fn end_building(&mut self) {
        let since = self.builds_since.take();
        self.building += since.map_or(Duration::ZERO, |since| since.elapsed());
    }

    /// Takes in a line of the output.
    pub fn read(&mut self, line: &str) {
        let line = line.trim();
        let name = line
            .strip_prefix("Running ")
            .or_else(|| line.strip_prefix("Doc-tests ").map(|_| line));
        if let Some(name) = name {
            self.end_building();
            self.suites.push((suite(name), 0.0));
        } else if let Some((_, seconds)) = line.split_once("; finished in ")
            && line.starts_with("test result:")
            && let Ok(seconds) = seconds.trim_end_matches('s').parse::<f64>()
            && let Some((_, sum)) = self.suites.last_mut()
        {
            *sum += seconds;
        }
    }

    /// The table: building, then suites from the longest on, those of less than a second together.
    pub fn table(&self) -> String {
        let mut suites: Vec<(&str, f64)> = self
            .suites
            .iter()
            .map(|(name, seconds)| (name.as_str(), *seconds))
            .collect();
        suites.sort_by(|a, b| b.1.total_cmp(&a.1));
        let shown = suites.partition_point(|(_, seconds)| *seconds >= 1.0);
        let short = suites.split_off(shown);
        let mut rows = vec![("building", self.building.as_secs_f64())];
        rows.extend(suites);
        let others = format!("{} suites of less than a second", short.len());
        let together = short.iter().fold(0.0, |sum, (_, seconds)| sum + seconds);
        rows.push((&others, together));
        let row = |(name, seconds): &(&str, f64)| format!("{seconds:8.1} s  {name}\n");
        rows.iter().map(row).collect()
    }
}

/// A suite's name: the crate's test program without its hash, or the examples of a crate.
fn suite(name: &str) -> String {
    let Some((what, program)) = name.split_once(" (") else {
        return name.to_owned();
    };
    let program = program.trim_end_matches(')').rsplit('/').next();
    let program = program.and_then(|file| file.rsplit_once('-'));
    let program = program.map_or("", |(program, _)| program);
    match what.starts_with("unittests") {
        true => format!("{program}, unit tests"),
        false => program.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_are_told_from_the_longest_on() {
        let mut times = Times::new();
        for line in [
            "   Compiling firn v0.1.0",
            "     Running unittests src/lib.rs (target/debug/deps/firn_heap-e4b1)",
            "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "     Running tests/kill.rs (target/debug/deps/kill-6929981f31225a27)",
            "test a_killed_pool_is_whole ... ok",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 12.50s",
            "   Doc-tests firn_heap",
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.25s",
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.25s",
        ] {
            times.read(line);
        }
        let table = times.table();
        let rows: Vec<&str> = table.lines().map(str::trim).collect();
        assert!(rows[0].ends_with("s  building"), "{table}");
        assert_eq!(
            rows[1..],
            [
                "12.5 s  kill",
                "2.5 s  Doc-tests firn_heap",
                "0.0 s  1 suites of less than a second"
            ]
        );
    }
}
