//! One thread's transactions on any medium, so that the code timed on real memory is the code counted on memory that
//! can lose power.

use firn_heap::{Bytes, Error, Handle, Obj, Pool, Ref, Session, Stored, Tx, View};
use firn_media::Medium;

use super::clock::{Moment, Times};
use super::operation::{MOST_LIVE_OBJECTS, Operation};
use super::reclaim;

/// Ranges that changes use in turn: few enough to stay in the cache.
const PLACES: usize = 64;
const RANGE_WORDS: usize = 8;
/// Ranges from one place to the next: every other one stays unchanged.
const STRIDE: usize = 2;
/// Words in front, so that ranges begin with a line: the object's header is a word too.
const FRONT_WORDS: usize = 7;
/// The link that [`Operation::AllocLink`] replaces; it follows those of [`Operation::AllocOnly`].
const REPLACED: usize = MOST_LIVE_OBJECTS;
const LINK_PLACES: usize = MOST_LIVE_OBJECTS + RANGE_WORDS;
/// Objects that one transaction frees outside the timed part.
const FREED_AT_ONCE: usize = 16;
/// Fewest and most operations of a warm-up; within these bounds it is a tenth of the timed ones.
const WARM_UP: (u64, u64) = (64, 4096);

/// Ranges that are changed in place.
#[derive(Stored)]
#[repr(C)]
struct Ranges {
    front: [u64; FRONT_WORDS],
    ranges: [[u64; RANGE_WORDS]; PLACES * STRIDE],
}

/// Links to allocated objects.
#[derive(Stored)]
#[repr(C)]
struct Links {
    front: [u64; FRONT_WORDS],
    links: [Ref<Bytes>; LINK_PLACES],
}

/// A thread's state for its transactions.
pub(super) struct Rig<M: Medium> {
    session: Session<M>,
    ranges: Handle<Ranges, M>,
    links: Handle<Links, M>,
    buffer: Vec<u8>,
    turn: usize,
}

impl<M: Medium> Rig<M> {
    /// Makes the ranges and links of a thread, apart from any other thread's.
    pub(super) fn new(pool: &Pool<M>) -> Result<Self, Error> {
        let mut session = pool.session()?;
        let (ranges, links) = session.transaction(|tx| {
            let ranges = tx.alloc(Ranges {
                front: [0; FRONT_WORDS],
                ranges: [[0; RANGE_WORDS]; PLACES * STRIDE],
            })?;
            let links = tx.alloc(Links {
                front: [0; FRONT_WORDS],
                links: [const { Ref::NULL }; LINK_PLACES],
            })?;
            Ok::<_, Error>((pool.handle(ranges), pool.handle(links)))
        })?;
        let largest = Operation::all().filter_map(Operation::object_bytes).max();
        Ok(Self {
            session,
            ranges,
            links,
            buffer: vec![0; largest.unwrap_or(0)],
            turn: 0,
        })
    }

    /// Runs a tenth of `count` operations, so that caches and the log's ring reach their steady state.
    pub(super) fn warm_up(&mut self, operation: Operation, count: u64) -> Result<(), Error> {
        let count = (count / 10).clamp(WARM_UP.0, WARM_UP.1);
        self.timed(operation, count).map(|_| ())
    }

    /// Runs `count` operations and adds up the time of the operations alone.
    pub(super) fn timed(&mut self, operation: Operation, count: u64) -> Result<Times, Error> {
        let mut sum = Times::default();
        let mut left = count;
        while left > 0 {
            let now = left.min(operation.most_at_once());
            let start = Moment::now();
            self.run(operation, now)?;
            sum += start.elapsed();
            self.clear(operation, now)?;
            left -= now;
        }
        Ok(sum)
    }

