//! A fast simulated computer.
//!
//! ```text
//! description   what a machine is made of: numbers, each with its unit, kind and source
//! ```
#![forbid(unsafe_code)]

pub mod description;
