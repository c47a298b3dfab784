//! A line that an execution stores to, while what it held before may not be known.

use crate::candidates::Candidates;
use crate::memory::Line;

/// Something that an execution did to a line.
#[derive(Clone, Copy)]
pub(crate) enum Change {
    Word(u8, u64),
    Zero,
}

impl Change {
    fn apply(self, content: &mut Line) {
        match self {
            Change::Word(word, value) => content[usize::from(word)] = value,
            Change::Zero => *content = Line::default(),
        }
    }
}

/// A line's possible contents before the execution, and what the execution did to it since.
///
/// A crash leaves any of those contents with any prefix of the changes, those that are guaranteed
/// included.
pub(crate) struct Unsettled {
    /// Before the execution, and the same with the guaranteed changes.
    origins: Vec<(Line, Line)>,
    /// Changes that are not guaranteed, oldest first, with their steps.
    pending: Vec<(u64, Change)>,
}

impl Unsettled {
    pub(crate) fn new(before: &Candidates) -> Self {
        let same = |content: &Line| (*content, *content);
        Self {
            origins: before.contents().map(same).collect(),
            pending: Vec::new(),
        }
    }

    /// Whether some content would become another.
    pub(crate) fn changes(&self, change: Change) -> bool {
        self.latest().any(|before| {
            let mut after = before;
            change.apply(&mut after);
            after != before
        })
    }

    pub(crate) fn push(&mut self, step: u64, change: Change) {
        self.pending.push((step, change));
    }

    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Makes the changes up to `step` certain. Returns whether there were any.
    pub(crate) fn guarantee(&mut self, step: u64) -> bool {
        let certain = self.pending.partition_point(|(made, _)| *made <= step);
        for (_, change) in self.pending.drain(..certain) {
            for (_, content) in &mut self.origins {
                change.apply(content);
            }
        }
        certain > 0
    }

    /// Drops what is, by now, none of the contents that `is_kept` is asked about.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&Line) -> bool) {
        let kept: Vec<bool> = self.latest().map(|content| is_kept(&content)).collect();
        let mut kept = kept.into_iter();
        self.origins.retain(|_| kept.next() == Some(true));
    }

    /// Everything that a crash may leave.
    pub(crate) fn candidates(&self, line: u64) -> Candidates {
        let versions = self.versions().map(|(_, content)| content).collect();
        Candidates::new(line, versions)
    }

    /// What a crash may leave with all changes made.
    pub(crate) fn newest(&self, line: u64) -> Candidates {
        Candidates::new(line, self.latest().collect())
    }

    /// A content before the execution from which `left` could come.
    pub(crate) fn origin_of(&self, left: &Line) -> Option<Line> {
        let found = self.versions().find(|(_, content)| content == left);
        found.map(|(origin, _)| origin)
    }

    fn versions(&self) -> impl Iterator<Item = (Line, Line)> + '_ {
        self.origins.iter().flat_map(|(origin, guaranteed)| {
            let changed = self.pending.iter().scan(*guaranteed, |content, change| {
                change.1.apply(content);
                Some(*content)
            });
            let contents = core::iter::once(*guaranteed).chain(changed);
            contents.map(|content| (*origin, content))
        })
    }

    fn latest(&self) -> impl Iterator<Item = Line> + '_ {
        self.origins.iter().map(|(_, guaranteed)| {
            let mut content = *guaranteed;
            self.pending
                .iter()
                .for_each(|(_, change)| change.apply(&mut content));
            content
        })
    }
}
