//! Narrowings of the current classes.

use std::rc::Rc;

use crate::explore::lazy::candidates::Candidates;
use crate::explore::lazy::stored::Stored;

/// Something that a run looked at and that narrowed the current class: what a line may hold from there on.
#[derive(Clone)]
pub(crate) struct Filter {
    /// Events of the run before it.
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
    /// Other contents are explored separately, or not at all.
    Line,
    /// Some line of a copy is marked. Nothing is narrowed.
    Begun,
    /// This one, by index among the copy's lines that may be marked, is marked.
    Marked(usize),
    /// The line's completion begins.
    Begins,
    /// The completion ends: what it stored to unmarked contents, and the contents that are equal now.
    Ends {
        stored: Stored,
        joined: Rc<Candidates>,
    },
}
