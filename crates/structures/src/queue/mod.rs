//! A queue of byte strings: first in, first out.
//!
//! It is a chain of segments, which hold references to the elements. A push or a pop changes the root
//! object and one place of a segment, a line each, besides the element itself. A segment whose last
//! element is popped is freed; an empty queue keeps one of 1 KiB, [`Collection::clear`] none.
//!
//! Crash: a change belongs to its transaction; a crash leaves all of it or nothing.
//! Concurrency: readers share the queue's lock, a writer has it alone until its transaction ends.
//! Source: the chunked lists of most standard libraries' double-ended queues.

mod read;

use std::collections::HashSet;

use firn_heap::{Bytes, Error, Field, Obj, Ref, Stored, Tx, View};
use firn_media::Medium;

use crate::collection::Collection;
use crate::element::{self, Element, damaged, present};
use crate::protocol::{Growing, Part, Protocol, sealed::Sealed};
use crate::reader::Reader;
use crate::reclaim::free_unlinked;

pub use read::Segments;

/// Places of a segment.
pub(crate) const PLACES: usize = 126;

/// The root object of a queue.
#[derive(Stored)]
#[firn(name = "firn.queue")]
#[repr(C)]
pub struct QueueRoot {
    /// Id of the lock.
    pub(crate) lock: u64,
    /// Number of elements.
    pub(crate) len: u64,
    /// The segment of the first element; null if there is none.
    pub(crate) first: Ref<Segment>,
    /// The segment for the next element, if it has a place left.
    pub(crate) last: Ref<Segment>,
    /// Place of the first element in its segment.
    pub(crate) head: u64,
    /// Place behind the last element in its segment.
    pub(crate) tail: u64,
}

/// A part of a queue. Places without an element are null.
#[derive(Stored)]
#[firn(name = "firn.queue.segment")]
#[repr(C)]
pub struct Segment {
    /// The segment behind this one.
    pub(crate) next: Ref<Segment>,
    /// The elements.
    pub(crate) places: [Ref<Bytes>; PLACES],
}

const HEADER_BYTES: usize = 8;
/// A segment fills its slot.
const _: () = assert!((size_of::<Segment>() + HEADER_BYTES).is_power_of_two());

type Root<'g, V> = Obj<'g, QueueRoot, V>;
type SegmentAt<'g, V> = Obj<'g, Segment, V>;

/// A queue of byte strings, first in, first out.
///
/// An element has up to [`crate::map::MAX_VALUE_BYTES`]. Every function takes constant time unless it says
/// otherwise.
pub type Queue<'g, V> = Collection<'g, V, Segmented>;

/// The protocol of [`Queue`].
pub enum Segmented {}

impl Sealed for Segmented {}

impl Protocol for Segmented {
    type Root = QueueRoot;
    type AtHand<'g, V: View<'g>> = ();
    type Walk<'g, V: View<'g>> = Segments<'g, V>;

    const LOCK: Field<QueueRoot, u64> = QueueRoot::LOCK;
    const LEN: Field<QueueRoot, u64> = QueueRoot::LEN;

    #[inline]
    fn at_hand<'g, V: View<'g>>(_root: Part<'g, QueueRoot, V>) {}

    fn walk<'g, V: View<'g>>(Part(root): Part<'g, QueueRoot, V>) -> Segments<'g, V> {
        Segments::new(root)
    }

    fn check<'g, V: View<'g>>(
        Part(root): Part<'g, QueueRoot, V>,
        findings: &mut Vec<String>,
    ) -> Result<(), Error> {
        read::check(root, findings)
    }
}

impl Growing for Segmented {
    fn empty<M: Medium>(_tx: Tx<'_, M>, lock: u64) -> QueueRoot {
        QueueRoot {
            lock,
            len: 0,
            first: Ref::NULL,
            last: Ref::NULL,
            head: 0,
            tail: 0,
        }
    }

    fn clear<'t, M: Medium>(Part(root): Part<'t, QueueRoot, Tx<'t, M>>) -> Result<(), Error> {
        let tx = root.view();
        let mut seen = HashSet::new();
        let mut next = root.follow(QueueRoot::FIRST);
        while let Some(segment) = next {
            let segment = segment.check_type()?;
            if !seen.insert(segment.address().0) {
                return Err(damaged("a segment that is reached twice", segment));
            }
            next = segment.follow(Segment::NEXT);
            for place in 0..PLACES {
                if let Some(element) = segment.follow(Segment::PLACES.at(place)) {
                    free_unlinked(tx, element::sound(element)?)?;
                }
            }
            free_unlinked(tx, segment)?;
        }
        root.link::<Segment>(QueueRoot::FIRST, None);
        root.link::<Segment>(QueueRoot::LAST, None);
        for field in [QueueRoot::LEN, QueueRoot::HEAD, QueueRoot::TAIL] {
            root.store(field, 0);
        }
        Ok(())
    }
}

/// A place in the root object, within a segment or at its end.
#[inline]
fn place<'g, V: View<'g>>(root: Root<'g, V>, field: Field<QueueRoot, u64>) -> Result<usize, Error> {
    match root.load(field) {
        place if place <= PLACES as u64 => Ok(place as usize),
        _ => Err(damaged("the ends of a queue", root)),
    }
}

/// The first segment, and the place of the first element in it. The queue is not empty.
#[inline]
fn front<'g, V: View<'g>>(root: Root<'g, V>) -> Result<(SegmentAt<'g, V>, usize), Error> {
    let head = place(root, QueueRoot::HEAD)?;
    match root.follow(QueueRoot::FIRST) {
        Some(segment) if head < PLACES => Ok((segment.check_type()?, head)),
        _ => Err(damaged("the ends of a queue", root)),
    }
}

#[inline]
fn element_of<'g, V: View<'g>>(
    segment: SegmentAt<'g, V>,
    place: usize,
) -> Result<Element<'g, V>, Error> {
    present(segment.follow(Segment::PLACES.at(place)), segment)
}

