//! The path to the objects of a population: a structure of each shape behind one interface.

use firn_heap::{Bytes, Error, Handle, Pool, Refs, Tx, View};
use firn_media::Medium;
use firn_structures::avl::Avl;
use firn_structures::hash::HashRoot;
use firn_structures::inline_tree::Inline;
use firn_structures::map::MapRoot;
use firn_structures::red_black::RedBlack;
use firn_structures::strings::StringsRoot;
use firn_structures::tree::{Kind, Tree};
use firn_structures::{HashMap, Map, StringArray};

use crate::chain::Chain;
use crate::key::{key, key_number};
use crate::list::List;
use crate::reclaim;
use crate::shape::Shape;
use crate::{GONE, MAP};

/// The structure that leads to the objects.
pub(crate) enum Way<M: Medium> {
    Map(Handle<MapRoot, M>),
    Refs(Handle<Refs<Bytes>, M>),
    List(List<M>),
    Chain(Chain<M>),
    Avl(TreeHandle<Avl, M>),
    RedBlack(TreeHandle<RedBlack, M>),
    InlineTree(TreeHandle<Inline, M>),
    Strings(Handle<StringsRoot, M>),
    Hash(Handle<HashRoot, M>),
}

/// A tree's root object.
type TreeHandle<K, M> = Handle<<K as Kind>::Root, M>;

impl<M: Medium> Way<M> {
    /// Makes an empty structure that will hold numbers below `n`.
    pub(crate) fn new(pool: &Pool<M>, tx: Tx<'_, M>, shape: Shape, n: u64) -> Result<Self, Error> {
        Ok(match shape {
            Shape::Map => Way::Map(pool.handle(Map::create(tx, MAP)?.object())),
            Shape::Refs => Way::Refs(pool.handle(tx.alloc_refs::<Bytes>(n as usize)?)),
            Shape::List => Way::List(List::new(pool, tx)?),
            Shape::Chain => Way::Chain(Chain::new(pool, tx, n)?),
            Shape::Avl => Way::Avl(pool.handle(Tree::<_, Avl>::new(tx)?.object())),
            Shape::RedBlack => Way::RedBlack(pool.handle(Tree::<_, RedBlack>::new(tx)?.object())),
            Shape::InlineTree => Way::InlineTree(pool.handle(Tree::<_, Inline>::new(tx)?.object())),
            Shape::Strings => Way::Strings(pool.handle(StringArray::new(tx, n)?.object())),
            Shape::Hash => Way::Hash(pool.handle(HashMap::new(tx)?.object())),
        })
    }

    /// Adds an object.
    #[inline]
    pub(crate) fn insert(&self, tx: Tx<'_, M>, number: u32, value: &[u8]) -> Result<(), Error> {
        match self {
            Way::Map(map) => {
                let mut map = Map::at(tx.deref(map).ok_or(GONE)?);
                map.insert(&key(number), value).map(|_| ())
            }
            Way::Refs(refs) => {
                let refs = tx.deref(refs).ok_or(GONE)?;
                refs.set(number as usize, Some(tx.alloc_bytes(value)?))
            }
            Way::List(list) => list.insert(tx, number),
            Way::Chain(chain) => chain.insert(tx, number, value),
            Way::Avl(tree) => insert_in::<Avl, M>(tx, tree, number, value),
            Way::RedBlack(tree) => insert_in::<RedBlack, M>(tx, tree, number, value),
            Way::InlineTree(tree) => insert_in::<Inline, M>(tx, tree, number, value),
            Way::Strings(strings) => {
                let mut strings = StringArray::at(tx.deref(strings).ok_or(GONE)?);
                strings.set(number.into(), value).map(|_| ())
            }
            Way::Hash(map) => {
                let mut map = HashMap::at(tx.deref(map).ok_or(GONE)?);
                map.insert(&key(number), value).map(|_| ())
            }
        }
    }

    /// Removes an object that is there.
    #[inline]
    pub(crate) fn remove(&self, tx: Tx<'_, M>, number: u32) -> Result<(), Error> {
        match self {
            Way::Map(map) => {
                let mut map = Map::at(tx.deref(map).ok_or(GONE)?);
                map.remove(&key(number)).map(|_| ())
            }
            Way::Refs(refs) => {
                let refs = tx.deref(refs).ok_or(GONE)?;
                let old = refs.get(number as usize).ok_or(GONE)?;
                refs.set(number as usize, None)?;
                reclaim::free(tx, old)
            }
            // They are removed in one pass over the list.
            Way::List(_) => Err(GONE),
            Way::Chain(chain) => chain.remove(tx, number),
            Way::Avl(tree) => remove_from::<Avl, M>(tx, tree, number),
            Way::RedBlack(tree) => remove_from::<RedBlack, M>(tx, tree, number),
            Way::InlineTree(tree) => remove_from::<Inline, M>(tx, tree, number),
            Way::Strings(strings) => {
                let mut strings = StringArray::at(tx.deref(strings).ok_or(GONE)?);
                strings.remove(number.into()).map(|_| ())
            }
            Way::Hash(map) => {
                let mut map = HashMap::at(tx.deref(map).ok_or(GONE)?);
                map.remove(&key(number)).map(|_| ())
            }
        }
    }

