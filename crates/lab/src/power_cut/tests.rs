//! Does the disk lose, tear and reorder what is not durable, and nothing else?

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use firn_mapped::{Disk, Durability, Part};

use super::journal::{Event, Files, Journal, read};
use super::sectors::{Manner, Sectors};
use super::{BLOCK, CachingDisk, PowerFailures, SECTOR, Syncs, cut_power};

const LATER: Durability = Durability::WithNextSync;
const CUTS: u64 = 200;

/// A pool's files, each of some blocks, filled with `0`, all of it durable; and a program that writes to them.
struct Program {
    folder: tempfile::TempDir,
    home: File,
    log: File,
    disk: CachingDisk,
}

/// The pool's file, the log, and what the power failure did.
type Cut = (Vec<u8>, Vec<u8>, PowerFailures);

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(name)
}

impl Program {
    fn with(syncs: Syncs) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let of = |name| path(folder.path(), name);
        for name in ["home", "log"] {
            std::fs::write(of(name), vec![b'0'; 8 * BLOCK as usize]).unwrap();
        }
        let open = |name| File::options().read(true).write(true).open(of(name));
        Self {
            home: open("home").unwrap(),
            log: open("log").unwrap(),
            disk: CachingDisk::new(&of("disk"), &of("home"), syncs).unwrap(),
            folder,
        }
    }

    fn honest() -> Self {
        Self::with(Syncs::Honest)
    }

    fn on(&self, part: Part) -> (&File, Part) {
        match part {
            Part::Log => (&self.log, part),
            Part::Home => (&self.home, part),
        }
    }

    /// Fills a range of blocks.
    fn fill(&self, part: Part, (from, to): (u64, u64), with: u8, durability: Durability) {
        let bytes = vec![with; ((to - from) * BLOCK) as usize];
        let written = self
            .disk
            .write(self.on(part), from * BLOCK, &bytes, durability);
        assert_eq!(written.unwrap() as u64, (to - from) * BLOCK);
    }

    /// What some power failures leave of both files, and what they say that they did.
    fn cuts(&self) -> Vec<Cut> {
        let of = |name| path(self.folder.path(), name);
        let one = |seed| {
            let image = tempfile::tempdir_in(self.folder.path()).unwrap();
            let copy = |name| {
                let to = path(image.path(), name);
                std::fs::copy(of(name), &to).unwrap();
                to
            };
            let [home, log, journal] = ["home", "log", "disk"].map(copy);
            let did = cut_power(&journal, &home, &log, &mut Rng::with_seed(seed)).unwrap();
            assert!(!journal.exists());
            let log = std::fs::read(log).unwrap_or_default();
            (std::fs::read(home).unwrap(), log, did)
        };
        (0..CUTS).map(one).collect()
    }
}

/// The first byte of each sector, all of whose bytes are equal.
fn sectors(of: &[u8]) -> Vec<u8> {
    of.chunks(SECTOR as usize)
        .map(|sector| {
            assert!(sector.iter().all(|byte| *byte == sector[0]));
            sector[0]
        })
        .collect()
}

fn all(of: &[u8], is: u8) -> bool {
    of.iter().all(|byte| *byte == is)
}

#[test]
fn what_is_not_durable_is_lost_torn_and_out_of_order() {
    let program = Program::honest();
    program.fill(Part::Home, (0, 4), b'1', LATER);
    program.fill(Part::Home, (2, 6), b'2', LATER);
    let cuts = program.cuts();
    let home: Vec<Vec<u8>> = cuts.iter().map(|(home, ..)| sectors(home)).collect();
    let per_block = (BLOCK / SECTOR) as usize;
    let block = |of: &[u8], number: usize| of[number * per_block..][..per_block].to_vec();
    for home in &home {
        for number in 0..8 {
            let may_be: &[u8] = match number {
                0 | 1 => b"01",
                2 | 3 => b"012",
                4 | 5 => b"02",
                _ => b"0",
            };
            assert!(block(home, number).iter().all(|byte| may_be.contains(byte)));
        }
    }
    let some = |what: &dyn Fn(&[u8]) -> bool| home.iter().any(|home| what(home));
    assert!(some(&|home| all(home, b'0')), "nothing arrives");
    assert!(some(
        &|home| all(&block(home, 0), b'1') && all(&block(home, 3), b'2')
    ));
    assert!(
        some(&|home| all(&block(home, 0), b'0') && all(&block(home, 4), b'2')),
        "the second write arrives without the first"
    );
    assert!(
        some(&|home| block(home, 2).contains(&b'1')),
        "an older content"
    );
    let kinds = |of: &[u8]| of.iter().collect::<BTreeSet<_>>().len();
    assert!(some(&|home| kinds(&block(home, 0)) == 2), "a torn block");
    assert!(some(&|home| kinds(&block(home, 2)) == 3), "torn in three");
    for (home, (.., did)) in home.iter().zip(&cuts) {
        assert_eq!((did.failures, did.with_writes), (1, 1));
        assert_eq!(did.sectors(), 6 * per_block as u64);
        let torn = (0..6).filter(|&number| kinds(&block(home, number)) > 1);
        assert_eq!(did.torn_blocks, torn.count() as u64);
        let lost = home[..6 * per_block].iter().filter(|byte| **byte == b'0');
        assert_eq!(did.lost, lost.count() as u64);
    }
}

