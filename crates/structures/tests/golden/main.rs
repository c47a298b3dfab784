//! Do pools of earlier versions of the format live on: is exactly the committed content there, are they sound, and can
//! they be used further?
//!
//! `pools` has files as each version left them, compressed, with descriptions of their content; `examples/golden_pools`
//! and `pmemobj.c` show how they are made. Version 1 was written by commit 1b0ce51, version 2 by the first commit that
//! has its files. A change of the format (`crates/format/tests/bytes.rs` detects it) must raise its number, and add
//! pools of that version.

mod content;
mod other_versions;
mod pmemobj;
mod sparse;

use std::io::Read;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use content::{describe, options, turned, write, write_raw};
use firn_format::geometry::{SUPERBLOCK_BYTES, SUPERBLOCKS};
use firn_format::superblock::Superblock;
use firn_format::{FORMAT_VERSION, OLDEST_FORMAT_VERSION};
use firn_heap::Stored;
use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{LogKind, OpenError, Pool, PoolKind, TypeDescriptor};
use firn_mapped::{Mapped, MappedOptions};

/// Every version so far.
const VERSIONS: RangeInclusive<u32> = OLDEST_FORMAT_VERSION..=FORMAT_VERSION;

/// A golden pool in a file of its own, which is deleted when the test ends.
struct Golden {
    path: PathBuf,
    description: String,
    _only: MutexGuard<'static, ()>,
}

/// Golden pools come from simulated memory of one seed, so they share one id, and only one is open at a time.
static ONLY: Mutex<()> = Mutex::new(());

impl Golden {
    fn unpack(name: &str) -> Self {
        let only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
        let pools = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/pools");
        let read = |kind: &str| std::fs::read(pools.join(format!("{name}.{kind}"))).unwrap();
        let mut packed = Vec::new();
        let compressed = read("pool.gz");
        flate2::read::GzDecoder::new(&compressed[..])
            .read_to_end(&mut packed)
            .unwrap();
        let (len, runs) = sparse::unpack(&packed).expect("a packed file");
        // Several tests use one pool, each in a file of its own.
        static UNPACKED: AtomicUsize = AtomicUsize::new(0);
        let number = UNPACKED.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let path = std::env::temp_dir().join(format!("firn-golden-{process}-{number}-{name}"));
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(len).unwrap();
        for (at, content) in runs {
            file.write_all_at(content, at).unwrap();
        }
        let description = String::from_utf8(read("txt")).unwrap();
        Self {
            path,
            description,
            _only: only,
        }
    }

    fn map(&self) -> Mapped {
        Mapped::open(&self.path, &MappedOptions::default()).unwrap()
    }

    fn open(&self, kind: PoolKind, log: LogKind) -> Pool<Mapped> {
        Pool::open(self.map(), &options(kind, log)).unwrap()
    }

    /// Both superblocks of the file; `None` for one that is not sound.
    fn superblocks(&self) -> [Option<Superblock>; 2] {
        let file = std::fs::File::open(&self.path).unwrap();
        SUPERBLOCKS.map(|at| {
            let mut bytes = [0; SUPERBLOCK_BYTES as usize];
            file.read_exact_at(&mut bytes, at.bytes()).unwrap();
            Superblock::decode(&bytes, at).ok()
        })
    }

    fn versions(&self) -> [Option<u32>; 2] {
        self.superblocks().map(|copy| copy.map(|copy| copy.version))
    }

    /// The pool's content according to the description, without the list of transactions.
    fn content(&self) -> &str {
        match self.description.strip_prefix("transactions: ") {
            Some(rest) => rest.split_once('\n').unwrap().1,
            None => &self.description,
        }
    }
}