impl<'g, V: View<'g>> Reader<'_, 'g, V, Segmented> {
    /// The first element.
    pub fn front(&self) -> Result<Option<Vec<u8>>, Error> {
        self.iter().next().transpose()
    }
}

impl<'g, V: View<'g>> Queue<'g, V> {
    /// The first element, which stays in the queue.
    pub fn front(&self) -> Result<Option<Vec<u8>>, Error> {
        self.read()?.front()
    }
}

impl<'t, M: Medium> Queue<'t, Tx<'t, M>> {
    /// Appends an element.
    ///
    /// Errors: the element is too large, the pool is full; the queue is unchanged.
    #[inline]
    pub fn push_back(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.lock()?;
        let (root, tx) = (self.root, self.root.view());
        let len = root.load(QueueRoot::LEN);
        let tail = place(root, QueueRoot::TAIL)?;
        let last = root.follow(QueueRoot::LAST);
        let last = last.map(Obj::check_type).transpose()?;
        let element = element::alloc(tx, bytes)?;
        let (segment, tail) = match last {
            Some(last) if tail < PLACES => (last, tail),
            _ => match self.append_segment(last) {
                Ok(segment) => (segment, 0),
                Err(error) => {
                    // Not linked yet: the queue is unchanged even if the caller goes on.
                    free_unlinked(tx, element)?;
                    return Err(error);
                }
            },
        };
        segment.link(Segment::PLACES.at(tail), Some(element));
        root.store(QueueRoot::TAIL, tail as u64 + 1);
        root.store(QueueRoot::LEN, len.wrapping_add(1));
        Ok(())
    }

    /// Appends an empty segment.
    #[cold]
    fn append_segment(
        &self,
        last: Option<SegmentAt<'t, Tx<'t, M>>>,
    ) -> Result<SegmentAt<'t, Tx<'t, M>>, Error> {
        let segment = self.root.view().alloc(Segment {
            next: Ref::NULL,
            places: [const { Ref::NULL }; PLACES],
        })?;
        match last {
            Some(last) => last.link(Segment::NEXT, Some(segment)),
            None => self.root.link(QueueRoot::FIRST, Some(segment)),
        }
        self.root.link(QueueRoot::LAST, Some(segment));
        Ok(segment)
    }

    /// Removes the first element and returns it.
    pub fn pop_front(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let mut bytes = Vec::new();
        Ok(self.pop_front_into(&mut bytes)?.then_some(bytes))
    }

    /// Removes the first element and appends it to `into`, without another allocation if it has room. Returns whether
    /// there was one.
    #[inline]
    pub fn pop_front_into(&mut self, into: &mut Vec<u8>) -> Result<bool, Error> {
        self.lock()?;
        let root = self.root;
        let Some(len) = root.load(QueueRoot::LEN).checked_sub(1) else {
            return Ok(false);
        };
        let (segment, head) = front(root)?;
        let is_only = root.refers_to(QueueRoot::LAST, segment);
        let element = element_of(segment, head)?;
        element.read_into(into)?;
        segment.link::<Bytes>(Segment::PLACES.at(head), None);
        root.store(QueueRoot::LEN, len);
        if is_only && len == 0 {
            // The queue is empty: uses the segment's first lines again.
            root.store(QueueRoot::HEAD, 0);
            root.store(QueueRoot::TAIL, 0);
        } else if head + 1 < PLACES {
            root.store(QueueRoot::HEAD, head as u64 + 1);
        } else {
            self.drop_first(segment)?;
        }
        free_unlinked(root.view(), element)?;
        Ok(true)
    }

    /// Frees the first segment; there is another one behind it.
    #[cold]
    fn drop_first(&self, segment: SegmentAt<'t, Tx<'t, M>>) -> Result<(), Error> {
        let Some(next) = segment.follow(Segment::NEXT) else {
            return Err(damaged("a queue that ends early", segment));
        };
        self.root.link(QueueRoot::FIRST, Some(next.check_type()?));
        self.root.store(QueueRoot::HEAD, 0);
        free_unlinked(self.root.view(), segment)
    }
}
