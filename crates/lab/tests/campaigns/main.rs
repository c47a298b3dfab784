//! Do campaigns of crashes and of damage find what is broken, and nothing in what is sound?

mod crash;
mod damage;
mod exhaustive;
mod injections;
