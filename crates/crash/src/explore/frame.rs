//! The images of one moment, laid out in memory: dirty lines, each at a chosen version, or a prefix of a log.

use rustc_hash::FxHashMap;

use crate::explore::path::CrashPoint;
use crate::explore::prefixes::Prefixes;
use crate::memory::cells::Line;
use crate::memory::event::NewImages;
use crate::memory::pages::Memory;
use crate::memory::persistence::Persistence;

struct DirtyLine {
    line: u64,
    guaranteed: u32,
    /// Distinct versions, oldest first: number, content, hash.
    versions: Vec<(u32, Line, u128)>,
    digit: usize,
}

/// Steps memory through the images of one moment. Memory holds the cache's content when a frame is made, and must hold
/// it again when the frame is dropped: see [`Frame::restore`].
pub(crate) struct Frame {
    event: usize,
    kill: bool,
    lines: Vec<DirtyLine>,
    /// In their place, on a medium with a log.
    log: Option<Prefixes>,
}

impl Frame {
    /// The moment before event `event`, with the images that are new there: those with older contents of a line that
    /// was stored to were legal at an earlier event, and so were the shorter prefixes of a log to which a record was
    /// appended. `hash` is that of memory.
    pub(crate) fn new(
        persistence: &Persistence,
        event: usize,
        new: NewImages,
        memory: &Memory,
        hash: u128,
    ) -> Self {
        let prefixes = |log| Prefixes::new(log, new == NewImages::WholeLog, memory, hash);
        let log = persistence.log().map(prefixes);
        let mut lines: Vec<DirtyLine> = persistence
            .lines()
            .iter()
            .map(|(&line, history)| {
                let guaranteed = history.first_number();
                let distinct = history.distinct();
                let keep = if new == NewImages::Line(line) {
                    distinct.len() - 1
                } else {
                    0
                };
                let version = |&(number, version): &(u32, &crate::memory::history::Version)| {
                    (number, version.content, version.hash)
                };
                let versions: Vec<_> = distinct[keep..].iter().map(version).collect();
                DirtyLine {
                    line,
                    guaranteed,
                    digit: versions.len() - 1,
                    versions,
                }
            })
            .collect();
        lines.sort_unstable_by_key(|dirty| dirty.line);
        Self {
            event,
            kill: false,
            lines,
            log,
        }
    }

    /// The death of the process before event `event`: one image.
    pub(crate) fn kill(event: usize) -> Self {
        Self {
            event,
            kill: true,
            lines: Vec::new(),
            log: None,
        }
    }

    pub(crate) fn is_kill(&self) -> bool {
        self.kill
    }

    pub(crate) fn event(&self) -> usize {
        self.event
    }

    /// Number of images.
    pub(crate) fn total(&self) -> u128 {
        let sizes = self.lines.iter().map(|dirty| dirty.versions.len() as u128);
        let of_lines = sizes.fold(1, u128::saturating_mul);
        self.log.as_ref().map_or(of_lines, Prefixes::total)
    }

    pub(crate) fn width(&self) -> usize {
        self.lines.len()
    }

    fn set(&mut self, index: usize, digit: usize, memory: &Memory, hash: &mut u128) {
        let dirty = &mut self.lines[index];
        if dirty.digit != digit {
            *hash ^= dirty.versions[dirty.digit].2 ^ dirty.versions[digit].2;
            memory.set_line(dirty.line, &dirty.versions[digit].1);
            dirty.digit = digit;
        }
    }

    /// Goes to the first image in order: all lines at their latest, or the shortest prefix.
    pub(crate) fn begin(&mut self, memory: &Memory, hash: &mut u128) {
        match &mut self.log {
            Some(log) => log.begin(memory, hash),
            None => self.restore(memory, hash),
        }
    }

    /// Goes to the newest image: all lines at their latest, or the longest prefix.
    pub(crate) fn newest(&mut self, memory: &Memory, hash: &mut u128) {
        match &mut self.log {
            Some(log) => log.longest(memory, hash),
            None => self.restore(memory, hash),
        }
    }

