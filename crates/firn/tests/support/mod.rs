//! What several suites need: the program, a directory, pools, small file systems.
#![allow(dead_code, reason = "each suite uses its part")]

pub mod superblocks;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// Entries of a small pool.
pub const ENTRIES: usize = 500;

/// What a call of the program gave.
pub struct Called {
    pub status: i32,
    pub out: String,
    pub err: String,
}

/// Calls the program, and makes sure that it neither panicked nor died of a signal.
pub fn firn(arguments: &[&str]) -> Called {
    called(command(arguments).output().expect("the program starts"))
}

pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
    command.args(arguments);
    command
}

pub fn called(output: Output) -> Called {
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.signal(), None, "{err}");
    assert!(!err.contains("panicked"), "{err}");
    Called {
        status: output.status.code().expect("no signal"),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err,
    }
}

/// A directory and the paths in it.
pub struct Folder(pub TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A path as an argument.
    pub fn arg(&self, name: &str) -> String {
        self.path(name).to_str().expect("text").to_owned()
    }

    /// A closed pool of [`ENTRIES`] entries.
    pub fn pool(&self, name: &str) -> String {
        let pool = self.arg(name);
        let lines = self.path("lines");
        std::fs::write(&lines, lines_of(ENTRIES)).expect("written");
        let loaded = firn(&["load", &pool, lines.to_str().expect("text")]);
        assert_eq!(loaded.status, 0, "{}", loaded.err);
        pool
    }
}

/// Lines for `firn load`, with values of many lengths.
pub fn lines_of(entries: usize) -> String {
    (0..entries)
        .map(|i| format!("key-{i:06}\tvalue-{}{i}\n", "x".repeat(i % 300)))
        .collect()
}

/// A small file system, mounted while this lives.
pub struct SmallFileSystem {
    mount: TempDir,
    _image: Option<TempDir>,
}

impl SmallFileSystem {
    /// Mounts a tmpfs. `None`, with a message, where the tests do not run as root.
    pub fn tmpfs(mib: u64) -> Option<Self> {
        let mount = mount_point()?;
        let size = format!("size={mib}m");
        run(Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "none"])
            .arg(mount.path()));
        Some(Self {
            mount,
            _image: None,
        })
    }

    /// Mounts an image with ext4. `None`, with a message, where the tests do not run as root.
    pub fn ext4(mib: u64) -> Option<Self> {
        let mount = mount_point()?;
        let folder = tempfile::tempdir().expect("a temporary directory");
        let image = folder.path().join("image");
        let file = std::fs::File::create(&image).expect("an image");
        file.set_len(mib << 20).expect("its length");
        run(Command::new("mkfs.ext4")
            .args(["-q", "-m", "0"])
            .arg(&image));
        run(Command::new("mount")
            .args(["-o", "loop"])
            .arg(&image)
            .arg(mount.path()));
        Some(Self {
            mount,
            _image: Some(folder),
        })
    }

    pub fn path(&self) -> &Path {
        self.mount.path()
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.mount.path()).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            // Keeps the folder: removing it would empty the file system instead.
            self.mount.disable_cleanup(true);
        }
    }
}

fn mount_point() -> Option<TempDir> {
    let user = Command::new("id").arg("-u").output().expect("id runs");
    if user.stdout != b"0\n" {
        println!("SKIPPED: mounting a small file system needs root");
        return None;
    }
    Some(tempfile::tempdir().expect("a temporary directory"))
}

fn run(command: &mut Command) {
    let output = command.output().expect("mount and e2fsprogs are installed");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
