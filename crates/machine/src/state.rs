//! The state that the threads of a machine share.

use firn_hardware::relocate::{Store, Unit, instructions};
use firn_media::Domain;
use firn_units::{FRAME_BYTES, LINE_BYTES, PhysAddr, VirtAddr, WORD_BYTES};

use crate::computer::{Computer, DRAM_START, Overlap};
use crate::image::Images;
use crate::mechanism::{Cost, Mechanism, MemoryPort};
use crate::options::MachineOptions;
use crate::range::lines_of;
use crate::time::Ticks;

/// Bytes of a range that one instruction moves.
const RANGE_BYTES: u64 = 32;

/// A simulated thread.
#[derive(Default)]
pub(crate) struct Thread {
    pub(crate) core: usize,
    pub(crate) finished: bool,
    pub(crate) panicked: bool,
    /// Its open scopes while another thread has its core.
    pub(crate) scopes: Vec<u8>,
    /// When it was last resumed, in turns.
    pub(crate) turn: u64,
}

/// The computer, its memory and its threads.
pub(crate) struct State {
    pub(crate) computer: Computer,
    /// All threads so far. The first one is the code outside all simulated threads.
    pub(crate) threads: Vec<Thread>,
    pub(crate) current: usize,
    /// The current thread's core.
    core: usize,
    pub(crate) turns: u64,
    /// When the current thread lets others run.
    pub(crate) slice_end: Ticks,
    /// When the slice ends or the mechanism wants to act; zero without power.
    due: Ticks,
    /// Memory operations so far.
    pub(crate) events: u64,
    /// The memory operation before which the power fails.
    fails_at: u64,
    /// The next memory operation that is special. Without power, and during untimed accesses, all of them are.
    next_special: u64,
    pub(crate) dead: bool,
    /// How many untimed accesses are nested.
    untimed_depth: u32,
    /// Pauses since the last store.
    pub(crate) idle_pauses: u64,
    pub(crate) ticket: u64,
    pub(crate) random: fastrand::Rng,
    pub(crate) length: u64,
    backed: Vec<bool>,
    pub(crate) backed_frames: u64,
    next_volatile: PhysAddr,
}

impl State {
    pub(crate) fn new(options: &MachineOptions) -> Self {
        let regions = (options.mechanism.regions)(&options.site());
        Self::with_images(options, Images::new(options.capacity, regions))
    }

    fn with_images(options: &MachineOptions, images: Images) -> Self {
        let computer = Computer::new(&options.description)
            .with_pages(options.nvm_pages, options.dram_pages)
            .with_images(images)
            .with_mechanism(options.mechanism, &options.site());
        let computer = match options.domain {
            Domain::Eadr => computer.keeping_caches(),
            Domain::Adr | Domain::Process => computer,
            Domain::Logged => {
                panic!("the simulated machine has no log: choose adr, eadr or process")
            }
        };
        let due = computer.wakes_at().saturating_add(1);
        Self {
            computer,
            threads: vec![Thread::outside()],
            current: 0,
            core: 0,
            turns: 0,
            slice_end: Ticks::MAX,
            due,
            events: 0,
            fails_at: u64::MAX,
            next_special: u64::MAX,
            dead: false,
            untimed_depth: 0,
            idle_pauses: 0,
            ticket: 0,
            random: fastrand::Rng::with_seed(options.seed),
            length: 0,
            backed: vec![false; (options.capacity / FRAME_BYTES) as usize],
            backed_frames: 0,
            next_volatile: DRAM_START,
        }
    }

    /// Stops everything: stores that no cache has seen are lost, unless only the process dies.
    #[cold]
    pub(crate) fn die(&mut self) {
        if !self.dead {
            self.dead = true;
            self.due = 0;
            self.find_next_special();
            self.computer.lose_stores(self.now());
        }
    }

