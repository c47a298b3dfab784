//! Where files lie: the file system of a folder, and a block device of its own whose writes are counted.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::BenchError;
use super::super::reopen::Folder;

/// The unit in which the kernel counts a device's writes.
const SECTOR_BYTES: u64 = 512;
/// Bytes that are written to find out whether the counter counts, and how many more it may show: a journal's.
const PROBE_BYTES: u64 = 4 << 20;
const PROBE_SLACK: u64 = 4 << 20;

/// A loop device on a file, with an ext4 of its own that is mounted. All of it goes with this value.
pub(super) struct Device {
    /// The folder with the image; removed last.
    _folder: Folder,
    mounted: PathBuf,
    device: PathBuf,
    counter: PathBuf,
}

impl Device {
    /// Makes a device of `bytes` bytes in a new folder.
    ///
    /// Errors: this user or machine has no loop devices, no ext4, or not enough space.
    pub(super) fn make(folder: PathBuf, bytes: u64) -> Result<Self, BenchError> {
        let (image, mounted) = (folder.join("image"), folder.join("mounted"));
        let made = std::fs::create_dir_all(&mounted);
        made.map_err(BenchError::io(format!("making {}", mounted.display())))?;
        let folder = Folder(folder);
        run("fallocate", &["-l", &bytes.to_string()], &[&image])?;
        // Nothing is left for the kernel to initialise later, which would be counted.
        let complete = ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
        run("mkfs.ext4", &complete, &[&image])?;
        let device = run("losetup", &["--find", "--show"], &[&image])?;
        let device = PathBuf::from(device.trim());
        let name = device.file_name().unwrap_or_default();
        let counter = Path::new("/sys/block").join(name).join("stat");
        let device = Self {
            _folder: folder,
            mounted,
            device,
            counter,
        };
        run(
            "mount",
            &["-o", "noatime"],
            &[&device.device, &device.mounted],
        )?;
        Ok(device)
    }

    /// The folder that the device is mounted on.
    pub(super) fn folder(&self) -> &Path {
        &self.mounted
    }

    /// Bytes that the device has written, after everything in its file system was synced.
    ///
    /// Errors: the counter cannot be read.
    pub(super) fn written(&self) -> Result<u64, BenchError> {
        run("sync", &["-f"], &[&self.mounted])?;
        let text = std::fs::read_to_string(&self.counter);
        let text = text.map_err(|e| problem(format!("{}: {e}", self.counter.display())))?;
        // Documentation/block/stat.rst: reads, merged, sectors, ticks, writes, merged, sectors.
        let sectors = text.split_whitespace().nth(6);
        let sectors: Option<u64> = sectors.and_then(|word| word.parse().ok());
        let sectors = sectors.ok_or_else(|| problem(format!("no sectors written in '{text}'")))?;
        Ok(sectors * SECTOR_BYTES)
    }

    /// Finds out whether the counter counts what is written, and nothing else.
    ///
    /// Errors: it does not.
    pub(super) fn probe(folder: PathBuf, bytes: u64) -> Result<(), BenchError> {
        let device = Self::make(folder, bytes)?;
        let before = device.written()?;
        let probe = vec![7; PROBE_BYTES as usize];
        let written = std::fs::write(device.mounted.join("probe"), probe);
        written.map_err(|e| problem(e.to_string()))?;
        let counted = device.written()? - before;
        if (PROBE_BYTES..=PROBE_BYTES + PROBE_SLACK).contains(&counted) {
            return Ok(());
        }
        Err(problem(format!(
            "of {PROBE_BYTES} bytes {counted} were counted"
        )))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // What is not undone here, the user has to undo.
        let _ = run("umount", &[], &[&self.mounted]);
        let _ = run("losetup", &["--detach"], &[&self.device]);
    }
}

fn problem(problem: String) -> BenchError {
    BenchError::Counting { problem }
}

/// Runs a program of the system. Returns what it says.
fn run(program: &str, words: &[&str], paths: &[&Path]) -> Result<String, BenchError> {
    let output = Command::new(program).args(words).args(paths).output();
    let output = output.map_err(|e| problem(format!("{program}: {e}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(problem(format!("{program}: {}", said.trim())))
}
