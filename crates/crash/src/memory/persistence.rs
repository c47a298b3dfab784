//! Which images a crash may leave: the dirty lines and the write-backs under way.

use firn_media::Domain;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::memory::cells::{LINE_WORDS, Line, index_of, line_of, mark_of};
use crate::memory::event::Event;
use crate::memory::history::{LineHistory, Version};
use crate::memory::log::Log;
use crate::memory::pages::Memory;

/// Hash of a line at its place. The hash of a line of zeros is zero, so untouched memory adds nothing.
pub(crate) fn line_hash(line: u64, content: &Line) -> u128 {
    if content.iter().all(|&word| word == 0) {
        return 0;
    }
    let mut bytes = [0; 64];
    let (words, mark) = content.split_at(LINE_WORDS as usize);
    for (into, word) in bytes.chunks_exact_mut(8).zip(words) {
        into.copy_from_slice(&word.to_le_bytes());
    }
    xxh3_128_with_seed(&bytes, mark_of(line) * mark[0] + line)
}

/// The dirty lines with their histories, and per thread the write-backs that no fence has followed.
///
/// A line without a history is clean: after a crash it holds what the cache holds.
#[derive(Clone)]
pub(crate) struct Persistence {
    domain: Domain,
    hashing: bool,
    lines: FxHashMap<u64, LineHistory>,
    issued: Vec<Vec<(u64, u64)>>,
    step: u64,
    /// In place of all that in [`Domain::Logged`].
    log: Log,
}

impl Persistence {
    pub(crate) fn new(domain: Domain) -> Self {
        Self {
            domain,
            hashing: false,
            lines: FxHashMap::default(),
            issued: Vec::new(),
            step: 0,
            log: Log::default(),
        }
    }

    /// Keeps a hash with every version.
    pub(crate) fn hashing(domain: Domain) -> Self {
        Self {
            hashing: true,
            ..Self::new(domain)
        }
    }

    /// Dirty lines.
    pub(crate) fn lines(&self) -> &FxHashMap<u64, LineHistory> {
        &self.lines
    }

    /// The log, if the domain has one.
    pub(crate) fn log(&self) -> Option<&Log> {
        (self.domain == Domain::Logged).then_some(&self.log)
    }

    /// Whether a line's content in memory may be lost.
    pub(crate) fn may_lose(&self, line: u64) -> bool {
        self.lines.contains_key(&line) || self.log.may_lose(line)
    }

    /// Records an event that has *not* been applied to `memory` yet.
    #[inline]
    pub(crate) fn apply(&mut self, event: &Event, memory: &Memory) {
        if self.domain == Domain::Logged {
            return self.log.take_in(event, memory);
        }
        match *event {
            Event::Store { word, old, new, .. } => {
                let line = line_of(word);
                // A store into a hole that is not durable yet is lost if the hole is.
                let kept = self.domain != Domain::Eadr || self.lines.contains_key(&line);
                if old != new && kept {
                    self.change(line, memory, |content| content[index_of(word)] = new);
                }
            }
            Event::Zero { line, .. } => {
                // A hole is metadata of a file system: even persistent caches do not hold it.
                self.change(line, memory, |content| *content = Line::default());
            }
            Event::WriteBack { thread, line } => self.write_back(usize::from(thread), line),
            Event::Fence { thread } => self.fence(usize::from(thread)),
            Event::Sync { .. } => self.lines.clear(),
            Event::Length { old, new, .. } => {
                if new < old {
                    let end = new.div_ceil(firn_units::LINE_BYTES);
                    self.lines.retain(|&line, _| line < end);
                }
            }
            Event::Commit { .. }
            | Event::Note { .. }
            | Event::Backing { .. }
            | Event::Append { .. }
            | Event::Durable { .. } => {}
        }
    }

    fn change(&mut self, line: u64, memory: &Memory, how: impl FnOnce(&mut Line)) {
        self.step += 1;
        let (step, hashing) = (self.step, self.hashing);
        let version = |step, content: Line| Version {
            step,
            content,
            hash: if hashing {
                line_hash(line, &content)
            } else {
                0
            },
        };
        let before = || LineHistory::new(version(0, memory.line(line)));
        let history = self.lines.entry(line).or_insert_with(before);
        let mut content = history.latest().content;
        how(&mut content);
        history.push(version(step, content));
    }

    fn write_back(&mut self, thread: usize, line: u64) {
        if self.domain == Domain::Adr && self.lines.contains_key(&line) {
            if self.issued.len() <= thread {
                self.issued.resize_with(thread + 1, Vec::new);
            }
            self.issued[thread].push((line, self.step));
        }
    }

    fn fence(&mut self, thread: usize) {
        let Some(issued) = self.issued.get_mut(thread) else {
            return;
        };
        for (line, step) in issued.drain(..) {
            if let Some(history) = self.lines.get_mut(&line)
                && history.guarantee(step)
            {
                self.lines.remove(&line);
            }
        }
    }
}
