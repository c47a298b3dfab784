//! Findings as files, and replaying them.

use std::path::{Path, PathBuf};
use std::thread;

use firn_heap::PoolKind;
use firn_workloads::under_test::Structure;
use serde::{Deserialize, Serialize};

use super::campaign::{check_depth, check_threads, out_of_range};
use super::crew::EXPLORER;
use super::error::CrashError;
use super::fixture::Fixture;
use super::named;
use super::op::{MOST_IN_A_NOTE, Op};
use super::report::{Finding, Program};
use super::runs::Runs;
use super::sequences::{FEW_KEYS, Sequences};
use super::setting::{self, Setting, pool_name};
use super::ticker::Ticker;

/// The format of the files.
const FORMAT: &str = "finding of firn crash, 1";
/// Operations of a replayed run at most.
const MOST_OPERATIONS: u64 = 1_000_000;

/// A finding's file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File<F> {
    format: String,
    finding: F,
}

/// The part that names a file's format.
#[derive(Deserialize)]
struct Format {
    format: String,
}

impl Finding {
    /// Writes the finding to a file in the directory, made or replaced. The file's name says what the finding is about.
    ///
    /// Errors: the directory cannot be written.
    pub fn write(&self, directory: &Path) -> Result<PathBuf, CrashError> {
        let Self {
            structure,
            scheme,
            domain,
            pool,
            threads,
            ..
        } = self;
        let mut name = format!("firn-crash-{structure}-{scheme}-{domain}");
        if pool != pool_name(PoolKind::Traced) {
            name += &format!("-{pool}");
        }
        if *threads > 1 {
            name += &format!("-{threads}-threads");
        }
        let path = directory.join(name + ".json");
        let file = File {
            format: FORMAT.to_owned(),
            finding: self,
        };
        let failed = |source| CrashError::File {
            path: path.clone(),
            doing: "writing the finding",
            source,
        };
        let mut text = serde_json::to_string_pretty(&file).map_err(|e| failed(e.into()))?;
        text.push('\n');
        firn_mapped::write_whole(&path, text.as_bytes()).map_err(failed)?;
        Ok(path)
    }

    /// Reads a finding from a file.
    ///
    /// Errors: the file cannot be read, or holds something else.
    pub fn read(path: &Path) -> Result<Self, CrashError> {
        let text = std::fs::read_to_string(path).map_err(|source| CrashError::File {
            path: path.to_path_buf(),
            doing: "reading the finding",
            source,
        })?;
        let wrong = |what: String| CrashError::NoFinding {
            path: path.to_path_buf(),
            what,
        };
        let said: Format = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        if said.format != FORMAT {
            let what = format!("its format is `{}`, not `{FORMAT}`", said.format);
            return Err(wrong(what));
        }
        let file: File<Self> = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        Ok(file.finding)
    }
}

/// Replays a finding that was read from `path`. `Err` with what is wrong now, `Ok` if nothing is.
///
/// Errors: it names something unknown, or a moment that its program does not reach.
pub fn replay(path: &Path, finding: &Finding) -> Result<Result<(), String>, CrashError> {
    let explorer = thread::Builder::new().name(EXPLORER.to_owned());
    let run = |finding: Finding| move || judge(&finding);
    let running = explorer.spawn(run(finding.clone()));
    let elsewhere = |what: String| CrashError::Elsewhere {
        path: path.to_path_buf(),
        what,
    };
    let judged = running
        .map_err(CrashError::Thread)?
        .join()
        .map_err(|_| elsewhere("it ends in a panic".to_owned()))??;
    judged.map_err(elsewhere)
}

/// The result of a finding's program and crash now; the inner error says that they lead nowhere.
fn judge(finding: &Finding) -> Result<Result<Result<(), String>, String>, CrashError> {
    let setting = Setting {
        structure: Structure::named(&finding.structure)?,
        scheme: named::scheme(&finding.scheme)?,
        survival: named::domain(&finding.domain)?,
        pool: setting::pool(&finding.pool)?,
        threads: finding.threads,
    };
    let plant = finding.plant.as_deref().map(named::plant).transpose()?;
    check_depth(finding.depth)?;
    let ticker = Ticker::default();
    match &finding.program {
        Program::Sequence(names) => {
            if names.len() > MOST_IN_A_NOTE {
                let most = format!("at most {MOST_IN_A_NOTE} operations long");
                return Err(out_of_range("a sequence", most, names.len()));
            }
            let ops = names.iter().map(|name| Op::named(name));
            let ops = ops.collect::<Result<Vec<_>, _>>()?;
            let one = Setting {
                threads: 1,
                ..setting
            };
            let fixture = Fixture::new(&one, FEW_KEYS)?;
            let sequences = Sequences::new(&fixture, plant, finding.depth, &ticker);
            Ok(sequences.replay(ops, &finding.replay))
        }
        &Program::Operations(operations) => {
            check_threads(finding.threads)?;
            if operations > MOST_OPERATIONS {
                let most = format!("at most {MOST_OPERATIONS}");
                return Err(out_of_range("the number of operations", most, operations));
            }
            let fixture = Runs::fixture(&setting)?;
            let runs = Runs {
                fixture: &fixture,
                plant,
                depth: finding.depth,
                threads: finding.threads,
                operations,
                ticker: &ticker,
            };
            Ok(runs.replay(&finding.replay))
        }
    }
}
