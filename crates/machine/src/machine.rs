//! The computer as a medium.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use firn_fibers::Confined;
use firn_hardware::relocate::Unit;
use firn_media::{
    Domain, Hardware, MediumError, Memory, Offers, Place, Probe, Runtime, Scope, Space, Table,
    Ticket,
};
use firn_units::{FRAME_BYTES, PhysAddr, VirtAddr};

use crate::computer::{DRAM_START, Overlap};
use crate::description::Description;
use crate::mechanism::{Cores, Cost, Mechanism, MemoryPort};
use crate::options::MachineOptions;
use crate::state::State;
use crate::statistics::Statistics;
use crate::threads::MachineThread;
use crate::words::MachineWords;

/// The heap's tables lie in volatile memory that nothing else uses.
const TABLES: PhysAddr = PhysAddr(DRAM_START.0 + (1 << 35));
const TABLE_BYTES: u64 = 1 << 32;

/// Tells apart machines that exist at one time.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A simulated computer that programs run on. It stays on the OS thread that made it.
///
/// Crash: when the power fails, simulated threads are unwound and memory no longer changes. Values that they own end
/// with them. Code outside all simulated threads that then waits, such as a pool that closes, panics.
#[derive(Clone)]
pub struct Machine {
    pub(crate) shared: Arc<Shared>,
    offers: Arc<Offers>,
}

pub(crate) struct Shared {
    pub(crate) id: u64,
    pub(crate) options: MachineOptions,
    pub(crate) state: Confined<State>,
    boots: AtomicU64,
}

impl Shared {
    /// Executes the current thread's next step, then lets others run if its time is up.
    #[inline(always)]
    pub(crate) fn act<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let (result, over) = self.state.with(|state| {
            let result = act(state);
            (result, state.is_over())
        });
        if over {
            self.pass();
        }
        result
    }

    pub(crate) fn boot(&self) {
        self.boots.fetch_add(1, Relaxed);
    }
}

impl Cores for Shared {
    fn relocate(&self, from: VirtAddr, to: VirtAddr, len: u64, unit: Unit) {
        self.act(|state| state.relocate(from, to, len, unit));
    }

    fn ask(&self, ask: &mut dyn FnMut(usize, &mut dyn Mechanism, &mut MemoryPort<'_>) -> Cost) {
        self.act(|state| state.ask(ask));
    }
}

impl Machine {
    /// A machine whose memory is empty.
    pub fn new(options: MachineOptions) -> Self {
        assert!(
            options.capacity.is_power_of_two()
                && (FRAME_BYTES..=DRAM_START.bytes()).contains(&options.capacity),
            "the capacity is {}: it is a power of two, from a frame to 128 GiB",
            options.capacity
        );
        let state = Confined::new(State::new(&options));
        let id = NEXT_ID.fetch_add(1, Relaxed);
        let shared = Arc::new(Shared {
            id,
            options,
            state,
            boots: AtomicU64::new(1),
        });
        let cores: Arc<dyn Cores> = Arc::clone(&shared) as _;
        let offers = Arc::new((shared.options.mechanism.offers)(cores));
        Self { shared, offers }
    }

    /// The machine's description.
    pub fn description(&self) -> &Description {
        &self.shared.options.description
    }

    /// The counts since the start.
    pub fn statistics(&self) -> Statistics {
        self.shared.state.with(|state| state.computer.statistics())
    }

    /// The core of the calling thread.
    pub fn current_core(&self) -> usize {
        self.shared.state.with(|state| state.core())
    }

    /// Memory operations since the machine was made.
    pub fn events(&self) -> u64 {
        self.shared.state.with(|state| state.events)
    }

    /// Looks at memory without time: loads by `look` do not count, and no cache learns of them. `look` must not store.
    pub fn untimed<R>(&self, look: impl FnOnce() -> R) -> R {
        self.shared.state.with(State::begin_untimed);
        let seen = look();
        self.shared.state.with(State::end_untimed);
        seen
    }

