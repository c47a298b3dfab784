//! Does a persisted compare-exchange survive every crash, beside transactions on the same field?

use firn_crash::{
    Crash, CrashOptions, CrashState, ExploreOptions, Explorer, Schedule, SwarmOptions,
};
use firn_heap::{Bytes, Error, LogKind, Pool, PoolOptions, Ref, Session, Stored, View};
use firn_media::{Domain, Memory};
use firn_units::VirtAddr;

#[derive(Stored)]
#[firn(name = "counters")]
#[repr(C)]
struct Counters {
    exchanged: u64,
    /// In the same line, for transactions.
    stored: i64,
    name: Ref<Bytes>,
}

const DOMAINS: [Domain; 3] = [Domain::Adr, Domain::Eadr, Domain::Process];

fn options(log: LogKind) -> PoolOptions {
    PoolOptions {
        lanes: 2,
        log,
        publish_every: u32::MAX,
        ..PoolOptions::new("exchange")
    }
}

fn setup(crash: &Crash) {
    let pool = Pool::create(crash.clone(), &options(LogKind::Redo)).unwrap();
    make(&pool, "before");
    pool.close().unwrap();
}

/// A root with new counters; one starts at 10.
fn make(pool: &Pool<Crash>, name: &str) {
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let counters = tx.alloc(Counters {
                exchanged: 10,
                stored: 0,
                name: Ref::NULL,
            })?;
            tx.set_root(name, counters)
        })
        .unwrap();
}

fn exchange(session: &mut Session<Crash>, name: &str, from: u64, to: u64) {
    let guard = session.guard();
    let counters = guard.root::<Counters>(name).unwrap();
    let held = counters.compare_exchange(Counters::EXCHANGED, from, to);
    assert_eq!(held.unwrap(), Ok(from));
}

fn persist(session: &mut Session<Crash>, name: &str) {
    let guard = session.guard();
    let counters = guard.root::<Counters>(name).unwrap();
    counters.persist(Counters::EXCHANGED).unwrap();
}

fn store(session: &mut Session<Crash>, name: &str, value: u64) {
    session
        .transaction(|tx| {
            tx.root::<Counters>(name)?.store(Counters::EXCHANGED, value);
            Ok::<_, Error>(())
        })
        .unwrap();
}

fn store_beside(session: &mut Session<Crash>, name: &str, value: i64) {
    session
        .transaction(|tx| {
            tx.root::<Counters>(name)?.store(Counters::STORED, value);
            Ok::<_, Error>(())
        })
        .unwrap();
}

/// Both fields of each name's counters after a crash; `None` if there is no such root.
fn found(crash: Crash, names: &[&str]) -> Result<Vec<Option<(u64, i64)>>, String> {
    let pool = Pool::open(crash, &options(LogKind::Redo)).map_err(|e| e.to_string())?;
    pool.medium().end_of_recovery();
    let mut session = pool.session().map_err(|e| e.to_string())?;
    let found = session.read(|view| {
        let find = |name: &&str| {
            let counters = view.find_root::<Counters>(name)?;
            Ok(counters.map(|c| (c.load(Counters::EXCHANGED), c.load(Counters::STORED))))
        };
        names.iter().map(find).collect::<Result<_, Error>>()
    });
    let findings = pool.check().map_err(|e| e.to_string())?;
    drop(session);
    pool.abandon();
    match findings.first() {
        Some(finding) => Err(finding.to_string()),
        None => found.map_err(|e| e.to_string()),
    }
}

fn explore(
    domain: Domain,
    log: LogKind,
    run: impl Fn(&Pool<Crash>, &Crash),
    verify: impl Fn(&[Option<(u64, i64)>], u64) -> bool,
) {
    let explore = ExploreOptions {
        recovery_depth: 2,
        medium: CrashOptions::with_domain(domain),
        ..ExploreOptions::default()
    };
    let explorer = Explorer::new(
        explore,
        16 << 20,
        setup,
        |crash| {
            let pool = Pool::open(crash.clone(), &options(log)).unwrap();
            run(&pool, crash);
            pool.abandon();
        },
        |crash, state: &CrashState| {
            let found = found(crash, &["before", "new"])?;
            if verify(&found, state.note(0)) {
                Ok(())
            } else {
                Err(format!("after {}: {found:?}", state.note(0)))
            }
        },
    );
    let report = explorer.explore();
    assert!(report.exhaustive());
    println!("{domain} {log:?}: {} states", report.expect_clean().states);
}

