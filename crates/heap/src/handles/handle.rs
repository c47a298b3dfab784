//! A handle.

use core::marker::PhantomData;
use std::sync::Arc;

use firn_format::reference::RefWord;
use firn_media::{Medium, MediumExt};

use super::table::{HandleSlot, Strength};
use crate::inner::Inner;
use crate::steps;

/// A volatile variable that points into the pool across operations.
///
/// A strong one keeps its object alive in a traced pool; a weak one reads as nothing once its object
/// was reclaimed.
pub struct Handle<T, M: Medium> {
    /// All of it, which does not end before its handles.
    pub(super) pool: Arc<Inner<M>>,
    pub(super) index: usize,
    pub(super) of: PhantomData<fn() -> T>,
}

impl<T, M: Medium> Handle<T, M> {
    /// The reference now; null if the handle belongs to another pool. The whole of it is passed because that is what
    /// tells the two apart: copies of a pool have its id.
    pub(crate) fn current(&self, inner: &Inner<M>) -> RefWord {
        if !core::ptr::eq(&*self.pool, inner) {
            return RefWord::NULL;
        }
        let medium = &inner.medium;
        let entry = inner.handles.get(medium, self.index);
        let Some(HandleSlot {
            reference,
            strength,
        }) = entry
        else {
            return RefWord::NULL;
        };
        // What a weak handle names may be unreachable, and so not marked, until the program stores
        // the reference somewhere: the marker has to know of it as of one that was replaced (M2).
        let is_lost = strength == Strength::Weak && !reference.is_null();
        if is_lost && inner.collector.is_marking() && medium.keeps(&steps::WEAK_REMEMBERED) {
            inner
                .collector
                .remember(medium, core::iter::once(reference));
        }
        reference
    }
}

impl<T, M: Medium> Drop for Handle<T, M> {
    fn drop(&mut self) {
        // A forked child has the table, and not those who may hold its lock.
        if !self.pool.medium.is_ours() {
            return;
        }
        self.pool.handles.remove(&self.pool.medium, self.index);
    }
}
