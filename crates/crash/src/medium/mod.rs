//! The medium as it runs: memory that simulated threads share, behind the contract of media.

mod contract;
pub(crate) mod counts;
pub(crate) mod crash;
pub(crate) mod hardware;
pub(crate) mod images;
pub(crate) mod log;
pub(crate) mod options;
pub(crate) mod place;
mod recorded;
mod running;
mod scratch;
pub(crate) mod shared;
pub(crate) mod state;
pub(crate) mod threads;
pub(crate) mod words;
