//! Persistent memory: loads, stores, write-backs, fences, and when a commit is durable.

use firn_units::{VirtAddr, WORD_BYTES, WORDS_PER_LINE};

use crate::{Domain, Level, MediumError, Place};

/// A commit's position in the order in which commits become durable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Ticket(pub u64);

/// What is called when a ticket is durable ([`Memory::when_durable`]).
pub type WhenDurable = Box<dyn FnOnce(Result<(), MediumError>) + Send>;

/// The first part of a medium: the words that survive.
///
/// # What it promises
///
/// - **Addresses** are [`VirtAddr`]s: bytes from the start of the pool. Loads accept any address and read zeros beyond
///   [`crate::Space::len`]. Stores beyond it panic: the heap validates addresses from media before it stores to them.
/// - **Words never tear.** A load or store of one aligned word happens at once. Operations on several words go through
///   them in ascending order, and other threads may see any prefix.
/// - **Visibility** is that of x86-TSO. Each thread's stores become visible in program order. They may wait in the
///   thread's store buffer, which its own loads see through. [`Memory::compare_exchange_u64`] and [`Memory::fence`]
///   empty the buffer.
/// - **Durability** follows from the [`Domain`]; see the table in the crate's documentation. If the domain needs
///   flushes, only a write-back and a fence of one thread, in this order, make a line durable.
/// - **Commits** are numbered by tickets. Every commit whose ticket is at most [`Memory::durable`] survives.
///
/// # Crash
///
/// A crash keeps everything that was durable. The domain says what else may survive: in [`Domain::Adr`], a prefix of
/// the stores to each line.
pub trait Memory {
    /// A resolved location, borrowed from the medium.
    type Place<'m>: Place
    where
        Self: 'm;

    /// What a store needs to survive; see the crate's table.
    fn domain(&self) -> Domain;

    /// Resolves an address, masked into the medium's window and down to a multiple of 16.
    fn place(&self, at: VirtAddr) -> Self::Place<'_>;

