//! Is anything lost when the program is killed? In a program of its own: kills must meet what they aim at, and other
//! tests beside them would slow the children down.

mod demo;
mod kill;
#[path = "../support/mod.rs"]
mod support;
