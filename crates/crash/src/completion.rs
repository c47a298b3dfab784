//! Lines of copies that recovery completes unless they reached persistence, without telling apart which did.
//!
//! Hardware that settles a copy line by line (FFCCD, section 4.1) leaves any set of its lines marked, and recovery
//! copies the others once more. What it does to a line depends on that line alone, and it goes on in the same way
//! ([`firn_media::Medium::unless_reached`]), so n lines need not be 2^n runs. A run completes the lines of an image
//! of which none is marked that might not be; then every content that was unmarked is what the run made of it, and
//! one that was marked and is the same already goes on with it. Those that are marked and something else, because a
//! commit changed them since, go their own way. A crash in recovery leaves of an unmarked line any prefix of what the
//! completion stores; of a marked one, which holds all of that, it leaves what it was.
//!
//! A copy of which nothing is marked is left alone ([`firn_media::Medium::any_reached`]). Which of its lines is the
//! first that is marked would be n ways to complete it. Of the lines that may be marked or not, the first two are
//! tried as the first: so each line is completed in one of them, and is there already in the other. Copies of
//! which both are unmarked are tried with nothing marked.

use core::ops::Range;
use std::rc::Rc;

use crate::candidates::Candidates;
use crate::class::ImageClass;
use crate::footprint::{FirstLoad, Looked};
use crate::lazy::{Filter, Narrowing};
use crate::memory::{Line, MARK, mark_of};
use crate::overlay::Stored;
use crate::shared::Shared;
use crate::trace::Event;
use crate::walk::Walker;

/// Lines of a copy that are tried as the first that is marked.
const TRIED_AS_FIRST: usize = 2;

/// The completion of a line in a run: which events it was.
pub(crate) struct Completed {
    line: u64,
    events: Range<usize>,
}

impl Completed {
    /// Those of a run with these loads.
    pub(crate) fn all(loads: &[FirstLoad]) -> Vec<Self> {
        let mut all = Vec::new();
        let mut begun = 0;
        for load in loads {
            match load.what {
                Looked::Begins(_) => begun = load.at as usize,
                Looked::Ends(line) => all.push(Self {
                    line,
                    events: begun..load.at as usize,
                }),
                Looked::Word(_) | Looked::Scans(_) | Looked::Scanned(_) => {}
            }
        }
        all
    }

    /// Whether a store to `line`, event number `index`, belongs to it.
    pub(crate) fn has(&self, line: u64, index: usize) -> bool {
        self.line == line && self.events.contains(&index)
    }

    /// What it stores.
    fn stored(&self, trace: &[Event]) -> Stored {
        let events = &trace[self.events.clone()];
        let lines = events.iter().filter_map(Event::stores_to);
        assert!(
            lines.clone().all(|line| line == self.line),
            "what completes a line stores to it alone"
        );
        Stored::to_line(self.line, events)
    }
}

/// What completions made of unmarked lines, numbered as they are met.
#[derive(Default)]
pub(crate) struct Completions {
    stored: Vec<Stored>,
    numbers: rustc_hash::FxHashMap<Stored, u64>,
    /// Of the completions that the walk is in, contents that go their own way.
    apart: Vec<Vec<Line>>,
}

impl Completions {
    pub(crate) fn number(&mut self, stored: Stored) -> u64 {
        *self.numbers.entry(stored).or_insert_with(|| {
            self.stored.push(stored);
            self.stored.len() as u64 - 1
        })
    }
}

fn is_unmarked(content: &Line) -> bool {
    content[MARK] == 0
}

impl Shared {
    /// Begins to complete a line, where which lines are marked need not be recorded. Whether it is unmarked.
    pub(crate) fn begin_completion(&self, line: u64) -> Option<bool> {
        if !self.spares_mark(line) {
            return None;
        }
        let unmarked = self.memory.load(mark_of(line)) == 0;
        self.footprint
            .record(Looked::Begins(line), u64::from(unmarked));
        Some(unmarked)
    }

    /// Whether a line of a copy is marked.
    pub(crate) fn any_marked(&self, mut lines: Range<u64>) -> bool {
        let mut scans = false;
        let is_marked = |line| {
            if !self.spares_mark(line) {
                return self.load(mark_of(line)) != 0;
            }
            if !core::mem::replace(&mut scans, true) {
                self.footprint.record(Looked::Scans(line), 0);
            }
            let is_marked = self.memory.load(mark_of(line)) != 0;
            self.memory.clear_fresh_word(mark_of(line));
            let what = Looked::Scanned(line);
            self.footprint.record(what, u64::from(is_marked));
            is_marked
        };
        lines.any(is_marked)
    }

