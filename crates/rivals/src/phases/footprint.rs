//! Pages that live blocks lie on, maintained from a list of allocations and frees.

/// An allocation or a free of a block.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// Its first byte's address.
    pub start: u64,
    /// Bytes requested.
    pub bytes: u64,
    /// Whether it was allocated.
    pub came: bool,
}

/// Live bytes and their pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupied {
    /// Bytes requested and not freed.
    pub live: u64,
    /// Bytes of the 2 MiB pages that hold a part of them.
    pub pages_2m: u64,
    /// Bytes of the 4 KiB pages that hold a part of them.
    pub pages_4k: u64,
}

/// Where live blocks lie.
pub struct Footprint {
    base: u64,
    live: u64,
    end: u64,
    pages_2m: Pages,
    pages_4k: Pages,
}

struct Pages {
    shift: u32,
    first: u64,
    blocks: Vec<u32>,
    occupied: u64,
}

impl Footprint {
    /// For a mapping whose first byte has this address.
    pub fn of_mapping_at(base: u64) -> Self {
        Self {
            base,
            live: 0,
            end: base,
            pages_2m: Pages::new(21, base),
            pages_4k: Pages::new(12, base),
        }
    }

    /// Applies a change.
    pub fn apply(&mut self, change: Change) {
        let end = change.start + change.bytes;
        if change.came {
            self.live += change.bytes;
            self.end = self.end.max(end);
        } else {
            self.live -= change.bytes;
        }
        self.pages_2m.apply(change.start, end - 1, change.came);
        self.pages_4k.apply(change.start, end - 1, change.came);
    }

    /// The live bytes now.
    pub fn occupied(&self) -> Occupied {
        Occupied {
            live: self.live,
            pages_2m: self.pages_2m.bytes(),
            pages_4k: self.pages_4k.bytes(),
        }
    }

    /// Bytes from the mapping's start to the end of the highest block that has ever existed.
    pub fn reach(&self) -> u64 {
        self.end - self.base
    }
}

impl Pages {
    fn new(shift: u32, base: u64) -> Self {
        Self {
            shift,
            first: base >> shift,
            blocks: Vec::new(),
            occupied: 0,
        }
    }

    fn apply(&mut self, start: u64, last: u64, came: bool) {
        let page = |address: u64| ((address >> self.shift) - self.first) as usize;
        let (start, last) = (page(start), page(last));
        if last >= self.blocks.len() {
            self.blocks.resize(last + 1, 0);
        }
        for blocks in &mut self.blocks[start..=last] {
            if came {
                self.occupied += u64::from(*blocks == 0);
                *blocks += 1;
            } else {
                *blocks -= 1;
                self.occupied -= u64::from(*blocks == 0);
            }
        }
    }

    fn bytes(&self) -> u64 {
        self.occupied << self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_counts_while_a_part_of_a_block_is_on_it() {
        let base = (5 << 21) + 4096;
        let mut footprint = Footprint::of_mapping_at(base);
        let across = Change {
            start: base + 4000,
            bytes: 128,
            came: true,
        };
        let beside = Change {
            start: base + 64,
            bytes: 64,
            came: true,
        };
        footprint.apply(across);
        footprint.apply(beside);
        let both = Occupied {
            live: 192,
            pages_2m: 2 << 20,
            pages_4k: 8192,
        };
        assert_eq!(footprint.occupied(), both);
        footprint.apply(Change {
            came: false,
            ..across
        });
        let one = Occupied {
            live: 64,
            pages_2m: 2 << 20,
            pages_4k: 4096,
        };
        assert_eq!(footprint.occupied(), one);
        assert_eq!(footprint.reach(), 4128);
    }
}
