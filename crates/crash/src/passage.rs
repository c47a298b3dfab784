//! The classes of images that crashes of one execution leave.
//!
//! The execution is the workload, from contents that are known, or a recovery, from those that the
//! crash before may have left.

use std::rc::Rc;

use firn_media::Domain;
use rustc_hash::FxHashMap;

use crate::candidates::Candidates;
use crate::class::ImageClass;
use crate::explorer::Failure;
use crate::lazy::{Failed, Filter, Narrowing};
use crate::memory::{Line, index_of, line_of};
use crate::trace::{Event, changes_device};
use crate::unsettled::{Change, Unsettled};
use crate::walk::Walker;

/// What became durable when, of the lines that an execution stores to.
#[derive(Default)]
pub(crate) struct Passage {
    lines: FxHashMap<usize, Unsettled>,
    /// Per thread, the write-backs that no fence followed: slot and step.
    issued: Vec<Vec<(usize, u64)>>,
    step: u64,
    /// What the class held before, in the order of its changes.
    before: Vec<(usize, Rc<Candidates>)>,
}

/// When a store is guaranteed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Durability {
    AtOnce,
    /// Stores are, holes only at a sync.
    Stores,
    ByFence,
    BySync,
}

impl Passage {
    fn set(&mut self, class: &mut ImageClass, slot: usize, candidates: Candidates) {
        let before = class.set(slot, Rc::new(candidates));
        self.before.push((slot, before));
    }

    /// Takes in what the execution looked at before its next event.
    fn filter(&mut self, class: &mut ImageClass, filter: &Filter) {
        match self.lines.get_mut(&filter.slot) {
            Some(line) => {
                match filter.narrowing {
                    // It did not store to the word since, but by the line's completion.
                    Narrowing::Word(word, value) => line.keep(|content| content[word] == value),
                    Narrowing::Line | Narrowing::Unmarked | Narrowing::Begins => {
                        line.keep(|content| filter.kept.has(content));
                    }
                    // Nothing is narrowed, or the events say what became of the line.
                    Narrowing::Scans | Narrowing::Ends { .. } => return,
                }
                self.settle(class, filter.slot);
            }
            None => {
                let before = class.set(filter.slot, Rc::clone(&filter.kept));
                self.before.push((filter.slot, before));
            }
        }
    }

    /// Recomputes what a crash may leave of a line.
    fn settle(&mut self, class: &mut ImageClass, slot: usize) {
        let candidates = self.lines[&slot].candidates(class.line(slot));
        self.set(class, slot, candidates);
    }

    /// Does something to a line; what a crash now may leave of it that none before could.
    fn change(
        &mut self,
        class: &mut ImageClass,
        slot: usize,
        change: Change,
        durability: Durability,
    ) -> Option<Candidates> {
        let unsettled = || Unsettled::new(class.get(slot));
        let line = self.lines.entry(slot).or_insert_with(unsettled);
        if !line.changes(change) {
            return None;
        }
        self.step += 1;
        let durable = match durability {
            Durability::AtOnce => true,
            Durability::Stores => matches!(change, Change::Word(..)) && !line.is_pending(),
            Durability::ByFence | Durability::BySync => false,
        };
        line.push(self.step, change);
        if durable {
            line.guarantee(self.step);
        }
        let newest = line.newest(class.line(slot));
        self.settle(class, slot);
        Some(newest)
    }

    fn write_back(&mut self, thread: usize, slot: usize) {
        if self.lines.get(&slot).is_some_and(Unsettled::is_pending) {
            if self.issued.len() <= thread {
                self.issued.resize_with(thread + 1, Vec::new);
            }
            self.issued[thread].push((slot, self.step));
        }
    }

    fn fence(&mut self, class: &mut ImageClass, thread: usize) {
        let issued = self.issued.get_mut(thread).map(core::mem::take);
        for (slot, step) in issued.into_iter().flatten() {
            let line = self.lines.get_mut(&slot);
            if line.is_some_and(|line| line.guarantee(step)) {
                self.settle(class, slot);
            }
        }
    }

    /// Makes the changes of all lines at or beyond `first` durable.
    fn sync(&mut self, class: &mut ImageClass, first: u64) {
        let all = self.lines.iter_mut();
        let beyond = all.filter(|(slot, _)| class.line(**slot) >= first);
        let changed: Vec<usize> = beyond
            .filter_map(|(&slot, line)| line.guarantee(self.step).then_some(slot))
            .collect();
        for slot in changed {
            self.settle(class, slot);
        }
    }

