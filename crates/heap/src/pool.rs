//! Pools: creating, opening, closing.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_format::FORMAT_VERSION;
use firn_format::geometry::{
    self, FIRST_DATA_CHUNK, REGISTRY, STATISTICS_BLOCK_BYTES, SUPERBLOCK_BYTES, SUPERBLOCKS,
};
use firn_format::reference::PoolId;
use firn_format::sealed::Seal;
use firn_format::statistics::block_at;
use firn_format::superblock::{LogKind, OpenState, PoolKind, Superblock};
use firn_media::{Domain, Medium, MediumExt};
use firn_units::FRAME_BYTES;

use crate::collector::PageSize;
use crate::error::{Error, OpenError};
use crate::inner::Inner;
use crate::inner::Recovered;
use crate::options::PoolOptions;
use crate::session::Session;
use crate::superblock::keeps_addresses;
use crate::superblock::{sound_superblock, stored_domain, write_superblock};
use crate::{recovery, steps, stored::Stored};

/// A pool's identity.
#[derive(Clone, Copy)]
pub(crate) struct Identity {
    pub(crate) uuid: [u8; 16],
    pub(crate) id: PoolId,
}

impl Identity {
    /// An identity that no other pool has. Another pool may have an equal short id: that id detects references of
    /// another pool in the program's hands, and nothing is found by it (`docs/decisions/copies-and-identity.md`).
    pub(crate) fn drawn<M: Medium>(medium: &M) -> Self {
        let id = PoolId((medium.random_u64() as u16).max(1));
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&medium.random_u64().to_le_bytes());
        uuid[8..].copy_from_slice(&medium.random_u64().to_le_bytes());
        Self { uuid, id }
    }

    /// The identity of a pool.
    pub(crate) fn of<M: Medium>(pool: &Inner<M>) -> Self {
        Self {
            uuid: pool.uuid,
            id: pool.id,
        }
    }
}

/// An open pool. Cloning is cheap and names the same pool; it is closed when the last clone and the
/// last session are gone, or by [`Pool::close`].
pub struct Pool<M: Medium> {
    pub(crate) inner: Arc<Inner<M>>,
}

impl<M: Medium> Clone for Pool<M> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<M: Medium> Pool<M> {
    /// Makes a new pool on `medium`, whose content is lost.
    ///
    /// Errors: options out of range, no space, the medium's name was taken meanwhile. Crash: a medium with a name
    /// ([`firn_media::Space::publish`]) is found by it only once it holds a pool that can be opened. Any other may hold
    /// no pool until this returns, and opening it says so.
    pub fn create(medium: M, options: &PoolOptions) -> Result<Self, OpenError> {
        let pool = Self::create_unpublished(medium, options)?;
        match pool.inner.medium.publish() {
            Ok(()) => Ok(pool),
            Err(refused) => {
                pool.abandon();
                Err(refused.into())
            }
        }
    }

    /// As [`Pool::create`], for a pool that is filled before it can be found: the medium gets its name from
    /// [`Pool::publish`], or when the pool is closed, which dropping it does; [`Pool::abandon`] discards the pool.
    ///
    /// Errors: as [`Pool::create`].
    pub fn create_unpublished(medium: M, options: &PoolOptions) -> Result<Self, OpenError> {
        let identity = Identity::drawn(&medium);
        medium.claim(identity.uuid)?;
        Self::create_as(medium, options, identity)
    }

    /// Creates a pool with an existing identity. The caller ensures that no other pool with it is open.
    pub(crate) fn create_as(
        medium: M,
        options: &PoolOptions,
        identity: Identity,
    ) -> Result<Self, OpenError> {
        options.check(&medium.name(), medium.capacity())?;
        if !medium.is_writable() {
            return Err(OpenError::ReadOnly {
                pool: medium.name(),
            });
        }
        medium.begin(identity.uuid)?;
        medium.reserve(firn_units::VirtAddr(0), REGISTRY.0 + FRAME_BYTES)?;
        medium.reserve(block_at(0), STATISTICS_BLOCK_BYTES)?;
        for at in SUPERBLOCKS {
            medium.zero(at, SUPERBLOCK_BYTES);
        }
        medium.store_u64(geometry::WATERMARK, Seal::Watermark.seal(1));
        medium.store_u64(geometry::PHASE, Seal::Phase.seal(0));
        medium.store_u64(geometry::REGISTRY_END, Seal::RegistryEnd.seal(0));
        medium.store_u64(geometry::LENGTH, Seal::Length.seal(FIRST_DATA_CHUNK));
        medium.persist(geometry::STATE, FRAME_BYTES);
        let superblock = Superblock {
            version: FORMAT_VERSION,
            generation: 0,
            uuid: identity.uuid,
            pool_id: identity.id,
            kind: options.kind,
            log: options.log,
            domain: stored_domain(medium.domain()),
            state: OpenState::Closed,
            boot_id: medium.boot_id(),
            lanes: options.lanes as u32,
            layout: options.layout.clone(),
            limit_bytes: options.limit(),
        };
        let recovered = Recovered {
            watermark: 1,
            resumed: None,
        };
        Self::start(medium, options, superblock, recovered)
    }

