//! Recovery: what open does after a crash.
//!
//! Idempotent: nothing here is lost by another crash, because the log stays valid until the last
//! store, `W_pool`. The work is that of the lanes, whatever the size of the pool.

use std::sync::Arc;

use firn_format::geometry::{self, WATERMARK};
use firn_format::lane::{LANES, Record, SLOTS, slot_at};
use firn_format::plan::Phase;
use firn_format::sealed::{MAX_VALUE, Seal};
use firn_format::superblock::{LogKind, Superblock};
use firn_media::{Medium, MediumExt};
use firn_units::{VirtAddr, WORD_BYTES};

use crate::collector::resume::{self, Resumed};
use crate::error::Error;
use crate::steps;
use crate::tx::redo::{load_header, load_payload};
use crate::tx::undo::UNDO_MARK;

/// Numbers that recovery leaves for transactions to come; a header beyond is damaged.
pub(crate) const HEADROOM: u64 = 1 << 40;

struct Entry {
    seq: u64,
    watermark: u64,
    payload: Vec<u64>,
}

/// `W_pool`.
///
/// Errors: the word is damaged, or leaves no numbers for transactions to come.
pub(crate) fn watermark<M: Medium>(medium: &M) -> Result<u64, Error> {
    let watermark = Seal::Watermark.open_at(medium.load_u64(WATERMARK), WATERMARK)?;
    match watermark <= MAX_VALUE - HEADROOM {
        true => Ok(watermark),
        false => Err(Error::Damaged {
            what: "the number below which everything is durable",
            at: WATERMARK.0,
        }),
    }
}

/// What recovery found out.
pub(crate) struct Recovered<M: Medium> {
    /// The new `W_pool`.
    pub(crate) watermark: u64,
    /// The cycle that goes on.
    pub(crate) resumed: Resumed<M>,
}

/// Brings the pool to the state after its last committed transaction.
pub(crate) fn recover<M: Medium>(
    medium: &M,
    superblock: &Superblock,
) -> Result<Recovered<M>, Error> {
    let pool_watermark = watermark(medium)?;
    let lanes = (superblock.lanes as usize).min(LANES);
    let interrupted = resume::interrupted(medium)?;
    let moving = match &interrupted {
        Some((Phase::Active(_), cycle)) => Some(cycle),
        _ => None,
    };
    let mut copied = Vec::new();
    let top = match superblock.log {
        LogKind::Redo => {
            let (entries, top) = valid_entries(medium, pool_watermark, lanes)?;
            let copy =
                |cycle| resume::copy_named(medium, cycle, entries.iter().map(|e| &e.payload));
            // C3: copy first, then redo.
            let copies_first = medium.keeps(&steps::COPY_BEFORE_REPLAY);
            if let Some(cycle) = moving.filter(|_| copies_first) {
                copied = copy(cycle);
            }
            for entry in &entries {
                replay(medium, &entry.payload)?;
            }
            if let Some(cycle) = moving.filter(|_| !copies_first) {
                copied = copy(cycle);
            }
            top
        }
        LogKind::Undo => crate::tx::undo::roll_back_all(medium, pool_watermark, lanes)?,
    };
    // R11: homes, fence, one store of W_pool, fence. It retires every lane at once.
    medium.fence_for(&steps::REPLAY_FENCE);
    medium.store_u64(WATERMARK, Seal::Watermark.seal(top));
    medium.persist_for(&steps::RECOVERED_W_POOL_PERSIST, WATERMARK, 8);
    let resumed = match interrupted {
        Some((Phase::Active(_), cycle)) => {
            copied.iter().for_each(|&unit| cycle.settled_durably(unit));
            cycle.restore_lookup(medium);
            Some(Arc::new(cycle))
        }
        Some((Phase::Release(_), cycle)) => {
            resume::end_release(medium, &cycle, superblock)?;
            None
        }
        Some((Phase::Idle, _)) | None => None,
    };
    Ok(Recovered {
        watermark: top,
        resumed,
    })
}

