//! Is an impossible plan refused, though its checksums are right? Also a number that no transaction can follow, and a
//! length that no pool has?

use firn_crash::{Crash, CrashOptions};
use firn_format::geometry::{
    FIRST_DATA_CHUNK, Frame, LENGTH, MIN_POOL_BYTES, PHASE, STATISTICS, WATERMARK,
};
use firn_format::plan::{ENTRY_WORDS, Entry, Phase, PlanHeader, entries_checksum};
use firn_format::sealed::{MAX_VALUE, Seal};
use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Bytes, Error, Pool, PoolOptions, View};
use firn_media::{Memory, Space};
use firn_units::{CHUNK_BYTES, VirtAddr, WORD_BYTES};

const LEN: u64 = 16 << 20;
const OBJECTS: usize = 240;
/// One of this many objects stays.
const KEPT: usize = 40;

fn options() -> PoolOptions {
    PoolOptions::new("damaged plan")
}

/// A pool that a crash left in the middle of a cycle.
fn moving() -> Crash {
    let crash = Crash::new(LEN, CrashOptions::default());
    let pool = Pool::create(crash.clone(), &options()).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let all = tx.alloc_refs::<Bytes>(OBJECTS)?;
            for i in 0..OBJECTS {
                all.set(i, Some(tx.alloc_bytes(&[i as u8; 30])?))?;
            }
            tx.set_root("all", all)
        })
        .unwrap();
    session
        .transaction(|tx| {
            let all = tx.root::<firn_heap::Refs<Bytes>>("all")?;
            (0..OBJECTS).try_for_each(|i| match i % KEPT {
                0 => Ok(()),
                _ => all.set(i, None),
            })
        })
        .unwrap();
    let how = CollectOptions {
        target: 1.0,
        pages: PageSize::Small,
        ..CollectOptions::default()
    };
    let mut collection = pool.collection(&how).unwrap();
    assert!(collection.begin().unwrap());
    drop(collection);
    drop(session);
    pool.abandon();
    crash
}

fn line(crash: &Crash, at: VirtAddr) -> [u64; ENTRY_WORDS] {
    core::array::from_fn(|i| crash.load_u64(at + i as u64 * WORD_BYTES))
}

fn store(crash: &Crash, at: VirtAddr, words: &[u64]) {
    for (i, &word) in (0..).zip(words) {
        crash.store_u64(at + i * WORD_BYTES, word);
    }
}

/// The result of opening the pool with a changed plan.
fn opened_with(change: impl Fn(&mut PlanHeader, &mut [Entry])) -> Result<(), String> {
    let crash = moving();
    let phase = Seal::Phase.open(crash.load_u64(PHASE)).unwrap();
    let Ok(Phase::Active(plan)) = Phase::from_value(phase, PHASE) else {
        panic!("no cycle is open");
    };
    let mut header = PlanHeader::from_words(&line(&crash, plan.start()), plan.start()).unwrap();
    let at = |index| PlanHeader::entry_at(plan, index);
    let entry = |index| Entry::from_words(&line(&crash, at(index)), at(index)).unwrap();
    let mut entries: Vec<Entry> = (0..header.entries).map(entry).collect();
    assert!(entries.len() > 1);
    change(&mut header, &mut entries);
    let words: Vec<u64> = entries.iter().flat_map(Entry::to_words).collect();
    header.checksum = entries_checksum(&words);
    store(&crash, plan.start(), &header.to_words());
    store(&crash, at(0), &words);
    let pool = Pool::open(crash, &options()).map_err(|e| e.to_string())?;
    pool.close().map_err(|e: Error| e.to_string())
}

#[test]
fn a_plan_that_the_pool_cannot_have_is_refused() {
    opened_with(|_, _| {}).unwrap();
    let beyond = Frame(1 << 40);
    let changes: [fn(&mut PlanHeader, &mut [Entry]); 9] = [
        |_, entries| entries[0].source = Frame(1 << 40),
        |_, entries| entries[0].source = Frame(0),
        |_, entries| entries[0].source = entries[1].source,
        |_, entries| entries[0].source = entries[0].first,
        |_, entries| entries[1].unit += 1,
        |_, entries| entries[0].first_slot = 255,
        |_, entries| entries[0].class = None,
        |_, entries| entries[0].survivors[3] = u64::MAX,
        |header, _| header.units += 1,
    ];
    for (nth, change) in changes.into_iter().enumerate() {
        let said = opened_with(change)
            .err()
            .unwrap_or_else(|| panic!("{nth} is believed"));
        assert!(said.contains("plan"), "{nth}: {said}");
    }
    opened_with(|_, entries| entries.iter_mut().for_each(|entry| entry.first = beyond))
        .unwrap_err();
}

#[test]
fn a_number_that_no_transaction_can_follow_is_refused() {
    for condition in [true, false] {
        let crash = Crash::new(LEN, CrashOptions::default());
        let pool = Pool::create(crash.clone(), &options()).unwrap();
        match condition {
            true => pool.close().unwrap(),
            false => pool.abandon(),
        }
        crash.store_u64(WATERMARK, Seal::Watermark.seal(MAX_VALUE - 1));
        let said = Pool::open(crash, &options()).map(drop).unwrap_err();
        assert!(said.to_string().contains("damaged"), "{said}");
    }
}

/// A medium that ends before the tables do is no pool, whatever length it states.
#[test]
fn a_length_that_ends_before_the_objects_do_is_refused() {
    for chunks in [0, 1, FIRST_DATA_CHUNK - 1, MAX_VALUE] {
        let crash = Crash::new(LEN, CrashOptions::default());
        let pool = Pool::create(crash.clone(), &options()).unwrap();
        pool.close().unwrap();
        crash.store_u64(LENGTH, Seal::Length.seal(chunks));
        let said = Pool::open(crash, &options()).map(drop).unwrap_err();
        let said = said.to_string();
        assert!(
            said.contains("length") || said.contains("truncated"),
            "{said}"
        );
    }
    // A pool that states that it holds no objects ends behind its statistics, at the earliest.
    let crash = Crash::new(LEN, CrashOptions::default());
    Pool::create(crash.clone(), &options())
        .unwrap()
        .close()
        .unwrap();
    crash.store_u64(LENGTH, Seal::Length.seal(FIRST_DATA_CHUNK));
    crash.truncate(STATISTICS.0).unwrap();
    let said = Pool::open(crash, &options()).map(drop).unwrap_err();
    assert!(said.to_string().contains("truncated"), "{said}");
}

/// Objects also use chunks that the medium had before there was a pool.
#[test]
fn a_pool_that_was_cut_short_is_refused_whatever_the_medium_was_before() {
    for bytes in [MIN_POOL_BYTES, LEN, LEN + 3 * CHUNK_BYTES] {
        let crash = Crash::new(bytes, CrashOptions::default());
        let pool = Pool::create(crash.clone(), &options()).unwrap();
        pool.close().unwrap();
        // And chunks that it gained without the pool's doing.
        crash.reserve(VirtAddr(bytes), CHUNK_BYTES).unwrap();
        Pool::open(crash.clone(), &options())
            .unwrap()
            .close()
            .unwrap();
        crash.truncate(bytes).unwrap();
        let said = Pool::open(crash, &options()).map(drop).unwrap_err();
        assert!(said.to_string().contains("truncated"), "{said}");
    }
}
