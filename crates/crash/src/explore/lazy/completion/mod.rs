//! Lines of copies that recovery completes unless they reached persistence, without telling apart which did.
//!
//! Hardware that settles a copy line by line (FFCCD, section 4.1) leaves any set of its lines marked, and recovery
//! copies the others once more. What it does to a line depends on that line alone, and it goes on in the same way
//! ([`firn_media::Relocate::unless_reached`]), so n lines need not be 2^n runs. A run completes all lines that may be
//! marked or not; then every content that was unmarked is what the run made of it, and one that was marked and is
//! the same already goes on with it, also where a line is marked for certain: what the run began on is then no image
//! of the class, but what it goes on with is. Those that are marked and something else, because a commit changed
//! them since, go their own way. A crash in recovery leaves of an unmarked line any prefix of what the completion
//! stores; of a marked one, which holds all of that, it leaves what it was.
//!
//! A copy of which nothing is marked is left alone ([`firn_media::Relocate::any_reached`]). Which of its lines is
//! marked makes no other difference, so a run is told that one is, and which images take part is the walk's business:
//! all of the class if a line is marked for certain. Otherwise it would be each part of the class in which one line is
//! marked, for n lines. Two of them are tried: so each line is completed in one of them, and is there already in the
//! other. Of several copies it is the first ones together, and the second ones together: each line still has both.

mod begin;
mod walk;

use core::ops::Range;

use crate::explore::lazy::candidates::Candidates;
use crate::explore::lazy::stored::Stored;
use crate::memory::cells::{Line, MARK};
use crate::memory::event::Event;
use crate::memory::footprint::{FirstLoad, Looked};

pub(crate) use begin::{Marks, Uncompleted};

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
                Looked::Word(_) | Looked::Scans(_) => {}
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
    /// By line, the last one that the walk met.
    last: rustc_hash::FxHashMap<u64, Stored>,
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

    /// Whether a line that has any of these contents will most likely be the same once it is complete.
    fn joins(&self, line: u64, contents: &Candidates) -> bool {
        let stored = self.last.get(&line);
        stored.is_some_and(|stored| contents.contents().all(|one| is_complete(one, stored)))
    }
}

/// Whether a line is marked, and its completion would store what it holds.
fn is_complete(content: &Line, stored: &Stored) -> bool {
    !is_unmarked(content) && stored.is_in(content)
}

/// The unmarked ones of these contents; if there is none, what they would be unmarked.
fn without_marks(mut contents: Vec<Line>) -> Vec<Line> {
    if contents.iter().any(is_unmarked) {
        contents.retain(is_unmarked);
    } else {
        contents.iter_mut().for_each(|content| content[MARK] = 0);
    }
    contents
}

fn is_unmarked(content: &Line) -> bool {
    content[MARK] == 0
}
