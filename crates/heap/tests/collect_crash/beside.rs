//! A cycle on one simulated thread, and threads of the program that interrupt it, or each other, at
//! chosen points.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use firn_crash::{
    Crash, CrashOptions, CrashState, ExploreOptions, Explorer, Finding, Image, Job, LookupSizes,
    RelocateUnit, Report, RunOutcome, Schedule, Turn,
};
use firn_heap::collector::scheme::{PIGGYBACK, Scheme};
use firn_heap::{Pool, PoolKind, PoolOptions};
use firn_media::{Domain, Runtime, Step};

use crate::program::{
    MUTATORS, Op, Past, add_bystanders, apply, check, collect, collect_and_refill, options, read,
    setup, verify,
};
use crate::story::in_words;

/// What to explore.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub kind: PoolKind,
    pub domain: Domain,
    pub scheme: &'static Scheme,
    /// The build of `relocate`, if the scheme uses it.
    pub relocate: RelocateUnit,
    /// The sizes of `checklookup`'s parts, if the scheme uses it.
    pub lookup: LookupSizes,
    /// Threads of the program.
    pub threads: usize,
    /// Earlier collections, whose pages are reused.
    pub earlier: u32,
    /// Crashes inside recovery.
    pub depth: u32,
    /// A step of the heap that is left out while crashes are tried.
    pub leave_out: Option<&'static Step>,
    /// Whether the program checks what it reads. For a scheme that is not sound, only the check after a crash finds the
    /// losses.
    pub looks: bool,
}

/// As small as possible: entries are replaced, and the filter errs about every page in its range.
const SMALL_LOOKUP: LookupSizes = LookupSizes {
    filters: 1,
    filter_bytes: 8,
    entries: 1,
    reach_bytes: 1024,
};

impl Default for Case {
    fn default() -> Self {
        Self {
            kind: PoolKind::Traced,
            domain: Domain::Adr,
            scheme: &PIGGYBACK,
            relocate: RelocateUnit::Functional,
            lookup: SMALL_LOOKUP,
            threads: 1,
            earlier: 0,
            depth: 1,
            leave_out: None,
            looks: true,
        }
    }
}

/// The most findings of a run that are searched for a wanted one.
pub const FINDINGS: usize = 20_000;

/// The program's operations, by thread.
pub type Script = [Vec<Op>; MUTATORS];

/// One execution: the program's operations and their times.
#[derive(Clone, Debug, Default)]
pub struct Run {
    pub script: Script,
    pub turns: Vec<Turn>,
}

/// State of a run outside the medium.
#[derive(Default)]
struct Shared {
    past: Mutex<Past>,
    /// Whether the cycle has begun, so that the program may.
    begun: AtomicBool,
    /// Whether the collector has moved one object.
    moved: AtomicBool,
    /// Whether the collection is over.
    ended: AtomicBool,
    /// Threads that have more to do.
    busy: AtomicUsize,
    /// Threads of the program that have not checked the final content.
    unverified: AtomicUsize,
    /// The program's operations, in the order in which they returned.
    done: Mutex<Vec<Done>>,
}

impl Shared {
    /// The collector's progress: how many stops are over, the one moved object, and the end.
    fn stage(&self, pool: &Pool<Crash>) -> usize {
        let further = self.moved.load(Relaxed) as usize + self.ended.load(Relaxed) as usize;
        pool.collector_stops().count as usize + further
    }
}

/// The course of a run.
pub struct Went {
    pub run: RunOutcome,
    pub done: Vec<Done>,
}

/// An operation of a run.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Its thread.
    pub thread: usize,
    /// Where the collector was when it began.
    pub stage: usize,
    /// The points at which it began and returned.
    pub begin: u64,
    pub end: u64,
}

impl Run {
    /// A run of this script; each turn is a point and a thread.
    pub fn of(script: Script, turns: &[(u64, usize)]) -> Self {
        let turn = |&(after, thread)| Turn { after, thread };
        let turns = turns.iter().map(turn).collect();
        Self { script, turns }
    }
}

