//! Handles: a program's own variables that point into the heap across operations.
//!
//! The pool keeps a table of them, so that a strong handle keeps its object alive, and so that the
//! collector can change where they point.

use core::marker::PhantomData;
use std::sync::Arc;

use firn_format::reference::RefWord;
use firn_media::{Lock, Medium, MediumExt};

use crate::inner::Inner;
use crate::object::Obj;
use crate::pool::Pool;
use crate::steps;
use crate::stored::Target;
use crate::view::View;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Strength {
    Strong,
    Weak,
}

#[derive(Clone, Copy)]
struct Entry {
    reference: RefWord,
    strength: Strength,
}

#[derive(Default)]
struct Entries {
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
}

/// Every handle of an open pool.
pub(crate) struct HandleTable(Lock<Entries>);

impl HandleTable {
    pub(crate) fn new() -> Self {
        Self(Lock::new(Entries::default()))
    }

    fn insert<M: Medium>(&self, medium: &M, entry: Entry) -> usize {
        let mut table = self.0.lock(medium);
        match table.free.pop() {
            Some(index) => {
                table.entries[index] = Some(entry);
                index
            }
            None => {
                table.entries.push(Some(entry));
                table.entries.len() - 1
            }
        }
    }

    /// References of the strong handles: roots of a trace (rule M5).
    pub(crate) fn strong<M: Medium>(&self, medium: &M) -> Vec<RefWord> {
        let table = self.0.lock(medium);
        let strong = |e: &&Entry| e.strength == Strength::Strong;
        table
            .entries
            .iter()
            .flatten()
            .filter(strong)
            .map(|e| e.reference)
            .collect()
    }

    /// What all handles name.
    pub(crate) fn all<M: Medium>(&self, medium: &M) -> Vec<RefWord> {
        let table = self.0.lock(medium);
        let references = table.entries.iter().flatten().map(|e| e.reference);
        references
            .filter(|reference| !reference.is_null())
            .collect()
    }

    /// Clears weak handles whose object `lives` denies.
    pub(crate) fn clear_weak<M: Medium>(&self, medium: &M, lives: impl Fn(RefWord) -> bool) {
        let mut table = self.0.lock(medium);
        for entry in table.entries.iter_mut().flatten() {
            if entry.strength == Strength::Weak && !lives(entry.reference) {
                entry.reference = RefWord::NULL;
            }
        }
    }

    /// Changes where handles point, for an object that was moved.
    pub(crate) fn forward<M: Medium>(&self, medium: &M, to: impl Fn(RefWord) -> RefWord) {
        let mut table = self.0.lock(medium);
        for entry in table.entries.iter_mut().flatten() {
            entry.reference = to(entry.reference);
        }
    }
}

/// A volatile variable that points into the pool across operations.
///
/// A strong one keeps its object alive in a traced pool; a weak one reads as nothing once its object
/// was reclaimed.
pub struct Handle<T, M: Medium> {
    pool: Arc<Inner<M>>,
    index: usize,
    of: PhantomData<fn() -> T>,
}

impl<M: Medium> Pool<M> {
    /// A strong handle to an object.
    pub fn handle<'g, T: Target, V>(&self, object: Obj<'g, T, V>) -> Handle<T, M>
    where
        V: View<'g, Medium = M>,
    {
        self.new_handle(object, Strength::Strong)
    }

    /// A weak handle to an object.
    pub fn weak_handle<'g, T: Target, V>(&self, object: Obj<'g, T, V>) -> Handle<T, M>
    where
        V: View<'g, Medium = M>,
    {
        self.new_handle(object, Strength::Weak)
    }

    fn new_handle<'g, T, V>(&self, object: Obj<'g, T, V>, strength: Strength) -> Handle<T, M>
    where
        V: View<'g, Medium = M>,
    {
        // An object of another pool is nothing here.
        let own = core::ptr::eq(object.view().inner(), &*self.inner);
        let reference = if own {
            object.reference()
        } else {
            RefWord::NULL
        };
        let entry = Entry {
            reference,
            strength,
        };
        let index = self.inner.handles.insert(&self.inner.medium, entry);
        Handle {
            pool: Arc::clone(&self.inner),
            index,
            of: PhantomData,
        }
    }
}

impl<T, M: Medium> Handle<T, M> {
    /// The reference now; null if the handle belongs to another pool.
    pub(crate) fn current(&self, inner: &Inner<M>) -> RefWord {
        if !core::ptr::eq(&*self.pool, inner) {
            return RefWord::NULL;
        }
        let medium = &inner.medium;
        let entry = inner.handles.0.lock(medium).entries[self.index];
        let Some(Entry {
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
        let mut table = self.pool.handles.0.lock(&self.pool.medium);
        table.entries[self.index] = None;
        table.free.push(self.index);
    }
}