    /// Restarts a machine whose power has failed, or lets it fail now: caches are cold, clocks and counts start anew,
    /// and memory has its persistent content. Threads are unwound.
    pub fn restart(&self) {
        self.kill_threads();
        self.shared.boot();
        self.shared
            .state
            .with(|state| state.restart(&self.shared.options));
    }
}

/// A resolved location.
#[derive(Clone, Copy)]
pub struct MachinePlace<'m> {
    shared: &'m Shared,
    at: VirtAddr,
}

impl Place for MachinePlace<'_> {
    #[inline]
    fn load_u64(self, byte: u32) -> u64 {
        let window = self.shared.options.capacity - 1;
        let at = VirtAddr((self.at.bytes() + u64::from(byte)) & window);
        self.shared.act(|state| state.load(at))
    }
}

impl Memory for Machine {
    type Place<'m> = MachinePlace<'m>;

    fn domain(&self) -> Domain {
        self.shared.options.domain
    }

    #[inline]
    fn place(&self, at: VirtAddr) -> MachinePlace<'_> {
        let window = self.shared.options.capacity - 1;
        MachinePlace {
            shared: &self.shared,
            at: VirtAddr(at.bytes() & window & !15),
        }
    }

    fn address(&self, place: MachinePlace<'_>) -> VirtAddr {
        place.at
    }

    #[inline]
    fn load_u64(&self, at: VirtAddr) -> u64 {
        self.shared.act(|state| state.load(at))
    }

    #[inline]
    fn store_u64(&self, at: VirtAddr, value: u64) {
        self.shared.act(|state| state.store(at, value));
    }

    fn compare_exchange_u64(&self, at: VirtAddr, current: u64, new: u64) -> Result<u64, u64> {
        self.shared
            .act(|state| state.compare_exchange(at, current, new))
    }

    fn load_bytes(&self, at: VirtAddr, into: &mut [u8]) {
        self.shared.act(|state| state.load_range(at, into));
    }

    fn store_bytes(&self, at: VirtAddr, from: &[u8]) {
        self.shared.act(|state| state.store_range(at, from));
    }

    fn store_part(&self, at: VirtAddr, from: &[u8]) {
        self.shared.act(|state| state.store_part(at, from));
    }

    fn write_back(&self, at: VirtAddr, len: u64) {
        if self.domain().needs_flush() {
            self.shared.act(|state| state.write_back(at, len));
        }
    }

    fn fence(&self) {
        self.shared.act(State::fence);
    }

    fn commit(&self) -> Ticket {
        self.shared.act(|state| {
            state.ticket += u64::from(!state.dead);
            Ticket(state.ticket)
        })
    }

    fn durable(&self) -> Ticket {
        let ticket = |state: &mut State| if state.dead { u64::MAX } else { state.ticket };
        Ticket(self.shared.state.with(ticket))
    }
}

impl Space for Machine {
    fn name(&self) -> String {
        let options = &self.shared.options;
        format!(
            "machine {} (seed {})",
            options.description.name, options.seed
        )
    }

    fn len(&self) -> u64 {
        self.shared.state.with(|state| state.length)
    }

