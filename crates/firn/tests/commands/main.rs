//! Do the commands do what their help says? There is a module for each command, and for each question about several.

mod backup;
mod bad_input;
mod bars;
mod bench;
mod check;
mod check_log;
mod churn;
mod convert;
mod crash;
mod damage;
mod defrag;
mod entries;
mod full;
mod help;
mod pools;
mod simulate;
#[path = "../../../structures/tests/golden/sparse.rs"]
mod sparse;
#[path = "../support/mod.rs"]
mod support;
mod top;
