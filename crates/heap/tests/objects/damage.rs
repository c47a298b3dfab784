//! Does a store through a damaged reference end in an error, with the pool unchanged? Does `check` name the damage?

use firn_crash::{Crash, CrashOptions};
use firn_format::frame::FrameUse;
use firn_format::geometry::{Frame, LANES_START, STATE};
use firn_format::root::{REFERENCE_AT, root_at};
use firn_heap::{Error, Finding, LogKind, Pool, PoolKind, PoolOptions, Ref, Stored, View};
use firn_media::{Memory, Space};
use firn_units::{CHUNK_BYTES, VirtAddr};

#[derive(Stored)]
#[repr(C)]
#[firn(name = "Link")]
struct Link {
    next: Ref<Link>,
    number: u64,
}

fn options(kind: PoolKind) -> PoolOptions {
    PoolOptions {
        kind,
        log: LogKind::Redo,
        ..PoolOptions::new("damage")
    }
}

/// Where damaged references lead: the state page, a lane, a table, beyond the pool.
fn targets(len: u64) -> [VirtAddr; 5] {
    [
        STATE,
        LANES_START + 4096,
        VirtAddr(2 * CHUNK_BYTES + 64),
        VirtAddr(len),
        VirtAddr(1 << 40),
    ]
}

#[test]
fn stores_through_damaged_references_are_refused() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let crash = Crash::new(16 << 20, CrashOptions::default());
        let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
        let mut session = pool.session().unwrap();
        let field = session
            .transaction(|tx| {
                let link = |number| Link {
                    next: Ref::NULL,
                    number,
                };
                let (first, second) = (tx.alloc(link(1))?, tx.alloc(link(2))?);
                first.link(Link::NEXT, Some(second));
                tx.set_root("first", first)?;
                Ok::<_, Error>(first.address() + 8)
            })
            .unwrap();
        let sound = crash.load_u64(field);
        let id = crash.load_u64(root_at(0) + REFERENCE_AT) >> 48 << 48;
        for target in targets(crash.len()) {
            crash.store_u64(field, id | target.0);
            for linked in [false, true] {
                let refused = session.transaction(|tx| {
                    let first = tx.root::<Link>("first")?;
                    first.store(Link::NUMBER, 9);
                    let wrong = first.follow(Link::NEXT).ok_or(Error::ReadOnly)?;
                    match linked {
                        true => wrong.link(Link::NEXT, Some(first)),
                        false => wrong.store(Link::NUMBER, 9),
                    }
                    Ok::<_, Error>(())
                });
                assert!(
                    matches!(refused, Err(Error::Damaged { .. })),
                    "{target}: {refused:?}"
                );
            }
            let number =
                session.read(|view| view.root::<Link>("first").unwrap().load(Link::NUMBER));
            assert_eq!(number, 1);
        }
        crash.store_u64(field, sound);
        session
            .transaction(|tx| {
                let first = tx.root::<Link>("first")?;
                first.store(Link::NUMBER, 10);
                Ok::<_, Error>(())
            })
            .unwrap();
        drop(session);
        assert_eq!(pool.check().unwrap(), []);
        pool.abandon();
        let pool = Pool::open(crash, &options(kind)).unwrap();
        let mut session = pool.session().unwrap();
        let number = session.read(|view| view.root::<Link>("first").unwrap().load(Link::NUMBER));
        assert_eq!(number, 10);
    }
}

/// Makes a header name a type that is not registered.
fn break_header(crash: &Crash, at: u64) {
    crash.store_u64(VirtAddr(at), crash.load_u64(VirtAddr(at)) ^ 0x7fff);
}