impl Drop for Golden {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The state in which a pool was left.
#[derive(Clone, Copy, PartialEq)]
enum Left {
    Closed,
    Unclean,
    Active,
    Release,
    Migrating,
}

fn assert_sound(pool: &Pool<Mapped>, when: &str) {
    assert_eq!(pool.check().unwrap(), [], "{when}");
}

fn everything() -> CollectOptions {
    CollectOptions {
        target: 1.0,
        pages: PageSize::Small,
        ..CollectOptions::default()
    }
}

/// Opens golden pools of all versions, checks their content, and then uses them in every way.
fn live_on(name: &str, kind: PoolKind, log: LogKind, left: Left) {
    for version in VERSIONS {
        lives_on(version, name, kind, log, left);
    }
}

fn lives_on(version: u32, name: &str, kind: PoolKind, log: LogKind, left: Left) {
    let golden = Golden::unpack(&format!("v{version}-{name}"));
    let raw = log == LogKind::Undo;
    let version = Some(version);
    assert_eq!(golden.versions().into_iter().flatten().max(), version);
    if left == Left::Closed {
        let only = Mapped::open_read_only(&golden.path, &MappedOptions::default()).unwrap();
        let only = Pool::open_read_only(only, "golden").unwrap();
        assert_sound(&only, "read only");
        // Places of raw objects are only for openers that may store.
        let described = describe(&only, false).unwrap();
        assert!(golden.content().starts_with(&described), "{described}");
        drop(only);
        assert_eq!(golden.versions().into_iter().flatten().max(), version);
    }
    let pool = golden.open(kind, log);
    assert_eq!(golden.versions(), [Some(FORMAT_VERSION); 2]);
    assert_eq!(pool.has_open_cycle(), left == Left::Active);
    if left == Left::Migrating {
        assert!(pool.register::<content::Thing>().is_err());
        let migrated = pool.migrate(turned).unwrap();
        assert!(
            0 < migrated && migrated < content::THINGS as u64,
            "{migrated}"
        );
    }
    assert_sound(&pool, "opened");
    assert_eq!(describe(&pool, raw).unwrap(), golden.content());
    goes_on(&golden, pool, kind, log);
}

/// Transactions, a collection, a close, each followed by a check of everything; then the things migrate.
fn goes_on(golden: &Golden, pool: Pool<Mapped>, kind: PoolKind, log: LogKind) {
    let raw = log == LogKind::Undo;
    let mut session = pool.session().unwrap();
    for (writer, number) in [(0, 20), (1, 21), (0, 22), (1, 23), (0, 24)] {
        match raw {
            true => write_raw(&pool, &mut session, writer, number).unwrap(),
            false => write(&mut session, writer, number).unwrap(),
        }
    }
    drop(session);
    let written = describe(&pool, raw).unwrap();
    assert_ne!(written, golden.content());
    assert_sound(&pool, "written to");
    if kind == PoolKind::Explicit || log == LogKind::Redo {
        let collected = pool.collect(&everything()).unwrap();
        assert!(collected.moved > 0);
        assert!(!pool.has_open_cycle());
    }
    assert_sound(&pool, "collected");
    assert_eq!(describe(&pool, raw).unwrap(), written);
    pool.close().unwrap();
    assert_eq!(golden.versions(), [Some(FORMAT_VERSION); 2]);
    let pool = golden.open(kind, log);
    assert_sound(&pool, "opened again");
    assert_eq!(describe(&pool, raw).unwrap(), written);
    if log == LogKind::Redo {
        pool.migrate(turned).unwrap();
        assert_eq!(version_of_things(&pool), 2);
        assert_eq!(describe(&pool, raw).unwrap(), written);
        assert_sound(&pool, "migrated");
    }
    pool.close().unwrap();
}

/// The version of the type that all things have.
fn version_of_things(pool: &Pool<Mapped>) -> u32 {
    let statistics = firn_heap::Statistics::read(pool.medium()).unwrap();
    let TypeDescriptor { name, .. } = content::Thing::DESCRIPTOR;
    let things = statistics
        .types
        .into_iter()
        .filter(|known| known.name == *name);
    let things: Vec<_> = things.filter(|known| known.objects > 0).collect();
    assert_eq!(things.len(), 1, "{things:?}");
    things[0].version
}

#[test]
fn a_traced_pool_lives_on() {
    use Left::*;
    for (state, left) in [
        ("closed", Closed),
        ("unclean", Unclean),
        ("active", Active),
        ("release", Release),
        ("migrating", Migrating),
    ] {
        live_on(
            &format!("traced-redo-{state}"),
            PoolKind::Traced,
            LogKind::Redo,
            left,
        );
    }
}

#[test]
fn an_explicit_pool_lives_on() {
    use Left::*;
    for (state, left) in [
        ("closed", Closed),
        ("unclean", Unclean),
        ("active", Active),
        ("release", Release),
        ("migrating", Migrating),
    ] {
        live_on(
            &format!("explicit-redo-{state}"),
            PoolKind::Explicit,
            LogKind::Redo,
            left,
        );
    }
}

#[test]
fn an_explicit_pool_with_an_undo_log_lives_on() {
    use Left::*;
    for (state, left) in [
        ("closed", Closed),
        ("unclean", Unclean),
        ("active", Active),
        ("release", Release),
    ] {
        live_on(
            &format!("explicit-undo-{state}"),
            PoolKind::Explicit,
            LogKind::Undo,
            left,
        );
    }
}

#[test]
fn a_traced_pool_with_an_undo_log_lives_on() {
    for (state, left) in [("closed", Left::Closed), ("unclean", Left::Unclean)] {
        live_on(
            &format!("traced-undo-{state}"),
            PoolKind::Traced,
            LogKind::Undo,
            left,
        );
    }
}

/// The other log ends a cycle by other rules: pairs of words would still name the old places.
#[test]
fn a_pool_with_an_open_cycle_is_not_opened_with_another_log() {
    for (name, kind, other) in [
        ("v1-traced-redo-active", PoolKind::Traced, LogKind::Undo),
        ("v1-explicit-undo-active", PoolKind::Explicit, LogKind::Redo),
    ] {
        let golden = Golden::unpack(name);
        let refused = Pool::open(golden.map(), &options(kind, other));
        assert!(matches!(
            refused,
            Err(OpenError::Option {
                what: "the log",
                ..
            })
        ));
        assert_ne!(golden.versions(), [Some(FORMAT_VERSION); 2]);
    }
}

#[test]
fn a_pool_of_the_interface_of_libpmemobj_lives_on() {
    let states = ["closed", "unclean"].into_iter();
    for (state, version) in states.flat_map(|state| VERSIONS.map(move |version| (state, version))) {
        let golden = Golden::unpack(&format!("v{version}-pmemobj-{state}"));
        let found = golden.versions().into_iter().flatten().max();
        assert_eq!(found, Some(version));
        let pool = golden.open(PoolKind::Explicit, LogKind::Undo);
        assert_eq!(golden.versions(), [Some(FORMAT_VERSION); 2]);
        assert_sound(&pool, state);
        assert_eq!(pmemobj::describe(&pool), golden.content(), "{state}");
        pmemobj::reverse(&pool);
        let reversed = pmemobj::describe(&pool);
        assert!(
            reversed.contains("the first 1, the last 299,"),
            "{reversed}"
        );
        assert!(pool.collect(&everything()).unwrap().moved > 0);
        assert_sound(&pool, state);
        assert_eq!(pmemobj::describe(&pool), reversed);
        pool.close().unwrap();
        let pool = golden.open(PoolKind::Explicit, LogKind::Undo);
        assert_sound(&pool, state);
        assert_eq!(pmemobj::describe(&pool), reversed);
        pool.close().unwrap();
    }
}
