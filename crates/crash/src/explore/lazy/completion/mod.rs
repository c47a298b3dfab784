//! Copies whose lines recovery completes unless they reached persistence: which lines did is not told apart.
//!
//! Hardware that settles a copy line by line (FFCCD, section 4.1) leaves any set of its lines marked, and recovery
//! copies the others again. Its effect on a line depends on that line alone, and afterwards it continues in the same
//! way ([`firn_media::Relocate::unless_reached`]), so n lines need not be 2^n runs. A run completes all lines that may
//! be marked or not. Every unmarked content then becomes what the run made of it, and a marked content that equals the
//! result joins it. This holds also where a line is certainly marked: the run then begins on no image of the class, but
//! it continues with one. Marked contents that differ, because a commit changed them since, are explored separately. A
//! crash in recovery leaves of an unmarked line any prefix of the completion's stores; a marked line holds all of them
//! already, and stays as it was.
//!
//! A copy without a marked line is left alone ([`firn_media::Relocate::any_reached`]). Which of its lines is marked
//! makes no other difference, so a run is told that one is, and the walk decides which images take part: the whole
//! class if a line is certainly marked. Otherwise it would be, for each of n lines, the part of the class in which that
//! line is marked. Only two of these parts are tried: each line is completed in one of them, and present already in the
//! other. With several copies, their first parts are combined, and so are their second parts: each line still has both.

mod begin;
mod walk;

use core::ops::Range;

use crate::explore::lazy::candidates::Candidates;
use crate::explore::lazy::stored::Stored;
use crate::memory::cells::{Line, MARK};
use crate::memory::event::Event;
use crate::memory::footprint::{FirstLoad, Looked};

pub(crate) use begin::{Marks, Uncompleted};

/// The completion of a line in a run: the range of its events.
pub(crate) struct Completed {
    line: u64,
    events: Range<usize>,
}

impl Completed {
    /// All completions of a run with these loads.
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

    /// Whether a store to `line`, event number `index`, belongs to this completion.
    pub(crate) fn has(&self, line: u64, index: usize) -> bool {
        self.line == line && self.events.contains(&index)
    }

    /// Its stores.
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
    /// By line, the last completion that the walk met.
    last: rustc_hash::FxHashMap<u64, Stored>,
    /// Per completion that the walk is in, the contents that are explored separately.
    apart: Vec<Vec<Line>>,
}

impl Completions {
    pub(crate) fn number(&mut self, stored: Stored) -> u64 {
        *self.numbers.entry(stored).or_insert_with(|| {
            self.stored.push(stored);
            self.stored.len() as u64 - 1
        })
    }

    /// Whether a line with any of these contents will most likely hold the same once it is complete.
    fn joins(&self, line: u64, contents: &Candidates) -> bool {
        let stored = self.last.get(&line);
        stored.is_some_and(|stored| contents.contents().all(|one| is_complete(one, stored)))
    }
}

/// Whether a line is marked, and its completion would store what it holds.
fn is_complete(content: &Line, stored: &Stored) -> bool {
    !is_unmarked(content) && stored.is_in(content)
}

/// The unmarked contents among these; if there are none, all of them without their marks.
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