#[test]
fn a_salvage_brings_what_is_whole_and_names_the_rest() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let crash = Crash::new(16 << 20, CrashOptions::default());
        let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
        let mut session = pool.session().unwrap();
        // first -> second -> third, and two roots of one object each.
        let [second, broken] = session
            .transaction(|tx| {
                let link = |number| Link {
                    next: Ref::NULL,
                    number,
                };
                let numbers = [1, 2, 3, 4, 5].map(|number| tx.alloc(link(number)));
                let [first, second, third, whole, broken] = numbers;
                let (first, second) = (first?, second?);
                first.link(Link::NEXT, Some(second));
                second.link(Link::NEXT, Some(third?));
                tx.set_root("first", first)?;
                tx.set_root("whole", whole?)?;
                let broken = broken?;
                tx.set_root("broken", broken)?;
                Ok::<_, Error>([second.address().0, broken.address().0])
            })
            .unwrap();
        drop(session);
        pool.abandon();
        let whole = Pool::salvage(crash.clone(), target(), "damage", &mut |_| {}).unwrap();
        assert!(whole.1.is_whole(), "{:?}", whole.1);
        assert_eq!(whole.1.objects, 5);

        break_header(&crash, second);
        break_header(&crash, broken);
        let (copy, salvaged) =
            Pool::salvage(crash.clone(), target(), "damage", &mut |_| {}).unwrap();
        assert_eq!(salvaged.lost_roots, ["broken"]);
        assert_eq!(salvaged.lost_references, 1, "first has no next any more");
        assert!(salvaged.findings.len() >= 2, "{:?}", salvaged.findings);
        // Objects behind the second one are unreachable, which matters only where reachability decides.
        let objects = match kind {
            PoolKind::Traced => 2,
            PoolKind::Explicit => 3,
        };
        assert_eq!((salvaged.objects, salvaged.is_whole()), (objects, false));
        assert_eq!(copy.check().unwrap(), []);
        let mut session = copy.session().unwrap();
        session.read(|view| {
            let first = view.root::<Link>("first").unwrap();
            assert_eq!(first.load(Link::NUMBER), 1);
            assert!(first.follow(Link::NEXT).is_none());
            let whole = view.root::<Link>("whole").unwrap();
            assert_eq!(whole.load(Link::NUMBER), 4);
            assert!(view.find_root::<Link>("broken").unwrap().is_none());
        });
    }
}

fn target() -> Crash {
    Crash::new(16 << 20, CrashOptions::default())
}

/// A closed pool with one object in a run of slots: its medium, the object's address, and the word and mask of the
/// allocation bits of its slot and of the run's last one.
fn with_an_object(kind: PoolKind) -> (Crash, VirtAddr, [(VirtAddr, u64); 2]) {
    let crash = Crash::new(16 << 20, CrashOptions::default());
    let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
    let made = pool.session().unwrap().transaction(|tx| {
        let link = tx.alloc(Link {
            next: Ref::NULL,
            number: 1,
        })?;
        tx.set_root("first", link)?;
        Ok::<_, Error>(link.address())
    });
    let at = made.unwrap();
    pool.close().unwrap();
    let frame = Frame::holding(at);
    let word = frame.word_at();
    let what = FrameUse::from_word(crash.load_u64(word), word).unwrap();
    let FrameUse::Slots(class) = what else {
        panic!("{what:?}");
    };
    let slot = (at.0 - frame.start().0) / class.slot_bytes();
    let bit = |slot: u64| (frame.bitmap_at() + slot / 64 * 8, 1 << (slot % 64));
    (crash, at, [bit(slot), bit(class.slots() - 1)])
}

fn findings(crash: &Crash, kind: PoolKind, damage: impl FnOnce()) -> Vec<(u64, String)> {
    let pool = Pool::open(crash.clone(), &options(kind)).unwrap();
    // From here on the slots in use are known.
    pool.check().unwrap();
    damage();
    let findings = pool.check().unwrap();
    pool.abandon();
    let told = |finding: Finding| (finding.at, finding.what);
    findings.into_iter().map(told).collect()
}

#[test]
fn a_reachable_object_whose_slot_is_free_is_named() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let (crash, at, [(word, mask), _]) = with_an_object(kind);
        let bits = crash.load_u64(word);
        assert_eq!(bits & mask, mask);
        crash.store_u64(word, bits & !mask);
        let told = "reachable, but its slot is free".to_owned();
        assert_eq!(findings(&crash, kind, || ()), [(at.0, told)]);
    }
}

#[test]
fn allocation_bits_that_differ_from_what_is_in_use_are_named() {
    let kind = PoolKind::Explicit;
    let (crash, _, [_, (word, mask)]) = with_an_object(kind);
    let found = findings(&crash, kind, || {
        let bits = crash.load_u64(word);
        assert_eq!(bits & mask, 0);
        crash.store_u64(word, bits | mask);
    });
    let told = [
        "the allocation bits differ from what is in use",
        "no object where one should be: the header is empty",
    ];
    assert_eq!(found[0].0, word.0);
    assert_eq!(found.iter().map(|(_, what)| what).collect::<Vec<_>>(), told);
}
