//! Does the machine do what its description says: in time, in traffic, after power failures, and for the heap?

mod descriptions;
mod digests;
mod heap;
mod mechanisms;
mod power;
mod timing;
mod traffic;
