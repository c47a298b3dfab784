//! The lines that go over standard input and output, one JSON object each.
//!
//! | line in | line out |
//! |---|---|
//! | (at start) | [`Hello`] |
//! | `{"op":"tx_snapshot_64","count":20000,"threads":1}` | [`Timed`] |
//! | `{"op":"count_fences","of":"tx_snapshot_64"}`, or of `list_insert` and the like | [`Counted`] |
//! | `{"op":"phases","structure":"list","n":100000,"seed":1}` | [`Phased`] |
//! | `{"op":"two_threads","structure":"list","n":100000}` | [`SharedByTwo`] |
//! | `{"op":"quit"}` | (the process ends) |
//! | anything else | [`Complaint`], and the next line is read |

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::libpmemobj::{Countable, Kind};
use crate::phases::{ENTRIES, Outcome};

/// Most operations of one request.
const MOST_OPERATIONS: u64 = 1_000_000_000;
/// Most threads of one request.
const MOST_THREADS: u64 = 2;

/// The first line out: who answers.
#[derive(Serialize)]
pub struct Hello {
    /// The rival's name.
    pub rival: &'static str,
    /// All rivals that this program knows.
    pub rivals: Vec<&'static str>,
    /// The version that the library's own file states.
    pub version: String,
    /// Whether and how fences are counted.
    pub fences_counted: &'static str,
    /// The operations that may be asked for.
    pub operations: Vec<&'static str>,
    /// The structures that may be asked for phases.
    pub structures: Vec<&'static str>,
}

/// The answer to a line that was carried out.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// To an operation.
    Timed(Timed),
    /// To `count_fences`.
    Counted(Counted),
    /// To `phases`.
    Phased(Phased),
    /// To `two_threads`.
    Shared(SharedByTwo),
}

/// The answer to a timed operation.
#[derive(Serialize)]
pub struct Timed {
    /// The operation.
    pub op: &'static str,
    /// Operations that were timed, all threads together.
    pub count: u64,
    /// Threads that shared them.
    pub threads: u64,
    /// Thread CPU time of all threads over `count`.
    pub ns_cpu_per_op: f64,
    /// Wall time of the slowest thread over `count`: with two threads that do not disturb each
    /// other it is half of one thread's.
    pub ns_wall_per_op: f64,
    /// Fences, when `count_fences` was asked before.
    pub fences_per_op: Option<f64>,
    /// Where `fences_per_op` comes from, or how to get it.
    pub how_fences_were_counted: &'static str,
}

/// The answer to `count_fences`. All but `op` and `of` are means over `count` operations.
#[derive(Serialize)]
pub struct Counted {
    /// `count_fences`.
    pub op: &'static str,
    /// The operation that was counted.
    pub of: String,
    /// Operations that were single-stepped.
    pub count: u64,
    /// `sfence` and `mfence`.
    pub fences_per_op: f64,
    /// The operation with the fewest.
    pub fences_least: u64,
    /// The operation with the most.
    pub fences_most: u64,
    /// Lines written back, by whichever instruction.
    pub write_backs_per_op: f64,
    /// Of those, by `clwb`.
    pub clwb_per_op: f64,
    /// Of those, by `clflushopt`.
    pub clflushopt_per_op: f64,
    /// Of those, by `clflush`.
    pub clflush_per_op: f64,
    /// Stores past the cache, in instructions, whatever their width.
    pub nontemporal_stores_per_op: f64,
    /// Instructions with a lock prefix, and exchanges with memory: they order, but not counted as
    /// fences.
    pub locked_per_op: f64,
    /// System calls: above zero, the library would not be flushing from user space.
    pub system_calls_per_op: f64,
    /// Instructions in all.
    pub instructions_per_op: f64,
    /// How.
    pub how_fences_were_counted: &'static str,
}

/// The answer to `phases`. Ratios are null where blocks have no addresses.
#[derive(Serialize)]
pub struct Phased {
    /// `phases`.
    pub op: &'static str,
    /// The structure.
    pub structure: &'static str,
    /// Its entries.
    pub n: u32,
    /// What was measured.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Fences of an operation, as far as `count_fences` was asked for before.
    pub fences: Option<Fences>,
    /// How.
    pub how: &'static str,
}

