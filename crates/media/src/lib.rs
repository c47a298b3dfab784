//! The medium contract: everything that the heap may ask of the memory and the machine below it.
//!
//! The heap never knows whether it runs on mapped memory, on memory that is about to lose power or
//! on a timed machine. It speaks to a [`Medium`]: loads and stores of persistent words, write-back
//! of lines, fences, volatile shared words, waiting, threads, time. The contract has five parts:
//!
//! | part | what it is |
//! |---|---|
//! | [`Memory`] | persistent words: loads, stores, write-backs, fences, commits |
//! | [`Space`] | length and blocks, name and identity |
//! | [`Runtime`] | volatile words, threads, waiting, clocks, randomness |
//! | [`Probe`] | information for simulators, and planted faults for the tests of tests |
//! | [`Hardware`] | the mechanisms that the medium offers beyond loads and stores |
//!
//! # Order and durability
//!
//! A store becomes *visible* to other threads in the order of x86-TSO: each thread's stores in program order, delayed
//! by a store buffer. Loads of the thread itself see through the buffer; a locked operation or a fence empties it. When
//! a store becomes *durable* depends on the [`Domain`]:
//!
//! | domain | durable when | kept by a crash beyond that |
//! |---|---|---|
//! | [`Domain::Adr`] | its line was written back after it, and a fence of the thread that issued the write-back came after that | any line at any moment, each with a prefix of the stores to it, words whole |
//! | [`Domain::Eadr`] | it is visible | nothing: what is visible is durable |
//! | [`Domain::Process`] | it is visible, against the death of the process; after [`Space::sync`], against a power failure | on power failure: any page in any state since the last sync |
//! | [`Domain::Logged`] | as in [`Domain::Adr`] it has its place in the order of what survives; it survives for certain once its ticket was waited for ([`Memory::wait_durable`]) | a prefix of that order. A fence takes whole lines, which are read word by word: of another thread's stores to them it may take a later one without an earlier one |
//!
//! A line is [`firn_units::LINE_BYTES`] long and a word [`firn_units::WORD_BYTES`]; words never tear. Parts of a
//! word that are stored by themselves ([`Memory::store_part`]) count as stores of their own.
#![forbid(unsafe_code)]

mod domain;
mod error;
mod hardware;
mod level;
mod lock;
mod medium;
mod memory;
mod place;
mod probe;
mod runtime;
mod scope;
mod space;
mod step;
mod words;

pub use domain::Domain;
pub use error::MediumError;
pub use hardware::{CheckLookup, Hardware, Lookup, Move, Offers, Relocate};
pub use level::Level;
pub use lock::{Lock, LockGuard, RwLockTable};
pub use medium::{Medium, MediumExt};
pub use memory::{Memory, Ticket, WhenDurable};
pub use place::Place;
pub use probe::Probe;
pub use runtime::Runtime;
pub use scope::{Scope, ScopeGuard, Table};
pub use space::Space;
pub use step::Step;
pub use words::Words;
