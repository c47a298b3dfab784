//! Small file systems, for tests of a full or a read-only disk. The tests of other crates include this file by its
//! path.
#![allow(dead_code, reason = "each test uses its part")]

use std::fs::File;
use std::path::Path;
use std::process::Command;

use firn_mapped::{Disk, Part, SystemDisk};
use tempfile::TempDir;

/// A small file system, mounted while this value lives.
#[derive(Debug)]
pub struct SmallFileSystem {
    mount: TempDir,
    _image: Option<TempDir>,
}

impl SmallFileSystem {
    /// Mounts a tmpfs of `kib` KiB. `None`, with a message, if the tests do not run as root.
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

    /// Mounts an image of `kib` KiB made by `mkfs` (`mkfs.ext4`, `mkfs.ext2`, `mkfs.xfs` from 300 MiB on, `mkfs.btrfs`
    /// from 110). `None`, with a message, if the tests do not run as root.
    pub fn image(mkfs: &str, kib: u64) -> Option<Self> {
        let mount = mount_point()?;
        let folder = tempfile::tempdir().expect("a temporary directory");
        let image = folder.path().join("image");
        let file = std::fs::File::create(&image).expect("an image");
        file.set_len(kib << 10).expect("its length");
        let options: &[&str] = match mkfs {
            "mkfs.xfs" | "mkfs.btrfs" => &["-q", "-f"],
            _ => &["-q", "-b", "4096", "-m", "0"],
        };
        run(Command::new(mkfs).args(options).arg(&image));
        run(Command::new("mount")
            .args(["-o", "loop"])
            .arg(&image)
            .arg(mount.path()));
        Some(Self {
            mount,
            _image: Some(folder),
        })
    }

    /// Remounts it read-only.
    pub fn forbid_writing(&self) {
        run(Command::new("mount")
            .args(["-o", "remount,ro"])
            .arg(self.mount.path()));
    }

    /// Takes all remaining space.
    pub fn fill(&self) {
        use std::io::{Seek, SeekFrom, Write};
        for (number, piece) in [1 << 20, 4096, 4096].into_iter().enumerate() {
            let path = self.path().join(format!("ballast-{number}"));
            // The device is full when there is no space even for the file itself.
            let Ok(mut ballast) = File::create(path) else {
                break;
            };
            let len = allocate_all(&ballast);
            ballast.seek(SeekFrom::Start(len)).expect("a position");
            let piece = vec![1; piece];
            while ballast.write_all(&piece).is_ok() {}
            // By then the file may get space that the file system had reserved.
            let _ = ballast.sync_all();
        }
    }

    /// Gives back what [`SmallFileSystem::fill`] took.
    pub fn empty(&self) {
        for number in 0..3 {
            // Fewer files if the device was full at once.
            let _ = std::fs::remove_file(self.path().join(format!("ballast-{number}")));
        }
    }

    pub fn path(&self) -> &Path {
        self.mount.path()
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        // Lazily: another thread's child may still have files of this file system open, between its fork and its exec.
        let unmounted = Command::new("umount")
            .arg("-l")
            .arg(self.mount.path())
            .status();
        if !unmounted.is_ok_and(|status| status.success()) {
            // Keep the folder: removing it would empty the file system instead.
            self.mount.disable_cleanup(true);
        }
    }
}

/// Gives a file as many blocks as there are, where the file system can. Returns how long it is then.
fn allocate_all(file: &File) -> u64 {
    let mut len = 0;
    for step in [64 << 20, 1 << 20, 4096] {
        while SystemDisk
            .allocate((file, Part::Home), len..len + step)
            .is_ok()
        {
            len += step;
        }
    }
    len
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
