//! The input lines.

use std::ops::RangeInclusive;

use serde::Deserialize;

use crate::libpmemobj::{Countable, Kind};
use crate::phases::ENTRIES;

/// Most operations of one request.
const MOST_OPERATIONS: u64 = 1_000_000_000;
/// Most threads of one request.
const MOST_THREADS: u64 = 2;
/// Most threads that insert into a database, and most entries of a commit.
const MOST_WRITERS: u64 = 64;
const MOST_BATCH: u64 = 100_000;

/// The request of a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// Run and time operations.
    Time {
        /// The kind of operation.
        kind: Kind,
        /// Their number, of all threads together.
        count: u64,
        /// The number of threads.
        threads: u64,
    },
    /// Count the fences of an operation.
    CountFences(Countable),
    /// Run and time the phases.
    Phases {
        /// The structure.
        structure: String,
        /// Entries.
        n: u32,
        /// Chooses the entries to delete.
        seed: u64,
    },
    /// Delete four fifths of a structure, and pack the others.
    Defrag {
        /// The structure.
        structure: String,
        /// Entries.
        n: u32,
        /// Chooses the entries to delete.
        seed: u64,
    },
    /// Make two threads share a structure.
    TwoThreads {
        /// The structure.
        structure: String,
        /// Entries.
        n: u32,
    },
    /// Insert into a database on a disk.
    Insert(Insertions),
    /// Close it, open it, and read it.
    Reopen,
    /// Fill a database and update it, so that others can count what was written.
    Volume {
        /// Entries, and updates.
        n: u64,
        /// Entries of a commit.
        batch: u64,
        /// Chooses the entries to update.
        seed: u64,
    },
}

/// A request for insertions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insertions {
    /// Entries, of all threads together.
    pub count: u64,
    /// Entries of a commit.
    pub batch: u64,
    /// Threads.
    pub threads: u64,
}

/// A parsed line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Carry out a request.
    Request(Request),
    /// Stop.
    Quit,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    op: String,
    count: Option<u64>,
    threads: Option<u64>,
    of: Option<String>,
    structure: Option<String>,
    n: Option<u64>,
    seed: Option<u64>,
    batch: Option<u64>,
}

impl Fields {
    /// The fields besides `op` that are there.
    fn given(&self) -> Vec<&'static str> {
        let all = [
            ("count", self.count.is_some()),
            ("threads", self.threads.is_some()),
            ("of", self.of.is_some()),
            ("structure", self.structure.is_some()),
            ("n", self.n.is_some()),
            ("seed", self.seed.is_some()),
            ("batch", self.batch.is_some()),
        ];
        let given = all.into_iter().filter(|(_, given)| *given);
        given.map(|(name, _)| name).collect()
    }
}

impl Line {
    /// Parses one line.
    ///
    /// Errors: a sentence that names what is wrong with it.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let fields: Fields =
            serde_json::from_slice(line).map_err(|problem| format!("not a request: {problem}"))?;
        let takes: &[&str] = match fields.op.as_str() {
            "quit" => &[],
            "count_fences" => &["of"],
            "phases" | "defrag" => &["structure", "n", "seed"],
            "two_threads" => &["structure", "n"],
            "durable_insert" => &["count", "batch", "threads"],
            "durable_reopen" => &[],
            "durable_volume" => &["n", "batch", "seed"],
            op => {
                named(op)?;
                &["count", "threads"]
            }
        };
        let op = &fields.op;
        if let Some(field) = fields.given().iter().find(|field| !takes.contains(field)) {
            return Err(format!("'{op}' takes no field '{field}'"));
        }
        match op.as_str() {
            "quit" => Ok(Self::Quit),
            "count_fences" => counting(fields),
            "phases" => phases(fields),
            "defrag" => defrag(fields),
            "two_threads" => two_threads(fields),
            "durable_insert" => durable_insert(fields),
            "durable_reopen" => Ok(Self::Request(Request::Reopen)),
            "durable_volume" => durable_volume(fields),
            _ => timing(fields),
        }
    }
}

fn missing(field: &str) -> String {
    format!("the field '{field}' is missing")
}

fn timing(fields: Fields) -> Result<Line, String> {
    let kind = named(&fields.op)?;
    let count = fields.count.ok_or_else(|| missing("count"))?;
    let threads = fields.threads.unwrap_or(1);
    within("threads", threads, 1..=MOST_THREADS)?;
    within("count", count, threads..=MOST_OPERATIONS)?;
    Ok(Line::Request(Request::Time {
        kind,
        count,
        threads,
    }))
}

fn counting(fields: Fields) -> Result<Line, String> {
    let of = fields.of.ok_or_else(|| missing("of"))?;
    let countable = Countable::named(&of).ok_or_else(|| {
        let operations = Kind::all().map(|kind| kind.name().to_owned());
        let known: Vec<_> = operations.chain(Countable::names_of_steps()).collect();
        format!(
            "nothing called '{of}' is counted, known: {}",
            known.join(", ")
        )
    })?;
    Ok(Line::Request(Request::CountFences(countable)))
}

fn phases(fields: Fields) -> Result<Line, String> {
    let (structure, n, seed) = seeded(fields)?;
    Ok(Line::Request(Request::Phases { structure, n, seed }))
}

fn defrag(fields: Fields) -> Result<Line, String> {
    let (structure, n, seed) = seeded(fields)?;
    Ok(Line::Request(Request::Defrag { structure, n, seed }))
}

