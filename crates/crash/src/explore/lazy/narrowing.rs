//! What narrows the classes at hand.

use std::rc::Rc;

use crate::explore::lazy::candidates::Candidates;
use crate::explore::lazy::stored::Stored;

/// Something that a run looked at and that narrowed the class at hand: what a line may hold from there on.
#[derive(Clone)]
pub(crate) struct Filter {
    /// Events of the run before.
    pub(crate) at: u32,
    pub(crate) slot: usize,
    pub(crate) narrowing: Narrowing,
    pub(crate) kept: Rc<Candidates>,
    pub(crate) before: Rc<Candidates>,
}

/// Why a line may hold less.
#[derive(Clone)]
pub(crate) enum Narrowing {
    /// A load of a word that split the class.
    Word(usize, u64),
    /// Other contents go another way, or none.
    Line,
    /// A line of a copy is marked. Nothing is narrowed.
    Begun,
    /// It is this one of those of the copy that might be.
    Marked(usize),
    /// The line's completion begins.
    Begins,
    /// It ends: what it stored to unmarked contents, and the contents that are the same now.
    Ends {
        stored: Stored,
        joined: Rc<Candidates>,
    },
}
