//! A queue of byte strings: the first in is the first out.
//!
//! It is a chain of segments, which hold references to the elements. A push or a pop changes the root
//! object and one place of a segment, a line each, besides the element itself. A segment whose last
//! element is popped is freed; an empty queue keeps one of 1 KiB, [`Queue::clear`] none.
//!
//! Crash: a change belongs to its transaction; a crash leaves all of it or nothing.
//! Concurrency: readers share the queue's lock, a writer has it alone until its transaction ends.
//! Source: the chunked lists of most standard libraries' double-ended queues.

mod read;

use std::collections::HashSet;

use firn_heap::{Bytes, Error, Obj, Ref, RootKey, Stored, Tx, View};
use firn_media::Medium;

use crate::element::{self, Element, damaged, present};
use crate::reclaim::free_unlinked;

pub use read::{Iter, QueueReader};

/// Places of a segment.
pub(crate) const PLACES: usize = 126;

/// What a queue's name refers to.
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
    /// The segment that the next element goes to, if it has a place left.
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

/// A queue, seen through a guard or a transaction. It is named by a root of the pool, or by a field
/// that refers to its [`QueueRoot`].
///
/// Every function takes constant time unless it says otherwise, and returns [`Error::Damaged`] or
/// [`Error::WrongType`] for media that make no sense, in a transaction [`Error::Conflict`] where it
/// would have to wait against the order of locks.
pub struct Queue<'g, V: View<'g>> {
    root: Root<'g, V>,
    lock: u64,
}

/// A place that the root names, within a segment or at its end.
#[inline]
fn place<'g, V: View<'g>>(
    root: Root<'g, V>,
    field: firn_heap::Field<QueueRoot, u64>,
) -> Result<usize, Error> {
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

impl<'g, V: View<'g>> Queue<'g, V> {
    /// The queue of a root, by its name or a [`RootHandle`](firn_heap::RootHandle).
    ///
    /// Errors: no such root, or it is no queue.
    pub fn open(view: V, root: impl RootKey<QueueRoot>) -> Result<Self, Error> {
        view.root(root).map(Self::at)
    }

    /// The queue of a root, or `None` if there is no such root.
    ///
    /// Errors: the root is no queue.
    pub fn find(view: V, root: impl RootKey<QueueRoot>) -> Result<Option<Self>, Error> {
        Ok(view.find_root(root)?.map(Self::at))
    }

    /// The queue at this object, which a field or a handle refers to.
    pub fn at(root: Obj<'g, QueueRoot, V>) -> Self {
        Self {
            root,
            lock: root.load(QueueRoot::LOCK),
        }
    }

    /// The object that stands for the queue: refer to it from a field, or make a handle of it.
    pub fn object(&self) -> Obj<'g, QueueRoot, V> {
        self.root
    }

    /// Takes the read lock until the returned value is dropped; everything can be read through it.
    ///
    /// In a guard, hold one at a time: a second lock that has to wait for a writer, who waits for
    /// the first one, waits forever.
    pub fn read(&self) -> Result<QueueReader<'_, 'g, V>, Error> {
        let lock = self.root.view().lock_shared(self.lock)?;
        Ok(QueueReader::new(self.root, lock))
    }

    /// Number of elements.
    pub fn len(&self) -> Result<u64, Error> {
        Ok(self.read()?.len())
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// The first element, which stays.
    pub fn front(&self) -> Result<Option<Vec<u8>>, Error> {
        self.read()?.front()
    }

    /// Every invariant that does not hold, in sentences; none for a sound queue. In linear time.
    pub fn check(&self) -> Result<Vec<String>, Error> {
        let _lock = self.root.view().lock_shared(self.lock)?;
        Ok(read::check(self.root))
    }
}

impl<'t, M: Medium> Queue<'t, Tx<'t, M>> {
    /// Makes an empty queue and a root for it.
    ///
    /// Errors: there is such a root already ([`Error::WrongKind`]), or no place for another; the
    /// pool is full.
    pub fn create(tx: Tx<'t, M>, root: impl RootKey<QueueRoot>) -> Result<Self, Error> {
        crate::refuse_taken_name(tx, root)?;
        let queue = Self::new(tx)?;
        tx.set_root(root, queue.root)?;
        Ok(queue)
    }

    /// The queue of a root, made if there is no such root.
    ///
    /// Errors: the root is no queue, the pool is full.
    pub fn open_or_create(tx: Tx<'t, M>, root: impl RootKey<QueueRoot>) -> Result<Self, Error> {
        match Self::find(tx, root)? {
            Some(queue) => Ok(queue),
            None => Self::create(tx, root),
        }
    }

    /// Makes an empty queue without a name: refer to its [`Queue::object`] from a field, or it is
    /// reclaimed.
    ///
    /// Errors: the pool is full.
    pub fn new(tx: Tx<'t, M>) -> Result<Self, Error> {
        let root = tx.alloc(QueueRoot {
            lock: tx.new_lock_id(),
            len: 0,
            first: Ref::NULL,
            last: Ref::NULL,
            head: 0,
            tail: 0,
        })?;
        Ok(Self::at(root))
    }

    /// Puts an element behind all others.
    ///
    /// Errors: the element is too large, the pool is full; the queue is as before.
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
                    // Not linked yet: the queue stays as it was even if the caller goes on.
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

    /// Puts an empty segment behind the last one.
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

    /// Removes the first element and appends it to `into`, without another allocation if that has
    /// room. Returns whether there was one.
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
            // The same lines again.
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

    /// Frees the first segment, behind which there is another.
    #[cold]
    fn drop_first(&self, segment: SegmentAt<'t, Tx<'t, M>>) -> Result<(), Error> {
        let Some(next) = segment.follow(Segment::NEXT) else {
            return Err(damaged("a queue that ends early", segment));
        };
        self.root.link(QueueRoot::FIRST, Some(next.check_type()?));
        self.root.store(QueueRoot::HEAD, 0);
        free_unlinked(self.root.view(), segment)
    }

    /// Removes every element and gives all space back, in time linear in their number.
    ///
    /// All of it is one transaction, which remembers each object until it ends. Where that is too
    /// much, pop piece by piece.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.lock()?;
        let root = self.root;
        root.view().nested(|tx| {
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
        })
    }

    #[inline]
    fn lock(&self) -> Result<(), Error> {
        self.root.view().lock_exclusive(self.lock)
    }
}
