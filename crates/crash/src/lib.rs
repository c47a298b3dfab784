//! Memory that can lose power, and the explorer that crash-tests the heap's real code on it.
//!
//! [`Crash`] implements [`firn_media::Medium`] without time. It keeps, for every line that a crash
//! could still take something from, the history of its contents, so every legal persisted image
//! of a moment can be enumerated. Threads are simulated on one OS thread and interleaved at every
//! memory event by a seeded scheduler: one seed, one execution.
//!
//! # Folders
//!
//! Each uses those below it, and none above.
//!
//! ```text
//! explore    crashes a workload wherever it can crash: the explorer, the swarm, replays, reports
//!   eager    tries images one by one
//!   lazy     tries images by classes, split only where the check looks
//! medium     the medium as it runs: the handle, the contract, simulated threads that share memory
//! schedule   which thread goes next: policies, choices, turns, all interleavings; results of runs
//! memory     the state: bytes and marks, store buffers, events, what a crash may leave,
//!            what a run read of it
//! ```
//!
//! # The model
//!
//! - x86-TSO: a store buffer per simulated thread, first in first out, which holds persistent stores,
//!   volatile stores and write-backs. Loads see the stores in their own thread's buffer. Locked operations,
//!   lock and unlock points, fences and pauses empty it. Outside simulated threads there is no buffer.
//! - `Adr`: a line holds any prefix of its stores at or beyond what is guaranteed; a write-back
//!   captures the line as it leaves the store buffer, and a later fence of the same thread
//!   guarantees what it captured. A compare-exchange guarantees nothing.
//! - `Eadr`: a store that has left the store buffer is durable.
//! - `Process`: [`Crash::kill_image`] has everything; a power failure leaves any prefix of every
//!   line since the last sync. [`Crash::random_image`] draws page by page.
//! - `Logged`: a fence appends what its thread has written back to a log, as one record; a discard, a reservation and
//!   a change of length are records, too. A crash leaves any prefix of the records that has all that was waited for. The
//!   lines of a record are read word by word, while other threads go on. Transactions wait as the options say.
//! - `relocate` (FFCCD, section 4.1), if the options say how it is built: a line that it stores to is marked,
//!   and the mark moves with the line's content. A line counts as reached if a crash left it marked.
//! - `checklookup` (FFCCD, section 4.3), if the options give the sizes of its parts: filters and table are
//!   volatile, and each simulated thread has buffers of its own.
//! - A discarded line is old or zero until the next sync. Length and blocks of the device change
//!   durably at once. Storing into discarded space panics, as it would fail on a full device.
//!
//! # Crashing a protocol
//!
//! ```
//! use firn_crash::{ExploreOptions, Explorer};
//! use firn_media::{MediumExt, Memory};
//! use firn_units::VirtAddr;
//!
//! const VALUE: VirtAddr = VirtAddr(0);
//! const READY: VirtAddr = VirtAddr(64);
//!
//! let publish = |fenced: bool| {
//!     Explorer::new(
//!         ExploreOptions { recovery_depth: 2, ..ExploreOptions::default() },
//!         1 << 16,
//!         |_crash| { /* make the pool; all of it counts as durable afterwards */ },
//!         move |crash| {
//!             crash.store_u64(VALUE, 7);
//!             if fenced {
//!                 crash.persist(VALUE, 8);
//!             }
//!             crash.store_u64(READY, 1);
//!             crash.persist(READY, 8);
//!             crash.note(1); // acknowledged
//!         },
//!         |crash, state| {
//!             // open and recover here, then:
//!             crash.end_of_recovery();
//!             let ready = crash.load_u64(READY) == 1;
//!             match (ready, crash.load_u64(VALUE)) {
//!                 (true, 0) => Err("ready without a value".into()),
//!                 (false, _) if state.note(0) == 1 => Err("an acknowledged value is lost".into()),
//!                 _ => Ok(()),
//!             }
//!         },
//!     )
//! };
//! assert!(publish(true).explore().expect_clean().exhaustive());
//!
//! let broken = publish(false);
//! let finding = broken.explore().findings.remove(0);
//! assert!(broken.replay(&finding.replay).is_err()); // `seed=0 event=2:1@1`
//! ```
#![forbid(unsafe_code)]

mod explore;
mod medium;
mod memory;
mod schedule;

pub use explore::explorer::Explorer;
pub use explore::options::{Exploration, ExploreOptions, Failure};
pub use explore::report::{Finding, Report};
pub use explore::story::{Passed, Story};
pub use explore::swarm::SwarmOptions;
pub use explore::walker::CrashState;
/// The sizes of the parts of a medium's `checklookup`, and how often each had the answer.
pub use firn_hardware::lookup::{Sizes as LookupSizes, counts::LookupCounts};
/// How a medium's `relocate` is built.
pub use firn_hardware::relocate::Unit as RelocateUnit;
pub use medium::counts::Counts;
pub use medium::crash::Crash;
pub use medium::images::Images;
pub use medium::log::{RECORD_READS_IN_PLACE, RECORD_STORES_IN_PLACE};
pub use medium::options::CrashOptions;
pub use medium::place::CrashPlace;
pub use medium::threads::{CrashThread, Job};
pub use medium::words::CrashWords;
pub use memory::cells::Line;
pub use memory::event::{Event, Stored};
pub use memory::image::Image;
pub use memory::log::Record;
pub use schedule::interleave::{Interleavings, interleavings};
pub use schedule::policy::Schedule;
pub use schedule::run::{RunEnd, RunOutcome, ThreadPanic};
pub use schedule::turns::Turn;
