//! Do objects move, and is the content unchanged: with every way to collect, beside programs, in full pools, and where
//! addresses stay?

#[path = "../collect_support/mod.rs"]
mod collect_support;

mod background;
mod claim;
mod exchange;
mod fields;
mod full;
mod gives_up;
mod handles;
mod hardware;
mod moments;
mod moving;
mod objects;
mod open;
mod raw_collect;
mod refused;
mod reuse;
mod room;
mod sizes;
mod ways;
mod workflow;
