//! Long random runs, crashed at drawn moments (FFCCD section 7.1).
//!
//! Threads of the program, each with keys of its own, insert, change, remove and read in one structure,
//! while one more thread collects. Halfway they wait until a cycle has ended, so that what comes after
//! goes to pages that it released.
//!
//! Who holds the structure's lock puts down what it does: as a commit is durable before its locks are
//! released (R1, R3), what is durable at any moment is a beginning of that list.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use firn_crash::{Crash, CrashState, ExploreOptions, Explorer, Job, Schedule, SwarmOptions};
use firn_heap::collector::scheme::Scheme;
use firn_heap::{Error, Pool, Session};
use firn_media::{Domain, Medium, Step};

use super::error::CrashError;
use super::ground::{Ground, ROOT};
use super::oracle::Survivor;
use super::report::{Part, Program};
use super::subject::{Content, Key, Order, Structure};
use super::ticker::Ticker;

/// Operations of a run, of all its threads.
pub(super) const OPERATIONS: u64 = 500;
/// Crashes that are injected into a run at most.
pub(super) const CRASHES: u32 = 16;
/// Crashes that are tried on a run that is shortened: there is one that fails among them, or it counts as
/// one that passes.
const TRIES: u32 = 128;

/// Keys of all threads, from the first on: those of the setup lie below.
const FIRST_KEY: Key = 60;
const KEYS: Key = 96;
/// Lengths of values; one in so many is that long, for a class of its own.
const SHORT: core::ops::Range<usize> = 8..64;
const LONG: usize = 120;
const LONG_ONE_IN: u8 = 6;
/// Objects that the collector moves between two looks at something else.
const MOVED_TOGETHER: core::ops::Range<u64> = 1..6;

/// Runs on one ground.
pub(super) struct Runs<'a> {
    pub(super) ground: &'a Ground,
    pub(super) plant: Option<&'static Step>,
    pub(super) depth: u32,
    /// Threads of the program.
    pub(super) threads: usize,
    /// Operations of all of them.
    pub(super) operations: u64,
    pub(super) ticker: &'a Ticker,
}

impl<'a> Runs<'a> {
    pub(super) fn ground(
        structure: Structure,
        scheme: &'static Scheme,
        domain: Domain,
        threads: usize,
    ) -> Result<Ground, CrashError> {
        Ground::new(structure, scheme, domain, threads, FIRST_KEY + KEYS)
    }

