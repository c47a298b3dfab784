//! Relocation: where the objects of a cycle go, how they are copied, and when a copy counts.
//!
//! Allocation and transactions build on this; it knows neither of them.
//!
//! ```text
//! plan          a plan on media, and what its entries say
//! cycle         an open cycle: its tables, and where an object goes
//!   frame_map     whose part of the cycle a frame is
//!   copying       the read barrier, and who copies
//!   settling      from when on a copy counts
//!   group         objects that are copied together, with hardware that remembers what arrived
//!   lookup        hardware that says where objects go
//!   instructions  what such hardware is asked by
//! scheme/       how a copy comes to count, one file of facts a scheme
//! media         what media says of cycles
//! retained      ended cycles whose addresses lead on
//! resume        a cycle that a crash interrupted
//! ```

mod copying;
pub(crate) mod cycle;
mod frame_map;
mod group;
pub(crate) mod instructions;
mod lookup;
pub(crate) mod media;
pub(crate) mod plan;
pub(crate) mod resume;
pub(crate) mod retained;
pub mod scheme;
mod settling;

pub(crate) use copying::heal;
pub(crate) use cycle::{Cycle, Unit};
pub(crate) use frame_map::Part;
