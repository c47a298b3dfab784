//! Freeing many objects, and power failures after recovery.

use super::*;

/// A spine of objects that take a frame each, so that each is freed by a bit in a word of its own.
fn many(crash: &Crash, objects: usize) {
    let pool = Pool::create(crash.clone(), &options(PoolKind::Explicit)).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let spine = tx.alloc_refs::<Bytes>(objects)?;
            for place in 0..objects {
                spine.set(place, Some(tx.alloc_bytes(&[place as u8; 4_000])?))?;
            }
            tx.set_root("spine", spine)
        })
        .unwrap();
    drop(session);
    pool.close().unwrap();
}

/// Frees every object of the spine, and the spine, in one transaction; the new spine is empty.
fn free_many(session: &mut Session<Crash>) -> Result<(), Error> {
    session.transaction(|tx| {
        let spine = tx.root::<Spine>("spine")?;
        for place in 0..spine.len() {
            if let Some(object) = spine.get(place) {
                // SAFETY: the spine goes, too.
                unsafe { tx.free(object)? };
            }
        }
        // SAFETY: the root names another one.
        unsafe { tx.free(spine)? };
        tx.set_root("spine", tx.alloc_refs::<Bytes>(1)?)
    })
}

/// Each object's bit is in a word of its own.
#[test]
fn every_image_of_freeing_many_is_all_or_nothing() {
    const OBJECTS: usize = 6;
    let explorer = Explorer::new(
        ExploreOptions {
            recovery_depth: 1,
            ..ExploreOptions::default()
        },
        16 << 20,
        |crash| many(crash, OBJECTS),
        |crash| {
            let pool = Pool::open(crash.clone(), &options(PoolKind::Explicit)).unwrap();
            let mut session = pool.session().unwrap();
            free_many(&mut session).unwrap();
            crash.note(1);
            pool.abandon();
        },
        |crash, state: &CrashState| {
            let pool =
                Pool::open(crash, &options(PoolKind::Explicit)).map_err(|e| e.to_string())?;
            pool.medium().end_of_recovery();
            let mut session = pool.session().map_err(|e| e.to_string())?;
            let places = session.read(|view| Ok::<_, Error>(view.root::<Spine>("spine")?.len()));
            drop(session);
            let findings = pool.check().map_err(|e| e.to_string())?;
            pool.abandon();
            let places = places.map_err(|e| e.to_string())?;
            match (places, state.note(0), findings.first()) {
                (_, _, Some(finding)) => Err(finding.to_string()),
                (1, _, None) | (OBJECTS, 0, None) => Ok(()),
                (places, note, None) => Err(format!("{places} places after {note}")),
            }
        },
    );
    explorer.explore().expect_clean();
}

/// The frames of entries outside their slots are reused once a durable W lies above the entries, also while their
/// session is idle: entries of one session then lie where another's lay, and every image is correct.
#[test]
fn logs_of_idle_sessions_are_used_again() {
    let crash = Crash::new(64 << 20, CrashOptions::default());
    let two = PoolOptions {
        lanes: 2,
        max_bytes: Some(20 << 20),
        ..options(PoolKind::Explicit)
    };
    let pool = Pool::create(crash.clone(), &two).unwrap();
    let (mut idle, mut busy) = (pool.session().unwrap(), pool.session().unwrap());
    let long = |session: &mut Session<Crash>, number: u8| {
        session.transaction(|tx| {
            // 100 KiB of log, and as many bytes of objects, which are freed.
            let spine = tx.alloc_refs::<Bytes>(64)?;
            for place in 0..64 {
                spine.set(place, Some(tx.alloc_bytes(&[number; 1_600])?))?;
            }
            if let Some(old) = tx.find_root::<Spine>("spine")? {
                for place in 0..64 {
                    // SAFETY: the spine goes, too.
                    unsafe { tx.free(old.get(place).unwrap())? };
                }
                // SAFETY: the root names another one.
                unsafe { tx.free(old)? };
            }
            tx.set_root("spine", spine)
        })
    };
    for number in 0..7 {
        long(&mut idle, number).unwrap();
    }
    for number in 0..200 {
        long(&mut busy, number).unwrap();
    }
    let small = crash.len();
    for number in 0..200 {
        long(&mut busy, number).unwrap();
    }
    assert_eq!(crash.len(), small);
    drop((idle, busy));
    pool.abandon();
    let pool = Pool::open(crash, &two).unwrap();
    assert!(pool.check().unwrap().is_empty());
    let mut session = pool.session().unwrap();
    session.read(|view| {
        let spine = view.root::<Spine>("spine").unwrap();
        let bytes = (0..64).map(|place| spine.get(place).unwrap().to_vec().unwrap());
        assert!(bytes.into_iter().all(|bytes| bytes == [199; 1_600]));
    });
}

/// The words of a run's frames are one record, which spans two lines of the table if the run begins at the end of a
/// line. That run is the last one here: a run behind it would write the second line back.
#[test]
fn a_run_over_two_lines_of_the_frame_table_survives_a_power_failure_after_recovery() {
    let line = |frame: Frame| frame.word_at().0 / LINE_BYTES;
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let crash = Crash::new(16 << 20, CrashOptions::default());
        let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
        let mut session = pool.session().unwrap();
        // Each in a run of its own.
        let lengths = (6..20).map(|hundreds| 100 * hundreds);
        let made = session.transaction(|tx| {
            for len in lengths.clone() {
                let object = tx.alloc_bytes(&vec![7; len])?;
                tx.set_root(&format!("{len}"), object)?;
                let first = Frame::holding(object.address());
                let word = crash.load_u64(first.word_at());
                let frames = FrameUse::from_word(word, first.word_at())?.frames();
                if line(first) != line(first.plus(frames - 1)) {
                    return Ok(Some(len));
                }
            }
            Ok::<_, Error>(None)
        });
        let last = made.unwrap().expect("a run lies in two lines");
        std::mem::forget(session);
        pool.abandon();
        for first in 0..DRAWS {
            let recovered = Crash::from_image(&crash.random_image(first), CrashOptions::default());
            Pool::open(recovered.clone(), &options(kind))
                .unwrap()
                .abandon();
            for second in 0..4 {
                for len in lengths.clone().take_while(|&len| len <= last) {
                    let found = after_power_failure(&recovered, second, kind, &format!("{len}"));
                    assert!(
                        found == vec![7; len],
                        "{len} bytes, draws {first} and {second}"
                    );
                }
            }
        }
    }
}
