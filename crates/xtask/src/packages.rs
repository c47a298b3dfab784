//! What the suites need beyond Rust: packages of Debian.

use std::path::Path;
use std::process::{Command, Stdio};

/// A package and what it is for.
struct Package {
    name: &'static str,
    purpose: &'static str,
    /// A file or a program of any of these names stands for the package.
    found_by: &'static [&'static str],
}

const PACKAGES: [Package; 12] = [
    Package {
        name: "libpmemobj1",
        purpose: "the persistent heap that Firn is compared with",
        found_by: &["libpmemobj.so.1"],
    },
    Package {
        name: "libpmemobj-dev",
        purpose: "programs that are built against it and against Firn",
        found_by: &["libpmemobj.h"],
    },
    Package {
        name: "libsqlite3-0",
        purpose: "a database that durable pools are compared with",
        found_by: &["libsqlite3.so.0"],
    },
    Package {
        name: "e2fsprogs",
        purpose: "small file systems that fill up",
        found_by: &["mkfs.ext4"],
    },
    Package {
        name: "xfsprogs",
        purpose: "the same, of a kind that shares blocks between files",
        found_by: &["mkfs.xfs"],
    },
    Package {
        name: "btrfs-progs",
        purpose: "the same, of a kind that writes to new blocks each time",
        found_by: &["mkfs.btrfs"],
    },
    Package {
        name: "mount",
        purpose: "small file systems that fill up",
        found_by: &["mount"],
    },
    Package {
        name: "binutils",
        purpose: "a look at the assembly",
        found_by: &["objdump"],
    },
    Package {
        name: "gcc",
        purpose: "the linker that Rust calls",
        found_by: &["cc", "gcc"],
    },
    Package {
        name: "g++",
        purpose: "programs in C++ that use the heap",
        found_by: &["g++"],
    },
    Package {
        name: "clang",
        purpose: "the same programs, by a second compiler",
        found_by: &["clang++"],
    },
    Package {
        name: "pkgconf",
        purpose: "what compilers are told of the installed library",
        found_by: &["pkg-config"],
    },
];

const FOLDERS: [&str; 9] = [
    "/usr/include",
    "/usr/local/bin",
    "/usr/bin",
    "/usr/sbin",
    "/bin",
    "/sbin",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
];

impl Package {
    fn is_present(&self) -> bool {
        let mut places = FOLDERS.iter().flat_map(|folder| {
            self.found_by
                .iter()
                .map(|name| Path::new(folder).join(name))
        });
        places.any(|place| place.exists())
    }
}

/// Installs missing packages, where that is possible, and reports what it does. Prints nothing if none is missing.
pub fn provide() -> Result<(), String> {
    let missing: Vec<&Package> = PACKAGES.iter().filter(|p| !p.is_present()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for package in &missing {
        println!("xtask: missing: {} ({})", package.name, package.purpose);
    }
    let names: Vec<&str> = missing.iter().map(|p| p.name).collect();
    if !is_root() || !Path::new("/usr/bin/apt-get").exists() {
        let names = names.join(" ");
        println!("xtask: as root on Debian, this installs them: apt-get install {names}");
        println!("xtask: going on without; tests that need them say so");
        return Ok(());
    }
    apt_get(&["update", "-q"], &[])?;
    apt_get(&["install", "-q", "-y", "--no-install-recommends"], &names)
}

fn apt_get(arguments: &[&str], names: &[&str]) -> Result<(), String> {
    let mut command = Command::new("apt-get");
    command.args(arguments).args(names);
    command.env("DEBIAN_FRONTEND", "noninteractive");
    println!("xtask: {command:?}");
    let status = command.stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("apt-get {} failed: {status}", arguments[0])),
        Err(error) => Err(format!("apt-get cannot be started: {error}")),
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout == b"0\n")
}