fn seeded(fields: Fields) -> Result<(String, u32, u64), String> {
    let n = entries(&fields)?;
    let structure = fields.structure.ok_or_else(|| missing("structure"))?;
    let seed = fields.seed.ok_or_else(|| missing("seed"))?;
    Ok((structure, n, seed))
}

fn two_threads(fields: Fields) -> Result<Line, String> {
    let n = entries(&fields)?;
    let structure = fields.structure.ok_or_else(|| missing("structure"))?;
    Ok(Line::Request(Request::TwoThreads { structure, n }))
}

fn durable_insert(fields: Fields) -> Result<Line, String> {
    let count = fields.count.ok_or_else(|| missing("count"))?;
    let batch = batch(&fields)?;
    let threads = fields.threads.unwrap_or(1);
    within("threads", threads, 1..=MOST_WRITERS)?;
    within("count", count, threads..=MOST_OPERATIONS)?;
    Ok(Line::Request(Request::Insert(Insertions {
        count,
        batch,
        threads,
    })))
}

fn durable_volume(fields: Fields) -> Result<Line, String> {
    let n = fields.n.ok_or_else(|| missing("n"))?;
    within("n", n, 2..=MOST_OPERATIONS)?;
    let seed = fields.seed.ok_or_else(|| missing("seed"))?;
    let batch = batch(&fields)?;
    Ok(Line::Request(Request::Volume { n, batch, seed }))
}

fn batch(fields: &Fields) -> Result<u64, String> {
    let batch = fields.batch.unwrap_or(1);
    within("batch", batch, 1..=MOST_BATCH)?;
    Ok(batch)
}

fn entries(fields: &Fields) -> Result<u32, String> {
    let n = fields.n.ok_or_else(|| missing("n"))?;
    within("n", n, ENTRIES)?;
    u32::try_from(n).map_err(|_| format!("'n' is {n}, too many"))
}

fn within(name: &str, number: u64, range: RangeInclusive<u64>) -> Result<(), String> {
    if range.contains(&number) {
        return Ok(());
    }
    Err(format!("'{name}' is {number}, not within {range:?}"))
}

fn named(op: &str) -> Result<Kind, String> {
    Kind::named(op).ok_or_else(|| {
        let known: Vec<_> = Kind::all().map(Kind::name).collect();
        format!(
            "unknown op '{op}', known: {}, count_fences, phases, defrag, two_threads, durable_insert, durable_reopen, \
             durable_volume, quit",
            known.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read() {
        let line = br#"{"op":"alloc_128","count":10,"threads":2}"#;
        let kind = Kind::named("alloc_128").unwrap();
        assert_eq!(
            Line::parse(line),
            Ok(Line::Request(Request::Time {
                kind,
                count: 10,
                threads: 2
            }))
        );
        assert_eq!(Line::parse(br#"{"op":"quit"}"#), Ok(Line::Quit));
        let line = br#"{"op":"phases","structure":"map","n":10,"seed":3}"#;
        assert_eq!(
            Line::parse(line),
            Ok(Line::Request(Request::Phases {
                structure: "map".into(),
                n: 10,
                seed: 3
            }))
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, word) in [
            (&br#"{"op":"tx_empty"}"#[..], "'count' is missing"),
            (br#"{"op":"tx_empty","count":0}"#, "'count' is 0"),
            (
                br#"{"op":"tx_empty","count":1,"threads":2}"#,
                "'count' is 1",
            ),
            (
                br#"{"op":"tx_empty","count":9,"threads":3}"#,
                "'threads' is 3",
            ),
            (br#"{"op":"tx_empty","count":-1}"#, "-1"),
            (br#"{"op":"dance","count":9}"#, "'dance'"),
            (br#"{"op":"count_fences"}"#, "'of'"),
            (br#"{"op":"tx_empty","count":9,"size":1}"#, "size"),
            (
                br#"{"op":"phases","n":9,"seed":1}"#,
                "'structure' is missing",
            ),
            (
                br#"{"op":"phases","structure":"map","seed":1}"#,
                "'n' is missing",
            ),
            (
                br#"{"op":"phases","structure":"map","n":9}"#,
                "'seed' is missing",
            ),
            (
                br#"{"op":"phases","structure":"map","n":4,"seed":1}"#,
                "'n' is 4",
            ),
            (
                br#"{"op":"phases","structure":"map","n":9,"seed":1,"of":"x"}"#,
                "'of'",
            ),
            (
                br#"{"op":"defrag","structure":"avl","n":9}"#,
                "'seed' is missing",
            ),
            (
                br#"{"op":"defrag","n":9,"seed":1,"threads":2}"#,
                "'threads'",
            ),
            (br#"{"op":"quit","n":9}"#, "'n'"),
            (b"hello", "not a request"),
            (b"\xff\xfe", "not a request"),
        ] {
            let problem = Line::parse(line).unwrap_err();
            assert!(problem.contains(word), "{problem} does not say {word}");
        }
    }
    #[test]
    fn what_is_wrong_with_durable_requests_is_named() {
        for (line, word) in [
            (
                &br#"{"op":"durable_insert","count":3,"threads":4}"#[..],
                "'count' is 3",
            ),
            (
                br#"{"op":"durable_insert","count":9,"batch":0}"#,
                "'batch' is 0",
            ),
            (br#"{"op":"durable_volume","n":9}"#, "'seed' is missing"),
            (br#"{"op":"durable_reopen","n":9}"#, "'n'"),
        ] {
            let problem = Line::parse(line).unwrap_err();
            assert!(problem.contains(word), "{problem} does not say {word}");
        }
    }
}
