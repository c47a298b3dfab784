//! Writes golden pools: pools of this version of the format, for later versions to open.
//!
//! `cargo run --release -p firn-structures --example golden_pools DIR`, then `gzip -9n DIR/*.pool`, before a change of
//! the format. The tests open the files (`tests/golden`). If files follow DIR, it packs them instead: those of
//! `tests/golden/pmemobj.c`. The pools come from simulated memory that loses power, so an unclean one has what no dying
//! process leaves: committed entries whose homes were lost, and torn entries.

#[path = "../../tests/golden/content.rs"]
mod content;
mod filling;
#[path = "../../tests/golden/sparse.rs"]
mod sparse;

use std::path::{Path, PathBuf};

use content::{describe, options, write, write_raw};
use filling::{fill, fill_raw};
use firn_crash::{Crash, CrashOptions, Event, Image, Schedule};
use firn_format::geometry::{self, Frame};
use firn_format::lane::{ENTRY_HEADER_WORDS, EntryHeader, LANE_BYTES, SLOTS, slot_at};
use firn_format::plan::{ENTRY_WORDS, Phase, PlanHeader};
use firn_format::sealed::Seal;
use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Error, LogKind, Pool, PoolKind};
use firn_media::{Memory, Space};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, VirtAddr, WORD_BYTES};

/// Transactions of each writer in an execution that loses power.
const TRANSACTIONS: u64 = 6;
/// How many moments of power loss are tried, and how many draws of the lost data.
const MOMENTS: u64 = 160;
const DRAWS: u64 = 6;

/// The kind of pool, and the log with which it was last opened.
#[derive(Clone, Copy)]
struct Golden {
    name: &'static str,
    kind: PoolKind,
    log: LogKind,
}

/// The state of a pool when the power is lost.
#[derive(Clone, Copy, PartialEq, Debug)]
enum When {
    Writing,
    Active,
    Release,
    Migrating,
}

fn memory(image: &Image) -> Crash {
    Crash::from_image(image, CrashOptions::default())
}

impl Golden {
    fn is_raw(self) -> bool {
        self.log == LogKind::Undo
    }

    fn open(self, crash: &Crash) -> Pool<Crash> {
        Pool::open(crash.clone(), &options(self.kind, self.log)).unwrap()
    }

    /// A pool that was filled and closed.
    fn closed(self) -> Image {
        let crash = Crash::new(0, CrashOptions::default());
        let pool = Pool::create(crash.clone(), &options(self.kind, LogKind::Redo)).unwrap();
        fill(&pool).unwrap();
        pool.close().unwrap();
        if self.is_raw() {
            let pool = self.open(&crash);
            fill_raw(&pool).unwrap();
            pool.close().unwrap();
        }
        crash.cache_image()
    }

    fn write(self, pool: &Pool<Crash>, writer: u64, numbers: std::ops::Range<u64>) {
        let mut session = pool.session().unwrap();
        for number in numbers {
            match self.is_raw() {
                true => write_raw(pool, &mut session, writer, number).unwrap(),
                false => write(&mut session, writer, number).unwrap(),
            }
            pool.medium().note(number + 1);
        }
    }

    /// The pool's content after this many uninterrupted transactions of each writer.
    fn expected(self, closed: &Image, counts: [u64; 2]) -> String {
        let crash = memory(closed);
        let pool = self.open(&crash);
        for (count, writer) in counts.into_iter().zip(0..) {
            self.write(&pool, writer, 0..count);
        }
        let described = describe(&pool, self.is_raw()).unwrap();
        pool.abandon();
        described
    }

    /// Runs an execution until the medium dies before event `event`.
    fn run(self, closed: &Image, when: When, event: u64) -> (Crash, u64) {
        let crash = memory(closed);
        let pool = self.open(&crash);
        let begun = crash.events();
        let mut jobs: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
        let writers = if when == When::Writing { 2 } else { 1 };
        for writer in 0..writers {
            let pool = pool.clone();
            jobs.push(Box::new(move || match when {
                When::Writing => self.write(&pool, writer, 0..TRANSACTIONS),
                When::Migrating => {
                    let turned = pool.migrate(content::turned);
                    turned.unwrap();
                }
                When::Active | When::Release => self.collect(&pool),
            }));
        }
        crash.run_until(jobs, Schedule::Random { seed: 5 }, event);
        pool.abandon();
        (crash, begun)
    }

    fn collect(self, pool: &Pool<Crash>) {
        let options = CollectOptions {
            target: 1.0,
            pages: PageSize::Small,
            ..CollectOptions::default()
        };
        let mut collection = pool.collection(&options).unwrap();
        assert!(collection.begin().unwrap(), "nothing to collect");
        self.write(pool, 0, 0..2);
        collection.compact(40).unwrap();
        self.write(pool, 0, 2..5);
        collection.finish().unwrap();
    }

