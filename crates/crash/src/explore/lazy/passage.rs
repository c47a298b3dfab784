//! The classes of images that crashes of one execution leave.
//!
//! The execution is the workload, which starts from known contents, or a recovery, which starts from contents that the
//! crash before may have left.

use std::rc::Rc;

use firn_media::Domain;
use rustc_hash::FxHashMap;

use crate::explore::lazy::candidates::Candidates;
use crate::explore::lazy::class::ImageClass;
use crate::explore::lazy::narrowing::{Filter, Narrowing};
use crate::explore::lazy::unsettled::{Change, Unsettled};
use crate::explore::lazy::walk::Lazy;
use crate::explore::options::Failure;
use crate::memory::cells::{Line, index_of, line_of};
use crate::memory::event::{Event, changes_device};

/// Which changes became durable when, for the lines that an execution stores to.
#[derive(Default)]
pub(crate) struct Passage {
    lines: FxHashMap<usize, Unsettled>,
    /// Per thread, the write-backs that no fence has followed: slot and step.
    issued: Vec<Vec<(usize, u64)>>,
    step: u64,
    /// A line that was stored to, and for which the class is not up to date yet.
    stale: Option<usize>,
    /// Former contents of the class, in the order of its changes.
    before: Vec<(usize, Rc<Candidates>)>,
}

/// Images that an event made possible.
enum New {
    /// Every image: an oracle's expectation has changed.
    All,
    /// Those with a line at a content that the event made; each follows the line's content before the execution.
    Line(usize, Vec<(Line, Line)>),
}

/// Consecutive stores to one line, with nothing between them that changes another line or an oracle's expectation: a
/// crash after any of them leaves equal contents of all other lines. So their images are one class.
#[derive(Default)]
struct Stored {
    slot: usize,
    left: Vec<Left>,
}

/// The result of a store to a line.
struct Left {
    /// Number of events up to and including the store.
    done: usize,
    /// The line's content before the execution.
    origin: Line,
    content: Line,
}

impl Stored {
    fn take_in(&mut self, slot: usize, done: usize, contents: Vec<(Line, Line)>) {
        self.slot = slot;
        let left = contents.into_iter().map(|(origin, content)| Left {
            done,
            origin,
            content,
        });
        self.left.extend(left);
    }
}

/// When a store is guaranteed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Durability {
    AtOnce,
    /// Stores are guaranteed at once, holes only at a sync.
    Stores,
    ByFence,
    BySync,
}

impl Passage {
    fn set(&mut self, class: &mut ImageClass, slot: usize, candidates: Candidates) {
        let before = class.set(slot, Rc::new(candidates));
        self.before.push((slot, before));
    }

