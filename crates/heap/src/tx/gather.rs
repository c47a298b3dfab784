//! Moves chosen objects together, one by one. For a program that names the objects that may move, and all references to
//! them.
//!
//! A cycle of the collector empties whole runs, and runs with objects that stay would not be freed. So this copies each
//! object in a transaction, to the foremost free slot of its class, and frees its old slot. Every move brings an object
//! nearer to the front, so the process ends, and the runs at the end of the pool become free.

use core::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use firn_format::class::Class;
use firn_format::geometry::Frame;
use firn_format::header::{HEADER_BYTES, ObjectHeader};
use firn_media::Medium;
use firn_units::VirtAddr;

use super::raw::RawTx;
use crate::alloc::{Homes, locate};
use crate::error::Error;
use crate::object::requested_bytes;
use crate::operation::State;
use crate::tx::raw_guard::{RawGuard, is_allocated_on_media};

/// Objects that one transaction moves: as many as fit into its lane's log without extra frames, which a full pool may
/// not have.
const TOGETHER: usize = 32;

/// A moved object. Both addresses are the body's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moved {
    /// Its old address.
    pub from: VirtAddr,
    /// Its new address.
    pub to: VirtAddr,
    /// Its length in bytes.
    pub len: u64,
}

/// Objects that are being moved together.
pub struct Gathering {
    /// Headers of the objects that may move, with the runs that they leave; the last in the pool move first.
    left: Vec<(VirtAddr, Frame, Class)>,
    /// Runs of each class that had free slots at the beginning; the foremost are last. `None` once nothing is free in
    /// front of an object, and so neither in front of a later one.
    runs: HashMap<Class, Option<Vec<Frame>>>,
}

impl Gathering {
    /// Begins to move objects with these bodies, which [`RawGuard::resolve_to_read`] returned. Large objects stay, and
    /// so do objects in a run with a pinned one ([`crate::Pool::pin`]).
    ///
    /// Errors: the frame table is damaged.
    pub fn new<M: Medium>(guard: &RawGuard<'_, M>, bodies: &[VirtAddr]) -> Result<Self, Error> {
        let inner = guard.inner();
        let medium = &inner.medium;
        let pinned = inner.collector.pinned.lock(medium).clone();
        let (mut left, mut runs) = (Vec::new(), HashMap::new());
        for body in bodies {
            let at = VirtAddr(body.0.wrapping_sub(HEADER_BYTES));
            let place = match locate(medium, at) {
                Ok(slot) => slot.place,
                Err(Error::NotAllocated { .. }) => continue,
                Err(error) => return Err(error),
            };
            let Some(class) = place.class.filter(|_| !pinned.contains(&place.frame)) else {
                continue;
            };
            left.push((at, place.frame, class));
            if let Entry::Vacant(none) = runs.entry(class) {
                let mut free = inner.allocator.with_free_slots(medium, class)?;
                free.sort_unstable_by_key(|frame| Reverse(frame.0));
                none.insert(Some(free));
            }
        }
        left.sort_unstable_by_key(|(at, ..)| *at);
        left.dedup();
        Ok(Self { left, runs })
    }

    /// Moves some of them in this transaction. The caller stores their new addresses wherever the program keeps them,
    /// and commits. `None` once all have moved that can, or while the collector moves objects.
    ///
    /// Errors: the pool is full or damaged; roll the transaction back.
    /// Crash: as the transaction: all of these objects are at their old places, or all at their new ones.
    pub fn step<M: Medium>(&mut self, tx: RawTx<'_, M>) -> Result<Option<Vec<Moved>>, Error> {
        let mut moved = Vec::new();
        if tx.is_in_cycle() {
            return Ok(None);
        }
        while moved.len() < TOGETHER
            && let Some((at, frame, class)) = self.left.pop()
        {
            moved.extend(self.move_one(tx, at, (frame, class))?);
        }
        Ok(match moved.is_empty() {
            true => None,
            false => Some(moved),
        })
    }

    fn move_one<M: Medium>(
        &mut self,
        tx: RawTx<'_, M>,
        at: VirtAddr,
        (frame, class): (Frame, Class),
    ) -> Result<Option<Moved>, Error> {
        let (medium, body) = (&tx.inner().medium, at + HEADER_BYTES);
        let header = ObjectHeader(medium.load_u64(at));
        let Ok(slot) = locate(medium, at) else {
            return Ok(None);
        };
        let is_there = slot.place.frame == frame && is_allocated_on_media(medium, slot.place);
        if !is_there || header.flags() != 0 || !self.take_target(tx, frame, class)? {
            return Ok(None);
        }
        let damaged = Error::Damaged {
            what: "the header of an object",
            at: at.0,
        };
        let len = requested_bytes(header, slot.bytes).ok_or(damaged)?;
        let new = tx.take_slot(header.type_id(), len)?;
        let to = new.at + HEADER_BYTES;
        medium.copy(body, to, slot.bytes - HEADER_BYTES);
        tx.free_at_commit(body)?;
        Ok(Some(Moved {
            from: body,
            to,
            len,
        }))
    }

    /// Makes the foremost run with free slots active in the session. False if there is none in front of this one.
    fn take_target<M: Medium>(
        &mut self,
        tx: RawTx<'_, M>,
        source: Frame,
        class: Class,
    ) -> Result<bool, Error> {
        let (inner, mut state) = (tx.inner(), tx.core().state.borrow_mut());
        let (medium, allocator) = (&inner.medium, &inner.allocator);
        let State { cache, ring, .. } = &mut *state;
        let Some(runs) = self.runs.get_mut(&class) else {
            return Ok(false);
        };
        while let Some(free) = runs {
            if let Some(target) = allocator.active_with_room(medium, cache, class)?
                && target.0 < source.0
            {
                return Ok(true);
            }
            let listed = free.last().copied().filter(|run| run.0 < source.0);
            let before = listed.unwrap_or(source);
            let durable = inner.homes(ring, Homes::Known);
            if allocator.take_new_before(medium, cache, before, class, durable)? {
                continue;
            }
            match listed {
                Some(run) => {
                    free.pop();
                    allocator.make_active(medium, cache, run, class)?;
                }
                None => *runs = None,
            }
        }
        Ok(false)
    }
}
