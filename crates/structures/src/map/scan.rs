//! Long scans in short steps, between which writers and phase changes take their turn.

use core::ops::{Bound, RangeBounds};

use firn_heap::{Error, Handle, Session, View};
use firn_media::Medium;

use super::Map;
use super::node::MapRoot;
use super::range::{Bounds, behind_prefix};

/// Entries that are copied under one lock.
const STEP_ENTRIES: usize = 256;
/// Bytes after which a step ends early.
const STEP_BYTES: usize = 64 << 10;

/// A key and its value, as a [`Scan`] yields them.
pub type Copied<'s> = (&'s [u8], &'s [u8]);

/// The map that is scanned.
enum Origin<M: Medium> {
    Root(String),
    Handle(Handle<MapRoot, M>),
}

/// A position in a map that outlives guards.
///
/// It copies some hundred entries at a time inside a guard of its own, under the map's lock, and yields them with
/// neither held. Entries that exist throughout are seen once, in order; an entry that comes or goes meanwhile may or
/// may not be seen.
/// that came or went meanwhile may be seen or not.
pub struct Scan<M: Medium> {
    origin: Origin<M>,
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
    /// Keys and values of the copied entries, one behind the other.
    bytes: Vec<u8>,
    /// Where in `bytes` each key and each value ends.
    ends: Vec<(usize, usize)>,
    next: usize,
    done: bool,
}

impl<M: Medium> Scan<M> {
    /// A scan of all entries of the map of the root `name`.
    pub fn of_root(name: &str) -> Self {
        Self::new(Origin::Root(name.to_owned()))
    }

    /// A scan of all entries of the map that a handle names.
    pub fn of_handle(handle: Handle<MapRoot, M>) -> Self {
        Self::new(Origin::Handle(handle))
    }

    fn new(origin: Origin<M>) -> Self {
        Self {
            origin,
            start: Bound::Unbounded,
            end: Bound::Unbounded,
            bytes: Vec::new(),
            ends: Vec::new(),
            next: 0,
            done: false,
        }
    }

    /// Restricts the scan to keys within `bounds`.
    pub fn range<K: AsRef<[u8]>>(mut self, bounds: impl RangeBounds<K>) -> Self {
        self.start = bounds.start_bound().map(|k| k.as_ref().to_vec());
        self.end = bounds.end_bound().map(|k| k.as_ref().to_vec());
        self
    }

    /// Restricts the scan to keys that begin with `prefix`.
    pub fn prefix(mut self, prefix: &[u8]) -> Self {
        self.start = Bound::Included(prefix.to_vec());
        self.end = behind_prefix(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        self
    }

    /// The next key and its value; `None` behind the last one.
    ///
    /// Errors: the map's root or its handle's object is gone, a damaged pool. Trying again continues
    /// where the error occurred.
    pub fn next(&mut self, session: &mut Session<M>) -> Result<Option<Copied<'_>>, Error> {
        if self.next == self.ends.len() && !self.done {
            session.read(|view| self.fill(view))?;
        }
        let Some(&(key_end, end)) = self.ends.get(self.next) else {
            return Ok(None);
        };
        let start = match self.next {
            0 => 0,
            next => self.ends[next - 1].1,
        };
        self.next += 1;
        Ok(Some((
            &self.bytes[start..key_end],
            &self.bytes[key_end..end],
        )))
    }

    /// Copies the next entries.
    fn fill<'g, V: View<'g, Medium = M>>(&mut self, view: V) -> Result<(), Error> {
        let map = match &self.origin {
            Origin::Root(name) => Map::open(view, name)?,
            Origin::Handle(handle) => match view.deref(handle) {
                Some(root) => Map::at(root.check_type()?),
                None => {
                    return Err(Error::NoRoot {
                        name: "(the object of a handle)".into(),
                    });
                }
            },
        };
        self.bytes.clear();
        self.ends.clear();
        self.next = 0;
        let copied = self.copy(&map);
        if copied.is_err() {
            self.ends.clear();
        }
        copied
    }

    fn copy<'g, V: View<'g, Medium = M>>(&mut self, map: &Map<'g, V>) -> Result<(), Error> {
        let reader = map.read()?;
        let bounds = Bounds {
            start: self.start.as_ref().map(Vec::as_slice),
            end: self.end.as_ref().map(Vec::as_slice),
        };
        let mut last = 0;
        let mut more = false;
        for entry in reader.range_of(bounds) {
            let entry = entry?;
            if self.ends.len() == STEP_ENTRIES || self.bytes.len() >= STEP_BYTES {
                more = true;
                break;
            }
            last = self.bytes.len();
            entry.key_into(&mut self.bytes)?;
            let key_end = self.bytes.len();
            entry.value_into(&mut self.bytes)?;
            self.ends.push((key_end, self.bytes.len()));
        }
        if let Some(&(key_end, _)) = self.ends.last() {
            let key = &self.bytes[last..key_end];
            // In a sound map keys ascend. A key that does not would lead back to where this step began.
            let goes_on = match &self.start {
                Bound::Included(start) => key >= start.as_slice(),
                Bound::Excluded(start) => key > start.as_slice(),
                Bound::Unbounded => true,
            };
            if !goes_on {
                let (what, at) = ("the order of a map's keys", map.object().address().0);
                return Err(Error::Damaged { what, at });
            }
            self.start = Bound::Excluded(key.to_vec());
        }
        self.done = !more;
        Ok(())
    }
}
