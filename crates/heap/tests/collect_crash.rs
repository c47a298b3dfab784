//! Is every legal crash image of a collection recoverable, in every phase, beside a program that
//! changes what moves, crashes during recovery included?

use std::cell::RefCell;

use firn_crash::{Crash, CrashOptions, CrashState, ExploreOptions, Explorer, Report};
use firn_format::statistics::{FIRST_CLASS, FIRST_EVENT, block_at};
use firn_heap::collector::scheme::{ESPRESSO, PIGGYBACK, SFCCD, SFCCD_AS_PRINTED, Scheme};
use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Bytes, Error, Pool, PoolKind, PoolOptions, Refs, Session, View};
use firn_media::{Domain, MediumExt};
use firn_units::WORD_BYTES;

type Spine = Refs<Bytes>;
/// What the spine's places hold.
type Content = [Option<Vec<u8>>; 3];

/// What the program does, one transaction each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Nothing,
    /// Change the first word of the object in place.
    Change(usize),
    /// Put a new object in its place, freeing it.
    Replace(usize),
    /// Free it.
    Remove(usize),
    /// Exchange two places' references.
    Swap,
    /// Change, replace and remove, then abort.
    Abort,
    /// Read everything, which moves it.
    Read,
}

const OPS: [Op; 6] = [
    Op::Change(0),
    Op::Replace(1),
    Op::Remove(0),
    Op::Swap,
    Op::Abort,
    Op::Read,
];

/// Objects of the pool before most are freed: two frames.
const BEFORE: usize = 120;
/// Those that stay, two in the first frame and one in the second.
const KEPT: [usize; 3] = [3, 60, 100];
const LEN: usize = 30;

fn options(kind: PoolKind) -> PoolOptions {
    PoolOptions {
        kind,
        lanes: 1,
        publish_every: u32::MAX,
        ..PoolOptions::new("collect")
    }
}

fn collect(scheme: &'static Scheme) -> CollectOptions {
    CollectOptions {
        target: 1.0,
        pages: PageSize::Small,
        scheme,
        ..CollectOptions::default()
    }
}

fn setup(crash: &Crash, kind: PoolKind) {
    let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let all = tx.alloc_refs::<Bytes>(BEFORE)?;
            for i in 0..BEFORE {
                all.set(i, Some(tx.alloc_bytes(&[9; LEN])?))?;
            }
            tx.set_root("all", all)
        })
        .unwrap();
    session
        .transaction(|tx| {
            let all = tx.root::<Spine>("all")?;
            let spine = tx.alloc_refs::<Bytes>(KEPT.len())?;
            for i in 0..BEFORE {
                match KEPT.iter().position(|kept| *kept == i) {
                    Some(place) => spine.set(place, all.get(i))?,
                    // SAFETY: the array that refers to it is freed below.
                    None => unsafe { tx.free(all.get(i).unwrap())? },
                }
            }
            tx.set_root("spine", spine)?;
            tx.remove_root("all")?;
            // SAFETY: the root that referred to it is gone.
            unsafe { tx.free(all) }
        })
        .unwrap();
    drop(session);
    pool.close().unwrap();
}

fn apply(session: &mut Session<Crash>, op: Op, number: u8) -> Result<(), Error> {
    session.transaction(|tx| {
        let spine = tx.root::<Spine>("spine")?;
        let replace = |place: usize| {
            let new = tx.alloc_bytes(&[number; LEN])?;
            if let Some(old) = spine.get(place) {
                // SAFETY: the only reference is replaced.
                unsafe { tx.free(old)? };
            }
            spine.set(place, Some(new))
        };
        match op {
            Op::Nothing => Ok(()),
            Op::Change(place) => match spine.get(place) {
                Some(bytes) => bytes.overwrite(0, &[number; 8]),
                None => Ok(()),
            },
            Op::Replace(place) => replace(place),
            Op::Remove(place) => {
                if let Some(old) = spine.get(place) {
                    // SAFETY: the only reference is removed.
                    unsafe { tx.free(old)? };
                }
                spine.set(place, None)
            }
            Op::Swap => {
                let (first, last) = (spine.get(0), spine.get(2));
                spine.set(0, last)?;
                spine.set(2, first)
            }
            Op::Abort => {
                if let Some(bytes) = spine.get(2) {
                    bytes.overwrite(0, &[number; 8])?;
                }
                replace(0)?;
                Err(Error::ReadOnly)
            }
            Op::Read => {
                for place in 0..KEPT.len() {
                    spine.get(place).map(|bytes| bytes.to_vec()).transpose()?;
                }
                Ok(())
            }
        }
    })
}

fn model(content: &mut Content, op: Op, number: u8) {
    match op {
        Op::Change(place) => {
            if let Some(bytes) = &mut content[place] {
                bytes[..8].fill(number);
            }
        }
        Op::Replace(place) => content[place] = Some(vec![number; LEN]),
        Op::Remove(place) => content[place] = None,
        Op::Swap => content.swap(0, 2),
        Op::Nothing | Op::Abort | Op::Read => {}
    }
}

fn read(session: &mut Session<Crash>) -> Result<Content, Error> {
    session.read(|view| {
        let spine = view.root::<Spine>("spine")?;
        let mut content = Content::default();
        for (i, place) in content.iter_mut().enumerate() {
            *place = spine.get(i).map(|b| b.to_vec()).transpose()?;
        }
        Ok(content)
    })
}

