//! The image on which a run begins, and the image of the current class that it stands for.

use std::rc::Rc;

use super::without_marks;
use crate::explore::lazy::candidates::Candidates;
use crate::explore::lazy::class::ImageClass;
use crate::explore::lazy::narrowing::{Filter, Narrowing};
use crate::explore::lazy::walk::Lazy;
use crate::memory::cells::Line;

/// How a run sees lines that are certainly marked and will most likely hold the same once they are complete.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marks {
    /// As unmarked.
    Hidden,
    Shown,
}

/// A class that holds what a run begins on.
#[derive(Default)]
pub(crate) struct Uncompleted {
    /// What lines hold in the current class, by slot.
    pub(crate) now: Vec<(usize, Rc<Candidates>)>,
    /// Lines that count as marked.
    pub(crate) marked: Vec<u64>,
    /// Whether some of them are marked in the current class, but not in what the run begins on.
    pub(crate) hides: bool,
}

impl Lazy<'_, '_> {
    /// Copies with a marked line in the current class, each by the line that says so:
    /// [`crate::memory::footprint::Looked::Scans`] names it.
    fn begun_copies(&self) -> Vec<u64> {
        let filters = self.filters.last().into_iter().flatten();
        let begun = filters.filter(|filter| matches!(filter.narrowing, Narrowing::Begun));
        begun.map(|filter| self.class.line(filter.slot)).collect()
    }

    /// Makes the current class hold what a run begins on.
    pub(crate) fn uncomplete(&mut self, marks: Marks) -> Uncompleted {
        let mut uncompleted = Uncompleted {
            now: self.set_before(without_marks),
            marked: self.begun_copies(),
            hides: false,
        };
        if marks == Marks::Hidden {
            self.hide_marks(&mut uncompleted);
        }
        uncompleted
    }

    /// Removes the marks of lines that are certainly marked and will most likely hold the same once they are complete.
    /// A run that saw the marks would skip all these lines, and each would need another run to begin its completion.
    fn hide_marks(&mut self, uncompleted: &mut Uncompleted) {
        let splits = self.filters.last().map_or(&[][..], |all| &**all);
        let has_begun = |slot| {
            let mut of_slot = splits.iter().filter(|filter| filter.slot == slot);
            of_slot.any(|filter| {
                matches!(filter.narrowing, Narrowing::Begins | Narrowing::Ends { .. })
            })
        };
        for &line in self.completions.last.keys() {
            let class = &mut self.class;
            let Some(slot) = class.slot_of(line).filter(|&slot| !has_begun(slot)) else {
                continue;
            };
            if self.completions.joins(line, class.get(slot)) {
                let unmarked = without_marks(class.get(slot).contents().copied().collect());
                let unmarked = Rc::new(Candidates::new(line, unmarked));
                uncompleted.now.push((slot, class.set(slot, unmarked)));
                uncompleted.marked.push(line);
                uncompleted.hides = true;
            }
        }
    }

    /// Makes the current class hold `of` the contents that its lines had before they were completed. Returns what they
    /// hold now.
    fn set_before(&mut self, of: impl Fn(Vec<Line>) -> Vec<Line>) -> Vec<(usize, Rc<Candidates>)> {
        let class = &mut self.class;
        let splits = self.filters.last().map_or(&[][..], |all| &**all);
        let ends = |slot| {
            let of_slot = move |filter: &&Filter| filter.slot == slot;
            let mut of_slot = splits.iter().filter(of_slot);
            of_slot.any(|filter| matches!(filter.narrowing, Narrowing::Ends { .. }))
        };
        let mut now = Vec::new();
        for &Filter {
            slot,
            ref narrowing,
            ..
        } in splits
        {
            let left = class.get(slot);
            let before = match narrowing {
                Narrowing::Begins if !ends(slot) => left.contents().copied().collect(),
                Narrowing::Ends { stored, joined } => {
                    let is_left = |content: &&Line| left.has(&stored.applied(content));
                    joined.contents().filter(is_left).copied().collect()
                }
                _ => continue,
            };
            let before = Candidates::new(class.line(slot), of(before));
            now.push((slot, class.set(slot, Rc::new(before))));
        }
        now
    }

    /// An image of the current class, as it was before its lines were completed.
    pub(crate) fn image_before(&mut self) -> Vec<Line> {
        let now = self.set_before(|contents| contents);
        let image = self.class.image();
        self.complete_again(now);
        image
    }

    /// Undoes [`Lazy::uncomplete`].
    pub(crate) fn complete_again(&mut self, now: Vec<(usize, Rc<Candidates>)>) {
        let class: &mut ImageClass = &mut self.class;
        for (slot, candidates) in now.into_iter().rev() {
            class.set(slot, candidates);
        }
    }
}
