//! Power failures that leave the caches (eADR): they take the stores that no cache has seen yet.

use firn_units::{LINE_BYTES, PhysAddr, WORDS_PER_LINE};

use crate::time::Ticks;
use crate::traffic::Cause;
use crate::underway::{Changed, UnderWay};

use super::Computer;

impl Computer {
    /// Makes power failures lose the stores that have entered no cache, and nothing else.
    pub(crate) fn keeping_caches(mut self) -> Self {
        self.under_way = Some(UnderWay::new(self.processors.len()));
        self
    }

    /// Sets word number `word` to `value`, as part of a core's latest store.
    #[inline(always)]
    pub(crate) fn set_word(&mut self, core: usize, word: u64, value: u64) {
        if self.under_way.is_some() {
            self.put_down(core, word / WORDS_PER_LINE as u64, Some(word), false);
        }
        self.images_mut().store(word, value);
    }

    /// Sets word number `word` to `value`, as part of a `relocate`.
    pub(crate) fn set_relocated_word(&mut self, core: usize, word: u64, value: u64) {
        if self.under_way.is_some() {
            self.put_down(core, word / WORDS_PER_LINE as u64, Some(word), true);
        }
        self.images_mut().store(word, value);
    }

    /// A core stored to volatile memory. Others may learn of it, and thereby of the core's earlier stores.
    #[inline(always)]
    pub(crate) fn volatile_stored(&mut self, core: usize, at: PhysAddr) {
        if self.under_way.is_some() {
            self.put_down(core, at.bytes() / LINE_BYTES, None, false);
        }
    }

    #[inline(never)]
    fn put_down(&mut self, core: usize, line: u64, word: Option<u64>, relocated: bool) {
        let processor = &self.processors[core];
        let changed = Changed {
            line,
            before: word.map(|word| (word, self.images().load(word))),
            relocated,
            done_at: processor.stores.empty_at(),
        };
        let now = processor.now;
        if let Some(under_way) = &mut self.under_way {
            under_way.push(core, changed, now);
        }
    }

    /// The power fails at `now`: memory loses the stores that no cache had seen.
    #[cold]
    pub(crate) fn lose_stores(&mut self, now: Ticks) {
        let Some(under_way) = &mut self.under_way else {
            return;
        };
        let processors = &self.processors;
        let lost = under_way.lost(|core| processors[core].now.max(now));
        for changed in lost {
            if let Some((word, before)) = changed.before {
                self.images_mut().store(word, before);
            }
            if changed.relocated {
                self.caches.clear_pending(changed.line);
            }
        }
    }

    /// Makes the content of the caches persistent, without time. The caches keep it.
    pub(crate) fn sync(&mut self) {
        if let Some(under_way) = &mut self.under_way {
            under_way.settle();
        }
        let (mechanism, mut port) = self.port(Cause::Mechanism);
        port.controller = None;
        for leaving in port.flush() {
            mechanism.write(leaving, 0, &mut port);
        }
    }
}
