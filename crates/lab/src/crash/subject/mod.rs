//! The structures that a campaign crashes: what is done to each, what is read from it, and what it must
//! hold then.
//!
//! ```text
//! numbered   keys are numbers      named   keys are byte strings      ordered   elements are in an order
//! ```

mod named;
mod numbered;
mod ordered;

use core::fmt;

use firn_crash::Crash;
use firn_heap::{Error, Reading, Tx};

use super::error::CrashError;

/// What a campaign calls an element.
pub(crate) type Key = u16;
/// Keys and values, in the structure's own order.
pub(crate) type Content = Vec<(Key, Vec<u8>)>;

/// How a structure's content follows from what was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// One value a key, by ascending keys.
    ByKey,
    /// One value a key, in the order in which keys came.
    ByArrival,
    /// Every insert is another element; a removal takes the first one, whatever its key.
    FirstIn,
}

impl Order {
    pub(crate) fn insert(self, content: &mut Content, key: Key, value: Vec<u8>) {
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

    pub(crate) fn remove(self, content: &mut Content, key: Key) {
        match self {
            Self::FirstIn => drop(content.drain(..content.len().min(1))),
            Self::ByKey | Self::ByArrival => content.retain(|(k, _)| *k != key),
        }
    }
}

/// The keys that short sequences are about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    /// Those that are there from the start.
    pub(crate) present: &'static [Key],
    /// Those that are inserted.
    pub(crate) new: [Key; 3],
    /// The one of those from the start that is changed and removed.
    pub(crate) changed: Key,
}

impl Keys {
    const FEW: Self = Self {
        present: &[2],
        new: [1, 3, 4],
        changed: 2,
    };
    /// Below the first of the two comes the other, so that the first insert rotates, once or twice, or
    /// does not. In one leaf they have room.
    const OF_TREES: Self = Self {
        present: &[20, 10],
        new: [15, 5, 30],
        changed: 20,
    };
}

/// What a structure holds, and what its own check says.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) wrong: Vec<String>,
    pub(crate) content: Content,
}

/// A structure. Its roots are named by the caller.
pub(crate) trait Subject: Sync {
    /// What it is called on command lines and in reports.
    fn name(&self) -> &'static str;

    fn order(&self) -> Order {
        Order::ByKey
    }

    fn keys(&self) -> Keys {
        Keys::FEW
    }

    /// Makes an empty one, with room for keys below `keys` where that has to be known.
    fn create(&self, tx: Tx<'_, Crash>, root: &str, keys: Key) -> Result<(), Error>;

    /// Gives a key a value, whether it has one or not.
    fn insert(&self, tx: Tx<'_, Crash>, root: &str, key: Key, value: &[u8]) -> Result<(), Error>;

    /// Removes what [`Order::remove`] removes, if it is there.
    fn remove(&self, tx: Tx<'_, Crash>, root: &str, key: Key) -> Result<(), Error>;

    /// The first value of the key.
    fn get(&self, view: Reading<'_, Crash>, root: &str, key: Key)
    -> Result<Option<Vec<u8>>, Error>;

    /// All of it, under one lock.
    fn read(&self, view: Reading<'_, Crash>, root: &str) -> Result<Found, Error>;
}

/// A structure that a campaign can be about.
#[derive(Clone, Copy)]
pub struct Structure(pub(crate) &'static dyn Subject);

/// Every structure there is.
static SUBJECTS: [&dyn Subject; 9] = [
    &numbered::List,
    &named::Map,
    &named::Hash,
    &ordered::Vector,
    &ordered::Queue,
    &numbered::Strings,
    &numbered::AVL,
    &numbered::RED_BLACK,
    &numbered::INLINE,
];

impl Structure {
    /// Every structure there is.
    pub fn all() -> Vec<Self> {
        SUBJECTS.into_iter().map(Self).collect()
    }

    /// What it is called on command lines and in reports.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// The structure of this name.
    ///
    /// Errors: there is none.
    pub fn named(name: &str) -> Result<Self, CrashError> {
        let found = SUBJECTS.into_iter().find(|subject| subject.name() == name);
        found.map(Self).ok_or_else(|| CrashError::Unknown {
            what: "structure",
            name: name.to_owned(),
            known: SUBJECTS.map(Subject::name).join(", "),
        })
    }
}

impl fmt::Debug for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
