//! The log of injections: the work done, piece by piece, so that a campaign can be interrupted, continued, and divided
//! among machines.
//!
//! The file has one JSON value per line: first the campaign, then the pieces. A line counts once its end is written; a
//! line that an interruption left unfinished is overwritten.

use core::cmp::Reverse;
use core::ops::Range;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use firn_heap::collector::scheme::SCHEMES;
use firn_workloads::under_test::Structure;
use serde::{Deserialize, Serialize};

use super::campaign::Campaign;
use super::error::CrashError;
use super::named::plant;
use super::report::{CrashReport, Part};
use super::setting::Setting;
use crate::bench::commit;

const FORMAT: &str = "injections of firn crash, 1";

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    format: String,
    /// The commit of the code.
    commit: String,
    seed: u64,
    depth: u32,
    plant: Option<String>,
}

/// Some runs of one setting, without the facts that follow from their numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Piece {
    pub(super) setting: String,
    /// Number of the first run, and of the first run after the last.
    pub(super) runs: (u64, u64),
    /// Crashes of each.
    pub(super) crashes: u32,
    pub(super) part: Part,
}

impl Piece {
    /// Whether it has as many crashes of each run in another piece of the setting.
    fn has(&self, other: &Self) -> bool {
        let all = self.runs.0 <= other.runs.0 && other.runs.1 <= self.runs.1;
        all && self.crashes >= other.crashes
    }
}

/// The log of a campaign of injections.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    pieces: Vec<Piece>,
}

impl Log {
    /// Opens this campaign's log in the file, which is made if there is none.
    ///
    /// Errors: the file cannot be read or written; it is no log, or the log of another campaign or of another commit of
    /// the code.
    pub fn open(path: &Path, campaign: &Campaign) -> Result<Self, CrashError> {
        let head = Head {
            format: FORMAT.to_owned(),
            commit: commit(),
            seed: campaign.seed,
            depth: campaign.depth,
            plant: campaign.plant.map(|step| step.name.to_owned()),
        };
        let failed = |doing| file_error(path, doing);
        let options = OpenOptions::new().append(true).create(true).clone();
        let mut file = options.open(path).map_err(failed("opening the log"))?;
        let (held, pieces, bytes) = read(path)?;
        match held {
            None => {
                file.set_len(0).map_err(failed("emptying the log"))?;
                let line = line(&head).map_err(failed("writing the log"))?;
                file.write_all(&line).map_err(failed("writing the log"))?;
            }
            Some(held) if held != head => {
                let [held, here] = [held, head].map(|head| serde_json::json!(head).to_string());
                let what = format!("it says {held}, and this campaign is {here}");
                return Err(wrong(path, what));
            }
            Some(_) => file.set_len(bytes).map_err(failed("cutting the log"))?,
        }
        Ok(Self {
            path: path.to_path_buf(),
            file,
            pieces,
        })
    }

    /// Appends a piece durably: the system has it on return.
    ///
    /// Errors: the file cannot be written.
    pub(super) fn append(&mut self, piece: Piece) -> Result<(), CrashError> {
        let failed = || file_error(&self.path, "writing the log");
        let line = line(&piece).map_err(failed())?;
        self.file.write_all(&line).map_err(failed())?;
        self.pieces.push(piece);
        Ok(())
    }

    /// Adds all its pieces of these settings.
    pub(super) fn report(
        &self,
        settings: &[Setting],
        report: &mut CrashReport,
    ) -> Result<(), CrashError> {
        let added = report.add_pieces(settings, &self.pieces);
        added.map_err(|what| wrong(&self.path, what))
    }

    /// The runs, in pieces, that the log does not have with this many crashes.
    pub(super) fn missing(
        &self,
        setting: &Setting,
        runs: Range<u64>,
        crashes: u32,
    ) -> Vec<Range<u64>> {
        let setting = setting.to_string();
        let has = |piece: &&Piece| piece.setting == setting && piece.crashes >= crashes;
        let mut held: Vec<(u64, u64)> = self
            .pieces
            .iter()
            .filter(has)
            .map(|piece| piece.runs)
            .collect();
        held.sort_unstable();
        let (mut missing, mut next) = (Vec::new(), runs.start);
        for (start, end) in held {
            let until = start.min(runs.end);
            if next < until {
                missing.push(next..until);
            }
            next = next.max(end);
        }
        if next < runs.end {
            missing.push(next..runs.end);
        }
        missing
    }
}