    /// The power was gone: memory has its persistent content, everything else starts anew.
    pub(crate) fn restart(&mut self, options: &MachineOptions) {
        if !options.domain.needs_flush() {
            self.computer.sync();
        }
        self.computer
            .with_mechanism_now(|mechanism, port| mechanism.power_fails(port));
        let mut images = self.computer.take_images();
        images.lose_power();
        let mut began = Self::with_images(options, images);
        began.recover_memory(self.length);
        began.events = self.events;
        began.random = self.random.clone();
        began.length = self.length;
        began.backed = core::mem::take(&mut self.backed);
        began.backed_frames = self.backed_frames;
        *self = began;
    }

    /// Rebuilds physical memory from the content of the devices, by the places that the mechanism remembers.
    fn recover_memory(&mut self, length: u64) {
        self.computer
            .with_mechanism_now(|mechanism, port| mechanism.recovers(port));
        for line in (0..length).step_by(LINE_BYTES as usize).map(PhysAddr) {
            let home = self.computer.home(line);
            self.computer.images_mut().recover(line, home);
        }
    }

    #[inline(always)]
    pub(crate) fn core(&self) -> usize {
        self.core
    }

    /// Makes this thread the current one, until `slice_end`.
    pub(crate) fn switch(&mut self, thread: usize, slice_end: Ticks) {
        self.turns += 1;
        self.threads[thread].turn = self.turns;
        self.core = self.threads[thread].core;
        self.current = thread;
        self.set_slice_end(slice_end);
    }

    #[inline(always)]
    pub(crate) fn now(&self) -> Ticks {
        self.computer.now(self.core())
    }

    /// Whether the current thread has to let others run, for a while or for good.
    #[inline(always)]
    pub(crate) fn is_over(&self) -> bool {
        self.now() >= self.due
    }

    /// Sets the time at which the current thread lets others run.
    pub(crate) fn set_slice_end(&mut self, end: Ticks) {
        self.slice_end = end;
        self.due = match self.dead {
            true => 0,
            false => end.min(self.computer.wakes_at()).saturating_add(1),
        };
    }

    /// Lets the mechanism do the work that is due. Returns whether the thread's time is up as well.
    pub(crate) fn wake(&mut self) -> bool {
        let now = self.now();
        if now > self.computer.wakes_at() && !self.dead {
            self.computer.wake(now);
            self.set_slice_end(self.slice_end);
        }
        self.now() > self.slice_end || self.dead
    }

    /// Whether the current thread's operations take time.
    #[inline(always)]
    pub(crate) fn takes_time(&self) -> bool {
        self.untimed_depth == 0 && !self.dead
    }

    /// Counts a memory operation. Returns false if the power failed before it, or if it takes no time.
    #[inline(always)]
    pub(crate) fn happens(&mut self) -> bool {
        let event = self.events + 1;
        if event >= self.next_special {
            return self.special_happens();
        }
        self.events = event;
        true
    }

    /// Counts a special memory operation.
    #[cold]
    #[inline(never)]
    fn special_happens(&mut self) -> bool {
        if self.untimed_depth > 0 {
            return false;
        }
        self.events += 1;
        if self.events >= self.fails_at {
            self.die();
        }
        !self.dead
    }

    fn find_next_special(&mut self) {
        let is_common = !self.dead && self.untimed_depth == 0;
        self.next_special = if is_common { self.fails_at } else { 0 };
    }

    /// Sets the memory operation before which the power fails.
    pub(crate) fn set_failure(&mut self, event: u64) {
        self.fails_at = event;
        self.find_next_special();
    }

    /// Begins an untimed access, which may lie inside another.
    pub(crate) fn begin_untimed(&mut self) {
        self.untimed_depth += 1;
        self.find_next_special();
    }

    /// Ends the innermost untimed access.
    pub(crate) fn end_untimed(&mut self) {
        self.untimed_depth -= 1;
        self.find_next_special();
    }

    /// Begins an operation that changes memory.
    #[inline(always)]
    fn changes(&mut self) -> bool {
        assert_eq!(
            self.untimed_depth, 0,
            "a look that takes no time stores nothing"
        );
        self.happens()
    }