/// The entries that must be stored again, in their order, and the new `W_pool`.
fn valid_entries<M: Medium>(
    medium: &M,
    pool_watermark: u64,
    lanes: usize,
) -> Result<(Vec<Entry>, u64), Error> {
    let mut entries = Vec::new();
    let mut top = pool_watermark;
    for lane in 0..lanes {
        for slot in 0..SLOTS {
            let at = slot_at(lane, slot);
            let header = load_header(medium, at);
            if header.seq == 0 {
                continue;
            }
            if header.seq > MAX_VALUE - HEADROOM {
                return Err(Error::Damaged {
                    what: "the number of a log entry",
                    at: at.0,
                });
            }
            // R12: above every number in any header, valid or not.
            if medium.keeps(&steps::NUMBERS_GO_ON) {
                top = top.max(header.seq + 1);
            }
            // An entry below W_pool is durable at home and says no higher W than its own number: what
            // it had outside its slot may be anything by now. A batch of an earlier open with an undo
            // log is no entry.
            if header.seq >= pool_watermark
                && header.watermark & UNDO_MARK == 0
                && let Some(payload) = load_payload(medium, at, header)
            {
                entries.push(Entry {
                    seq: header.seq,
                    watermark: header.watermark,
                    payload,
                });
            }
        }
    }
    // R6, R7: valid entries from W on, in the order of their numbers; gaps are uncommitted.
    let watermark = entries
        .iter()
        .map(|e| e.watermark)
        .filter(|_| medium.keeps(&steps::REPLAY_FROM_W))
        .fold(pool_watermark, u64::max);
    entries.retain(|e| e.seq >= watermark);
    if medium.keeps(&steps::REPLAY_IN_ORDER) {
        entries.sort_unstable_by_key(|e| e.seq);
    }
    if medium.leaves_out(&steps::GAPS_SKIPPED) {
        let follows = |(seq, entry): &(u64, &Entry)| entry.seq == *seq;
        let whole = (watermark..).zip(&entries).take_while(follows).count();
        entries.truncate(whole);
    }
    Ok((entries, top))
}

fn replay<M: Medium>(medium: &M, payload: &[u64]) -> Result<(), Error> {
    let mut rest = payload;
    while let Some(record) = Record::take(&mut rest) {
        apply(medium, &record)?;
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(Error::Damaged {
            what: "a log entry with a sound checksum",
            at: 0,
        })
    }
}

/// Stores what a record says and writes it back.
pub(crate) fn apply<M: Medium>(medium: &M, record: &Record<'_>) -> Result<(), Error> {
    let (home, len) = record.home();
    if home < geometry::ROOTS || home.0.checked_add(len).is_none_or(|end| end > medium.len()) {
        return Err(Error::Damaged {
            what: "the address in a log entry",
            at: home.0,
        });
    }
    match *record {
        Record::Line { at, mask, words } => {
            let mut words = words.iter();
            for word in (0..8).filter(|w| mask >> w & 1 != 0) {
                if let Some(&value) = words.next() {
                    medium.store_u64(at + word * 8, value);
                }
            }
        }
        Record::Bits { at, set, clear } => {
            medium.update_bits(at, set, clear);
        }
        Record::Range { at, words } => {
            medium.store_bytes(at, bytemuck::cast_slice(words));
        }
        Record::Masks { at, set, masks } => {
            for (word, &mask) in (0..).zip(masks).filter(|(_, mask)| **mask != 0) {
                let (set, clear) = if set { (mask, 0) } else { (0, mask) };
                medium.update_bits(at + word * WORD_BYTES, set, clear);
            }
        }
        // The words hold what lay beside the bytes, too, which was another thread's: not one of these is stored.
        Record::Bytes { at, len, words } => {
            let lead = (at.0 % WORD_BYTES) as usize;
            let held: &[u8] = bytemuck::cast_slice(words);
            match medium.keeps(&steps::UNDO_BYTES_ALONE) {
                true => medium.store_exact(at, &held[lead..lead + len as usize]),
                false => medium.store_bytes(VirtAddr(at.0 - lead as u64), held),
            }
        }
    }
    medium.write_back_for(&steps::REPLAY_WRITE_BACK, VirtAddr(home.0), len);
    Ok(())
}
