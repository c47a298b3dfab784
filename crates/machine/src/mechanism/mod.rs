//! Mechanisms: proposed hardware, added to a described machine.
//!
//! A mechanism is a file of its own and a line in [`MECHANISMS`]. It sits between the caches and memory and beside the
//! cores. Every hook has a default, which does what happens without the mechanism:
//!
//! ```text
//! core ── instructions ──▶ caches ── misses, evictions ──▶ MECHANISM ──▶ port: queue, devices, their content
//!   └──── instructions of its own ────────────────────────────▲
//! ```
//!
//! A mechanism is built when the machine starts. It is asked for lines and given lines, and wakes at times of its
//! choice. When the power fails, it may use its batteries ([`Mechanism::power_fails`]) and is gone. A new one is built
//! at the next start, finds the devices' content, and says where physical memory lies ([`Mechanism::recovers`],
//! [`Mechanism::home`]); software recovers after that.
//!
//! `docs/mechanisms.md` adds one step by step.

pub mod ffccd;
mod none;
pub mod port;
mod start_gap;

pub use none::NONE;
pub use port::{MemoryPort, OutgoingLine, Regions};
pub use start_gap::START_GAP;

use std::sync::Arc;

use firn_hardware::relocate::Unit;
use firn_media::{Lookup, Move, Offers};
use firn_units::{DevAddr, PhysAddr, VirtAddr};

use crate::description::Description;
use crate::time::Ticks;

/// A mechanism, as the command line knows it.
pub struct MechanismSpec {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// Paper and section.
    pub source: &'static str,
    /// The contracts that it offers to software, on the cores of a machine.
    pub offers: fn(Arc<dyn Cores>) -> Offers,
    /// Memory that it needs besides the program's.
    pub regions: fn(&Site<'_>) -> Regions,
    /// Builds it, without any memory of earlier runs.
    pub build: fn(&Site<'_>) -> Box<dyn Mechanism>,
    /// Its parts on the chip.
    pub parts: &'static [Part],
}

/// All mechanisms.
pub static MECHANISMS: [&MechanismSpec; 4] =
    [&NONE, &ffccd::RELOCATE, &ffccd::CHECKLOOKUP, &START_GAP];

impl MechanismSpec {
    /// The mechanism of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        MECHANISMS.into_iter().find(|spec| spec.name == name)
    }
}

impl core::fmt::Debug for MechanismSpec {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("MechanismSpec").field(&self.name).finish()
    }
}

/// A part of the chip, with its paper's figures.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// Bytes, computed from the structure that the model uses.
    pub bytes: u64,
    /// Bytes as printed.
    pub printed_bytes: Option<u64>,
    /// Square millimetres as printed, of 45 nm.
    pub printed_area_mm2: Option<f64>,
}

/// The machine into which a mechanism is built.
pub struct Site<'s> {
    /// The machine.
    pub description: &'s Description,
    /// Bytes of the program's persistent memory, which begins at zero.
    pub capacity: u64,
}

/// The cores of a machine. They execute a mechanism's own instructions, each on the calling thread's core.
pub trait Cores: Send + Sync {
    /// Copies as `relocate` does; the bytes stored to a line at once are one memory operation.
    fn relocate(&self, from: VirtAddr, to: VirtAddr, len: u64, unit: Unit);

    /// Asks the mechanism, with the number of the core, and lets the core wait for the answer's cost. Does nothing
    /// without power.
    fn ask(&self, ask: &mut dyn FnMut(usize, &mut dyn Mechanism, &mut MemoryPort<'_>) -> Cost);
}

/// The cost of one instruction of a mechanism.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Ticks of its own parts.
    pub ticks: Ticks,
    /// Lines that the core loads for it. The first load precedes the others.
    pub loads: Vec<PhysAddr>,
}

/// A mechanism's counts, by name.
pub type Counts = Vec<(&'static str, u64)>;

/// The hooks. Times are [`Ticks`] since the machine's start; addresses are those of lines.
pub trait Mechanism: Send {
    // ---- memory ----

    /// A line that no cache has is requested at `now`. Returns when it arrives.
    fn read(&mut self, at: PhysAddr, now: Ticks, port: &mut MemoryPort<'_>) -> Ticks {
        port.read(at.unmapped(), now)
    }

    /// A line leaves the caches at `now`. Returns when a power failure can no longer lose it.
    fn write(&mut self, leaving: OutgoingLine, now: Ticks, port: &mut MemoryPort<'_>) -> Ticks {
        port.write(leaving.at.unmapped(), leaving.at, now)
    }

    /// The device address of a line of persistent memory.
    fn home(&self, at: PhysAddr) -> DevAddr {
        at.unmapped()
    }

    // ---- in the background ----

    /// When it wants to act by itself. [`Mechanism::wake`] comes at most a quantum of threads later.
    fn wakes_at(&self) -> Ticks {
        Ticks::MAX
    }

    /// Its time has come. Returns until when all cores stand still, if that is beyond `now`.
    fn wake(&mut self, now: Ticks, port: &mut MemoryPort<'_>) -> Ticks {
        let _ = port;
        now
    }

    // ---- power ----

    /// The power fails: batteries and capacitors do their work, in no time. Caches are gone.
    fn power_fails(&mut self, port: &mut MemoryPort<'_>) {
        let _ = port;
    }

    /// The power is back; only the devices have kept anything. Once this returns, [`Mechanism::home`] says where the
    /// program's memory is.
    fn recovers(&mut self, port: &mut MemoryPort<'_>) {
        let _ = port;
    }

    // ---- instructions of its own ----

    /// Whether a line of a copy reached persistence. For [`firn_media::Relocate`].
    fn reached(&mut self, at: PhysAddr, port: &mut MemoryPort<'_>) -> (bool, Cost) {
        let _ = (at, port);
        (false, Cost::default())
    }

    /// Forgets that any of these lines reached persistence. For [`firn_media::Relocate`].
    fn clear_reached(&mut self, at: PhysAddr, len: u64, port: &mut MemoryPort<'_>) -> Cost {
        let _ = (at, len, port);
        Cost::default()
    }

    /// Software says which objects move. For [`firn_media::CheckLookup`].
    fn install_lookup(&mut self, moves: &mut dyn Iterator<Item = Move>) -> Cost {
        let _ = moves;
        Cost::default()
    }

    /// No object moves any more. For [`firn_media::CheckLookup`].
    fn retire_lookup(&mut self) {}

    /// The destination of an object. For [`firn_media::CheckLookup`].
    fn check_lookup(&mut self, core: usize, at: PhysAddr) -> (Lookup, Cost) {
        let _ = (core, at);
        (Lookup::Stays, Cost::default())
    }

    // ---- figures ----

    /// Its counts since it was built.
    fn counts(&self) -> Counts {
        Counts::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_mechanisms_apart() {
        for (place, spec) in MECHANISMS.iter().enumerate() {
            let found = MechanismSpec::named(spec.name).unwrap();
            assert!(core::ptr::eq(found, *spec));
            assert!(
                MECHANISMS[..place]
                    .iter()
                    .all(|other| other.name != spec.name)
            );
        }
    }
}