#[test]
fn what_is_durable_stays_whatever_else_is_lost() {
    let program = Program::honest();
    program.fill(Part::Log, (0, 2), b'1', LATER);
    program.fill(Part::Home, (0, 2), b'1', LATER);
    program.disk.sync(program.on(Part::Home)).unwrap();
    program.fill(Part::Home, (4, 5), b'2', Durability::AtOnce);
    program.fill(Part::Home, (1, 3), b'3', LATER);
    // Nothing that was on its way to a durable sector arrives later.
    program.fill(Part::Home, (6, 7), b'4', LATER);
    program.fill(Part::Home, (6, 7), b'5', Durability::AtOnce);
    let (mut lost, mut log_lost) = (0, 0);
    for (home, log, _) in program.cuts() {
        let block =
            |of: &[u8], number: usize| of[number * BLOCK as usize..][..BLOCK as usize].to_vec();
        assert!(all(&block(&home, 0), b'1') && all(&block(&home, 4), b'2'));
        assert!(all(&block(&home, 6), b'5'));
        assert!(block(&home, 1).iter().all(|byte| b"13".contains(byte)));
        lost += u64::from(block(&home, 2).contains(&b'0'));
        log_lost += u64::from(block(&log, 0).contains(&b'0'));
    }
    assert!(lost > 0 && log_lost > 0, "a sync is of one file");
}

#[test]
fn an_empty_cache_loses_nothing() {
    let program = Program::honest();
    program.fill(Part::Home, (0, 2), b'1', LATER);
    program
        .disk
        .punch(program.on(Part::Home), 0..BLOCK)
        .unwrap();
    program.fill(Part::Log, (3, 4), b'2', Durability::AtOnce);
    program.disk.sync(program.on(Part::Home)).unwrap();
    let (_, events) = read(&path(program.folder.path(), "disk")).unwrap().unwrap();
    assert!(
        events.is_empty(),
        "a cache without anything in it is bounded"
    );
    for (home, log, did) in program.cuts() {
        assert!(home == std::fs::read(path(program.folder.path(), "home")).unwrap());
        assert!(log == std::fs::read(path(program.folder.path(), "log")).unwrap());
        assert_eq!((did.sectors(), did.with_writes), (0, 0));
    }
}

#[test]
fn a_disk_that_lies_loses_what_it_called_durable() {
    let program = Program::with(Syncs::Lie);
    program.fill(Part::Home, (0, 1), b'1', LATER);
    program.disk.sync(program.on(Part::Home)).unwrap();
    program.fill(Part::Log, (0, 1), b'2', Durability::AtOnce);
    let cuts = program.cuts();
    assert!(cuts.iter().any(|(home, ..)| home[0] == b'0'));
    assert!(cuts.iter().any(|(_, log, _)| log[0] == b'0'));
}

