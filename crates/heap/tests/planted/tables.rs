//! A pool's own data: frames that an abort gives back, types, and the superblock at a close.

use firn_crash::{Crash, CrashOptions, ExploreOptions, Explorer, Failure, Report};
use firn_format::geometry::{SUPERBLOCK_BYTES, SUPERBLOCKS};
use firn_format::superblock::Superblock;
use firn_format::{FORMAT_VERSION, OLDEST_FORMAT_VERSION};
use firn_heap::{Bytes, Error, OpenError, Pool, PoolOptions, Refs, Session, Stored, View};
use firn_media::{Domain, MediumExt, Memory};

use crate::pools::{self, LEN, Missing, explore, medium, open};

type Spine = Refs<Bytes>;

#[derive(Stored)]
#[firn(name = "one word")]
#[repr(C)]
struct OneWord {
    word: u64,
}

/// More objects of 100 bytes than one frame holds.
const MORE_THAN_A_FRAME: usize = 40;

fn options() -> PoolOptions {
    PoolOptions {
        lanes: 2,
        publish_every: u32::MAX,
        ..PoolOptions::new("tables")
    }
}

fn setup(crash: &Crash) {
    let pool = Pool::create(crash.clone(), &options()).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| tx.set_root("spine", tx.alloc_refs::<Bytes>(3)?))
        .unwrap();
    drop(session);
    pool.close().unwrap();
}

/// The workload's object is there once the workload has reported it.
fn verify(pool: Pool<Crash>, done: bool) -> Result<(), String> {
    let mut session = pool.session().map_err(|e| e.to_string())?;
    let found = session.read(|view| {
        let spine = view.root::<Spine>("spine")?;
        spine.get(0).map(|bytes| bytes.to_vec()).transpose()
    });
    drop(session);
    match found.map_err(|e| e.to_string())? {
        None if done => Err("an acknowledged object is lost".into()),
        Some(bytes) if bytes != [2; 100] => Err(format!("found {bytes:?}")),
        _ => pools::check(pool),
    }
}

/// An aborted transaction gives slots of a new frame back, and another one takes them.
pub fn passed_on(missing: Missing) -> Report {
    let explorer = Explorer::new(
        explore(missing, 0),
        LEN,
        setup,
        |crash| {
            let pool = Pool::open(crash.clone(), &options()).unwrap();
            let mut first = pool.session().unwrap();
            let mut second = pool.session().unwrap();
            let aborted: Result<(), Error> = first.transaction(|tx| {
                tx.alloc_bytes(&[1; 100])?;
                let part: Result<(), Error> = tx.nested(|tx| {
                    for _ in 0..MORE_THAN_A_FRAME {
                        tx.alloc_bytes(&[1; 100])?;
                    }
                    Err(Error::ReadOnly)
                });
                assert!(part.is_err());
                second.transaction(|tx| {
                    let new = tx.alloc_bytes(&[2; 100])?;
                    tx.root::<Spine>("spine")?.set(0, Some(new))
                })?;
                crash.note(1);
                Err(Error::ReadOnly)
            });
            assert!(aborted.is_err());
            pool.abandon();
        },
        |crash, state| verify(open(crash, &options())?, state.note(0) == 1),
    );
    explorer.explore()
}

/// The first object of a type.
pub fn new_type(missing: Missing) -> Report {
    let explorer = Explorer::new(
        explore(missing, 0),
        LEN,
        setup,
        |crash| {
            let pool = Pool::open(crash.clone(), &options()).unwrap();
            let mut session = pool.session().unwrap();
            session
                .transaction(|tx| tx.set_root("word", tx.alloc(OneWord { word: 7 })?))
                .unwrap();
            crash.note(1);
            pool.abandon();
        },
        |crash, state| {
            let pool = open(crash, &options())?;
            let found = pool.check().map_err(|e| e.to_string())?;
            if let Some(finding) = found.first() {
                return Err(finding.to_string());
            }
            let mut session = pool.session().map_err(|e| e.to_string())?;
            let word = session.read(|view| {
                let object = view.find_root::<OneWord>("word")?;
                Ok::<_, Error>(object.map(|object| object.load(OneWord::WORD)))
            });
            drop(session);
            pool.abandon();
            match (word.map_err(|e| e.to_string())?, state.note(0)) {
                (Some(7), _) | (None, 0) => Ok(()),
                (other, _) => Err(format!("found {other:?}")),
            }
        },
    );
    explorer.explore()
}

/// References of an object that fills the rest of the spine frame's 64 KiB.
const REST: usize = (15 * 4096 - 16) / 8;
/// References of an object that fills the next 64 KiB.
const NEXT: usize = (16 * 4096 - 16) / 8;

/// References of an object whose run takes the first free frames.
const FEW: usize = 200;