    /// An image before the execution that could become `left`.
    pub(crate) fn origin(&self, class: &ImageClass, left: &[Line]) -> Vec<Line> {
        let content = |(slot, left): (usize, &Line)| match self.lines.get(&slot) {
            Some(line) => line.origin_of(left).unwrap_or_else(|| *class.base(slot)),
            None => *left,
        };
        left.iter().enumerate().map(content).collect()
    }

    /// Takes the class back to where it was before the execution.
    fn undo(self, class: &mut ImageClass) {
        for (slot, candidates) in self.before.into_iter().rev() {
            class.set(slot, candidates);
        }
    }
}

impl Walker<'_> {
    fn durability(&self) -> Durability {
        match (self.domain(), self.options.failure) {
            (Domain::Process, Failure::Kill) => Durability::AtOnce,
            (Domain::Process, Failure::Power) => Durability::BySync,
            (Domain::Eadr, _) => Durability::Stores,
            (Domain::Adr, _) => Durability::ByFence,
        }
    }

    /// Visits the class of new images at every event from number `from` on of an execution that
    /// starts on the images of the class at hand, as narrowed by its loads, `filters`.
    pub(crate) fn pass(&mut self, events: &[Event], filters: &[Filter], depth: u32, from: u32) {
        let mut passage = Passage::default();
        let durability = self.durability();
        let mut filters = filters.iter().peekable();
        let mut done = 0;
        for (index, event) in events.iter().enumerate() {
            while let Some(filter) = filters.next_if(|filter| filter.at as usize <= index) {
                passage.filter(&mut self.lazy.class, filter);
            }
            let mut new = self.take_in(&mut passage, event, durability, depth);
            if changes_device(events, index) {
                new = Some(None);
            }
            done = index + 1;
            if let Some(fixed) = new
                && done as u32 >= from
            {
                self.report.events += 1;
                self.visit_new(&mut passage, fixed, depth, done);
            }
            if self.lazy.stopped {
                break;
            }
        }
        passage.undo(&mut self.lazy.class);
        for event in events[..done].iter().rev() {
            if let Event::Length { .. } | Event::Backing { .. } = event {
                event.undo(&self.crash.shared.memory);
            }
        }
    }

    /// Does an event to the class. If it makes images possible: all of them, or those with a line
    /// at its newest.
    fn take_in(
        &mut self,
        passage: &mut Passage,
        event: &Event,
        durability: Durability,
        depth: u32,
    ) -> Option<Option<(usize, Candidates)>> {
        let class = &mut self.lazy.class;
        let (line, change) = match *event {
            Event::Store { word, new, .. } => {
                let index = index_of(word) as u8;
                (line_of(word), Change::Word(index, new))
            }
            Event::Zero { line, .. } => (line, Change::Zero),
            Event::WriteBack { thread, line } => {
                if durability == Durability::ByFence
                    && let Some(slot) = class.slot_of(line)
                {
                    passage.write_back(usize::from(thread), slot);
                }
                return None;
            }
            Event::Fence { thread } => {
                passage.fence(class, usize::from(thread));
                return None;
            }
            Event::Sync { .. } => {
                passage.sync(class, 0);
                return None;
            }
            Event::Length { old, new, .. } => {
                if new < old {
                    passage.sync(class, new.div_ceil(firn_units::LINE_BYTES));
                }
                event.redo(&self.crash.shared.memory);
                return None;
            }
            Event::Backing { .. } => {
                event.redo(&self.crash.shared.memory);
                return None;
            }
            Event::Commit { .. } | Event::Note { .. } => {
                return (depth == 0 && self.acknowledge(event)).then_some(None);
            }
        };
        let slot = class.slot_of(line)?;
        let newest = passage.change(class, slot, change, durability)?;
        Some(Some((slot, newest)))
    }

    /// Visits the class, with one line fixed if there is one.
    fn visit_new(
        &mut self,
        passage: &mut Passage,
        fixed: Option<(usize, Candidates)>,
        depth: u32,
        done: usize,
    ) {
        if depth == 0 {
            self.state.event = done;
        }
        let failures = self.lazy.failures.len();
        let class = &mut self.lazy.class;
        let before = fixed.map(|(slot, newest)| (slot, class.set(slot, Rc::new(newest))));
        self.visit_class(depth);
        if let Some((slot, before)) = before {
            self.lazy.class.set(slot, before);
        }
        for failed in &mut self.lazy.failures[failures..] {
            let origin = passage.origin(&self.lazy.class, &failed.image);
            let left = core::mem::replace(&mut failed.image, origin);
            failed.crashes.push((done, left));
        }
    }
}

impl Failed {
    /// The crashes, the first one first: events done, and every line by slot.
    pub(crate) fn in_order(self) -> (String, Vec<(usize, Vec<Line>)>) {
        let mut crashes = self.crashes;
        crashes.reverse();
        (self.message, crashes)
    }
}
