//! Accesses for which the nearest cache does not suffice.

use firn_units::{LINE_BYTES, PhysAddr};

use crate::caches::{Eviction, Found};
use crate::controller::FIRST_DRAM_LINE;
use crate::time::{CYCLE, Ticks};
use crate::traffic::Cause;

use super::{Computer, Overlap};

impl Computer {
    #[inline(never)]
    pub(super) fn load_further(&mut self, core: usize, line: u64, overlap: Overlap) {
        self.expect(line);
        let found = self.caches.further(core, line, 0);
        self.processors[core].count_further(found.level);
        if found.level > 0 || found.transfer {
            self.wait_for(core, line, (found, Cause::Load), overlap);
        }
    }

    #[inline(never)]
    pub(super) fn store_further(&mut self, core: usize, line: u64, flags: u32) {
        self.expect(line);
        let found = self.caches.further(core, line, flags);
        self.processors[core].count_further(found.level);
        let mut taken = CYCLE;
        if found.level > 0 || found.transfer {
            let (asked, memory, transfer) = self.latency(core, line, (found, Cause::Store));
            taken = taken.max((asked + memory + transfer) / self.parallel_misses);
        }
        self.processors[core].store(taken);
    }

    /// Prefetches the host's data of a line: if the nearest cache lacks the line, the host's cache may lack it, too.
    #[inline(always)]
    pub(super) fn expect(&self, line: u64) {
        if let Some(images) = &self.images {
            images.expect(line);
        }
    }

    /// The latency of a line that the nearest cache lacks: of caches, of memory, of other cores. The line that it
    /// evicts leaves meanwhile.
    #[inline(always)]
    fn latency(
        &mut self,
        core: usize,
        line: u64,
        (found, cause): (Found, Cause),
    ) -> (Ticks, Ticks, Ticks) {
        let now = self.processors[core].now;
        if let (true, Some(under_way)) = (found.transfer, &mut self.under_way) {
            under_way.is_seen(line);
        }
        if let Some(eviction) = found.eviction {
            self.depart(eviction, now + self.path(), Cause::Eviction);
        }
        let level = usize::from(found.level);
        let asked = if level == 0 { 0 } else { self.levels[level] };
        let memory = if level + 1 == self.levels.len() {
            let (mechanism, mut port) = self.port(cause);
            let at = PhysAddr(line * LINE_BYTES);
            mechanism.read(at, now + asked, &mut port) - (now + asked)
        } else {
            0
        };
        (
            asked,
            memory,
            if found.transfer { self.transfer } else { 0 },
        )
    }

    #[inline(always)]
    pub(super) fn wait_for(
        &mut self,
        core: usize,
        line: u64,
        found: (Found, Cause),
        overlap: Overlap,
    ) {
        let (mut asked, mut memory, mut transfer) = self.latency(core, line, found);
        if overlap == Overlap::Independent {
            for part in [&mut asked, &mut memory, &mut transfer] {
                *part /= self.parallel_misses;
            }
        }
        let processor = &mut self.processors[core];
        let stalls = &mut processor.counts.stalls;
        stalls.caches += asked;
        stalls.transfer += transfer;
        match line < FIRST_DRAM_LINE {
            true => stalls.nvm += memory,
            false => stalls.dram += memory,
        }
        processor.now += asked + transfer + memory;
    }

    /// A line leaves the caches and is on its way to persistence. Returns when it is accepted.
    pub(super) fn depart(&mut self, eviction: Eviction, now: Ticks, cause: Cause) -> Ticks {
        if let Some(under_way) = &mut self.under_way {
            under_way.is_seen(eviction.line);
        }
        let (mechanism, mut port) = self.port(cause);
        mechanism.write(eviction.into(), now, &mut port)
    }
}
