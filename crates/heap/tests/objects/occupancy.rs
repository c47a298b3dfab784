//! Does the occupancy tell the content of each frame?

use firn_heap::{
    Bytes, FrameContent, LogKind, Occupancy, Pool, PoolKind, PoolOptions, Refs, Statistics, View,
};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Domain, Space};

const FRAME: u64 = 4096;
const LARGE: u64 = 70_000;
/// Objects of these sizes have slots of 3072 bytes, three frames for four of them.
const MEDIUM: usize = 3000;

fn options(kind: PoolKind) -> PoolOptions {
    PoolOptions {
        kind,
        log: LogKind::Redo,
        ..PoolOptions::new("occupancy")
    }
}

fn pool(medium: Mapped, kind: PoolKind) -> Pool<Mapped> {
    let pool = Pool::create(medium, &options(kind)).unwrap();
    let make = |tx: firn_heap::Tx<'_, Mapped>| {
        let spine = tx.alloc_refs::<Bytes>(400)?;
        tx.set_root("spine", spine)
    };
    pool.session().unwrap().transaction(make).unwrap();
    pool
}

fn anonymous(kind: PoolKind) -> Pool<Mapped> {
    let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
    pool(medium, kind)
}

fn set(pool: &Pool<Mapped>, range: core::ops::Range<usize>, bytes: Option<usize>) {
    let mut session = pool.session().unwrap();
    for index in range {
        let set = |tx: firn_heap::Tx<'_, Mapped>| {
            let new = bytes.map(|len| tx.alloc_bytes(&vec![7; len])).transpose()?;
            tx.root::<Refs<Bytes>>("spine")?.set(index, new)
        };
        session.transaction(set).unwrap();
    }
}

/// Live bytes of the frames in use, in order: of runs of slots, and of large objects.
fn live(occupancy: &Occupancy) -> (Vec<u64>, Vec<u64>) {
    let (mut slots, mut large) = (Vec::new(), Vec::new());
    for frame in &occupancy.frames {
        match frame.content {
            FrameContent::Slots { .. } => slots.extend(frame.content.live_bytes()),
            FrameContent::Large { .. } => large.extend(frame.content.live_bytes()),
            _ => {}
        }
    }
    (slots, large)
}

#[test]
fn what_is_not_data_is_told_apart() {
    let occupancy = anonymous(PoolKind::Traced).occupancy().unwrap();
    let is = |number: usize, content| occupancy.frames[number].content == content;
    assert_eq!(occupancy.frames.len() as u64 * FRAME, 16 << 20);
    assert!((0..512).all(|n| is(n, FrameContent::Metadata)));
    assert!((512..1024).all(|n| is(n, FrameContent::Log)));
    assert!((1024..7 * 512).all(|n| is(n, FrameContent::Table)));
    assert!((7 * 512..8 * 512).any(|n| is(n, FrameContent::Free)));
    assert!(occupancy.frames.iter().all(|f| f.has_data.is_none()));
}

#[test]
fn each_frame_of_a_run_has_the_bytes_of_its_slots() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let pool = anonymous(kind);
        let (empty, _) = live(&pool.occupancy().unwrap());
        set(&pool, 0..3, Some(MEDIUM));
        set(&pool, 3..4, Some(LARGE as usize));
        let occupancy = pool.occupancy().unwrap();
        let (mut slots, large) = live(&occupancy);
        for &before in &empty {
            let at = slots.iter().position(|&now| now == before).unwrap();
            slots.swap_remove(at);
        }
        slots.sort_unstable();
        // Three slots of four, in three frames: the fourth is the last frame's last three quarters.
        assert_eq!(slots, [1024, FRAME, FRAME], "{kind:?}");
        assert_eq!(large, vec![FRAME; LARGE.div_ceil(FRAME) as usize]);
        assert!(occupancy.exact);
    }
}

#[test]
fn an_open_pool_a_closed_one_and_the_statistics_agree() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pool");
        let file =
            Mapped::create(&path, 0, &MappedOptions::default().domain(Domain::Process)).unwrap();
        let pool = pool(file, kind);
        set(&pool, 0..300, Some(700));
        set(&pool, 20..40, Some(40));
        set(&pool, 300..302, Some(LARGE as usize));
        let open = pool.occupancy().unwrap();
        pool.close().unwrap();
        let medium = Mapped::peek(&path).unwrap();
        let closed = Occupancy::read(&medium).unwrap();
        let content = |o: &Occupancy| o.frames.iter().map(|f| f.content).collect::<Vec<_>>();
        assert!(content(&open) == content(&closed), "{kind:?}");
        let statistics = Statistics::read(&medium).unwrap();
        for occupancy in [&open, &closed] {
            assert!(occupancy.exact);
            assert_eq!(occupancy.objects, statistics.objects);
            assert_eq!(occupancy.live_bytes, statistics.live_bytes);
            assert_eq!(occupancy.footprint_4k_bytes, statistics.footprint_4k_bytes);
            assert_eq!(occupancy.footprint_2m_bytes, statistics.footprint_2m_bytes);
            assert_eq!(occupancy.ratio_4k(), statistics.ratio_4k());
            assert_eq!(occupancy.ratio_2m(), statistics.ratio_2m());
        }
    }
}