    // ---- persistent memory ----

    #[inline(always)]
    pub(crate) fn load(&mut self, at: VirtAddr) -> u64 {
        if self.happens() {
            self.computer
                .load(self.core(), at.identity(), Overlap::Chain);
        } else if self.dead {
            return 0;
        }
        self.word(at)
    }

    /// The word at `at`, without time.
    #[inline(always)]
    pub(crate) fn word(&self, at: VirtAddr) -> u64 {
        match at.bytes() < self.length {
            true => self.computer.images().load(at.bytes() / WORD_BYTES),
            false => 0,
        }
    }

    #[inline(always)]
    pub(crate) fn store(&mut self, at: VirtAddr, value: u64) {
        if !self.changes() {
            return;
        }
        self.check(at);
        self.idle_pauses = 0;
        self.computer.store(self.core(), at.identity());
        self.computer
            .set_word(self.core(), at.bytes() / WORD_BYTES, value);
    }

    pub(crate) fn compare_exchange(
        &mut self,
        at: VirtAddr,
        current: u64,
        new: u64,
    ) -> Result<u64, u64> {
        let happens = self.changes();
        if happens {
            self.check(at);
            self.computer.locked(self.core(), at.identity());
        }
        let old = self.word(at);
        if old != current {
            return Err(old);
        }
        // Without power nothing is stored, but an unwinding thread must not retry forever.
        if !happens {
            return Ok(old);
        }
        self.idle_pauses = 0;
        self.computer
            .images_mut()
            .store(at.bytes() / WORD_BYTES, new);
        Ok(old)
    }

    /// Loads a range. The first line's load depends on an earlier one; the loads of the other lines overlap.
    pub(crate) fn load_range(&mut self, at: VirtAddr, into: &mut [u8]) {
        let core = self.core();
        let lines = lines_of(at, into.len() as u64);
        let happens = self.happens();
        for (index, piece) in lines.enumerate().take_while(|_| happens) {
            let overlap = if index == 0 {
                Overlap::Chain
            } else {
                Overlap::Independent
            };
            self.computer.load(core, piece.at.identity(), overlap);
            self.computer.work(core, (piece.len - 1) / RANGE_BYTES);
        }
        let mut done = 0;
        while done < into.len() {
            let byte = at.bytes() + done as u64;
            let word = self.word(VirtAddr(byte)).to_le_bytes();
            let from = &word[(byte % WORD_BYTES) as usize..];
            let step = from.len().min(into.len() - done);
            into[done..done + step].copy_from_slice(&from[..step]);
            done += step;
        }
    }

    /// Stores a range. Its last word is stored whole.
    pub(crate) fn store_range(&mut self, at: VirtAddr, from: &[u8]) {
        if !self.changes() {
            return;
        }
        self.idle_pauses = 0;
        let core = self.core();
        for piece in lines_of(at, from.len() as u64) {
            self.check(piece.at);
            self.computer.store(core, piece.at.identity());
            let (begin, len) = (piece.at - at, piece.len);
            self.set_words(
                core,
                piece.at,
                &from[begin as usize..(begin + len) as usize],
            );
            self.computer.work(core, (len - 1) / RANGE_BYTES);
        }
    }

    /// Stores some bytes of a word.
    pub(crate) fn store_part(&mut self, at: VirtAddr, from: &[u8]) {
        if !self.changes() {
            return;
        }
        self.check(at);
        self.idle_pauses = 0;
        let core = self.core();
        self.computer.store(core, at.identity());
        let (word, within) = (at.bytes() / WORD_BYTES, (at.bytes() % WORD_BYTES) as usize);
        let mut whole = self.computer.images().load(word).to_le_bytes();
        whole[within..within + from.len()].copy_from_slice(from);
        self.computer
            .set_word(core, word, u64::from_le_bytes(whole));
    }