    /// Recovers an image: returns how many words of data recovery changes, and the pool's content then. `None` if the
    /// image should be in the middle of a migration and is not.
    fn recovered(self, image: &Image, when: When) -> Result<Option<(u64, String)>, Error> {
        let crash = memory(image);
        crash.start_trace();
        let pool = self.open(&crash);
        let data = geometry::FIRST_DATA_CHUNK * CHUNK_BYTES / WORD_BYTES;
        let changed = |event: &&Event| matches!(event, Event::Store { word, old, new, .. } if *word >= data && old != new);
        let changed = crash.take_trace().iter().filter(changed).count() as u64;
        if when == When::Migrating {
            let is_migrating = pool.register::<content::Thing>().is_err();
            let turned = pool.migrate(content::turned)?;
            if !is_migrating || turned == 0 || turned == content::THINGS as u64 {
                pool.abandon();
                return Ok(None);
            }
        }
        let described = describe(&pool, self.is_raw())?;
        let findings = pool.check()?;
        assert!(findings.is_empty(), "{}: {findings:?}", self.name);
        pool.abandon();
        Ok(Some((changed, described)))
    }

    /// The best image of an execution with a power loss, and its content.
    fn crashed(self, closed: &Image, when: When) -> (Image, String) {
        let (whole, begun) = self.run(closed, when, u64::MAX);
        let end = whole.events();
        let mut best: Option<(u64, Image, String)> = None;
        for moment in 0..MOMENTS {
            let event = begun + (end - begun) * (2 * moment + 1) / (2 * MOMENTS);
            let (crash, _) = self.run(closed, when, event);
            let notes = crash.notes();
            let acknowledged = [1, 2].map(|thread| notes.get(thread).copied().unwrap_or(0));
            for seed in 0..DRAWS {
                let image = crash.random_image(seed);
                let Some(score) = score(&image, when, self.log) else {
                    continue;
                };
                let Some((changed, described)) = self.recovered(&image, when).unwrap() else {
                    continue;
                };
                if when != When::Release && changed == 0 {
                    continue;
                }
                let told = self.told(closed, when, acknowledged, &described);
                let score = score * changed.clamp(1, 2_000);
                if best.as_ref().is_none_or(|(so_far, ..)| score > *so_far) {
                    eprintln!(
                        "{} {when:?}: event {event}, draw {seed}: score {score}, recovery changes {changed} words",
                        self.name
                    );
                    best = Some((score, image, told + &described));
                }
            }
        }
        let (_, image, described) =
            best.unwrap_or_else(|| panic!("{} {when:?}: no such image", self.name));
        (image, described)
    }

    /// Which transactions an image holds: the acknowledged ones, and of each writer at most the one that was in flight.
    fn told(self, closed: &Image, when: When, acknowledged: [u64; 2], described: &str) -> String {
        let [a, b] = acknowledged;
        if when == When::Migrating {
            assert_eq!(described, self.expected(closed, [0, 0]));
            return String::new();
        }
        let mut held = [(a, b), (a + 1, b), (a, b + 1), (a + 1, b + 1)].into_iter();
        let held = held.find(|&(a, b)| described == self.expected(closed, [a, b]));
        let (held_a, held_b) = held.unwrap_or_else(|| {
            panic!(
                "{} {when:?}: what {a} and {b} transactions leave differs",
                self.name
            )
        });
        format!("transactions: {held_a} and {held_b}, of which {a} and {b} were acknowledged\n")
    }
}

fn words<const N: usize>(image: &Image, at: VirtAddr) -> [u64; N] {
    std::array::from_fn(|i| image.load_u64(at + i as u64 * WORD_BYTES))
}

/// A score for how much work an image leaves to recovery; `None` if it does not have the wanted state.
fn score(image: &Image, when: When, log: LogKind) -> Option<u64> {
    let phase = Seal::Phase.open_at(image.load_u64(geometry::PHASE), geometry::PHASE);
    match Phase::from_value(phase.unwrap(), geometry::PHASE).unwrap() {
        Phase::Active(plan) if when == When::Active => unsettled_share(image, plan),
        Phase::Release(_) if when == When::Release => Some(1),
        Phase::Idle if when == When::Migrating => Some(1),
        Phase::Idle if when == When::Writing => Some(1 + torn_or_long(image, log)),
        _ => None,
    }
}

