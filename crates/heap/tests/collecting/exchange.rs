//! Do fields that change outside transactions survive while their objects move, crashed anywhere?

use crate::collect_support::{collect, options};
use firn_crash::{
    Crash, CrashOptions, CrashState, ExploreOptions, Explorer, Schedule, SwarmOptions,
};
use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Error, Field, Pool, PoolKind, Session, Stored, View};
use firn_media::Domain;

#[derive(Stored)]
#[repr(C)]
struct Counters {
    exchanged: u64,
    stored: u64,
    /// Puts the neighbouring fields into different lines.
    between: [u64; 8],
    far: u64,
}

const DOMAINS: [Domain; 3] = [Domain::Adr, Domain::Eadr, Domain::Process];

/// Objects on each of two pages; one stays on each.
const COUNT: usize = 42;
const FAR: Field<Counters, u64> = Counters::FAR;

fn small() -> CollectOptions {
    collect(PageSize::Small)
}

fn setup(crash: &Crash) {
    let pool = Pool::create(crash.clone(), &options(PoolKind::Traced)).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let all = tx.alloc_refs::<Counters>(2 * COUNT)?;
            for i in 0..2 * COUNT {
                let (exchanged, stored, between, far) = (0, 0, [7; 8], 0);
                let counters = Counters {
                    exchanged,
                    stored,
                    between,
                    far,
                };
                all.set(i, Some(tx.alloc(counters)?))?;
            }
            tx.set_root("first", all.get(COUNT / 2).unwrap())?;
            tx.set_root("second", all.get(COUNT + COUNT / 2).unwrap())
        })
        .unwrap();
    drop(session);
    pool.trace().unwrap();
    pool.close().unwrap();
}

fn add(session: &mut Session<Crash>, root: &str, field: Field<Counters, u64>) {
    add_only(session, root, field);
    let guard = session.guard();
    let counters = guard.root::<Counters>(root).unwrap();
    counters.persist(field).unwrap();
}

fn add_only(session: &mut Session<Crash>, root: &str, field: Field<Counters, u64>) {
    let guard = session.guard();
    let counters = guard.root::<Counters>(root).unwrap();
    let mut seen = counters.load(field);
    while let Err(now) = counters.compare_exchange(field, seen, seen + 1).unwrap() {
        seen = now;
    }
}

fn store(session: &mut Session<Crash>, root: &str, value: u64) {
    session
        .transaction(|tx| {
            tx.root::<Counters>(root)?.store(Counters::STORED, value);
            Ok::<_, Error>(())
        })
        .unwrap();
}

/// Exchanged, stored and far.
type Found = [u64; 3];

fn read(session: &mut Session<Crash>, root: &str) -> Result<Found, String> {
    session.read(|view| {
        let counters = view.root::<Counters>(root).map_err(|e| e.to_string())?;
        match counters.load(Counters::BETWEEN) {
            [7, 7, 7, 7, 7, 7, 7, 7] => {}
            other => return Err(format!("{other:?} between")),
        }
        let load = |field| counters.load(field);
        Ok([Counters::EXCHANGED, Counters::STORED, FAR].map(load))
    })
}

/// Opens a crashed pool, and checks it before and after the cycle resumes.
fn judge(crash: Crash, legal: impl Fn(Found) -> bool) -> Result<(), String> {
    let text = |e: Error| e.to_string();
    let pool = Pool::open(crash, &options(PoolKind::Traced)).map_err(|e| e.to_string())?;
    pool.medium().end_of_recovery();
    let mut session = pool.session().map_err(text)?;
    let found = read(&mut session, "first")?;
    if !legal(found) {
        return Err(format!("{found:?}"));
    }
    pool.collect(&small()).map_err(text)?;
    let again = read(&mut session, "first")?;
    if again != found || read(&mut session, "second")? != [0; 3] {
        return Err(format!("{again:?} after collecting, not {found:?}"));
    }
    let findings = pool.check().map_err(text)?;
    drop(session);
    pool.abandon();
    findings.first().map_or(Ok(()), |f| Err(f.to_string()))
}

/// Changes of the moving object, one after the other.
#[derive(Clone, Copy, Debug)]
enum Act {
    Exchange,
    Store,
    ExchangeFar,
    /// Exchanges a field, without a promise of durability.
    ExchangeOnly,
    Compact,
}

