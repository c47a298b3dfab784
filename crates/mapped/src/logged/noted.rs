//! Which lines a thread has written back since its last fence.
//!
//! The set belongs to the thread: a fence covers only write-backs of its own thread, and appends only these.

use core::cell::RefCell;
use core::ops::Range;

/// A thread's lines of one log.
#[derive(Debug, Default)]
struct OfLog {
    /// The log's number; none has zero.
    log: u64,
    /// Numbers of lines, in the order of their write-backs.
    lines: Vec<u64>,
}

/// Lines of the log that the thread used last, and of others.
#[derive(Debug, Default)]
struct Noted {
    last: OfLog,
    others: Vec<OfLog>,
}

thread_local! {
    static NOTED: RefCell<Noted> = RefCell::default();
}

impl Noted {
    /// The lines of a log.
    #[inline]
    fn of(&mut self, log: u64) -> &mut Vec<u64> {
        if self.last.log != log {
            self.switch(log);
        }
        &mut self.last.lines
    }

    #[cold]
    fn switch(&mut self, log: u64) {
        let found = self.others.iter().position(|other| other.log == log);
        let next = found.map_or_else(
            || OfLog {
                log,
                ..OfLog::default()
            },
            |index| self.others.swap_remove(index),
        );
        let last = core::mem::replace(&mut self.last, next);
        if !last.lines.is_empty() {
            self.others.push(last);
        }
    }
}

/// Notes lines, by their numbers. Returns whether the thread still can: at its end, when its other values go, the notes
/// may be gone.
#[inline]
pub(super) fn note(log: u64, lines: Range<u64>) -> bool {
    let noted = NOTED.try_with(|noted| {
        let mut noted = noted.borrow_mut();
        let noted = noted.of(log);
        // A loop of stores to one line writes it back again and again.
        if lines.end != lines.start + 1 || noted.last() != Some(&lines.start) {
            noted.extend(lines);
        }
    });
    noted.is_ok()
}

/// How many lines are noted, some perhaps more than once; `None` if the thread cannot note any.
#[inline]
pub(super) fn count(log: u64) -> Option<usize> {
    NOTED
        .try_with(|noted| noted.borrow_mut().of(log).len())
        .ok()
}

/// Hands the noted lines over, each once and ascending, and forgets them; `None` if there are none.
#[inline]
pub(super) fn take<R>(log: u64, with: impl FnOnce(&[u64]) -> R) -> Option<R> {
    let taken = NOTED.try_with(|noted| {
        let mut noted = noted.borrow_mut();
        let lines = noted.of(log);
        if lines.is_empty() {
            return None;
        }
        lines.sort_unstable();
        lines.dedup();
        let result = with(lines);
        lines.clear();
        Some(result)
    });
    taken.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_handed_over_once_by_the_thread_that_noted_them_and_by_their_log() {
        for (log, lines) in [(1, 5..7), (2, 5..6), (1, 3..4), (1, 6..8)] {
            assert!(note(log, lines));
        }
        std::thread::spawn(|| assert_eq!(take(1, <[u64]>::to_vec), None))
            .join()
            .unwrap();
        assert_eq!(take(1, <[u64]>::to_vec), Some(vec![3, 5, 6, 7]));
        assert_eq!(take(1, <[u64]>::to_vec), None);
        assert_eq!(take(2, <[u64]>::to_vec), Some(vec![5]));
    }
}
