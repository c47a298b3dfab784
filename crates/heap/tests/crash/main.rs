//! Is every legal crash image of short transaction sequences recoverable, with crashes during recovery?

mod freeing;

use std::cell::RefCell;

use firn_crash::{Crash, CrashOptions, CrashState, ExploreOptions, Explorer, Failure, Report};
use firn_format::frame::FrameUse;
use firn_format::geometry::Frame;
use firn_heap::{
    Bytes, Error, FrameContent, OpenError, Pool, PoolKind, PoolOptions, Refs, Session, View,
};
use firn_media::{Domain, Memory, Space};
use firn_units::LINE_BYTES;

type Spine = Refs<Bytes>;
/// The content of the spine's places.
type Content = [Option<Vec<u8>>; 3];

#[derive(Clone, Copy, Debug)]
enum Op {
    /// Put a new object of this many bytes in a place, and free the old one.
    Put(usize, usize),
    /// Change a word of the object in place.
    Change(usize),
    /// Free the object.
    Remove(usize),
    /// Put, change and remove objects, then abort.
    Abort,
}

fn options(kind: PoolKind) -> PoolOptions {
    PoolOptions {
        kind,
        lanes: 1,
        publish_every: u32::MAX,
        ..PoolOptions::new("crash")
    }
}

fn apply(session: &mut Session<Crash>, op: Op, number: u8) -> Result<(), Error> {
    session.transaction(|tx| {
        let spine = tx.root::<Spine>("spine")?;
        let put = |place: usize, len: usize| {
            let new = tx.alloc_bytes(&vec![number; len])?;
            if let Some(old) = spine.get(place) {
                // SAFETY: the only reference is replaced.
                unsafe { tx.free(old)? };
            }
            spine.set(place, Some(new))
        };
        match op {
            Op::Put(place, len) => put(place, len),
            Op::Change(place) => match spine.get(place) {
                Some(bytes) => bytes.overwrite(0, &[number; 5]),
                None => Ok(()),
            },
            Op::Remove(place) => {
                if let Some(old) = spine.get(place) {
                    // SAFETY: the only reference is removed.
                    unsafe { tx.free(old)? };
                }
                spine.set(place, None)
            }
            Op::Abort => {
                put(0, 20)?;
                put(2, 20)?;
                Err(Error::ReadOnly)
            }
        }
    })
}

fn model(content: &mut Content, op: Op, number: u8) {
    match op {
        Op::Put(place, len) => content[place] = Some(vec![number; len]),
        Op::Change(place) => {
            if let Some(bytes) = &mut content[place] {
                bytes[..5].fill(number);
            }
        }
        Op::Remove(place) => content[place] = None,
        Op::Abort => {}
    }
}

fn read(pool: &Pool<Crash>) -> Result<Content, Error> {
    let mut session = pool.session()?;
    session.read(|view| {
        let spine = view.root::<Spine>("spine")?;
        let mut content = Content::default();
        for (i, place) in content.iter_mut().enumerate() {
            *place = spine.get(i).map(|b| b.to_vec()).transpose()?;
        }
        Ok(content)
    })
}

/// Frames of large objects that do not live, after a look at the chunk: these would be lost for good.
fn lost_frames(pool: &Pool<Crash>) -> Result<usize, Error> {
    let mut session = pool.session()?;
    session.transaction(|tx| tx.alloc_bytes(&[1; 20]).map(|_| ()))?;
    let dead = FrameContent::Large {
        live_bytes: Some(0),
    };
    let frames = pool.occupancy()?.frames;
    Ok(frames.iter().filter(|f| f.content == dead).count())
}

