//! Bytes that a block device writes until everything is home.

use std::path::Path;

use firn_media::Level;
use firn_tools::Progress;

use super::super::BenchError;
use super::super::rival::Rival;
use super::inserts::database;
use super::place::Device;
use super::pools::{self, Writer};
use super::report::{FIRN, Key, Rows};
use super::workload::{Digest, Value, Zipf, key, value};
use super::{BATCH, DurableOptions, LOGGED};

/// The part, and the work.
pub(super) const VOLUME: &str = "durable_volume";
pub(super) const WRITTEN: &str = "written by the device, insertions and updates";

/// Bytes of the device: for an empty database, which may have large files, and for each entry.
const DEVICE_BYTES: u64 = 1 << 30;
const DEVICE_BYTES_PER_ENTRY: u64 = 8 << 10;
/// Times that it is measured at most: what is written hardly varies.
const MOST_ROUNDS: usize = 3;
const SEED: u64 = 1;
const MIB: f64 = (1 << 20) as f64;

const ROW: Key<'static> = Key {
    part: VOLUME,
    system: FIRN,
    medium: LOGGED,
    level: "sync",
    what: WRITTEN,
    unit: "MiB",
};

fn bytes(options: &DurableOptions) -> u64 {
    DEVICE_BYTES + options.entries * DEVICE_BYTES_PER_ENTRY
}

/// Finds out whether bytes can be counted here.
///
/// Errors: why not.
pub(super) fn probe(options: &DurableOptions, folder: &Path) -> Result<(), BenchError> {
    Device::probe(folder.join("probe"), bytes(options))
}

/// Measures Firn and the rivals, each on a fresh file system.
pub(super) fn measure(
    options: &DurableOptions,
    folder: &Path,
    (rows, progress): (&mut Rows, &mut dyn Progress),
) -> Result<(), BenchError> {
    let rounds = options.rounds.min(MOST_ROUNDS);
    let steps = rounds * (1 + options.rivals.len());
    progress.begin("bytes written", Some(steps as u64));
    for _ in 0..rounds {
        let device = Device::make(folder.join("device"), bytes(options))?;
        let before = device.written()?;
        let digest = firn(device.folder(), options.entries)?;
        rows.add(ROW, (device.written()? - before) as f64 / MIB, "");
        drop(device);
        progress.advance(1);
        for source in &options.rivals {
            let device = Device::make(folder.join("device"), bytes(options))?;
            let mut rival = Rival::start(source, device.folder())?;
            let before = device.written()?;
            let volume = rival.volume(options.entries, BATCH, SEED)?;
            // Its files are closed, and go after they were counted.
            let written = device.written()? - before;
            if volume.digest != digest.0 {
                let system = rival.name.clone();
                return Err(BenchError::Differs { system });
            }
            rows.add(database(&rival, ROW), written as f64 / MIB, &volume.how);
            // The rival leaves the device before that is unmounted.
            drop(rival);
            drop(device);
            progress.advance(1);
        }
    }
    progress.end();
    Ok(())
}

/// Inserts, updates, closes. Returns what was written.
fn firn(folder: &Path, n: u64) -> Result<Digest, BenchError> {
    let pool = pools::create(&folder.join("volume"), Level::Sync, None)?;
    let mut writer = Writer::new(&pool)?;
    let mut digest = Digest::default();
    let mut put = |numbers: &mut dyn Iterator<Item = (u64, u64)>| -> Result<(), BenchError> {
        loop {
            let some = numbers.take(BATCH as usize);
            let some: Vec<(u64, Value)> =
                some.map(|(n, times)| (key(n), value(n, times))).collect();
            if some.is_empty() {
                return Ok(());
            }
            some.iter().for_each(|(key, value)| digest.add(*key, value));
            writer.commit(&some)?;
        }
    };
    put(&mut (0..n).map(|number| (number, 0)))?;
    let mut zipf = Zipf::new(n, SEED);
    put(&mut (1..=n).map(|update| (zipf.next(), update)))?;
    drop(writer);
    pool.close()?;
    Ok(digest)
}
