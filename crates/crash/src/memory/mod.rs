//! The state of memory: the bytes, the stores that have not reached them yet, and what a crash may leave.

pub(crate) mod buffer;
pub(crate) mod cells;
pub(crate) mod event;
pub(crate) mod footprint;
pub(crate) mod history;
pub(crate) mod image;
pub(crate) mod log;
pub(crate) mod lookup;
pub(crate) mod marked;
pub(crate) mod pages;
pub(crate) mod persistence;
pub(crate) mod torn;
