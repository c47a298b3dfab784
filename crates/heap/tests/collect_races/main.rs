//! Is the collector correct beside two threads that change moving objects, in every interleaving, with a crash at any
//! moment?

mod program;

use std::sync::{Arc, Mutex};

use firn_crash::{
    Crash, CrashOptions, CrashState, ExploreOptions, Explorer, Report, Schedule, SwarmOptions,
};
use firn_heap::collector::scheme::{ESPRESSO, PIGGYBACK, SFCCD, Scheme};
use firn_heap::collector::{CollectOptions, Marking, PageSize};
use firn_heap::steps::STORES_WAIT;
use firn_heap::{Pool, PoolKind, PoolOptions};
use firn_media::{Domain, Step};

use program::{Draw, Log, Program, THREADS};

/// The parameters of a swarm.
#[derive(Clone, Copy)]
struct Case {
    kind: PoolKind,
    domain: Domain,
    scheme: &'static Scheme,
    marking: Marking,
    /// Steps of each of the program's threads.
    steps: u64,
    /// Collections in a row.
    collections: usize,
    /// Events between two drops of copies by the medium.
    copies: Option<u64>,
    leave_out: Option<&'static Step>,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            kind: PoolKind::Traced,
            domain: Domain::Adr,
            scheme: &PIGGYBACK,
            marking: Marking::Concurrent,
            steps: 25,
            collections: 3,
            copies: None,
            leave_out: None,
        }
    }
}

impl Case {
    fn collect(&self) -> CollectOptions {
        CollectOptions {
            target: 1.0,
            pages: PageSize::Small,
            scheme: self.scheme,
            marking: self.marking,
            ..CollectOptions::default()
        }
    }
}

const FILLERS: usize = 64;

fn options(kind: PoolKind) -> PoolOptions {
    PoolOptions {
        kind,
        lanes: 2,
        publish_every: 3,
        ..PoolOptions::new("collect races")
    }
}

fn setup(crash: &Crash, kind: PoolKind) {
    let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
    program::setup(&pool, FILLERS);
    pool.close().unwrap();
}

/// Collections one after the other, some whole and some stopping at each step.
fn collect(pool: &Pool<Crash>, case: &Case, mut draw: Draw) {
    for _ in 0..case.collections {
        let options = CollectOptions {
            release_blocks: draw.below(2) == 0,
            ..case.collect()
        };
        if draw.below(2) == 0 {
            pool.collect(&options).unwrap();
            if options.release_blocks {
                pool.release_free_space().unwrap();
            }
            continue;
        }
        let mut collection = pool.collection(&options).unwrap();
        if collection.begin().unwrap() {
            while !collection.compact(1 + draw.below(4) as u64).unwrap() {}
            collection.finish().unwrap();
        }
    }
}

/// Two threads of the program beside the collector.
fn workload(crash: &Crash, case: Case, log: &Arc<Mutex<Log>>) {
    use firn_media::Runtime;
    let seed = crash.random_u64();
    log.lock().unwrap().begin(seed);
    let pool = Pool::open(crash.clone(), &options(case.kind)).unwrap();
    let mut jobs: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
    for thread in 0..THREADS {
        let (pool, crash, log) = (pool.clone(), crash.clone(), Arc::clone(log));
        jobs.push(Box::new(move || {
            let mut program = Program::new(&pool, thread, &log);
            for n in 0..case.steps {
                let step = program.step();
                crash.note(step);
                if n % 4 == 1 {
                    program.verify();
                }
            }
        }));
    }
    let collector = pool.clone();
    jobs.push(Box::new(move || {
        collect(&collector, &case, Draw::new(seed))
    }));
    crash.run(jobs, Schedule::Inherited).finished().unwrap();
    let mut session = pool.session().unwrap();
    let checked = verify_content(&pool, &mut session, &log.lock().unwrap(), [case.steps; 2]);
    checked.unwrap();
    drop(session);
    pool.abandon();
}

fn check(pool: &Pool<Crash>, when: &str) -> Result<(), String> {
    let findings = pool.check().map_err(|e| e.to_string())?;
    findings
        .first()
        .map_or(Ok(()), |finding| Err(format!("{when}: {finding}")))
}

fn verify_content(
    pool: &Pool<Crash>,
    session: &mut firn_heap::Session<Crash>,
    log: &Log,
    least: [u64; THREADS],
) -> Result<[u64; THREADS], String> {
    let text = |e: firn_heap::Error| e.to_string();
    check(pool, "before reading")?;
    let steps = program::steps_done(session).map_err(text)?;
    for thread in 0..THREADS {
        let (done, found) = (least[thread], steps[thread]);
        if !(done..=done + 1).contains(&found) {
            return Err(format!(
                "thread {thread}: {done} acknowledged, {found} there"
            ));
        }
        let region = program::read(session, thread).map_err(text)?;
        let expected = log.model(thread, found).region;
        if region != expected {
            return Err(format!(
                "thread {thread} after {found}: {region:?} instead of {expected:?}"
            ));
        }
    }
    check(pool, "after reading")?;
    Ok(steps)
}

