//! Is a backup of a pool that a program writes to a whole pool, with what was acknowledged, and nothing half?

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use firn_heap::collector::{CollectOptions, CollectorOptions, PageSize};
use firn_heap::{Error, Pool, PoolOptions};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::Domain;
use firn_structures::Map;

use crate::support::{Folder, command, firn, json};

/// Tells a run of this program that it is the one that writes.
const WRITER: &str = "FIRN_BACKUP_WRITER";
/// Entries that are there at a time: each transaction adds one and removes the oldest.
const WINDOW: u64 = 150;
const NEWEST: &[u8] = b"newest";

fn options() -> MappedOptions {
    let mut options = MappedOptions::default().domain(Domain::Logged);
    // Small, so that it goes home, wraps around and grows while the test runs.
    options.log.initial_bytes = 1 << 20;
    options.log.bound_bytes = 4 << 20;
    options
}

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Sometimes large, so that the pool grows, and can be cut again.
fn value(number: u64) -> Vec<u8> {
    let words = match number / 200 % 2 {
        0 => 1 + number % 24,
        _ => 1 + number % 7 * 800,
    };
    number.to_le_bytes().repeat(words as usize)
}

fn create(path: &Path) -> Pool<Mapped> {
    let medium = Mapped::create(path, 0, &options()).unwrap();
    let pool = Pool::create(medium, &PoolOptions::new("backup")).unwrap();
    let mut session = pool.session().unwrap();
    let created = session.transaction(|tx| {
        let mut map = Map::create(tx, "map")?;
        map.insert(NEWEST, &0u64.to_le_bytes()).map(|_| ())
    });
    created.unwrap();
    drop(session);
    pool
}

fn write(session: &mut firn_heap::Session<Mapped>, number: u64) {
    let written = session.transaction(|tx| {
        let mut map = Map::open(tx, "map")?;
        map.insert(&key(number), &value(number))?;
        map.insert(NEWEST, &number.to_le_bytes())?;
        if number > WINDOW {
            assert!(map.remove(&key(number - WINDOW))?);
        }
        Ok::<_, Error>(())
    });
    written.unwrap();
}

/// The number of the newest transaction in a closed pool, which holds all before it and nothing else.
fn newest_in(path: &Path) -> u64 {
    let medium = Mapped::open_read_only(path, &MappedOptions::default()).unwrap();
    let pool = Pool::open_read_only(medium, "backup").expect("it is closed");
    assert_eq!(pool.check().unwrap(), []);
    let mut session = pool.session().unwrap();
    session.read(|view| {
        let map = Map::open(view, "map").unwrap();
        let newest = map.get(NEWEST).unwrap().unwrap();
        let newest = u64::from_le_bytes(newest.try_into().unwrap());
        let oldest = (newest + 1).saturating_sub(WINDOW).max(1);
        for number in oldest..=newest {
            let found = map.get(&key(number)).unwrap();
            assert!(found == Some(value(number)), "{number} of {newest}");
        }
        assert_eq!(map.len().unwrap(), newest + 2 - oldest);
        newest
    })
}

/// Writes until it is killed, and says so after each transaction.
#[test]
fn writer() {
    let Some(path) = std::env::var_os(WRITER) else {
        return;
    };
    let medium = Mapped::open(Path::new(&path), &options()).unwrap();
    let pool = Pool::open(medium, &PoolOptions::new("backup")).unwrap();
    let eager = CollectorOptions {
        trigger: 1.01,
        least_bytes: 0,
        collect: CollectOptions {
            target: 1.0,
            pages: PageSize::Small,
            ..CollectOptions::default()
        },
        ..CollectorOptions::default()
    };
    let _collector = pool.start_collector(&eager).unwrap();
    let mut session = pool.session().unwrap();
    let newest = session.read(|view| Map::open(view, "map").unwrap().get(NEWEST).unwrap());
    let newest = u64::from_le_bytes(newest.unwrap().try_into().unwrap());
    for number in newest + 1.. {
        write(&mut session, number);
        println!("written {number}");
    }
}

/// The child that writes, and what it has said.
struct Writer {
    child: Child,
    acknowledged: Arc<AtomicU64>,
}

