//! FFCCD's hardware with its time (Xu, Ye, Solihin, Shen, ISCA 2022, section 4), over the state machines that the crash
//! medium also uses.
//!
//! ```text
//! instructions  `relocate`, `checklookup` and related instructions, as software sees them
//! reach         arriving pending bits, the reached bitmap and its buffer (4.2)
//! lookup        filters, forwarding table and its look-aside buffers (4.3)
//! ```
//!
//! `relocate` itself is loads and stores that leave a pending bit; the computer executes it. A pending bit costs only
//! traffic of the controller. Nobody waits for it, as a line is persistent whether or not its word is in the buffer.

mod instructions;
mod lookup;
mod reach;

use firn_hardware::lookup::{Sizes, forwarding};
use firn_hardware::storage::{self, FORWARDING_BYTES_PER_PAGE};
use firn_media::{Lookup, Move};
use firn_units::{DevAddr, FRAME_BYTES, LINE_BYTES, PhysAddr, WORD_BYTES, round_up};

use super::{
    Cost, Counts, Mechanism, MechanismSpec, MemoryPort, OutgoingLine, Part, Regions, Site,
};
use crate::time::{Ticks, cycles};
use instructions::offers;
use lookup::Lookups;
use reach::Reach;

/// Cycles of Table 2.
pub(super) const FILTER_CHECK: Ticks = cycles(2);
pub(super) const FILTER_MISS: Ticks = cycles(120);
pub(super) const LOOK_ASIDE: Ticks = cycles(4);
pub(super) const REACHED_BUFFER: Ticks = cycles(30);

/// The layout of its memory: a word for each page of the program, then the forwarding table's entries.
struct Layout {
    bitmap: DevAddr,
    table: DevAddr,
}

impl Layout {
    fn of(site: &Site<'_>) -> Self {
        let bitmap = DevAddr(site.capacity);
        let table = bitmap + bitmap_bytes(site.capacity);
        Self { bitmap, table }
    }
}

const fn bitmap_bytes(capacity: u64) -> u64 {
    round_up(capacity / FRAME_BYTES * WORD_BYTES, LINE_BYTES)
}

/// Bytes of a page's entry in the forwarding table, which begins at a line.
const ENTRY_BYTES: u64 = round_up(FORWARDING_BYTES_PER_PAGE, LINE_BYTES);

struct Ffccd {
    reach: Reach,
    lookups: Option<Lookups>,
}

impl Mechanism for Ffccd {
    fn write(&mut self, leaving: OutgoingLine, now: Ticks, port: &mut MemoryPort<'_>) -> Ticks {
        let accepted_at = port.write(leaving.at.unmapped(), leaving.at, now);
        if leaving.is_relocated {
            self.reach.arrives(leaving.at, accepted_at, port);
        }
        accepted_at
    }

    fn power_fails(&mut self, port: &mut MemoryPort<'_>) {
        self.reach.drain(port);
    }

    fn reached(&mut self, at: PhysAddr, port: &mut MemoryPort<'_>) -> (bool, Cost) {
        self.reach.ask(at, port)
    }

    fn clear_reached(&mut self, at: PhysAddr, len: u64, port: &mut MemoryPort<'_>) -> Cost {
        self.reach.clear(at, len, port)
    }

    fn install_lookup(&mut self, moves: &mut dyn Iterator<Item = Move>) -> Cost {
        match &mut self.lookups {
            Some(lookups) => lookups.install(moves),
            None => Cost::default(),
        }
    }

    fn retire_lookup(&mut self) {
        if let Some(lookups) = &mut self.lookups {
            lookups.retire();
        }
    }

    fn check_lookup(&mut self, core: usize, at: PhysAddr) -> (Lookup, Cost) {
        match &mut self.lookups {
            Some(lookups) => lookups.ask(core, at),
            None => (Lookup::Stays, Cost::default()),
        }
    }

    fn counts(&self) -> Counts {
        let mut counts = self.reach.counts();
        if let Some(lookups) = &self.lookups {
            counts.extend(lookups.counts());
        }
        counts
    }
}

/// Table 1. There, an entry of the look-aside buffer covers a quarter of a page.
const PARTS: [Part; 3] = {
    let [buffer, look_aside, filter] = storage::components(forwarding::QUARTER_PAGE_BYTES);
    [
        Part {
            name: buffer.name,
            bytes: buffer.bytes(),
            printed_bytes: Some(100),
            printed_area_mm2: Some(0.004),
        },
        Part {
            name: look_aside.name,
            bytes: look_aside.bytes(),
            printed_bytes: Some(1132),
            printed_area_mm2: Some(0.045),
        },
        Part {
            name: filter.name,
            bytes: filter.bytes(),
            printed_bytes: Some(1024),
            printed_area_mm2: Some(0.041),
        },
    ]
};
static RELOCATE_PARTS: [Part; 1] = [PARTS[0]];
static CHECKLOOKUP_PARTS: [Part; 3] = PARTS;

/// Copies whose lines the controller records as they reach persistence.
pub static RELOCATE: MechanismSpec = MechanismSpec {
    name: "ffccd-relocate",
    about: "copies whose lines the controller remembers as they reach persistence; no fences",
    source: "FFCCD, sections 4.1 and 4.2",
    offers: |machine| offers(machine, false),
    regions: |site| Regions {
        nvm: bitmap_bytes(site.capacity),
        dram: 0,
    },
    build: |site| {
        Box::new(Ffccd {
            reach: Reach::new(Layout::of(site).bitmap),
            lookups: None,
        })
    },
    parts: &RELOCATE_PARTS,
};

/// FFCCD's `relocate`, and its instruction that tells where objects go.
pub static CHECKLOOKUP: MechanismSpec = MechanismSpec {
    name: "ffccd-checklookup",
    about: "the same, and an instruction that says whether an object moves, and where to",
    source: "FFCCD, section 4",
    offers: |machine| offers(machine, true),
    regions: |site| Regions {
        nvm: bitmap_bytes(site.capacity) + site.capacity / FRAME_BYTES * ENTRY_BYTES,
        dram: 0,
    },
    build: |site| {
        let (layout, cores) = (Layout::of(site), site.description.core.count as usize);
        Box::new(Ffccd {
            reach: Reach::new(layout.bitmap),
            lookups: Some(Lookups::new(layout.table, cores, Sizes::default())),
        })
    },
    parts: &CHECKLOOKUP_PARTS,
};