fn explore(kind: PoolKind, domain: Domain, ops: &[Op], depth: u32) -> Report {
    let acknowledged: RefCell<Vec<Content>> = RefCell::new(Vec::new());
    let start: Content = [None, Some(vec![9; 30]), None];
    let explore = ExploreOptions {
        recovery_depth: depth,
        medium: firn_crash::CrashOptions {
            domain,
            ..Default::default()
        },
        ..ExploreOptions::default()
    };
    let explorer = Explorer::new(
        explore,
        16 << 20,
        |crash| {
            let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
            let mut session = pool.session().unwrap();
            session
                .transaction(|tx| {
                    let spine = tx.alloc_refs::<Bytes>(3)?;
                    spine.set(1, Some(tx.alloc_bytes(&[9; 30])?))?;
                    tx.set_root("spine", spine)
                })
                .unwrap();
            drop(session);
            pool.close().unwrap();
        },
        |crash| {
            let mut states = vec![start.clone()];
            let pool = Pool::open(crash.clone(), &options(kind)).unwrap();
            let mut session = pool.session().unwrap();
            for (i, &op) in ops.iter().enumerate() {
                let mut next = states.last().unwrap().clone();
                model(&mut next, op, i as u8 + 1);
                states.push(next);
                acknowledged.replace(states.clone());
                let _ = apply(&mut session, op, i as u8 + 1);
                crash.note(i as u64 + 1);
            }
            pool.abandon();
        },
        |crash, state: &CrashState| {
            let pool = Pool::open(crash, &options(kind)).map_err(|e| e.to_string())?;
            pool.medium().end_of_recovery();
            let found = read(&pool).map_err(|e| e.to_string())?;
            let findings = pool.check().map_err(|e| e.to_string())?;
            let lost = (kind == PoolKind::Explicit).then(|| lost_frames(&pool));
            pool.abandon();
            match lost.transpose().map_err(|e| e.to_string())? {
                None | Some(0) => {}
                Some(lost) => {
                    return Err(format!("{lost} frames are a large object's that is none"));
                }
            }
            if let Some(finding) = findings.first() {
                return Err(finding.to_string());
            }
            let states = acknowledged.borrow();
            let done = state.note(0) as usize;
            let begun = (done + 1).min(states.len().saturating_sub(1));
            let legal = states.is_empty() && found == start
                || states.get(done) == Some(&found)
                || states.get(begun) == Some(&found);
            if legal {
                Ok(())
            } else {
                Err(format!("after {done}: found {found:?}"))
            }
        },
    );
    let report = explorer.explore();
    let clean = report.findings.is_empty();
    assert!(!clean || report.exhaustive(), "{ops:?}: not exhaustive");
    println!("{kind:?} {domain} {ops:?}: {} states", report.states);
    report
}

/// Bytes of an object of several frames.
const LARGE: usize = 33_000;
const OPS: [Op; 6] = [
    Op::Put(0, 20),
    Op::Put(1, 20),
    Op::Change(1),
    Op::Remove(1),
    Op::Abort,
    Op::Put(2, 2500),
];

#[test]
fn every_image_of_every_pair_in_a_traced_pool() {
    for first in OPS {
        for second in OPS {
            explore(PoolKind::Traced, Domain::Adr, &[first, second], 2).expect_clean();
        }
    }
}

#[test]
fn every_image_of_every_pair_in_an_explicit_pool() {
    for first in OPS {
        for second in OPS {
            explore(PoolKind::Explicit, Domain::Adr, &[first, second], 1).expect_clean();
        }
    }
}

#[test]
fn no_image_of_an_explicit_pool_loses_the_room_of_a_large_object() {
    let large = Op::Put(2, LARGE);
    for ops in [[large, Op::Remove(2)], [Op::Put(0, 20), large]] {
        explore(PoolKind::Explicit, Domain::Adr, &ops, 1).expect_clean();
    }
}

#[test]
fn every_image_where_caches_are_persistent() {
    for domain in [Domain::Eadr, Domain::Process] {
        for first in OPS {
            for second in OPS {
                explore(PoolKind::Traced, domain, &[first, second], 2).expect_clean();
            }
        }
    }
}

/// More objects of 100 bytes than one frame holds.
const MORE_THAN_A_FRAME: usize = 40;