/// A session keeps empty slots in active runs, and takes them from more than one word.
#[test]
fn slots_in_a_sessions_hands_are_not_live() {
    let pool = anonymous(PoolKind::Traced);
    let mut session = pool.session().unwrap();
    let set = |tx: firn_heap::Tx<'_, Mapped>| {
        let new = tx.alloc_bytes(&[1; 20])?;
        tx.root::<Refs<Bytes>>("spine")?.set(0, Some(new))
    };
    session.transaction(set).unwrap();
    let (slots, _) = live(&pool.occupancy().unwrap());
    let slot = 48;
    assert_eq!(slots.iter().filter(|&&bytes| bytes == slot).count(), 1);
    drop(session);
    assert_eq!(live(&pool.occupancy().unwrap()).0, slots);
}

#[test]
fn what_a_trace_frees_is_no_longer_live() {
    let pool = anonymous(PoolKind::Traced);
    set(&pool, 0..256, Some(1000));
    let full = pool.occupancy().unwrap();
    for index in (0..256).filter(|index| index % 4 != 0) {
        set(&pool, index..index + 1, None);
    }
    pool.trace().unwrap();
    let sparse = pool.occupancy().unwrap();
    let sum = |occupancy| live(occupancy).0.iter().sum::<u64>();
    let slot = 1024;
    assert_eq!(sum(&full) - sum(&sparse), 192 * slot);
    assert_eq!(sparse.footprint_4k_bytes, full.footprint_4k_bytes);
    assert!(sparse.ratio_4k() > full.ratio_4k().map(|ratio| ratio * 2.0));
}

#[test]
fn of_a_pool_in_use_only_the_frames_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let file = Mapped::create(&path, 0, &MappedOptions::default().domain(Domain::Process)).unwrap();
    let pool = pool(file, PoolKind::Traced);
    set(&pool, 0..300, Some(700));
    let seen = Occupancy::read(&Mapped::peek(&path).unwrap()).unwrap();
    assert!(!seen.exact);
    assert_eq!(live(&seen), (vec![], vec![]), "none is known");
    let known = pool.occupancy().unwrap();
    for (seen, known) in seen.frames.iter().zip(&known.frames) {
        match known.content {
            FrameContent::Slots { .. } => {
                assert_eq!(seen.content, FrameContent::Slots { live_bytes: None });
            }
            other => assert_eq!(seen.content, other),
        }
    }
    assert_eq!(seen.live_bytes, known.live_bytes);
    pool.abandon();
    // Recovered and not traced: it is unknown which objects live.
    let file = Mapped::open(&path, &MappedOptions::default()).unwrap();
    let pool = Pool::open(file, &options(PoolKind::Traced)).unwrap();
    assert!(!pool.occupancy().unwrap().exact);
    pool.trace().unwrap();
    let traced = pool.occupancy().unwrap();
    let sum = |occupancy| live(occupancy).0.iter().sum::<u64>();
    assert_eq!((traced.exact, sum(&traced)), (true, sum(&known)));
}

#[test]
fn frames_that_were_given_back_have_no_data() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let file = Mapped::create(&path, 0, &MappedOptions::default().domain(Domain::Process)).unwrap();
    let pool = pool(file, PoolKind::Traced);
    // Whole pages of 2 MiB, because a disk gives back no less.
    set(&pool, 0..200, Some(LARGE as usize));
    set(&pool, 0..199, None);
    pool.trace().unwrap();
    pool.medium().sync().unwrap();
    let free_with_data = |occupancy: &Occupancy| {
        let free = occupancy
            .frames
            .iter()
            .filter(|f| f.content == FrameContent::Free);
        free.filter(|f| f.has_data == Some(true)).count()
    };
    let before = pool.occupancy().unwrap();
    pool.release_free_space().unwrap();
    let after = pool.occupancy().unwrap();
    let known = |o: &Occupancy| o.frames.iter().all(|f| f.has_data.is_some());
    assert!(known(&before) && known(&after));
    assert!(free_with_data(&after) < free_with_data(&before));
    assert_eq!(after.frames[0].has_data, Some(true));
}

#[test]
fn space_that_an_earlier_open_freed_is_given_back_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let pool = pool(
        Mapped::create(&path, 0, &MappedOptions::default().domain(Domain::Process)).unwrap(),
        PoolKind::Traced,
    );
    set(&pool, 0..200, Some(LARGE as usize));
    pool.close().unwrap();
    let open = || Mapped::open(&path, &MappedOptions::default()).unwrap();
    let pool = Pool::open(open(), &options(PoolKind::Traced)).unwrap();
    // The last object keeps the file from being cut short.
    set(&pool, 0..199, None);
    pool.trace().unwrap();
    let full = pool.medium().backed_bytes().unwrap();
    pool.close().unwrap();
    let pool = Pool::open(open(), &options(PoolKind::Traced)).unwrap();
    // Looks at every chunk.
    pool.trace().unwrap();
    pool.release_free_space().unwrap();
    let empty = pool.medium().backed_bytes().unwrap();
    assert!(empty < full - (5 << 20), "{full} {empty}");
    assert!(pool.check().unwrap().is_empty());
}
