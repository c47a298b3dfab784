//! Are objects with stores through raw addresses found after every move, by every address that they ever had, and by
//! the pairs of words that name them?

mod kinds;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;

use firn_crash::{Crash, CrashOptions};
use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{
    CopyError, CopyIdentity, CopyProgress, Error, Gathering, LogKind, Moved, Obj, Pool, PoolKind,
    PoolOptions, RawGuard, RawTx, Session, TypeId, Untyped,
};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Domain, Medium, MediumExt, Memory, Space};
use firn_units::VirtAddr;

const ROOT_PAIRS: u64 = 2048;

fn options() -> PoolOptions {
    PoolOptions {
        kind: PoolKind::Explicit,
        log: LogKind::Undo,
        lanes: 4,
        ..PoolOptions::new("raw")
    }
}

fn collect(pages: PageSize) -> CollectOptions {
    CollectOptions {
        target: 1.0,
        pages,
        ..CollectOptions::default()
    }
}

/// A simple generator of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// An object as the program knows it: every address that it was seen at, and its value.
struct Known {
    addresses: Vec<VirtAddr>,
    value: u64,
    len: u64,
}

struct Program {
    pool: Pool<Mapped>,
    what: TypeId,
    table: VirtAddr,
    objects: BTreeMap<u64, Known>,
}

/// Offset of a pair in an object; a value is at its start and its end.
const PAIR: u64 = 16;

fn put<M: Medium>(tx: RawTx<'_, M>, at: VirtAddr, words: &[u64]) -> Result<(), Error> {
    tx.log(&[(at, words.len() as u64 * 8)])?;
    tx.store(at, bytemuck::cast_slice(words))
}

impl Program {
    fn new() -> Self {
        Self::on(Mapped::anonymous(64 << 20, &MappedOptions::default()).unwrap())
    }

    fn on(medium: Mapped) -> Self {
        let pool = Pool::create(medium, &options()).unwrap();
        let what = pool.register_pairs("anything").unwrap();
        let table = pool
            .session()
            .unwrap()
            .raw_transaction(|tx| {
                let table = tx.alloc_of(what, ROOT_PAIRS * 16)?;
                tx.set_root("table", Some(table))?;
                Ok::<_, Error>(table)
            })
            .unwrap();
        Self {
            pool,
            what,
            table,
            objects: BTreeMap::new(),
        }
    }

    fn allocate(&mut self, session: &mut Session<Mapped>, key: u64, len: u64, value: u64) {
        let (id, table, what) = (self.pool.pair_id(), self.table, self.what);
        let at = session
            .raw_transaction(|tx| {
                let new = tx.alloc_of(what, len)?;
                tx.store(new, &value.to_le_bytes())?;
                // It refers to the middle of itself.
                tx.store(new + PAIR, bytemuck::cast_slice(&[id, new.0 + 8]))?;
                tx.store(new + (len - 8), &(!value).to_le_bytes())?;
                put(tx, tx.resolve(table) + key * 16, &[id, new.0])?;
                Ok::<_, Error>(new)
            })
            .unwrap();
        self.objects.insert(
            key,
            Known {
                addresses: vec![at],
                value,
                len,
            },
        );
    }

    fn free(&mut self, session: &mut Session<Mapped>, key: u64) {
        let Some(known) = self.objects.remove(&key) else {
            return;
        };
        let table = self.table;
        session
            .raw_transaction(|tx| {
                put(tx, tx.resolve(table) + key * 16, &[0, 0])?;
                // SAFETY: the table had the only reference to it, but for its own.
                unsafe { tx.free(tx.resolve(known.addresses[0])) }
            })
            .unwrap();
    }

    /// Changes a value in a transaction, or by plain stores.
    fn change(&mut self, session: &mut Session<Mapped>, key: u64, value: u64, logged: bool) {
        let Some(known) = self.objects.get_mut(&key) else {
            return;
        };
        let (first, last) = (known.addresses[0], *known.addresses.last().unwrap());
        let end = known.len - 8;
        if logged {
            session
                .raw_transaction(|tx| {
                    put(tx, tx.resolve(first), &[value])?;
                    put(tx, tx.resolve(last) + end, &[!value])
                })
                .unwrap();
        } else {
            let guard = session.raw_guard().unwrap();
            let medium = self.pool.medium();
            let at = guard.resolve(last);
            medium.store_u64(at, value);
            medium.store_u64(at + end, !value);
            medium.persist(at, known.len);
        }
        known.value = value;
    }

