//! Objects of a pool that hold links, words and values, changed in transactions: the counterpart of the C macros for a
//! user of libpmemobj.
//!
//! A reference is dereferenced by adding its offset to the pool's base, which is less work than `pmemobj_direct`. A
//! range is snapshotted once per transaction: the library would detect a repetition itself, by a look-up that a careful
//! user avoids.
//!
//! The unsafe code rests on the contract of [`Nodes::new`] and on this: one thread at a time uses a pool through its
//! `Nodes`, and the library changes bytes of a live object only in a transaction's abort, after which the pool is
//! poisoned.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use super::Failure;
use super::declarations::Oid;
use super::library::Pool;
use crate::clock::{Times, timed};
use crate::phases::{Change, Footprint, Occupied, Value};

/// Changes that are buffered before more memory is requested.
const CHANGES: usize = 1 << 16;

/// The objects of one structure.
pub struct Nodes<'p> {
    pool: &'p Pool<'p>,
    base: NonNull<u8>,
    /// Offsets of ranges that this transaction may change.
    snapshotted: Vec<u64>,
    changes: Vec<Change>,
    footprint: Footprint,
}

// SAFETY: any thread may use the pool, a transaction begins and ends within one call, and `base` is the pool's own.
// Changes are made through `&mut`.
unsafe impl Send for Nodes<'_> {}

impl<'p> Nodes<'p> {
    /// No objects yet.
    ///
    /// # Safety
    /// Every reference handed to this value's functions comes from its `alloc` or `zalloc`, or
    /// from a link where such a one was put, and its object was not freed since. Every range lies
    /// in the object and starts at a multiple of eight. References are read only where links are.
    pub unsafe fn new(pool: &'p Pool<'p>) -> Self {
        let base = pool.base();
        Self {
            pool,
            base,
            snapshotted: Vec::with_capacity(64),
            changes: Vec::with_capacity(CHANGES),
            footprint: Footprint::of_mapping_at(base.addr().get() as u64),
        }
    }

    /// Runs `body` as one transaction, durable on return.
    #[inline]
    pub fn transaction<R>(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        self.begin().transaction(|_| body(self))
    }

    /// Forgets the last transaction's snapshots. Returns the pool in which to start the next.
    #[inline]
    pub fn begin(&mut self) -> &'p Pool<'p> {
        self.snapshotted.clear();
        self.pool
    }

    /// Allocates zeroed bytes outside of a transaction, for ever.
    pub fn zalloc(&mut self, bytes: usize) -> Result<Oid, Failure> {
        let oid = self.pool.zalloc(bytes)?.oid();
        self.note(oid, bytes, true);
        Ok(oid)
    }

    /// Allocates in the transaction. The caller must write every byte; commit writes them back.
    #[inline]
    pub fn alloc(&mut self, bytes: usize) -> Result<Oid, Failure> {
        let oid = self.pool.tx_alloc_oid(bytes)?;
        self.note(oid, bytes, true);
        Ok(oid)
    }

    /// Frees in the transaction an object of `bytes` bytes.
    #[inline]
    pub fn free(&mut self, oid: Oid, bytes: usize) -> Result<(), Failure> {
        self.note(oid, bytes, false);
        // SAFETY: a live object, by the contract of `new`.
        unsafe { self.pool.tx_free_oid(oid) }
    }

    /// Snapshots bytes of an object, unless this transaction has done so already or has made the object.
    #[inline]
    pub fn change(&mut self, oid: Oid, at: usize, bytes: usize) -> Result<(), Failure> {
        let start = oid.off + at as u64;
        if self.snapshotted.contains(&start) {
            return Ok(());
        }
        self.snapshotted.push(start);
        self.pool.tx_add_range(self.place(oid, at), bytes)
    }

    /// Notes that the range of a new object needs no snapshot.
    #[inline]
    pub fn is_new(&mut self, oid: Oid, at: usize) {
        self.snapshotted.push(oid.off + at as u64);
    }

    /// Makes the commit write back bytes of an object that nothing refers to before it.
    #[inline]
    pub fn fill_unused(&mut self, oid: Oid, at: usize, bytes: usize) -> Result<(), Failure> {
        self.pool.tx_add_unused(self.place(oid, at), bytes)
    }

