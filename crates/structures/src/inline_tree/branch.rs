//! Branches: separators, and the children between them.
//!
//! A branch has [`FANOUT`] slots, each with a separator and a child: every key below the child is at or above its
//! separator, and below the next one. The separator at place 0 is ignored. Free slots hold null references, so they do
//! not keep dropped objects alive.

use firn_heap::{Error, Field, KnownType, Obj, Ref, Stored, Tx, View};
use firn_media::Medium;

use super::leaf::Leaf;
use crate::map::order::{FANOUT, Order};
use crate::tree::damaged;

/// A branch: its children are leaves on the lowest level, and branches above. A search reads its first two lines and
/// one reference of the rest.
#[derive(Stored)]
#[firn(name = "firn.inline_tree.branch", version = 2)]
#[repr(C)]
pub struct Branch {
    /// Which slots are in use, and in which order.
    pub(crate) order: u64,
    /// The separators.
    pub(crate) keys: [u64; FANOUT],
    /// The children: on the lowest level these are references to leaves.
    pub(crate) children: [Ref<Branch>; FANOUT],
    /// Padding to a whole line.
    pub(crate) unused: [u64; 2],
}

const LINE_BYTES: usize = 64;
const HEADER_BYTES: usize = 8;
const _: () = assert!((core::mem::offset_of!(Branch, children) + HEADER_BYTES) == 2 * LINE_BYTES);
const _: () = assert!((size_of::<Branch>() + HEADER_BYTES).is_multiple_of(LINE_BYTES));

/// The field that refers to a child on the lowest level.
const fn leaf_field(slot: usize) -> Field<Branch, Ref<Leaf>> {
    Branch::CHILDREN.at(slot).retyped()
}

/// Bytes of a branch.
const BRANCH_BYTES: u64 = (HEADER_BYTES + size_of::<Branch>()) as u64;

/// The target of a slot.
pub enum Child<'g, V: View<'g>> {
    /// The child of a branch on the lowest level.
    Leaf(Obj<'g, Leaf, V>),
    /// The child of a higher branch.
    Branch(Obj<'g, Branch, V>),
}

impl<'g, V: View<'g>> Clone for Child<'g, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<'g, V: View<'g>> Copy for Child<'g, V> {}

/// A branch with a sound order word.
pub struct BranchAt<'g, V: View<'g>> {
    pub(crate) object: Obj<'g, Branch, V>,
    pub(crate) order: Order,
}

impl<'g, V: View<'g>> Clone for BranchAt<'g, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<'g, V: View<'g>> Copy for BranchAt<'g, V> {}

impl<'g, V: View<'g>> BranchAt<'g, V> {
    /// Checks type, count and slots. A branch has at least one child.
    #[inline]
    pub(crate) fn new(object: Obj<'g, Branch, V>) -> Result<Self, Error> {
        Self::known(object, object.view().known_type()?)
    }

    /// A branch whose type number is known.
    #[inline(always)]
    pub(crate) fn known(
        object: Obj<'g, Branch, V>,
        known: KnownType<Branch>,
    ) -> Result<Self, Error> {
        let object = object.check_known_type(known)?;
        match Order::from_word(object.load(Branch::ORDER)) {
            Some(order) if order.count() > 0 => Ok(Self { object, order }),
            _ => Err(damaged("the order word of a tree's branch", object)),
        }
    }

    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.order.count()
    }

    /// The separator at `place`.
    pub(crate) fn key(&self, place: usize) -> u64 {
        self.object.load(Branch::KEYS.at(self.order.slot(place)))
    }

    /// The place of the child whose range holds `key`.
    ///
    /// A binary search without a branch instruction, because the comparisons of separators with `key` are
    /// unpredictable.
    #[inline(always)]
    pub(crate) fn route(&self, key: u64) -> usize {
        let count = self.count();
        let mut low = 0;
        for step in [8, 4, 2, 1] {
            let place = low + step;
            let slot = self.order.slot(place.min(FANOUT - 1));
            let separator = self.object.load(Branch::KEYS.at(slot));
            low += step * (usize::from(place < count) & usize::from(separator <= key));
        }
        low
    }

