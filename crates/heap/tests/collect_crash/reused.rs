//! A slot to which an object moved and in which it was freed is reused for an object that is stored at home.

use firn_crash::{Crash, CrashOptions, CrashState, ExploreOptions, Explorer, Schedule};
use firn_heap::collector::scheme::PIGGYBACK;
use firn_heap::{Bytes, Error, Obj, Pool, PoolKind, PoolOptions, Refs, Tx, View};
use firn_media::Step;

use crate::program::{check, collect, options};

/// More bytes than a log entry takes from a new object.
const LEN: usize = 3000;
/// Objects before most are freed, and those that stay: one in each of two runs.
const BEFORE: usize = 8;
const KEPT: [usize; 2] = [0, 5];
/// The content of the new object.
const NEW: u8 = 9;
const ROOT: &str = "kept";

type Kept = Refs<Bytes>;

fn pool_options() -> PoolOptions {
    options(PoolKind::Traced, 1)
}

fn kept<'t>(tx: Tx<'t, Crash>) -> Result<Obj<'t, Kept, Tx<'t, Crash>>, Error> {
    tx.root::<Kept>(ROOT)
}

fn setup(crash: &Crash) {
    let pool = Pool::create(crash.clone(), &pool_options()).unwrap();
    let mut session = pool.session().unwrap();
    let others = session.transaction(|tx| {
        let all = tx.alloc_refs::<Bytes>(KEPT.len())?;
        let mut others = Vec::new();
        for i in 0..BEFORE {
            let one = tx.alloc_bytes(&[1 + i as u8; LEN])?;
            match KEPT.iter().position(|kept| *kept == i) {
                Some(place) => all.set(place, Some(one))?,
                None => others.push(pool.handle(one)),
            }
        }
        tx.set_root(ROOT, all)?;
        Ok::<_, Error>(others)
    });
    for other in others.unwrap() {
        let free = |tx: Tx<'_, Crash>| {
            let other = tx.deref(&other).unwrap();
            // SAFETY: nothing refers to it.
            unsafe { tx.free(other) }
        };
        session.transaction(free).unwrap();
    }
    drop(session);
    pool.close().unwrap();
}

/// Frees the first object while objects move, and puts another in its place.
fn workload(crash: &Crash) {
    let pool = Pool::open(crash.clone(), &pool_options()).unwrap();
    let job = move || {
        let how = collect(&PIGGYBACK);
        let mut collection = pool.collection(&how).unwrap();
        assert!(collection.begin().unwrap());
        let mut session = pool.session().unwrap();
        let free = |tx: Tx<'_, Crash>| {
            let old = kept(tx)?.get(0).unwrap();
            // SAFETY: the only reference to it is replaced.
            unsafe { tx.free(old)? };
            kept(tx)?.set(0, None)
        };
        session.transaction(free).unwrap();
        pool.medium().note(2);
        let fill = |tx: Tx<'_, Crash>| kept(tx)?.set(0, Some(tx.alloc_bytes(&[NEW; LEN])?));
        session.transaction(fill).unwrap();
        pool.medium().note(4);
        drop(collection);
        pool.clone().abandon();
    };
    let run = crash.run(vec![Box::new(job)], Schedule::Sequential);
    run.finished().unwrap();
}

/// The returned change is there, and the next one wholly or not at all.
fn verify(crash: Crash, state: &CrashState) -> Result<(), String> {
    let pool = Pool::open(crash, &pool_options()).map_err(|e| e.to_string())?;
    pool.medium().end_of_recovery();
    check(&pool).map_err(|e| format!("after opening: {e}"))?;
    let mut session = pool.session().map_err(|e| e.to_string())?;
    let first = session.read(|view| {
        let kept = view.root::<Kept>(ROOT)?;
        Ok::<_, Error>(match kept.get(0) {
            Some(bytes) => Some(bytes.to_vec()?),
            None => None,
        })
    });
    let first = first.map_err(|e| e.to_string())?;
    drop(session);
    pool.abandon();
    let history = [Some(vec![1; LEN]), None, Some(vec![NEW; LEN])];
    let done = state.note(1) as usize / 2;
    match history[done..].iter().take(2).any(|then| *then == first) {
        true => Ok(()),
        false => Err(format!(
            "after {done} transactions: found {:?}",
            first.map(|bytes| bytes[0])
        )),
    }
}

/// An explorer that crashes it everywhere, with a step left out or none.
pub fn explorer(leave_out: Option<&'static Step>, max_findings: usize) -> Explorer<'static> {
    let crash = Crash::new(16 << 20, CrashOptions::default());
    setup(&crash);
    let options = ExploreOptions {
        max_findings,
        medium: CrashOptions {
            leave_out,
            ..CrashOptions::default()
        },
        ..ExploreOptions::default()
    };
    Explorer::from_image(options, &crash.cache_image(), workload, verify)
}
