//! Does memory that can crash leave only what it may, do simulated threads behave like x86, and does the explorer miss
//! nothing?

mod completion;
mod explorer;
mod lazy;
mod litmus;
mod lookup;
mod persistency;
mod protocols;
mod races;
mod reached;
mod swarm;
mod threads;
mod torn;
