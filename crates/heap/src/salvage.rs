//! Salvage: builds a new pool from the undamaged parts of one that the death of the machine may have torn.
//!
//! On an ordinary file the device holds the latest content of some pages, and earlier content of others. Checksums and
//! references show when they do not belong together. They do not show whether the bytes of an object that are no
//! references are the latest: nothing on media says so.

use firn_format::superblock::PoolKind;
use firn_media::Medium;

use crate::clone;
use crate::copy::{CopyError, CopyProgress, Loss, copy_objects};
use crate::error::{Error, OpenError};
use crate::finding::Finding;
use crate::options::PoolOptions;
use crate::pool::{Identity, Pool};
use crate::shape::Shapes;
use crate::superblock::newest_superblock;

/// The result of a salvage: what was copied, and what was lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Objects in the new pool.
    pub objects: u64,
    /// Their bytes as requested.
    pub bytes: u64,
    /// References to what is lost. They are null in the new pool.
    pub lost_references: u64,
    /// Roots whose objects are lost. They are not in the new pool.
    pub lost_roots: Vec<String>,
    /// The defects: the first thousand.
    pub findings: Vec<Finding>,
}

impl Salvaged {
    /// Whether the check found no defects, and nothing is missing to which something refers.
    pub fn is_whole(&self) -> bool {
        self.lost_references == 0 && self.lost_roots.is_empty() && self.findings.is_empty()
    }
}

impl<M: Medium> Pool<M> {
    /// Opens a pool as [`Pool::open`] does, and also one that was open on an ordinary file when the machine went down.
    /// Its content may not belong together, and yet recovery stores to it. So `medium` must be an expendable copy.
    ///
    /// Errors: as [`Pool::open`], except for [`OpenError::MachineDied`](crate::OpenError::MachineDied).
    pub fn open_torn(medium: M, options: &PoolOptions) -> Result<Self, crate::OpenError> {
        Self::open_any(medium, options, true)
    }

    /// Makes a new pool on `target` from the undamaged parts of `torn`: a pool that was open on an ordinary file when
    /// the machine went down, or any other. `torn` must be an expendable copy: it is recovered first.
    ///
    /// Reachable and undamaged objects are copied, as [`Pool::copy_into`] does; references to others become null. Where
    /// references lie in pairs of words, as in pools of programs that were written for libpmemobj, nothing can be left
    /// out and no address may change: such a pool is copied as it is if the checker finds nothing, or else refused.
    ///
    /// The new pool gets its name when it is closed, or from [`Pool::publish`].
    ///
    /// Errors: `torn` is no pool, or its superblock or its logs are damaged; no space on the target.
    pub fn salvage<N: Medium>(
        torn: M,
        target: N,
        layout: &str,
        progress: &mut dyn FnMut(CopyProgress),
    ) -> Result<(Pool<N>, Salvaged), CopyError> {
        let mut options = PoolOptions::new(layout);
        // An explicit pool keeps its log kind, which says whether addresses stay. Any other pool is only read.
        if let Ok(superblock) = newest_superblock(&torn)
            && superblock.kind == PoolKind::Explicit
        {
            options.log = superblock.log;
        }
        let from = Self::open_torn(torn, &options)?;
        // The copy takes the place of the torn pool. No program uses `torn`, so nothing is open beside the copy.
        let identity = Identity::of(&from.inner);
        target.claim(identity.uuid).map_err(OpenError::from)?;
        if Shapes::new(&from.inner.types).has_pairs() {
            return from.salvage_image(target);
        }
        let copy = Pool::create_as(target, &from.options_of_copy(), identity)?;
        let mut loss = Loss::Counted(Salvaged::default());
        let copied = from
            .inner
            .stopped(|| copy_objects(&from.inner, &copy.inner, &mut loss, progress));
        from.abandon();
        match (copied.and_then(|done| done), loss) {
            (Ok(()), Loss::Counted(salvaged)) => Ok((copy, salvaged)),
            (Err(error), _) => {
                copy.abandon();
                Err(error.into())
            }
            (Ok(()), Loss::Refused) => unreachable!("losses are counted"),
        }
    }

    /// Copies a pool as it is, frame by frame.
    fn salvage_image<N: Medium>(self, target: N) -> Result<(Pool<N>, Salvaged), CopyError> {
        if let Some(first) = self.check()?.first() {
            self.abandon();
            return Err(CopyError::NotWhole {
                finding: first.clone(),
            });
        }
        let inner = &*self.inner;
        let mut salvaged = Salvaged::default();
        crate::walk::each_allocated(&inner.medium, None, |slot, header| {
            salvaged.objects += 1;
            salvaged.bytes += crate::object::requested_bytes(header, slot.bytes).unwrap_or(0);
        })
        .map_err(Error::from)?;
        let copy = clone::clone_into(inner, target, &mut |_| {})?;
        self.abandon();
        Ok((copy, salvaged))
    }
}