    /// Opens a pool for reading and writing, recovering it first if it was not closed.
    ///
    /// The work is bounded by what was in flight at the crash, not by the size of the pool.
    ///
    /// Errors: not a pool, damaged, of another layout, torn by the death of the machine, a copy of one that the process
    /// has open for writing ([`firn_media::MediumError::CopyIsOpen`]). Nothing was written then, except by a recovery
    /// that could finish. Crash: opening again recovers again.
    pub fn open(medium: M, options: &PoolOptions) -> Result<Self, OpenError> {
        Self::open_any(medium, options, false)
    }

    /// As [`Pool::open`]; if `torn` is allowed, also opens a pool that was open when the machine went down.
    pub(crate) fn open_any(
        medium: M,
        options: &PoolOptions,
        torn: bool,
    ) -> Result<Self, OpenError> {
        options.check(&medium.name(), medium.capacity())?;
        if !medium.is_writable() {
            return Err(OpenError::ReadOnly {
                pool: medium.name(),
            });
        }
        let superblock = sound_superblock(&medium, &options.layout, torn)?;
        medium.claim(superblock.uuid)?;
        Self::open_claimed(medium, options, superblock)
    }

    /// Opens the pool that the superblock describes. The caller checks which pools are open beside it.
    pub(crate) fn open_claimed(
        medium: M,
        options: &PoolOptions,
        superblock: Superblock,
    ) -> Result<Self, OpenError> {
        let recovered = match superblock.state {
            OpenState::Closed | OpenState::ClosedUntraced => {
                recovery::watermark(&medium).map(|watermark| Recovered {
                    watermark,
                    resumed: None,
                })
            }
            OpenState::Open => recovery::recover(&medium, &superblock),
        }
        .map_err(|source| OpenError::Recovery {
            pool: medium.name(),
            source,
        })?;
        // An interrupted cycle ends by the rules under which it began: where addresses stay it heals pairs of words,
        // which no other open does, and a traced pool moves nothing under an undo log.
        let keeps = |log| keeps_addresses(superblock.kind, log);
        let ends_it = match options.log {
            LogKind::Redo => !keeps(superblock.log),
            LogKind::Undo => keeps(LogKind::Undo),
        };
        if recovered.resumed.is_some() && !ends_it {
            let (needed, found) = match options.log {
                LogKind::Redo => ("undo", "redo"),
                LogKind::Undo => ("redo", "undo"),
            };
            return Err(OpenError::Option {
                pool: medium.name(),
                what: "the log",
                range: format!("{needed} until the interrupted collection has ended"),
                found: found.into(),
            });
        }
        Self::start(medium, options, superblock, recovered)
    }

