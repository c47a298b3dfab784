//! Are objects that are stored to through raw addresses found wherever they are moved, by every address that
//! they ever had, and by the pairs of words that name them?

use std::collections::BTreeMap;

use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Error, LogKind, Pool, PoolKind, PoolOptions, RawGuard, RawTx, Session, TypeId};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Medium, MediumExt};
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

/// A generator of numbers that need not be good.
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

/// An object as the program knows it: every address that it had when somebody looked, and its value.
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

/// A pair in an object, and a value at its start and its end.
const PAIR: u64 = 16;

fn put<M: Medium>(tx: RawTx<'_, M>, at: VirtAddr, words: &[u64]) -> Result<(), Error> {
    tx.log(&[(at, words.len() as u64 * 8)])?;
    tx.store(at, bytemuck::cast_slice(words))
}

impl Program {
    fn new() -> Self {
        let medium = Mapped::anonymous(64 << 20, &MappedOptions::default()).unwrap();
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
                put(tx, tx.place(table) + key * 16, &[id, new.0])?;
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
                put(tx, tx.place(table) + key * 16, &[0, 0])?;
                // SAFETY: the table had the only reference to it, but for its own.
                unsafe { tx.free(tx.place(known.addresses[0])) }
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
                    put(tx, tx.place(first), &[value])?;
                    put(tx, tx.place(last) + end, &[!value])
                })
                .unwrap();
        } else {
            let guard = session.raw_guard().unwrap();
            let medium = self.pool.medium();
            let at = guard.place(last);
            medium.store_u64(at, value);
            medium.store_u64(at + end, !value);
            medium.persist(at, known.len);
        }
        known.value = value;
    }

    /// Everything is there, by every address, and the pairs lead to it.
    fn check(&mut self, session: &mut Session<Mapped>) {
        let guard = session.raw_guard().unwrap();
        let medium = self.pool.medium();
        let table = guard.place_to_read(self.table);
        let id = self.pool.pair_id();
        for key in 0..ROOT_PAIRS {
            let pair = [0, 8].map(|i| medium.load_u64(table + key * 16 + i));
            let Some(known) = self.objects.get_mut(&key) else {
                assert_eq!(pair, [0, 0], "{key}");
                continue;
            };
            assert_eq!(pair[0], id);
            let now = guard.place_to_read(VirtAddr(pair[1]));
            for &old in &known.addresses {
                assert_eq!(guard.place_to_read(old), now, "{key} by {old}");
                assert_eq!(guard.place_to_read(old + 8), now + 8);
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
    assert_eq!(guard.place_to_read(own), now + 8);
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