    /// Copies the values of objects that are there, one after the other.
    #[inline]
    pub(crate) fn get<'g, V: View<'g, Medium = M>>(
        &self,
        view: V,
        numbers: &[u32],
        into: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match self {
            Way::Map(map) => {
                let map = Map::at(view.deref(map).ok_or(GONE)?);
                let reader = map.read()?;
                each(numbers, into, |n, into| reader.get_into(&key(n), into))
            }
            Way::Refs(refs) => {
                let refs = view.deref(refs).ok_or(GONE)?;
                each(numbers, into, |n, into| {
                    let bytes = refs.get(n as usize).ok_or(GONE)?;
                    bytes.read_into(into).map(|()| true)
                })
            }
            Way::List(_) => Err(GONE),
            Way::Chain(chain) => {
                let index = chain.index(view)?;
                each(numbers, into, |n, into| Ok(Chain::<M>::get(index, n, into)))
            }
            Way::Avl(tree) => get_from::<Avl, V>(view, tree, numbers, into),
            Way::RedBlack(tree) => get_from::<RedBlack, V>(view, tree, numbers, into),
            Way::InlineTree(tree) => get_from::<Inline, V>(view, tree, numbers, into),
            Way::Strings(strings) => {
                let strings = StringArray::at(view.deref(strings).ok_or(GONE)?);
                let reader = strings.read()?;
                each(numbers, into, |n, into| reader.get_into(n.into(), into))
            }
            Way::Hash(map) => {
                let map = HashMap::at(view.deref(map).ok_or(GONE)?);
                let reader = map.read()?;
                each(numbers, into, |n, into| reader.get_into(&key(n), into))
            }
        }
    }

    /// Gets the values of objects that are there, all requested at once where the structure supports it.
    #[inline]
    pub(crate) fn get_each<'g, V: View<'g, Medium = M>>(
        &self,
        view: V,
        numbers: &[u32],
        into: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut found = 0;
        let count = |_: usize, value: Option<&[u8]>| found += usize::from(value.is_some());
        match self {
            Way::Chain(chain) => Chain::<M>::get_each(chain.index(view)?, numbers, into, count),
            Way::Avl(tree) => get_each_from::<Avl, V>(view, tree, numbers, count)?,
            Way::RedBlack(tree) => get_each_from::<RedBlack, V>(view, tree, numbers, count)?,
            Way::InlineTree(tree) => get_each_from::<Inline, V>(view, tree, numbers, count)?,
            Way::Strings(strings) => {
                let strings = StringArray::at(view.deref(strings).ok_or(GONE)?);
                let numbers: Vec<u64> = numbers.iter().map(|&n| n.into()).collect();
                strings.read()?.get_each(&numbers, count)?;
            }
            Way::Map(_) | Way::Refs(_) | Way::List(_) | Way::Hash(_) => {
                return self.get(view, numbers, into);
            }
        }
        (found == numbers.len()).then_some(()).ok_or(GONE)
    }
}

/// Gets one after the other into one buffer.
#[inline]
fn each(
    numbers: &[u32],
    into: &mut Vec<u8>,
    mut get: impl FnMut(u32, &mut Vec<u8>) -> Result<bool, Error>,
) -> Result<(), Error> {
    numbers.iter().try_for_each(|&number| {
        into.clear();
        if get(number, into)? {
            Ok(())
        } else {
            Err(GONE)
        }
    })
}

#[inline]
fn insert_in<K: Kind, M: Medium>(
    tx: Tx<'_, M>,
    tree: &TreeHandle<K, M>,
    number: u32,
    value: &[u8],
) -> Result<(), Error> {
    let mut tree = Tree::<_, K>::at(tx.deref(tree).ok_or(GONE)?);
    tree.insert(key_number(number), value).map(|_| ())
}

#[inline]
fn remove_from<K: Kind, M: Medium>(
    tx: Tx<'_, M>,
    tree: &TreeHandle<K, M>,
    number: u32,
) -> Result<(), Error> {
    let mut tree = Tree::<_, K>::at(tx.deref(tree).ok_or(GONE)?);
    tree.remove(key_number(number)).map(|_| ())
}

#[inline]
fn get_from<'g, K: Kind, V: View<'g>>(
    view: V,
    tree: &TreeHandle<K, V::Medium>,
    numbers: &[u32],
    into: &mut Vec<u8>,
) -> Result<(), Error> {
    let tree = Tree::<_, K>::at(view.deref(tree).ok_or(GONE)?);
    let reader = tree.read()?;
    each(numbers, into, |n, into| {
        reader.get_into(key_number(n), into)
    })
}

#[inline]
fn get_each_from<'g, K: Kind, V: View<'g>>(
    view: V,
    tree: &TreeHandle<K, V::Medium>,
    numbers: &[u32],
    each: impl FnMut(usize, Option<&[u8]>),
) -> Result<(), Error> {
    let tree = Tree::<_, K>::at(view.deref(tree).ok_or(GONE)?);
    let keys: Vec<u64> = numbers.iter().map(|&n| key_number(n)).collect();
    tree.read()?.get_each(&keys, each)
}
