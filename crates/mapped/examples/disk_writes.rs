//! How long ways of a durable write of 4 KiB take, in turns: `cargo run --release -p firn-mapped --example disk_writes DIR`.
//!
//! `docs/decisions/out-of-place-log.md` quotes what this prints.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Instant;

use io_uring::{IoUring, opcode, squeue, types};
use rustix::fs::{OFlags, fdatasync};
use rustix::io::{ReadWriteFlags, pwritev2};
use rustix::time::{ClockId, clock_gettime};

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 1024;
const ROUNDS: usize = 30;
const WRITES: usize = 100;

/// A block at a multiple of its length.
#[repr(align(4096))]
struct Block([u8; BLOCK as usize]);

/// One file, opened with and without the page cache, and rings that write to it.
struct Files {
    cached: File,
    direct: File,
    ring: IoUring,
    /// A thread of the kernel looks for requests.
    polled: IoUring,
}

impl Files {
    fn new(path: &Path) -> io::Result<Self> {
        let cached = File::create(path)?;
        let zeros = vec![0; (BLOCK * BLOCKS) as usize];
        cached.write_all_at(&zeros, 0)?;
        cached.sync_all()?;
        let flags = OFlags::DIRECT.bits() as i32;
        let direct = OpenOptions::new()
            .write(true)
            .custom_flags(flags)
            .open(path)?;
        let polled = IoUring::builder().setup_sqpoll(1).build(8)?;
        Ok(Self {
            cached,
            direct,
            ring: IoUring::new(8)?,
            polled,
        })
    }
}

/// Submits requests and waits for all of them.
fn complete(ring: &mut IoUring, entries: &[squeue::Entry]) -> io::Result<()> {
    // SAFETY: the block and the files outlive the requests, for which this function waits.
    unsafe { ring.submission().push_multiple(entries) }.expect("the queue has room");
    ring.submit_and_wait(entries.len())?;
    for done in ring.completion() {
        if done.result() < 0 {
            return Err(io::Error::from_raw_os_error(-done.result()));
        }
    }
    Ok(())
}

fn ring_write(file: &File, block: &Block, at: u64, flags: ReadWriteFlags) -> squeue::Entry {
    let file = types::Fd(file.as_raw_fd());
    opcode::Write::new(file, block.0.as_ptr(), BLOCK as u32)
        .offset(at)
        .rw_flags(flags.bits() as i32)
        .build()
}

type Way = fn(&mut Files, &Block, u64) -> io::Result<()>;

const WAYS: [(&str, Way); 6] = [
    (
        "pwritev2, past the page cache, RWF_DSYNC",
        |files, block, at| {
            pwritev2(
                &files.direct,
                &[IoSlice::new(&block.0)],
                at,
                ReadWriteFlags::DSYNC,
            )?;
            Ok(())
        },
    ),
    (
        "io_uring, past the page cache, RWF_DSYNC",
        |files, block, at| {
            let write = ring_write(&files.direct, block, at, ReadWriteFlags::DSYNC);
            complete(&mut files.ring, &[write])
        },
    ),
    (
        "the same, with a polling thread of the kernel",
        |files, block, at| {
            let write = ring_write(&files.direct, block, at, ReadWriteFlags::DSYNC);
            complete(&mut files.polled, &[write])
        },
    ),
    (
        "io_uring, write linked with fdatasync",
        |files, block, at| {
            let write = ring_write(&files.direct, block, at, ReadWriteFlags::empty());
            let sync = opcode::Fsync::new(types::Fd(files.direct.as_raw_fd()));
            let sync = sync.flags(types::FsyncFlags::DATASYNC).build();
            complete(
                &mut files.ring,
                &[write.flags(squeue::Flags::IO_LINK), sync],
            )
        },
    ),
    ("pwritev2, page cache, RWF_DSYNC", |files, block, at| {
        pwritev2(
            &files.cached,
            &[IoSlice::new(&block.0)],
            at,
            ReadWriteFlags::DSYNC,
        )?;
        Ok(())
    }),
    (
        "pwritev2, page cache, then fdatasync",
        |files, block, at| {
            pwritev2(
                &files.cached,
                &[IoSlice::new(&block.0)],
                at,
                ReadWriteFlags::empty(),
            )?;
            Ok(fdatasync(&files.cached)?)
        },
    ),
];

fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> io::Result<()> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    let folder = tempfile::tempdir_in(folder)?;
    let mut files = Files::new(&folder.path().join("file"))?;
    let block = Block([7; BLOCK as usize]);
    let mut times = WAYS.map(|_| (Vec::new(), Vec::new()));
    let mut next = 0;
    for _ in 0..ROUNDS {
        for ((_, way), (wall, cpu)) in WAYS.iter().zip(&mut times) {
            let began = cpu_ns();
            let mut of_each = Vec::new();
            for _ in 0..WRITES {
                next = (next + 1) % BLOCKS;
                let began = Instant::now();
                way(&mut files, &block, next * BLOCK)?;
                of_each.push(began.elapsed().as_secs_f64() * 1e6);
            }
            wall.push(median(of_each));
            cpu.push((cpu_ns() - began) / 1e3 / WRITES as f64);
        }
    }
    println!(
        "a durable write of 4 KiB to a file whose blocks were written before, {ROUNDS} rounds of {WRITES}"
    );
    println!("{:<48} {:>8} {:>12}", "way", "us wall", "us CPU");
    for ((name, _), (wall, cpu)) in WAYS.iter().zip(times) {
        println!("{name:<48} {:>8.1} {:>12.1}", median(wall), median(cpu));
    }
    Ok(())
}
