//! What several tests need: children of the test binary itself, and small file systems.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// Where a child finds the pool's path.
const CHILD_POOL: &str = "FIRN_TEST_CHILD_POOL";

/// The pool's path, in a process that [`child`] started; nothing in the test runner's own process.
pub fn child_pool() -> Option<PathBuf> {
    std::env::var_os(CHILD_POOL).map(PathBuf::from)
}

/// A command that runs the test `name` of this very binary in another process, on `pool`.
pub fn child(name: &str, pool: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command.env(CHILD_POOL, pool);
    command.stdout(Stdio::piped());
    command
}

/// Starts the child and waits until it has printed a line that holds `word`.
pub fn start_until(mut command: Command, word: &str) -> Child {
    use std::io::{BufRead, BufReader};
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(
        lines.any(|line| line.unwrap().contains(word)),
        "the child ended without saying {word:?}"
    );
    // Reads on, so that the child is never stopped by a full or a broken pipe.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

/// A small file system, mounted while this lives.
pub struct SmallFileSystem {
    mount: TempDir,
    _image: Option<TempDir>,
}

impl SmallFileSystem {
    /// Mounts a tmpfs of `kib` KiB. `None`, with a message, where the tests do not run as root.
    pub fn tmpfs(kib: u64) -> Option<Self> {
        let mount = mount_point()?;
        let size = format!("size={kib}k");
        run(Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "none"])
            .arg(mount.path()));
        Some(Self {
            mount,
            _image: None,
        })
    }

    /// Mounts an image of `kib` KiB that `mkfs` made (`mkfs.ext4`, `mkfs.ext2`). `None`, with a
    /// message, where the tests do not run as root.
    pub fn image(mkfs: &str, kib: u64) -> Option<Self> {
        let mount = mount_point()?;
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        let file = std::fs::File::create(&image).unwrap();
        file.set_len(kib << 10).unwrap();
        run(Command::new(mkfs)
            .args(["-q", "-b", "4096", "-m", "0"])
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

    /// Mounts it anew for reading only.
    pub fn forbid_writing(&self) {
        run(Command::new("mount")
            .args(["-o", "remount,ro"])
            .arg(self.mount.path()));
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
    let root = Command::new("id").arg("-u").output().unwrap();
    if root.stdout != b"0\n" {
        println!("SKIPPED: mounting a small file system needs root");
        return None;
    }
    Some(tempfile::tempdir().unwrap())
}

fn run(command: &mut Command) {
    let output = command.output().expect("mount and e2fsprogs are installed");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
