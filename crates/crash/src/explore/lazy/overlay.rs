//! A run's effect on memory, whatever image it began on.

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

use crate::explore::lazy::candidates::Candidates;
use crate::explore::lazy::class::ImageClass;
use crate::explore::lazy::completion::Completed;
use crate::explore::lazy::stored::{ALL, Stored};
use crate::memory::cells::{LINE_CELLS, Line};
use crate::memory::event::Event;
use crate::memory::persistence::line_hash;

/// The last stores of a run to each word, and its changes of length and blocks. Every other word is as in the image.
#[derive(Default)]
pub(crate) struct Overlay {
    /// By slot, up to the last slot stored to: index into `lines`, from 1; 0 for none.
    places: Vec<u16>,
    lines: Vec<Stored>,
    /// Identifies the changes of length and blocks.
    space: u64,
}

impl Overlay {
    /// The effect of the events, except on `completed` lines, which are complete in the class already. A changed line
    /// without a slot is equal in all images, and is left out.
    pub(crate) fn new(events: &[Event], completed: &[Completed], class: &ImageClass) -> Self {
        let (mut overlay, mut slots) = (Self::default(), class.finder());
        for (index, event) in events.iter().enumerate() {
            match event {
                Event::Store { .. } | Event::Zero { .. } => {
                    let Some(line) = event.stores_to() else {
                        continue;
                    };
                    if !completed.iter().any(|part| part.has(line, index))
                        && let Some(slot) = slots.of(line)
                    {
                        overlay.line(slot).take_in(line, event);
                    }
                }
                Event::Length { .. } | Event::Backing { .. } => {
                    for word in event.digest() {
                        overlay.space = xxh3_64_with_seed(&word.to_le_bytes(), overlay.space);
                    }
                }
                _ => {}
            }
        }
        overlay
    }

    /// The stores to the line of a slot.
    fn line(&mut self, slot: usize) -> &mut Stored {
        if self.places.len() <= slot {
            self.places.resize(slot + 1, 0);
        }
        if self.places[slot] == 0 {
            self.lines.push(Stored::default());
            self.places[slot] = u16::try_from(self.lines.len()).expect("a run stores to few lines");
        }
        &mut self.lines[usize::from(self.places[slot]) - 1]
    }

    /// What the run stored to a word, if it did.
    #[inline]
    pub(crate) fn stored(&self, slot: usize, cell: usize) -> Option<u64> {
        let place = usize::from(*self.places.get(slot)?);
        let stored = &self.lines[place.checked_sub(1)?];
        (stored.cells >> cell & 1 != 0).then(|| stored.content[cell])
    }

    /// Identifies the run's result for a line that had one of these contents.
    pub(crate) fn left(&self, slot: usize, line: u64, before: &Candidates) -> u128 {
        let place = usize::from(self.places.get(slot).copied().unwrap_or(0));
        let Some(stored) = place.checked_sub(1).map(|place| &self.lines[place]) else {
            return before.hash();
        };
        if before.agreement() | stored.cells == ALL {
            let mut left = *before.first();
            stored.store_to(&mut left);
            return line_hash(line, &left);
        }
        let mut stores = Line::default();
        stored.store_to(&mut stores);
        let stores = line_hash(line, &stores) as u64 ^ u64::from(stored.cells);
        xxh3_128_with_seed(&before.hash().to_le_bytes(), stores)
    }

    /// Identifies the overlay, among those with one numbering of lines.
    pub(crate) fn hash(&self) -> u128 {
        let mut hash = u128::from(self.space);
        for (slot, &place) in self.places.iter().enumerate() {
            if let Some(stored) = usize::from(place).checked_sub(1).map(|at| &self.lines[at]) {
                let content = line_hash(slot as u64, &stored.content);
                let cells = (slot as u64) << LINE_CELLS | u64::from(stored.cells);
                hash ^= xxh3_128_with_seed(&content.to_le_bytes(), cells);
            }
        }
        hash
    }

    /// Identifies the changes of length and blocks.
    pub(crate) fn space(&self) -> u64 {
        self.space
    }
}
