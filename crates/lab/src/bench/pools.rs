//! Pools of the bench, on files that lose their name while they are in use.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_crash::{Crash, CrashOptions};
use firn_heap::{Error, OpenError, Pool, PoolKind, PoolOptions};
use firn_mapped::{HugePages, Mapped, MappedOptions};
use firn_media::{Domain, Memory, Space};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, FRAMES_PER_CHUNK, VirtAddr};

use super::BenchError;
use super::clock::{Moment, Times};

/// The bench's name for the content of its pools.
pub(super) const LAYOUT: &str = "firn bench";
/// Chunks of a file whose pages are timed.
const FRESH_CHUNKS: u64 = 16;
/// Bytes of a pool on memory that can lose power.
const CRASH_BYTES: u64 = 64 << 20;

/// The options of a pool of this kind.
pub(super) fn pool_options(kind: PoolKind) -> PoolOptions {
    PoolOptions {
        kind,
        ..PoolOptions::new(LAYOUT)
    }
}

/// Makes a pool on a file in `dir`, `bytes` long, its pages present, treated as persistent in `domain`. The file
/// vanishes with the pool, however that ends.
pub(super) fn mapped(
    dir: &Path,
    bytes: u64,
    domain: Domain,
    kind: PoolKind,
) -> Result<Pool<Mapped>, BenchError> {
    let medium = unnamed(dir, bytes, domain, HugePages::Ask)?;
    medium.prefault(VirtAddr(0), medium.len());
    Ok(Pool::create(medium, &pool_options(kind))?)
}

/// Makes a pool like [`mapped`], but one that has only the pages it has used, and grows.
pub(super) fn growing(
    dir: &Path,
    domain: Domain,
    huge_pages: HugePages,
) -> Result<Pool<Mapped>, BenchError> {
    let medium = unnamed(dir, 0, domain, huge_pages)?;
    Ok(Pool::create(medium, &pool_options(PoolKind::Traced))?)
}

/// Makes a pool that grows to `bytes` and no further.
pub(super) fn limited(
    dir: &Path,
    domain: Domain,
    kind: PoolKind,
    bytes: u64,
) -> Result<Pool<Mapped>, BenchError> {
    let medium = unnamed(dir, 0, domain, HugePages::Ask)?;
    let options = PoolOptions {
        max_bytes: Some(bytes),
        ..pool_options(kind)
    };
    Ok(Pool::create(medium, &options)?)
}

/// Makes `bytes` of free memory ready, and a good deal more, for Firn and rivals alike. The host may take back memory
/// of a virtual machine that was free for a few seconds (free page reporting). The next user of that memory waits for
/// each page, which says nothing about a heap.
pub(super) fn warm(bytes: u64) -> Result<(), BenchError> {
    /// The kernel's next pages need not be the ones it got back last.
    const LEAST: u64 = 1 << 30;
    /// More than the cost of a ready page, and less than that of a page that the host has to find.
    const AT_HAND_NS: f64 = 2_000.0;
    const MOST_TIMES: usize = 8;
    let bytes = bytes.max(LEAST);
    for _ in 0..MOST_TIMES {
        let start = Moment::now();
        let memory = Mapped::anonymous(bytes, &MappedOptions::default())?;
        memory.prefault(VirtAddr(0), bytes);
        if start.elapsed().cpu_ns < (bytes / FRAME_BYTES) as f64 * AT_HAND_NS {
            break;
        }
    }
    Ok(())
}

/// The cost of a page for which a file in `dir` has no block: requesting it as a growing pool does, then making it
/// present.
pub(super) fn fresh_page(dir: &Path, domain: Domain) -> Result<Times, BenchError> {
    warm(FRESH_CHUNKS * CHUNK_BYTES)?;
    let medium = unnamed(dir, 0, domain, HugePages::Ask)?;
    let start = Moment::now();
    for chunk in 0..FRESH_CHUNKS {
        let at = VirtAddr(chunk * CHUNK_BYTES);
        medium.reserve(at, CHUNK_BYTES).map_err(Error::from)?;
        medium.populate(at, CHUNK_BYTES);
    }
    let (times, pages) = (start.elapsed(), (FRESH_CHUNKS * FRAMES_PER_CHUNK) as f64);
    Ok(Times {
        cpu_ns: times.cpu_ns / pages,
        wall_ns: times.wall_ns / pages,
    })
}

pub(super) fn unnamed(
    dir: &Path,
    bytes: u64,
    domain: Domain,
    huge_pages: HugePages,
) -> Result<Mapped, BenchError> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = dir.join(format!("firn-bench-{}-{number}.pool", std::process::id()));
    let options = MappedOptions::default()
        .domain(domain)
        .huge_pages(huge_pages);
    let medium = Mapped::create(&path, bytes, &options)?;
    medium.publish().map_err(OpenError::from)?;
    let removed = std::fs::remove_file(&path);
    removed.map_err(BenchError::io(format!("removing {}", path.display())))?;
    Ok(medium)
}

/// Makes a pool on memory that can lose power, to count the operations of the heap's code.
pub(super) fn counted(domain: Domain, kind: PoolKind) -> Result<(Crash, Pool<Crash>), BenchError> {
    let crash = Crash::new(CRASH_BYTES, CrashOptions::with_domain(domain));
    let pool = Pool::create(crash.clone(), &pool_options(kind))?;
    Ok((crash, pool))
}
