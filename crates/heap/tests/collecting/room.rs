//! Does a collection of a full pool make room for objects of another length, as many as a fresh pool takes?
//!
//! A pool is filled with objects of one length to a share of its room, half of them are freed, and the pool is
//! collected with the stock options. Then the objects of another length that fit are counted; no time is measured.

use std::sync::Mutex;

use firn_heap::collector::scheme::NONE;
use firn_heap::collector::{CollectOptions, Collected, Ended, PageSize};
use firn_heap::{
    Bytes, Error, LogKind, Pool, PoolKind, PoolOptions, RawTx, Refs, Session, TypeId, View,
};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::Memory;
use firn_units::VirtAddr;

/// The limit of the pool in bytes.
const BYTES: u64 = 48 << 20;
/// Bytes of a pool that objects cannot use: its own chunks, and the reserve.
const MIN_POOL_BYTES: u64 = 16 << 20;
/// Objects that one table names; such a table is below 1 MiB, so it moves.
const IN_TABLE: usize = 1 << 13;
const TABLES: usize = 200;

/// The programs that use the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// With typed references, and garbage that is traced.
    Traced,
    /// With typed references and a redo log, and explicit frees.
    Explicit,
    /// With raw addresses and an undo log, like programs for libpmemobj.
    Raw,
}

/// Objects of another length that must fit, in per cent of the number that a fresh pool of the freed size takes.
const LEAST_PERCENT: f64 = 90.0;

/// Which half of the objects is freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Half {
    First,
    Random,
    EverySecond,
}

