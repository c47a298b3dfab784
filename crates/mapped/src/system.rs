//! Facts that only the operating system knows: its boot, its clock, its randomness.

use core::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use rustix::rand::{GetRandomFlags, getrandom};
use rustix::system::sysinfo;
use rustix::time::{ClockId, clock_gettime};

/// Reads the identity of this boot.
pub(crate) fn boot_id() -> io::Result<[u8; 16]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    parse_boot_id(&text).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the kernel's boot id is no sequence of 32 hexadecimal digits",
        )
    })
}

fn parse_boot_id(text: &str) -> Option<[u8; 16]> {
    let mut id = [0; 16];
    let mut digits = 0;
    for digit in text.trim().chars().filter(|&c| c != '-') {
        let byte = id.get_mut(digits / 2)?;
        *byte = *byte << 4 | digit.to_digit(16)? as u8;
        digits += 1;
    }
    (digits == 32).then_some(id)
}

/// Bytes of memory that this process may use: those of the machine, or those that its control group allows, as it was when
/// somebody first asked.
pub(crate) fn usable_memory() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let machine = sysinfo();
        let machine = machine.totalram as u64 * u64::from(machine.mem_unit);
        allowed_memory().map_or(machine, |allowed| machine.min(allowed))
    })
}

/// The least limit of this process's control groups and of those around them, in both versions of the interface.
fn allowed_memory() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().filter_map(limit_of_group).min()
}

/// The least limit of a group, which is a line of `/proc/self/cgroup`, and of those around it.
fn limit_of_group(line: &str) -> Option<u64> {
    let (controllers, group) = line.split_once(':')?.1.split_once(":/")?;
    let (root, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return None,
    };
    let around = Path::new(group).ancestors();
    let limits = around.filter_map(|group| {
        let limit = std::fs::read_to_string(Path::new(root).join(group).join(file)).ok()?;
        limit.trim().parse().ok()
    });
    limits.min()
}

/// Nanoseconds of the monotonic clock.
pub(crate) fn now_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// CPU time of the calling thread, in nanoseconds.
pub(crate) fn cpu_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

fn clock_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The finaliser of splitmix64: turns a counter into a sequence that looks random.
pub(crate) fn scramble(counter: u64) -> u64 {
    let mut z = counter;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The step of splitmix64's counter: odd, so that it takes every value.
pub(crate) const SCRAMBLE_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A cheap generator, seeded by the system. It has a cache line of its own because threads share it.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Randomness(AtomicU64);

impl Randomness {
    pub(crate) fn seeded() -> io::Result<Self> {
        let mut seed = [0u8; 8];
        // A request of up to 256 bytes is never cut short.
        getrandom(&mut seed, GetRandomFlags::empty())?;
        Ok(Self(AtomicU64::new(u64::from_ne_bytes(seed))))
    }

    pub(crate) fn next(&self) -> u64 {
        scramble(self.0.fetch_add(SCRAMBLE_STEP, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_id_is_sixteen_bytes_of_hex() {
        let id = parse_boot_id("01234567-89ab-cdef-0011-223344556677\n").unwrap();
        assert_eq!(&id[..8], &[0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]);
        assert_eq!(&id[8..], &[0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77]);
        for bad in ["", "0123", "zz234567-89ab-cdef-0011-223344556677"] {
            assert_eq!(parse_boot_id(bad), None, "{bad:?}");
        }
        assert_eq!(parse_boot_id(&"0".repeat(33)), None);
    }

    #[test]
    fn random_words_differ() {
        let source = Randomness::seeded().unwrap();
        assert_ne!(source.next(), source.next());
    }
}
