//! Loading entries, some hundred per transaction.

use std::io::{BufRead, Read as _};
use std::path::Path;
use std::time::{Duration, Instant};

use firn_structures::map::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use serde::Serialize;

use crate::{Entry, Progress, Store, ToolError, Tree, lines};

/// Entries of a transaction.
const BATCH_ENTRIES: usize = 256;
/// Bytes of keys and values after which a transaction ends early.
const BATCH_BYTES: usize = 1 << 20;
/// Bytes of the longest line: the largest entry with every byte escaped, and the syntax around it.
const MAX_LINE_BYTES: u64 = 6 * (MAX_KEY_BYTES as u64 + MAX_VALUE_BYTES) + 64;

/// The result of loading.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LoadReport {
    /// Entries that were read.
    pub entries: u64,
    /// Entries whose key was not there before.
    pub new: u64,
    /// Paths that could not be examined.
    pub unreadable: u64,
    /// Time it took.
    pub seconds: f64,
    /// Entries in a second.
    pub per_second: f64,
}

/// Entries on their way into a store.
struct Loader<'a> {
    store: &'a mut Store,
    batch: Vec<Entry>,
    bytes: usize,
    report: LoadReport,
}

impl<'a> Loader<'a> {
    fn new(store: &'a mut Store) -> Self {
        Self {
            store,
            batch: Vec::with_capacity(BATCH_ENTRIES),
            bytes: 0,
            report: LoadReport::default(),
        }
    }

    fn add(&mut self, entry: Entry) -> Result<(), ToolError> {
        self.bytes += entry.key.len() + entry.value.len();
        self.batch.push(entry);
        if self.batch.len() == BATCH_ENTRIES || self.bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ToolError> {
        if !self.batch.is_empty() {
            self.report.new += self.store.insert_all(&self.batch)?;
            self.report.entries += self.batch.len() as u64;
            self.batch.clear();
            self.bytes = 0;
        }
        Ok(())
    }

    fn finish(mut self, time: Duration) -> Result<LoadReport, ToolError> {
        self.flush()?;
        self.report.seconds = time.as_secs_f64();
        self.report.per_second =
            self.report.entries as f64 / self.report.seconds.max(f64::MIN_POSITIVE);
        Ok(self.report)
    }
}

/// Lines to load.
pub struct LineInput<'a, R> {
    /// Their source.
    pub lines: R,
    /// The input's name in errors.
    pub name: &'a Path,
    /// Its length, where that is known.
    pub bytes: Option<u64>,
    /// Whether a backslash is an ordinary character rather than an escape.
    pub is_raw: bool,
}

/// Loads lines of text or of JSON, see [`crate::lines`].
///
/// Errors: a line that is no entry (all lines before it are loaded); the input cannot be read; see
/// [`Store::insert_all`].
pub fn load_lines(
    store: &mut Store,
    input: LineInput<'_, impl BufRead>,
    progress: &mut dyn Progress,
) -> Result<LoadReport, ToolError> {
    let start = Instant::now();
    let mut loader = Loader::new(store);
    // Bytes if their total is known, lines otherwise.
    let what = match input.bytes {
        Some(_) => "loading",
        None => "loading lines",
    };
    progress.begin(what, input.bytes);
    let parse = match input.is_raw {
        true => lines::parse_raw,
        false => lines::parse,
    };
    let (mut from, mut line) = (input.lines, Vec::new());
    for number in 1.. {
        line.clear();
        let read = (&mut from)
            .take(MAX_LINE_BYTES + 1)
            .read_until(b'\n', &mut line);
        let read = read.map_err(ToolError::file(input.name, "reading"))? as u64;
        if read == 0 {
            break;
        }
        let entry = match read <= MAX_LINE_BYTES {
            true => parse(&line),
            false => Err(format!(
                "is longer than {MAX_LINE_BYTES} bytes, so no entry"
            )),
        };
        match entry {
            Ok(entry) => loader.add(entry)?,
            Err(what) => {
                loader.flush()?;
                return Err(ToolError::Line {
                    what,
                    input: input.name.display().to_string(),
                    line: number,
                    loaded: loader.report.entries,
                });
            }
        }
        progress.advance(if input.bytes.is_some() { read } else { 1 });
    }
    progress.end();
    loader.finish(start.elapsed())
}

/// Loads every path below `root`, with its size, as it is found.
///
/// Errors: `root` cannot be read; see [`Store::insert_all`].
pub fn load_tree(
    store: &mut Store,
    root: &Path,
    progress: &mut dyn Progress,
) -> Result<LoadReport, ToolError> {
    let start = Instant::now();
    let mut loader = Loader::new(store);
    progress.begin("loading", None);
    let unreadable = Tree::visit(root, &mut |entry| {
        progress.advance(1);
        loader.add(entry)
    });
    progress.end();
    loader.report.unreadable = unreadable?;
    loader.finish(start.elapsed())
}