fn explore(domain: Domain, acts: &[Act]) {
    let done = |acts: &[Act]| {
        let mut found = [0; 3];
        for act in acts {
            match act {
                Act::Exchange => found[0] += 1,
                Act::Store => found[1] += 1,
                Act::ExchangeFar => found[2] += 1,
                Act::ExchangeOnly | Act::Compact => {}
            }
        }
        found
    };
    let explorer = Explorer::new(
        ExploreOptions {
            recovery_depth: 1,
            medium: CrashOptions::with_domain(domain),
            ..ExploreOptions::default()
        },
        16 << 20,
        setup,
        |crash| {
            let pool = Pool::open(crash.clone(), &options(PoolKind::Traced)).unwrap();
            let mut session = pool.session().unwrap();
            let mut collection = pool.collection(&small()).unwrap();
            assert!(collection.begin().unwrap());
            for (n, act) in (1..).zip(acts) {
                match act {
                    Act::Exchange => add(&mut session, "first", Counters::EXCHANGED),
                    Act::Store => store(&mut session, "first", done(&acts[..n])[1]),
                    Act::ExchangeFar => add(&mut session, "first", FAR),
                    Act::ExchangeOnly => add_only(&mut session, "first", FAR),
                    Act::Compact => assert!(collection.compact(u64::MAX).unwrap()),
                }
                crash.note(n as u64);
            }
            collection.finish().unwrap();
            drop(collection);
            std::mem::forget(session);
            pool.abandon();
        },
        |crash, state: &CrashState| {
            let n = state.note(0) as usize;
            let begun = &acts[..acts.len().min(n + 1)];
            let (least, mut most) = (done(&acts[..n]), done(begun));
            let volatile = begun.iter().filter(|a| matches!(a, Act::ExchangeOnly));
            most[2] += volatile.count() as u64;
            judge(crash, |found| {
                (0..3).all(|i| (least[i]..=most[i]).contains(&found[i]))
            })
            .map_err(|e| format!("after {n} of {acts:?}: {e}"))
        },
    );
    let report = explorer.explore();
    report.expect_clean();
    assert!(report.exhaustive());
    println!("{domain} {acts:?}: {} states", report.states);
}

#[test]
fn an_exchange_in_an_object_that_has_not_moved_is_kept() {
    for domain in DOMAINS {
        explore(domain, &[Act::Exchange, Act::ExchangeFar, Act::Compact]);
    }
}

#[test]
fn a_commit_after_an_exchange_is_kept_and_the_other_way_round() {
    explore(Domain::Adr, &[Act::Exchange, Act::Store, Act::Compact]);
    explore(Domain::Adr, &[Act::Store, Act::Exchange, Act::Compact]);
    explore(Domain::Adr, &[Act::Compact, Act::Exchange, Act::Store]);
    explore(Domain::Adr, &[Act::ExchangeOnly, Act::Store]);
}

/// How often each thread does its step.
const STEPS: u64 = 6;

/// Threads that each add to the moving object, and one that moves it.
fn race(crash: &Crash, jobs: [fn(&mut Session<Crash>, u64); 2]) {
    let pool = Pool::open(crash.clone(), &options(PoolKind::Traced)).unwrap();
    let mut all: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
    for step in jobs {
        let (pool, crash) = (pool.clone(), crash.clone());
        all.push(Box::new(move || {
            let mut session = pool.session().unwrap();
            for n in 1..=STEPS {
                step(&mut session, n);
                crash.note(n);
            }
            std::mem::forget(session);
        }));
    }
    let collector = pool.clone();
    all.push(Box::new(move || {
        assert!(collector.collect(&small()).unwrap().moved <= 2);
    }));
    crash.run(all, Schedule::Inherited).finished().unwrap();
    assert!(!pool.has_open_cycle());
    pool.abandon();
}

fn swarm(
    domain: Domain,
    jobs: [fn(&mut Session<Crash>, u64); 2],
    counts: fn(Found) -> u64,
    legal: impl Fn(Found, u64, u64) -> bool,
) {
    let explorer = Explorer::new(
        ExploreOptions {
            medium: CrashOptions::with_domain(domain),
            ..ExploreOptions::default()
        },
        16 << 20,
        setup,
        |crash| {
            race(crash, jobs);
            let pool = Pool::open(crash.clone(), &options(PoolKind::Traced)).unwrap();
            let found = read(&mut pool.session().unwrap(), "first").unwrap();
            assert_eq!(counts(found), 2 * STEPS, "{found:?}");
            pool.abandon();
        },
        |crash, state: &CrashState| {
            let (one, other) = (state.note(1), state.note(2));
            judge(crash, |found| legal(found, one, other))
                .map_err(|e| format!("after {one} and {other}: {e}"))
        },
    );
    let seeds = SwarmOptions {
        seeds: 0..60,
        crashes: 4,
        images: 2,
        crashes_in_recovery: 1,
    };
    let report = explorer.swarm(&seeds);
    println!("{domain}: {report}");
    report.expect_clean();
}

#[test]
fn exchanges_race_with_commits_on_an_object_that_moves() {
    for domain in DOMAINS {
        swarm(
            domain,
            [
                |session, _| add(session, "first", Counters::EXCHANGED),
                |session, n| store(session, "first", n),
            ],
            |found| found[0] + found[1],
            |found, one, other| {
                (one..=one + 1).contains(&found[0])
                    && (other..=other + 1).contains(&found[1])
                    && found[2] == 0
            },
        );
    }
}

#[test]
fn two_threads_that_count_in_an_object_that_moves_lose_no_count() {
    for domain in DOMAINS {
        swarm(
            domain,
            [
                |session, _| add(session, "first", FAR),
                |session, _| add(session, "first", FAR),
            ],
            |found| found[2],
            |found, one, other| (one + other..=one + other + 2).contains(&found[2]),
        );
    }
}
