//! The allocator: frames from chunks, slots from frames.
//!
//! Which slots and frames are free is volatile knowledge, read from the pool's tables when a chunk is first needed. In
//! an explicit pool every allocation bit is on media, changed by the transaction that allocates or frees. In a traced
//! pool the bits are written at a clean close; after a crash, until the objects have been traced, only frames that are
//! free on media serve allocation.
//!
//! Lock order: a list, then the frame space, then a look at a chunk. None is held across a fence.

mod cache;
mod chosen;
mod chunk_frames;
mod chunks;
mod discarding;
mod evacuate;
mod footprint;
mod frames;
mod grow;
mod lists;
mod look;
mod offers;
mod release;
mod reserve;
mod slot;
mod slots;
mod survey;
mod take;
mod taken;
mod whole;

pub(crate) use cache::Cache;
pub(crate) use chunk_frames::GROUP_FRAMES;
pub(crate) use chunks::Tables;
pub(crate) use evacuate::Run;
pub(crate) use footprint::Footprint;
pub(crate) use frames::{Limits, Reach, Space};
pub(crate) use reserve::{Purpose, Room};
pub(crate) use slot::{Place, Slot, end_of_slot, locate};
pub(crate) use slots::Allocator;
pub(crate) use take::Homes;
pub(crate) use taken::TakenSlots;

/// New objects up to this size are logged whole (rule A1, choice a); larger ones are written at home
/// and fenced before the entry (choice b).
pub(crate) const LOGGED_OBJECT_BYTES: u64 = 2048;
