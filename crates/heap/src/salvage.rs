//! Salvage: a new pool of what is whole in one that the death of the machine may have torn.
//!
//! On an ordinary file the device holds some of the pages as they were last, and others as they were earlier. What
//! has a checksum, and what refers to what, tells when they do not belong together. What it does not tell is whether
//! the bytes of an object that are no references are the last ones: nothing on media says so.

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

/// What a salvage found of a pool, and what it did not.
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
    /// What made no sense: the first thousand places.
    pub findings: Vec<Finding>,
}

impl Salvaged {
    /// Whether nothing was found that made no sense, and nothing is missing that something refers to.
    pub fn is_whole(&self) -> bool {
        self.lost_references == 0 && self.lost_roots.is_empty() && self.findings.is_empty()
    }
}

impl<M: Medium> Pool<M> {
    /// Opens a pool as [`Pool::open`] does, also one that was open on an ordinary file when the machine went down. What
    /// is in it may not belong together; recovery stores to it all the same. So `medium` is a copy that nobody misses.
    ///
    /// Errors: as [`Pool::open`], but for [`OpenError::MachineDied`](crate::OpenError::MachineDied).
    pub fn open_torn(medium: M, options: &PoolOptions) -> Result<Self, crate::OpenError> {
        Self::open_any(medium, options, true)
    }

    /// Makes a new pool on `target` of what is whole in `torn`, a pool that was open on an ordinary file when the
    /// machine went down, or any other. `torn` is a copy that nobody misses: it is recovered first.
    ///
    /// What is reachable and makes sense is copied, as [`Pool::copy_into`] does; references to what does not become null.
    /// Where references lie in pairs of words, as in pools of programs that were written for libpmemobj, nothing can be
    /// left out and no address may change: such a pool is taken as it is if the checker finds nothing, or not at all.
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
        // A pool whose programs hold addresses says in its log what they may hold. Any other is only read.
        if let Ok(superblock) = newest_superblock(&torn)
            && superblock.kind == PoolKind::Explicit
        {
            options.log = superblock.log;
        }
        let from = Self::open_torn(torn, &options)?;
        // It takes the place of what is torn. `torn` is nobody's, so that nothing is open beside it.
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