/// Where the collector is: each stage begins with the end of a stop, or of a call. An explicit pool has no stages
/// before choosing, which here belongs to reclaiming.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Between A and B.
    Marking = 1,
    /// Between B and S: unreachable objects become free, pages are chosen.
    Reclaiming,
    /// Between S and C: the plan is made.
    Planning,
    /// From C on.
    Moving,
    /// After the collector has moved one object, to D.
    Moved,
    /// Between D and E.
    Healing,
    /// From E on, to the end of the collection.
    Releasing,
    After,
}

impl Case {
    /// Number of the collector's simulated thread; the program's threads come before.
    pub fn collector(&self) -> usize {
        self.threads + 1
    }

    /// A medium with the hardware that the scheme needs.
    fn medium(&self) -> CrashOptions {
        CrashOptions {
            relocate: self.scheme.relocates().then_some(self.relocate),
            lookup: self.scheme.checks_lookup().then_some(self.lookup),
            ..CrashOptions::with_domain(self.domain)
        }
    }

    fn options(&self) -> PoolOptions {
        options(self.kind, self.threads)
    }

    /// The pool, ready to be collected.
    pub fn image(&self) -> Image {
        let crash = Crash::new(16 << 20, self.medium());
        setup(&crash, &self.options());
        for _ in 0..self.earlier {
            collect_and_refill(&crash, &self.options(), self.scheme);
        }
        if self.scheme.groups {
            add_bystanders(&crash, &self.options());
        }
        crash.cache_image()
    }

    fn workload(&self, crash: &Crash, script: &Script, schedule: Schedule) -> Went {
        let pool = Pool::open(crash.clone(), &self.options()).unwrap();
        let shared = Arc::new(Shared::default());
        let mut jobs: Vec<Job> = Vec::new();
        shared.busy.store(self.threads + 1, Relaxed);
        shared.unverified.store(self.threads, Relaxed);
        for (thread, ops) in script.iter().enumerate().take(self.threads) {
            let (pool, shared, ops) = (pool.clone(), Arc::clone(&shared), ops.clone());
            let looks = self.looks && self.scheme.sound;
            jobs.push(Box::new(move || {
                mutate(&pool, thread, &ops, &shared, looks)
            }));
        }
        let (collecting, beside, how) = (pool.clone(), Arc::clone(&shared), collect(self.scheme));
        jobs.push(Box::new(move || {
            beside.begun.store(true, Relaxed);
            let mut collection = collecting.collection(&how).unwrap();
            if collection.begin().unwrap() {
                collection.compact(1).unwrap();
                beside.moved.store(true, Relaxed);
                collection.finish().unwrap();
            }
            drop(collection);
            beside.ended.store(true, Relaxed);
            beside.busy.fetch_sub(1, Relaxed);
        }));
        let run = crash.run(jobs, schedule);
        if run.finished().is_ok() && self.looks && self.scheme.sound {
            check(&pool).unwrap();
        }
        pool.abandon();
        let done = shared.done.lock().unwrap().clone();
        Went { run, done }
    }

    /// Runs once, without a crash.
    pub fn run(&self, image: &Image, run: &Run) -> Went {
        let crash = Crash::from_image(image, self.medium());
        let went = self.workload(&crash, &run.script, Schedule::Turns(run.turns.clone()));
        went.run.finished().unwrap();
        went
    }