    /// Opens a pool that was closed, without ever storing to it.
    ///
    /// Errors: as [`Pool::open`], and a pool that needs recovery.
    pub fn open_read_only(medium: M, layout: &str) -> Result<Self, OpenError> {
        let superblock = sound_superblock(&medium, layout, false)?;
        if superblock.state == OpenState::Open {
            return Err(OpenError::NeedsRecovery {
                pool: medium.name(),
            });
        }
        let options = PoolOptions {
            log: superblock.log,
            ..PoolOptions::new(layout)
        };
        let exact = superblock.state == OpenState::Closed;
        let recovered = Recovered {
            watermark: 1,
            resumed: None,
        };
        let inner = Inner::new(medium, &options, superblock, recovered, exact, false)?;
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    fn start(
        medium: M,
        options: &PoolOptions,
        mut superblock: Superblock,
        recovered: Recovered<M>,
    ) -> Result<Self, OpenError> {
        let exact = superblock.state == OpenState::Closed;
        let converted_from = (superblock.version < FORMAT_VERSION).then_some(superblock.version);
        let was_raw = superblock.log == LogKind::Undo;
        superblock.version = FORMAT_VERSION;
        if options.max_bytes.is_some() {
            superblock.limit_bytes = options.limit();
        }
        superblock.log = options.log;
        superblock.domain = stored_domain(medium.domain());
        superblock.boot_id = medium.boot_id();
        superblock.state = OpenState::Open;
        let mut inner = Inner::new(medium, options, superblock, recovered, exact, true)?;
        inner.converted_from = converted_from;
        inner.was_raw = was_raw;
        if options.log == LogKind::Undo {
            for lane in 0..inner.lane_count {
                inner.prepare_undo_lane(lane)?;
            }
        }
        inner.note_length();
        {
            let mut superblock = inner.superblock.lock(&inner.medium);
            write_superblock(&inner.medium, &mut superblock);
            let both = inner.medium.keeps(&steps::OLDER_VERSION_OVERWRITTEN);
            if converted_from.is_some() && both {
                // P5: both copies. Otherwise a program of the older version would skip the copy that it cannot read and
                // continue from the other, beside later stores.
                write_superblock(&inner.medium, &mut superblock);
            }
        }
        if matches!(inner.medium.domain(), Domain::Process | Domain::Logged) {
            // P1: nothing is stored on the device before it knows that the pool is open, or a power failure
            // would leave torn data behind a superblock that calls it closed.
            inner.medium.sync()?;
        }
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Whether this is still the process that opened the pool. In a forked child every call that can fail fails with
    /// [`Error::Forked`], and all of the child's values of the pool may be dropped. A guard that was open at the fork
    /// reads the content of then or later; nothing that a child does reaches the pool.
    pub fn is_ours(&self) -> bool {
        self.inner.medium.is_ours()
    }

    /// Opens a session for the calling thread.
    ///
    /// Errors: every lane is in use, no space for a lane's log; a forked child; a migration was begun and has not
    /// ended ([`Error::MigrationUnfinished`]).
    pub fn session(&self) -> Result<Session<M>, Error> {
        Session::open(&self.inner)
    }

    /// The medium below.
    pub fn medium(&self) -> &M {
        &self.inner.medium
    }

    /// What decides which objects live.
    pub fn kind(&self) -> PoolKind {
        self.inner.kind
    }

    /// Bytes beyond which the pool does not grow; `None` if only the medium's capacity limits it.
    pub fn limit_bytes(&self) -> Option<u64> {
        let superblock = self.inner.superblock.lock(&self.inner.medium);
        superblock.limit_bytes.map(NonZeroU64::get)
    }

    /// The pool's version of the format: the current one, except where a pool of an older version was opened read-only.
    pub fn format_version(&self) -> u32 {
        self.inner.superblock.lock(&self.inner.medium).version
    }

    /// The older version of the format from which this open has converted the pool; programs that know only the older
    /// one refuse it from now on. `None` if it had the current version.
    pub fn converted_from(&self) -> Option<u32> {
        self.inner.converted_from
    }

    /// Whether a crash left questions that only a trace or a collection answers: in a traced pool which objects are
    /// garbage, in an explicit one the values of the counters.
    pub fn needs_trace(&self) -> bool {
        !self.inner.exact.load(Ordering::Acquire)
    }

    /// The bits that are set in every reference to an object of this pool, besides the object's address.
    pub fn reference_bits(&self) -> u64 {
        firn_format::reference::RefWord::new(self.inner.id, firn_units::VirtAddr(0)).0
    }

    /// Registers a type before its first use, so that the first transaction need not; also registers every type to
    /// which its references lead. Without this call a type is registered by its first use.
    ///
    /// Errors: one of them is stored with another layout or in another version; the registry is full. Durable on
    /// return; a crash midway leaves all of them registered or none.
    pub fn register<T: Stored>(&self) -> Result<(), Error> {
        self.inner.check_usable()?;
        let inner = &*self.inner;
        inner.types.type_id::<T, _>(&inner.medium).map(|_| ())
    }

    /// Closes the pool: empties the lanes, writes what is free, and syncs.
    ///
    /// Errors: sessions are open ([`Error::SessionsOpen`]), a collection is under way, the medium failed; the pool stays open and is recovered at the
    /// next open if the program ends.
    pub fn close(self) -> Result<(), Error> {
        self.inner.close()
    }

    /// Drops the pool as a crash would: nothing more is written. For tests of recovery.
    pub fn abandon(self) {
        self.inner.closed.store(true, Ordering::Release);
    }

    /// Lets a pool of [`Pool::create_unpublished`] or [`Pool::copy_into`] be found by its medium's name, with
    /// everything that was committed so far. Does nothing for other pools.
    ///
    /// Errors: an operation stayed open, the name was taken meanwhile, the device failed.
    pub fn publish(&self) -> Result<(), Error> {
        let inner = &*self.inner;
        inner.stopped(|| inner.medium.publish().map_err(Error::from))?
    }

    /// Makes everything committed so far durable on the device, whatever the domain.
    ///
    /// Errors: an operation stayed open, the device failed.
    pub fn sync(&self) -> Result<(), Error> {
        let inner = &*self.inner;
        inner.stopped(|| inner.medium.sync().map_err(Error::from))?
    }

    /// Gives the blocks of free space back to the device, in pieces of 64 KiB and more, and cuts free chunks off the
    /// end. Returns the bytes of those pieces; the blocks of some may have been given back by an earlier open.
    ///
    /// Errors: the medium failed; the rest stays as it was.
    pub fn release_free_space(&self) -> Result<u64, Error> {
        self.inner.release_free_space(PageSize::Small)
    }
}
