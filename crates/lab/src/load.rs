//! Loading entries, some hundred in a transaction.

use std::io::BufRead;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::{Entry, LabError, Progress, Store, Tree, TreeLimits};

/// Entries of a transaction.
const BATCH_ENTRIES: usize = 256;
/// Bytes of keys and values after which a transaction ends early.
const BATCH_BYTES: usize = 1 << 20;

/// What was loaded.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LoadReport {
    /// Entries that were read.
    pub entries: u64,
    /// Entries whose key was not there before.
    pub new: u64,
    /// Paths that could not be looked at.
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

    fn add(&mut self, entry: Entry) -> Result<(), LabError> {
        self.bytes += entry.key.len() + entry.value.len();
        self.batch.push(entry);
        if self.batch.len() == BATCH_ENTRIES || self.bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LabError> {
        if !self.batch.is_empty() {
            self.report.new += self.store.insert_all(&self.batch)?;
            self.report.entries += self.batch.len() as u64;
            self.batch.clear();
            self.bytes = 0;
        }
        Ok(())
    }

    fn finish(mut self, time: Duration) -> Result<LoadReport, LabError> {
        self.flush()?;
        self.report.seconds = time.as_secs_f64();
        self.report.per_second =
            self.report.entries as f64 / self.report.seconds.max(f64::MIN_POSITIVE);
        Ok(self.report)
    }
}

/// Loads lines of a key, a tabulator and a value. `name` is the input's in errors, `bytes` its
/// length where that is known.
///
/// Errors: a line without a tabulator, all lines before which are loaded then; the input cannot be
/// read; see [`Store::insert_all`].
pub fn load_lines(
    store: &mut Store,
    mut input: impl BufRead,
    name: &Path,
    bytes: Option<u64>,
    progress: &mut dyn Progress,
) -> Result<LoadReport, LabError> {
    let start = Instant::now();
    let mut loader = Loader::new(store);
    // Bytes where it is known how many there are, lines otherwise.
    let what = if bytes.is_some() {
        "loading"
    } else {
        "loading lines"
    };
    progress.begin(what, bytes);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = input.read_until(b'\n', &mut line);
        let read = read.map_err(LabError::file(name, "reading"))?;
        if read == 0 {
            break;
        }
        let Some(entry) = parse(&line) else {
            loader.flush()?;
            return Err(LabError::Line {
                input: name.display().to_string(),
                line: number,
                loaded: loader.report.entries,
            });
        };
        loader.add(entry)?;
        progress.advance(if bytes.is_some() { read as u64 } else { 1 });
    }
    progress.end();
    loader.finish(start.elapsed())
}

/// The key and the value of a line, with or without the newline at its end.
fn parse(line: &[u8]) -> Option<Entry> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let tab = line.iter().position(|&byte| byte == b'\t')?;
    Some(Entry {
        key: line[..tab].to_vec(),
        value: line[tab + 1..].to_vec(),
    })
}

/// Loads every path below `root` with its size.
///
/// Errors: `root` cannot be read; see [`Store::insert_all`].
pub fn load_tree(
    store: &mut Store,
    root: &Path,
    progress: &mut dyn Progress,
) -> Result<LoadReport, LabError> {
    let tree = Tree::walk(root, TreeLimits::NONE, progress)?;
    let start = Instant::now();
    let mut loader = Loader::new(store);
    loader.report.unreadable = tree.unreadable;
    progress.begin("loading", Some(tree.entries.len() as u64));
    for entry in tree.entries {
        loader.add(entry)?;
        progress.advance(1);
    }
    progress.end();
    loader.finish(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_split_at_their_first_tabulator() {
        let parsed = |line: &str| {
            parse(line.as_bytes()).map(|e| {
                let text = |bytes| String::from_utf8(bytes).unwrap();
                (text(e.key), text(e.value))
            })
        };
        let pair = |key: &str, value: &str| Some((key.into(), value.into()));
        assert_eq!(parsed("a\tb\n"), pair("a", "b"));
        assert_eq!(parsed("a\tb\tc"), pair("a", "b\tc"));
        assert_eq!(parsed("\t\n"), pair("", ""));
        assert_eq!(parsed("a b\n"), None);
        assert_eq!(parsed("\n"), None);
    }
}
