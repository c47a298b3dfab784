//! Is anything lost when the program is killed? These tests have a program of their own: kills must hit their target,
//! and other tests beside them would slow the children down.

mod demo;
mod kill;
#[path = "../support/mod.rs"]
mod support;
