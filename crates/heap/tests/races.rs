//! Is the concurrent code correct in every interleaving, with a crash at any moment?

use firn_crash::{Crash, CrashState, ExploreOptions, Explorer, Schedule, SwarmOptions};
use firn_heap::{Bytes, Error, Obj, Pool, PoolKind, PoolOptions, Refs, View};
use firn_media::Domain;

type Spine = Refs<Bytes>;

/// Sum of both accounts.
const TOTAL: u64 = 100;
/// Lock of the accounts.
const LOCK: u64 = 5;
/// Places of the spine: two accounts, then one counter and one object per thread.
const ACCOUNTS: usize = 0;
const COUNTERS: usize = 2;
const OWN: usize = 4;

fn options(kind: PoolKind) -> PoolOptions {
    PoolOptions {
        kind,
        lanes: 2,
        publish_every: u32::MAX,
        ..PoolOptions::new("races")
    }
}

fn number<'g, V: View<'g>>(spine: Obj<'g, Spine, V>, place: usize) -> Result<u64, Error> {
    let bytes = spine.get(place).ok_or(Error::ReadOnly)?.to_vec()?;
    let word = bytes.get(..8).and_then(|b| b.try_into().ok());
    word.map(u64::from_le_bytes).ok_or(Error::ReadOnly)
}

fn setup(crash: &Crash, kind: PoolKind) {
    let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let spine = tx.alloc_refs::<Bytes>(6)?;
            for (place, value) in [TOTAL, 0, 0, 0, 0, 0].into_iter().enumerate() {
                spine.set(place, Some(tx.alloc_bytes(&value.to_le_bytes())?))?;
            }
            tx.set_root("spine", spine)
        })
        .unwrap();
    drop(session);
    pool.close().unwrap();
}

/// Moves one unit, counts it, and replaces the thread's own object.
fn step(pool: &Pool<Crash>, crash: &Crash, thread: usize, steps: u64) {
    let mut session = pool.session().unwrap();
    for n in 1..=steps {
        session
            .transaction(|tx| {
                tx.lock_exclusive(LOCK)?;
                let spine = tx.root::<Spine>("spine")?;
                let (from, to) = (ACCOUNTS + thread, ACCOUNTS + 1 - thread);
                let (a, b) = (number(spine, from)?, number(spine, to)?);
                if a > 0 {
                    let (from, to) = (spine.get(from).unwrap(), spine.get(to).unwrap());
                    from.overwrite(0, &(a - 1).to_le_bytes())?;
                    to.overwrite(0, &(b + 1).to_le_bytes())?;
                }
                let own = spine.get(OWN + thread).unwrap();
                // SAFETY: the only reference is replaced.
                unsafe { tx.free(own)? };
                spine.set(OWN + thread, Some(tx.alloc_bytes(&n.to_le_bytes())?))?;
                spine
                    .get(COUNTERS + thread)
                    .unwrap()
                    .overwrite(0, &n.to_le_bytes())
            })
            .unwrap();
        crash.note(n);
    }
    std::mem::forget(session);
}

fn workload(crash: &Crash, kind: PoolKind, steps: u64, reader: bool) {
    let pool = Pool::open(crash.clone(), &options(kind)).unwrap();
    let mut jobs: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
    for thread in 0..2 {
        let (pool, crash) = (pool.clone(), crash.clone());
        let mine = if reader && thread == 1 { 0 } else { steps };
        jobs.push(Box::new(move || {
            if mine > 0 {
                step(&pool, &crash, thread, mine);
            } else {
                read_consistently(&pool);
            }
        }));
    }
    crash.run(jobs, Schedule::Inherited).finished().unwrap();
    pool.abandon();
}