/// An object with 64 KiB for itself is changed and freed; its blocks are given back, and the next object is stored
/// there.
pub fn given_back(missing: Missing) -> Report {
    type Lists = Refs<Spine>;
    fn store(session: &mut Session<Crash>, index: usize, len: usize) -> Result<(), String> {
        let stored = session.transaction(|tx| {
            let list = tx.alloc_refs::<Bytes>(len)?;
            tx.root::<Lists>("lists")?.set(index, Some(list))
        });
        stored.map_err(|error| error.to_string())
    }
    let explorer = Explorer::new(
        explore(missing, 0),
        LEN,
        |crash| {
            let pool = Pool::create(crash.clone(), &options()).unwrap();
            let mut session = pool.session().unwrap();
            let made = session.transaction(|tx| tx.set_root("lists", tx.alloc_refs::<Spine>(2)?));
            made.unwrap();
            store(&mut session, 0, REST).unwrap();
            store(&mut session, 1, NEXT).unwrap();
            drop(session);
            pool.close().unwrap();
        },
        |crash| {
            let pool = Pool::open(crash.clone(), &options()).unwrap();
            let mut session = pool.session().unwrap();
            let changed = session.transaction(|tx| {
                let lists = tx.root::<Lists>("lists")?;
                let next = lists.get(1).unwrap();
                next.set(NEXT - 1, Some(tx.alloc_bytes(&[1; 600])?))
            });
            changed.unwrap();
            let freed = session.transaction(|tx| {
                let lists = tx.root::<Lists>("lists")?;
                // SAFETY: the only reference is removed.
                unsafe { tx.free(lists.get(1).unwrap())? };
                lists.set(1, None)
            });
            freed.unwrap();
            drop(session);
            assert!(pool.release_free_space().unwrap() > 0);
            pool.abandon();
        },
        |crash, _| {
            let pool = open(crash, &options())?;
            pool.trace().map_err(|error| error.to_string())?;
            let mut session = pool.session().map_err(|error| error.to_string())?;
            store(&mut session, 1, FEW)?;
            drop(session);
            pools::check(pool)
        },
    );
    explorer.explore()
}

/// A pool in a page cache is closed, and the power fails: the pool is whole, or was not closed.
pub fn closed(missing: Missing) -> Report {
    let explorer = Explorer::new(
        ExploreOptions {
            medium: CrashOptions {
                domain: Domain::Process,
                ..medium(missing)
            },
            failure: Failure::Power,
            recovery_depth: 0,
            ..ExploreOptions::default()
        },
        LEN,
        |crash| {
            setup(crash);
            // The superblock says that the pool is open.
            Pool::open(crash.clone(), &options()).unwrap().abandon();
        },
        |crash| {
            let pool = Pool::open(crash.clone(), &options()).unwrap();
            let mut session = pool.session().unwrap();
            session
                .transaction(|tx| {
                    let new = tx.alloc_bytes(&[2; 100])?;
                    tx.root::<Spine>("spine")?.set(0, Some(new))
                })
                .unwrap();
            drop(session);
            pool.close().unwrap();
            crash.note(1);
        },
        |crash, state| match Pool::open(crash, &options()) {
            Err(OpenError::MachineDied { .. }) if state.note(0) == 0 => Ok(()),
            Err(error) => Err(error.to_string()),
            Ok(pool) => verify(pool, true),
        },
    );
    explorer.explore()
}

/// A copy of the superblock, if it is sound.
fn superblock(crash: &Crash, copy: usize) -> Option<Superblock> {
    let mut bytes = [0; SUPERBLOCK_BYTES as usize];
    crash.load_bytes(SUPERBLOCKS[copy], &mut bytes);
    Superblock::decode(&bytes, SUPERBLOCKS[copy]).ok()
}

/// A pool of the oldest version is opened: after any crash it opens again, and once anything was stored no program of
/// that version continues from a copy of the superblock that it can still read.
pub fn converted(missing: Missing) -> Report {
    let is_older = |copy: &Superblock| copy.version < FORMAT_VERSION;
    let explorer = Explorer::new(
        explore(missing, 1),
        LEN,
        move |crash| {
            setup(crash);
            for copy in 0..2 {
                let mut older = superblock(crash, copy).unwrap();
                older.version = OLDEST_FORMAT_VERSION;
                crash.store_bytes(SUPERBLOCKS[copy], &older.encode());
                crash.persist(SUPERBLOCKS[copy], SUPERBLOCK_BYTES);
            }
        },
        |crash| {
            let pool = Pool::open(crash.clone(), &options()).unwrap();
            assert_eq!(pool.converted_from(), Some(OLDEST_FORMAT_VERSION));
            let mut session = pool.session().unwrap();
            session
                .transaction(|tx| {
                    let new = tx.alloc_bytes(&[2; 100])?;
                    tx.root::<Spine>("spine")?.set(0, Some(new))
                })
                .unwrap();
            crash.note(1);
            drop(session);
            pool.close().unwrap();
        },
        move |crash, state| {
            let done = state.note(0) == 1;
            let copies = [0, 1].map(|copy| superblock(&crash, copy));
            if done && copies.iter().flatten().any(is_older) {
                return Err("an older program goes on from a copy of its version".into());
            }
            let pool = open(crash, &options())?;
            if pool.format_version() != FORMAT_VERSION {
                return Err("opened, and not converted".into());
            }
            verify(pool, done)
        },
    );
    explorer.explore()
}