/// Takes what was counted before the crash off the statistics page. It decides nothing; but further
/// collections add to it, and would tell images apart by it.
fn forget_events(crash: &Crash) {
    let words = (FIRST_CLASS - FIRST_EVENT) as u64;
    crash.zero(
        block_at(0) + FIRST_EVENT as u64 * WORD_BYTES,
        words * WORD_BYTES,
    );
}

fn check(pool: &Pool<Crash>) -> Result<(), String> {
    let findings = pool.check().map_err(|e| e.to_string())?;
    findings
        .first()
        .map_or(Ok(()), |finding| Err(finding.to_string()))
}

/// Where in a cycle the program's operations come: after the plan counts, after one object was moved
/// by the collector, and after the cycle has ended.
type Script = [Op; 3];

/// A collection with operations in between.
fn workload(crash: &Crash, kind: PoolKind, scheme: &'static Scheme, script: Script) {
    let pool = Pool::open(crash.clone(), &options(kind)).unwrap();
    let mut session = pool.session().unwrap();
    let mut done = 0;
    let mut step = |op: Op| {
        if op != Op::Nothing {
            let _ = apply(&mut session, op, done + 1);
            done += 1;
            crash.note(u64::from(done));
        }
    };
    let mut collection = pool.collection(&collect(scheme)).unwrap();
    assert!(collection.begin().unwrap(), "there is something to move");
    step(script[0]);
    collection.compact(1).unwrap();
    step(script[1]);
    collection.finish().unwrap();
    step(script[2]);
    drop(collection);
    pool.abandon();
}

fn explore(
    kind: PoolKind,
    domain: Domain,
    scheme: &'static Scheme,
    script: Script,
    depth: u32,
) -> Report {
    let start: Content = core::array::from_fn(|_| Some(vec![9; LEN]));
    let states = {
        let mut states = vec![start];
        let done = script.iter().filter(|op| **op != Op::Nothing);
        for (i, &op) in done.enumerate() {
            let mut next = states.last().unwrap().clone();
            model(&mut next, op, i as u8 + 1);
            states.push(next);
        }
        states
    };
    let states = RefCell::new(states);
    let explorer = Explorer::new(
        ExploreOptions {
            recovery_depth: depth,
            medium: CrashOptions::with_domain(domain),
            ..ExploreOptions::default()
        },
        16 << 20,
        |crash| setup(crash, kind),
        |crash| workload(crash, kind, scheme, script),
        |crash, state: &CrashState| {
            let pool = Pool::open(crash, &options(kind)).map_err(|e| e.to_string())?;
            pool.medium().end_of_recovery();
            forget_events(pool.medium());
            check(&pool).map_err(|e| format!("after opening: {e}"))?;
            let mut session = pool.session().map_err(|e| e.to_string())?;
            let found = read(&mut session).map_err(|e| e.to_string())?;
            let states = states.borrow();
            let done = state.note(0) as usize;
            let begun = (done + 1).min(states.len() - 1);
            if states[done] != found && states[begun] != found {
                return Err(format!("after {done}: found {found:?}"));
            }
            check(&pool).map_err(|e| format!("after reading: {e}"))?;
            // The cycle goes on where it stopped, beside further changes.
            let mut expected = found;
            for op in [Op::Change(0), Op::Replace(2)] {
                apply(&mut session, op, 77).map_err(|e| e.to_string())?;
                model(&mut expected, op, 77);
            }
            pool.collect(&collect(scheme)).map_err(|e| e.to_string())?;
            check(&pool).map_err(|e| format!("after collecting: {e}"))?;
            let found = read(&mut session).map_err(|e| e.to_string())?;
            drop(session);
            pool.abandon();
            if found == expected {
                Ok(())
            } else {
                Err(format!("after collecting: found {found:?}"))
            }
        },
    );
    let report = explorer.explore();
    let clean = report.findings.is_empty();
    assert!(!clean || report.exhaustive(), "{script:?}: not exhaustive");
    println!(
        "{kind:?} {domain} {} {script:?}: {} states",
        scheme.name, report.states
    );
    report
}

const SCHEMES: [&Scheme; 3] = [&ESPRESSO, &SFCCD, &PIGGYBACK];

#[test]
fn one_cycle_alone() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        for domain in [Domain::Adr, Domain::Eadr, Domain::Process] {
            for scheme in SCHEMES {
                explore(kind, domain, scheme, [Op::Nothing; 3], 2).expect_clean();
            }
        }
    }
}

fn beside_every_pair(kind: PoolKind, domains: &[Domain]) {
    for &domain in domains {
        for scheme in SCHEMES {
            for first in OPS {
                for second in OPS {
                    let script = [first, second, Op::Nothing];
                    explore(kind, domain, scheme, script, 1).expect_clean();
                }
            }
        }
    }
}

#[test]
fn a_cycle_of_a_traced_pool_beside_two_operations() {
    beside_every_pair(PoolKind::Traced, &[Domain::Adr]);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn a_cycle_of_an_explicit_pool_beside_two_operations() {
    beside_every_pair(PoolKind::Explicit, &[Domain::Adr]);
}

#[test]
fn a_cycle_beside_two_operations_where_caches_or_the_page_cache_survive() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        beside_every_pair(kind, &[Domain::Eadr, Domain::Process]);
    }
}

#[test]
fn the_printed_scheme_loses_a_commit() {
    let script = [Op::Change(0), Op::Nothing, Op::Nothing];
    let report = explore(PoolKind::Traced, Domain::Adr, &SFCCD_AS_PRINTED, script, 1);
    let failure = report.findings.first().expect("S1 is found");
    assert!(
        failure.message.contains("after 1: found"),
        "{}",
        failure.message
    );
}