    /// Resolves like [`Memory::place`], for code that follows many references in a row: the closure holds the values
    /// that resolving needs, so they are not loaded again for each reference.
    #[inline(always)]
    fn places<'m>(&'m self) -> impl Fn(VirtAddr) -> Self::Place<'m> + Copy {
        |at| self.place(at)
    }

    /// The address that `place` was resolved from, after masking.
    fn address(&self, place: Self::Place<'_>) -> VirtAddr;

    /// Loads the word at `at`, a multiple of a word. Ordered as an acquiring load. Zero beyond [`crate::Space::len`].
    fn load_u64(&self, at: VirtAddr) -> u64;

    /// Fills `into` from `at`. Not atomic; zeros beyond [`crate::Space::len`].
    fn load_bytes(&self, at: VirtAddr, into: &mut [u8]);

    /// Fills `into`, like [`Memory::load_bytes`], with bytes that a checksum covers, and returns whether `is_whole`
    /// accepts them. If it does not, `into` means nothing. A medium that tries every image of memory relies on
    /// `is_whole` accepting only the content from which the checksum was made.
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

    /// Appends `len` bytes from `at` to `into`, read like [`Memory::load_bytes`].
    fn append_bytes(&self, at: VirtAddr, len: usize, into: &mut Vec<u8>) {
        let start = into.len();
        into.resize(start + len, 0);
        self.load_bytes(at, &mut into[start..]);
    }

    /// Stores the word at `at`, a multiple of a word, in one piece. Ordered as a releasing store. Durable as the domain
    /// says.
    fn store_u64(&self, at: VirtAddr, value: u64);

    /// Stores `from` at `at`, a multiple of a word, word by word in ascending order. If its length is no multiple of a
    /// word, only the first bytes of the last word change, but that word is still stored whole.
    fn store_bytes(&self, at: VirtAddr, from: &[u8]);

    /// Stores `from`, which has 1, 2 or 4 bytes, at `at`, a multiple of its length, by one store that is no wider. So
    /// concurrent stores to other bytes of the word survive; loading, changing and storing the word would undo them.
    /// Use [`crate::MediumExt::store_exact`].
    fn store_part(&self, at: VirtAddr, from: &[u8]);

    /// Stores the words of the line at `line` that `mask` selects, one bit each, in ascending order.
    #[inline(always)]
    fn store_line(&self, line: VirtAddr, mask: u8, words: &[u64; WORDS_PER_LINE]) {
        for word in (0..WORDS_PER_LINE).filter(|word| mask >> word & 1 != 0) {
            self.store_u64(line + word as u64 * WORD_BYTES, words[word]);
        }
    }

    /// Copies the `len` bytes at `from` to `to`, word by word in ascending order; they do not overlap. All three are
    /// multiples of a word.
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

    /// Adds to the word at `at`, to which no other thread stores: a load and a store.
    #[inline(always)]
    fn add_unshared_u64(&self, at: VirtAddr, by: u64) {
        self.store_u64(at, self.load_u64(at).wrapping_add(by));
    }

    /// Stores `new` if the word at `at` holds `current`; either way returns what the word held. This is a locked
    /// instruction, so it empties the store buffer and is a full barrier. It is not a fence: it makes no write-back
    /// durable.
    fn compare_exchange_u64(&self, at: VirtAddr, current: u64, new: u64) -> Result<u64, u64>;

    /// Announces that the line at `at` will be accessed soon. A hint: does nothing on media that cannot use it.
    #[inline(always)]
    fn prefetch(&self, at: VirtAddr) {
        let _ = at;
    }

    /// Announces that stores to all of these bytes, which are reserved, follow soon. A hint: does nothing on media that
    /// cannot use it.
    fn populate(&self, at: VirtAddr, len: u64) {
        let _ = (at, len);
    }

    /// Issues a write-back (clwb) of every line of the range. Stores to these lines that are visible or in this
    /// thread's store buffer become durable at this thread's next [`Memory::fence`], no matter which thread made them.
    /// A no-op if the domain needs none.
    ///
    /// In [`crate::Domain::Logged`] this holds for the words that the range touches, and not for the rest of their lines.
    fn write_back(&self, at: VirtAddr, len: u64);

    /// A fence (sfence): empties the store buffer and makes all earlier write-backs of this thread durable.
    fn fence(&self);

    /// How many lines [`Memory::record`] takes at most; zero where a medium has no records, or the thread has none any more.
    #[inline(always)]
    fn most_recorded_lines(&self) -> usize {
        0
    }

    /// Runs `store`, which stores and writes back at most [`Memory::most_recorded_lines`] lines. They are one record, with
    /// what this thread wrote back before: after a crash all of them are there, or none. It is a fence, too.
    ///
    /// Concurrency: no other fence reads a line between the first store and the record's place in the log (L1). So `store`
    /// waits for nobody who may be in a fence. Stores are visible to loads at once.
    fn record(&self, store: impl FnOnce()) {
        let _ = store;
        unreachable!("a medium without records was asked for one");
    }

    /// Declares everything up to this thread's last fence a commit and returns its ticket.
    ///
    /// `Adr` and `Eadr` media make it durable at once. A medium that gathers commits (a log on a
    /// disk) makes it durable later.
    fn commit(&self) -> Ticket;

    /// Every commit whose ticket is at most this one is durable. The oracle of a crash test relies on this, never on
    /// its own log.
    fn durable(&self) -> Ticket;

    /// Waits until `ticket` is durable. A commit followed by this is 'durable at return'.
    ///
    /// A medium that makes each commit durable at once, as this default expects, has nothing to wait for.
    ///
    /// Concurrency: the caller holds no lock and is in no operation that others wait for: this may wait for a disk.
    ///
    /// Errors: the device failed, now or before. Memory then holds commits that will never be durable.
    fn wait_durable(&self, ticket: Ticket) -> Result<(), MediumError> {
        debug_assert!(self.durable() >= ticket, "{ticket:?} is not durable yet");
        Ok(())
    }

    /// Calls when `ticket` is durable, or with the error if it will never be; at once if that is known. Sees to it that it
    /// becomes durable soon. Calls come one after the other, in the order of their tickets, in a thread of the medium;
    /// they may use the pool. All have come before the medium is gone.
    fn when_durable(&self, ticket: Ticket, call: WhenDurable) {
        call(self.wait_durable(ticket));
    }

    /// Waits until the medium has room for what a transaction stores. Media that gather commits hold these in memory
    /// until the device has taken them; this is where a program that is faster than its device waits.
    ///
    /// Concurrency and errors: as [`Memory::wait_durable`].
    #[inline(always)]
    fn wait_for_room(&self) -> Result<(), MediumError> {
        Ok(())
    }

    /// The level of transactions that do not ask for one.
    fn level(&self) -> Level {
        Level::Sync
    }

    /// Waits until `ticket` has come as far as `level` says; at [`Level::Group`] it only sees to it that it will.
    ///
    /// Concurrency and errors: as [`Memory::wait_durable`].
    fn wait_at(&self, ticket: Ticket, level: Level) -> Result<(), MediumError> {
        let _ = level;
        self.wait_durable(ticket)
    }
}