impl Writer {
    fn start(pool: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["backup::writer", "--exact", "--nocapture"])
            .env(WRITER, pool)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let acknowledged = Arc::new(AtomicU64::new(0));
        let said = Arc::clone(&acknowledged);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some(number) = line.strip_prefix("written ") {
                    said.store(number.parse().unwrap(), Ordering::SeqCst);
                }
            }
        });
        let writer = Self {
            child,
            acknowledged,
        };
        writer.wait_for(1);
        writer
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// Waits until `more` further transactions are acknowledged.
    fn wait_for(&self, more: u64) {
        let (least, begun) = (self.acknowledged() + more, Instant::now());
        while self.acknowledged() < least {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "the writer stands still"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn backups_of_a_pool_in_use_hold_what_was_acknowledged() {
    let folder = Folder::new();
    let (path, copy) = (folder.path("pool"), folder.path("copy"));
    let (pool, new) = (folder.arg("pool"), folder.arg("copy"));
    drop(create(&path));
    let writer = Writer::start(&path);
    for _ in 0..20 {
        writer.wait_for(40);
        let least = writer.acknowledged();
        let report = json(&["backup", &pool, &new]);
        assert_eq!(report["recovered"], true, "{report}");
        let newest = newest_in(&copy);
        assert!(
            newest >= least,
            "{least} were acknowledged, {newest} are there"
        );
        assert!(!folder.path("copy.firn-log").exists());
        std::fs::remove_file(&copy).unwrap();
    }
    assert!(writer.acknowledged() > 1000, "the writer comes along");
    // The pool itself is as sound as before, and so is what the collections in a copy say.
    assert_eq!(firn(&["backup", &pool, &new]).status, 0);
    assert_eq!(firn(&["check", &new]).status, 0);
    let checked = firn(&["check", &pool]);
    assert_eq!(checked.status, 2, "{}", checked.out);
    assert!(checked.err.contains("pool.firn-log: ok"), "{}", checked.err);
    let least = writer.acknowledged();
    drop(writer);
    // Left by a crash: neither file changes.
    let files = || ["pool", "pool.firn-log"].map(|name| std::fs::read(folder.path(name)).unwrap());
    let before = files();
    let report = json(&["backup", &pool, &folder.arg("left")]);
    assert!(report["bytes"].as_u64() > Some(0), "{report}");
    assert!(before == files());
    assert!(newest_in(&folder.path("left")) >= least);
    assert_eq!(firn(&["check", &pool]).status, 0);
    assert_eq!(newest_in(&path), newest_in(&folder.path("left")));
    // No log of the pool is accepted beside a backup.
    std::fs::write(folder.path("copy.firn-log"), &before[1]).unwrap();
    let foreign = firn(&["check", &new]);
    assert_eq!(foreign.status, 1);
    assert!(
        foreign.out.contains("is not this file's"),
        "{}",
        foreign.out
    );
    // Closed.
    let report = json(&["backup", &pool, &folder.arg("closed")]);
    assert_eq!(report["recovered"], false, "{report}");
    assert_eq!(newest_in(&folder.path("closed")), newest_in(&path));
}

/// Kills backups, and programs in the middle of them.
#[test]
fn a_killed_backup_lets_go_and_a_killed_program_is_backed_up() {
    let folder = Folder::new();
    let (path, copy) = (folder.path("pool"), folder.path("copy"));
    let (pool, new) = (folder.arg("pool"), folder.arg("copy"));
    drop(create(&path));
    let (mut killed, mut random) = (0, fastrand::Rng::with_seed(7));
    let begin = || {
        let mut backup = command(&["backup", &pool, &new]);
        backup.stdout(Stdio::null()).spawn().unwrap()
    };
    let mut writer = Writer::start(&path);
    for _ in 0..10 {
        let mut backup = begin();
        std::thread::sleep(Duration::from_millis(random.u64(1..60)));
        backup.kill().unwrap();
        killed += u64::from(!backup.wait().unwrap().success());
        // More than the log holds, so that it goes home meanwhile.
        writer.wait_for(250);
        if copy.exists() {
            newest_in(&copy);
            std::fs::remove_file(&copy).unwrap();
        }
    }
    assert!(killed > 3, "{killed} were killed");
    for _ in 0..6 {
        let least = writer.acknowledged();
        let mut backup = begin();
        std::thread::sleep(Duration::from_millis(random.u64(1..30)));
        drop(writer);
        assert!(backup.wait().unwrap().success());
        assert!(newest_in(&copy) >= least);
        std::fs::remove_file(&copy).unwrap();
        writer = Writer::start(&path);
    }
}

#[test]
fn a_pool_in_use_without_a_log_is_refused_with_the_way_out() {
    let folder = Folder::new();
    let medium = Mapped::create(
        folder.path("pool"),
        0,
        &MappedOptions::default().domain(Domain::Process),
    )
    .unwrap();
    let pool = Pool::create(medium, &PoolOptions::new("process")).unwrap();
    let (path, new) = (folder.arg("pool"), folder.arg("copy"));
    let refused = firn(&["backup", &path, &new]);
    assert_eq!(refused.status, 2);
    for words in ["in use", "firn convert --domain logged", "Pool::copy_into"] {
        assert!(refused.err.contains(words), "{}", refused.err);
    }
    assert_eq!(std::fs::read_dir(folder.0.path()).unwrap().count(), 1);
    // Left open by a program that died while the machine went on, it is whole.
    pool.abandon();
    assert_eq!(firn(&["backup", &path, &new]).status, 0);
    assert_eq!(firn(&["check", &new]).status, 0);
    for there in [&path, &new] {
        let refused = firn(&["backup", &path, there]);
        assert_eq!(refused.status, 2, "{}", refused.out);
        assert!(refused.err.contains("already exists"), "{}", refused.err);
    }
}
