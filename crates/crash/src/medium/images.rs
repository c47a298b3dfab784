//! Every image that a crash now could leave.

use firn_media::Domain;
use firn_units::VirtAddr;

use crate::medium::crash::Crash;
use crate::memory::cells::{Line, PAGE_LINES};
use crate::memory::image::Image;

/// The legal images of one moment, each once. See [`Crash::images`].
pub struct Images {
    base: Image,
    dirty: Vec<(u64, Vec<Line>)>,
    digits: Option<Vec<usize>>,
}

impl Iterator for Images {
    type Item = Image;

    fn next(&mut self) -> Option<Image> {
        let digits = self.digits.as_mut()?;
        let mut image = self.base.clone();
        for ((line, contents), digit) in self.dirty.iter().zip(digits.iter()) {
            image.patches.insert(*line, contents[*digit]);
        }
        for (digit, (_, contents)) in digits.iter_mut().zip(&self.dirty) {
            *digit += 1;
            if *digit < contents.len() {
                return Some(image);
            }
            *digit = 0;
        }
        self.digits = None;
        Some(image)
    }
}

impl Crash {
    /// Number of distinct images that a power failure could leave now.
    pub fn image_count(&self) -> u128 {
        self.dirty_lines()
            .iter()
            .map(|(_, contents)| contents.len() as u128)
            .product()
    }

    /// Every image that a power failure could leave now, each once. Entries of store buffers are in none of them.
    pub fn images(&self) -> Images {
        let dirty = self.dirty_lines();
        Images {
            base: self.power_base(),
            digits: Some(vec![0; dirty.len()]),
            dirty,
        }
    }

    /// One image that a power failure could leave now, drawn by `seed`.
    ///
    /// Under [`Domain::Process`] pages are drawn first: old, new or a mixture of lines.
    pub fn random_image(&self, seed: u64) -> Image {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut image = self.power_base();
        let by_page = self.shared.options.domain == Domain::Process;
        let mut page = None;
        let mut mood = random.u8(..4);
        for (line, contents) in self.dirty_lines() {
            if by_page && page != Some(line / PAGE_LINES) {
                page = Some(line / PAGE_LINES);
                mood = random.u8(..4);
            }
            let last = contents.len() - 1;
            let chosen = match mood {
                0 => 0,
                1 => last,
                2 if random.bool() => last,
                2 => 0,
                _ => random.usize(..=last),
            };
            image.patches.insert(line, contents[chosen]);
        }
        image
    }

    /// The image that the process leaves if it dies now: everything executed, store buffers included. The boot stays
    /// the same.
    pub fn kill_image(&self) -> Image {
        self.look_at_everything();
        let state = self.shared.lock();
        let mut image = Image::of(&self.shared.memory, self.boots());
        for thread in &state.threads {
            for (word, value, bits) in thread.buffer.persistent() {
                let old = match bits {
                    u64::MAX => 0,
                    _ => image.load_u64(firn_units::VirtAddr(word * firn_units::WORD_BYTES)),
                };
                image.set_word(word, old & !bits | value & bits);
            }
        }
        image
    }

    /// The visible content as an image: no store buffers, all caches. The boot stays the same.
    pub fn cache_image(&self) -> Image {
        self.look_at_everything();
        Image::of(&self.shared.memory, self.boots())
    }

    /// Whether the word at `at` could still be lost: it lies in a line that is not yet durable.
    pub fn is_dirty(&self, at: VirtAddr) -> bool {
        let state = self.shared.lock();
        let line = at.bytes() / firn_units::LINE_BYTES;
        state
            .persistence
            .as_ref()
            .is_some_and(|persistence| persistence.lines().contains_key(&line))
    }

    fn look_at_everything(&self) {
        let shared = &self.shared;
        shared.footprint.load_everything(&shared.memory);
    }

    fn power_base(&self) -> Image {
        self.look_at_everything();
        Image::of(&self.shared.memory, self.boots() + 1)
    }

    fn boots(&self) -> u64 {
        self.shared
            .boots
            .load(core::sync::atomic::Ordering::Relaxed)
    }

    /// Dirty lines, ascending, with their distinct contents.
    fn dirty_lines(&self) -> Vec<(u64, Vec<Line>)> {
        let state = self.shared.lock();
        let Some(persistence) = &state.persistence else {
            return Vec::new();
        };
        let distinct = |history: &crate::memory::history::LineHistory| {
            history
                .distinct()
                .iter()
                .map(|(_, version)| version.content)
                .collect()
        };
        let mut dirty: Vec<(u64, Vec<Line>)> = persistence
            .lines()
            .iter()
            .map(|(line, history)| (*line, distinct(history)))
            .collect();
        dirty.sort_unstable_by_key(|(line, _)| *line);
        dirty
    }
}
