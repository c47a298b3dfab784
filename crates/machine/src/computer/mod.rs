//! The computer as a whole: each instruction's path through core, caches, controller and devices.
//!
//! Cores are in order. A hit in the nearest cache costs nothing beyond its instruction. A miss costs its full latency
//! if the program follows the value that it loads ([`Overlap::Chain`]); otherwise it costs its share of the misses that
//! overlap.

mod miss;
mod power;

use firn_units::{DevAddr, LINE_BYTES, PhysAddr};

use crate::caches::{Caches, Found, flag};
use crate::controller::{Controller, FIRST_DRAM_LINE};
use crate::description::Description;
use crate::image::Images;
use crate::mechanism::{Cost, Mechanism, MechanismSpec, MemoryPort, NONE, OutgoingLine, Site};
use crate::processor::Processor;
use crate::statistics::{CoreStatistics, MOST_LEVELS, Statistics};
use crate::time::{CYCLE, Ticks, cycles};
use crate::traffic::Cause;
use crate::translation::PageSize;
use crate::underway::UnderWay;

/// Whether a miss overlaps with others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overlap {
    /// Its address, or the next step, depends on a load: nothing overlaps.
    Chain,
    /// It is one of several that the core knows at once.
    Independent,
}

/// A request to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// A line is read.
    Read,
    /// A line is written.
    Write,
}

/// Where volatile memory begins, as the controller sees it.
pub const DRAM_START: PhysAddr = PhysAddr(FIRST_DRAM_LINE * LINE_BYTES);

/// A computer.
pub struct Computer {
    processors: Vec<Processor>,
    caches: Caches,
    controller: Controller,
    /// Ticks of a hit in each level, then of a miss in all of them: how long it takes until memory is asked.
    levels: Vec<Ticks>,
    instruction: Ticks,
    parallel_misses: Ticks,
    transfer: Ticks,
    nvm_pages: PageSize,
    dram_pages: PageSize,
    images: Option<Images>,
    /// Present if a power failure leaves more than the lines that were written back.
    under_way: Option<UnderWay>,
    mechanism: Box<dyn Mechanism>,
}

impl Computer {
    /// A computer whose memory holds no data: only addresses count.
    pub fn new(described: &Description) -> Self {
        let core = &described.core;
        let hits = described
            .caches
            .iter()
            .map(|cache| cycles(cache.hit_cycles));
        let asked = described
            .caches
            .last()
            .map(|cache| cycles(cache.hit_cycles));
        let levels: Vec<Ticks> = hits.chain(asked).collect();
        assert!(
            levels.len() <= MOST_LEVELS,
            "{} levels of caches: at most {}",
            levels.len() - 1,
            MOST_LEVELS - 1
        );
        let processor = || Processor::new(&described.translation, core.store_buffer_entries);
        Self {
            processors: (0..core.count).map(|_| processor()).collect(),
            caches: Caches::new(&described.caches, core.count),
            controller: Controller::new(described),
            levels,
            instruction: core.millicycles_per_instruction.into(),
            parallel_misses: core.parallel_misses.into(),
            transfer: cycles(described.controller.transfer_cycles),
            nvm_pages: PageSize::default(),
            dram_pages: PageSize::default(),
            images: None,
            under_way: None,
            mechanism: (NONE.build)(&Site {
                description: described,
                capacity: 0,
            }),
        }
    }

    /// This computer with a mechanism.
    pub fn with_mechanism(mut self, spec: &MechanismSpec, site: &Site<'_>) -> Self {
        self.mechanism = (spec.build)(site);
        self
    }

    /// This computer with pages of these sizes.
    pub fn with_pages(mut self, nvm: PageSize, dram: PageSize) -> Self {
        (self.nvm_pages, self.dram_pages) = (nvm, dram);
        self
    }

    pub(crate) fn with_images(mut self, images: Images) -> Self {
        self.images = Some(images);
        self
    }

    #[inline(always)]
    pub(crate) fn images(&self) -> &Images {
        self.images
            .as_ref()
            .expect("a medium's computer has images")
    }

    #[inline(always)]
    pub(crate) fn images_mut(&mut self) -> &mut Images {
        self.images
            .as_mut()
            .expect("a medium's computer has images")
    }