impl Half {
    fn has(self, index: usize, of: usize) -> bool {
        let mixed = (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        match self {
            Half::First => index < of / 2,
            Half::Random => (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 63 == 0,
            Half::EverySecond => index % 2 == 0,
        }
    }
}

fn options(kind: Kind) -> PoolOptions {
    let (kind, log) = match kind {
        Kind::Traced => (PoolKind::Traced, LogKind::Redo),
        Kind::Explicit => (PoolKind::Explicit, LogKind::Redo),
        Kind::Raw => (PoolKind::Explicit, LogKind::Undo),
    };
    PoolOptions {
        kind,
        log,
        lanes: 2,
        max_bytes: Some(BYTES),
        ..PoolOptions::new("room")
    }
}

/// A program with its pool, and tables that name its objects.
struct Program {
    kind: Kind,
    pool: Pool<Mapped>,
    session: Session<Mapped>,
    what: Option<TypeId>,
    tables: Vec<VirtAddr>,
    len: Vec<usize>,
    /// Places of freed objects, if new ones are to go there.
    vacant: Option<Vec<usize>>,
}

fn table_name(table: usize) -> String {
    format!("table {table}")
}

fn byte(index: usize) -> u8 {
    (index % 251) as u8
}

impl Program {
    fn new(kind: Kind) -> Self {
        let medium = Mapped::anonymous(0, &MappedOptions::default()).unwrap();
        let pool = Pool::create(medium, &options(kind)).unwrap();
        let what = (kind == Kind::Raw).then(|| pool.register_pairs("anything").unwrap());
        let session = pool.session().unwrap();
        Self {
            kind,
            pool,
            session,
            what,
            tables: Vec::new(),
            len: Vec::new(),
            vacant: None,
        }
    }

    fn make_table(&mut self) -> Result<(), Error> {
        let name = table_name(self.tables.len());
        let at = match self.what {
            None => {
                self.session
                    .transaction(|tx| tx.set_root(&name, tx.alloc_refs::<Bytes>(IN_TABLE)?))?;
                VirtAddr(0)
            }
            Some(what) => self.session.raw_transaction(|tx| {
                let table = tx.alloc_of(what, IN_TABLE as u64 * 16)?;
                tx.set_root(&name, Some(table))?;
                Ok::<_, Error>(table)
            })?,
        };
        self.tables.push(at);
        Ok(())
    }

    /// Makes another object.
    fn make(&mut self, len: usize) -> Result<(), Error> {
        let reused = self.vacant.as_mut().and_then(Vec::pop);
        let index = reused.unwrap_or(self.len.len());
        if index / IN_TABLE == self.tables.len() {
            assert!(self.tables.len() < TABLES);
            self.make_table()?;
        }
        let (table, place) = (index / IN_TABLE, index % IN_TABLE);
        match self.what {
            None => self.session.transaction(|tx| {
                let new = tx.alloc_bytes(&vec![byte(index); len])?;
                tx.root::<Refs<Bytes>>(&table_name(table))?
                    .set(place, Some(new))
            })?,
            Some(what) => {
                let (id, at) = (self.pool.pair_id(), self.tables[table]);
                self.session.raw_transaction(|tx| {
                    let new = tx.alloc_of(what, len as u64)?;
                    tx.store(new, &vec![byte(index); len])?;
                    put(tx, tx.resolve(at) + place as u64 * 16, [id, new.0])
                })?;
            }
        }
        match reused {
            Some(index) => self.len[index] = len,
            None => self.len.push(len),
        }
        Ok(())
    }

    /// Makes objects until there is no more room, or until there are `most`. Returns how many.
    fn fill(&mut self, len: usize, most: usize) -> usize {
        for made in 0..most {
            match self.make(len) {
                Ok(()) => {}
                Err(Error::PoolFull { .. }) => return made,
                Err(other) => panic!("{other}"),
            }
        }
        most
    }

    fn free(&mut self, index: usize) {
        if let Some(vacant) = &mut self.vacant {
            vacant.push(index);
        }
        let (table, place) = (index / IN_TABLE, index % IN_TABLE);
        match self.what {
            None => self.session.transaction(|tx| {
                let table = tx.root::<Refs<Bytes>>(&table_name(table))?;
                let old = table.get(place);
                table.set(place, None)?;
                match (self.kind, old) {
                    // A collection will find it unreachable.
                    (Kind::Traced, _) | (_, None) => Ok(()),
                    // SAFETY: the only reference is removed.
                    (_, Some(old)) => unsafe { tx.free(old) },
                }
            }),
            Some(_) => {
                let at = self.tables[table];
                let medium = self.pool.medium();
                self.session.raw_transaction(|tx| {
                    let pair = tx.resolve(at) + place as u64 * 16;
                    let object = tx.resolve(VirtAddr(medium.load_u64(pair + 8)));
                    put(tx, pair, [0, 0])?;
                    // SAFETY: the table had the only reference.
                    unsafe { tx.free(object) }
                })
            }
        }
        .unwrap();
    }

    fn is_there(&mut self, index: usize) -> bool {
        let (table, place) = (index / IN_TABLE, index % IN_TABLE);
        let len = self.len[index];
        let is_right =
            |bytes: &[u8]| bytes.len() >= len && bytes[..8].iter().all(|&b| b == byte(index));
        match self.what {
            None => self.session.read(|view| {
                let table = view.root::<Refs<Bytes>>(&table_name(table)).unwrap();
                table
                    .get(place)
                    .is_some_and(|object| is_right(&object.to_vec().unwrap()))
            }),
            Some(_) => {
                let guard = self.session.raw_guard().unwrap();
                let medium = self.pool.medium();
                let pair = guard.resolve_to_read(self.tables[table]) + place as u64 * 16;
                if medium.load_u64(pair) == 0 {
                    return false;
                }
                let at = guard.resolve_to_read(VirtAddr(medium.load_u64(pair + 8)));
                let mut bytes = vec![0; self.len[index]];
                medium.load_bytes(at, &mut bytes);
                is_right(&bytes)
            }
        }
    }
}

fn put(tx: RawTx<'_, Mapped>, at: VirtAddr, words: [u64; 2]) -> Result<(), Error> {
    tx.log(&[(at, 16)])?;
    tx.store(at, bytemuck::cast_slice(&words))
}

/// The result of a case.
struct Outcome {
    /// Objects of the other length that fit, in per cent of the number for the freed size.
    percent: f64,
    before: f64,
    after: f64,
    collected: Collected,
}

/// How many objects of a length fit into a fresh pool.
fn fits(kind: Kind, len: usize) -> usize {
    static KNOWN: Mutex<Vec<(Kind, usize, usize)>> = Mutex::new(Vec::new());
    let is_it = |&&(k, l, _): &&(Kind, usize, usize)| (k, l) == (kind, len);
    if let Some(&(_, _, fits)) = KNOWN.lock().unwrap().iter().find(is_it) {
        return fits;
    }
    let fits = Program::new(kind).fill(len, usize::MAX);
    KNOWN.lock().unwrap().push((kind, len, fits));
    fits
}

fn run(kind: Kind, len: usize, other: usize, half: Half, percent_full: usize) -> Outcome {
    let (fits, others) = (fits(kind, len), fits(kind, other));
    let mut program = Program::new(kind);
    let made = program.fill(len, fits * percent_full / 100);
    let mut freed = 0;
    for index in (0..made).filter(|&index| half.has(index, made)) {
        program.free(index);
        freed += 1;
    }
    if kind == Kind::Traced {
        // Unreachable objects count until a collection has found them.
        let reclaim = CollectOptions {
            scheme: &NONE,
            ..CollectOptions::default()
        };
        program.pool.collect(&reclaim).unwrap();
    }
    let before = program.pool.ratio(PageSize::Huge);
    let collected = program.pool.collect(&CollectOptions::default()).unwrap();
    let after = program.pool.ratio(PageSize::Huge);
    assert_eq!(program.pool.check().unwrap(), []);
    let again = program.fill(other, usize::MAX);
    for index in 0..made {
        assert_eq!(program.is_there(index), !half.has(index, made), "{index}");
    }
    for index in made..made + again {
        assert!(program.is_there(index), "{index}");
    }
    assert_eq!(program.pool.check().unwrap(), []);
    // The freed objects' places in tables stay.
    let place = if kind == Kind::Raw { 16 } else { 8 };
    let places = (freed * place) as f64 / (BYTES - MIN_POOL_BYTES) as f64;
    let share = (fits - (made - freed)) as f64 / fits as f64 - places;
    Outcome {
        percent: 100.0 * again as f64 / (others as f64 * share),
        before,
        after,
        collected,
    }
}

const LENGTHS: [(usize, usize); 5] = [
    (100, 1000),
    (1000, 4100),
    (4000, 100),
    (40_000, 262_000),
    (200_000, 40_000),
];

/// Every length, half and fullness of one kind.
fn each_case(kind: Kind) {
    let mut failed = Vec::new();
    for (len, other) in LENGTHS {
        for half in [Half::First, Half::Random, Half::EverySecond] {
            // There are very many of the shortest objects, so two cases suffice.
            let fullness: &[usize] = if len < 1000 {
                &[90, 100]
            } else {
                &[80, 90, 97, 100]
            };
            for &full in fullness {
                let found = run(kind, len, other, half, full);
                let collected = &found.collected;
                let done = format!("{} moved, {:?}", collected.planned, collected.ended);
                let name = format!(
                    "{kind:?} {len} to {other} {half:?} {full} %: {:.1} %, ratio {:.2} to {:.2}, {done}",
                    found.percent, found.before, found.after
                );
                println!("{name}");
                if found.percent < LEAST_PERCENT || found.after > found.before {
                    failed.push(name);
                }
            }
        }
    }
    assert_eq!(failed, [""; 0]);
}

#[test]
fn a_full_traced_pool_takes_what_a_fresh_one_does() {
    each_case(Kind::Traced);
}

#[test]
fn a_full_explicit_pool_takes_what_a_fresh_one_does() {
    each_case(Kind::Explicit);
}

#[test]
fn a_full_pool_in_which_addresses_stay_takes_what_a_fresh_one_does() {
    each_case(Kind::Raw);
}

#[test]
fn a_collection_says_what_cannot_move_and_why_it_ended() {
    let mut program = Program::new(Kind::Explicit);
    let large = 3 << 20;
    program.make(large).unwrap();
    program.fill(1000, usize::MAX);
    for index in (1..program.len.len()).filter(|index| index % 2 == 0) {
        program.free(index);
    }
    let options = CollectOptions::default();
    let collected = program.pool.collect(&options).unwrap();
    let frames = (large as u64 + 16).div_ceil(4096) * 4096;
    assert_eq!(collected.large_bytes, frames, "{collected:?}");
    assert_eq!(collected.pinned_bytes, 0);
    assert_ne!(collected.ended, Ended::NotYet, "{collected:?}");
    let nothing = CollectOptions {
        scheme: &NONE,
        ..options
    };
    let collected = program.pool.collect(&nothing).unwrap();
    assert_eq!(collected.ended, Ended::NothingMoves);
}

/// Fills a pool, frees half of it at random and collects it, again and again, with objects of another length each time:
/// the reserve that one collection took is back for the next one.
#[test]
fn a_pool_that_is_filled_again_is_collected_again() {
    for kind in [Kind::Traced, Kind::Explicit] {
        let mut program = Program::new(kind);
        program.vacant = Some(Vec::new());
        // Bytes of all objects when the pool is full.
        let mut fitted = Vec::new();
        for round in 0..6 {
            let len = [100, 1000][round % 2];
            let before: Vec<_> = (0..program.len.len()).collect();
            let there: Vec<usize> = before
                .into_iter()
                .filter(|&i| program.is_there(i))
                .collect();
            let left = there.len() * [1000, 100][round % 2];
            fitted.push(left + program.fill(len, usize::MAX) * len);
            let made = program.len.len();
            // The earlier objects go, and half of the new ones.
            let is_new = |i: &usize| there.binary_search(i).is_err();
            let all: Vec<usize> = (0..made).filter(|&i| program.is_there(i)).collect();
            for index in all {
                // A half other than the one whose places were taken.
                if !is_new(&index) || Half::Random.has(index + round * 1_000_003, made) {
                    program.free(index);
                }
            }
            let collected = program.pool.collect(&CollectOptions::default()).unwrap();
            assert!(collected.planned > 0, "{kind:?} {collected:?}");
        }
        // Rounds of the same lengths.
        for (earlier, later) in [(2, 4), (3, 5)] {
            assert!(
                fitted[later] * 100 > fitted[earlier] * 95,
                "{kind:?} {fitted:?}"
            );
        }
        assert_eq!(program.pool.check().unwrap(), []);
    }
}
