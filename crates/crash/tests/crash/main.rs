//! Does crashing memory leave only legal images, do simulated threads behave like x86, is the explorer complete?

mod completion;
mod explorer;
mod lazy;
mod litmus;
mod logged;
mod lookup;
mod persistency;
mod protocols;
mod races;
mod reached;
mod swarm;
mod threads;
mod torn;
