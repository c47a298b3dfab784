//! The content of golden pools, how it is made, and how it is described.

use std::fmt::Write as _;

use firn_heap::{
    Bytes, Error, LogKind, Obj, Pool, PoolKind, PoolOptions, Raw, RawTx, Reading, Ref, Refs,
    Session, Stored, TypeId, Untyped, View,
};
use firn_media::Medium;
use firn_structures::{HashMap, List, Map, StringArray, Vector};
use firn_units::VirtAddr;
use xxhash_rust::xxh3::Xxh3;

/// An object with a reference to its own type and one to bytes.
#[derive(Stored)]
#[repr(C)]
#[firn(name = "Note", version = 1)]
pub struct Note {
    pub next: Ref<Note>,
    pub text: Ref<Bytes>,
    pub number: u64,
}

/// Pages of version 2, converted from version 1 in place.
#[derive(Stored)]
#[repr(C)]
#[firn(name = "Page", version = 2)]
pub struct Page {
    pub number: u64,
    pub twice: u64,
}

/// Objects some of which a migration converts before it is interrupted.
#[derive(Stored)]
#[repr(C)]
#[firn(name = "Thing", version = 1)]
pub struct ThingV1 {
    pub next: Ref<ThingV1>,
    pub number: u64,
}

/// Their new version, which does not fit into the old places.
#[derive(Stored)]
#[repr(C)]
#[firn(name = "Thing", version = 2)]
pub struct Thing {
    pub next: Ref<Thing>,
    pub number: u64,
    pub times: [u64; 6],
}

/// The conversion of [`ThingV1`].
pub fn turned(old: ThingV1) -> Thing {
    Thing {
        next: old.next.retyped(),
        number: old.number,
        times: [3 * old.number; 6],
    }
}

/// How many things there are.
pub const THINGS: usize = 200;
/// Places of the table of pairs, and words of the buffer that is logged in many batches.
pub const PAIRS: u64 = 192;
pub const BUFFER: u64 = 9_000;

/// The name of the type of raw objects with pairs, and of their root, as in pools of libpmemobj's programs.
pub const PAIRED: &str = "pmemobj object";
pub const PAIRED_ROOT: &str = "pmemobj root";
/// The roots of raw objects in a traced pool.
pub const RAW_ROOTS: [&str; 3] = ["raw a", "raw b", "raw c"];

pub fn options(kind: PoolKind, log: LogKind) -> PoolOptions {
    PoolOptions {
        kind,
        log,
        lanes: 6,
        ..PoolOptions::new("golden")
    }
}

/// Bytes that are determined by a number.
pub fn bytes_of(number: u64, len: usize) -> Vec<u8> {
    let mut text = format!("<{number}>");
    while text.len() < len {
        let _ = write!(text, " {number} times {}", text.len());
    }
    text.truncate(len);
    text.into_bytes()
}

pub fn value_of(number: u64) -> Vec<u8> {
    bytes_of(number, 40 + (number * 37 % 400) as usize)
}

pub fn key_of(number: u64) -> Vec<u8> {
    format!("key {number:05}").into_bytes()
}

/// Transaction `number` of a writer with a redo log: entries come and go, a note gets another text, numbers of notes
/// that no other writer changes are incremented, and some transactions are larger than a slot of a lane.
pub fn write<M: Medium>(session: &mut Session<M>, writer: u64, number: u64) -> Result<(), Error> {
    session.transaction(|tx| {
        let stamp = 10_000 * (writer + 1) + number;
        let mut map = Map::open(tx, "map")?;
        map.insert(format!("writer {writer}").as_bytes(), &bytes_of(stamp, 24))?;
        map.insert(&key_of(stamp), &value_of(stamp))?;
        map.remove(&key_of((2 * number + writer) * 3))?;
        let mut note = tx.root::<Note>("notes")?;
        for step in 0..200 {
            note = note.follow(Note::NEXT).unwrap();
            if (step + writer).is_multiple_of(2) && step / 2 % 5 == number % 5 {
                note.store(Note::NUMBER, stamp * 1_000 + step);
            }
        }
        if writer == 1 {
            note = note.follow(Note::NEXT).unwrap();
        }
        let old = note.follow(Note::TEXT);
        note.link(Note::TEXT, Some(tx.alloc_bytes(&bytes_of(stamp, 90))?));
        if let Some(old) = old {
            // SAFETY: the only reference to it was replaced.
            unsafe { tx.free(old)? };
        }
        if number % 3 == 2 {
            // An entry with an extent outside its lane.
            for part in 0..8 {
                map.insert(&key_of(stamp * 10 + part), &bytes_of(stamp + part, 1_500))?;
            }
        }
        Ok(())
    })
}

pub fn put<M: Medium>(tx: RawTx<'_, M>, at: VirtAddr, words: &[u64]) -> Result<(), Error> {
    tx.log(&[(at, words.len() as u64 * 8)])?;
    tx.store(at, bytemuck::cast_slice(words))
}