    fn explorer(&self) -> Explorer<'_> {
        let options = ExploreOptions {
            medium: self.ground.medium(self.plant, 0),
            recovery_depth: self.depth,
            ..ExploreOptions::default()
        };
        let log = Arc::new(Mutex::new(Log::default()));
        let written = Arc::clone(&log);
        Explorer::from_image(
            options,
            &self.ground.image,
            move |crash| {
                if let Err(what) = self.run(crash, &written) {
                    // What a workload cannot do it says by a panic.
                    panic!("{what}");
                }
            },
            move |crash, state| {
                self.ticker.state();
                self.verify(crash, state, &lock(&log))
            },
        )
    }

    /// Injects so many crashes into each of the runs of these seeds, until something fails, and makes a
    /// run that does as short as it goes.
    pub(super) fn inject(&self, seeds: core::ops::Range<u64>, crashes: u32) -> Part {
        let explorer = self.explorer();
        let mut whole = firn_crash::Report::default();
        let mut injections = 0;
        for seed in seeds {
            let report = explorer.swarm(&one_run(seed, crashes));
            injections += report.sampled_events;
            self.ticker.step(u64::from(crashes));
            add(&mut whole, report);
            if !whole.findings.is_empty() {
                let operations = self.shorten(seed, &mut whole);
                return self.part(whole, operations, injections);
            }
        }
        self.part(whole, self.operations, injections)
    }

    fn part(&self, report: firn_crash::Report, operations: u64, injections: u64) -> Part {
        Part {
            report,
            program: Program::Operations(operations),
            injections,
        }
    }

    /// Takes operations off the end of a run that fails for as long as it does. Returns how many are left,
    /// and puts the shorter run's finding in the place of the longer one's.
    fn shorten(&self, seed: u64, found: &mut firn_crash::Report) -> u64 {
        let mut left = self.operations;
        let mut step = left / 2;
        while step > 0 {
            let fewer = left.saturating_sub(step);
            let runs = Self {
                operations: fewer,
                ..*self
            };
            let mut report = runs.explorer().swarm(&one_run(seed, TRIES));
            if fewer > 0 && !report.findings.is_empty() {
                left = fewer;
                found.findings = core::mem::take(&mut report.findings);
                step = step.min(left / 2);
            } else {
                step /= 2;
            }
        }
        left
    }

    /// Runs again what a finding's line says.
    pub(super) fn replay(&self, line: &str) -> Result<Result<(), String>, String> {
        self.explorer().judge(line)
    }

    /// One run: the program's threads and a collector.
    fn run(&self, crash: &Crash, log: &Arc<Mutex<Log>>) -> Result<(), String> {
        let seed = crash.random_u64();
        lock(log).entries.clear();
        let options = self.ground.pool_options();
        let pool = Pool::open(crash.clone(), &options).map_err(|e| e.to_string())?;
        let meeting = Arc::new(Meeting::of(self.threads as u64));
        let mut jobs: Vec<Job> = Vec::new();
        for thread in 0..self.threads {
            let program = Mutator {
                ground: self.ground.clone(),
                pool: pool.clone(),
                thread,
                keys: self.keys_of(thread),
                own: Vec::new(),
                draw: fastrand::Rng::with_seed(seed ^ thread as u64),
                log: Arc::clone(log),
                meeting: Arc::clone(&meeting),
            };
            let operations = self.operations_of(thread);
            jobs.push(Box::new(move || program.run(operations)));
        }
        let collector = Collecting {
            ground: self.ground.clone(),
            pool: pool.clone(),
            draw: fastrand::Rng::with_seed(!seed),
            meeting,
        };
        jobs.push(Box::new(move || collector.run()));
        crash.run(jobs, Schedule::Inherited).finished()?;
        let mut session = pool.session().map_err(|e| e.to_string())?;
        let found = session.read(|view| self.ground.read(view))?;
        let all: Vec<u64> = (0..self.threads).map(|t| self.operations_of(t)).collect();
        let checked = self.allows(&lock(log), &all, &found);
        pool.abandon();
        drop(session);
        checked.map_err(|e| format!("without a crash: {e}"))
    }

    /// The keys of a thread.
    fn keys_of(&self, thread: usize) -> core::ops::Range<Key> {
        let each = KEYS / self.threads as Key;
        let first = FIRST_KEY + thread as Key * each;
        first..first + each
    }

    /// The operations of a thread.
    fn operations_of(&self, thread: usize) -> u64 {
        let threads = self.threads as u64;
        (self.operations + threads - 1 - thread as u64) / threads
    }

    /// What a crash left: what was acknowledged, before and after the interrupted cycle ended, and a pool
    /// that can be used.
    fn verify(&self, crash: Crash, state: &CrashState, log: &Log) -> Result<(), String> {
        let acknowledged: Vec<u64> = (1..=self.threads).map(|t| state.note(t)).collect();
        let mut survivor = Survivor::open(self.ground, crash)?;
        let mut expected = survivor.content("after recovery")?;
        self.allows(log, &acknowledged, &expected)?;
        let (subject, value) = (self.ground.subject, vec![u8::MAX; LONG]);
        let session = survivor.session()?;
        let inserted = session.transaction(|tx| subject.insert(tx, ROOT, FIRST_KEY, &value));
        inserted.map_err(|e| format!("inserting after recovery: {e}"))?;
        subject.order().insert(&mut expected, FIRST_KEY, value);
        survivor.end_cycle()?;
        survivor.collect()?;
        let found = survivor.content("after collecting")?;
        match found == expected {
            true => Ok(()),
            false => Err(format!("after collecting: found {found:?}")),
        }
    }

    /// Whether the content is that after a beginning of the log which has all that was acknowledged and of
    /// each thread one operation more at most.
    fn allows(&self, log: &Log, acknowledged: &[u64], found: &Content) -> Result<(), String> {
        let order = self.ground.subject.order();
        let entries: Vec<&Entry> = log.entries.iter().flatten().collect();
        let is_in = |entry: &&Entry| entry.number <= acknowledged[entry.thread];
        let least = entries.iter().rposition(is_in).map_or(0, |last| last + 1);
        let beyond = |entry: &&Entry| entry.number > acknowledged[entry.thread] + 1;
        let most = entries.iter().position(beyond).unwrap_or(entries.len());
        let mut content = self.ground.content();
        for entry in entries.iter().take(least) {
            entry.apply(order, &mut content);
        }
        let acknowledged_content = content.clone();
        for next in least..=most {
            if content == *found {
                return Ok(());
            }
            if let Some(entry) = entries.get(next) {
                entry.apply(order, &mut content);
            }
        }
        Err(difference(acknowledged, &acknowledged_content, found))
    }
}