/// The answer to `two_threads`.
#[derive(Serialize)]
pub struct SharedByTwo {
    /// `two_threads`.
    pub op: &'static str,
    /// The structure.
    pub structure: &'static str,
    /// Entries that were inserted and deleted.
    pub n: u32,
    /// CPU time of both threads over `n`.
    pub ns_cpu: Changes,
    /// Wall time of the slower one over `n`.
    pub ns_wall: Changes,
    /// How.
    pub how: &'static str,
}

/// Nanoseconds of a change.
#[derive(Clone, Copy, Serialize)]
pub struct Changes {
    /// An insertion.
    pub insert: f64,
    /// A deletion.
    pub delete: f64,
}

/// Fences of a structure's operations.
#[derive(Clone, Copy, Serialize)]
pub struct Fences {
    /// Of an insertion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insert: Option<f64>,
    /// Of a deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete: Option<f64>,
}

impl Fences {
    /// These, if any of them is known.
    pub fn any(self) -> Option<Self> {
        self.insert.or(self.delete).map(|_| self)
    }
}

/// The answer to a line that could not be carried out.
#[derive(Serialize)]
pub struct Complaint {
    /// The number of the line, from one.
    pub line: u64,
    /// What is wrong with it.
    pub error: String,
}

/// What a line asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// Run and time operations.
    Time {
        /// Which.
        kind: Kind,
        /// How many, all threads together.
        count: u64,
        /// By how many threads.
        threads: u64,
    },
    /// Count the fences of an operation.
    CountFences(Countable),
    /// Run and time the phases.
    Phases {
        /// Of which structure.
        structure: String,
        /// Entries.
        n: u32,
        /// Chooses what is deleted.
        seed: u64,
    },
    /// Have two threads share a structure.
    TwoThreads {
        /// Which.
        structure: String,
        /// Entries.
        n: u32,
    },
}

/// A line that was understood.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Do something.
    Request(Request),
    /// End.
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
}

impl Fields {
    /// Those besides `op` that are there.
    fn given(&self) -> Vec<&'static str> {
        let all = [
            ("count", self.count.is_some()),
            ("threads", self.threads.is_some()),
            ("of", self.of.is_some()),
            ("structure", self.structure.is_some()),
            ("n", self.n.is_some()),
            ("seed", self.seed.is_some()),
        ];
        let given = all.into_iter().filter(|(_, given)| *given);
        given.map(|(name, _)| name).collect()
    }
}

impl Line {
    /// Reads one line.
    ///
    /// Errors: a sentence that names what is wrong with it.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let fields: Fields =
            serde_json::from_slice(line).map_err(|problem| format!("not a request: {problem}"))?;
        let takes: &[&str] = match fields.op.as_str() {
            "quit" => &[],
            "count_fences" => &["of"],
            "phases" => &["structure", "n", "seed"],
            "two_threads" => &["structure", "n"],
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
            "two_threads" => two_threads(fields),
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
    let n = entries(&fields)?;
    let structure = fields.structure.ok_or_else(|| missing("structure"))?;
    let seed = fields.seed.ok_or_else(|| missing("seed"))?;
    Ok(Line::Request(Request::Phases { structure, n, seed }))
}

fn two_threads(fields: Fields) -> Result<Line, String> {
    let n = entries(&fields)?;
    let structure = fields.structure.ok_or_else(|| missing("structure"))?;
    Ok(Line::Request(Request::TwoThreads { structure, n }))
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
            "unknown op '{op}', known: {}, count_fences, phases, two_threads, quit",
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
            (br#"{"op":"quit","n":9}"#, "'n'"),
            (b"hello", "not a request"),
            (b"\xff\xfe", "not a request"),
        ] {
            let problem = Line::parse(line).unwrap_err();
            assert!(problem.contains(word), "{problem} does not say {word}");
        }
    }
}