    /// The points of a run at which each stage begins, except the last stage: a thread without a turn comes after the
    /// cycle anyway.
    pub fn stages(&self, image: &Image) -> Vec<u64> {
        let last = self.run(image, &Run::default()).run.steps;
        let mut bounds = vec![0];
        for stage in 1..self.stage(Stage::After) {
            let (mut low, mut high) = (bounds[bounds.len() - 1], last);
            while high - low > 1 {
                let middle = (low + high) / 2;
                let probe = Run::of([vec![Op::Read], vec![]], &[(middle, 1)]);
                if self.run(image, &probe).done[0].stage < stage {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            bounds.push(high);
        }
        bounds.push(last);
        bounds
    }

    /// The number of a [`Stage`] in this case.
    pub fn stage(&self, stage: Stage) -> usize {
        match self.kind {
            PoolKind::Traced => stage as usize,
            PoolKind::Explicit => (stage as usize).saturating_sub(Stage::Reclaiming as usize),
        }
    }

    /// An explorer that crashes runs of the script in `now`.
    fn explorer<'c>(&'c self, now: &'c RefCell<Script>, max_findings: usize) -> Explorer<'c> {
        let options = ExploreOptions {
            recovery_depth: self.depth,
            max_findings,
            medium: CrashOptions {
                leave_out: self.leave_out,
                ..self.medium()
            },
            ..ExploreOptions::default()
        };
        Explorer::from_image(
            options,
            &self.image(),
            |crash| {
                let went = self.workload(crash, &now.borrow(), Schedule::Inherited);
                went.run.finished().unwrap();
            },
            |crash, state: &CrashState| {
                let past = Past::of_notes(core::array::from_fn(|thread| state.note(thread + 1)));
                verify(crash, &self.options(), self.scheme, &past)
            },
        )
    }

    /// Crashes every run from `next` everywhere, and again in each recovery.
    pub fn explore(&self, mut next: impl FnMut(Option<&RunOutcome>) -> Option<Run>) -> Report {
        let now = RefCell::new(Script::default());
        let report = self.explorer(&now, 1).explore_each(|run| {
            let run = next(run)?;
            *now.borrow_mut() = run.script;
            Some(Schedule::Turns(run.turns))
        });
        let how = self.scheme.name;
        println!("{:?} {} {how}: {report}", self.kind, self.domain);
        if report.findings.is_empty() {
            assert!(report.exhaustive(), "{self:?}");
        } else {
            println!("the program: {:?}", now.borrow());
        }
        report
    }

    /// The first of these runs with a wanted finding: the check `says` this, and the story is accepted.
    pub fn find(
        &self,
        runs: impl IntoIterator<Item = Run>,
        says: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Option<(String, String)> {
        let now = RefCell::new(Script::default());
        let explorer = self.explorer(&now, FINDINGS);
        runs.into_iter().find_map(|run| {
            *now.borrow_mut() = run.script;
            let mut turns = Some(Schedule::Turns(run.turns));
            let report = explorer.explore_each(|_| turns.take());
            let said = |finding: &Finding| finding.message.contains(says);
            report
                .findings
                .into_iter()
                .filter(said)
                .find_map(|finding| {
                    let story = explorer.story(&finding.replay).ok()?;
                    let words = in_words(&story, self.threads);
                    wanted(&words).then_some((finding.message, words))
                })
        })
    }

    /// Explores runs that are known beforehand.
    pub fn explore_all(&self, runs: Vec<Run>) -> Report {
        let mut runs = runs.into_iter();
        self.explore(|_| runs.next())
    }
}

/// A thread of the program. It waits for its turn before each operation.
fn mutate(pool: &Pool<Crash>, thread: usize, ops: &[Op], shared: &Shared, looks: bool) {
    let medium = pool.medium();
    let mut session = pool.session().unwrap();
    while !shared.begun.load(Relaxed) {
        medium.pause(0);
    }
    for (nth, &op) in ops.iter().enumerate() {
        if nth > 0 {
            medium.pause(0);
        }
        let (begin, stage) = (medium.points(), shared.stage(pool));
        let before = shared.past.lock().unwrap().clone();
        let (note, number) = shared.past.lock().unwrap().begin(thread, op);
        medium.note(note);
        let found = apply(&mut session, op, number).unwrap();
        if let Some(found) = found.filter(|_| looks) {
            let past = shared.past.lock().unwrap().since(&before);
            past.allows(&found).unwrap();
        }
        let note = shared.past.lock().unwrap().end(thread);
        medium.note(note);
        let end = medium.points();
        shared.done.lock().unwrap().push(Done {
            thread,
            stage,
            begin,
            end,
        });
    }
    let wait_for = |left: &AtomicUsize| {
        left.fetch_sub(1, Relaxed);
        while left.load(Relaxed) > 0 {
            medium.pause(0);
        }
    };
    wait_for(&shared.busy);
    if looks {
        let found = read(&mut session).unwrap();
        shared.past.lock().unwrap().allows(&found).unwrap();
    }
    wait_for(&shared.unverified);
    // The end of a session is no part of the program: nothing is written, as after a crash.
    pool.clone().abandon();
}
