//! Which words a thread has written back since its last fence.
//!
//! The set belongs to the thread: a fence covers only write-backs of its own thread, and appends only these.

use core::cell::RefCell;

use firn_units::words_touched;

/// Words of a line, a bit each, below the line's number: in the order of numbers, one behind the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct LineWords(u64);

impl LineWords {
    pub(super) fn new(line: u64, words: u8) -> Self {
        Self(line << u8::BITS | u64::from(words))
    }

    /// The line's number.
    pub(super) fn line(self) -> u64 {
        self.0 >> u8::BITS
    }

    /// Which of its words.
    pub(super) fn words(self) -> u8 {
        self.0 as u8
    }

    /// Takes in the words of `other`, if it is of the same line. Returns whether it is.
    fn merge(&mut self, other: Self) -> bool {
        let same = self.line() == other.line();
        self.0 |= if same { other.0 } else { 0 };
        same
    }
}

/// A thread's lines of one log.
#[derive(Debug, Default)]
struct OfLog {
    /// The log's number; none has zero.
    log: u64,
    /// Lines, in the order of their write-backs.
    lines: Vec<LineWords>,
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
    fn of(&mut self, log: u64) -> &mut Vec<LineWords> {
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

/// The lines that `len` bytes from `at` on touch, with the words of them.
pub(super) fn lines(at: u64, len: u64) -> impl Iterator<Item = LineWords> {
    words_touched(at, len).map(|(line, words)| LineWords::new(line, words))
}

/// Notes the words that `len` bytes from `at` on touch. Returns whether the thread still can: at its end, when its other
/// values go, the notes may be gone.
#[inline]
pub(super) fn note(log: u64, at: u64, len: u64) -> bool {
    let noted = NOTED.try_with(|noted| {
        let mut noted = noted.borrow_mut();
        let noted = noted.of(log);
        for line in lines(at, len) {
            // A loop of stores to one line writes it back again and again.
            let merged = noted.last_mut().is_some_and(|last| last.merge(line));
            if !merged {
                noted.push(line);
            }
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
pub(super) fn take<R>(log: u64, with: impl FnOnce(&[LineWords]) -> R) -> Option<R> {
    let taken = NOTED.try_with(|noted| {
        let mut noted = noted.borrow_mut();
        let lines = noted.of(log);
        if lines.is_empty() {
            return None;
        }
        lines.sort_unstable();
        lines.dedup_by(|next, line| line.merge(*next));
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
    fn words_are_handed_over_once_by_the_thread_that_noted_them_and_by_their_log() {
        for (log, at, len) in [
            (1, 5 * 64, 128),
            (2, 5 * 64, 64),
            (1, 3 * 64 + 9, 1),
            (1, 6 * 64, 8),
        ] {
            assert!(note(log, at, len));
        }
        assert!(note(1, 3 * 64 + 60, 4) && note(1, 8 * 64 - 4, 8));
        std::thread::spawn(|| assert_eq!(take(1, <[LineWords]>::to_vec), None))
            .join()
            .unwrap();
        let of = |all: &[(u64, u8)]| {
            let all = all.iter().map(|&(line, words)| LineWords::new(line, words));
            Some(all.collect::<Vec<_>>())
        };
        let first = of(&[(3, 0b1000_0010), (5, 0xff), (6, 0xff), (7, 0x80), (8, 1)]);
        assert_eq!(take(1, <[LineWords]>::to_vec), first);
        assert_eq!(take(1, <[LineWords]>::to_vec), None);
        assert_eq!(take(2, <[LineWords]>::to_vec), of(&[(5, 0xff)]));
    }
}
