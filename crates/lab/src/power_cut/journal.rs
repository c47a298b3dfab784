//! The journal: what the files' sectors held, and what is on its way to them.
//!
//! ```text
//! head    u64 × 4: bytes of events, durable bytes of the log, of the pool, 1 if the log's name is durable
//! events  u64 × 4: kind | part << 8 | which contents follow << 16, number, at, len; then the contents
//! ```

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use firn_mapped::Part;

/// Words of the head, and of an event.
const WORDS: usize = 4;
/// Bytes of them.
const HEAD_BYTES: u64 = WORDS as u64 * 8;
const WRITE: u64 = 1;
const DURABLE: u64 = 2;
const WITHDRAWN: u64 = 3;
const HAS_OLD: u64 = 1;
const HAS_NEW: u64 = 2;

/// Both files of a pool.
pub(super) const PARTS: [Part; 2] = [Part::Log, Part::Home];

/// Place of a part's figures.
pub(super) fn index_of(part: Part) -> usize {
    match part {
        Part::Log => 0,
        Part::Home => 1,
    }
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Event<B> {
    /// Sectors from byte `at` on are to get other contents; `None` stands for zeros.
    Write {
        number: u64,
        part: Part,
        at: u64,
        len: u64,
        old: Option<B>,
        new: Option<B>,
    },
    /// A write is durable.
    Durable { number: u64 },
    /// A write was not asked for.
    Withdrawn { number: u64 },
}

/// What is known of the files beside the events.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Files {
    /// Durable bytes of each; `None` if the program has not written to it.
    pub(super) durable_bytes: [Option<u64>; PARTS.len()],
    /// Whether the log's name is durable.
    pub(super) log_is_named: bool,
}

/// A journal that is being written.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    /// Bytes of events that count.
    bytes: u64,
    /// Events that do not count yet.
    unsaid: Vec<u8>,
}

impl Journal {
    /// Begins an empty one, in the place of any other.
    pub(super) fn create(path: &Path, files: &Files) -> io::Result<Self> {
        let journal = Self {
            file: File::create(path)?,
            bytes: 0,
            unsaid: Vec::new(),
        };
        journal.write_head(files)?;
        Ok(journal)
    }

    /// Bytes of events that count.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds an event, which counts from the next [`Journal::say`] on.
    pub(super) fn add(&mut self, event: &Event<&[u8]>) {
        match event {
            Event::Write {
                number,
                part,
                at,
                len,
                old,
                new,
            } => {
                let which = old.map_or(0, |_| HAS_OLD) | new.map_or(0, |_| HAS_NEW);
                let kind = WRITE | (index_of(*part) as u64) << 8 | which << 16;
                self.add_words([kind, *number, *at, *len]);
                for content in [old, new].into_iter().flatten() {
                    self.unsaid.extend_from_slice(content);
                }
            }
            Event::Durable { number } => self.add_words([DURABLE, *number, 0, 0]),
            Event::Withdrawn { number } => self.add_words([WITHDRAWN, *number, 0, 0]),
        }
    }

    fn add_words(&mut self, words: [u64; WORDS]) {
        let bytes = words.into_iter().flat_map(u64::to_le_bytes);
        self.unsaid.extend(bytes);
    }

    /// Has everything count that was added, in one step.
    pub(super) fn say(&mut self, files: &Files) -> io::Result<()> {
        let at = HEAD_BYTES + self.bytes;
        self.file.write_all_at(&self.unsaid, at)?;
        self.bytes += self.unsaid.len() as u64;
        self.unsaid.clear();
        self.write_head(files)
    }

    /// Drops all events, in one step: everything is durable.
    pub(super) fn empty(&mut self, files: &Files) -> io::Result<()> {
        self.unsaid.clear();
        self.bytes = 0;
        self.write_head(files)
    }

    fn write_head(&self, files: &Files) -> io::Result<()> {
        let [log, home] = files.durable_bytes.map(|bytes| bytes.unwrap_or(u64::MAX));
        let words = [self.bytes, log, home, u64::from(files.log_is_named)];
        self.file
            .write_all_at(words.map(u64::to_le_bytes).as_flattened(), 0)
    }
}

/// What a killed program left: the files, and what happened to them, in order.
pub(super) type Left = (Files, Vec<Event<Vec<u8>>>);

/// Reads a journal that a killed program left; `None` if it had none yet.
///
/// Errors: `InvalidData` if it is none; what the system says.
pub(super) fn read(path: &Path) -> io::Result<Option<Left>> {
    let bytes = match std::fs::read(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let mut rest = &bytes[..];
    let Some([count, log, home, log_is_named]) = take_words(&mut rest) else {
        // Not even its head was written.
        return Ok(None);
    };
    let known = |bytes: u64| (bytes != u64::MAX).then_some(bytes);
    let files = Files {
        durable_bytes: [known(log), known(home)],
        log_is_named: log_is_named != 0,
    };
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    rest = rest.get(..count as usize).ok_or_else(invalid)?;
    let mut events = Vec::new();
    while !rest.is_empty() {
        events.push(take_event(&mut rest).ok_or_else(invalid)?);
    }
    Ok(Some((files, events)))
}

fn take_words(rest: &mut &[u8]) -> Option<[u64; WORDS]> {
    let (front, back) = rest.split_at_checked(HEAD_BYTES as usize)?;
    *rest = back;
    let (words, _) = front.as_chunks::<8>();
    Some(core::array::from_fn(|i| u64::from_le_bytes(words[i])))
}

fn take_event(rest: &mut &[u8]) -> Option<Event<Vec<u8>>> {
    let [kind, number, at, len] = take_words(rest)?;
    match kind {
        DURABLE => return Some(Event::Durable { number }),
        WITHDRAWN => return Some(Event::Withdrawn { number }),
        _ => {}
    }
    let part = *PARTS.get((kind >> 8 & 0xff) as usize)?;
    let mut content = |which: u64| {
        if kind >> 16 & which == 0 {
            return Some(None);
        }
        let (front, back) = rest.split_at_checked(len as usize)?;
        *rest = back;
        Some(Some(front.to_vec()))
    };
    let (old, new) = (content(HAS_OLD)?, content(HAS_NEW)?);
    (kind & 0xff == WRITE).then_some(Event::Write {
        number,
        part,
        at,
        len,
        old,
        new,
    })
}