/// A raw object that refers to the middle of itself.
pub fn paired<M: Medium>(
    tx: RawTx<'_, M>,
    (what, id): (TypeId, u64),
    number: u64,
    stamp: u64,
) -> Result<VirtAddr, Error> {
    let len = 32 + number % 7 * 48;
    let at = tx.alloc_of(what, len)?;
    let words = [number, id, at.0 + 8, stamp];
    tx.store(at, &vec![0x55; len as usize])?;
    tx.store(at, bytemuck::cast_slice(&words))?;
    Ok(at)
}

/// Where the table of pairs begins.
pub fn table<M: Medium>(view: Reading<'_, M>) -> Result<VirtAddr, Error> {
    let root = Obj::<Untyped, _>::of_root(view, PAIRED_ROOT)?;
    root.map(|root| root.address() + 8).ok_or(Error::NoRoot {
        name: PAIRED_ROOT.into(),
    })
}

/// Transaction `number` of a writer with an undo log: a buffer is stamped in many batches, which in some transactions
/// take more than a lane. One object comes and another goes, in pools that know which live.
pub fn write_raw<M: Medium>(
    pool: &Pool<M>,
    session: &mut Session<M>,
    writer: u64,
    number: u64,
) -> Result<(), Error> {
    let medium = pool.medium();
    let stamp = 1_000_000 * (writer + 1) + number;
    let known = match pool.kind() {
        PoolKind::Traced => None,
        PoolKind::Explicit => Some((pool.register_pairs(PAIRED)?, pool.pair_id())),
    };
    session.raw_transaction(|tx| {
        let (buffer, table) = match known {
            None => (raw_root(tx.view(), RAW_ROOTS[writer as usize])?, None),
            Some(known) => {
                let table = tx.resolve(table(tx.view())?);
                let buffer = VirtAddr(medium.load_u64(table + 8));
                (buffer, Some((table, known)))
            }
        };
        let buffer = tx.resolve(buffer);
        // Each writer has its own part.
        let half = buffer + writer * (BUFFER / 2) * 8;
        let batches = if number % 2 == 1 { 9 } else { 2 };
        for batch in 0..batches {
            let words: Vec<u64> = (0..480)
                .map(|i| (stamp << 20) + batch * 1_000 + i)
                .collect();
            put(tx, half + batch * 480 * 8, &words)?;
        }
        let Some((table, known)) = table else {
            return Ok(());
        };
        let place = 1 + 2 * ((number * 5) % (PAIRS / 2 - 1)) + writer;
        let slot = table + place * 16;
        let there = VirtAddr(medium.load_u64(slot + 8));
        if there.0 != 0 {
            put(tx, slot, &[0, 0])?;
            // SAFETY: the table had the only reference to it, but for its own.
            return unsafe { tx.free(tx.resolve(there)) };
        }
        let new = paired(tx, known, place, stamp)?;
        put(tx, slot, &[known.1, new.0])
    })
}

fn raw_root<M: Medium>(view: Reading<'_, M>, name: &str) -> Result<VirtAddr, Error> {
    view.root::<Raw>(name).map(|root| root.address() + 8)
}

/// Numbers and digests of everything that a pool holds.
pub fn describe<M: Medium>(pool: &Pool<M>, raw: bool) -> Result<String, Error> {
    let mut session = pool.session()?;
    let mut out = session.read(|view| described(view))?;
    if raw && pool.kind() == PoolKind::Explicit {
        out += &described_pairs(pool, &mut session)?;
    } else if raw {
        session.read(|view| {
            for root in RAW_ROOTS {
                let content = raw_content(view, root)?;
                line(&mut out, root, 1u64, content.len(), &content);
            }
            Ok::<_, Error>(())
        })?;
    }
    Ok(out)
}

fn raw_content<M: Medium>(view: Reading<'_, M>, root: &str) -> Result<Vec<u8>, Error> {
    let raw = view.root::<Raw>(root)?;
    let mut content = vec![0; raw.checked_len()?];
    view.medium().load_bytes(raw.address() + 8, &mut content);
    Ok(content)
}

fn line(out: &mut String, what: &str, count: impl Into<u64>, bytes: usize, content: &[u8]) {
    let mut digest = Xxh3::new();
    digest.update(content);
    let (count, digest) = (count.into(), digest.digest());
    let _ = writeln!(out, "{what}: {count}, {bytes} bytes, {digest:016x}");
}

