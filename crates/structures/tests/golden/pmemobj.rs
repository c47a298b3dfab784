//! The content of the pools of `pmemobj.c`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use firn_heap::{Error, Obj, Pool, RawGuard, Untyped};
use firn_mapped::Mapped;
use firn_media::Memory;
use firn_units::VirtAddr;

/// Offsets of the root object's fields: the first item, the buffer, another item, the count.
const HEAD: u64 = 0;
const BUFFER: u64 = 16;
const EXTRA: u64 = 32;
const COUNT: u64 = 48;
/// Offsets of an item's number and text, and the text's length; the next item comes first.
const NUMBER: u64 = 16;
const TEXT: u64 = 24;
const TEXT_BYTES: usize = 48;
/// From an object to the program's part of it: its header and the number of its type come first.
const DATA: u64 = 16;

fn root(guard: &RawGuard<'_, Mapped>) -> VirtAddr {
    let root = Obj::<Untyped, _>::of_root(guard.view(), "pmemobj root");
    root.unwrap().expect("a root object").address() + DATA
}

/// The current address of the object that the pair of words at `at` names.
fn follow(pool: &Pool<Mapped>, guard: &RawGuard<'_, Mapped>, at: VirtAddr) -> Option<VirtAddr> {
    let pair = [0, 8].map(|i| pool.medium().load_u64(at + i));
    if pair[0] == 0 {
        return None;
    }
    assert_eq!(pair[0], pool.pair_id());
    Some(guard.resolve_to_read(VirtAddr(pair[1])))
}

fn items(pool: &Pool<Mapped>, guard: &RawGuard<'_, Mapped>) -> Vec<VirtAddr> {
    let head = follow(pool, guard, root(guard) + HEAD);
    std::iter::successors(head, |item| follow(pool, guard, *item)).collect()
}

pub fn describe(pool: &Pool<Mapped>) -> String {
    let medium = pool.medium();
    let mut session = pool.session().unwrap();
    let guard = session.raw_guard().unwrap();
    let root = root(&guard);
    let items = items(pool, &guard);
    let numbers: Vec<u64> = items
        .iter()
        .map(|item| medium.load_u64(*item + NUMBER))
        .collect();
    let mut types = BTreeMap::new();
    for (item, number) in items.iter().zip(&numbers) {
        let mut text = [0; TEXT_BYTES];
        medium.load_bytes(*item + TEXT, &mut text);
        let told = format!("item {number}\0");
        assert_eq!(&text[..told.len()], told.as_bytes());
        let body = VirtAddr(item.0 - 8);
        let (_, len) = guard.object(body).unwrap().expect("an item");
        assert_eq!(len, 8 + 72 + number % 5 * 64, "item {number}");
        let type_num = medium.load_u64(body);
        assert_eq!(type_num, 1 + number % 3);
        *types.entry(type_num).or_insert(0) += 1;
    }
    let mut out = String::new();
    let (count, sum) = (medium.load_u64(root + COUNT), numbers.iter().sum::<u64>());
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    let _ = writeln!(
        out,
        "items: {} of {count} counted, the first {first}, the last {last}, {sum} together, texts as their numbers say",
        items.len()
    );
    let types: Vec<String> = types
        .iter()
        .map(|(what, count)| format!("{what} {count}"))
        .collect();
    let _ = writeln!(out, "types: {}", types.join(", "));
    let extra = follow(pool, &guard, root + EXTRA);
    let _ = writeln!(
        out,
        "extra: {}",
        extra.map_or("none".into(), |at| at.to_string())
    );
    let buffer = follow(pool, &guard, root + BUFFER).expect("a buffer");
    let mut content = vec![0; 48_000];
    medium.load_bytes(buffer, &mut content);
    let sound = content
        .iter()
        .zip((b'a'..=b'z').cycle())
        .all(|(is, should)| *is == should);
    let what = if sound {
        "a to z over and over"
    } else {
        "something else"
    };
    let _ = writeln!(out, "buffer: {} bytes, {what}", content.len());
    out
}

/// Reverses the list in one transaction.
pub fn reverse(pool: &Pool<Mapped>) {
    let id = pool.pair_id();
    let mut session = pool.session().unwrap();
    let items = items(pool, &session.raw_guard().unwrap());
    let done = session.raw_transaction(|tx| {
        let mut before = [0, 0];
        for item in items.iter().map(|item| tx.resolve(*item)) {
            tx.log(&[(item, 16)])?;
            tx.store(item, bytemuck::cast_slice(&before))?;
            before = [id, item.0];
        }
        let root = Obj::<Untyped, _>::of_root(tx.view(), "pmemobj root")?;
        let root = tx.resolve(root.expect("a root object").address() + DATA);
        tx.log(&[(root + HEAD, 16)])?;
        tx.store(root + HEAD, bytemuck::cast_slice(&before))?;
        Ok::<_, Error>(())
    });
    done.unwrap();
}