    /// Applies what the execution looked at before its next event.
    fn filter(&mut self, class: &mut ImageClass, filter: &Filter) {
        match self.lines.get_mut(&filter.slot) {
            Some(line) => {
                match filter.narrowing {
                    // The execution has not stored to the word since, except by the line's completion.
                    Narrowing::Word(word, value) => line.keep(|content| content[word] == value),
                    Narrowing::Line | Narrowing::Marked(_) | Narrowing::Begins => {
                        line.keep(|content| filter.kept.has(content));
                    }
                    // Nothing is narrowed, or the events themselves say what became of the line.
                    Narrowing::Begun | Narrowing::Ends { .. } => return,
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

    /// Changes a line. Returns what a crash may leave of it now and could not before.
    fn change(
        &mut self,
        class: &mut ImageClass,
        slot: usize,
        change: Change,
        durability: Durability,
    ) -> Option<Vec<(Line, Line)>> {
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
        let newest = line.newest().collect();
        self.stale = Some(slot);
        Some(newest)
    }

    /// Whether an event leaves all lines as they are, except the line that was stored to last.
    fn goes_on(&self, event: &Event, class: &ImageClass) -> bool {
        let is_same = |slot| event.stores_to() == Some(class.line(slot));
        matches!(event, Event::WriteBack { .. }) || self.stale.is_none_or(is_same)
    }

    /// Updates the class for the line that was stored to last: what a crash may leave of it now.
    fn settle_stored(&mut self, class: &mut ImageClass) {
        if let Some(slot) = self.stale.take() {
            self.settle(class, slot);
        }
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

    /// Restores the class to its state before the execution.
    fn undo(self, class: &mut ImageClass) {
        for (slot, candidates) in self.before.into_iter().rev() {
            class.set(slot, candidates);
        }
    }
}

impl Lazy<'_, '_> {
    fn durability(&self) -> Durability {
        match (self.walker.domain(), self.walker.options.failure) {
            (Domain::Process, Failure::Kill) => Durability::AtOnce,
            (Domain::Process, Failure::Power) => Durability::BySync,
            (Domain::Eadr, _) => Durability::Stores,
            (Domain::Adr, _) => Durability::ByFence,
            (Domain::Logged, _) => unreachable!("the prefixes of a log are tried one by one"),
        }
    }

    /// Visits the classes of new images, from event number `from` on, of an execution that starts on the images of the
    /// current class, as narrowed by its loads, `filters`.
    pub(crate) fn pass(&mut self, events: &[Event], filters: &[Filter], depth: u32, from: u32) {
        let mut passage = Passage::default();
        let durability = self.durability();
        let mut filters = filters.iter().peekable();
        let (mut done, mut stored) = (0, Stored::default());
        for (index, event) in events.iter().enumerate() {
            let is_filtered = |filter: &&Filter| filter.at as usize <= index;
            if filters.peek().is_some_and(is_filtered) || !passage.goes_on(event, &self.class) {
                self.visit_stored(&passage, &mut stored, depth);
                passage.settle_stored(&mut self.class);
            }
            if self.stopped {
                break;
            }
            while let Some(filter) = filters.next_if(is_filtered) {
                passage.filter(&mut self.class, filter);
            }
            let new = self.take_in(&mut passage, event, durability, depth);
            done = index + 1;
            let is_tried = done as u32 >= from;
            if is_tried && (new.is_some() || changes_device(events, index)) {
                self.walker.report.events += 1;
                match new {
                    Some(New::Line(slot, left)) => stored.take_in(slot, done, left),
                    Some(New::All) | None => self.visit_all(&passage, depth, done),
                }
            }
        }
        if !self.stopped {
            self.visit_stored(&passage, &mut stored, depth);
        }
        passage.undo(&mut self.class);
        for event in events[..done].iter().rev() {
            if let Event::Length { .. } | Event::Backing { .. } = event {
                event.undo(&self.walker.crash.shared.memory);
            }
        }
    }

    /// Applies an event to the class. Returns the images that it makes possible: all, or those with a line at its
    /// newest.
    fn take_in(
        &mut self,
        passage: &mut Passage,
        event: &Event,
        durability: Durability,
        depth: u32,
    ) -> Option<New> {
        let class = &mut self.class;
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
                event.redo(&self.walker.crash.shared.memory);
                return None;
            }
            Event::Backing { .. } => {
                event.redo(&self.walker.crash.shared.memory);
                return None;
            }
            Event::Append { .. } | Event::Durable { .. } => {
                unreachable!("only a medium with a log has records")
            }
            Event::Commit { .. } | Event::Note { .. } => {
                return (depth == 0 && self.walker.acknowledge(event)).then_some(New::All);
            }
        };
        let slot = class.slot_of(line)?;
        let newest = passage.change(class, slot, change, durability)?;
        Some(New::Line(slot, newest))
    }

    /// Visits the class after an event.
    fn visit_all(&mut self, passage: &Passage, depth: u32, done: usize) {
        self.visit_new(passage, depth, done, |_| None);
    }

    /// Visits the class with a line at any of its consecutive stored contents, if there are any.
    fn visit_stored(&mut self, passage: &Passage, stored: &mut Stored, depth: u32) {
        let Stored { slot, left } = core::mem::take(stored);
        let Some(last) = left.last() else { return };
        let class = &mut self.class;
        let contents = left.iter().map(|left| left.content).collect();
        let candidates = Candidates::new(class.line(slot), contents);
        let before = class.set(slot, Rc::new(candidates));
        self.visit_new(passage, depth, last.done, |image| {
            let found = left.iter().find(|left| left.content == image[slot]);
            found.map(|left| (left.done, slot, left.origin))
        });
        self.class.set(slot, before);
    }

    /// Visits the class. For an image, `store` returns the event after which it is one, and the stored line's content
    /// before the execution; `None` if these are as after event `done`.
    fn visit_new(
        &mut self,
        passage: &Passage,
        depth: u32,
        done: usize,
        store: impl Fn(&[Line]) -> Option<(usize, usize, Line)>,
    ) {
        if depth == 0 {
            self.walker.state.event = done;
        }
        let failures = self.failures.len();
        self.visit_class(depth);
        for failed in &mut self.failures[failures..] {
            let mut origin = passage.origin(&self.class, &failed.image);
            let stored = store(&failed.image);
            if let Some((_, slot, before)) = stored {
                origin[slot] = before;
            }
            let done = stored.map_or(done, |(done, ..)| done);
            let left = core::mem::replace(&mut failed.image, origin);
            failed.crashes.push((done, left));
        }
    }
}