#[test]
fn lengths_that_are_not_durable_are_lost_or_not() {
    let (program, grown) = (Program::honest(), 12 * BLOCK);
    // Past the disk, as a program that allocates blocks does.
    program.home.set_len(grown).unwrap();
    program.fill(Part::Home, (11, 12), b'1', LATER);
    program
        .disk
        .set_len(program.on(Part::Log), 2 * BLOCK)
        .unwrap();
    let cuts = program.cuts();
    let lengths = |of: &dyn Fn(&Cut) -> usize| {
        let lengths = cuts.iter().map(|cut| of(cut) as u64 / BLOCK);
        lengths.collect::<BTreeSet<_>>()
    };
    let homes = lengths(&|(home, ..)| home.len());
    assert!(homes.contains(&8) && homes.contains(&12) && homes.len() > 2);
    let logs = lengths(&|(_, log, _)| log.len());
    assert!(logs.contains(&2) && logs.contains(&8));
    let whole = cuts
        .iter()
        .filter(|(_, log, _)| log.len() as u64 == 8 * BLOCK);
    let mut whole = whole.map(|(_, log, _)| all(log, b'0'));
    assert!(whole.any(|whole| whole), "what was cut off is back");
    program.disk.sync(program.on(Part::Home)).unwrap();
    program.disk.sync(program.on(Part::Log)).unwrap();
    for (home, log, _) in program.cuts() {
        assert_eq!((home.len() as u64, log.len() as u64), (grown, 2 * BLOCK));
    }
}

#[test]
fn a_new_log_may_have_no_name_until_its_first_durable_write() {
    let program = Program::honest();
    program.log.set_len(0).unwrap();
    program.fill(Part::Log, (0, 2), b'1', LATER);
    program.disk.sync(program.on(Part::Log)).unwrap();
    assert!(program.cuts().iter().any(|(_, log, _)| log.is_empty()));
    program.fill(Part::Log, (0, 1), b'2', Durability::AtOnce);
    assert!(program.cuts().iter().all(|(_, log, _)| log[0] == b'2'));
}

#[test]
fn what_the_system_refuses_is_not_on_its_way() {
    let journal = tempfile::NamedTempFile::new().unwrap();
    let mut notes = Journal::create(journal.path(), &Files::default()).unwrap();
    let write = |number, new| Event::Write {
        number,
        part: Part::Home,
        at: 0,
        len: SECTOR,
        old: None,
        new,
    };
    let bytes = [b'1'; SECTOR as usize];
    notes.add(&write(0, Some(&bytes[..])));
    notes.add(&write(1, None));
    notes.add(&Event::Withdrawn { number: 1 });
    notes.say(&Files::default()).unwrap();
    let (_, events) = read(journal.path()).unwrap().unwrap();
    assert_eq!(events.len(), 3);
    assert_eq!(events[2], Event::Withdrawn { number: 1 });
    let mut sectors = Sectors::default();
    sectors.begin(0, (0, SECTOR), None, Some(&bytes));
    sectors.begin(1, (0, SECTOR), Some(&bytes), None);
    sectors.withdraw(1);
    let drawn = sectors.draw(Manner::Everything, &mut Rng::with_seed(1));
    assert_eq!(drawn[0].content.as_deref(), Some(&bytes));
}

/// A program that is killed in the middle of a note leaves bytes behind those that count.
#[test]
fn half_a_note_is_none() {
    let program = Program::honest();
    program.fill(Part::Home, (0, 1), b'1', LATER);
    let journal = path(program.folder.path(), "disk");
    let whole = read(&journal).unwrap();
    let bytes = std::fs::read(&journal).unwrap();
    for half in [&b"\x01"[..], &bytes[32..][..40], &bytes[32..]] {
        std::fs::write(&journal, [&bytes, half].concat()).unwrap();
        assert_eq!(read(&journal).unwrap(), whole);
    }
    std::fs::write(&journal, &bytes[..bytes.len() - 1]).unwrap();
    assert!(read(&journal).is_err(), "notes that count are there");
    std::fs::write(&journal, &bytes[..8]).unwrap();
    assert_eq!(read(&journal).unwrap(), None);
}

/// A write that was noted and not done: what the file holds of it is not looked at.
#[test]
fn a_write_that_was_cut_short_is_any_of_its_sectors() {
    let program = Program::honest();
    program.fill(Part::Home, (0, 1), b'1', LATER);
    let home = path(program.folder.path(), "home");
    let mut half = std::fs::read(&home).unwrap();
    half[700..BLOCK as usize].fill(b'0');
    std::fs::write(&home, half).unwrap();
    for (home, ..) in program.cuts() {
        assert!(sectors(&home).iter().all(|byte| b"01".contains(byte)));
    }
}