    pub(crate) fn take_images(&mut self) -> Images {
        self.images.take().expect("a medium's computer has images")
    }

    pub(crate) fn cores(&self) -> usize {
        self.processors.len()
    }

    pub(crate) fn processor(&mut self, core: usize) -> &mut Processor {
        &mut self.processors[core]
    }

    /// A core's clock, in thousandths of a cycle.
    #[inline(always)]
    pub fn now(&self, core: usize) -> u64 {
        self.processors[core].now
    }

    /// Executes `instructions` that touch no memory.
    #[inline(always)]
    pub fn work(&mut self, core: usize, instructions: u64) {
        let processor = &mut self.processors[core];
        processor.counts.instructions += instructions;
        processor.now += instructions * self.instruction;
    }

    /// A load from the line at `at`.
    #[inline(always)]
    pub fn load(&mut self, core: usize, at: PhysAddr, overlap: Overlap) {
        self.begin(core, at).counts.loads += 1;
        let line = at.bytes() / LINE_BYTES;
        if !self.caches.is_near(core, line, 0) {
            self.load_further(core, line, overlap);
        }
    }

    /// A store to the line at `at`. It waits in the store buffer; the core waits only if the buffer is full.
    #[inline(always)]
    pub fn store(&mut self, core: usize, at: PhysAddr) {
        self.store_with(core, at, flag::DIRTY);
    }

    /// A store by a `relocate`: the line's pending bit is set (FFCCD, section 4.2).
    pub(crate) fn store_relocated(&mut self, core: usize, at: PhysAddr) {
        self.store_with(core, at, flag::DIRTY | flag::PENDING);
    }

    #[inline(always)]
    fn store_with(&mut self, core: usize, at: PhysAddr, flags: u32) {
        self.begin(core, at).counts.stores += 1;
        let line = at.bytes() / LINE_BYTES;
        if !self.caches.is_near(core, line, flags) {
            return self.store_further(core, line, flags);
        }
        self.processors[core].store(CYCLE);
    }

    /// Begins an instruction that touches memory: takes its time, and the time to translate its address.
    #[inline(always)]
    fn begin(&mut self, core: usize, at: PhysAddr) -> &mut Processor {
        let processor = &mut self.processors[core];
        processor.now += self.instruction;
        if !processor.translator.is_recent(at.bytes()) {
            self.translate(core, at);
        }
        &mut self.processors[core]
    }

    /// Translates an address in another page than the last one. Meanwhile the host prefetches the line's data.
    #[inline(never)]
    fn translate(&mut self, core: usize, at: PhysAddr) {
        let line = at.bytes() / LINE_BYTES;
        self.expect(line);
        self.caches.expect(line);
        let pages = match at < DRAM_START {
            true => self.nvm_pages,
            false => self.dram_pages,
        };
        self.processors[core].translate(at, pages);
    }

    /// A locked instruction on the line at `at`: older stores enter the cache first, and the core waits for
    /// the line.
    pub fn locked(&mut self, core: usize, at: PhysAddr) {
        let processor = self.begin(core, at);
        processor.counts.locked += 1;
        let empty_at = processor.stores.empty_at().max(processor.now);
        processor.counts.stalls.fence += empty_at - processor.now;
        processor.now = empty_at;
        let line = at.bytes() / LINE_BYTES;
        let found = match self.caches.is_near(core, line, flag::DIRTY) {
            true => Found::at(0),
            false => self.caches.further(core, line, flag::DIRTY),
        };
        self.processors[core].count_further(found.level);
        self.wait_for(core, line, (found, Cause::Store), Overlap::Chain);
    }

    /// Writes the line at `at` back (clwb). The core continues; its next fence waits until the line is accepted.
    pub fn write_back(&mut self, core: usize, at: PhysAddr) {
        self.begin(core, at).counts.write_backs += 1;
        let Some(eviction) = self.caches.clean(at.bytes() / LINE_BYTES) else {
            return;
        };
        let processor = &self.processors[core];
        let leaves_at = processor.now.max(processor.stores.empty_at()) + self.path();
        let accepted_at = self.depart(eviction, leaves_at, Cause::WriteBack);
        let processor = &mut self.processors[core];
        processor.accepted_at = processor.accepted_at.max(accepted_at);
    }