    /// Goes to the next image in order. False after the last image; then all lines are at their latest again.
    pub(crate) fn advance(&mut self, memory: &Memory, hash: &mut u128) -> bool {
        if let Some(log) = &mut self.log {
            return log.advance(memory, hash);
        }
        for index in 0..self.lines.len() {
            let dirty = &self.lines[index];
            if dirty.digit > 0 {
                self.set(index, dirty.digit - 1, memory, hash);
                return true;
            }
            self.set(index, dirty.versions.len() - 1, memory, hash);
        }
        false
    }

    /// Puts one line at its oldest version and all others at their latest, or the reverse.
    pub(crate) fn single(&mut self, index: usize, oldest: bool, memory: &Memory, hash: &mut u128) {
        for other in 0..self.lines.len() {
            let last = self.lines[other].versions.len() - 1;
            let digit = if (other == index) == oldest { 0 } else { last };
            self.set(other, digit, memory, hash);
        }
    }

    /// Draws an image: usually a mixture of old, new and in-between versions, sometimes all old or all new.
    pub(crate) fn draw(&mut self, random: &mut fastrand::Rng, memory: &Memory, hash: &mut u128) {
        if let Some(log) = &mut self.log {
            return log.draw(random, memory, hash);
        }
        let mood = random.u8(..8);
        for index in 0..self.lines.len() {
            let last = self.lines[index].versions.len() - 1;
            let digit = match mood {
                0 => 0,
                1 => last,
                2..4 if random.bool() => last,
                2..4 => 0,
                4 if random.u8(..8) != 0 => last,
                5 if random.u8(..8) != 0 => 0,
                _ => random.usize(..=last),
            };
            self.set(index, digit, memory, hash);
        }
    }

    /// Goes to the image that `point` names; an error if it is not legal now.
    pub(crate) fn go_to(
        &mut self,
        point: &CrashPoint,
        memory: &Memory,
        hash: &mut u128,
    ) -> Result<(), String> {
        if let Some(log) = &mut self.log {
            let records = point
                .records
                .ok_or("the crash names no number of records")?;
            return log.go_to(records, memory, hash);
        }
        for index in 0..self.lines.len() {
            let dirty = &self.lines[index];
            let wanted = point.lines.iter().find(|(line, _)| *line == dirty.line);
            let number = wanted.map_or(dirty.guaranteed, |(_, number)| *number);
            let digit = dirty
                .versions
                .iter()
                .position(|(version, ..)| *version == number);
            let digit = match (digit, wanted) {
                (Some(digit), _) => digit,
                // The guaranteed content occurred again later; it goes by its later number.
                (None, None) => {
                    return Err(format!("line {} has no guaranteed version", dirty.line));
                }
                (None, Some(_)) => {
                    return Err(format!("line {} has no version {number}", dirty.line));
                }
            };
            self.set(index, digit, memory, hash);
        }
        Ok(())
    }

    /// Puts the lines at the versions with the given `contents`; an error if there are none.
    pub(crate) fn go_to_contents(
        &mut self,
        contents: &FxHashMap<u64, Line>,
        memory: &Memory,
        hash: &mut u128,
    ) -> Result<(), String> {
        for index in 0..self.lines.len() {
            let dirty = &self.lines[index];
            let wanted = contents.get(&dirty.line);
            let digit = dirty
                .versions
                .iter()
                .position(|(_, content, _)| Some(content) == wanted)
                .ok_or_else(|| format!("line {} has no such version", dirty.line))?;
            self.set(index, digit, memory, hash);
        }
        Ok(())
    }

    /// Restores every line to the cache's content.
    pub(crate) fn restore(&mut self, memory: &Memory, hash: &mut u128) {
        if let Some(log) = &mut self.log {
            log.restore(memory, hash);
        }
        for index in 0..self.lines.len() {
            let last = self.lines[index].versions.len() - 1;
            self.set(index, last, memory, hash);
        }
    }

    /// Where this image stands, for a replay.
    pub(crate) fn point(&self) -> CrashPoint {
        let version = |dirty: &DirtyLine| (dirty.line, dirty.versions[dirty.digit].0);
        let moved = |dirty: &&DirtyLine| dirty.versions[dirty.digit].0 != dirty.guaranteed;
        let lines = self.lines.iter().filter(moved).map(version).collect();
        CrashPoint {
            event: self.event,
            kill: self.kill,
            lines,
            records: self.log.as_ref().and_then(Prefixes::records),
        }
    }
}
