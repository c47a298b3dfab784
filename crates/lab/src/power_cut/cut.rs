//! The power failure itself: the cache is lost, and the files are as the disk has them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use fastrand::Rng;
use firn_mapped::Part;
use serde::Serialize;

use super::journal::{Event, PARTS, index_of, read};
use super::sectors::{Drawn, Fate, Manner, Sectors};
use super::{BLOCK, SECTOR};

/// What power failures came to.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub struct PowerFailures {
    /// Power failures.
    pub failures: u64,
    /// Those of them that found something on its way to the disk.
    pub with_writes: u64,
    /// Sectors of 512 bytes that were not durable and got the newest content.
    pub arrived: u64,
    /// Sectors that got a content that had been replaced on its way.
    pub older: u64,
    /// Sectors that kept what they had.
    pub lost: u64,
    /// Blocks of 4 KiB in which some sectors arrived and others did not.
    pub torn_blocks: u64,
    /// Files that are not as long as the program left them.
    pub other_lengths: u64,
}

impl PowerFailures {
    /// Sectors that were not durable.
    pub fn sectors(&self) -> u64 {
        self.arrived + self.older + self.lost
    }

    /// Those of two runs.
    pub fn and(self, other: Self) -> Self {
        Self {
            failures: self.failures + other.failures,
            with_writes: self.with_writes + other.with_writes,
            arrived: self.arrived + other.arrived,
            older: self.older + other.older,
            lost: self.lost + other.lost,
            torn_blocks: self.torn_blocks + other.torn_blocks,
            other_lengths: self.other_lengths + other.other_lengths,
        }
    }

    fn count(&mut self, drawn: &[Drawn<'_>]) {
        for block in drawn.chunk_by(|a, b| a.at / BLOCK == b.at / BLOCK) {
            let fates: Vec<Fate> = block.iter().filter_map(|sector| sector.fate).collect();
            for fate in &fates {
                match fate {
                    Fate::Arrived => self.arrived += 1,
                    Fate::Older => self.older += 1,
                    Fate::Lost => self.lost += 1,
                }
            }
            self.torn_blocks += u64::from(fates.iter().any(|fate| *fate != fates[0]));
        }
    }
}

/// Cuts the power of the disk whose journal is at `journal`, below the pool and its log. The program that wrote to it
/// is dead. The journal is removed.
///
/// Errors: what the system says. The files are then of no use.
pub fn cut_power(
    journal: &Path,
    pool: &Path,
    log: &Path,
    rng: &mut Rng,
) -> io::Result<PowerFailures> {
    let mut found = PowerFailures {
        failures: 1,
        ..PowerFailures::default()
    };
    let Some((files, events)) = read(journal)? else {
        return Ok(found);
    };
    let mut sectors: [Sectors; PARTS.len()] = Default::default();
    for event in events {
        match event {
            Event::Write {
                number,
                part,
                at,
                len,
                old,
                new,
            } => sectors[index_of(part)].begin(number, (at, len), old.as_deref(), new.as_deref()),
            Event::Durable { number } => sectors.iter_mut().for_each(|s| s.settle(number)),
            Event::Withdrawn { number } => sectors.iter_mut().for_each(|s| s.withdraw(number)),
        }
    }
    for (part, path) in [(Part::Log, log), (Part::Home, pool)] {
        let Some(durable_bytes) = files.durable_bytes[index_of(part)] else {
            continue;
        };
        if part == Part::Log && !files.log_is_named && rng.bool() {
            std::fs::remove_file(path)?;
            found.other_lengths += 1;
            continue;
        }
        let file = File::options().read(true).write(true).open(path)?;
        leave(
            &file,
            durable_bytes,
            &sectors[index_of(part)],
            rng,
            &mut found,
        )?;
    }
    found.with_writes = u64::from(found.sectors() > 0);
    std::fs::remove_file(journal)?;
    Ok(found)
}

/// Leaves a file as a power failure may.
fn leave(
    file: &File,
    durable_bytes: u64,
    sectors: &Sectors,
    rng: &mut Rng,
    found: &mut PowerFailures,
) -> io::Result<()> {
    let manner = Manner::draw(rng);
    let bytes = file.metadata()?.len();
    let left = length(manner, durable_bytes, bytes, rng);
    if left != bytes {
        file.set_len(left)?;
        found.other_lengths += 1;
    }
    let drawn = sectors.draw(manner, rng);
    found.count(&drawn);
    let mut now = [0; SECTOR as usize];
    for sector in &drawn {
        let wanted = sector.content.as_deref().unwrap_or(&[0; SECTOR as usize]);
        if sector.at + SECTOR > left {
            continue;
        }
        file.read_exact_at(&mut now, sector.at)?;
        if now != *wanted {
            file.write_all_at(wanted, sector.at)?;
        }
    }
    Ok(())
}

/// The length that a file keeps: the durable one, the newest one, or what it was on its way from one to the other.
fn length(manner: Manner, durable: u64, newest: u64, rng: &mut Rng) -> u64 {
    let (least, most) = (durable.min(newest), durable.max(newest));
    match (manner, rng.u8(0..4)) {
        (Manner::Nothing, _) | (_, 0) => durable,
        (Manner::Everything, _) | (_, 1 | 2) => newest,
        _ => (least + rng.u64(0..=most - least))
            .next_multiple_of(BLOCK)
            .min(most),
    }
}
