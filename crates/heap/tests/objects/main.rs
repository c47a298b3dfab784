//! Does the heap work as documented: objects, roots, types, transactions of both kinds, copies, damage?

#[path = "../collect_support/mod.rs"]
mod collect_support;

mod basics;
mod copies;
mod counters;
mod damage;
mod damaged_plan;
mod descend;
mod exchange;
mod fences;
mod layouts;
mod migrate;
mod occupancy;
mod open_transactions;
mod sessions;
mod types;
mod unbarriered;
mod undo;
mod untyped;
