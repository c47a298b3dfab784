//! Fragmented pools for tests of the collector, and checks of their content.
#![allow(dead_code)]

use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{
    Bytes, ClassStatistics, Error, FrameContent, Occupancy, Pool, PoolKind, PoolOptions, Refs,
    Session, Statistics, Target, Tx, View,
};
use firn_media::Medium;

pub type Spine = Refs<Bytes>;

pub const KINDS: [PoolKind; 2] = [PoolKind::Traced, PoolKind::Explicit];

/// Objects that one transaction of a setup makes or frees.
const BATCH: usize = 64;

pub fn options(kind: PoolKind) -> PoolOptions {
    PoolOptions {
        kind,
        lanes: 4,
        ..PoolOptions::new("collect")
    }
}

/// Collections that win everything that can be won.
pub fn collect(pages: PageSize) -> CollectOptions {
    CollectOptions {
        target: 1.0,
        pages,
        ..CollectOptions::default()
    }
}

/// Objects that are made one after the other, and a choice of those that stay.
#[derive(Clone, Copy)]
pub struct Objects {
    pub count: usize,
    pub len: fn(usize) -> usize,
    pub stays: fn(usize) -> bool,
}

/// Objects of several classes, few of which stay.
pub const MIXED: Objects = Objects {
    count: 1000,
    len: |i| match i % 49 {
        0 => 6000,
        1 => 40_000,
        2 => 1000,
        n => 20 + n % 8 * 16,
    },
    stays: |i| i % 5 == 0,
};

/// Slots of a page of [`UNEVEN`].
pub const SLOTS: usize = 8;

/// Three pages with five, five and three objects: the second is split, or starts a page.
pub const UNEVEN: Objects = Objects {
    count: 3 * SLOTS,
    len: |_| 490,
    stays: |i| i % SLOTS < [5, 5, 3][i / SLOTS],
};

impl Objects {
    pub fn value(&self, i: usize) -> Vec<u8> {
        let byte = |k| (i * 31 + k) as u8;
        (0..(self.len)(i)).map(byte).collect()
    }

    fn expected(&self, i: usize) -> Option<Vec<u8>> {
        (self.stays)(i).then(|| self.value(i))
    }

    /// Makes all of them; the root `spine` refers to each.
    pub fn make<M: Medium>(&self, pool: &Pool<M>) -> Result<(), Error> {
        let mut session = pool.session()?;
        session.transaction(|tx| tx.set_root("spine", tx.alloc_refs::<Bytes>(self.count)?))?;
        self.each_batch(&mut session, |tx, i| {
            let new = tx.alloc_bytes(&self.value(i))?;
            tx.root::<Spine>("spine")?.set(i, Some(new))
        })
    }

    /// Frees the others.
    pub fn thin<M: Medium>(&self, pool: &Pool<M>) -> Result<(), Error> {
        self.each_batch(&mut pool.session()?, |tx, i| {
            let spine = tx.root::<Spine>("spine")?;
            match spine.get(i) {
                Some(old) if !(self.stays)(i) => {
                    // SAFETY: the only reference is removed.
                    unsafe { tx.free(old)? };
                    spine.set(i, None)
                }
                _ => Ok(()),
            }
        })
    }

    fn each_batch<M: Medium>(
        &self,
        session: &mut Session<M>,
        each: impl Fn(Tx<'_, M>, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for first in (0..self.count).step_by(BATCH) {
            let end = self.count.min(first + BATCH);
            session.transaction(|tx| (first..end).try_for_each(|i| each(tx, i)))?;
        }
        Ok(())
    }

    /// A pool in which most of them were freed.
    pub fn pool<M: Medium>(&self, medium: M, kind: PoolKind) -> Pool<M> {
        let pool = Pool::create(medium, &options(kind)).unwrap();
        self.make(&pool).unwrap();
        self.thin(&pool).unwrap();
        pool
    }

    /// Checks that exactly the staying objects are there, and the pool is sound.
    pub fn verify<M: Medium>(&self, pool: &Pool<M>) -> Result<(), String> {
        let findings = pool.check().map_err(|e| e.to_string())?;
        if let Some(finding) = findings.first() {
            return Err(finding.to_string());
        }
        let mut session = pool.session().map_err(|e| e.to_string())?;
        session.read(|view| {
            let spine = view.root::<Spine>("spine").map_err(|e| e.to_string())?;
            for i in 0..self.count {
                let found = spine.get(i).map(|b| b.to_vec());
                let found = found.transpose().map_err(|e| e.to_string())?;
                if found != self.expected(i) {
                    return Err(format!("object {i}: {found:?}"));
                }
            }
            Ok(())
        })
    }

    pub fn assert_in<M: Medium>(&self, pool: &Pool<M>, when: &str) {
        if let Err(what) = self.verify(pool) {
            panic!("{when}: {what}");
        }
    }

    /// How many stay, including the spine.
    pub fn staying(&self) -> u64 {
        1 + (0..self.count).filter(|&i| (self.stays)(i)).count() as u64
    }
}

/// Begins a cycle, moves some objects and leaves it open.
pub fn leave_open<M: Medium>(pool: &Pool<M>, how: &CollectOptions, units: u64) {
    let mut collection = pool.collection(how).unwrap();
    assert!(collection.begin().unwrap(), "there is something to move");
    assert!(!collection.compact(units).unwrap(), "some have not moved");
    drop(collection);
    assert!(pool.has_open_cycle());
}

/// The word that refers to the object at each place of the array that the root `name` names.
pub fn words_of<T: Target, M: Medium>(pool: &Pool<M>, name: &str) -> Vec<u64> {
    let root = firn_format::root::root_at(0) + firn_format::root::REFERENCE_AT;
    let id = pool.medium().load_u64(root) >> 48 << 48;
    let mut session = pool.session().unwrap();
    session.read(|view| {
        let all = view.root::<Refs<T>>(name).unwrap();
        let word = |place| all.get(place).map_or(0, |object| id | object.address().0);
        (0..all.len()).map(word).collect()
    })
}

/// Checks that a closed pool that has not crashed counts this many objects, and that its slots in use are theirs.
pub fn verify_closed<M: Medium>(medium: &M, objects: u64) -> Result<(), String> {
    let statistics = Statistics::read(medium).map_err(|e| e.to_string())?;
    let occupancy = Occupancy::read(medium).map_err(|e| e.to_string())?;
    let of_slots = occupancy
        .frames
        .iter()
        .filter_map(|frame| match frame.content {
            FrameContent::Slots { .. } => frame.content.live_bytes(),
            _ => None,
        });
    let of_class = |c: &ClassStatistics| c.slot_bytes.unwrap_or(0) * c.objects;
    let counted: u64 = statistics.classes.iter().map(of_class).sum();
    match (statistics.objects, of_slots.sum::<u64>()) {
        (found, used) if (found, used) == (objects, counted) => Ok(()),
        (found, used) => Err(format!(
            "{found} objects instead of {objects}, {used} bytes of slots in use for {counted}"
        )),
    }
}