    /// Checks that everything is there, by every address, and that the pairs lead to it.
    fn check(&mut self, session: &mut Session<Mapped>) {
        let marks = self.pool.place_marks();
        let is_marked = marks.iter().any(|mark| mark.load(Ordering::Relaxed) != 0);
        assert_eq!(self.pool.has_place_marks(), is_marked);
        let guard = session.raw_guard().unwrap();
        let medium = self.pool.medium();
        let table = guard.resolve_to_read(self.table);
        let id = self.pool.pair_id();
        for key in 0..ROOT_PAIRS {
            let pair = [0, 8].map(|i| medium.load_u64(table + key * 16 + i));
            let Some(known) = self.objects.get_mut(&key) else {
                assert_eq!(pair, [0, 0], "{key}");
                continue;
            };
            assert_eq!(pair[0], id);
            let now = guard.resolve_to_read(VirtAddr(pair[1]));
            for &old in &known.addresses {
                assert_eq!(guard.resolve_to_read(old), now, "{key} by {old}");
                assert_eq!(guard.resolve_to_read(old + 8), now + 8);
            }
            is_sound(&guard, medium, id, now, known);
            if known.addresses.last() != Some(&now) {
                known.addresses.push(now);
            }
        }
    }
}

fn is_sound(guard: &RawGuard<'_, Mapped>, medium: &Mapped, id: u64, now: VirtAddr, known: &Known) {
    assert_eq!(medium.load_u64(now), known.value);
    assert_eq!(medium.load_u64(now + (known.len - 8)), !known.value);
    assert_eq!(medium.load_u64(now + PAIR), id);
    let own = VirtAddr(medium.load_u64(now + PAIR + 8));
    assert_eq!(guard.resolve_to_read(own), now + 8);
}

#[test]
fn every_address_leads_to_its_object_through_many_cycles() {
    for (pages, seed) in [
        (PageSize::Small, 1),
        (PageSize::Huge, 2),
        (PageSize::Small, 3),
    ] {
        let mut program = Program::new();
        let mut session = program.pool.session().unwrap();
        let mut numbers = Numbers(seed);
        let mut moved = 0;
        for round in 0..6 {
            for key in 0..ROOT_PAIRS {
                if !program.objects.contains_key(&key) {
                    let len = [40, 120, 504, 5_000][numbers.below(4) as usize];
                    program.allocate(&mut session, key, len, round);
                }
            }
            for key in 0..ROOT_PAIRS {
                match numbers.below(8) {
                    0 => program.change(&mut session, key, key, round % 2 == 0),
                    1..7 => program.free(&mut session, key),
                    _ => {}
                }
            }
            let pool = program.pool.clone();
            let mut collection = pool.collection(&collect(pages)).unwrap();
            while collection.begin().unwrap() {
                program.check(&mut session);
                for _ in 0..40 {
                    let key = numbers.below(ROOT_PAIRS);
                    let (value, logged) = (numbers.below(1 << 30), numbers.below(2) == 0);
                    program.change(&mut session, key, value, logged);
                    collection.compact(numbers.below(8)).unwrap();
                    program.free(&mut session, numbers.below(ROOT_PAIRS));
                }
                program.check(&mut session);
                collection.finish().unwrap();
                program.check(&mut session);
            }
            moved += collection.collected().planned;
            drop(collection);
            assert_eq!(program.pool.check().unwrap(), []);
        }
        assert!(moved > 500, "{moved} objects were moved");
    }
}

/// Keeps one object in eight, and collects.
fn thin_out(program: &mut Program, session: &mut Session<Mapped>, round: u64) {
    for key in 0..ROOT_PAIRS {
        if !program.objects.contains_key(&key) {
            program.allocate(session, key, [40, 504][key as usize % 2], round);
        }
    }
    for key in (0..ROOT_PAIRS).filter(|key| key % 8 != round) {
        program.free(session, key);
    }
    let collected = program.pool.collect(&collect(PageSize::Small)).unwrap();
    assert!(collected.planned > 100, "{collected:?}");
}

