//! The contract itself.

use core::ops::Range;

use firn_units::{FRAME_BYTES, LINE_BYTES, VirtAddr, WORD_BYTES, WORDS_PER_LINE};

use crate::{
    Capabilities, Domain, Lookup, MediumError, Move, Place, Scope, ScopeGuard, Step, Table,
    Unsupported, Words,
};

/// A commit's position in the order in which commits become durable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Ticket(pub u64);

/// What a heap runs on.
///
/// Addresses are [`VirtAddr`]s: bytes from the start of the pool. The checked operations below take
/// any address under [`Medium::len`]; loads beyond it read zeros, stores beyond it panic, because
/// the heap validates what it read from media before it stores through it.
///
/// Concurrency: every operation may be called from any thread. A thread may be switched away from
/// at any of them, so a caller that holds a lock must expect others to find it held, and waits only
/// through [`Medium::pause`] and [`Medium::wait_while`].
pub trait Medium: Send + Sync + Sized + 'static {
    /// A resolved location, borrowed from the medium.
    type Place<'m>: Place
    where
        Self: 'm;
    /// Volatile shared words of this medium.
    type Words: Words;
    /// A thread that [`Medium::spawn`] started.
    type Thread: Send;

    // ---- facts ----

    /// Whether a medium of this type can have [`Capabilities::check_lookup`]. Where none can, what would ask it
    /// compiles to nothing.
    const MAY_CHECK_LOOKUP: bool = false;

    /// What a store needs to survive, see the crate's table.
    fn domain(&self) -> Domain;

    /// Optional help that this medium offers.
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    /// What to call this medium in an error: the path of a file, where there is one.
    fn name(&self) -> String;

    /// Bytes that may be accessed now. Grows by [`Medium::reserve`], shrinks by [`Medium::truncate`].
    fn len(&self) -> u64;

    /// Whether nothing may be accessed yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes up to which the medium may grow without being opened anew.
    fn capacity(&self) -> u64;

    /// Whether stores are allowed.
    fn is_writable(&self) -> bool;

    /// Identifies the boot of the machine: differs after a power failure, stays the same after the
    /// death of a process.
    fn boot_id(&self) -> [u8; 16];

    /// Whether this is still the process that opened the medium, and not a forked child of it. A child shares what lies
    /// below with its parent, and has none of the threads that may have held locks: it loads, stores and waits for
    /// nothing, and may drop the medium. One load, where processes can fork.
    #[inline(always)]
    fn is_ours(&self) -> bool {
        true
    }

    /// Says which pool the medium holds, before anything is stored to it. From then on, while the medium lives, no other
    /// one of the process may say the same, where one file can be a copy of another.
    ///
    /// Errors: [`MediumError::CopyIsOpen`]; nothing was stored.
    fn claim(&self, identity: [u8; 16]) -> Result<(), MediumError> {
        let _ = identity;
        Ok(())
    }

    // ---- persistent memory ----

    /// Resolves an address, masked into the medium's window and down to a multiple of 16.
    fn place(&self, at: VirtAddr) -> Self::Place<'_>;

    /// Resolves as [`Medium::place`] does, for one who follows many references in a row: what it takes to
    /// resolve is held by value, and not loaded again for each of them.
    #[inline(always)]
    fn places<'m>(&'m self) -> impl Fn(VirtAddr) -> Self::Place<'m> + Copy {
        |at| self.place(at)
    }

    /// The address that `place` was resolved from, after masking.
    fn address(&self, place: Self::Place<'_>) -> VirtAddr;

    /// Loads the word at `at`, a multiple of 8. Ordered as an acquiring load. Zero beyond
    /// [`Medium::len`].
    fn load_u64(&self, at: VirtAddr) -> u64;

    /// Says that the line at `at` will be looked at soon. A hint: does nothing where it is of no use.
    #[inline(always)]
    fn prefetch(&self, at: VirtAddr) {
        let _ = at;
    }

    /// Says that stores all over these bytes, which are reserved, follow soon. A hint: does nothing
    /// where it is of no use.
    fn populate(&self, at: VirtAddr, len: u64) {
        let _ = (at, len);
    }

    /// Stores the word at `at`, a multiple of 8, in one piece. Ordered as a releasing store.
    /// Durable as the domain says.
    fn store_u64(&self, at: VirtAddr, value: u64);

    /// Stores `new` if the word at `at` holds `current`; a locked instruction, so it empties the
    /// store buffer and is a full barrier. It is no fence: it makes no write-back durable. Either
    /// way returns what the word held.
    fn compare_exchange_u64(&self, at: VirtAddr, current: u64, new: u64) -> Result<u64, u64>;

    /// Fills `into` from `at`. Not atomic; zeros beyond [`Medium::len`].
    fn load_bytes(&self, at: VirtAddr, into: &mut [u8]);

    /// Fills `into` as [`Medium::load_bytes`] does with bytes that a checksum covers, and returns whether
    /// `is_whole` holds for them. If it does not, `into` says nothing. A medium that tries every image of
    /// memory relies on `is_whole` holding for no content but the one that the checksum was made of.
    #[inline]
    fn load_checked(
        &self,
        at: VirtAddr,
        into: &mut [u8],
        is_whole: impl Fn(&[u8]) -> bool,
    ) -> bool {
        self.load_bytes(at, into);
        is_whole(into)
    }

    /// Appends `len` bytes from `at` to `into`, as [`Medium::load_bytes`] reads them.
    fn append_bytes(&self, at: VirtAddr, len: usize, into: &mut Vec<u8>) {
        let start = into.len();
        into.resize(start + len, 0);
        self.load_bytes(at, &mut into[start..]);
    }

    /// Stores `from` at `at`, a multiple of 8, word by word in ascending order. A length that is no
    /// multiple of 8 replaces only the first bytes of its last word, which is still stored whole.
    fn store_bytes(&self, at: VirtAddr, from: &[u8]);

    /// Stores `from`, 1, 2 or 4 bytes, at `at`, a multiple of as many, by one store that is no wider: what other
    /// threads store meanwhile to the bytes beside them in the word stays, which loading, changing and storing the
    /// word would undo. Use [`MediumExt::store_exact`].
    fn store_part(&self, at: VirtAddr, from: &[u8]);

    /// Copies the `len` bytes at `from` to `to`, word by word in ascending order; they do not overlap. All
    /// three are multiples of 8.
    fn copy(&self, from: VirtAddr, to: VirtAddr, len: u64) {
        let mut piece = [0; 256];
        let mut done = 0;
        while done < len {
            let here = (len - done).min(piece.len() as u64);
            let piece = &mut piece[..here as usize];
            self.load_bytes(from + done, piece);
            self.store_bytes(to + done, piece);
            done += here;
        }
    }

    /// Stores the words of the line at `line` that `mask` names, a bit each, in ascending order.
    #[inline(always)]
    fn store_line(&self, line: VirtAddr, mask: u8, words: &[u64; WORDS_PER_LINE]) {
        for word in (0..WORDS_PER_LINE).filter(|word| mask >> word & 1 != 0) {
            self.store_u64(line + word as u64 * WORD_BYTES, words[word]);
        }
    }

    /// Adds to the word at `at`, which no other thread stores to: a load and a store.
    #[inline(always)]
    fn add_unshared_u64(&self, at: VirtAddr, by: u64) {
        self.store_u64(at, self.load_u64(at).wrapping_add(by));
    }

    /// Issues a write-back (clwb) of every line of the range. The stores in these lines that are
    /// visible or in this thread's store buffer become durable at this thread's next
    /// [`Medium::fence`], no matter which thread stored them. A no-op where the domain needs none.
    fn write_back(&self, at: VirtAddr, len: u64);

    /// Orders (sfence): empties the store buffer, and makes every write-back durable that this
    /// thread issued before.
    fn fence(&self);

    // ---- durability ----

    /// Declares everything up to this thread's last fence a commit and names its ticket.
    ///
    /// `Adr` and `Eadr` media make it durable at once. A medium that gathers commits (a log on a
    /// disk) makes it durable later.
    fn commit(&self) -> Ticket;

    /// Every commit whose ticket is at most this one is durable. The oracle of a crash test asks
    /// here, never its own log.
    fn durable(&self) -> Ticket;

    /// Waits until `ticket` is durable. 'Durable at return' is a commit followed by this.
    fn wait_durable(&self, ticket: Ticket) {
        let mut attempt = 0;
        while self.durable() < ticket {
            self.pause(attempt);
            attempt += 1;
        }
    }

    // ---- space ----

    /// Makes the range usable: grows the medium if it must and allocates blocks on the device, so
    /// that a store into it cannot fail. New bytes read as zeros. The range's length and start are
    /// multiples of a frame. Space already allocated keeps its content.
    ///
    /// Errors: no space, beyond the capacity; the content is unchanged, the length too.
    fn reserve(&self, at: VirtAddr, len: u64) -> Result<(), MediumError>;

    /// Gives the blocks of a range back to the device; the range reads as zeros from then on and
    /// must be reserved again before it is stored to. The range's length and start are multiples of
    /// a frame. Durable after the next [`Medium::sync`], or earlier: the caller must not need the
    /// old content from the moment of the call.
    fn discard(&self, at: VirtAddr, len: u64) -> Result<(), MediumError>;

    /// What [`Medium::discard`] gives back at once: the blocks of whole aligned pieces of so many bytes, a power of two
    /// and a frame at least. The rest of a range reads as zeros afterwards and keeps its blocks.
    fn discard_bytes(&self) -> u64 {
        FRAME_BYTES
    }

    /// Shortens the medium to `len` bytes, a multiple of a frame.
    fn truncate(&self, len: u64) -> Result<(), MediumError>;

    /// Makes everything stored before the call durable against a power failure on any device
    /// (msync and fsync). Concurrent stores may or may not be included.
    fn sync(&self) -> Result<(), MediumError>;

    /// Makes a new medium, with all that it holds, found by its name, for good on return. Does nothing where it has
    /// its name, or none.
    ///
    /// Errors: the name is taken by now, the device failed; the medium is as it was.
    ///
    /// Crash: before this returns, the name leads to nothing or to what was stored before the call.
    fn publish(&self) -> Result<(), MediumError> {
        Ok(())
    }

    /// Bytes of the device that are allocated to this medium.
    fn backed_bytes(&self) -> Result<u64, MediumError>;

    /// Ranges of bytes that the device holds data for, ascending, with gaps between: what was never
    /// stored to, and what was discarded, is missing. `None` where the medium cannot say.
    fn data_ranges(&self) -> Result<Option<Vec<Range<u64>>>, MediumError> {
        Ok(None)
    }

    // ---- volatile shared memory ----

    /// Makes `count` volatile words, all zero.
    fn words(&self, count: usize) -> Self::Words;

    /// Called before a lock of the heap is taken: a locked instruction on media that simulate them.
    fn acquire_point(&self) {}

    /// Called before a lock of the heap is released: on media that simulate store buffers, earlier
    /// stores become visible first, as the release's own place in the buffer would make them.
    fn release_point(&self) {}

    // ---- waiting, threads, time, randomness ----

    /// Waits a little; `attempt` counts the calls of one wait, so that a medium can spin first and
    /// sleep later, the longer the longer the wait has lasted. For what is likely to end soon, and for what nobody
    /// announces.
    fn pause(&self, attempt: u32);

    /// Waits while word `index` holds `seen`, until `until_ns` at the latest ([`Medium::now_ns`]; `u64::MAX` for ever).
    /// Whoever changes the word calls [`Medium::wake`] afterwards. The look and the beginning of the wait are one step,
    /// so a change that is announced is never missed. Takes no processor time where time is real.
    ///
    /// May return early, so the caller looks again. Values must differ in their lower 32 bits: media may compare no
    /// more.
    fn wait_while(&self, words: &Self::Words, index: usize, seen: u64, until_ns: u64) {
        let mut attempt = 0;
        while words.load(index) == seen && self.now_ns() < until_ns {
            self.pause(attempt);
            attempt += 1;
        }
    }

    /// Ends the waits of all threads for word `index`, which the caller has changed.
    fn wake(&self, words: &Self::Words, index: usize) {
        let _ = (words, index);
    }

    /// Monotonic nanoseconds; simulated where threads are.
    fn now_ns(&self) -> u64;

    /// Nanoseconds that the calling thread has computed; as [`Medium::now_ns`] where nobody counts.
    fn cpu_ns(&self) -> u64 {
        self.now_ns()
    }

    /// A random word; from the seed where one seed is one execution.
    fn random_u64(&self) -> u64;

    /// Starts a thread of this medium.
    fn spawn(&self, name: &str, job: Box<dyn FnOnce() + Send>)
    -> Result<Self::Thread, MediumError>;

    /// Waits for a thread. Returns whether it ended without a panic.
    fn join(&self, thread: Self::Thread) -> bool;

    // ---- accounting ----

    /// Declares `instructions` of computation. Free on media without time.
    #[inline(always)]
    fn work(&self, instructions: u64) {
        let _ = instructions;
    }

    /// Says that a table is loaded from, so many bytes from its start. Free on media without time.
    #[inline(always)]
    fn table_load(&self, table: Table, offset: u64) {
        let _ = (table, offset);
    }

    /// Begins a scope of the breakdown; use [`MediumExt::scope`].
    #[inline(always)]
    fn scope_begin(&self, scope: Scope) {
        let _ = scope;
    }

    /// Ends a scope of the breakdown; use [`MediumExt::scope`].
    #[inline(always)]
    fn scope_end(&self, scope: Scope) {
        let _ = scope;
    }

    // ---- tests of tests ----

    /// Whether any step is to be left out.
    #[inline(always)]
    fn is_perturbed(&self) -> bool {
        false
    }

    /// Whether the code is to leave this step out, which loses data. Only a medium that is made to lose
    /// power ever says so.
    #[inline(always)]
    fn leaves_out(&self, step: &Step) -> bool {
        let _ = step;
        false
    }

    // ---- capabilities ----

    /// Copies `len` bytes and remembers per line of the destination when it reached persistence.
    /// Needs [`Capabilities::relocate`].
    fn relocate(&self, from: VirtAddr, to: VirtAddr, len: u64) -> Result<(), Unsupported> {
        let _ = (from, to, len);
        Err(Unsupported("relocate"))
    }

    /// Whether a `relocate` stored to the line that holds `at` since it was cleared. After a power failure:
    /// whether what it stored reached persistence. Needs [`Capabilities::relocate`].
    fn reached(&self, at: VirtAddr) -> Result<bool, Unsupported> {
        let _ = at;
        Err(Unsupported("relocate"))
    }

    /// Whether one of the lines that `len` bytes from `at` touch was reached. A medium that tries every image of
    /// memory relies on the caller completing all of them then ([`Medium::unless_reached`]), whichever it was. Needs
    /// [`Capabilities::relocate`].
    #[inline]
    fn any_reached(&self, at: VirtAddr, len: u64) -> Result<bool, Unsupported> {
        for line in (at.line_start().0..at.0 + len).step_by(LINE_BYTES as usize) {
            if self.reached(VirtAddr(line))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Completes the line that holds `at` by `copy`, unless it was reached. A medium that tries every image of
    /// memory relies on `copy` storing to this line alone, the mark last, and on the caller going on in the same
    /// way whether it was reached or not. Needs [`Capabilities::relocate`].
    #[inline]
    fn unless_reached(&self, at: VirtAddr, copy: impl FnOnce()) -> Result<(), Unsupported> {
        if !self.reached(at)? {
            copy();
        }
        Ok(())
    }

    /// Clears what is known of the lines that `len` bytes from `at` touch. Durable from the thread's next
    /// fence on. Lines that a cache holds since a `relocate` say so again when they reach persistence: write
    /// them back before. Needs [`Capabilities::relocate`].
    fn clear_reached(&self, at: VirtAddr, len: u64) -> Result<(), Unsupported> {
        let _ = (at, len);
        Err(Unsupported("relocate"))
    }

    /// Puts filters over the pages of these objects, and a forwarding table of them, where
    /// [`Medium::check_lookup`] finds them, in the place of those that are there. What processors have at hand
    /// of those they keep: [`Medium::retire_lookup`] comes between two cycles. Nobody asks meanwhile. Needs
    /// [`Capabilities::check_lookup`].
    ///
    /// Crash: nothing is durable; what is on media says where objects go.
    fn install_lookup(&self, moves: impl Iterator<Item = Move>) -> Result<(), Unsupported> {
        let _ = moves;
        Err(Unsupported("check_lookup"))
    }

    /// Takes filters and table away, and empties the buffers of every processor: objects stay from here on.
    /// Needs [`Capabilities::check_lookup`].
    fn retire_lookup(&self) -> Result<(), Unsupported> {
        Err(Unsupported("check_lookup"))
    }

    /// Asks whether the object at `at` is being moved, and where to. Needs [`Capabilities::check_lookup`].
    ///
    /// Source: FFCCD, section 4.3.2.
    fn check_lookup(&self, at: VirtAddr) -> Result<Lookup, Unsupported> {
        let _ = at;
        Err(Unsupported("check_lookup"))
    }

    /// Begins a region whose stores become durable together. Needs
    /// [`Capabilities::atomic_region`].
    fn atomic_begin(&self) -> Result<(), Unsupported> {
        Err(Unsupported("atomic_region"))
    }

    /// Ends the region and names the ticket of its commit.
    fn atomic_end(&self) -> Result<Ticket, Unsupported> {
        Err(Unsupported("atomic_region"))
    }

    /// Asks a medium with [`Capabilities::checkpoints`] to end its epoch now and names the ticket
    /// of what the epoch holds.
    fn checkpoint(&self) -> Result<Ticket, Unsupported> {
        Err(Unsupported("checkpoints"))
    }
}

/// What follows from the contract for every medium.
pub trait MediumExt: Medium {
    /// Attributes what follows to `scope` until the guard is dropped.
    #[inline(always)]
    fn scope(&self, scope: Scope) -> ScopeGuard<'_, Self> {
        ScopeGuard::enter(self, scope)
    }

    /// Writes back the range and fences.
    fn persist(&self, at: VirtAddr, len: u64) {
        self.write_back(at, len);
        self.fence();
    }

    /// Whether the code does this step; see [`Medium::leaves_out`].
    #[inline(always)]
    fn keeps(&self, step: &Step) -> bool {
        !self.leaves_out(step)
    }

    /// [`Medium::write_back`], by a step's name.
    #[inline(always)]
    fn write_back_for(&self, step: &Step, at: VirtAddr, len: u64) {
        if self.keeps(step) {
            self.write_back(at, len);
        }
    }

    /// [`Medium::fence`], by a step's name.
    #[inline(always)]
    fn fence_for(&self, step: &Step) {
        if self.keeps(step) {
            self.fence();
        }
    }

    /// [`MediumExt::persist`], by a step's name.
    #[inline(always)]
    fn persist_for(&self, step: &Step, at: VirtAddr, len: u64) {
        if self.keeps(step) {
            self.persist(at, len);
        }
    }

    /// Stores `from` at `at`, any address, in ascending order: whole words as [`Medium::store_bytes`] does, and of a
    /// word at either end its own bytes alone, by [`Medium::store_part`]. Numbers that lie at a multiple of their
    /// length are stored in one piece.
    #[inline]
    fn store_exact(&self, at: VirtAddr, from: &[u8]) {
        let to_word = at.0.wrapping_neg() % WORD_BYTES;
        let (head, rest) = from.split_at(from.len().min(to_word as usize));
        let (words, tail) = rest.split_at(rest.len() - rest.len() % WORD_BYTES as usize);
        store_parts(self, at, head);
        let at = at + head.len() as u64;
        if !words.is_empty() {
            self.store_bytes(at, words);
        }
        store_parts(self, at + words.len() as u64, tail);
    }

    /// Stores zeros over the range; start and length are multiples of 8.
    fn zero(&self, at: VirtAddr, len: u64) {
        const ZEROS: [u8; 4096] = [0; 4096];
        let mut done = 0;
        while done < len {
            let step = (len - done).min(ZEROS.len() as u64);
            self.store_bytes(at + done, &ZEROS[..step as usize]);
            done += step;
        }
    }

    /// Sets and clears bits of the word at `at` in one locked step. Returns the word before.
    fn update_bits(&self, at: VirtAddr, set: u64, clear: u64) -> u64 {
        let mut old = self.load_u64(at);
        loop {
            match self.compare_exchange_u64(at, old, (old | set) & !clear) {
                Ok(before) => return before,
                Err(now) => old = now,
            }
        }
    }
}

impl<M: Medium> MediumExt for M {}

/// Stores a few bytes of one word, as wide as they lie.
fn store_parts<M: Medium>(medium: &M, mut at: VirtAddr, mut from: &[u8]) {
    while !from.is_empty() {
        let aligned = 1 << at.0.trailing_zeros().min(2);
        let fits = 1 << from.len().ilog2();
        let (now, later) = from.split_at(aligned.min(fits));
        medium.store_part(at, now);
        (at, from) = (at + now.len() as u64, later);
    }
}