/// Checks a crashed pool: acknowledged content, before and after the interrupted cycle ended.
fn verify(crash: Crash, state: &CrashState, case: &Case, log: &Log) -> Result<(), String> {
    let text = |e: firn_heap::Error| e.to_string();
    let pool = Pool::open(crash, &options(case.kind)).map_err(|e| e.to_string())?;
    pool.medium().end_of_recovery();
    let mut session = pool.session().map_err(text)?;
    let done = [state.note(1), state.note(2)];
    let found = verify_content(&pool, &mut session, log, done)?;
    pool.collect(&case.collect()).map_err(text)?;
    verify_content(&pool, &mut session, log, found).map_err(|e| format!("collected: {e}"))?;
    drop(session);
    pool.abandon();
    Ok(())
}

fn explorer<'a>(case: Case) -> Explorer<'a> {
    let options = ExploreOptions {
        recovery_depth: 2,
        medium: CrashOptions {
            copies: case.copies,
            leave_out: case.leave_out,
            ..CrashOptions::with_domain(case.domain)
        },
        ..ExploreOptions::default()
    };
    let log = Arc::new(Mutex::new(Log::default()));
    let of_workload = Arc::clone(&log);
    Explorer::new(
        options,
        16 << 20,
        move |crash| setup(crash, case.kind),
        move |crash| workload(crash, case, &of_workload),
        move |crash, state| verify(crash, state, &case, &log.lock().unwrap()),
    )
}

fn swarm(case: Case, seeds: std::ops::Range<u64>) -> Report {
    let swarm = SwarmOptions {
        seeds,
        crashes: 6,
        images: 3,
        crashes_in_recovery: 1,
    };
    let report = explorer(case).swarm(&swarm);
    println!(
        "{:?} {} {} {:?}: {report}",
        case.kind, case.domain, case.scheme.name, case.marking
    );
    report
}

/// Seeds of a case in the tests.
const SEEDS: std::ops::Range<u64> = 0..20;

const KINDS: [PoolKind; 2] = [PoolKind::Traced, PoolKind::Explicit];
const DOMAINS: [Domain; 3] = [Domain::Adr, Domain::Eadr, Domain::Process];
const SCHEMES: [&Scheme; 3] = [&ESPRESSO, &SFCCD, &PIGGYBACK];

/// Seeds of a case in the long run.
const MANY_SEEDS: std::ops::Range<u64> = 20..1000;

fn every_case(seeds: std::ops::Range<u64>) {
    for kind in KINDS {
        for domain in DOMAINS {
            for scheme in SCHEMES {
                let case = Case {
                    kind,
                    domain,
                    scheme,
                    ..Case::default()
                };
                swarm(case, seeds.clone()).expect_clean();
            }
        }
    }
}

#[test]
fn two_writers_beside_the_collector() {
    every_case(SEEDS);
}

/// Frees a large object whose chunk gets its first look between the words and the quarantine; allocates a new one while
/// two threads take the first look at its chunk.
#[test]
fn seeds_that_once_found_something_find_nothing() {
    for (kind, seed) in [(PoolKind::Explicit, 695), (PoolKind::Traced, 305)] {
        let case = Case {
            kind,
            scheme: &ESPRESSO,
            ..Case::default()
        };
        swarm(case, seed..seed + 1).expect_clean();
    }
}

/// The crash medium panics where a thread stores while another has copies of pages dropped.
#[test]
fn nobody_stores_while_copies_are_dropped() {
    for kind in KINDS {
        for (domain, scheme) in [(Domain::Logged, &ESPRESSO), (Domain::Adr, &PIGGYBACK)] {
            let case = Case {
                kind,
                domain,
                scheme,
                copies: Some(150),
                ..Case::default()
            };
            swarm(case, SEEDS).expect_clean();
        }
    }
}

#[test]
#[should_panic(expected = "while thread")]
fn a_collector_that_stores_while_copies_are_dropped_is_found() {
    let case = Case {
        copies: Some(150),
        leave_out: Some(&STORES_WAIT),
        ..Case::default()
    };
    swarm(case, SEEDS).expect_clean();
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn two_writers_beside_the_collector_with_many_seeds() {
    every_case(MANY_SEEDS);
}

#[test]
fn two_writers_beside_a_collector_that_stops_the_world() {
    let case = Case {
        marking: Marking::StopTheWorld,
        ..Case::default()
    };
    swarm(case, SEEDS).expect_clean();
}