#[test]
fn no_entry_replays_over_a_persisted_value() {
    for domain in DOMAINS {
        explore(
            domain,
            LogKind::Redo,
            |pool, crash| {
                let mut session = pool.session().unwrap();
                store(&mut session, "before", 11);
                crash.note(1);
                exchange(&mut session, "before", 11, 12);
                persist(&mut session, "before");
                crash.note(2);
                store_beside(&mut session, "before", 1);
                crash.note(3);
                exchange(&mut session, "before", 12, 13);
                persist(&mut session, "before");
                crash.note(4);
            },
            |found, note| {
                let (value, beside) = found[0].unwrap();
                let legal = match note {
                    0 => 10..=11,
                    1 => 11..=12,
                    2 => 12..=12,
                    3 => 12..=13,
                    _ => 13..=13,
                };
                legal.contains(&value) && (beside == 1 || note < 3)
            },
        );
    }
}

#[test]
fn an_objects_allocation_does_not_replay_over_a_persisted_value() {
    for domain in DOMAINS {
        explore(
            domain,
            LogKind::Redo,
            |pool, crash| {
                make(pool, "new");
                let mut session = pool.session().unwrap();
                exchange(&mut session, "new", 10, 11);
                exchange(&mut session, "new", 11, 12);
                persist(&mut session, "new");
                crash.note(1);
            },
            |found, note| match found[1] {
                Some((value, _)) => value == 12 || note == 0 && (10..=12).contains(&value),
                None => note == 0,
            },
        );
    }
}

#[test]
fn a_value_is_persisted_beside_another_sessions_unfenced_homes() {
    explore(
        Domain::Adr,
        LogKind::Redo,
        |pool, crash| {
            let mut writer = pool.session().unwrap();
            let mut exchanger = pool.session().unwrap();
            store(&mut writer, "before", 11);
            exchange(&mut exchanger, "before", 11, 12);
            persist(&mut exchanger, "before");
            crash.note(1);
            store(&mut writer, "before", 13);
            crash.note(2);
        },
        |found, note| {
            let value = found[0].unwrap().0;
            match note {
                0 => (10..=12).contains(&value),
                1 => (12..=13).contains(&value),
                _ => value == 13,
            }
        },
    );
}

#[test]
fn a_value_is_persisted_in_a_pool_with_an_undo_log() {
    explore(
        Domain::Adr,
        LogKind::Undo,
        |pool, crash| {
            let mut session = pool.session().unwrap();
            exchange(&mut session, "before", 10, 11);
            persist(&mut session, "before");
            crash.note(1);
        },
        |found, note| {
            let value = found[0].unwrap().0;
            value == 11 || note == 0 && value == 10
        },
    );
}

/// How many exchanges or commits a thread of the race makes.
const STEPS: u64 = 6;

/// One thread exchanges and persists, the other commits transactions on the same line.
fn race(crash: &Crash) {
    let pool = Pool::open(crash.clone(), &options(LogKind::Redo)).unwrap();
    let (exchanges, commits) = (pool.clone(), pool.clone());
    let (one, other) = (crash.clone(), crash.clone());
    let jobs: Vec<Box<dyn FnOnce() + Send>> = vec![
        Box::new(move || {
            let mut session = exchanges.session().unwrap();
            for n in 1..=STEPS {
                exchange(&mut session, "before", 9 + n, 10 + n);
                persist(&mut session, "before");
                one.note(n);
            }
            std::mem::forget(session);
        }),
        Box::new(move || {
            let mut session = commits.session().unwrap();
            for n in 1..=STEPS {
                store_beside(&mut session, "before", n as i64);
                other.note(n);
            }
            std::mem::forget(session);
        }),
    ];
    crash.run(jobs, Schedule::Inherited).finished().unwrap();
    pool.abandon();
}