#[test]
fn a_frame_that_is_passed_on_is_known_to_media() {
    let two_lanes = || PoolOptions {
        lanes: 2,
        ..options(PoolKind::Traced)
    };
    let explorer = Explorer::new(
        ExploreOptions::default(),
        16 << 20,
        |crash| {
            let pool = Pool::create(crash.clone(), &two_lanes()).unwrap();
            let mut session = pool.session().unwrap();
            session
                .transaction(|tx| tx.set_root("spine", tx.alloc_refs::<Bytes>(3)?))
                .unwrap();
            drop(session);
            pool.close().unwrap();
        },
        |crash| {
            let pool = Pool::open(crash.clone(), &two_lanes()).unwrap();
            let mut first = pool.session().unwrap();
            let mut second = pool.session().unwrap();
            let unfinished: Result<(), Error> = first.transaction(|tx| {
                tx.alloc_bytes(&[1; 100])?;
                let part: Result<(), Error> = tx.nested(|tx| {
                    for _ in 0..MORE_THAN_A_FRAME {
                        tx.alloc_bytes(&[1; 100])?;
                    }
                    Err(Error::ReadOnly)
                });
                assert!(part.is_err());
                // Now any session may use the rest of the first frame.
                second.transaction(|tx| {
                    let new = tx.alloc_bytes(&[2; 100])?;
                    tx.root::<Spine>("spine")?.set(0, Some(new))
                })?;
                crash.note(1);
                Err(Error::ReadOnly)
            });
            assert!(unfinished.is_err());
            pool.abandon();
        },
        |crash, state| {
            let pool = Pool::open(crash, &two_lanes()).map_err(|e| e.to_string())?;
            pool.medium().end_of_recovery();
            let found = read(&pool).map_err(|e| e.to_string())?;
            let findings = pool.check().map_err(|e| e.to_string())?;
            pool.abandon();
            match (findings.first(), &found[0], state.note(0)) {
                (Some(finding), ..) => Err(finding.to_string()),
                (None, None, 1) => Err("an acknowledged object is lost".into()),
                (None, Some(bytes), _) if *bytes != [2; 100] => Err("another object".into()),
                _ => Ok(()),
            }
        },
    );
    assert!(explorer.explore().expect_clean().exhaustive());
}

/// A2 for slots: an object that is stored at home is not in the log, so no older entry may be replayed into its slot.
#[test]
fn an_object_stored_at_home_is_not_overwritten_by_an_older_entry() {
    const LEN: usize = 3000;
    let options = || PoolOptions {
        lanes: 1,
        publish_every: u32::MAX,
        ..PoolOptions::new("large")
    };
    let explorer = Explorer::new(
        ExploreOptions::default(),
        16 << 20,
        |crash| {
            let pool = Pool::create(crash.clone(), &options()).unwrap();
            let mut session = pool.session().unwrap();
            session
                .transaction(|tx| {
                    let spine = tx.alloc_refs::<Bytes>(4)?;
                    tx.set_root("spine", spine)?;
                    // They fill their run, so that a freed slot is the next one taken.
                    (0..4).try_for_each(|i| spine.set(i, Some(tx.alloc_bytes(&[1; LEN])?)))
                })
                .unwrap();
            drop(session);
            pool.close().unwrap();
        },
        |crash| {
            let pool = Pool::open(crash.clone(), &options()).unwrap();
            let mut session = pool.session().unwrap();
            let mut change = |step: u64| {
                session.transaction(|tx| {
                    let spine = tx.root::<Spine>("spine")?;
                    match (step, spine.get(0)) {
                        (0, Some(first)) => first.overwrite(0, &[2; 8])?,
                        (1, Some(first)) => {
                            spine.set(0, None)?;
                            // SAFETY: the only reference is gone.
                            unsafe { tx.free(first)? }
                        }
                        _ => spine.set(0, Some(tx.alloc_bytes(&[3; LEN])?))?,
                    }
                    Ok::<_, Error>(())
                })
            };
            for step in 0..3 {
                change(step).unwrap();
                crash.note(step + 1);
            }
            pool.abandon();
        },
        |crash, state| {
            let pool = Pool::open(crash, &options()).map_err(|e| e.to_string())?;
            pool.medium().end_of_recovery();
            let mut session = pool.session().map_err(|e| e.to_string())?;
            let first = session.read(|view| {
                let spine = view.root::<Spine>("spine")?;
                spine.get(0).map(|bytes| bytes.to_vec()).transpose()
            });
            let first = first.map_err(|e| e.to_string())?;
            drop(session);
            pool.abandon();
            let changed = [&[2; 8][..], &[1; LEN - 8]].concat();
            let legal = [Some(vec![1; LEN]), Some(changed), None, Some(vec![3; LEN])];
            let done = state.note(0) as usize;
            match legal[done..]
                .iter()
                .take(2)
                .any(|content| *content == first)
            {
                true => Ok(()),
                false => Err(format!(
                    "after {done}: found {:?}",
                    first.map(|b| b[..16].to_vec())
                )),
            }
        },
    );
    explorer.explore().expect_clean();
}

