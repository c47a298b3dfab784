//! Which images continue together where a run records something about a copy.

use std::rc::Rc;

use super::{Completed, is_complete, is_unmarked};
use crate::explore::lazy::candidates::Candidates;
use crate::explore::lazy::narrowing::{Filter, Narrowing};
use crate::explore::lazy::walk::Lazy;
use crate::memory::cells::{Line, MARK};
use crate::memory::event::Event;
use crate::memory::footprint::Scan;

/// Lines of a copy that are tried as its marked line.
const TRIED_AS_MARKED: usize = 2;

/// Which images of a class continue together from the question whether any line of a copy is marked.
enum Way {
    /// All of them: one line is marked.
    Begun,
    /// Those in which no line is marked.
    Unmarked,
    /// Those in which the line of this slot is marked.
    Marked(usize, Narrowing),
}

impl Lazy<'_, '_> {
    /// Continues in the tree from `node` with all images of the current class, at the question whether any line of a
    /// copy is marked. The slot's line belongs to that copy.
    pub(crate) fn scan(
        &mut self,
        depth: u32,
        known: u128,
        (node, at): (u32, u32),
        slot: usize,
        mut from: u32,
    ) -> bool {
        let (value, _) = self.decisions[depth as usize].only(node);
        let (lines, class) = (Scan::of_value(value).lines, &self.class);
        let first = class.line(slot);
        let slots: Vec<usize> = (first..first + lines)
            .filter_map(|line| class.slot_of(line))
            .collect();
        let is_mixed = |&slot: &usize| class.get(slot).agreed(MARK).is_none();
        let mixed: Vec<usize> = slots.iter().copied().filter(is_mixed).collect();
        let is_marked = |&slot: &usize| class.get(slot).agreed(MARK) == Some(1);
        let is_begun = slots.iter().any(is_marked);
        let ways = match is_begun {
            true => vec![Way::Begun],
            false => self.ways(&mixed),
        };
        let mut crashed = false;
        for way in ways {
            let is_marked = !matches!(way, Way::Unmarked);
            let value = Scan { lines, is_marked }.value();
            let go_on = |walk: &mut Self| walk.go_on(depth, known, (node, value), from);
            let begun = |walk: &mut Self| {
                let now = Rc::clone(walk.class.get(slot));
                walk.narrowed(at, slot, Narrowing::Begun, now, go_on)
            };
            let is_crashed = match way {
                Way::Begun => begun(self),
                Way::Unmarked => self.unmarked(at, &mixed, &mut |walk| go_on(walk)),
                Way::Marked(slot, narrowing) => {
                    let kept = Rc::new(self.class.get(slot).with(MARK, 1));
                    self.narrowed(at, slot, narrowing, kept, begun)
                }
            };
            if is_crashed {
                from = from.max(at + 1);
                crashed = true;
            }
            if self.stopped {
                break;
            }
        }
        crashed
    }

    /// How the images of a class continue, for a copy in which these lines and no others may be marked.
    fn ways(&mut self, mixed: &[usize]) -> Vec<Way> {
        let nth = |filter: &Filter| match filter.narrowing {
            Narrowing::Marked(nth) => Some(nth),
            _ => None,
        };
        let marked = |nth: usize| Way::Marked(mixed[nth], Narrowing::Marked(nth));
        let mut ways = vec![Way::Unmarked];
        match (mixed, self.splits().iter().find_map(nth)) {
            ([], _) => {}
            (&[only], _) => ways.push(Way::Marked(only, Narrowing::Line)),
            (_, Some(nth)) => ways.push(marked(nth)),
            (_, None) => ways.extend((0..TRIED_AS_MARKED).map(marked)),
        }
        ways
    }

    /// Calls `what` while the lines of these slots are narrowed to contents without a mark.
    fn unmarked(
        &mut self,
        at: u32,
        slots: &[usize],
        what: &mut dyn FnMut(&mut Self) -> bool,
    ) -> bool {
        let Some((&slot, rest)) = slots.split_first() else {
            return what(self);
        };
        let kept = Rc::new(self.class.get(slot).with(MARK, 0));
        self.narrowed(at, slot, Narrowing::Line, kept, |walk| {
            walk.unmarked(at, rest, what)
        })
    }