fn racing<'a>() -> Explorer<'a> {
    Explorer::new(
        ExploreOptions::default(),
        16 << 20,
        setup,
        race,
        |crash, state| {
            let found = found(crash, &["before"])?[0].ok_or("no root")?;
            let (value, beside) = (found.0 - 10, found.1 as u64);
            let legal = (state.note(1)..=state.note(1) + 1).contains(&value)
                && (state.note(2)..=state.note(2) + 1).contains(&beside);
            if legal {
                Ok(())
            } else {
                Err(format!("{} {}: {found:?}", state.note(1), state.note(2)))
            }
        },
    )
}

#[test]
fn exchanges_race_with_commits_on_the_same_line() {
    let swarm = SwarmOptions {
        seeds: 0..250,
        ..SwarmOptions::default()
    };
    racing().swarm(&swarm).expect_clean();
}

#[test]
fn threads_that_count_lose_no_count() {
    let crash = Crash::new(16 << 20, CrashOptions::default());
    setup(&crash);
    let pool = Pool::open(crash.clone(), &options(LogKind::Redo)).unwrap();
    let job = |pool: Pool<Crash>| -> Box<dyn FnOnce() + Send> {
        Box::new(move || {
            let mut session = pool.session().unwrap();
            for _ in 0..20 {
                let guard = session.guard();
                let counters = guard.root::<Counters>("before").unwrap();
                let mut seen = counters.load(Counters::EXCHANGED);
                while let Err(now) = counters
                    .compare_exchange(Counters::EXCHANGED, seen, seen + 1)
                    .unwrap()
                {
                    seen = now;
                }
            }
        })
    };
    let jobs = vec![job(pool.clone()), job(pool.clone())];
    crash.run(jobs, Schedule::Inherited).finished().unwrap();
    let mut session = pool.session().unwrap();
    let guard = session.guard();
    let counters = guard.root::<Counters>("before").unwrap();
    assert_eq!(counters.load(Counters::EXCHANGED), 50);
}

#[test]
fn persisting_costs_one_fence_unless_entries_have_to_be_retired() {
    let crash = Crash::new(16 << 20, CrashOptions::default());
    setup(&crash);
    let pool = Pool::open(crash.clone(), &options(LogKind::Redo)).unwrap();
    let mut session = pool.session().unwrap();
    let fences = |session: &mut Session<Crash>| {
        crash.reset_counts();
        persist(session, "before");
        crash.counts().fences
    };
    store(&mut session, "before", 11);
    assert_eq!(fences(&mut session), 3);
    exchange(&mut session, "before", 11, 12);
    assert_eq!(fences(&mut session), 1);
}

#[test]
fn what_cannot_be_changed_is_refused() {
    let crash = Crash::new(16 << 20, CrashOptions::default());
    setup(&crash);
    let pool = Pool::open_read_only(crash.clone(), "exchange").unwrap();
    let mut session = pool.session().unwrap();
    {
        let guard = session.guard();
        let counters = guard.root::<Counters>("before").unwrap();
        let exchanged = counters.compare_exchange(Counters::EXCHANGED, 10, 11);
        assert!(matches!(exchanged, Err(Error::ReadOnly)));
        let persisted = counters.persist(Counters::EXCHANGED);
        assert!(matches!(persisted, Err(Error::ReadOnly)));
    }
    drop((session, pool));
    // A damaged reference leads to a place beside every object, and beyond the pool.
    let pool = Pool::open(crash, &options(LogKind::Redo)).unwrap();
    let mut session = pool.session().unwrap();
    let guard = session.guard();
    let counters = guard.root::<Counters>("before").unwrap();
    let word = counters.address() + 8 + 16;
    let id = {
        let root = firn_format::root::root_at(0) + firn_format::root::REFERENCE_AT;
        pool.medium().load_u64(root) >> 48 << 48
    };
    for target in [VirtAddr(8192), counters.address() + 16, VirtAddr(1 << 40)] {
        pool.medium().store_u64(word, id | target.0);
        // Whatever type the program takes for the object's.
        let name = counters.follow(Counters::NAME).unwrap();
        let length = firn_heap::Field::<Bytes, u64>::at_offset(0);
        assert!(name.compare_exchange(length, 0, 1).is_err(), "{target}");
    }
}