/// P1: where only a sync makes anything durable, the device knows that a pool is open before anything else changes.
#[test]
fn a_power_failure_after_opening_a_closed_pool_is_noticed() {
    let options = || PoolOptions::new("noticed");
    let explorer = Explorer::new(
        ExploreOptions {
            recovery_depth: 0,
            failure: Failure::Power,
            medium: CrashOptions::with_domain(Domain::Process),
            ..ExploreOptions::default()
        },
        16 << 20,
        |crash| {
            let pool = Pool::create(crash.clone(), &options()).unwrap();
            let mut session = pool.session().unwrap();
            session
                .transaction(|tx| tx.set_root("spine", tx.alloc_refs::<Bytes>(1)?))
                .unwrap();
            drop(session);
            pool.close().unwrap();
        },
        |crash| {
            let pool = Pool::open(crash.clone(), &options()).unwrap();
            let mut session = pool.session().unwrap();
            session
                .transaction(|tx| {
                    let spine = tx.root::<Refs<Bytes>>("spine")?;
                    spine.set(0, Some(tx.alloc_bytes(&[1; 20])?))
                })
                .unwrap();
            pool.abandon();
        },
        |crash, _| match Pool::open(crash, &options()) {
            Err(OpenError::MachineDied { .. }) => Ok(()),
            Err(error) => Err(error.to_string()),
            Ok(pool) => {
                let findings = pool.check().map_err(|e| e.to_string())?;
                pool.abandon();
                match findings.first() {
                    Some(finding) => Err(finding.to_string()),
                    None => Ok(()),
                }
            }
        },
    );
    explorer.explore().expect_clean();
}

/// Draws of the data that a power failure loses.
const DRAWS: u64 = 24;

/// The content of the spine's only place, or of the root itself, after the power failed.
fn after_power_failure(crash: &Crash, seed: u64, kind: PoolKind, root: &str) -> Vec<u8> {
    let again = Crash::from_image(&crash.random_image(seed), CrashOptions::default());
    let pool = Pool::open(again, &options(kind)).unwrap();
    assert_eq!(pool.check().unwrap(), [], "draw {seed}");
    let mut session = pool.session().unwrap();
    let content = session.read(|view| view.root::<Bytes>(root).unwrap().to_vec().unwrap());
    drop(session);
    pool.abandon();
    content
}

/// Recovery retires the log, so its stores are durable then, to the last line of a record: a run of slots of many
/// frames has a record with a word for each.
#[test]
fn a_record_of_many_lines_survives_a_power_failure_after_recovery() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        for len in [1_500, 9_000, 20_000, 31_000] {
            let content = vec![7; len];
            let crash = Crash::new(16 << 20, CrashOptions::default());
            let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
            let mut session = pool.session().unwrap();
            session
                .transaction(|tx| tx.set_root("long", tx.alloc_bytes(&content)?))
                .unwrap();
            std::mem::forget(session);
            pool.abandon();
            for first in 0..DRAWS {
                let image = crash.random_image(first);
                let recovered = Crash::from_image(&image, CrashOptions::default());
                Pool::open(recovered.clone(), &options(kind))
                    .unwrap()
                    .abandon();
                for second in 0..4 {
                    let found = after_power_failure(&recovered, second, kind, "long");
                    assert!(found == content, "{len} bytes, draws {first} and {second}");
                }
            }
        }
    }
}

/// A copy is durable when the call has returned, whatever happens next.
#[test]
fn a_copy_survives_a_power_failure_right_after_it() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        for len in [1_500, 20_000, 300_000] {
            let from = Crash::new(16 << 20, CrashOptions::default());
            let from = Pool::create(from, &options(kind)).unwrap();
            let content: Vec<u8> = (0..len).map(|i| (i / 64 % 251) as u8 + 1).collect();
            let made = from
                .session()
                .unwrap()
                .transaction(|tx| tx.set_root("content", tx.alloc_bytes(&content)?));
            made.unwrap();
            let target = Crash::new(16 << 20, CrashOptions::default());
            let copy = from
                .copy_into(target.clone(), firn_heap::CopyIdentity::New, &mut |_| {})
                .unwrap();
            for seed in 0..DRAWS {
                let found = after_power_failure(&target, seed, kind, "content");
                assert!(found == content, "{len} bytes, draw {seed}");
            }
            copy.abandon();
            from.close().unwrap();
        }
    }
}
