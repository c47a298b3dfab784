//! Fields of two threads that share words: a transaction of one thread interrupts the other at each of its points, with
//! crashes everywhere.

use firn_crash::{Crash, Explorer, Job, Report, Schedule, Turn};
use firn_heap::{Error, LogKind, Pool, PoolKind, PoolOptions, RawTx};
use firn_media::{MediumExt, Memory, Runtime};
use firn_units::VirtAddr;

use crate::pools::{self, LEN, Missing, explore, open};

/// A thread's action on its fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Does {
    /// Changes them in a transaction.
    Commits,
    /// Changes them in a transaction that is aborted.
    Aborts,
    /// Stores them by plain stores and makes them durable.
    Persists,
}

/// The actions of the two threads.
#[derive(Clone, Copy)]
pub struct SharedWords(pub [Does; 2]);

/// Offset and length of each thread's fields: words 0 and 1 have bytes of both.
const FIELDS: [&[(u64, u64)]; 2] = [&[(3, 10)], &[(0, 3), (13, 3)]];
const BYTES: u64 = 16;
const OLD: u8 = 0x11;
const NEW: u8 = 0x22;

fn options() -> PoolOptions {
    PoolOptions {
        kind: PoolKind::Explicit,
        log: LogKind::Undo,
        lanes: 2,
        publish_every: u32::MAX,
        ..PoolOptions::new("shared words")
    }
}

fn made(crash: &Crash) -> VirtAddr {
    let pool = Pool::create(crash.clone(), &options()).unwrap();
    let mut session = pool.session().unwrap();
    let at = session.raw_transaction(|tx| {
        let at = tx.alloc(BYTES)?;
        tx.store(at, &[OLD; BYTES as usize])?;
        Ok::<_, Error>(at)
    });
    drop(session);
    pool.close().unwrap();
    at.unwrap()
}

fn each_field(thread: usize, at: VirtAddr) -> impl Iterator<Item = (VirtAddr, u64)> {
    let fields = FIELDS[thread].iter();
    fields.map(move |&(offset, len)| (at + offset, len))
}

fn change(tx: RawTx<'_, Crash>, thread: usize, at: VirtAddr) -> Result<(), Error> {
    for (at, len) in each_field(thread, at) {
        tx.log(&[(at, len)])?;
        tx.store(at, &vec![NEW; len as usize])?;
    }
    Ok(())
}

fn run(pool: &Pool<Crash>, thread: usize, does: Does, at: VirtAddr) {
    let medium = pool.medium();
    let mut session = pool.session().unwrap();
    // The thread that runs first lets the other begin.
    medium.pause(0);
    match does {
        Does::Commits => session
            .raw_transaction(|tx| change(tx, thread, at))
            .unwrap(),
        Does::Aborts => {
            let aborted = session.raw_transaction(|tx| {
                change(tx, thread, at)?;
                Err::<(), _>(Error::ReadOnly)
            });
            assert!(matches!(aborted, Err(Error::ReadOnly)));
        }
        Does::Persists => {
            let _guard = session.raw_guard().unwrap();
            for (at, len) in each_field(thread, at) {
                medium.store_exact(at, &vec![NEW; len as usize]);
                medium.persist(at, len);
            }
        }
    }
    medium.note(1);
    // The end of a session is no part of the run.
    pool.clone().abandon();
}

impl SharedWords {
    fn workload(self, crash: &Crash, at: VirtAddr) {
        let pool = Pool::open(crash.clone(), &options()).unwrap();
        let jobs = [0, 1].map(|thread| -> Job {
            let (pool, does) = (pool.clone(), self.0[thread]);
            Box::new(move || run(&pool, thread, does, at))
        });
        let run = crash.run(jobs.into(), Schedule::Inherited);
        run.finished().unwrap();
        self.judge(crash, at, [true; 2]).unwrap();
        pool.abandon();
    }

    fn judge(self, crash: &Crash, at: VirtAddr, done: [bool; 2]) -> Result<(), String> {
        let mut found = [0; BYTES as usize];
        crash.load_bytes(at, &mut found);
        let is_legal = |thread: usize| {
            let bytes: Vec<u8> = FIELDS[thread]
                .iter()
                .flat_map(|&(from, len)| &found[from as usize..(from + len) as usize])
                .copied()
                .collect();
            let all = |value| bytes.iter().all(|&byte| byte == value);
            match self.0[thread] {
                Does::Aborts => all(OLD),
                Does::Commits => all(NEW) || all(OLD) && !done[thread],
                Does::Persists => all(NEW) || !done[thread],
            }
        };
        match is_legal(0) && is_legal(1) {
            true => Ok(()),
            false => Err(format!("after {done:?} of {:?}: {found:x?}", self.0)),
        }
    }

    /// Crashes everywhere, in every run.
    pub fn explore(self, missing: Missing) -> Report {
        let at = made(&Crash::new(LEN, Default::default()));
        let explorer = Explorer::new(
            explore(missing, 1),
            LEN,
            |crash| assert_eq!(made(crash), at),
            |crash| self.workload(crash, at),
            |crash, state| {
                let pool = open(crash, &options())?;
                let done = [1, 2].map(|thread| state.note(thread) == 1);
                self.judge(pool.medium(), at, done)?;
                pools::check(pool)
            },
        );
        let mut after = 0;
        explorer.explore_each(|last| {
            after += 1;
            let over = last.is_some_and(|run| after > run.steps);
            (!over).then(|| Schedule::Turns(vec![Turn { after, thread: 2 }]))
        })
    }
}