impl Program {
    /// This program with the pool in its current state.
    fn reopened(self, path: &Path) -> Self {
        let Self { pool, objects, .. } = self;
        drop(pool);
        let medium = Mapped::open(path, &MappedOptions::default()).unwrap();
        let pool = Pool::open(medium, &options()).unwrap();
        let what = pool.register_pairs("anything").unwrap();
        let mut session = pool.session().unwrap();
        let table = {
            let guard = session.raw_guard().unwrap();
            let table = Obj::<Untyped, _>::of_root(guard.view(), "table")
                .unwrap()
                .unwrap();
            table.address() + 8
        };
        Self {
            pool,
            what,
            table,
            objects,
        }
    }

    /// Forgets every address but that of the table, whose pairs lead to the objects.
    fn find_again(&mut self) {
        for known in self.objects.values_mut() {
            known.addresses.clear();
        }
        let pool = self.pool.clone();
        let mut session = pool.session().unwrap();
        self.check(&mut session);
        let marks = pool.place_marks();
        for known in self.objects.values() {
            let [at] = known.addresses[..] else {
                panic!("one address")
            };
            let frame = at.0 / 4096;
            assert_eq!(marks[frame as usize].load(Ordering::Relaxed), 0);
        }
        let table = |i| pool.medium().load_u64(self.table + i);
        for (key, known) in &self.objects {
            assert_eq!(
                table(key * 16 + 8),
                known.addresses[0].0,
                "a reference was not healed"
            );
        }
    }
}

#[test]
fn addresses_stay_through_a_kill_and_are_forgotten_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool.firn");
    let mut program = Program::on(
        Mapped::create(&path, 0, &MappedOptions::default().domain(Domain::Process)).unwrap(),
    );
    for round in 0..3 {
        let pool = program.pool.clone();
        let mut session = pool.session().unwrap();
        thin_out(&mut program, &mut session, round);
        program.check(&mut session);
        drop(session);
        match round {
            0 | 1 => {
                // As if the process were killed.
                pool.abandon();
                program = program.reopened(&path);
                let mut session = program.pool.session().unwrap();
                program.check(&mut session);
                assert!(
                    program
                        .objects
                        .values()
                        .any(|known| known.addresses.len() > 1)
                );
            }
            _ => pool.close().unwrap(),
        }
    }
    let mut program = program.reopened(&path);
    program.find_again();
    let pool = program.pool.clone();
    assert_eq!(pool.check().unwrap(), []);
}

#[test]
fn a_program_without_addresses_gets_their_space_back() {
    let mut program = Program::new();
    let pool = program.pool.clone();
    let mut session = pool.session().unwrap();
    let mut lens = Vec::new();
    for round in 0..8 {
        thin_out(&mut program, &mut session, round % 4);
        pool.drop_forwarding().unwrap();
        program.table = {
            let guard = session.raw_guard().unwrap();
            let table = Obj::<Untyped, _>::of_root(guard.view(), "table")
                .unwrap()
                .unwrap();
            table.address() + 8
        };
        program.find_again();
        lens.push(pool.medium().len());
    }
    assert_eq!(lens[2], lens[7], "the pool goes on growing: {lens:?}");
}

#[test]
fn what_is_pinned_stays() {
    let mut program = Program::new();
    let pool = program.pool.clone();
    let mut session = pool.session().unwrap();
    program.allocate(&mut session, 3, 40, 1);
    let pinned = program.objects[&3].addresses[0];
    pool.pin(pinned).unwrap();
    thin_out(&mut program, &mut session, 3);
    let guard = session.raw_guard().unwrap();
    assert_eq!(guard.resolve(pinned), pinned);
    assert!(pool.pin(pinned + 8).is_err());
}

const PAGE: u64 = 2 << 20;
const LEN: u64 = 4_000;

