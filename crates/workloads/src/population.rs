//! Objects that are added to a structure and removed from it by number.

use firn_heap::{Error, Pool, Session};
use firn_media::Medium;

use crate::shape::{LARGEST_BYTES, Shape, Sizes};
use crate::way::Way;

/// Default number of objects that one transaction adds or removes.
const BATCH: usize = 16;
/// Of this many objects, four are deleted.
const DELETED_OF: usize = 5;
/// Seed of the sizes, and of the choice of deleted objects where nothing else decides it.
pub const SEED: u64 = 1;

/// A structure and its objects, used by one thread's session.
pub struct Population<M: Medium> {
    pool: Pool<M>,
    session: Session<M>,
    way: Way<M>,
    sizes: Sizes,
    /// Objects that one transaction adds or removes.
    batch: usize,
    rng: fastrand::Rng,
    value: Vec<u8>,
}

/// The numbers of `n` objects: first those that are deleted, four out of five, then those that stay; both in random
/// order.
pub fn shuffled(n: u64, seed: u64) -> (Vec<u32>, Vec<u32>) {
    let mut all: Vec<u32> = (0..n as u32).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut all);
    let stay = all.split_off(all.len() / DELETED_OF * (DELETED_OF - 1));
    (all, stay)
}

impl<M: Medium> Population<M> {
    /// Makes an empty structure that will hold numbers below `n`.
    pub fn new(pool: &Pool<M>, shape: Shape, sizes: Sizes, n: u64) -> Result<Self, Error> {
        let mut session = pool.session()?;
        let way = session.transaction(|tx| Way::new(pool, tx, shape, n))?;
        Ok(Self {
            pool: pool.clone(),
            session,
            way,
            sizes,
            batch: BATCH,
            rng: fastrand::Rng::with_seed(SEED),
            value: vec![1; LARGEST_BYTES],
        })
    }

    /// Makes a structure with the objects below `n`, added in order.
    pub fn filled(pool: &Pool<M>, shape: Shape, sizes: Sizes, n: u64) -> Result<Self, Error> {
        let mut population = Self::new(pool, shape, sizes, n)?;
        let all: Vec<u32> = (0..n as u32).collect();
        population.add(&all)?;
        Ok(population)
    }

    /// From now on every object is added or removed by a transaction of its own.
    pub fn take_one_a_transaction(&mut self) {
        self.batch = 1;
    }

    /// The thread's session.
    pub fn session(&mut self) -> &mut Session<M> {
        &mut self.session
    }

    /// Adds objects.
    pub fn add(&mut self, numbers: &[u32]) -> Result<(), Error> {
        numbers
            .chunks(self.batch)
            .try_for_each(|some| self.add_some(some))
    }

    /// Removes objects that are there.
    pub fn remove(&mut self, numbers: &[u32]) -> Result<(), Error> {
        if let Way::List(list) = &self.way {
            return list.unlink(&self.pool, &mut self.session, numbers, self.batch);
        }
        numbers
            .chunks(self.batch)
            .try_for_each(|some| self.remove_some(some))
    }

    fn add_some(&mut self, numbers: &[u32]) -> Result<(), Error> {
        let Self {
            session,
            way,
            sizes,
            rng,
            value,
            ..
        } = self;
        session.transaction(|tx| {
            numbers.iter().try_for_each(|&number| {
                let len = sizes.draw(rng);
                way.insert(tx, number, &value[..len])
            })
        })
    }

    fn remove_some(&mut self, numbers: &[u32]) -> Result<(), Error> {
        let way = &self.way;
        self.session.transaction(|tx| {
            numbers
                .iter()
                .try_for_each(|&number| way.remove(tx, number))
        })
    }

    /// Finds objects that are there and copies the value of each, in one guard.
    pub fn get(&mut self, numbers: &[u32], value: &mut Vec<u8>) -> Result<(), Error> {
        self.way.get(self.session.guard().view(), numbers, value)
    }

    /// Finds objects that are there, all of them requested at once.
    pub fn get_each(&mut self, numbers: &[u32], value: &mut Vec<u8>) -> Result<(), Error> {
        self.way
            .get_each(self.session.guard().view(), numbers, value)
    }
}
