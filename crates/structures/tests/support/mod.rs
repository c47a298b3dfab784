//! What the tests share: pools, and a generator of numbers.
#![allow(dead_code, reason = "each test uses a part")]

pub mod model;

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use firn_heap::{Pool, PoolOptions};
use firn_mapped::{Mapped, MappedOptions};

/// An anonymous pool.
pub fn pool() -> Pool<Mapped> {
    let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
    Pool::create(medium, &PoolOptions::new("test")).unwrap()
}

/// Numbers from a seed (xorshift64*).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 16) % limit
    }
}

/// Bytes that differ from each other, most of them few.
pub fn random_bytes(random: &mut Random) -> Vec<u8> {
    let len = match random.below(12) {
        0 => 0,
        1 => 600 + random.below(300),
        2 => 128,
        _ => random.below(40),
    };
    let first = random.next();
    (0..len).map(|i| (first.wrapping_add(i)) as u8).collect()
}

/// Whether a key lies within bounds.
pub fn same_bounds(bounds: &(Bound<Vec<u8>>, Bound<Vec<u8>>), key: &[u8]) -> bool {
    let above = match &bounds.0 {
        Bound::Included(start) => key >= &start[..],
        Bound::Excluded(start) => key > &start[..],
        Bound::Unbounded => true,
    };
    let below = match &bounds.1 {
        Bound::Included(end) => key <= &end[..],
        Bound::Excluded(end) => key < &end[..],
        Bound::Unbounded => true,
    };
    above && below
}

/// A file that is gone when the test ends.
pub struct TempFile(PathBuf);

impl TempFile {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("firn-structures-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
