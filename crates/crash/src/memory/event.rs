//! Events at the level of the cache: what a crash can fall between.

use firn_media::Domain;
use firn_units::{FRAME_BYTES, VirtAddr, WORD_BYTES};

use crate::memory::cells::{Line, is_mark, line_at, line_of};
use crate::memory::log::Record;
use crate::memory::pages::Memory;

/// Something that happened to memory or to its durability, in the order in which it reached the caches. A store still
/// in a store buffer has not happened yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A store reached the cache.
    Store {
        /// Simulated thread.
        thread: u16,
        /// Address in words, or the address of a line's mark: see [`Event::stored`].
        word: u64,
        /// Content before.
        old: u64,
        /// Content after.
        new: u64,
    },
    /// A line was discarded: it reads as zeros, and may be old or zero after a crash.
    Zero {
        /// Simulated thread.
        thread: u16,
        /// Address in lines.
        line: u64,
        /// Content before.
        old: Box<Line>,
    },
    /// A write-back (clwb) left the store buffer.
    WriteBack {
        /// Simulated thread.
        thread: u16,
        /// Address in lines.
        line: u64,
    },
    /// A fence completed: the write-backs of its thread are durable.
    Fence {
        /// Simulated thread.
        thread: u16,
    },
    /// A commit was declared durable.
    Commit {
        /// Simulated thread.
        thread: u16,
        /// Its ticket.
        ticket: u64,
    },
    /// A workload noted its progress.
    Note {
        /// Simulated thread.
        thread: u16,
        /// The progress noted.
        progress: u64,
    },
    /// Everything stored so far is durable.
    Sync {
        /// Simulated thread.
        thread: u16,
    },
    /// The medium's length changed, durably.
    Length {
        /// Simulated thread.
        thread: u16,
        /// Bytes before.
        old: u64,
        /// Bytes after.
        new: u64,
    },
    /// A record got its place in the log, and with it its content ([`firn_media::Domain::Logged`]).
    Append {
        /// Simulated thread.
        thread: u16,
        /// What it says.
        record: Box<Record>,
    },
    /// A thread has waited until the log is durable so far ([`firn_media::Domain::Logged`]).
    Durable {
        /// Simulated thread.
        thread: u16,
        /// Number of the newest record that is.
        ticket: u64,
    },
    /// The device gave blocks to a frame or took them.
    Backing {
        /// Simulated thread.
        thread: u16,
        /// Address in frames.
        frame: u64,
        /// Whether it has blocks now; before, it was the opposite.
        backed: bool,
    },
}

/// The target of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stored {
    /// The word here.
    Word(VirtAddr),
    /// The mark of the line that begins here.
    Mark(VirtAddr),
}

impl Event {
    /// The target, if the event is a store.
    pub fn stored(&self) -> Option<Stored> {
        match *self {
            Event::Store { word, .. } if is_mark(word) => {
                Some(Stored::Mark(line_at(line_of(word))))
            }
            Event::Store { word, .. } => Some(Stored::Word(VirtAddr(word * WORD_BYTES))),
            _ => None,
        }
    }

    /// First byte of the line that the event writes back, if it is a write-back.
    pub fn written_back(&self) -> Option<VirtAddr> {
        match *self {
            Event::WriteBack { line, .. } => Some(line_at(line)),
            _ => None,
        }
    }

    /// The simulated thread that caused it.
    pub fn thread(&self) -> u16 {
        match *self {
            Event::Store { thread, .. }
            | Event::Zero { thread, .. }
            | Event::WriteBack { thread, .. }
            | Event::Fence { thread }
            | Event::Commit { thread, .. }
            | Event::Note { thread, .. }
            | Event::Sync { thread }
            | Event::Length { thread, .. }
            | Event::Append { thread, .. }
            | Event::Durable { thread, .. }
            | Event::Backing { thread, .. } => thread,
        }
    }

    /// The line that the event changes, if there is one.
    pub(crate) fn changes(&self) -> Option<u64> {
        match self {
            Event::Store { word, old, new, .. } if old != new => Some(line_of(*word)),
            Event::Zero { line, .. } => Some(*line),
            _ => None,
        }
    }

