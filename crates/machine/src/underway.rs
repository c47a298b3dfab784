//! Stores under way: those that a core has executed and no cache has seen. A power failure loses them, whatever it
//! leaves of the caches.
//!
//! Stores enter the nearest cache in order (x86's total store order), so a prefix of each core's stores survives. Here
//! programs see their stores in memory at once, so memory's earlier content is recorded until the store has entered.
//!
//! A store has entered once its time has come, or once its line was seen: another core asked for the line, or the line
//! left the caches, with everything that was stored to it. Then all older stores of the core have entered, too.

use std::collections::VecDeque;

use crate::time::Ticks;

/// A word that a store changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Changed {
    pub(crate) line: u64,
    /// The word's number and earlier content; nothing for volatile memory, which no power failure leaves.
    pub(crate) before: Option<(u64, u64)>,
    /// Whether a `relocate` stored it: the line is marked when the store enters the cache (FFCCD, section 4.2).
    pub(crate) relocated: bool,
    /// When the store enters the nearest cache.
    pub(crate) done_at: Ticks,
}

/// Stores under way, each core's oldest first.
pub(crate) struct UnderWay {
    cores: Vec<VecDeque<Changed>>,
}

impl UnderWay {
    pub(crate) fn new(cores: usize) -> Self {
        Self {
            cores: (0..cores).map(|_| VecDeque::new()).collect(),
        }
    }

    /// A core has stored at `now`.
    pub(crate) fn push(&mut self, core: usize, new: Changed, now: Ticks) {
        let changed = &mut self.cores[core];
        let entered = |oldest: &Changed| oldest.done_at <= now;
        while changed.front().is_some_and(entered) {
            changed.pop_front();
        }
        changed.push_back(new);
    }

    /// A line was seen: its stores have entered, and all older ones of their cores.
    pub(crate) fn is_seen(&mut self, line: u64) {
        for changed in &mut self.cores {
            if let Some(newest) = changed.iter().rposition(|changed| changed.line == line) {
                changed.drain(..=newest);
            }
        }
    }

    /// All stores have entered.
    pub(crate) fn settle(&mut self) {
        self.cores.iter_mut().for_each(VecDeque::clear);
    }

    /// The stores that a power failure loses, each core's newest first. A core ran until its own clock, or until the
    /// failure if that is later.
    pub(crate) fn lost(&mut self, failed_at: impl Fn(usize) -> Ticks) -> Vec<Changed> {
        let mut lost = Vec::new();
        for (core, changed) in self.cores.iter_mut().enumerate() {
            let failed_at = failed_at(core);
            let newest_first = changed.drain(..).rev();
            let under_way = newest_first.take_while(|changed| changed.done_at > failed_at);
            lost.extend(under_way);
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores of one core to a word in each of three lines, which enter one after another.
    fn three() -> UnderWay {
        let mut stores = UnderWay::new(2);
        for (line, done_at) in [(1, 10), (2, 20), (3, 30)] {
            stores.push(0, changed(line, done_at), 0);
        }
        stores
    }

    fn changed(line: u64, done_at: Ticks) -> Changed {
        Changed {
            line,
            before: Some((line * 8, 0)),
            relocated: false,
            done_at,
        }
    }

    fn lost(mut stores: UnderWay, at: Ticks) -> Vec<u64> {
        stores
            .lost(|_| at)
            .into_iter()
            .map(|changed| changed.before.unwrap().0)
            .collect()
    }

    #[test]
    fn a_prefix_survives() {
        assert_eq!(lost(three(), 9), [24, 16, 8]);
        assert_eq!(lost(three(), 10), [24, 16]);
        assert_eq!(lost(three(), 29), [24]);
        assert_eq!(lost(three(), 30), []);
    }

    #[test]
    fn what_somebody_saw_has_entered_and_all_that_is_older() {
        let mut stores = three();
        stores.is_seen(2);
        assert_eq!(lost(stores, 0), [24]);
        let mut stores = three();
        stores.is_seen(7);
        assert_eq!(lost(stores, 0), [24, 16, 8]);
        let mut stores = three();
        stores.settle();
        assert_eq!(lost(stores, 0), []);
    }

    #[test]
    fn what_has_entered_is_forgotten() {
        let mut stores = three();
        stores.push(0, changed(4, 40), 20);
        assert_eq!(stores.cores[0].len(), 2);
        assert_eq!(lost(stores, 0), [32, 24]);
    }

    #[test]
    fn each_core_has_its_own_order() {
        let mut stores = three();
        stores.push(1, changed(9, 40), 0);
        stores.is_seen(3);
        assert_eq!(lost(stores, 0), [72]);
    }
}
