//! A line that an execution stores to, whose content before may be unknown.

use crate::explore::lazy::candidates::Candidates;
use crate::memory::cells::Line;

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

    /// Whether it changes this content.
    fn changes(self, content: &Line) -> bool {
        match self {
            Change::Word(word, value) => content[usize::from(word)] != value,
            Change::Zero => content.iter().any(|&word| word != 0),
        }
    }
}

/// A line's possible contents before the execution, and what the execution did to it since.
///
/// A crash leaves any of those contents, with all guaranteed changes and any prefix of the others.
pub(crate) struct Unsettled {
    origins: Vec<Origin>,
    /// Changes that are not guaranteed, oldest first, with their steps.
    pending: Vec<(u64, Change)>,
}

/// A content before the execution, and what became of it.
struct Origin {
    before: Line,
    /// With the guaranteed changes.
    guaranteed: Line,
    /// With all changes.
    latest: Line,
}

impl Unsettled {
    pub(crate) fn new(before: &Candidates) -> Self {
        let origin = |content: &Line| Origin {
            before: *content,
            guaranteed: *content,
            latest: *content,
        };
        Self {
            origins: before.contents().map(origin).collect(),
            pending: Vec::new(),
        }
    }

    /// Whether the change alters any of the contents.
    pub(crate) fn changes(&self, change: Change) -> bool {
        let mut latest = self.origins.iter().map(|origin| &origin.latest);
        latest.any(|content| change.changes(content))
    }

    pub(crate) fn push(&mut self, step: u64, change: Change) {
        self.pending.push((step, change));
        for origin in &mut self.origins {
            change.apply(&mut origin.latest);
        }
    }

    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Makes the changes up to `step` guaranteed. Returns whether there were any.
    pub(crate) fn guarantee(&mut self, step: u64) -> bool {
        let certain = self.pending.partition_point(|(made, _)| *made <= step);
        for (_, change) in self.pending.drain(..certain) {
            for origin in &mut self.origins {
                change.apply(&mut origin.guaranteed);
            }
        }
        certain > 0
    }

    /// Drops the contents that, by now, `is_kept` refuses.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&Line) -> bool) {
        self.origins.retain(|origin| is_kept(&origin.latest));
    }

    /// Every content that a crash may leave.
    pub(crate) fn candidates(&self, line: u64) -> Candidates {
        let mut versions = Vec::with_capacity(self.origins.len() * (1 + self.pending.len()));
        versions.extend(self.versions().map(|(_, content)| content));
        Candidates::new(line, versions)
    }

    /// The contents with all changes made, each after its content before the execution.
    pub(crate) fn newest(&self) -> impl Iterator<Item = (Line, Line)> + '_ {
        let origins = self.origins.iter();
        origins.map(|origin| (origin.before, origin.latest))
    }

    /// A content before the execution from which `left` could come.
    pub(crate) fn origin_of(&self, left: &Line) -> Option<Line> {
        let found = self.versions().find(|(_, content)| content == left);
        found.map(|(origin, _)| origin)
    }

    fn versions(&self) -> impl Iterator<Item = (Line, Line)> + '_ {
        self.origins.iter().flat_map(|origin| {
            let guaranteed = origin.guaranteed;
            let changed = self.pending.iter().scan(guaranteed, |content, change| {
                change.1.apply(content);
                Some(*content)
            });
            let contents = core::iter::once(guaranteed).chain(changed);
            contents.map(|content| (origin.before, content))
        })
    }
}