/// What is told of contents that differ: the first elements that are not as they were acknowledged.
fn difference(acknowledged: &[u64], expected: &Content, found: &Content) -> String {
    let short = |of: Option<&(Key, Vec<u8>)>| match of {
        Some((key, value)) => format!("{key}: {value:?}"),
        None => "nothing".to_owned(),
    };
    let longest = expected.len().max(found.len());
    let differing = (0..longest).find(|&n| expected.get(n) != found.get(n));
    let at = differing.unwrap_or(longest);
    format!(
        "{acknowledged:?} operations of the threads were acknowledged, after which there are {} elements; \
         found {}, of which number {at} is {} where {} is expected",
        expected.len(),
        found.len(),
        short(found.get(at)),
        short(expected.get(at)),
    )
}

fn one_run(seed: u64, crashes: u32) -> SwarmOptions {
    SwarmOptions {
        seeds: seed..seed + 1,
        crashes,
        images: 1,
        crashes_in_recovery: 1,
    }
}

/// Takes in another report of the same explorations.
fn add(whole: &mut firn_crash::Report, more: firn_crash::Report) {
    whole.states += more.states;
    whole.recovery_states += more.recovery_states;
    whole.images = whole.images.saturating_add(more.images);
    whole.events += more.events;
    whole.executions += more.executions;
    whole.sampled_events += more.sampled_events;
    whole.cut |= more.cut;
    whole.hash = whole.hash.rotate_left(7) ^ more.hash;
    whole.elapsed += more.elapsed;
    whole.findings.extend(more.findings);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was done, in the order of the structure's lock.
#[derive(Default)]
struct Log {
    /// An attempt that was started over leaves a gap.
    entries: Vec<Option<Entry>>,
}

/// An operation that changes something.
struct Entry {
    thread: usize,
    /// Among the thread's operations, from 1.
    number: u64,
    change: Change,
}

#[derive(Clone)]
enum Change {
    Insert(Key, Vec<u8>),
    Remove(Key),
}

impl Entry {
    fn apply(&self, order: Order, content: &mut Content) {
        match &self.change {
            Change::Insert(key, value) => order.insert(content, *key, value.clone()),
            Change::Remove(key) => order.remove(content, *key),
        }
    }
}

/// What the threads of a run know of each other.
struct Meeting {
    /// Threads of the program that have not ended.
    busy: AtomicU64,
    /// Collections that have ended.
    collections: AtomicU64,
}

impl Meeting {
    fn of(threads: u64) -> Self {
        Self {
            busy: AtomicU64::new(threads),
            collections: AtomicU64::new(0),
        }
    }
}

/// A thread of the program.
struct Mutator {
    ground: Ground,
    pool: Pool<Crash>,
    thread: usize,
    keys: core::ops::Range<Key>,
    /// What its keys hold, if an element keeps its key.
    own: Content,
    draw: fastrand::Rng,
    log: Arc<Mutex<Log>>,
    meeting: Arc<Meeting>,
}

/// What a thread does next.
enum Deed {
    Change(Change),
    Abort(Change),
    Get(Key),
}

impl Mutator {
    fn run(mut self, operations: u64) {
        let medium = self.pool.medium().clone();
        let mut session = self.pool.session().expect("as many lanes as threads");
        for number in 1..=operations {
            if number == operations / 2 + 1 {
                while self.meeting.collections.load(Relaxed) == 0 {
                    medium.pause(0);
                }
            }
            let deed = self.draw(number);
            if let Err(what) = self.act(&mut session, number, deed) {
                panic!("operation {number}: {what}");
            }
            medium.note(number);
        }
        self.meeting.busy.fetch_sub(1, Relaxed);
    }

    fn draw(&mut self, number: u64) -> Deed {
        let key = self.draw.u16(self.keys.clone());
        let change = match self.draw.u8(..16) {
            0..=5 => Change::Insert(key, self.value(number, None)),
            6..=8 => Change::Insert(key, self.value(number, self.held(key).map(Vec::len))),
            9..=12 => Change::Remove(key),
            _ => return Deed::Get(key),
        };
        match self.draw.u8(..16) {
            0 => Deed::Abort(change),
            _ => Deed::Change(change),
        }
    }

    /// What the operation of this number writes: of a length that is given, or any.
    fn value(&mut self, number: u64, len: Option<usize>) -> Vec<u8> {
        let len = len.unwrap_or_else(|| match self.draw.u8(..LONG_ONE_IN) {
            0 => LONG,
            _ => self.draw.usize(SHORT),
        });
        let mut value = vec![self.thread as u8; len];
        let stamp = number.to_le_bytes();
        let stamped = stamp.len().min(len);
        value[..stamped].copy_from_slice(&stamp[..stamped]);
        value
    }

    fn held(&self, key: Key) -> Option<&Vec<u8>> {
        let of_key = self.own.iter().find(|(own, _)| *own == key);
        of_key.map(|(_, value)| value)
    }

    fn act(&mut self, session: &mut Session<Crash>, number: u64, deed: Deed) -> Result<(), String> {
        let subject = self.ground.subject;
        match deed {
            Deed::Change(change) => {
                self.change(session, number, &change)
                    .map_err(|e| e.to_string())?;
                let order = match subject.order() {
                    // What becomes of an element is not its thread's alone.
                    Order::FirstIn => return Ok(()),
                    order => order,
                };
                let (thread, entry) = (self.thread, change);
                let entry = Entry {
                    thread,
                    number,
                    change: entry,
                };
                entry.apply(order, &mut self.own);
                Ok(())
            }
            Deed::Abort(change) => {
                let aborted = session.transaction(|tx| {
                    apply(&self.ground, tx, &change)?;
                    Err::<(), _>(Error::ReadOnly)
                });
                match aborted {
                    Err(Error::ReadOnly) => Ok(()),
                    other => Err(format!("a transaction that gives up: {other:?}")),
                }
            }
            Deed::Get(key) => {
                let got = session.read(|view| subject.get(view, ROOT, key));
                let got = got.map_err(|e| e.to_string())?;
                let expected = self.held(key);
                match subject.order() == Order::FirstIn || got.as_ref() == expected {
                    true => Ok(()),
                    false => Err(format!("{key} is {got:?} instead of {expected:?}")),
                }
            }
        }
    }

    /// Does it, and puts it down while the structure's lock is held.
    fn change(
        &self,
        session: &mut Session<Crash>,
        number: u64,
        change: &Change,
    ) -> Result<(), Error> {
        // What changes nothing may have had the lock as a reader, or not at all.
        let counts = match change {
            Change::Insert(..) => true,
            Change::Remove(key) => {
                self.ground.subject.order() == Order::FirstIn || self.held(*key).is_some()
            }
        };
        let mut attempt = None;
        session.transaction(|tx| {
            apply(&self.ground, tx, change)?;
            if !counts {
                return Ok(());
            }
            let entries = &mut lock(&self.log).entries;
            if let Some(before) = attempt.replace(entries.len()) {
                entries[before] = None;
            }
            entries.push(Some(Entry {
                thread: self.thread,
                number,
                change: change.clone(),
            }));
            Ok(())
        })
    }
}

fn apply(ground: &Ground, tx: firn_heap::Tx<'_, Crash>, change: &Change) -> Result<(), Error> {
    match change {
        Change::Insert(key, value) => ground.subject.insert(tx, ROOT, *key, value),
        Change::Remove(key) => ground.subject.remove(tx, ROOT, *key),
    }
}

/// The thread that collects.
struct Collecting {
    ground: Ground,
    pool: Pool<Crash>,
    draw: fastrand::Rng,
    meeting: Arc<Meeting>,
}

impl Collecting {
    /// Collects until the program has ended, once at least.
    fn run(mut self) {
        let medium = self.pool.medium().clone();
        loop {
            if let Err(error) = self.collect() {
                panic!("collecting: {error}");
            }
            self.meeting.collections.fetch_add(1, Relaxed);
            if self.meeting.busy.load(Relaxed) == 0 {
                break;
            }
            medium.pause(0);
        }
    }

    /// One collection, as a whole or step by step.
    fn collect(&mut self) -> Result<(), Error> {
        let options = firn_heap::collector::CollectOptions {
            release_blocks: self.draw.bool(),
            ..self.ground.collect()
        };
        if self.draw.bool() {
            self.pool.collect(&options)?;
            if options.release_blocks {
                self.pool.release_free_space()?;
            }
            return Ok(());
        }
        let mut collection = self.pool.collection(&options)?;
        while collection.begin()? {
            while !collection.compact(self.draw.u64(MOVED_TOGETHER))? {}
            collection.finish()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use firn_crash::Event;
    use firn_format::geometry::{FIRST_DATA_CHUNK, Frame};
    use firn_heap::collector::scheme::PIGGYBACK;
    use firn_heap::{FrameContent, Occupancy, Statistics};
    use firn_units::{FRAME_BYTES, VirtAddr, WORD_BYTES};

    use super::*;

    /// Pages of objects that are in use.
    fn used(crash: &Crash) -> HashSet<u64> {
        let frames = Occupancy::read(crash).unwrap().frames;
        let is_used = |content| {
            matches!(
                content,
                FrameContent::Slots { .. } | FrameContent::Large { .. }
            )
        };
        let numbered = (0..).zip(frames);
        let used = numbered.filter(|(_, frame)| is_used(frame.content));
        used.map(|(number, _)| number).collect()
    }

    /// Pages that cycles emptied and pages in use at the end are together more than were ever touched.
    #[test]
    fn pages_that_cycles_released_are_used_again() {
        for (threads, seed) in [(1, 1), (2, 2), (8, 3)] {
            let structure = Structure::named("map").unwrap();
            let ground = Runs::ground(structure, &PIGGYBACK, Domain::Adr, threads).unwrap();
            let runs = Runs {
                ground: &ground,
                plant: None,
                depth: 1,
                threads,
                operations: OPERATIONS,
                ticker: &Ticker::default(),
            };
            let crash = Crash::from_image(&ground.image, ground.medium(None, seed));
            crash.set_schedule(Schedule::Random { seed });
            let mut touched = used(&crash);
            crash.start_trace();
            runs.run(&crash, &Arc::default()).unwrap();
            let notes = crash.notes();
            assert_eq!(notes[1..=threads].iter().sum::<u64>(), OPERATIONS);
            touched.extend(crash.take_trace().iter().filter_map(|event| {
                match event {
                    Event::Store { word, .. } => Some(Frame::holding(VirtAddr(word * WORD_BYTES)))
                        .filter(|frame| frame.chunk().0 >= FIRST_DATA_CHUNK)
                        .map(|frame| frame.0),
                    _ => None,
                }
            }));
            let did = Statistics::read(&crash).unwrap().collector;
            let emptied = did.emptied_bytes / FRAME_BYTES;
            let in_turn = emptied + used(&crash).len() as u64;
            assert!(did.cycles > 0, "{did:?}");
            assert!(
                in_turn > touched.len() as u64,
                "{threads} threads: {emptied} pages emptied, {in_turn} in turn of {}",
                touched.len()
            );
        }
    }
}
