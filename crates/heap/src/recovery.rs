//! Recovery: how open restores a pool after a crash.
//!
//! Idempotent: another crash loses nothing here, because the log stays valid until the last store, `W_pool`. The work
//! depends on the lanes, not on the size of the pool.

use std::sync::Arc;

use firn_format::geometry::WATERMARK;
use firn_format::lane::{LANES, Record, SLOTS, slot_at};
use firn_format::plan::Phase;
use firn_format::sealed::{MAX_VALUE, Seal};
use firn_format::superblock::{LogKind, Superblock};
use firn_media::{Medium, MediumExt};
use firn_units::WORD_BYTES;

use crate::error::Error;
use crate::inner::Recovered;
use crate::order::{Perturbation, Perturbed, in_order};
use crate::relocation::cycle::Cycle;
use crate::relocation::media::release_on_media;
use crate::relocation::resume;
use crate::steps;
use crate::superblock::keeps_addresses;
use crate::tx::entry::{load_header, load_payload};
use crate::tx::records::{HEADROOM, apply};
use crate::tx::undo::{self, UNDO_MARK};

struct LoggedEntry {
    lsn: u64,
    watermark: u64,
    payload: Vec<u64>,
}

/// `W_pool`.
///
/// Errors: the word is damaged, or leaves no LSNs for later transactions.
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

/// Brings the pool to the state after its last committed transaction.
pub(crate) fn recover<M: Medium>(
    medium: &M,
    superblock: &Superblock,
) -> Result<Recovered<M>, Error> {
    let recovery = &mut Recovery::begin(medium, superblock)?;
    match superblock.log {
        LogKind::Redo => {
            recovery.find_entries()?;
            in_order!(recovery => go_on_with_numbers, begin_at_watermark, put_in_order);
            in_order!(try recovery => copy_named, replay);
        }
        LogKind::Undo => recovery.roll_back()?,
    }
    in_order!(recovery => retire_entries);
    recovery.resume(superblock)
}

/// A recovery in progress.
struct Recovery<'m, M: Medium> {
    medium: &'m M,
    lanes: usize,
    /// `W_pool` as the crash left it.
    pool_watermark: u64,
    /// The cycle that the crash interrupted.
    interrupted: Option<(Phase, Cycle<M>)>,
    /// Valid entries that `W_pool` does not cover.
    entries: Vec<LoggedEntry>,
    /// The highest LSN in any header.
    highest: u64,
    /// The highest W of an entry.
    watermark: u64,
    /// The new `W_pool`.
    top: u64,
    /// Units of the interrupted cycle that were copied before the replay.
    copied: Vec<u64>,
}

impl<'m, M: Medium> Recovery<'m, M> {
    /// Errors: `W_pool`, the collector's phase or its plan is damaged.
    fn begin(medium: &'m M, superblock: &Superblock) -> Result<Self, Error> {
        let pool_watermark = watermark(medium)?;
        Ok(Self {
            medium,
            lanes: (superblock.lanes as usize).min(LANES),
            pool_watermark,
            interrupted: resume::interrupted(medium)?,
            entries: Vec::new(),
            highest: 0,
            watermark: pool_watermark,
            top: pool_watermark,
            copied: Vec::new(),
        })
    }

    /// Reads the valid entries of all lanes. An entry below `W_pool` is durable in place and carries no W above its own
    /// LSN; its frames outside its slot may be reused by now. A batch of an earlier open with an undo log is no entry.
    ///
    /// Errors: an entry's LSN is damaged.
    fn find_entries(&mut self) -> Result<(), Error> {
        let slots = (0..self.lanes).flat_map(|lane| (0..SLOTS).map(move |slot| (lane, slot)));
        for (lane, slot) in slots {
            let at = slot_at(lane, slot);
            let header = load_header(self.medium, at);
            if header.lsn > MAX_VALUE - HEADROOM {
                return Err(Error::Damaged {
                    what: "the number of a log entry",
                    at: at.0,
                });
            }
            self.highest = self.highest.max(header.lsn);
            if header.lsn != 0
                && header.lsn >= self.pool_watermark
                && header.watermark & UNDO_MARK == 0
                && let Some(payload) = load_payload(self.medium, at, header)
            {
                self.entries.push(LoggedEntry {
                    lsn: header.lsn,
                    watermark: header.watermark,
                    payload,
                });
            }
        }
        Ok(())
    }

