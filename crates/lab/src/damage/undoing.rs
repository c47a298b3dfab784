//! Undo logs: a pool that a crash left with open ones, their content, and their use in a damaged pool.

use firn_crash::{Crash, Image};
use firn_format::geometry::Frame;
use firn_format::lane::{ENTRY_HEADER_WORDS, EntryHeader, UNDO_BYTES, lane_at, undo_done_at};
use firn_format::sealed::Seal;
use firn_heap::{Error, LogKind, OpenError, Pool, PoolOptions};
use firn_heap::{RawTx, View};
use firn_media::Memory;
use firn_units::{FRAME_BYTES, VirtAddr, WORD_BYTES};

use super::sample::Map;
use crate::crash::fixture::Fixture;

/// The root of the objects allocated beside the structure.
const RAW: &str = "raw";
/// Bytes of an object that are changed.
const CHANGED: u64 = 48;
/// Batches of a log, and objects of each.
const BATCHES: usize = 3;
const TOGETHER: usize = 4;

fn open(fixture: &Fixture, crash: &Crash) -> Result<Pool<Crash>, OpenError> {
    let options = PoolOptions {
        log: LogKind::Undo,
        ..fixture.pool_options()
    };
    Pool::open(crash.clone(), &options)
}

/// The pool as a crash leaves it after two sessions have made changes that their logs can undo: the roots and all
/// objects of two pages, whose log lies outside its lane, and a few objects elsewhere.
pub(super) fn leave(
    fixture: &Fixture,
    crash: &Crash,
) -> Result<Image, Box<dyn core::error::Error>> {
    let pool = open(fixture, crash)?;
    let references = Map::of(crash).references.into_iter();
    let mut objects: Vec<VirtAddr> = references.map(|(_, word)| word.address()).collect();
    objects.retain(|&at| Frame::holding(at).chunk().is_data());
    objects.sort_unstable();
    objects.dedup();
    let pages = Frame::holding(objects[0]).start();
    let end = pages + 2 * FRAME_BYTES;
    let (near, far) = objects.split_at(objects.partition_point(|&at| at < end));
    let (mut one, mut other) = (pool.session()?, pool.session()?);
    let image = one.raw_transaction(|tx| {
        let new = tx.alloc(CHANGED)?;
        tx.set_root(RAW, Some(new))?;
        tx.log(&[(pages, end - pages)])?;
        let whole = near.iter().filter(|&&at| at + CHANGED <= end);
        whole.copied().try_for_each(|at| spoil(tx, at))?;
        other.raw_transaction(|tx| {
            for some in far.chunks(TOGETHER).take(BATCHES) {
                let ranges: Vec<_> = some.iter().map(|&at| (at, CHANGED)).collect();
                tx.log(&ranges)?;
                some.iter().try_for_each(|&at| spoil(tx, at))?;
            }
            Ok::<_, Error>(crash.cache_image())
        })
    })?;
    drop((one, other));
    pool.abandon();
    Ok(image)
}

fn spoil(tx: RawTx<'_, Crash>, at: VirtAddr) -> Result<(), Error> {
    tx.store(at, &[0xa5; CHANGED as usize])
}

/// Opens the pool with an undo log, and commits and aborts in it.
pub(super) fn use_again(
    fixture: &Fixture,
    crash: &Crash,
) -> Result<(), Box<dyn core::error::Error>> {
    let pool = open(fixture, crash)?;
    let used = use_pool(&pool);
    match used {
        Ok(()) => pool.close()?,
        Err(_) => pool.abandon(),
    }
    Ok(used?)
}

fn use_pool(pool: &Pool<Crash>) -> Result<(), Error> {
    let mut session = pool.session()?;
    for _ in 0..2 {
        session.raw_transaction(|tx| {
            let new = tx.alloc(CHANGED)?;
            tx.store(new, &[1; CHANGED as usize])?;
            tx.set_root(RAW, Some(new))
        })?;
        let aborted: Result<(), Error> = session.raw_transaction(|tx| {
            tx.set_root(RAW, None)?;
            Err(Error::ReadOnly)
        });
        if !matches!(aborted, Err(Error::ReadOnly)) {
            return aborted;
        }
    }
    session.read(|view| view.root_names()).map(drop)
}

/// The batches of a lane's open transaction.
pub(super) fn batches(crash: &Crash, lane: usize) -> Vec<VirtAddr> {
    let done = Seal::UndoDone.open(crash.load_u64(undo_done_at(lane)));
    let mut found = Vec::new();
    let mut used = 0;
    while let Some(done) = done
        && used < UNDO_BYTES
    {
        let at = lane_at(lane) + used;
        let word = |i: usize| crash.load_u64(at + i as u64 * WORD_BYTES);
        let header = EntryHeader::from_words(core::array::from_fn(word));
        if header.lsn != done + 1 {
            break;
        }
        found.push(at);
        let inline = match header.extents {
            0 => header.payload_words,
            extents => extents as u64 * 2,
        };
        used += (ENTRY_HEADER_WORDS as u64 + inline) * WORD_BYTES;
    }
    found
}