    /// The line that the event stores to, even if the content stays equal.
    pub(crate) fn stores_to(&self) -> Option<u64> {
        match self {
            Event::Store { word, .. } => Some(line_of(*word)),
            Event::Zero { line, .. } => Some(*line),
            _ => None,
        }
    }

    /// Redoes the event on `memory`.
    #[inline]
    pub(crate) fn redo(&self, memory: &Memory) {
        match self {
            Event::Store { word, new, .. } => memory.store(*word, *new),
            Event::Zero { line, .. } => memory.set_line(*line, &Line::default()),
            Event::Length { new, .. } => memory.set_len(*new),
            Event::Backing { frame, backed, .. } => memory.set_backed(*frame, *backed),
            _ => {}
        }
    }

    /// Undoes the event on `memory`.
    #[inline]
    pub(crate) fn undo(&self, memory: &Memory) {
        match self {
            Event::Store { word, old, .. } => memory.store(*word, *old),
            Event::Zero { line, old, .. } => memory.set_line(*line, old),
            Event::Length { old, .. } => memory.set_len(*old),
            Event::Backing { frame, backed, .. } => memory.set_backed(*frame, !*backed),
            _ => {}
        }
    }

    /// Two words that distinguish the event in an execution's hash.
    pub(crate) fn digest(&self) -> [u64; 2] {
        match *self {
            Event::Store {
                thread, word, new, ..
            } => [word << 16 | u64::from(thread), new],
            Event::Zero { thread, line, .. } => [1 << 60 | line << 16 | u64::from(thread), 0],
            Event::WriteBack { thread, line } => [2 << 60 | line << 16 | u64::from(thread), 0],
            Event::Fence { thread } => [3 << 60 | u64::from(thread), 0],
            Event::Commit { thread, ticket } => [4 << 60 | u64::from(thread), ticket],
            Event::Note { thread, progress } => [5 << 60 | u64::from(thread), progress],
            Event::Sync { thread } => [6 << 60 | u64::from(thread), 0],
            Event::Length { thread, new, .. } => [7 << 60 | u64::from(thread), new],
            Event::Backing {
                thread,
                frame,
                backed,
            } => [
                8 << 60 | u64::from(thread),
                (frame * FRAME_BYTES) | u64::from(backed),
            ],
            Event::Append { thread, ref record } => [9 << 60 | u64::from(thread), record.digest()],
            Event::Durable { thread, ticket } => [10 << 60 | u64::from(thread), ticket],
        }
    }
}

/// Images that an event makes possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NewImages {
    /// None.
    No,
    /// Those with this line at its newest content.
    Line(u64),
    /// The one with every record of the log.
    WholeLog,
    /// Every image, because the device has changed or an oracle expects something else from now on.
    All,
}

impl NewImages {
    /// The images that the event at `index` makes possible in `domain`.
    pub(crate) fn of(trace: &[Event], index: usize, domain: Domain) -> Self {
        let event = &trace[index];
        match event {
            Event::Note { .. } | Event::Commit { .. } | Event::Durable { .. } => Self::All,
            Event::Append { .. } => Self::WholeLog,
            // What no record has captured yet is in no image.
            _ if domain == Domain::Logged => Self::No,
            _ if changes_device(trace, index) => Self::All,
            _ => event.changes().map_or(Self::No, Self::Line),
        }
    }
}

/// Whether the event at `index` changes the device, so that every image is new: the event changes its length, or is the
/// last of consecutive events that take blocks from frames. Programs notice a frame without blocks only by failing to
/// store to it, so a fault that shows with some of these holes shows with all of them; and no fault comes from a frame
/// that has blocks.
pub(crate) fn changes_device(trace: &[Event], index: usize) -> bool {
    let loses_blocks = |event: &Event| matches!(event, Event::Backing { backed: false, .. });
    match &trace[index] {
        Event::Length { .. } => true,
        event => loses_blocks(event) && !trace.get(index + 1).is_some_and(loses_blocks),
    }
}