/// Combines several logs, of any machines and commits: each run of a setting and seed counts once.
///
/// Errors: a file cannot be read, or is no log; two logs overlap in part of their runs; their campaigns differ in more
/// than the commit.
pub fn read_logs(paths: &[PathBuf]) -> Result<(CrashReport, Vec<String>), CrashError> {
    let mut commits: Vec<String> = Vec::new();
    let mut first: Option<Head> = None;
    let mut pieces: Vec<Piece> = Vec::new();
    for path in paths {
        let (head, more, _) = read(path)?;
        let head = head.ok_or_else(|| wrong(path, "it is empty".to_owned()))?;
        let known = first.get_or_insert_with(|| head.clone());
        if (head.seed, head.depth, &head.plant) != (known.seed, known.depth, &known.plant) {
            return Err(wrong(path, "it is another campaign's".to_owned()));
        }
        pieces.extend(more);
        if !commits.contains(&head.commit) {
            commits.push(head.commit);
        }
    }
    let mut settings: Vec<Setting> = Vec::new();
    let mut named: Vec<&str> = Vec::new();
    for piece in &pieces {
        if !named.contains(&&piece.setting[..]) {
            named.push(&piece.setting);
            settings.push(piece.setting.parse()?);
        }
    }
    let structures = Structure::ALL;
    settings.sort_by_key(|setting| {
        let scheme = SCHEMES.iter().position(|s| s.name == setting.scheme.name);
        let structure = structures
            .iter()
            .position(|s| s.name() == setting.structure.name());
        (scheme, structure, setting.threads, setting.to_string())
    });
    let Some(head) = first else {
        return Err(wrong(Path::new("--logs"), "no file is named".to_owned()));
    };
    let plant = head.plant.as_deref().map(plant).transpose()?;
    let campaign = Campaign {
        settings,
        mode: super::Mode::injections(0),
        depth: head.depth,
        seed: head.seed,
        plant,
        ..Campaign::default()
    };
    let mut report = CrashReport::of(&campaign, true);
    report
        .add_pieces(&campaign.settings, &pieces)
        .map_err(|what| {
            let last = paths.last().map_or(Path::new("--logs"), PathBuf::as_path);
            wrong(last, what)
        })?;
    report.injections = report.rows.iter().map(|row| row.injections).min();
    Ok((report, commits))
}

impl CrashReport {
    /// Adds the pieces of these settings, each run once.
    ///
    /// Errors: two pieces have some runs in common, and each has others.
    pub(super) fn add_pieces(
        &mut self,
        settings: &[Setting],
        pieces: &[Piece],
    ) -> Result<(), String> {
        for (place, setting) in settings.iter().enumerate() {
            let name = setting.to_string();
            let mut of_it: Vec<&Piece> = pieces.iter().filter(|p| p.setting == name).collect();
            of_it.sort_by_key(|piece| {
                let (first, end) = piece.runs;
                (first, Reverse(end), Reverse(piece.crashes))
            });
            let mut last: Option<&Piece> = None;
            for piece in of_it {
                // A run that was crashed less often at first, or that two logs have, counts once.
                if last.is_some_and(|last| last.has(piece)) {
                    continue;
                }
                if let Some(last) = last.filter(|last| piece.runs.0 < last.runs.1) {
                    let (one, other) = (last.runs, piece.runs);
                    return Err(format!("runs {one:?} and {other:?} of {name} overlap"));
                }
                self.add(place, setting, &piece.part);
                last = Some(piece);
            }
        }
        Ok(())
    }
}

/// The head and the pieces of a log, and the bytes up to the end of its last finished line.
fn read(path: &Path) -> Result<(Option<Head>, Vec<Piece>, u64), CrashError> {
    let text = std::fs::read(path).map_err(file_error(path, "reading the log"))?;
    let finished = text
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1);
    let mut lines = text[..finished].split_inclusive(|&byte| byte == b'\n');
    let unread = |e: serde_json::Error| wrong(path, e.to_string());
    let Some(head) = lines.next() else {
        return match text.is_empty() || b"{".starts_with(&text[..1]) {
            true => Ok((None, Vec::new(), 0)),
            false => Err(wrong(path, "it has no line".to_owned())),
        };
    };
    let head: Head = serde_json::from_slice(head).map_err(unread)?;
    if head.format != FORMAT {
        return Err(wrong(path, format!("its format is `{}`", head.format)));
    }
    let pieces = lines.map(|line| serde_json::from_slice(line).map_err(unread));
    Ok((
        Some(head),
        pieces.collect::<Result<_, _>>()?,
        finished as u64,
    ))
}

fn line(of: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(of)?;
    line.push(b'\n');
    Ok(line)
}

fn file_error<'p>(
    path: &'p Path,
    doing: &'static str,
) -> impl Fn(std::io::Error) -> CrashError + use<'p> {
    move |source| CrashError::File {
        path: path.to_path_buf(),
        doing,
        source,
    }
}

fn wrong(path: &Path, what: String) -> CrashError {
    CrashError::NoLog {
        path: path.to_path_buf(),
        what,
    }
}
