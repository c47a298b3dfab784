//! The port of a mechanism: caches before it, the queue and the devices behind it.

use firn_units::{DevAddr, LINE_BYTES, PhysAddr, WORD_BYTES, WORDS_PER_LINE};

use crate::caches::Caches;
use crate::controller::Controller;
use crate::image::Images;
use crate::time::Ticks;
use crate::traffic::Cause;

/// A line that leaves the caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutgoingLine {
    /// Its first byte.
    pub at: PhysAddr,
    /// Whether it was stored to since it last left.
    pub is_dirty: bool,
    /// Whether a `relocate` stored to it since it last left (FFCCD, section 4.2).
    pub is_relocated: bool,
}

impl From<crate::caches::Eviction> for OutgoingLine {
    fn from(leaving: crate::caches::Eviction) -> Self {
        Self {
            at: PhysAddr(leaving.line * LINE_BYTES),
            is_dirty: leaving.dirty,
            is_relocated: leaving.pending,
        }
    }
}

/// Memory of a mechanism's own, in bytes: behind the program's memory on the persistent device, and on the volatile
/// device from [`crate::DRAM_START`] on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Regions {
    /// Persistent.
    pub nvm: u64,
    /// Volatile.
    pub dram: u64,
}

/// A mechanism's access to memory. Times are arguments and results; the content of devices changes at once.
///
/// Devices hold data if a program runs on the machine. If only addresses count, they hold nothing, and words are zero.
/// While the power is gone, no time passes: a line is accepted when it is sent.
pub struct MemoryPort<'b> {
    pub(crate) caches: &'b mut Caches,
    /// Absent while no time passes.
    pub(crate) controller: Option<&'b mut Controller>,
    pub(crate) images: Option<&'b mut Images>,
    /// The cause on whose behalf the mechanism works.
    pub(crate) cause: Cause,
}

impl MemoryPort<'_> {
    /// Reads a line of a device at `now`, on behalf of the request that asked the mechanism for a line, or else for
    /// itself. Returns when the line arrives.
    pub fn read(&mut self, at: DevAddr, now: Ticks) -> Ticks {
        self.read_for(self.cause.of_read(), at, now)
    }

    /// Reads a line of the mechanism's own data; the traffic counts for the mechanism.
    pub fn read_own(&mut self, at: DevAddr, now: Ticks) -> Ticks {
        self.read_for(Cause::Mechanism, at, now)
    }

    fn read_for(&mut self, cause: Cause, at: DevAddr, now: Ticks) -> Ticks {
        match &mut self.controller {
            Some(controller) => controller.read(at.bytes() / LINE_BYTES, now, cause),
            None => now,
        }
    }

    /// Sends the line that the program sees at `from` to a place of a device. Returns when it is accepted; from then on
    /// it is persistent if the device is.
    pub fn write(&mut self, to: DevAddr, from: PhysAddr, now: Ticks) -> Ticks {
        if let Some(images) = &mut self.images {
            images.persist(from, to);
        }
        self.write_for(self.cause.of_write(), to, now)
    }

    /// Copies a line from one place of a device to another, in the background: reads it, and writes it once it arrives.
    /// Returns when it is accepted.
    pub fn transfer(&mut self, from: DevAddr, to: DevAddr, now: Ticks) -> Ticks {
        let read_at = self.read_own(from, now);
        if let Some(images) = &mut self.images {
            images.transfer(from, to);
        }
        self.send(to, read_at)
    }

    /// The words of one of the mechanism's own lines. Takes no time; [`MemoryPort::read`] does.
    pub fn words(&self, at: DevAddr) -> [u64; WORDS_PER_LINE] {
        core::array::from_fn(|n| self.word(at + n as u64 * WORD_BYTES))
    }

    /// One of the mechanism's own words. Takes no time.
    pub fn word(&self, at: DevAddr) -> u64 {
        self.images
            .as_ref()
            .map_or(0, |images| images.device_word(at))
    }

    /// Replaces one of the mechanism's own words. Takes no time; [`MemoryPort::send`] does.
    pub fn set_word(&mut self, at: DevAddr, word: u64) {
        if let Some(images) = &mut self.images {
            images.set_device_word(at, word);
        }
    }

    /// Sends one of the mechanism's own lines, whose words were set. Returns when it is accepted.
    pub fn send(&mut self, at: DevAddr, now: Ticks) -> Ticks {
        self.write_for(Cause::Mechanism, at, now)
    }

    fn write_for(&mut self, cause: Cause, at: DevAddr, now: Ticks) -> Ticks {
        match &mut self.controller {
            Some(controller) => controller.write(at.bytes() / LINE_BYTES, now, cause),
            None => now,
        }
    }

    /// Every line that is newer than in memory, in the order of addresses. The caches keep these lines and from here on
    /// count them as written: the mechanism has to write them.
    pub fn flush(&mut self) -> Vec<OutgoingLine> {
        let dirty = self.caches.dirty();
        for leaving in &dirty {
            self.caches.clean(leaving.line);
        }
        dirty.into_iter().map(OutgoingLine::from).collect()
    }
}
