//! Copying with hardware that remembers which lines of copies reached persistence (FFCCD, sections 3.3.3 and 4).
//!
//! Objects that are copied together form a *group*: those whose destinations share lines, which is a single object
//! where a slot is a whole number of lines. The thread that claims the first of a group copies all of it.

use firn_format::class::Class;
use firn_media::{Medium, MediumExt, Scope};
use firn_units::{FRAME_BYTES, LINE_BYTES, VirtAddr, WORD_BYTES};

use super::cycle::{Cycle, Destination, Unit};
use super::instructions::relocator;
use super::scheme::Recovery;
use crate::steps;

/// Objects of a run that are copied together.
struct Group<'c> {
    run: &'c Destination,
    /// Its slots: the first, and the end.
    first: u64,
    end: u64,
}

/// Bytes that belong at a place of a line.
struct Piece {
    from: VirtAddr,
    to: VirtAddr,
    len: u64,
}

impl Group<'_> {
    fn slot_bytes(&self) -> u64 {
        let large = self.run.frames * FRAME_BYTES;
        self.run.class.map_or(large, Class::slot_bytes)
    }

    fn units(&self) -> impl Iterator<Item = u64> + use<> {
        let first = self.run.first_unit;
        first + self.first..first + self.end
    }

    fn start(&self) -> VirtAddr {
        self.run.frame.start() + self.first * self.slot_bytes()
    }

    fn len(&self) -> u64 {
        (self.end - self.first) * self.slot_bytes()
    }

    /// The lines that hold a part of the group.
    fn lines(&self) -> impl Iterator<Item = VirtAddr> + use<> {
        let (start, end) = (self.start().line_start(), self.start() + self.len());
        (start.0..end.0).step_by(LINE_BYTES as usize).map(VirtAddr)
    }
}

impl<M: Medium> Cycle<M> {
    /// Notes that nothing of the destinations has reached persistence. Called before the fence after which the plan
    /// counts.
    pub(crate) fn clear_reached(&self, medium: &M) {
        if self.scheme.relocates() && medium.keeps(&steps::REACHED_CLEARED) {
            for run in &self.destinations {
                relocator(medium).clear_reached(run.frame.start(), run.frames * FRAME_BYTES);
            }
        }
    }

    /// Copies the unit's group, or waits for the thread that does. Returns how many objects this thread copied.
    pub(super) fn claim_group(&self, medium: &M, unit: Unit) -> u64 {
        let Some(group) = self.group_of(unit.to) else {
            return 0;
        };
        if !self.takes(medium, group.run.first_unit + group.first) {
            return 0;
        }
        let _scope = medium.scope(Scope::Copy);
        self.copy_whole(medium, &group);
        group.units().for_each(|unit| self.copied(unit));
        self.count_copy();
        group.end - group.first
    }

