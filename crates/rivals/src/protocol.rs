//! The lines that go over standard input and output, one JSON object each.
//!
//! | line in | line out |
//! |---|---|
//! | (at start) | [`Hello`] |
//! | `{"op":"tx_snapshot_64","count":20000,"threads":1}` | [`Timed`] |
//! | `{"op":"count_fences","of":"tx_snapshot_64"}` | [`Counted`] |
//! | `{"op":"quit"}` | (the process ends) |
//! | anything else | [`Complaint`], and the next line is read |

use serde::{Deserialize, Serialize};

use crate::libpmemobj::Kind;

/// Most operations of one request.
const MOST_OPERATIONS: u64 = 1_000_000_000;
/// Most threads of one request.
const MOST_THREADS: u64 = 2;

/// The first line out: who answers.
#[derive(Serialize)]
pub struct Hello {
    /// The rival's name.
    pub rival: &'static str,
    /// The version that the library's own file states.
    pub version: String,
    /// Whether and how fences are counted.
    pub fences_counted: &'static str,
    /// The operations that may be asked for.
    pub operations: Vec<&'static str>,
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
    pub of: &'static str,
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
    CountFences(Kind),
    /// End.
    Quit,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    op: String,
    count: Option<u64>,
    threads: Option<u64>,
    of: Option<String>,
}

impl Request {
    /// Reads one line.
    ///
    /// Errors: a sentence that names what is wrong with it.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let line: Line =
            serde_json::from_slice(line).map_err(|problem| format!("not a request: {problem}"))?;
        match (line.op.as_str(), line.of, line.count, line.threads) {
            ("quit", None, None, None) => Ok(Self::Quit),
            ("quit", ..) => Err("'quit' takes no other field".into()),
            ("count_fences", Some(of), None, None) => Ok(Self::CountFences(named(&of)?)),
            ("count_fences", ..) => Err("'count_fences' takes the field 'of' and no other".into()),
            (_, Some(_), ..) => Err("only 'count_fences' takes the field 'of'".into()),
            (op, None, count, threads) => {
                let kind = named(op)?;
                let count = count.ok_or("the field 'count' is missing")?;
                let threads = threads.unwrap_or(1);
                if !(1..=MOST_THREADS).contains(&threads) {
                    return Err(format!(
                        "'threads' is {threads}, not within 1..={MOST_THREADS}"
                    ));
                }
                if !(threads..=MOST_OPERATIONS).contains(&count) {
                    return Err(format!(
                        "'count' is {count}, not within {threads}..={MOST_OPERATIONS}"
                    ));
                }
                Ok(Self::Time {
                    kind,
                    count,
                    threads,
                })
            }
        }
    }
}

fn named(op: &str) -> Result<Kind, String> {
    Kind::named(op).ok_or_else(|| {
        let known: Vec<_> = Kind::all().map(Kind::name).collect();
        format!(
            "unknown op '{op}', known: {}, count_fences, quit",
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
            Request::parse(line),
            Ok(Request::Time {
                kind,
                count: 10,
                threads: 2
            })
        );
        assert_eq!(Request::parse(br#"{"op":"quit"}"#), Ok(Request::Quit));
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
            (b"hello", "not a request"),
            (b"\xff\xfe", "not a request"),
        ] {
            let problem = Request::parse(line).unwrap_err();
            assert!(problem.contains(word), "{problem} does not say {word}");
        }
    }
}
