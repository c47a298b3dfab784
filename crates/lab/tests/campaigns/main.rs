//! Do campaigns of crashes and of damage find faults in broken code, and none in sound code?

mod crash;
mod damage;
mod exhaustive;
mod injections;
mod logged;