/// Settled units of a plan, if there are units of both kinds.
fn unsettled_share(image: &Image, plan: Frame) -> Option<u64> {
    let header = PlanHeader::from_words(&words::<ENTRY_WORDS>(image, plan.start()), plan.start());
    let header = header.unwrap();
    let settled_at = header.settled_at(plan);
    let settled =
        (0..header.units).filter(|&unit| image.load_u64(settled_at + unit * WORD_BYTES) != 0);
    let settled = settled.count() as u64;
    (settled > 0 && settled < header.units).then_some(settled)
}

/// Redo: entries with a missing part. Undo: whether an open transaction's log continues outside its lane.
fn torn_or_long(image: &Image, log: LogKind) -> u64 {
    let mut count = 0;
    for lane in 0..2 {
        if log == LogKind::Undo {
            let words = (0..LANE_BYTES / WORD_BYTES).map(|i| slot_at(lane, 0) + i * WORD_BYTES);
            count += 3 * u64::from(words.into_iter().any(|at| image.load_u64(at) >> 62 == 3));
            continue;
        }
        for slot in 0..SLOTS {
            let at = slot_at(lane, slot);
            let header = EntryHeader::from_words(words::<ENTRY_HEADER_WORDS>(image, at));
            let payload = at + ENTRY_HEADER_WORDS as u64 * WORD_BYTES;
            let words = (0..header.payload_words.min(500))
                .map(|i| image.load_u64(payload + i * WORD_BYTES));
            let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            let torn = header.extents == 0
                && header.lsn != 0
                && header.checksum(&bytes) != header.checksum;
            count += u64::from(torn) + 2 * u64::from(header.extents != 0);
        }
    }
    count
}

/// The frames that have blocks, with their content.
fn frames(image: &Image) -> Vec<(u64, Vec<u8>)> {
    let crash = memory(image);
    let mut frames = Vec::new();
    for frame in 0..image.len() / FRAME_BYTES {
        let (at, before) = (VirtAddr(frame * FRAME_BYTES), crash.backed_bytes().unwrap());
        crash.reserve(at, FRAME_BYTES).unwrap();
        if crash.backed_bytes().unwrap() == before {
            let mut content = vec![0; FRAME_BYTES as usize];
            crash.load_bytes(at, &mut content);
            frames.push((frame, content));
        }
    }
    frames
}

fn keep(dir: &Path, name: &str, image: &Image, described: &str) {
    let packed = sparse::pack(image.len(), &frames(image));
    println!("{name}: {} bytes before compression", packed.len());
    std::fs::write(dir.join(format!("{name}.pool")), packed).unwrap();
    std::fs::write(dir.join(format!("{name}.txt")), described).unwrap();
}

/// Packs a file that a program wrote: the frames that are not all zeros.
fn keep_file(dir: &Path, file: &Path) {
    let content = std::fs::read(file).unwrap();
    let frames = (0..).zip(content.chunks(FRAME_BYTES as usize));
    let filled = frames.filter(|(_, frame)| frame.iter().any(|&byte| byte != 0));
    let filled: Vec<(u64, Vec<u8>)> = filled.map(|(at, frame)| (at, frame.to_vec())).collect();
    let packed = sparse::pack(content.len() as u64, &filled);
    let name = file.with_extension("pool");
    std::fs::write(dir.join(name.file_name().unwrap()), packed).unwrap();
}

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let dir = &arguments.next().expect("where to write them");
    let mut files = arguments.peekable();
    if files.peek().is_some() {
        return files.for_each(|file| keep_file(dir, &file));
    }
    let golden = |name, kind, log| Golden { name, kind, log };
    let all = [
        golden("traced-redo", PoolKind::Traced, LogKind::Redo),
        golden("explicit-redo", PoolKind::Explicit, LogKind::Redo),
        golden("explicit-undo", PoolKind::Explicit, LogKind::Undo),
        golden("traced-undo", PoolKind::Traced, LogKind::Undo),
    ];
    for golden in all {
        let closed = golden.closed();
        let name = golden.name;
        let described = golden.expected(&closed, [0, 0]);
        keep(dir, &format!("{name}-closed"), &closed, &described);
        let (image, described) = golden.crashed(&closed, When::Writing);
        keep(dir, &format!("{name}-unclean"), &image, &described);
        if golden.kind == PoolKind::Traced && golden.log == LogKind::Undo {
            continue;
        }
        for (when, what) in [(When::Active, "active"), (When::Release, "release")] {
            let (image, described) = golden.crashed(&closed, when);
            keep(dir, &format!("{name}-{what}"), &image, &described);
        }
        if golden.log == LogKind::Redo {
            let (image, described) = golden.crashed(&closed, When::Migrating);
            keep(dir, &format!("{name}-migrating"), &image, &described);
        }
    }
}