    /// The leaf at `place` of a branch on the lowest level. The caller must check its type.
    #[inline(always)]
    pub(crate) fn leaf(&self, place: usize) -> Result<Obj<'g, Leaf, V>, Error> {
        let leaf = self.object.follow(leaf_field(self.order.slot(place)));
        leaf.ok_or_else(|| damaged("a missing leaf of a tree's branch", self.object))
    }

    /// The branch at `place` of one above the lowest level.
    #[inline]
    pub(crate) fn branch(&self, place: usize) -> Result<Self, Error> {
        Self::new(self.branch_object(place)?)
    }

    /// Prefetches a whole child branch, whose type is not checked yet.
    #[inline(always)]
    pub(crate) fn branch_object(&self, place: usize) -> Result<Obj<'g, Branch, V>, Error> {
        let branch = self
            .object
            .follow(Branch::CHILDREN.at(self.order.slot(place)));
        let branch =
            branch.ok_or_else(|| damaged("a missing child of a tree's branch", self.object))?;
        branch.expect(BRANCH_BYTES);
        Ok(branch)
    }

    /// The child at `place` of a branch `level` levels above the lowest.
    pub(crate) fn child(&self, place: usize, level: usize) -> Result<Child<'g, V>, Error> {
        match level {
            0 => self.leaf(place).map(Child::Leaf),
            _ => Ok(Child::Branch(self.branch(place)?.object)),
        }
    }

    /// Refuses an order word that names a slot twice: storing into it would lose a child.
    pub(crate) fn check_for_change(&self) -> Result<(), Error> {
        if self.order.is_permutation() {
            return Ok(());
        }
        Err(damaged("the order word of a tree's branch", self.object))
    }
}

impl<'t, M: Medium> BranchAt<'t, Tx<'t, M>> {
    /// A branch with one child.
    pub(crate) fn alloc(tx: Tx<'t, M>, child: Child<'t, Tx<'t, M>>) -> Result<Self, Error> {
        let object = tx.alloc(Branch {
            order: Order::identity(1).word(),
            keys: [0; FANOUT],
            children: [const { Ref::NULL }; FANOUT],
            unused: [0; 2],
        })?;
        let branch = Self::new(object)?;
        branch.set_child(0, child);
        Ok(branch)
    }

    /// Makes a slot refer to `child`.
    pub(crate) fn set_child(&self, slot: usize, child: Child<'t, Tx<'t, M>>) {
        match child {
            Child::Leaf(leaf) => self.object.link(leaf_field(slot), Some(leaf)),
            Child::Branch(branch) => self.object.link(Branch::CHILDREN.at(slot), Some(branch)),
        }
    }

    /// Changes the separator at `place`. The one at place 0 is ignored.
    pub(crate) fn set_key(&self, place: usize, key: u64) {
        if place > 0 {
            let slot = self.order.slot(place);
            self.object.store(Branch::KEYS.at(slot), key);
        }
    }

    /// Puts a child at `place` of a branch that is not full.
    pub(crate) fn add(&mut self, place: usize, key: u64, child: Child<'t, Tx<'t, M>>) {
        let slot = self.order.slot(self.count());
        self.object.store(Branch::KEYS.at(slot), key);
        self.set_child(slot, child);
        self.set_order(self.order.with_inserted(place));
    }

    /// Inserts a child before the one at `place`, in a branch that is not full: keys at or above `key` stay with the
    /// old child.
    pub(crate) fn add_in_front(&mut self, place: usize, key: u64, child: Child<'t, Tx<'t, M>>) {
        let (slot, old) = (self.order.slot(self.count()), self.order.slot(place));
        if place > 0 {
            let separator = self.object.load(Branch::KEYS.at(old));
            self.object.store(Branch::KEYS.at(slot), separator);
        }
        self.object.store(Branch::KEYS.at(old), key);
        self.set_child(slot, child);
        self.set_order(self.order.with_inserted(place));
    }

    /// Removes the child at `place`.
    pub(crate) fn drop_child(&mut self, place: usize) {
        let slot = self.order.slot(place);
        self.object.link::<Branch>(Branch::CHILDREN.at(slot), None);
        self.set_order(self.order.with_removed(place));
    }

    fn set_order(&mut self, order: Order) {
        self.object.store(Branch::ORDER, order.word());
        self.order = order;
    }
}
