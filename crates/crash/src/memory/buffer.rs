//! The store buffer of a simulated thread.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::collections::VecDeque;
use std::sync::Arc;

/// The shared array behind a [`crate::CrashWords`].
pub(crate) type Array = Arc<[AtomicU64]>;

/// A store or write-back that its thread has executed and that no other thread can see yet.
pub(crate) enum Pending {
    Store {
        word: u64,
        value: u64,
    },
    /// A store to the bytes of a word that the mask selects.
    Part {
        word: u64,
        value: u64,
        mask: u64,
    },
    /// A write-back of a line, with the words of it that were asked for, a bit each.
    WriteBack {
        line: u64,
        words: u8,
    },
    Volatile {
        array: Array,
        index: usize,
        value: u64,
    },
}

/// Entries in program order; the oldest leaves first. A write-back passes through like a store, so it stays behind
/// earlier stores to its line.
#[derive(Default)]
pub(crate) struct StoreBuffer {
    entries: VecDeque<Pending>,
}

impl StoreBuffer {
    pub(crate) fn push(&mut self, entry: Pending) {
        self.entries.push_back(entry);
    }

    pub(crate) fn pop(&mut self) -> Option<Pending> {
        self.entries.pop_front()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What the thread itself loads of a persistent word: the youngest store to each of its bytes. Returns a mask of
    /// the bits stored, and their values; the other bits are as in memory.
    pub(crate) fn forward(&self, wanted: u64) -> (u64, u64) {
        let (mut mask, mut value) = (0, 0);
        for (word, stored, bits) in self.persistent().rev() {
            if word == wanted {
                value |= stored & bits & !mask;
                mask |= bits;
                if mask == u64::MAX {
                    break;
                }
            }
        }
        (mask, value)
    }

    /// The youngest store to a volatile word.
    pub(crate) fn forward_volatile(&self, wanted: &Array, at: usize) -> Option<u64> {
        self.entries.iter().rev().find_map(|entry| match entry {
            Pending::Volatile {
                array,
                index,
                value,
            } if *index == at && Arc::ptr_eq(array, wanted) => Some(*value),
            _ => None,
        })
    }

    /// The persistent stores with their words and the bits that they store, oldest first.
    pub(crate) fn persistent(&self) -> impl DoubleEndedIterator<Item = (u64, u64, u64)> + '_ {
        self.entries.iter().filter_map(|entry| match entry {
            Pending::Store { word, value } => Some((*word, *value, u64::MAX)),
            Pending::Part { word, value, mask } => Some((*word, *value, *mask)),
            _ => None,
        })
    }

    /// Makes the volatile stores visible and drops the persistent ones.
    pub(crate) fn abandon(&mut self) {
        for entry in self.entries.drain(..) {
            if let Pending::Volatile {
                array,
                index,
                value,
            } = entry
            {
                array[index].store(value, Relaxed);
            }
        }
    }
}