    /// Calls `what` while a line of the current class is narrowed.
    fn narrowed<R>(
        &mut self,
        at: u32,
        slot: usize,
        narrowing: Narrowing,
        kept: Rc<Candidates>,
        what: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let before = self.class.set(slot, Rc::clone(&kept));
        self.splits().push(Filter {
            at,
            slot,
            narrowing,
            kept,
            before: Rc::clone(&before),
        });
        let done = what(self);
        self.splits().pop();
        self.class.set(slot, before);
        done
    }

    /// Continues in the tree from `node` with all images of the current class, where the completion of a slot's line
    /// begins.
    pub(crate) fn begin_completion(
        &mut self,
        depth: u32,
        known: u128,
        (node, at): (u32, u32),
        slot: usize,
        mut from: u32,
    ) -> bool {
        let now = Rc::clone(self.class.get(slot));
        let marked = || now.contents().filter(|line| !is_unmarked(line));
        let (mut apart, mut crashed) = (marked().copied().collect(), false);
        let line = self.class.line(slot);
        // Where all are marked, the run would begin on no image of the class. So it is tried only if all of them are
        // likely to join it.
        let is_tried = marked().count() < now.len() || self.completions.joins(line, &now);
        if is_tried {
            self.completions.apart.push(Vec::new());
            let begins = Narrowing::Begins;
            let is_crashed = self.narrowed(at, slot, begins, Rc::clone(&now), |walk| {
                walk.go_on(depth, known, (node, 1), from)
            });
            if is_crashed {
                from = from.max(at + 1);
                crashed = true;
            }
            apart = self.completions.apart.pop().expect("pushed above");
        }
        if !apart.is_empty() && !self.stopped {
            let apart = Rc::new(Candidates::new(line, apart));
            crashed |= self.narrowed(at, slot, Narrowing::Line, apart, |walk| {
                walk.go_on(depth, known, (node, 0), from)
            });
        }
        crashed
    }

    /// Continues where the completion of a line ends.
    pub(crate) fn end_completion(
        &mut self,
        depth: u32,
        known: u128,
        (node, at): (u32, u32),
        slot: usize,
        from: u32,
    ) -> bool {
        let (number, next) = self.decisions[depth as usize].only(node);
        let stored = self.completions.stored[number as usize];
        let before = Rc::clone(self.class.get(slot));
        let line = self.class.line(slot);
        self.completions.last.insert(line, stored);
        let (joined, apart): (Vec<Line>, Vec<Line>) = before
            .contents()
            .partition(|content| is_unmarked(content) || is_complete(content, &stored));
        let others = self.completions.apart.last_mut();
        others.expect("a completion began").extend(apart);
        if joined.is_empty() {
            return false;
        }
        let complete = joined.iter().map(|one| stored.applied(one)).collect();
        let complete = Rc::new(Candidates::new(line, complete));
        let joined = Rc::new(Candidates::new(line, joined));

        let splits = self.splits();
        let begins =
            |filter: &Filter| filter.slot == slot && matches!(filter.narrowing, Narrowing::Begins);
        let begun = splits.iter().rposition(begins).expect("it began");
        let whole = core::mem::replace(&mut splits[begun].kept, Rc::clone(&joined));
        let ends = Narrowing::Ends { stored, joined };
        let crashed = self.narrowed(at, slot, ends, complete, |walk| {
            walk.refine(depth, known, next, from)
        });
        self.splits()[begun].kept = whole;
        crashed
    }

    /// Numbers the stored contents of a run's completions, in order.
    pub(crate) fn number(&mut self, completed: &[Completed], trace: &[Event]) -> Vec<u64> {
        let stored = completed.iter().map(|part| part.stored(trace));
        stored.map(|one| self.completions.number(one)).collect()
    }
}
