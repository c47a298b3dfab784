//! Do the commands do what their help says? A module a command, or a question that is put to several.

mod bad_input;
mod bars;
mod bench;
mod check;
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
