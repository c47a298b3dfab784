//! Which structure holds the objects, and how large their values are.

use thiserror::Error;

/// Bytes of a value where all are equally large, as in FFCCD's workloads.
pub const VALUE_BYTES: usize = 128;
/// Drawn sizes: from the smallest, doubled at most this many times.
const SMALLEST_BYTES: f64 = 16.0;
const DOUBLINGS: f64 = 11.0;
/// Bytes of the largest value.
pub(crate) const LARGEST_BYTES: usize = 32 << 10;

/// How objects refer to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Values of an ordered map, a B+tree.
    Map,
    /// Objects named by one flat array of references.
    Refs,
    /// A singly linked list of values.
    List,
    /// A doubly linked list of values; an array of references names its elements too.
    Chain,
    /// An AVL tree.
    Avl,
    /// A red-black tree.
    RedBlack,
    /// A B+tree with values in its leaves.
    InlineTree,
    /// An array of strings.
    Strings,
    /// A hash map.
    Hash,
}

/// No workload has this name.
#[derive(Debug, Error)]
#[error("there is no workload `{name}`; the workloads are {}", names())]
pub struct UnknownWorkload {
    /// What was asked for.
    pub name: String,
}

fn names() -> String {
    Shape::WORKLOADS.map(Shape::name).join(", ")
}

impl Shape {
    /// The structures that have a workload of their name, for simulated machines.
    pub const WORKLOADS: [Self; 7] = [
        Self::Chain,
        Self::Avl,
        Self::Strings,
        Self::InlineTree,
        Self::RedBlack,
        Self::Hash,
        Self::Map,
    ];

    /// The structure that the workload of this name is about.
    ///
    /// Errors: there is none.
    pub fn of_workload(name: &str) -> Result<Self, UnknownWorkload> {
        let mut shapes = Self::WORKLOADS.into_iter();
        let found = shapes.find(|shape| shape.name() == name);
        found.ok_or_else(|| UnknownWorkload {
            name: name.to_owned(),
        })
    }

    /// Its name in figures.
    pub const fn name(self) -> &'static str {
        match self {
            Shape::Map => "map",
            Shape::Refs => "refs",
            Shape::List => "list",
            Shape::Chain => "linked_list",
            Shape::Avl => "avl",
            Shape::RedBlack => "red_black",
            Shape::InlineTree => "inline_tree",
            Shape::Strings => "strings",
            Shape::Hash => "hash",
        }
    }
}

/// How large values are. Those of a list are all equally large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// 128 bytes, as in FFCCD's workloads.
    Fixed,
    /// Log-uniform from 16 bytes to 32 KiB.
    LogUniform,
}

impl Sizes {
    /// Its name in figures.
    pub const fn name(self) -> &'static str {
        match self {
            Sizes::Fixed => "128",
            Sizes::LogUniform => "mixed",
        }
    }

    #[inline]
    pub(crate) fn draw(self, rng: &mut fastrand::Rng) -> usize {
        match self {
            Sizes::Fixed => VALUE_BYTES,
            Sizes::LogUniform => (SMALLEST_BYTES * (rng.f64() * DOUBLINGS).exp2()) as usize,
        }
    }
}
