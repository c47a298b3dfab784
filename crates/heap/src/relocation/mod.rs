//! Relocation: where the objects of a cycle go, how they are copied, and when a copy counts.
//!
//! Allocation and transactions build on this; it knows neither of them.
//!
//! ```text
//! plan          a plan on media, and the meaning of its entries
//! cycle         an open cycle: its tables, and where an object goes
//!   frame_map     the part of a frame in the cycle
//!   copying       the read barrier, and copying by one thread
//!   settling      when a copy counts
//!   group         objects that are copied together, with hardware that remembers what arrived
//!   lookup        hardware that says where objects go
//!   instructions  the interface to such hardware
//! scheme/       how a copy comes to count, one file of facts a scheme
//! media         the state of cycles on media
//! retained      ended cycles whose addresses are forwarded
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