fn read_consistently(pool: &Pool<Crash>) {
    let mut session = pool.session().unwrap();
    for _ in 0..3 {
        session.read(|view| {
            let _lock = view.lock_shared(LOCK).unwrap();
            let spine = view.root::<Spine>("spine").unwrap();
            let sum = number(spine, 0).unwrap() + number(spine, 1).unwrap();
            assert_eq!(sum, TOTAL, "a reader saw half a transaction");
        });
    }
    std::mem::forget(session);
}

fn verify(crash: Crash, state: &CrashState, kind: PoolKind) -> Result<(), String> {
    let pool = Pool::open(crash, &options(kind)).map_err(|e| e.to_string())?;
    pool.medium().end_of_recovery();
    let mut session = pool.session().map_err(|e| e.to_string())?;
    let numbers = session.read(|view| -> Result<Vec<u64>, Error> {
        let spine = view.root::<Spine>("spine")?;
        (0..6).map(|place| number(spine, place)).collect()
    });
    let numbers = numbers.map_err(|e| e.to_string())?;
    let findings = pool.check().map_err(|e| e.to_string())?;
    pool.abandon();
    if let Some(finding) = findings.first() {
        return Err(finding.to_string());
    }
    if numbers[0] + numbers[1] != TOTAL {
        return Err(format!("the sum is broken: {numbers:?}"));
    }
    for thread in 0..2 {
        let (counter, own) = (numbers[COUNTERS + thread], numbers[OWN + thread]);
        let done = state.note(thread + 1);
        if counter != own || !(done..=done + 1).contains(&counter) {
            return Err(format!(
                "thread {thread} had {done} acknowledged: {numbers:?}"
            ));
        }
    }
    Ok(())
}

fn explorer<'a>(kind: PoolKind, domain: Domain, steps: u64, reader: bool) -> Explorer<'a> {
    let options = ExploreOptions {
        recovery_depth: 2,
        medium: firn_crash::CrashOptions::with_domain(domain),
        ..ExploreOptions::default()
    };
    Explorer::new(
        options,
        16 << 20,
        move |crash| setup(crash, kind),
        move |crash| workload(crash, kind, steps, reader),
        move |crash, state| verify(crash, state, kind),
    )
}

/// Seeds of a swarm in the tests, and of a long one.
const SEEDS: std::ops::Range<u64> = 0..250;
const LONG_SEEDS: std::ops::Range<u64> = 250..20_000;

#[test]
fn two_writers_in_a_traced_pool() {
    let swarm = SwarmOptions {
        seeds: SEEDS,
        ..SwarmOptions::default()
    };
    for domain in [Domain::Adr, Domain::Eadr, Domain::Process] {
        explorer(PoolKind::Traced, domain, 12, false)
            .swarm(&swarm)
            .expect_clean();
    }
}

#[test]
fn two_writers_in_an_explicit_pool() {
    let swarm = SwarmOptions {
        seeds: SEEDS,
        ..SwarmOptions::default()
    };
    explorer(PoolKind::Explicit, Domain::Adr, 12, false)
        .swarm(&swarm)
        .expect_clean();
}

#[test]
fn a_reader_beside_a_writer() {
    let swarm = SwarmOptions {
        seeds: SEEDS,
        ..SwarmOptions::default()
    };
    explorer(PoolKind::Traced, Domain::Adr, 12, true)
        .swarm(&swarm)
        .expect_clean();
}

#[test]
fn every_interleaving_of_one_transaction_each_with_one_preemption() {
    let report = explorer(PoolKind::Traced, Domain::Adr, 1, false);
    let report = report.explore_interleavings(1, 40);
    println!("{} states", report.expect_clean().states);
}

#[test]
#[ignore = "long: minutes of swarms"]
fn long_swarms_of_two_writers() {
    let swarm = SwarmOptions {
        seeds: LONG_SEEDS,
        ..SwarmOptions::default()
    };
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        for domain in [Domain::Adr, Domain::Eadr, Domain::Process] {
            explorer(kind, domain, 12, false)
                .swarm(&swarm)
                .expect_clean();
        }
    }
}