    /// Runs `count` operations, no more than [`Operation::most_at_once`].
    pub(super) fn run(&mut self, operation: Operation, count: u64) -> Result<(), Error> {
        match operation {
            Operation::Empty => {
                for _ in 0..count {
                    self.session.transaction(|_| Ok::<_, Error>(()))?;
                }
            }
            Operation::Change { words: 1, ranges } => {
                for _ in 0..count {
                    self.change(ranges, |object, range, value| {
                        object.store(range_at(range).at(0), value);
                    })?;
                }
            }
            Operation::Change { ranges, .. } => {
                for _ in 0..count {
                    self.change(ranges, |object, range, value| {
                        object.store(range_at(range), [value; RANGE_WORDS]);
                    })?;
                }
            }
            Operation::AllocLink { bytes } => {
                for _ in 0..count {
                    self.alloc_link(bytes)?;
                }
            }
            Operation::AllocOnly { bytes } => {
                for index in 0..count {
                    self.alloc_only(bytes, index as usize)?;
                }
            }
        }
        Ok(())
    }

    /// Removes what `count` operations left.
    pub(super) fn clear(&mut self, operation: Operation, count: u64) -> Result<(), Error> {
        let Operation::AllocOnly { .. } = operation else {
            return Ok(());
        };
        let left: Vec<usize> = (0..count as usize).map(spread).collect();
        for some in left.chunks(FREED_AT_ONCE) {
            self.session.transaction(|tx| {
                let links = deref(tx, &self.links)?;
                some.iter().try_for_each(|&at| replace(links, at, None))
            })?;
        }
        Ok(())
    }

    #[inline]
    fn change(
        &mut self,
        ranges: usize,
        store: impl for<'t> Fn(Obj<'t, Ranges, Tx<'t, M>>, usize, u64),
    ) -> Result<(), Error> {
        let turn = &mut self.turn;
        self.session.transaction(|tx| {
            let object = deref(tx, &self.ranges)?;
            for _ in 0..ranges {
                *turn = turn.wrapping_add(1);
                store(object, *turn % PLACES * STRIDE, *turn as u64);
            }
            Ok(())
        })
    }

    #[inline]
    fn alloc_link(&mut self, bytes: usize) -> Result<(), Error> {
        self.turn = self.turn.wrapping_add(1);
        let content = &mut self.buffer[..bytes];
        content.fill(self.turn as u8);
        self.session.transaction(|tx| {
            let links = deref(tx, &self.links)?;
            let new = tx.alloc_bytes(content)?;
            replace(links, REPLACED, Some(new))
        })
    }

    #[inline]
    fn alloc_only(&mut self, bytes: usize, index: usize) -> Result<(), Error> {
        self.turn = self.turn.wrapping_add(1);
        let content = &mut self.buffer[..bytes];
        content.fill(self.turn as u8);
        self.session.transaction(|tx| {
            let links = deref(tx, &self.links)?;
            let new = tx.alloc_bytes(content)?;
            links.link(Links::LINKS.at(spread(index)), Some(new));
            Ok(())
        })
    }
}

/// The link of object number `index`: one place after the other, as for ranges, then the next word of each.
fn spread(index: usize) -> usize {
    index % PLACES * (RANGE_WORDS * STRIDE) + index / PLACES
}

fn range_at(range: usize) -> firn_heap::Field<Ranges, [u64; RANGE_WORDS]> {
    Ranges::RANGES.at(range)
}

fn deref<'t, T: Stored, M: Medium>(
    tx: Tx<'t, M>,
    handle: &Handle<T, M>,
) -> Result<Obj<'t, T, Tx<'t, M>>, Error> {
    tx.deref(handle).ok_or(Error::NotAllocated { at: 0 })
}

/// Makes a link refer to `new` and frees the former object.
fn replace<'t, M: Medium>(
    links: Obj<'t, Links, Tx<'t, M>>,
    at: usize,
    new: Option<Obj<'t, Bytes, Tx<'t, M>>>,
) -> Result<(), Error> {
    let field = Links::LINKS.at(at);
    let old = links.follow(field);
    links.link(field, new);
    match old {
        Some(old) => reclaim::free(links.view(), old),
        None => Ok(()),
    }
}

const _: () = assert!(PLACES * RANGE_WORDS * STRIDE == MOST_LIVE_OBJECTS);
