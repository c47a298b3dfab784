//! Does mapped memory keep the contract: content, growth, files, locks, and the instructions that it uses?

#[path = "../support/mod.rs"]
mod support;

mod assembly;
mod bad_paths;
mod contract;
mod creation;
mod discard;
mod flush;
mod growth;
mod huge_pages;
mod locks;
mod persistence;
mod read_ahead;
mod read_only;
mod zeros;
