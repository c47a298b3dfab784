//! The start of every exploration: a small pool with a structure whose objects lie far apart.
//!
//! Beside the structure lies a second one of the same kind, the *ballast*. While the structure is filled, many elements
//! are added to the ballast, and all but one are removed again. So the objects of both lie thinly in many pages, and a
//! cycle merges two thin pages of a kind into one. The ballast never changes afterwards; its content is checked after
//! every crash.

use firn_crash::{Crash, CrashOptions, Image, LookupSizes, RelocateUnit};
use firn_format::geometry::MIN_POOL_BYTES;
use firn_heap::collector::scheme::Scheme;
use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Error, Pool, PoolKind, PoolOptions, Reading};
use firn_media::{Domain, Level, Step};
use firn_workloads::under_test::{Content, Found, Key, UnderTest};

use super::error::CrashError;
use super::setting::Setting;

/// The structure's root.
pub(crate) const ROOT: &str = "it";
const BALLAST: &str = "ballast";

/// Elements of the ballast. More of them than fit a page come between two elements of the structure.
const ELEMENTS: Key = 360;
/// Elements of the ballast that stay.
const LEFT: usize = 1;
/// Elements of the ballast that a transaction inserts or removes.
const TOGETHER: usize = 30;
/// Bytes of a value in the setup and in short sequences. One length, so that a change is in place.
const VALUE_BYTES: usize = 24;

/// The value that the operation of this number writes.
pub(crate) fn value(number: u8) -> Vec<u8> {
    vec![number; VALUE_BYTES]
}

/// The start of an exploration.
#[derive(Clone)]
pub(crate) struct Fixture {
    pub(crate) under_test: &'static dyn UnderTest<Crash>,
    pub(crate) scheme: &'static Scheme,
    medium: CrashOptions,
    options: PoolOptions,
    /// The pool.
    pub(crate) image: Image,
    ballast: Content,
}

impl Fixture {
    /// Makes the pool of a setting for keys below `keys`.
    ///
    /// Errors: the heap fails even without a crash.
    pub(crate) fn new(setting: &Setting, keys: Key) -> Result<Self, CrashError> {
        let (under_test, scheme) = (setting.structure.under_test(), setting.scheme);
        // The smallest possible pool: one chunk of objects, so that opening examines little, and pages that a cycle
        // frees are used again.
        let medium = CrashOptions {
            capacity: MIN_POOL_BYTES.next_power_of_two(),
            relocate: scheme.relocates().then_some(RelocateUnit::Functional),
            lookup: scheme.checks_lookup().then(LookupSizes::default),
            level: setting.survival.level,
            recorded_lines: setting.survival.recorded_lines,
            ..CrashOptions::with_domain(setting.survival.domain)
        };
        let options = pool_options(setting.pool, setting.threads);
        let crash = Crash::new(MIN_POOL_BYTES, medium.clone());
        let ballast = fill(under_test, &crash, &options, keys).map_err(|e| CrashError::Setup {
            structure: setting.structure.name(),
            what: e.to_string(),
        })?;
        Ok(Self {
            under_test,
            scheme,
            medium,
            options,
            image: crash.cache_image(),
            ballast,
        })
    }

    /// The medium, with a step left out.
    pub(crate) fn medium(&self, plant: Option<&'static Step>, seed: u64) -> CrashOptions {
        CrashOptions {
            leave_out: plant,
            seed,
            ..self.medium.clone()
        }
    }

    /// Whether a transaction that has returned survives. Where it does not wait for its place in the log, only a prefix of
    /// the transactions does.
    pub(crate) fn waits(&self) -> bool {
        self.medium.domain != Domain::Logged || self.medium.level == Level::Sync
    }

    pub(crate) fn pool_options(&self) -> PoolOptions {
        self.options.clone()
    }

    /// The options of this campaign's collections: they run to the last page.
    pub(crate) fn collect(&self) -> CollectOptions {
        CollectOptions {
            target: 1.0,
            pages: PageSize::Small,
            scheme: self.scheme,
            ..CollectOptions::default()
        }
    }

    /// The structure's initial content.
    pub(crate) fn content(&self) -> Content {
        let (order, mut content) = (self.under_test.order(), Content::new());
        for &key in self.under_test.keys().present {
            order.insert(&mut content, key, value(0));
        }
        content
    }

    /// The structure's content, provided that it and the ballast are sound and the ballast is unchanged.
    pub(crate) fn read(&self, view: Reading<'_, Crash>) -> Result<Content, String> {
        let it = sound(self.under_test.read(view, ROOT), "the structure")?;
        let ballast = sound(self.under_test.read(view, BALLAST), "its neighbour")?;
        match ballast == self.ballast {
            true => Ok(it),
            false => Err(format!(
                "its neighbour, which nobody touches, holds {ballast:?}"
            )),
        }
    }
}

fn sound(found: Result<Found, Error>, which: &str) -> Result<Content, String> {
    let found = found.map_err(|e| format!("{which} cannot be read: {e}"))?;
    match found.wrong.first() {
        Some(wrong) => Err(format!("{which} is not sound: {wrong}")),
        None => Ok(found.content),
    }
}

fn pool_options(kind: PoolKind, lanes: usize) -> PoolOptions {
    PoolOptions {
        kind,
        lanes,
        publish_every: u32::MAX,
        ..PoolOptions::new("crash campaign")
    }
}

/// Makes the pool. Returns the remaining ballast.
fn fill(
    under_test: &'static dyn UnderTest<Crash>,
    crash: &Crash,
    options: &PoolOptions,
    keys: Key,
) -> Result<Content, Box<dyn core::error::Error>> {
    let pool = Pool::create(crash.clone(), options)?;
    let mut session = pool.session()?;
    let present = under_test.keys().present;
    let all: Vec<Key> = (0..ELEMENTS).collect();
    let between = all.len() / (present.len() + 1);
    session.transaction(|tx| {
        under_test.create(tx, ROOT, keys)?;
        under_test.create(tx, BALLAST, all.len() as Key)
    })?;
    for (turn, stretch) in all.chunks(between).enumerate() {
        for some in stretch.chunks(TOGETHER) {
            session.transaction(|tx| {
                let mut some = some.iter();
                some.try_for_each(|&key| under_test.insert(tx, BALLAST, key, &value(0)))
            })?;
        }
        if let Some(&key) = present.get(turn) {
            session.transaction(|tx| under_test.insert(tx, ROOT, key, &value(0)))?;
        }
    }
    let (going, left) = all.split_at(all.len() - LEFT);
    for some in going.chunks(TOGETHER) {
        session.transaction(|tx| {
            let mut some = some.iter();
            some.try_for_each(|&key| under_test.remove(tx, BALLAST, key))
        })?;
    }
    drop(session);
    pool.close()?;
    Ok(left.iter().map(|&key| (key, value(0))).collect())
}
