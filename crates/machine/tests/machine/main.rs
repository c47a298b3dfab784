//! Is the machine what its description says: in time, in what it moves, in what the power leaves, and for the heap?

mod descriptions;
mod digests;
mod heap;
mod mechanisms;
mod power;
mod timing;
mod traffic;