    fn group_of(&self, to: VirtAddr) -> Option<Group<'_>> {
        let run = self.run_at(to)?;
        let slot = match run.class {
            Some(class) => class.slot_of(to.0 - run.frame.start().0),
            None => 0,
        };
        Some(self.group_at(run, slot))
    }

    fn group_at<'c>(&self, run: &'c Destination, slot: u64) -> Group<'c> {
        let slots = match run.class {
            Some(class) if self.scheme.groups => {
                // The smallest number of slots that fills whole lines.
                LINE_BYTES
                    >> class
                        .slot_bytes()
                        .trailing_zeros()
                        .min(LINE_BYTES.trailing_zeros())
            }
            _ => 1,
        };
        let first = slot - slot % slots;
        Group {
            run,
            first,
            end: run.units.min(first + slots),
        }
    }

    /// Copies a group no line of which has arrived, and marks its lines. Goes object by object, so that neighbouring
    /// lines are read together.
    fn copy_whole(&self, medium: &M, group: &Group<'_>) {
        for (from, to) in self.objects(group) {
            if self.scheme.groups {
                medium.copy(from, to, group.slot_bytes());
            } else {
                relocator(medium).relocate(from, to, group.slot_bytes());
            }
        }
        if self.scheme.groups {
            for line in group.lines() {
                if let Some(last) = self.pieces(group, line).last() {
                    mark(medium, last);
                }
            }
        }
    }

    /// Copies a line of a group, and marks it.
    fn copy_line(&self, medium: &M, group: &Group<'_>, line: VirtAddr) {
        let pieces = self.pieces(group, line);
        let Some(last) = pieces.last() else { return };
        if self.scheme.groups {
            for piece in &pieces {
                medium.copy(piece.from, piece.to, piece.len);
            }
            mark(medium, last);
        } else {
            for piece in &pieces {
                relocator(medium).relocate(piece.from, piece.to, piece.len);
            }
        }
    }

    /// The source and the destination of each object of a group.
    fn objects(&self, group: &Group<'_>) -> impl Iterator<Item = (VirtAddr, VirtAddr)> {
        let (bytes, start) = (group.slot_bytes(), group.start());
        let places = (0..).map(move |nth| start + nth * bytes);
        let units = group.units().zip(places);
        units.filter_map(|(unit, to)| Some((self.source_of(unit)?, to)))
    }

    /// The parts of a group that lie in a line.
    fn pieces(&self, group: &Group<'_>, line: VirtAddr) -> Vec<Piece> {
        let end = line + LINE_BYTES;
        let inside = |(from, to): (VirtAddr, VirtAddr)| {
            let begin = to.max(line);
            let end = (to + group.slot_bytes()).min(end);
            (begin < end).then(|| Piece {
                from: from + (begin - to),
                to: begin,
                len: end - begin,
            })
        };
        self.objects(group).filter_map(inside).collect()
    }

    /// Completes copies that a crash left unfinished, before the log is replayed: the groups with a line that reached
    /// persistence, and those that entries change, whose homes are `named`. The caller's fence makes this durable.
    /// Groups without such a line are unclaimed again.
    pub(crate) fn complete_reached(&self, medium: &M, named: impl Iterator<Item = VirtAddr>) {
        let is_printed = self.scheme.recovery == Recovery::CopyReached;
        let named = named.filter(|_| !is_printed);
        let mut named: Vec<VirtAddr> = named.filter_map(|at| Some(self.covering(at)?.to)).collect();
        named.sort_unstable();
        named.dedup();
        for run in &self.destinations {
            let mut slot = 0;
            while slot < run.units {
                let group = self.group_at(run, slot);
                slot = group.end;
                let (start, end) = (group.start(), group.start() + group.len());
                let next = named.partition_point(|&at| at < start);
                let is_named = named.get(next).is_some_and(|&at| at < end);
                let is_reached = || match is_printed {
                    true => group.lines().any(|line| reached(medium, line)),
                    false => relocator(medium).any_reached(start, group.len()),
                };
                if !is_named && !is_reached() {
                    continue;
                }
                if !is_printed {
                    for line in group.lines() {
                        let mut copy = || self.copy_line(medium, &group, line);
                        relocator(medium).unless_reached(line, &mut copy);
                    }
                } else if group.lines().any(|line| !reached(medium, line)) {
                    self.repeat(medium, &group);
                }
                medium.write_back(start, group.len());
                group.units().for_each(|unit| self.copied(unit));
            }
        }
    }

    /// Copies a whole group again, by stores that set no marks (FFCCD, section 3.3.3).
    fn repeat(&self, medium: &M, group: &Group<'_>) {
        for piece in group.lines().flat_map(|line| self.pieces(group, line)) {
            medium.copy(piece.from, piece.to, piece.len);
        }
    }
}

/// Marks a line by storing the last word of its last piece once more, behind all plain stores to the line: if the mark
/// arrived, they did (FFX, rule 2).
fn mark<M: Medium>(medium: &M, last: &Piece) {
    let at = last.len - WORD_BYTES;
    relocator(medium).relocate(last.from + at, last.to + at, WORD_BYTES);
}

fn reached<M: Medium>(medium: &M, line: VirtAddr) -> bool {
    relocator(medium).reached(line)
}