    /// Sets the words at `at` to `from`, as part of the core's latest store. The last word may be incomplete in `from`.
    fn set_words(&mut self, core: usize, at: VirtAddr, from: &[u8]) {
        let first = at.bytes() / WORD_BYTES;
        let (words, rest) = from.as_chunks::<{ WORD_BYTES as usize }>();
        for (word, value) in (first..).zip(words) {
            self.computer
                .set_word(core, word, u64::from_le_bytes(*value));
        }
        if !rest.is_empty() {
            let word = first + words.len() as u64;
            let mut last = self.computer.images().load(word).to_le_bytes();
            last[..rest.len()].copy_from_slice(rest);
            self.computer.set_word(core, word, u64::from_le_bytes(last));
        }
    }

    /// Copies as `relocate` does; the bytes stored to a line at once are one memory operation.
    pub(crate) fn relocate(&mut self, from: VirtAddr, to: VirtAddr, len: u64, unit: Unit) {
        self.idle_pauses = 0;
        for one in instructions(from, to, len) {
            for (place, store) in one.stores(unit).enumerate() {
                if !self.changes() {
                    return;
                }
                self.relocate_piece(store, place == 0);
            }
        }
    }

    fn relocate_piece(&mut self, store: Store, is_first: bool) {
        self.check(store.to);
        let core = self.core();
        for (place, piece) in lines_of(store.from, store.len).enumerate() {
            // The unit knows all its addresses once it has the first line.
            let overlap = match place == 0 && is_first {
                true => Overlap::Chain,
                false => Overlap::Independent,
            };
            self.computer.load(core, piece.at.identity(), overlap);
        }
        self.computer.store_relocated(core, store.to.identity());
        for at in (0..store.len).step_by(WORD_BYTES as usize) {
            let value = self.word(store.from + at);
            let word = (store.to + at).bytes() / WORD_BYTES;
            self.computer.set_relocated_word(core, word, value);
        }
    }

    /// An instruction of the mechanism, on the current thread's core. Does nothing without power.
    pub(crate) fn ask(
        &mut self,
        ask: &mut dyn FnMut(usize, &mut dyn Mechanism, &mut MemoryPort<'_>) -> Cost,
    ) {
        if self.happens() {
            let core = self.core();
            self.computer.ask(core, ask);
        }
    }

    pub(crate) fn write_back(&mut self, at: VirtAddr, len: u64) {
        for piece in lines_of(at, len) {
            if !self.happens() {
                return;
            }
            self.computer.write_back(self.core(), piece.at.identity());
        }
    }

    pub(crate) fn fence(&mut self) {
        if self.happens() {
            self.computer.fence(self.core());
        }
    }

    #[inline(always)]
    fn check(&self, at: VirtAddr) {
        let frame = (at.bytes() / FRAME_BYTES) as usize;
        assert!(
            at.bytes() < self.length && self.backed[frame],
            "a store to {at}, where no memory was reserved"
        );
    }

    // ---- space ----

    pub(crate) fn missing(&self, frames: core::ops::Range<u64>) -> u64 {
        let frames = &self.backed[frames.start as usize..frames.end as usize];
        frames.iter().filter(|&&backed| !backed).count() as u64
    }

    pub(crate) fn set_backing(&mut self, frames: core::ops::Range<u64>, backed: bool) {
        for frame in frames {
            if core::mem::replace(&mut self.backed[frame as usize], backed) != backed {
                self.backed_frames = match backed {
                    true => self.backed_frames + 1,
                    false => self.backed_frames - 1,
                };
                let frame = frame * FRAME_BYTES..(frame + 1) * FRAME_BYTES;
                for line in frame.step_by(LINE_BYTES as usize).map(PhysAddr) {
                    let home = self.computer.home(line);
                    self.computer.images_mut().clear(line, home);
                }
            }
        }
    }

    /// Room for volatile words, from the start of a line.
    pub(crate) fn volatile(&mut self, words: u64) -> PhysAddr {
        let at = self.next_volatile;
        self.next_volatile = at + (words * WORD_BYTES).next_multiple_of(LINE_BYTES);
        at
    }
}
