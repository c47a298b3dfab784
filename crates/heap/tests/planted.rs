//! Do the crash tests see the faults that they exist for? Each fault here takes one write-back or
//! fence away, and must turn a test red.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use firn_crash::{Crash, CrashOptions, ExploreOptions, Explorer, SwarmOptions};
use firn_heap::{Bytes, Error, Pool, PoolKind, PoolOptions, Refs, View};
use firn_media::{Domain, Medium, MediumError, Ticket};
use firn_units::VirtAddr;

const CHUNK: u64 = firn_units::CHUNK_BYTES;
const STATE: Range<u64> = 8192..8256;
const LANES: Range<u64> = CHUNK..2 * CHUNK;
const TABLES: Range<u64> = 2 * CHUNK..7 * CHUNK;
const DATA: Range<u64> = 7 * CHUNK..u64::MAX;

/// What the medium leaves out.
#[derive(Clone, Debug)]
enum Fault {
    /// Write-backs of these addresses.
    WriteBack(Range<u64>),
    /// Fences that follow a write-back of these addresses.
    FenceAfter(Range<u64>),
    /// Every fence.
    Fence,
    /// Nothing: the control.
    Nothing,
}

/// Memory that loses power, and forgets what its fault says.
#[derive(Clone)]
struct Lossy {
    crash: Crash,
    fault: Fault,
    last: Arc<AtomicU64>,
    /// Whether the fault is switched on.
    armed: Arc<AtomicBool>,
}

impl Lossy {
    fn new(crash: &Crash, fault: &Fault) -> Self {
        Self {
            crash: crash.clone(),
            fault: fault.clone(),
            last: Arc::default(),
            armed: Arc::new(AtomicBool::new(true)),
        }
    }

    fn armed(&self) -> bool {
        self.armed.load(Ordering::Relaxed)
    }
}

impl Medium for Lossy {
    type Place<'m> = <Crash as Medium>::Place<'m>;
    type Words = <Crash as Medium>::Words;
    type Thread = <Crash as Medium>::Thread;

    fn write_back(&self, at: VirtAddr, len: u64) {
        self.last.store(at.0, Ordering::Relaxed);
        match &self.fault {
            Fault::WriteBack(range) if self.armed() && range.contains(&at.0) => {}
            _ => self.crash.write_back(at, len),
        }
    }
    fn fence(&self) {
        let last = self.last.load(Ordering::Relaxed);
        match &self.fault {
            Fault::Fence if self.armed() => {}
            Fault::FenceAfter(range) if self.armed() && range.contains(&last) => {}
            _ => self.crash.fence(),
        }
    }

    fn domain(&self) -> Domain {
        self.crash.domain()
    }
    fn name(&self) -> String {
        self.crash.name()
    }
    fn len(&self) -> u64 {
        self.crash.len()
    }
    fn capacity(&self) -> u64 {
        self.crash.capacity()
    }
    fn is_writable(&self) -> bool {
        self.crash.is_writable()
    }
    fn boot_id(&self) -> [u8; 16] {
        self.crash.boot_id()
    }
    fn place(&self, at: VirtAddr) -> Self::Place<'_> {
        self.crash.place(at)
    }
    fn address(&self, place: Self::Place<'_>) -> VirtAddr {
        self.crash.address(place)
    }
    fn load_u64(&self, at: VirtAddr) -> u64 {
        self.crash.load_u64(at)
    }
    fn store_u64(&self, at: VirtAddr, value: u64) {
        self.crash.store_u64(at, value);
    }
    fn compare_exchange_u64(&self, at: VirtAddr, current: u64, new: u64) -> Result<u64, u64> {
        self.crash.compare_exchange_u64(at, current, new)
    }
    fn load_bytes(&self, at: VirtAddr, into: &mut [u8]) {
        self.crash.load_bytes(at, into);
    }
    fn store_bytes(&self, at: VirtAddr, from: &[u8]) {
        self.crash.store_bytes(at, from);
    }
    fn commit(&self) -> Ticket {
        self.crash.commit()
    }
    fn durable(&self) -> Ticket {
        self.crash.durable()
    }
    fn reserve(&self, at: VirtAddr, len: u64) -> Result<(), MediumError> {
        self.crash.reserve(at, len)
    }
    fn discard(&self, at: VirtAddr, len: u64) -> Result<(), MediumError> {
        self.crash.discard(at, len)
    }
    fn truncate(&self, len: u64) -> Result<(), MediumError> {
        self.crash.truncate(len)
    }
    fn sync(&self) -> Result<(), MediumError> {
        self.crash.sync()
    }
    fn backed_bytes(&self) -> Result<u64, MediumError> {
        self.crash.backed_bytes()
    }
    fn words(&self, count: usize) -> Self::Words {
        self.crash.words(count)
    }
    fn acquire_point(&self) {
        self.crash.acquire_point();
    }
    fn release_point(&self) {
        self.crash.release_point();
    }
    fn pause(&self, attempt: u32) {
        self.crash.pause(attempt);
    }
    fn now_ns(&self) -> u64 {
        self.crash.now_ns()
    }
    fn random_u64(&self) -> u64 {
        self.crash.random_u64()
    }
    fn spawn(
        &self,
        name: &str,
        job: Box<dyn FnOnce() + Send>,
    ) -> Result<Self::Thread, MediumError> {
        self.crash.spawn(name, job)
    }
    fn join(&self, thread: Self::Thread) -> bool {
        self.crash.join(thread)
    }
}

const PLACES: usize = 12;

fn options(kind: PoolKind) -> PoolOptions {
    PoolOptions {
        kind,
        lanes: 2,
        publish_every: u32::MAX,
        ..PoolOptions::new("planted")
    }
}

