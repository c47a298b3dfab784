//! The collections of `firn-structures` behind one interface: what is done to each, what is read from it, and
//! what it must hold then.
//!
//! ```text
//! numbered   keys are numbers      named   keys are byte strings      ordered   elements are in an order
//! ```

mod named;
mod numbered;
mod ordered;

use core::fmt;

use firn_heap::{Error, Reading, Tx};
use firn_media::Medium;

/// The key of an element.
pub type Key = u16;
/// Keys and values, in the structure's own order.
pub type Content = Vec<(Key, Vec<u8>)>;

/// How a structure's content follows from the operations on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// One value per key, by ascending keys.
    ByKey,
    /// One value per key, in the order in which keys were first inserted.
    ByArrival,
    /// Every insert adds an element; a removal takes the first one, whatever its key.
    FirstIn,
}

impl Order {
    /// Changes `content` as an insert does.
    pub fn insert(self, content: &mut Content, key: Key, value: Vec<u8>) {
        let there = match self {
            Self::FirstIn => None,
            Self::ByKey | Self::ByArrival => content.iter_mut().find(|(k, _)| *k == key),
        };
        match there {
            Some((_, old)) => *old = value,
            None => {
                let at = match self {
                    Self::ByKey => content.partition_point(|(k, _)| *k < key),
                    Self::ByArrival | Self::FirstIn => content.len(),
                };
                content.insert(at, (key, value));
            }
        }
    }

    /// Changes `content` as a removal does.
    pub fn remove(self, content: &mut Content, key: Key) {
        match self {
            Self::FirstIn => drop(content.drain(..content.len().min(1))),
            Self::ByKey | Self::ByArrival => content.retain(|(k, _)| *k != key),
        }
    }
}

/// The keys that short sequences use.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    /// Keys that are there from the start.
    pub present: &'static [Key],
    /// Keys that are inserted.
    pub new: [Key; 3],
    /// The key from the start that is changed and removed.
    pub changed: Key,
}

impl Keys {
    const FEW: Self = Self {
        present: &[2],
        new: [1, 3, 4],
        changed: 2,
    };
    /// The second present key lies below the first, so the first insert rotates once, twice or not at all. One leaf has
    /// room for them all.
    const OF_TREES: Self = Self {
        present: &[20, 10],
        new: [15, 5, 30],
        changed: 20,
    };
}

/// What a structure holds, and the result of its own check.
#[derive(Debug)]
pub struct Found {
    /// The findings of its check.
    pub wrong: Vec<String>,
    /// Its content.
    pub content: Content,
}

/// A structure on a medium. Its roots are named by the caller.
pub trait UnderTest<M: Medium>: Sync {
    /// How its content follows from what was done.
    fn order(&self) -> Order {
        Order::ByKey
    }

    /// The keys that short sequences use.
    fn keys(&self) -> Keys {
        Keys::FEW
    }

    /// Makes an empty structure, with room for keys below `keys` where that has to be known.
    fn create(&self, tx: Tx<'_, M>, root: &str, keys: Key) -> Result<(), Error>;

    /// Gives a key a value, whether it has one or not.
    fn insert(&self, tx: Tx<'_, M>, root: &str, key: Key, value: &[u8]) -> Result<(), Error>;

    /// Removes what [`Order::remove`] removes, if it is there.
    fn remove(&self, tx: Tx<'_, M>, root: &str, key: Key) -> Result<(), Error>;

    /// The first value of the key.
    fn get(&self, view: Reading<'_, M>, root: &str, key: Key) -> Result<Option<Vec<u8>>, Error>;

    /// All of it, under one lock.
    fn read(&self, view: Reading<'_, M>, root: &str) -> Result<Found, Error>;
}

/// A structure that a campaign can be about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Structure {
    /// A list.
    List,
    /// An ordered map.
    Map,
    /// A hash map.
    Hash,
    /// A vector.
    Vector,
    /// A queue.
    Queue,
    /// An array of strings.
    Strings,
    /// An AVL tree.
    Avl,
    /// A red-black tree.
    RedBlack,
    /// A B+tree with values in its leaves.
    InlineTree,
}

/// No structure has this name.
#[derive(Debug, thiserror::Error)]
#[error("there is no structure `{name}`; choose from: {}", Structure::ALL.map(Structure::name).join(", "))]
pub struct UnknownStructure {
    /// What was asked for.
    pub name: String,
}

impl Structure {
    /// Every structure there is.
    pub const ALL: [Self; 9] = [
        Self::List,
        Self::Map,
        Self::Hash,
        Self::Vector,
        Self::Queue,
        Self::Strings,
        Self::Avl,
        Self::RedBlack,
        Self::InlineTree,
    ];

    /// Its name on command lines and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Map => "map",
            Self::Hash => "hash",
            Self::Vector => "vector",
            Self::Queue => "queue",
            Self::Strings => "strings",
            Self::Avl => "avl",
            Self::RedBlack => "red_black",
            Self::InlineTree => "inline_tree",
        }
    }

    /// The structure of this name.
    ///
    /// Errors: there is none.
    pub fn named(name: &str) -> Result<Self, UnknownStructure> {
        let found = Self::ALL.into_iter().find(|it| it.name() == name);
        found.ok_or_else(|| UnknownStructure {
            name: name.to_owned(),
        })
    }

    /// The operations on it, and reads from it.
    pub fn under_test<M: Medium>(self) -> &'static dyn UnderTest<M> {
        match self {
            Self::List => &numbered::List,
            Self::Map => &named::Map,
            Self::Hash => &named::Hash,
            Self::Vector => &ordered::Vector,
            Self::Queue => &ordered::Queue,
            Self::Strings => &numbered::Strings,
            Self::Avl => &numbered::AVL,
            Self::RedBlack => &numbered::RED_BLACK,
            Self::InlineTree => &numbered::INLINE,
        }
    }
}

impl fmt::Debug for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