    /// R12: new LSNs are above every LSN in any header, valid or not.
    fn go_on_with_numbers(&mut self) {
        if self.highest > 0 {
            self.top = self.top.max(self.highest + 1);
        }
    }

    /// R6: the entries from W on.
    fn begin_at_watermark(&mut self) {
        let said = self.entries.iter().map(|entry| entry.watermark);
        self.watermark = said.fold(self.pool_watermark, u64::max);
        self.entries.retain(|entry| entry.lsn >= self.watermark);
    }

    /// R7: in the order of their LSNs. Missing LSNs were not committed.
    fn put_in_order(&mut self) {
        self.entries.sort_unstable_by_key(|entry| entry.lsn);
    }

    /// C3: an interrupted cycle's objects that entries change are copied first, then the entries are replayed.
    ///
    /// Errors: none; the signature is that of the other phases.
    fn copy_named(&mut self) -> Result<(), Error> {
        if let Some((Phase::Active(_), cycle)) = &self.interrupted {
            let payloads = self.entries.iter().map(|entry| &entry.payload);
            self.copied = resume::copy_named(self.medium, cycle, payloads);
        }
        Ok(())
    }

    /// Carries out the entries.
    ///
    /// Errors: an entry is damaged.
    fn replay(&mut self) -> Result<(), Error> {
        let mut payloads = self.entries.iter().map(|entry| &entry.payload);
        payloads.try_for_each(|payload| replay(self.medium, payload))
    }

    /// Undoes the unfinished transactions of undo logs.
    ///
    /// Errors: a log is damaged.
    fn roll_back(&mut self) -> Result<(), Error> {
        self.top = undo::roll_back_all(self.medium, self.pool_watermark, self.lanes)?;
        Ok(())
    }

    /// R11: the replayed stores, a fence, one store of `W_pool`, a fence. This retires every lane at once.
    fn retire_entries(&mut self) {
        let medium = self.medium;
        medium.fence_for(&steps::REPLAY_FENCE);
        medium.store_u64(WATERMARK, Seal::Watermark.seal(self.top));
        medium.persist_for(&steps::RECOVERED_W_POOL_PERSIST, WATERMARK, WORD_BYTES);
    }

    /// Resumes the cycle that the crash interrupted, or finishes its release.
    ///
    /// Errors: the list of retained plans is damaged.
    fn resume(&mut self, superblock: &Superblock) -> Result<Recovered<M>, Error> {
        let resumed = match self.interrupted.take() {
            Some((Phase::Active(_), cycle)) => {
                let copied = self.copied.iter();
                copied.for_each(|&unit| cycle.settled_durably(unit));
                cycle.restore_lookup(self.medium);
                Some(Arc::new(cycle))
            }
            Some((Phase::Release(_), cycle)) => {
                let keeps = keeps_addresses(superblock.kind, superblock.log);
                release_on_media(self.medium, &cycle, superblock.kind, keeps)?;
                None
            }
            Some((Phase::Idle, _)) | None => None,
        };
        Ok(Recovered {
            watermark: self.top,
            resumed,
        })
    }
}

/// The faults that the crash medium plants.
impl<M: Medium> Perturbed for Recovery<'_, M> {
    type Medium = M;

    fn medium(&self) -> &M {
        self.medium
    }

    fn perturbations() -> Vec<Perturbation<Self>> {
        // A replay that fails is detected as well.
        let replay: fn(&mut Self) = |recovery| recovery.replay().expect("sound entries");
        let stop_at_gap: fn(&mut Self) = |recovery| {
            let follows = |(lsn, entry): &(u64, &LoggedEntry)| entry.lsn == *lsn;
            let entries = (recovery.watermark..).zip(&recovery.entries);
            let whole = entries.take_while(follows).count();
            recovery.entries.truncate(whole);
        };
        vec![
            Perturbation::left_out(&steps::NUMBERS_GO_ON, "go_on_with_numbers"),
            Perturbation::left_out(&steps::REPLAY_FROM_W, "begin_at_watermark"),
            Perturbation::left_out(&steps::REPLAY_IN_ORDER, "put_in_order"),
            Perturbation::moved(
                &steps::GAPS_SKIPPED,
                ("stop_at_gap", stop_at_gap),
                "copy_named",
            ),
            Perturbation::moved(&steps::COPY_BEFORE_REPLAY, ("replay", replay), "copy_named"),
        ]
    }
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