fn described<M: Medium>(view: Reading<'_, M>) -> Result<String, Error> {
    let mut out = String::new();
    let mut all = Vec::new();
    let (mut count, mut next) = (0u64, view.find_root::<Note>("notes")?);
    while let Some(note) = next {
        count += 1;
        all.extend_from_slice(&note.load(Note::NUMBER).to_le_bytes());
        if let Some(text) = note.follow(Note::TEXT) {
            all.extend(text.to_vec()?);
        }
        next = note.follow(Note::NEXT);
    }
    line(&mut out, "notes", count, all.len(), &all);
    let large = view.root::<Bytes>("large")?.to_vec()?;
    line(&mut out, "large", 1u64, large.len(), &large);
    let raw = raw_content(view, "raw")?;
    line(&mut out, "raw", 1u64, raw.len(), &raw);
    let pages = view.root::<Refs<Page>>("pages")?;
    let page = |i| {
        pages
            .get(i)
            .map(|page: Obj<'_, Page, _>| [page.load(Page::NUMBER), page.load(Page::TWICE)])
    };
    let words: Vec<u64> = (0..pages.len()).filter_map(page).flatten().collect();
    line(
        &mut out,
        "pages",
        pages.len() as u64,
        words.len() * 8,
        bytemuck::cast_slice(&words),
    );
    described_node(view, &mut out)?;
    described_structures(view, &mut out)?;
    Ok(out)
}

fn described_node<M: Medium>(view: Reading<'_, M>, out: &mut String) -> Result<(), Error> {
    let second = Obj::<Untyped, _>::of_root(view, "node")?.ok_or(Error::ReadOnly)?;
    let mut words = [0u64; 5];
    second.load_into(0, bytemuck::cast_slice_mut(&mut words))?;
    let first = Obj::<Untyped, _>::of_word(view, words[0])?.ok_or(Error::ReadOnly)?;
    let mut inner = [0u64; 5];
    first.load_into(0, bytemuck::cast_slice_mut(&mut inner))?;
    let twice = words[0] == words[1];
    let numbers = [words[2], words[4], inner[2], inner[4]];
    let bytes = second.body_bytes()?;
    let _ = writeln!(
        out,
        "node: {numbers:?}, {bytes} bytes, both references the same: {twice}"
    );
    Ok(())
}

fn described_structures<M: Medium>(view: Reading<'_, M>, out: &mut String) -> Result<(), Error> {
    let map = Map::open(view, "map")?;
    let mut all = Vec::new();
    for entry in map.read()?.iter() {
        let (key, value) = entry?.to_pair()?;
        all.extend(key);
        all.extend(value);
    }
    line(out, "map", map.len()?, all.len(), &all);
    for writer in 0..2 {
        let last = map.get(format!("writer {writer}").as_bytes())?;
        let last = last.map(|value| String::from_utf8_lossy(&value).into_owned());
        let _ = writeln!(out, "map, last of writer {writer}: {last:?}");
    }
    let hash = HashMap::open(view, "hash")?;
    let mut pairs = Vec::new();
    for entry in hash.read()?.iter() {
        pairs.push(entry?.to_pair()?);
    }
    pairs.sort();
    let all = pairs
        .into_iter()
        .flat_map(|(key, value)| [key, value])
        .flatten();
    let all: Vec<u8> = all.collect();
    line(out, "hash", hash.len()?, all.len(), &all);
    let list = List::open(view, "list")?;
    let mut all = Vec::new();
    for element in list.read()?.iter() {
        let element = element?;
        all.extend_from_slice(&element.key().to_le_bytes());
        all.extend(element.value()?);
    }
    line(out, "list", list.len()?, all.len(), &all);
    let vector = Vector::open(view, "vector")?;
    let mut all = Vec::new();
    for index in 0..vector.len()? {
        all.extend(vector.get(index)?.ok_or(Error::ReadOnly)?);
    }
    line(out, "vector", vector.len()?, all.len(), &all);
    let strings = StringArray::open(view, "strings")?;
    let mut all = Vec::new();
    for index in 0..strings.len()? {
        all.extend(strings.get(index)?.unwrap_or_else(|| b"clear".to_vec()));
    }
    line(out, "strings", strings.len()?, all.len(), &all);
    Ok(())
}

fn described_pairs<M: Medium>(pool: &Pool<M>, session: &mut Session<M>) -> Result<String, Error> {
    let (medium, id) = (pool.medium(), pool.pair_id());
    let guard = session.raw_guard()?;
    let table = guard.resolve_to_read(table(guard.view())?);
    let (mut out, mut count, mut all) = (String::new(), 0u64, Vec::new());
    for place in 0..PAIRS {
        let pair = [0, 8].map(|i| medium.load_u64(table + place * 16 + i));
        if pair == [0, 0] {
            continue;
        }
        assert_eq!(pair[0], id, "the pair at {place}");
        let at = guard.resolve_to_read(VirtAddr(pair[1]));
        let (_, len) = guard.object(at)?.ok_or(Error::NotAllocated { at: at.0 })?;
        let mut content = vec![0; len as usize];
        medium.load_bytes(at, &mut content);
        if place > 0 {
            // It refers to itself, wherever it is now.
            let own = u64::from_le_bytes(content[16..24].try_into().unwrap());
            assert_eq!(
                guard.resolve_to_read(VirtAddr(own)),
                at + 8,
                "place {place}"
            );
            content[8..24].fill(0);
        }
        count += 1;
        all.extend_from_slice(&place.to_le_bytes());
        all.extend(content);
    }
    line(&mut out, "pairs", count, all.len(), &all);
    Ok(out)
}