    /// Whether the mark of a line may differ from image to image, and not everything need be recorded: of a line
    /// that the run stored to, the class at hand does not have what it holds.
    fn spares_mark(&self, line: u64) -> bool {
        let (_, is_fresh) = self.memory.look(mark_of(line));
        let spares = || self.footprint.with_torn(|torn| torn.spares());
        if !is_fresh || self.simulating() || self.is_dead() || !spares() {
            return false;
        }
        let state = self.lock();
        let mut stored_to = state.trace.iter().flatten().filter_map(Event::stores_to);
        !stored_to.any(|stored| stored == line)
    }

    /// An unmarked line is complete: from here on it is like one that was marked.
    pub(crate) fn end_completion(&self, line: u64) {
        assert!(
            self.memory.load(mark_of(line)) != 0,
            "a line that was completed is marked"
        );
        self.footprint.record(Looked::Ends(line), 0);
        self.memory.mark_fresh(line);
    }
}

impl Walker<'_> {
    /// Goes on in the tree from `node` with all images of the class at hand, where marks of a copy begin to be looked
    /// at.
    pub(crate) fn begin_scan(
        &mut self,
        depth: u32,
        known: u128,
        (node, at): (u32, u32),
        slot: usize,
        from: u32,
    ) -> bool {
        let now = Rc::clone(self.lazy.class.get(slot));
        let (_, next) = self.lazy.decisions(depth).only(node);
        self.narrowed(at, slot, Narrowing::Scans, now, |walker| {
            walker.refine(depth, known, next, from)
        })
    }

    /// The same where one of these marks is looked at.
    pub(crate) fn scan(
        &mut self,
        depth: u32,
        known: u128,
        (node, at): (u32, u32),
        slot: usize,
        mut from: u32,
    ) -> bool {
        let line = self.lazy.class.line(slot);
        let (unmarked, marked): (Vec<Line>, Vec<Line>) = {
            let contents = self.lazy.class.get(slot).contents();
            contents.partition(|content| is_unmarked(content))
        };
        let may_be_either = !unmarked.is_empty() && !marked.is_empty();
        let splits = self.splits().iter().rev();
        let scan = splits.take_while(|split| !matches!(split.narrowing, Narrowing::Scans));
        let tried = scan.filter(|split| matches!(split.narrowing, Narrowing::Unmarked));
        let tries_marked = unmarked.is_empty() || may_be_either && tried.count() < TRIED_AS_FIRST;
        let mut crashed = false;
        for (contents, value) in [(unmarked, 0), (marked, 1)] {
            if contents.is_empty() || value == 1 && !tries_marked || self.lazy.stopped {
                continue;
            }
            let narrowing = match value == 0 && may_be_either {
                true => Narrowing::Unmarked,
                false => Narrowing::Line,
            };
            let kept = Rc::new(Candidates::new(line, contents));
            let is_crashed = self.narrowed(at, slot, narrowing, kept, |walker| {
                let next = walker.follow(depth, known, |tree| tree.next(node, value));
                next.is_some_and(|next| walker.refine(depth, known, next, from))
            });
            if is_crashed {
                from = from.max(at + 1);
                crashed = true;
            }
        }
        crashed
    }

    /// Does something while a line of the class at hand is narrowed.
    fn narrowed<R>(
        &mut self,
        at: u32,
        slot: usize,
        narrowing: Narrowing,
        kept: Rc<Candidates>,
        what: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let before = self.lazy.class.set(slot, Rc::clone(&kept));
        self.splits().push(Filter {
            at,
            slot,
            narrowing,
            kept,
            before: Rc::clone(&before),
        });
        let done = what(self);
        self.splits().pop();
        self.lazy.class.set(slot, before);
        done
    }

    /// Goes on in the tree from `node` with all images of the class at hand, where the line of a slot begins to be
    /// completed.
    pub(crate) fn begin_completion(
        &mut self,
        depth: u32,
        known: u128,
        (node, at): (u32, u32),
        slot: usize,
        mut from: u32,
    ) -> bool {
        let now = Rc::clone(self.lazy.class.get(slot));
        let marked = || now.contents().filter(|line| !is_unmarked(line));
        let (mut apart, mut crashed) = (marked().copied().collect(), false);
        if marked().count() < now.len() {
            self.lazy.completions.apart.push(Vec::new());
            let begins = Narrowing::Begins;
            let is_crashed = self.narrowed(at, slot, begins, Rc::clone(&now), |walker| {
                let next = walker.follow(depth, known, |tree| tree.next(node, 1));
                next.is_some_and(|next| walker.refine(depth, known, next, from))
            });
            if is_crashed {
                from = from.max(at + 1);
                crashed = true;
            }
            apart = self.lazy.completions.apart.pop().expect("pushed above");
        }
        if !apart.is_empty() && !self.lazy.stopped {
            let apart = Rc::new(Candidates::new(self.lazy.class.line(slot), apart));
            crashed |= self.narrowed(at, slot, Narrowing::Line, apart, |walker| {
                let next = walker.follow(depth, known, |tree| tree.next(node, 0));
                next.is_some_and(|next| walker.refine(depth, known, next, from))
            });
        }
        crashed
    }

    /// The same where it is complete.
    pub(crate) fn end_completion(
        &mut self,
        depth: u32,
        known: u128,
        (node, at): (u32, u32),
        slot: usize,
        from: u32,
    ) -> bool {
        let (number, next) = self.lazy.decisions(depth).only(node);
        let stored = self.lazy.completions.stored[number as usize];
        let before = Rc::clone(self.lazy.class.get(slot));
        let line = self.lazy.class.line(slot);
        let unmarked = before.contents().filter(|content| is_unmarked(content));
        let complete = Candidates::new(line, unmarked.map(|one| stored.applied(one)).collect());
        let (joined, apart): (Vec<Line>, Vec<Line>) = before
            .contents()
            .partition(|content| is_unmarked(content) || complete.has(content));
        let joined = Rc::new(Candidates::new(line, joined));
        let complete = Rc::new(complete);
        let others = self.lazy.completions.apart.last_mut();
        others.expect("a completion began").extend(apart);

        let splits = self.splits();
        let begins =
            |filter: &Filter| filter.slot == slot && matches!(filter.narrowing, Narrowing::Begins);
        let begun = splits.iter().rposition(begins).expect("it began");
        let whole = core::mem::replace(&mut splits[begun].kept, Rc::clone(&joined));
        let ends = Narrowing::Ends { stored, joined };
        let crashed = self.narrowed(at, slot, ends, complete, |walker| {
            walker.refine(depth, known, next, from)
        });
        self.splits()[begun].kept = whole;
        crashed
    }

    /// Has the class at hand hold what its lines were before they were completed, for a run; what they are now.
    pub(crate) fn uncomplete(&mut self) -> Vec<(usize, Rc<Candidates>)> {
        let class = &mut self.lazy.class;
        let splits = self.lazy.filters.last().into_iter().flatten();
        let mut now = Vec::new();
        for filter in splits {
            if let Narrowing::Ends { stored, joined } = &filter.narrowing {
                let is_kept = |content: &&Line| {
                    is_unmarked(content) && class.get(filter.slot).has(&stored.applied(content))
                };
                let before = joined.contents().filter(is_kept).copied().collect();
                let before = Candidates::new(class.line(filter.slot), before);
                now.push((filter.slot, class.set(filter.slot, Rc::new(before))));
            }
        }
        now
    }

    /// The image of the class at hand that a run takes, before its lines were completed.
    pub(crate) fn uncompleted_image(&mut self) -> Vec<Line> {
        let now = self.uncomplete();
        let image = self.lazy.class.image();
        self.complete_again(now);
        image
    }

    /// Undoes [`Walker::uncomplete`].
    pub(crate) fn complete_again(&mut self, now: Vec<(usize, Rc<Candidates>)>) {
        let class: &mut ImageClass = &mut self.lazy.class;
        for (slot, candidates) in now.into_iter().rev() {
            class.set(slot, candidates);
        }
    }

    /// Numbers of what the completions in a run stored, in their order.
    pub(crate) fn number(&mut self, completed: &[Completed], trace: &[Event]) -> Vec<u64> {
        let stored = completed.iter().map(|part| part.stored(trace));
        stored
            .map(|one| self.lazy.completions.number(one))
            .collect()
    }
}
