//! Common parts of the tests: pools, and a generator of numbers.
#![allow(dead_code, reason = "each test uses a part")]

pub mod model;
pub mod steps;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use firn_heap::{Pool, PoolKind, PoolOptions, Session};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::Domain;

/// An anonymous pool.
pub fn pool() -> Pool<Mapped> {
    let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
    Pool::create(medium, &PoolOptions::new("test")).unwrap()
}

/// An anonymous pool of a kind, with room for this many bytes.
pub fn limited_pool(kind: PoolKind, max_bytes: u64) -> Pool<Mapped> {
    let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
    let options = PoolOptions {
        kind,
        max_bytes: Some(max_bytes),
        ..PoolOptions::new("test")
    };
    Pool::create(medium, &options).unwrap()
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

/// Distinct bytes, most of them short.
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

/// A pool in a file, which is deleted when the test ends.
pub struct FilePool {
    file: TempFile,
    options: PoolOptions,
    pool: Pool<Mapped>,
    session: Session<Mapped>,
}

impl FilePool {
    /// A new pool of a kind.
    pub fn new(kind: PoolKind) -> Self {
        let options = PoolOptions {
            kind,
            ..PoolOptions::new("test")
        };
        let file = TempFile::new();
        let medium = Mapped::create(
            file.path(),
            16 << 20,
            &MappedOptions::default().domain(Domain::Process),
        )
        .unwrap();
        let pool = Pool::create(medium, &options).unwrap();
        let session = pool.session().unwrap();
        Self {
            file,
            options,
            pool,
            session,
        }
    }

    /// The pool, and a session of it.
    pub fn parts(&mut self) -> (&Pool<Mapped>, &mut Session<Mapped>) {
        (&self.pool, &mut self.session)
    }

    /// Closes the pool and opens it again.
    pub fn reopen(self) -> Self {
        let Self {
            file,
            options,
            pool,
            session,
        } = self;
        drop(session);
        pool.close().unwrap();
        let medium = Mapped::open(file.path(), &MappedOptions::default()).unwrap();
        let pool = Pool::open(medium, &options).unwrap();
        let session = pool.session().unwrap();
        Self {
            file,
            options,
            pool,
            session,
        }
    }
}

/// A file that is deleted on drop.
struct TempFile(PathBuf);

impl TempFile {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("firn-structures-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