impl Program {
    /// Bytes of objects that begin in a page now.
    fn bytes_in(&self, session: &mut Session<Mapped>, page: u64) -> u64 {
        let guard = session.raw_guard().unwrap();
        let page_of = |known: &Known| guard.resolve(known.addresses[0]).0 / PAGE;
        let there = self.objects.values().filter(|known| page_of(known) == page);
        there.map(|known| known.len).sum()
    }

    fn fill(&mut self, session: &mut Session<Mapped>, keys: core::ops::Range<u64>) {
        keys.for_each(|key| self.allocate(session, key, LEN, key));
    }

    /// Keeps the keys that are multiples of the divisor, and collects pages of 2 MiB.
    fn thin_pages(&mut self, session: &mut Session<Mapped>, keys: core::ops::Range<u64>, by: u64) {
        keys.filter(|key| key % by != 0)
            .for_each(|key| self.free(session, key));
        self.pool.collect(&collect(PageSize::Huge)).unwrap();
        self.check(session);
    }
}

/// A pool in which a page may be reserved.
fn wide_program() -> Program {
    Program::on(Mapped::anonymous(256 << 20, &MappedOptions::default()).unwrap())
}

/// A page with a pinned object stays in any case: survivors fill it before any other.
#[test]
fn a_page_that_something_pins_is_filled_first() {
    let mut program = wide_program();
    let pool = program.pool.clone();
    let mut session = pool.session().unwrap();
    program.allocate(&mut session, 0, 40, 1);
    let pinned = program.objects[&0].addresses[0];
    let page = pinned.0 / PAGE;
    pool.pin(pinned).unwrap();
    program.fill(&mut session, 1..ROOT_PAIRS);
    assert_eq!(program.bytes_in(&mut session, page), 40, "nothing else");
    program.thin_pages(&mut session, 1..ROOT_PAIRS, 3);
    let filled = program.bytes_in(&mut session, page);
    assert!(filled > PAGE / 10 * 9, "{filled} bytes");
    let (seen, _) = pool.emptied_since(0);
    // Its later free frames would be room for no one, so it stays.
    program.thin_pages(&mut session, 1..ROOT_PAIRS, 12);
    let left = program.bytes_in(&mut session, page);
    assert!(left > PAGE / 5, "{left} bytes");
    let (_, emptied) = pool.emptied_since(seen);
    assert!(emptied.iter().all(|(at, _)| at.0 / PAGE != page));
    let guard = session.raw_guard().unwrap();
    assert_eq!(guard.resolve(pinned), pinned);
}

#[test]
fn the_page_in_which_a_long_object_ends_is_filled_first() {
    let mut program = wide_program();
    let pool = program.pool.clone();
    let mut session = pool.session().unwrap();
    let len = 8 * PAGE + 8;
    program.allocate(&mut session, 0, len, 1);
    let page = (program.objects[&0].addresses[0].0 + len) / PAGE;
    program.fill(&mut session, 1..ROOT_PAIRS);
    assert_eq!(program.bytes_in(&mut session, page), 0);
    program.thin_pages(&mut session, 1..ROOT_PAIRS, 3);
    let filled = program.bytes_in(&mut session, page);
    assert!(filled > PAGE / 10 * 9, "{filled} bytes");
}

/// Allocation gets reserved frames where nothing else is left.
#[test]
fn a_page_that_was_set_aside_is_used_before_a_pool_is_full() {
    let mut small = MappedOptions::default();
    small.capacity = 64 << 20;
    let mut program = Program::on(Mapped::anonymous(0, &small).unwrap());
    let pool = program.pool.clone();
    let mut session = pool.session().unwrap();
    program.allocate(&mut session, 0, 40, 1);
    let page = program.objects[&0].addresses[0].0 / PAGE;
    pool.pin(program.objects[&0].addresses[0]).unwrap();
    program.fill(&mut session, 1..ROOT_PAIRS);
    assert_eq!(program.bytes_in(&mut session, page), 40);
    let what = program.what;
    let mut allocated = (0..small.capacity / LEN)
        .map_while(|_| session.raw_transaction(|tx| tx.alloc_of(what, LEN)).ok());
    assert!(allocated.any(|at| at.0 / PAGE == page));
}
