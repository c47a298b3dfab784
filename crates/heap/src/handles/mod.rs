//! Handles: a program's own variables that point into the heap across operations.
//!
//! The pool keeps a table of them, so that a strong handle keeps its object alive, and so that the
//! collector can change where they point.

mod handle;
mod table;

use core::marker::PhantomData;
use std::sync::Arc;

use firn_format::reference::RefWord;
use firn_media::Medium;

use crate::object::Obj;
use crate::pool::Pool;
use crate::stored::Target;
use crate::view::View;
use table::{HandleSlot, Strength};

pub use handle::Handle;
pub(crate) use table::HandleTable;

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
        let entry = HandleSlot {
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