    /// Reads a word.
    #[inline]
    pub fn word(&self, oid: Oid, at: usize) -> u64 {
        *self.at(oid, at)
    }

    /// Writes a word.
    #[inline]
    pub fn set_word(&mut self, oid: Oid, at: usize, word: u64) {
        *self.at_mut(oid, at) = word;
    }

    /// Reads a link.
    #[inline]
    pub fn link(&self, oid: Oid, at: usize) -> Oid {
        *self.at(oid, at)
    }

    /// Writes a link.
    #[inline]
    pub fn set_link(&mut self, oid: Oid, at: usize, link: Oid) {
        *self.at_mut(oid, at) = link;
    }

    /// Copies a value out.
    #[inline]
    pub fn value(&self, oid: Oid, at: usize, into: &mut Value) {
        into.copy_from_slice(self.at::<Value>(oid, at));
    }

    /// Copies a value in.
    #[inline]
    pub fn set_value(&mut self, oid: Oid, at: usize, value: &Value) {
        self.at_mut::<Value>(oid, at).copy_from_slice(value);
    }

    /// Packs the objects of `bytes` bytes that `links` lists the links to, by the library's own
    /// means: what listing them and packing took, and how many moved.
    ///
    /// # Safety
    /// Every link that is not null is listed, each once, and each object has one only.
    pub unsafe fn pack(
        &mut self,
        links: impl Fn(&Self) -> Vec<(Oid, usize)>,
        bytes: usize,
    ) -> Result<(Times, usize), Failure> {
        let targets = |nodes: &Self| {
            links(nodes)
                .into_iter()
                .map(|(oid, at)| nodes.link(oid, at))
                .collect()
        };
        let before: Vec<Oid> = targets(self);
        let mut moved = 0;
        let times = timed(|| {
            let links = links(self).into_iter();
            let mut places: Vec<*mut Oid> = links
                .map(|(oid, at)| self.place(oid, at).cast().as_ptr())
                .collect();
            // SAFETY: each link names a live object, and by this function's contract these are the only links to it;
            // `&mut` excludes other uses.
            moved = unsafe { self.pool.defrag(&mut places) }?.relocated;
            Ok(())
        })?;
        let after: Vec<Oid> = targets(self);
        before
            .into_iter()
            .for_each(|oid| self.note(oid, bytes, false));
        after
            .into_iter()
            .for_each(|oid| self.note(oid, bytes, true));
        Ok((times, moved))
    }

    /// The live bytes.
    pub fn occupied(&mut self) -> Occupied {
        for change in self.changes.drain(..) {
            self.footprint.apply(change);
        }
        self.footprint.occupied()
    }

    /// Bytes from the pool's start to the end of the highest object that has ever existed.
    pub fn reach(&mut self) -> u64 {
        self.occupied();
        self.footprint.reach()
    }

    #[inline]
    fn note(&mut self, oid: Oid, bytes: usize, came: bool) {
        self.changes.push(Change {
            start: self.base.addr().get() as u64 + oid.off,
            bytes: bytes as u64,
            came,
        });
    }

    /// A word, a link or a value in an object.
    #[inline]
    fn at<T>(&self, oid: Oid, at: usize) -> &T {
        // SAFETY: a word, a link or a value is there, in a live object, at a multiple of eight, by the contract of
        // `new`. Any change of it takes `&mut self`.
        unsafe { self.place(oid, at).cast().as_ref() }
    }

    /// The word, link or value there, to be changed.
    #[inline]
    fn at_mut<T>(&mut self, oid: Oid, at: usize) -> &mut T {
        // SAFETY: there is room for one, in a live object, at a multiple of eight, by the contract of `new`; any bytes
        // are a valid value of each of the three. `&mut self` excludes other accesses.
        unsafe { self.place(oid, at).cast().as_mut() }
    }

    #[inline]
    fn place(&self, oid: Oid, at: usize) -> NonNull<u8> {
        // SAFETY: within the pool's mapping, as a live object is, by the contract of `new`.
        unsafe { self.base.add(oid.off as usize + at) }
    }
}
