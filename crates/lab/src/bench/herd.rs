//! One thread's objects, of which rounds free some and allocate as many.

use firn_heap::{Bytes, Error, Handle, Obj, Pool, Refs, Session, Tx, View};
use firn_media::Medium;

use super::clock::{Moment, Times, thread_clock_cost_ns, thread_cpu_ns};
use super::operation::SMALL_BYTES;
use super::reclaim;

/// Most objects of a round.
pub(super) const MOST_AT_ONCE: usize = 64;
/// Spreads the indices of a population, which is a power of two, over all of it.
const ODD: usize = 0x9e37_79b1;
/// Readings of the clock in a transaction that is timed as a whole; the outer pair counts as one.
const READINGS: f64 = 3.0;

/// Which objects a round frees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Neighbours.
    InOrder,
    /// Objects all over the population.
    Scattered,
}

/// One thread's objects.
pub(super) struct Herd<M: Medium> {
    session: Session<M>,
    links: Handle<Refs<Bytes>, M>,
    len: usize,
    order: Order,
    next: usize,
    clock_ns: f64,
}

/// The cost of a number of objects.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    /// CPU time of the calls inside the transaction.
    pub(super) call_ns: f64,
    /// Time of the whole transactions.
    pub(super) whole: Times,
}

/// The costs of rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Costs {
    pub(super) alloc: Cost,
    pub(super) free: Cost,
}

impl Costs {
    /// Adds the costs of other rounds.
    pub(super) fn add(&mut self, other: Self) {
        for (sum, cost) in [(&mut self.free, other.free), (&mut self.alloc, other.alloc)] {
            sum.call_ns += cost.call_ns;
            sum.whole += cost.whole;
        }
    }
}

impl<M: Medium> Herd<M> {
    /// Allocates `len` objects, a power of two.
    pub(super) fn new(pool: &Pool<M>, len: usize, order: Order) -> Result<Self, Error> {
        let mut session = pool.session()?;
        let links = session.transaction(|tx| {
            let links = tx.alloc_refs::<Bytes>(len)?;
            Ok::<_, Error>(pool.handle(links))
        })?;
        let mut herd = Self {
            session,
            links,
            len,
            order,
            next: 0,
            clock_ns: thread_clock_cost_ns(),
        };
        for _ in 0..len / MOST_AT_ONCE {
            herd.alloc(MOST_AT_ONCE)?;
            herd.next = herd.next.wrapping_add(MOST_AT_ONCE);
        }
        Ok(herd)
    }

    /// Frees `count` objects in one transaction and allocates as many in another, `rounds` times.
    pub(super) fn rounds(&mut self, rounds: u64, count: usize) -> Result<Costs, Error> {
        let mut sum = Costs::default();
        for _ in 0..rounds {
            let free = self.free(count)?;
            let alloc = self.alloc(count)?;
            sum.add(Costs { alloc, free });
            self.next = self.next.wrapping_add(count);
        }
        Ok(sum)
    }

    /// Frees all objects, for the next herd of the pool.
    pub(super) fn clear(mut self) -> Result<(), Error> {
        for _ in 0..self.len / MOST_AT_ONCE {
            self.free(MOST_AT_ONCE)?;
            self.next = self.next.wrapping_add(MOST_AT_ONCE);
        }
        Ok(())
    }

    fn free(&mut self, count: usize) -> Result<Cost, Error> {
        let (len, order, next) = (self.len, self.order, self.next);
        let start = Moment::now();
        let call_ns = self.session.transaction(|tx| {
            let links = deref(tx, &self.links)?;
            let mut olds = [None; MOST_AT_ONCE];
            for (i, old) in olds[..count].iter_mut().enumerate() {
                let at = index(next + i, len, order);
                *old = links.get(at);
                links.set(at, None)?;
            }
            let before = thread_cpu_ns();
            for old in olds[..count].iter().flatten() {
                reclaim::free(tx, *old)?;
            }
            Ok::<_, Error>(thread_cpu_ns() - before)
        })?;
        Ok(self.cost(call_ns, start.elapsed()))
    }

    fn alloc(&mut self, count: usize) -> Result<Cost, Error> {
        let (len, order, next) = (self.len, self.order, self.next);
        let content = [next as u8; SMALL_BYTES];
        let start = Moment::now();
        let call_ns = self.session.transaction(|tx| {
            let links = deref(tx, &self.links)?;
            let mut news = [None; MOST_AT_ONCE];
            let before = thread_cpu_ns();
            for new in &mut news[..count] {
                *new = Some(tx.alloc_bytes(&content)?);
            }
            let call_ns = thread_cpu_ns() - before;
            for (i, new) in news[..count].iter().enumerate() {
                links.set(index(next + i, len, order), *new)?;
            }
            Ok::<_, Error>(call_ns)
        })?;
        Ok(self.cost(call_ns, start.elapsed()))
    }

    fn cost(&self, call_ns: f64, whole: Times) -> Cost {
        let clock_ns = READINGS * self.clock_ns;
        Cost {
            call_ns: call_ns - self.clock_ns,
            whole: Times {
                cpu_ns: whole.cpu_ns - clock_ns,
                wall_ns: whole.wall_ns - clock_ns,
            },
        }
    }
}

fn index(number: usize, len: usize, order: Order) -> usize {
    match order {
        Order::InOrder => number & (len - 1),
        Order::Scattered => number.wrapping_mul(ODD) & (len - 1),
    }
}

fn deref<'t, M: Medium>(
    tx: Tx<'t, M>,
    handle: &Handle<Refs<Bytes>, M>,
) -> Result<Obj<'t, Refs<Bytes>, Tx<'t, M>>, Error> {
    tx.deref(handle).ok_or(Error::NotAllocated { at: 0 })
}