/// The transaction of round `n`: a new object in one place, another changed in place, and now and
/// then a large one. Every place that was written holds its round's number.
fn round(session: &mut firn_heap::Session<Lossy>, n: u64) {
    session
        .transaction(|tx| {
            let spine = tx.root::<Refs<Bytes>>("spine")?;
            let place = n as usize % PLACES;
            if let Some(old) = spine.get(place) {
                // SAFETY: the only reference is replaced.
                unsafe { tx.free(old)? };
            }
            let len = [8, 100, 3000][n as usize % 3];
            let mut bytes = vec![0; len];
            bytes[..8].copy_from_slice(&n.to_le_bytes());
            bytes[len - 8..].copy_from_slice(&n.to_le_bytes());
            spine.set(place, Some(tx.alloc_bytes(&bytes)?))?;
            match spine.get(PLACES) {
                Some(last) => last.overwrite(0, &n.to_le_bytes()),
                None => spine.set(PLACES, Some(tx.alloc_bytes(&n.to_le_bytes())?)),
            }
        })
        .unwrap();
}

fn verify(pool: &Pool<Lossy>, done: u64) -> Result<(), String> {
    let mut session = pool.session().map_err(|e| e.to_string())?;
    let result = session.read(|view| -> Result<u64, String> {
        let text = |e: Error| e.to_string();
        let spine = view.root::<Refs<Bytes>>("spine").map_err(text)?;
        let number = |b: &[u8]| b.try_into().map(u64::from_le_bytes).unwrap_or(u64::MAX);
        let last = match spine.get(PLACES) {
            Some(bytes) => number(&bytes.to_vec().map_err(text)?),
            None => 0,
        };
        for back in 0..(PLACES as u64).min(last) {
            let n = last - back;
            let bytes = spine.get(n as usize % PLACES).ok_or("a place is empty")?;
            let bytes = bytes.to_vec().map_err(text)?;
            let len = bytes.len();
            let sound = len >= 8 && number(&bytes[..8]) == n && number(&bytes[len - 8..]) == n;
            if !sound {
                return Err(format!("round {n} left something else"));
            }
        }
        Ok(last)
    });
    let last = result?;
    if !(done..=done + 1).contains(&last) {
        return Err(format!("{done} rounds were acknowledged, {last} are there"));
    }
    let findings = pool.check().map_err(|e| e.to_string())?;
    drop(session);
    match findings.first() {
        Some(finding) => Err(finding.to_string()),
        None => Ok(()),
    }
}

/// Where a fault is switched on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum During {
    Transactions,
    Recovery,
}

/// Whether the swarm finds anything.
fn is_found(kind: PoolKind, fault: &Fault, during: During) -> bool {
    let medium = |crash: &Crash, phase: During| {
        let lossy = Lossy::new(crash, fault);
        lossy.armed.store(phase == during, Ordering::Relaxed);
        lossy
    };
    let explorer = Explorer::new(
        ExploreOptions {
            recovery_depth: 2,
            medium: CrashOptions::default(),
            ..ExploreOptions::default()
        },
        16 << 20,
        |crash| {
            let pool = Pool::create(Lossy::new(crash, &Fault::Nothing), &options(kind)).unwrap();
            let mut session = pool.session().unwrap();
            session
                .transaction(|tx| tx.set_root("spine", tx.alloc_refs::<Bytes>(PLACES + 1)?))
                .unwrap();
            drop(session);
            pool.close().unwrap();
        },
        |crash| {
            let pool = Pool::open(medium(crash, During::Transactions), &options(kind)).unwrap();
            let mut session = pool.session().unwrap();
            for n in 1..=30 {
                round(&mut session, n);
                crash.note(n);
            }
            pool.abandon();
        },
        |crash, state| {
            let lossy = medium(&crash, During::Recovery);
            let pool = Pool::open(lossy, &options(kind)).map_err(|e| e.to_string())?;
            crash.end_of_recovery();
            let result = verify(&pool, state.note(0));
            pool.abandon();
            result
        },
    );
    let swarm = SwarmOptions {
        seeds: 0..40,
        crashes: 40,
        images: 6,
        crashes_in_recovery: 3,
    };
    !explorer.swarm(&swarm).findings.is_empty()
}

#[test]
fn without_a_fault_nothing_is_found() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        assert!(!is_found(kind, &Fault::Nothing, During::Transactions));
    }
}

#[test]
fn every_fault_in_transactions_is_found() {
    let faults = [
        Fault::Fence,
        Fault::FenceAfter(LANES),
        Fault::FenceAfter(DATA),
        Fault::WriteBack(LANES),
        Fault::WriteBack(TABLES),
        Fault::WriteBack(DATA),
    ];
    for fault in faults {
        assert!(
            is_found(PoolKind::Traced, &fault, During::Transactions),
            "{fault:?}"
        );
    }
    // In an explicit pool the tables hold the allocation bits as well.
    let bits = Fault::WriteBack(TABLES);
    assert!(is_found(PoolKind::Explicit, &bits, During::Transactions));
}

#[test]
fn every_fault_in_recovery_is_found() {
    let faults = [
        Fault::Fence,
        Fault::WriteBack(DATA),
        Fault::FenceAfter(DATA),
    ];
    for fault in faults {
        assert!(
            is_found(PoolKind::Traced, &fault, During::Recovery),
            "{fault:?}"
        );
    }
    // W_pool alone may stay behind: the entries are valid still, and are replayed again.
    assert!(!is_found(
        PoolKind::Traced,
        &Fault::WriteBack(STATE),
        During::Recovery
    ));
}