    fn capacity(&self) -> u64 {
        self.shared.options.capacity
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn boot_id(&self) -> [u8; 16] {
        let mut id = *b"boot............";
        id[8..].copy_from_slice(&self.shared.boots.load(Relaxed).to_le_bytes());
        id
    }

    fn reserve(&self, at: VirtAddr, len: u64) -> Result<(), MediumError> {
        let capacity = self.capacity();
        let beyond = |asked| MediumError::BeyondCapacity {
            medium: self.name(),
            asked,
            capacity,
        };
        let end = at.bytes().checked_add(len);
        let end = end.ok_or_else(|| beyond(u64::MAX))?;
        if end > capacity {
            return Err(beyond(end));
        }
        let frames = at.bytes() / FRAME_BYTES..end.div_ceil(FRAME_BYTES);
        let limit = self.shared.options.space_limit;
        let missing = self.shared.act(|state| {
            let missing = state.missing(frames.clone());
            if state.dead || missing > 0 && (state.backed_frames + missing) * FRAME_BYTES > limit {
                return missing;
            }
            state.set_backing(frames, true);
            state.length = state.length.max(end);
            0
        });
        match missing {
            0 => Ok(()),
            missing => Err(MediumError::NoSpace {
                medium: self.name(),
                bytes: missing * FRAME_BYTES,
            }),
        }
    }

    fn discard(&self, at: VirtAddr, len: u64) -> Result<(), MediumError> {
        self.shared.act(|state| {
            let end = at.bytes().saturating_add(len).min(state.length);
            if !state.dead {
                state.set_backing(at.bytes() / FRAME_BYTES..end / FRAME_BYTES, false);
            }
        });
        Ok(())
    }

    fn truncate(&self, len: u64) -> Result<(), MediumError> {
        self.shared.act(|state| {
            if !state.dead && len < state.length {
                let frames = len / FRAME_BYTES..state.length.div_ceil(FRAME_BYTES);
                state.set_backing(frames, false);
                state.length = len;
            }
        });
        Ok(())
    }

    /// Makes the content of the caches persistent. Takes no time: nobody measures a disk here.
    fn sync(&self) -> Result<(), MediumError> {
        self.shared.act(|state| {
            if !state.dead {
                state.computer.sync();
            }
        });
        Ok(())
    }

    fn backed_bytes(&self) -> Result<u64, MediumError> {
        Ok(self.shared.state.with(|state| state.backed_frames) * FRAME_BYTES)
    }
}

impl Runtime for Machine {
    type Words = MachineWords;
    type Thread = MachineThread;

    fn words(&self, count: usize) -> MachineWords {
        MachineWords::new(Arc::clone(&self.shared), count)
    }

    fn pause(&self, attempt: u32) {
        self.pause_thread(attempt);
    }

    fn now_ns(&self) -> u64 {
        let clock_mhz = u64::from(self.shared.options.description.core.clock_mhz);
        self.shared.state.with(|state| state.now()) / clock_mhz
    }

    fn random_u64(&self) -> u64 {
        self.shared.state.with(|state| state.random.u64(..))
    }

    fn spawn(
        &self,
        _name: &str,
        job: Box<dyn FnOnce() + Send>,
    ) -> Result<MachineThread, MediumError> {
        Ok(self.spawn_thread(job))
    }

    fn join(&self, thread: MachineThread) -> bool {
        self.join_thread(thread)
    }
}

impl Probe for Machine {
    #[inline]
    fn is_simulated(&self) -> bool {
        true
    }

    #[inline]
    fn work(&self, instructions: u64) {
        self.shared.act(|state| {
            if state.takes_time() {
                let core = state.core();
                state.computer.work(core, instructions);
            }
        });
    }

    #[inline]
    fn table_load(&self, table: Table, offset: u64) {
        let table = match table {
            Table::Frames => 0,
            Table::Forwarding => 1,
        };
        let at = TABLES + (table * TABLE_BYTES + offset % TABLE_BYTES);
        self.shared.act(|state| {
            if state.takes_time() {
                let core = state.core();
                state.computer.load(core, at, Overlap::Chain);
            }
        });
    }

    fn scope_begin(&self, scope: Scope) {
        self.shared.state.with(|state| {
            let core = state.core();
            let processor = state.computer.processor(core);
            processor.scopes.begin(scope as u8, processor.now);
        });
    }

    fn scope_end(&self, _scope: Scope) {
        self.shared.state.with(|state| {
            let core = state.core();
            let processor = state.computer.processor(core);
            processor.scopes.end(processor.now);
        });
    }
}

impl Hardware for Machine {
    const MAY_OFFER: bool = true;

    #[inline]
    fn offers(&self) -> &Offers {
        &self.offers
    }
}
