//! Lines whose mark is only in a cache.

use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::xxh3_64;

use crate::memory::cells::{is_mark, line_of};
use crate::memory::event::Event;

/// The lines that a cache holds with a mark that may not have reached persistence. Clearing the bitmap does not reach
/// these marks.
#[derive(Default)]
pub(crate) struct MarkedLines {
    dirty: FxHashSet<u64>,
    /// Write-backs of these lines that no fence has followed: thread and line.
    issued: Vec<(u16, u64)>,
}

impl MarkedLines {
    /// Identifies the lines, whatever their order.
    pub(crate) fn digest(&self) -> u64 {
        let each = self.dirty.iter().map(|line| xxh3_64(&line.to_le_bytes()));
        each.fold(0, |all, line| all ^ line)
    }

    pub(crate) fn take_in(&mut self, event: &Event) {
        match *event {
            Event::Store { word, new, .. } if is_mark(word) && new != 0 => {
                self.dirty.insert(line_of(word));
            }
            Event::WriteBack { thread, line } if self.dirty.contains(&line) => {
                self.issued.push((thread, line));
            }
            Event::Fence { thread } if !self.issued.is_empty() => {
                let dirty = &mut self.dirty;
                self.issued.retain(|(issuer, line)| {
                    let done = *issuer == thread;
                    if done {
                        dirty.remove(line);
                    }
                    !done
                });
            }
            _ => {}
        }
    }

    /// Whether `line` is among them.
    pub(crate) fn has(&self, line: u64) -> bool {
        self.dirty.contains(&line)
    }
}
