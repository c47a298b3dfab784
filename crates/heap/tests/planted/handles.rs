//! Handles beside a collection. Faults show without a crash.

use firn_crash::{Crash, CrashOptions, ExploreOptions, Explorer, Job, Report, Schedule, Turn};
use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Bytes, Error, Handle, Pool, PoolOptions, Refs, Session, View};
use firn_media::{Domain, Runtime};

use crate::pools::{self, LEN, Missing, explore, medium};

type Spine = Refs<Bytes>;

/// Objects of the pool, on two pages, and the ones that handles name.
const COUNT: usize = 120;
const STRONG: usize = 3;
const WEAK: usize = 100;

fn options() -> PoolOptions {
    PoolOptions {
        lanes: 2,
        publish_every: u32::MAX,
        ..PoolOptions::new("handles")
    }
}

fn collect() -> CollectOptions {
    CollectOptions {
        target: 1.0,
        pages: PageSize::Small,
        ..CollectOptions::default()
    }
}

fn bytes(object: usize) -> [u8; 30] {
    [object as u8; 30]
}

fn setup(crash: &Crash) {
    let pool = Pool::create(crash.clone(), &options()).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let spine = tx.alloc_refs::<Bytes>(COUNT)?;
            for object in 0..COUNT {
                spine.set(object, Some(tx.alloc_bytes(&bytes(object))?))?;
            }
            tx.set_root("spine", spine)
        })
        .unwrap();
    drop(session);
    pool.close().unwrap();
}

/// Takes handles to two objects. From then on nothing in the pool names them, nor most others.
fn take_handles(pool: &Pool<Crash>, session: &mut Session<Crash>) -> [Handle<Bytes, Crash>; 2] {
    let handles = session.read(|view| {
        let spine = view.root::<Spine>("spine").unwrap();
        let strong = pool.handle(spine.get(STRONG).unwrap());
        [strong, pool.weak_handle(spine.get(WEAK).unwrap())]
    });
    session
        .transaction(|tx| {
            let spine = tx.root::<Spine>("spine")?;
            let mut gone = (0..COUNT).filter(|object| object % 30 != 0);
            gone.try_for_each(|object| spine.set(object, None))
        })
        .unwrap();
    handles
}

/// An explorer on a medium where caches survive: only the memory is checked after a crash.
fn explorer<'a>(missing: Missing, workload: impl Fn(&Crash) + 'a) -> Explorer<'a> {
    let options = ExploreOptions {
        medium: CrashOptions {
            domain: Domain::Eadr,
            ..medium(missing)
        },
        ..explore(missing, 0)
    };
    Explorer::new(options, LEN, setup, workload, |_, _| Ok(()))
}

/// A strong handle's object lives, and moves; then it is stored in the pool again.
pub fn moved(missing: Missing) -> Report {
    let explorer = explorer(missing, |crash| {
        let pool = Pool::open(crash.clone(), &options()).unwrap();
        let mut session = pool.session().unwrap();
        let [strong, _weak] = take_handles(&pool, &mut session);
        pool.collect(&collect()).unwrap();
        session
            .transaction(|tx| {
                let object = tx.deref(&strong);
                tx.root::<Spine>("spine")?.set(STRONG, object)
            })
            .unwrap();
        pools::check(pool).unwrap();
    });
    explorer.explore()
}

/// A weak handle's object is stored in the pool again, at each moment of a collection.
pub fn recalled(missing: Missing) -> Report {
    let explorer = explorer(missing, |crash| {
        let pool = Pool::open(crash.clone(), &options()).unwrap();
        let (recalling, collecting) = (pool.clone(), pool.clone());
        let mut session = pool.session().unwrap();
        let [_strong, weak] = take_handles(&pool, &mut session);
        let recall: Job = Box::new(move || {
            let mut session = recalling.session().unwrap();
            recalling.medium().pause(0);
            let recalled = session.transaction(|tx| {
                let object = tx.deref(&weak);
                tx.root::<Spine>("spine")?.set(WEAK, object)
            });
            recalled.unwrap();
            recalling.abandon();
        });
        let collect: Job = Box::new(move || {
            collecting.collect(&collect()).unwrap();
        });
        let run = crash.run(vec![recall, collect], Schedule::Inherited);
        run.finished().unwrap();
        let found = session.read(|view| {
            let object = view.root::<Spine>("spine")?.get(WEAK);
            object.map(|object| object.to_vec()).transpose()
        });
        let found: Option<Vec<u8>> = found.map_err(|e: Error| e.to_string()).unwrap();
        assert!(found.is_none_or(|found| found == bytes(WEAK)));
        pools::check(pool).unwrap();
    });
    let mut after = 0;
    explorer.explore_each(|last| {
        after += 1;
        let over = last.is_some_and(|run| after > run.steps);
        (!over).then(|| Schedule::Turns(vec![Turn { after, thread: 1 }]))
    })
}
