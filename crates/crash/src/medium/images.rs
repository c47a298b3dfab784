//! Every image that a crash now could leave.

use std::collections::BTreeSet;
use std::sync::Arc;

use firn_media::Domain;
use firn_units::VirtAddr;

use crate::medium::crash::Crash;
use crate::memory::cells::{Line, PAGE_LINES};
use crate::memory::image::Image;
use crate::memory::persistence::Persistence;

/// The legal images of one moment, each once. See [`Crash::images`].
pub struct Images {
    /// Those of a log, if the medium has one.
    of_log: Option<std::vec::IntoIter<Image>>,
    base: Image,
    dirty: Vec<(u64, Vec<Line>)>,
    digits: Option<Vec<usize>>,
}

impl Iterator for Images {
    type Item = Image;

    fn next(&mut self) -> Option<Image> {
        if let Some(of_log) = &mut self.of_log {
            return of_log.next();
        }
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
        if let Some(of_log) = self.of_log() {
            return of_log.len() as u128;
        }
        self.dirty_lines()
            .iter()
            .map(|(_, contents)| contents.len() as u128)
            .product()
    }

    /// Every image that a power failure could leave now, each once. Entries of store buffers are in none of them.
    pub fn images(&self) -> Images {
        let dirty = self.dirty_lines();
        Images {
            of_log: self.of_log().map(Vec::into_iter),
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
        if let Some(mut of_log) = self.of_log() {
            return of_log.swap_remove(random.usize(..of_log.len()));
        }
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
            .is_some_and(|persistence| persistence.may_lose(line))
    }

    /// The images of a log, each once, with those of the fewest records first.
    fn of_log(&self) -> Option<Vec<Image>> {
        if !self.shared.has_log() {
            return None;
        }
        let mut image = self.power_base();
        let memory = &self.shared.memory;
        let state = self.shared.lock();
        let log = state.persistence.as_ref().and_then(Persistence::log);
        let Some(log) = log else {
            return Some(vec![image]);
        };
        let (mut images, mut known) = (Vec::with_capacity(log.prefixes()), BTreeSet::new());
        for difference in log.differences(memory) {
            image.patches.extend(difference.lines);
            image.len = difference.len.unwrap_or(image.len);
            let mut holes: BTreeSet<u64> = image.holes.iter().copied().collect();
            for (frame, backed) in difference.frames {
                match backed {
                    true => _ = holes.remove(&frame),
                    false => _ = holes.insert(frame),
                }
            }
            image.holes = Arc::new(holes.into_iter().collect());
            if known.insert((image.hash(), Arc::clone(&image.holes))) {
                images.push(image.clone());
            }
        }
        Some(images)
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
