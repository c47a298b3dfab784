//! Filling golden pools.

use firn_heap::{
    Error, FieldDescriptor, FieldKind, Pool, PoolKind, Ref, Stored, Tx, TypeDescriptor, View,
};
use firn_media::Medium;
use firn_structures::{HashMap, List, Map, StringArray, Vector};
use firn_units::VirtAddr;

use crate::content::{
    BUFFER, Note, PAIRED, PAIRED_ROOT, PAIRS, Page, RAW_ROOTS, THINGS, ThingV1, bytes_of, key_of,
    paired, put, table, value_of,
};

/// Version 1 of pages; no object of it is left.
#[derive(Stored)]
#[repr(C)]
#[firn(name = "Page", version = 1)]
pub struct PageV1 {
    pub number: u64,
}

const fn reference(name: &'static str, offset: u32, count: u32) -> FieldDescriptor {
    FieldDescriptor::new(name, FieldKind::Reference, [offset, 8, count])
}

/// A type that is described while the program runs: two references, a number, a reference, a number.
static NODE: TypeDescriptor = TypeDescriptor {
    name: "node",
    version: 1,
    size: 40,
    fields: &[reference("pair", 0, 2), reference("next", 24, 1)],
    with: &[],
};

/// Notes of the chain at the beginning.
const NOTES: u64 = 240;
/// Entries of the map that are inserted, and the share of them that stays: one in this many.
const ENTRIES: u64 = 900;
const STAYS: u64 = 3;
/// Pages.
const PAGES: usize = 24;
/// Bytes of the large object.
const LARGE: usize = 200_000;

/// Fills a new pool that was created with a redo log.
pub fn fill<M: Medium>(pool: &Pool<M>) -> Result<(), Error> {
    let mut session = pool.session()?;
    session.transaction(|tx| {
        tx.set_root("large", tx.alloc_bytes(&bytes_of(7, LARGE))?)?;
        tx.set_root("raw", tx.alloc_raw(&bytes_of(8, 333))?)?;
        let pages = tx.alloc_refs::<PageV1>(PAGES)?;
        tx.set_root("pages", pages)?;
        for number in 0..PAGES {
            let page = tx.alloc(PageV1 {
                number: number as u64,
            })?;
            pages.set(number, Some(page))?;
        }
        Map::create(tx, "map")?;
        let mut hash = HashMap::create(tx, "hash")?;
        let mut list = List::create(tx, "list")?;
        let mut vector = Vector::create(tx, "vector")?;
        let mut strings = StringArray::create(tx, "strings", 40)?;
        for number in 0..40 {
            hash.insert(&key_of(number), &value_of(number))?;
            list.push_back(number, &value_of(number))?;
            vector.push(&value_of(number))?;
            if number % 3 != 0 {
                strings.set(number, &value_of(number))?;
            }
        }
        Ok::<_, Error>(())
    })?;
    session.transaction(things)?;
    let node = pool.register_described(&NODE)?;
    session.transaction(|tx| {
        let mut words = [0, 0, 11, 0, 12];
        let first = tx.alloc_untyped(&node, bytemuck::cast_slice(&words), 40)?;
        (words[0], words[1]) = (first.reference_word(), first.reference_word());
        (words[2], words[4]) = (21, 22);
        let second = tx.alloc_untyped(&node, bytemuck::cast_slice(&words), 60)?;
        tx.set_root("node", second)
    })?;
    // Notes and entries alternate, so that notes lie in pages most of which is freed below.
    for number in 0..ENTRIES {
        session.transaction(|tx| {
            if number * NOTES / ENTRIES != (number + 1) * NOTES / ENTRIES {
                push_note(tx, number * NOTES / ENTRIES)?;
            }
            Map::open(tx, "map")?.insert(&key_of(number), &value_of(number))
        })?;
    }
    for number in (0..ENTRIES).filter(|number| number % STAYS != 0) {
        session.transaction(|tx| Map::open(tx, "map")?.remove(&key_of(number)))?;
    }
    drop(session);
    let turned = pool.migrate(|old: PageV1| Page {
        number: old.number,
        twice: 2 * old.number,
    })?;
    assert_eq!(turned, PAGES as u64);
    Ok(())
}

fn things<M: Medium>(tx: Tx<'_, M>) -> Result<(), Error> {
    let all = tx.alloc_refs::<ThingV1>(THINGS)?;
    tx.set_root("things", all)?;
    for number in 0..THINGS {
        let thing = ThingV1 {
            next: Ref::NULL,
            number: number as u64,
        };
        all.set(number, Some(tx.alloc(thing)?))?;
    }
    for number in 0..THINGS {
        let next = all.get((number + 1) % THINGS);
        all.get(number).unwrap().link(ThingV1::NEXT, next);
    }
    Ok(())
}

fn push_note<M: Medium>(tx: Tx<'_, M>, number: u64) -> Result<(), Error> {
    let first = tx.find_root::<Note>("notes")?;
    let note = tx.alloc(Note {
        next: Ref::NULL,
        text: Ref::NULL,
        number,
    })?;
    note.link(Note::NEXT, first);
    note.link(Note::TEXT, Some(tx.alloc_bytes(&bytes_of(number, 90))?));
    tx.set_root("notes", note)
}

/// Fills a pool that [`fill`] has filled, and that was opened with an undo log.
pub fn fill_raw<M: Medium>(pool: &Pool<M>) -> Result<(), Error> {
    if pool.kind() == PoolKind::Traced {
        let mut session = pool.session()?;
        return session.raw_transaction(|tx| {
            for (root, number) in RAW_ROOTS.into_iter().zip(0..) {
                let at = tx.alloc(BUFFER * 8)?;
                tx.store(at, bytemuck::cast_slice(&buffer_of(number)))?;
                tx.set_root(root, Some(at))?;
            }
            Ok(())
        });
    }
    let what = pool.register_pairs(PAIRED)?;
    let id = pool.pair_id();
    let mut session = pool.session()?;
    session.raw_transaction(|tx| {
        let table = tx.alloc_of(what, PAIRS * 16)?;
        tx.store(table, &[0; PAIRS as usize * 16])?;
        tx.set_root(PAIRED_ROOT, Some(table))?;
        let buffer = tx.alloc_of(what, BUFFER * 8)?;
        tx.store(buffer, bytemuck::cast_slice(&buffer_of(0)))?;
        tx.store(table, bytemuck::cast_slice(&[id, buffer.0]))
    })?;
    for number in 1..PAIRS {
        session.raw_transaction(|tx| {
            let new = paired(tx, (what, id), number, 100 + number)?;
            let table = table(tx.view())?;
            put(tx, tx.resolve(table) + number * 16, &[id, new.0])
        })?;
    }
    for number in (1..PAIRS).filter(|number| number % 4 != 0) {
        session.raw_transaction(|tx| {
            let slot = tx.resolve(table(tx.view())?) + number * 16;
            let at = VirtAddr(pool.medium().load_u64(slot + 8));
            put(tx, slot, &[0, 0])?;
            // SAFETY: the table had the only reference to it, apart from its own to itself.
            unsafe { tx.free(tx.resolve(at)) }
        })?;
    }
    Ok(())
}

fn buffer_of(number: u64) -> Vec<u64> {
    (0..BUFFER).map(|i| (number << 32) + i).collect()
}
