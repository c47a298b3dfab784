//! A remembered path from the top to a leaf, for iterating or changing its nodes.

use firn_heap::{Error, Obj, View};

use super::node::{MapRoot, Visit};
use super::search;

/// A node and a place in it.
pub(crate) struct Step<'g, V: View<'g>> {
    pub(crate) visit: Visit<'g, V>,
    pub(crate) place: usize,
}

impl<'g, V: View<'g>> Clone for Step<'g, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<'g, V: View<'g>> Copy for Step<'g, V> {}

/// Steps from the top down; the last one is in a leaf. Empty in an empty map.
pub(crate) struct Path<'g, V: View<'g>> {
    pub(crate) steps: Vec<Step<'g, V>>,
}

impl<'g, V: View<'g>> Clone for Path<'g, V> {
    fn clone(&self) -> Self {
        Self {
            steps: self.steps.clone(),
        }
    }
}

impl<'g, V: View<'g>> Path<'g, V> {
    /// A path that takes the place chosen by `choose` at each node; `choose` is told whether the node is a leaf.
    pub(crate) fn walk(
        root: Obj<'g, MapRoot, V>,
        mut choose: impl FnMut(&Visit<'g, V>, bool) -> Result<usize, Error>,
    ) -> Result<Self, Error> {
        let height = search::height(root)?;
        let mut steps = Vec::with_capacity(height);
        if height > 0 {
            let mut visit = search::top(root)?;
            visit.check_level(height - 1)?;
            for level in (0..height).rev() {
                let place = choose(&visit, level == 0)?;
                steps.push(Step { visit, place });
                if level > 0 {
                    visit = visit.descend(place, level - 1)?;
                }
            }
        }
        Ok(Self { steps })
    }

    /// The path to where `key` is or would be, and whether it is there.
    pub(crate) fn to(root: Obj<'g, MapRoot, V>, key: &[u8]) -> Result<(Self, bool), Error> {
        let mut there = false;
        let path = Self::walk(root, |visit, is_leaf| {
            if !is_leaf {
                return Ok(visit.route(key));
            }
            let found = visit.find(key)?;
            there = matches!(found, search::Found::At(_));
            Ok(found.place())
        })?;
        Ok((path, there))
    }

    /// The path to the first entry.
    pub(crate) fn first(root: Obj<'g, MapRoot, V>) -> Result<Self, Error> {
        Self::walk(root, |_, _| Ok(0))
    }

    /// The path behind the last entry.
    pub(crate) fn end(root: Obj<'g, MapRoot, V>) -> Result<Self, Error> {
        Self::walk(root, |visit, is_leaf| {
            Ok(visit.count().saturating_sub(usize::from(!is_leaf)))
        })
    }

    /// Moves to the first place of the next leaf. `false` at the end.
    pub(crate) fn next_leaf(&mut self) -> Result<bool, Error> {
        self.turn(
            |step| step.place + 1 < step.visit.count(),
            |place| place + 1,
            |_, _| 0,
        )
    }

    /// Moves behind the last place of the previous leaf. `false` at the start.
    pub(crate) fn previous_leaf(&mut self) -> Result<bool, Error> {
        self.turn(
            |step| step.place > 0,
            |place| place - 1,
            |visit, is_leaf| visit.count().saturating_sub(usize::from(!is_leaf)),
        )
    }

    /// Moves in the lowest node above the leaf that has a next place, and goes down again from there.
    fn turn(
        &mut self,
        may: impl Fn(&Step<'g, V>) -> bool,
        moved: impl Fn(usize) -> usize,
        start: impl Fn(&Visit<'g, V>, bool) -> usize,
    ) -> Result<bool, Error> {
        let above = self.steps.len().saturating_sub(1);
        let Some(at) = self.steps[..above].iter().rposition(may) else {
            return Ok(false);
        };
        self.steps[at].place = moved(self.steps[at].place);
        for index in at + 1..self.steps.len() {
            let Step { visit, place } = self.steps[index - 1];
            let level = self.steps.len() - 1 - index;
            let visit = visit.descend(place, level)?;
            let place = start(&visit, level == 0);
            self.steps[index] = Step { visit, place };
        }
        Ok(true)
    }
}
