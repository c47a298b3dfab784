//! Pages that are emptied twice, under a scheme that asks the hardware where objects go.

use firn_crash::{Crash, CrashOptions, Explorer, LookupSizes, RelocateUnit, Report};
use firn_heap::collector::scheme::FFCCD_CHECKLOOKUP;
use firn_heap::{Bytes, Error, Pool, PoolKind, PoolOptions, Refs, Session, View};
use firn_media::Domain;

use crate::pools::{self, LEN, Missing, explore, medium, open};
use crate::program::{collect, options};

type Spine = Refs<Bytes>;

/// Objects of two pages.
const PLACES: usize = 120;
/// Collections, each of which uses pages of the one before the last.
const ROUNDS: usize = 4;
/// One of this many stays.
const ONE_OF: usize = 30;

fn pool_options() -> PoolOptions {
    options(PoolKind::Traced, 1)
}

fn value(place: usize) -> [u8; 30] {
    [1 + place as u8; 30]
}

/// Puts an object into each empty place.
fn fill(session: &mut Session<Crash>) {
    session
        .transaction(|tx| {
            let all = tx.root::<Spine>("all")?;
            for place in 0..PLACES {
                if all.get(place).is_none() {
                    all.set(place, Some(tx.alloc_bytes(&value(place))?))?;
                }
            }
            Ok::<_, Error>(())
        })
        .unwrap();
}

/// Keeps a few objects, different ones in each round.
fn empty(session: &mut Session<Crash>, round: usize) {
    session
        .transaction(|tx| {
            let all = tx.root::<Spine>("all")?;
            let goes = |place: &usize| place % ONE_OF != round;
            let mut goes = (0..PLACES).filter(goes);
            goes.try_for_each(|place| all.set(place, None))
        })
        .unwrap();
}

fn setup(crash: &Crash) {
    let pool = Pool::create(crash.clone(), &pool_options()).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| tx.set_root("all", tx.alloc_refs::<Bytes>(PLACES)?))
        .unwrap();
    fill(&mut session);
    empty(&mut session, 0);
    drop(session);
    pool.close().unwrap();
}

/// Each place has its object, or none.
fn verify(pool: Pool<Crash>) -> Result<(), String> {
    let mut session = pool.session().map_err(|e| e.to_string())?;
    let read = session.read(|view| {
        let all = view.root::<Spine>("all").map_err(|e| e.to_string())?;
        for place in 0..PLACES {
            let found = all.get(place).map(|object| object.to_vec()).transpose();
            match found.map_err(|e| e.to_string())? {
                Some(bytes) if bytes != value(place) => {
                    return Err(format!("found {bytes:?} in place {place}"));
                }
                _ => {}
            }
        }
        Ok(())
    });
    drop(session);
    read?;
    pools::check(pool)
}

/// Cycles over pages that earlier ones emptied, and that were filled again meanwhile.
pub fn emptied_twice(missing: Missing) -> Report {
    let mut options = explore(missing, 0);
    // The faults show without lost lines, and where caches survive there are few images.
    options.medium = CrashOptions {
        domain: Domain::Eadr,
        relocate: Some(RelocateUnit::Functional),
        lookup: Some(LookupSizes::default()),
        ..medium(missing)
    };
    let explorer = Explorer::new(
        options,
        LEN,
        setup,
        |crash| {
            let pool = Pool::open(crash.clone(), &pool_options()).unwrap();
            let mut session = pool.session().unwrap();
            pool.collect(&collect(&FFCCD_CHECKLOOKUP)).unwrap();
            for round in 1..ROUNDS {
                fill(&mut session);
                empty(&mut session, round);
                pool.collect(&collect(&FFCCD_CHECKLOOKUP)).unwrap();
            }
            drop(session);
            verify(pool).unwrap();
        },
        |crash, _| verify(open(crash, &pool_options())?),
    );
    explorer.explore()
}