    /// Waits for older stores, and for the lines that were written back (sfence).
    pub fn fence(&mut self, core: usize) {
        let processor = &mut self.processors[core];
        processor.now += self.instruction;
        processor.counts.fences += 1;
        let done_at = processor.stores.empty_at().max(processor.accepted_at);
        let done_at = done_at.max(processor.now);
        processor.counts.stalls.fence += done_at - processor.now;
        processor.now = done_at;
    }

    /// A request at `now` that comes from no core. It bypasses the caches, which must not hold its line, and goes to
    /// the mechanism and the controller. Returns when the line arrives, or is accepted.
    #[inline]
    pub fn request(&mut self, at: PhysAddr, request: Request, now: Ticks) -> Ticks {
        let (mechanism, mut port) = self.port(Cause::Outside);
        match request {
            Request::Read => mechanism.read(at, now, &mut port),
            Request::Write => {
                let leaving = OutgoingLine {
                    at,
                    is_dirty: true,
                    is_relocated: false,
                };
                mechanism.write(leaving, now, &mut port)
            }
        }
    }

    /// A core waits until `until`, if that has not passed.
    pub(crate) fn idle(&mut self, core: usize, until: Ticks) {
        let processor = &mut self.processors[core];
        processor.now = processor.now.max(until);
    }

    /// The counts so far.
    pub fn statistics(&self) -> Statistics {
        let (queue, nvm, dram) = self.controller.counts();
        let core = |processor: &Processor| {
            CoreStatistics::of(processor.all_counts(), &processor.scopes, processor.now)
        };
        Statistics {
            cores: self.processors.iter().map(core).collect(),
            queue,
            nvm,
            dram,
            mechanism: self.mechanism.counts(),
        }
    }

    // ---- the mechanism ----

    /// The mechanism and its port, on behalf of `cause`.
    #[inline(always)]
    fn port(&mut self, cause: Cause) -> (&mut dyn Mechanism, MemoryPort<'_>) {
        let port = MemoryPort {
            cause,
            caches: &mut self.caches,
            controller: Some(&mut self.controller),
            images: self.images.as_mut(),
        };
        (&mut *self.mechanism, port)
    }

    /// Lets the mechanism act without time.
    pub(crate) fn with_mechanism_now<R>(
        &mut self,
        act: impl FnOnce(&mut dyn Mechanism, &mut MemoryPort<'_>) -> R,
    ) -> R {
        let (mechanism, mut port) = self.port(Cause::Mechanism);
        port.controller = None;
        act(mechanism, &mut port)
    }

    /// An instruction of the mechanism on a core: it takes the ticks of its parts, then loads its lines.
    pub(crate) fn ask(
        &mut self,
        core: usize,
        ask: &mut dyn FnMut(usize, &mut dyn Mechanism, &mut MemoryPort<'_>) -> Cost,
    ) {
        self.work(core, 1);
        let (mechanism, mut port) = self.port(Cause::Mechanism);
        let cost = ask(core, mechanism, &mut port);
        let processor = &mut self.processors[core];
        processor.counts.stalls.mechanism += cost.ticks;
        processor.now += cost.ticks;
        for (place, at) in cost.loads.into_iter().enumerate() {
            let overlap = match place {
                0 => Overlap::Chain,
                _ => Overlap::Independent,
            };
            self.load(core, at, overlap);
        }
    }

    /// The device address of a line of persistent memory.
    pub(crate) fn home(&self, at: PhysAddr) -> DevAddr {
        self.mechanism.home(at)
    }

    /// When the mechanism wants to act.
    pub(crate) fn wakes_at(&self) -> Ticks {
        self.mechanism.wakes_at()
    }

    /// Lets the mechanism do the work that is due at `now`.
    pub(crate) fn wake(&mut self, now: Ticks) {
        let (mechanism, mut port) = self.port(Cause::Mechanism);
        let until = mechanism.wake(now, &mut port);
        for core in 0..self.cores() {
            let before = self.processors[core].now;
            self.idle(core, until);
            let processor = &mut self.processors[core];
            processor.counts.stalls.mechanism += processor.now - before;
        }
    }

    /// Ticks from a core to the controller, through the core's caches.
    #[inline(always)]
    fn path(&self) -> Ticks {
        self.levels.last().copied().unwrap_or(0)
    }
}
