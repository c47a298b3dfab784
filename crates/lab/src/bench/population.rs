//! What is measured: objects that come to a structure and go from it by number.

use firn_heap::{Bytes, Error, Handle, Pool, Ref, Refs, Session, Stored, Tx, View};
use firn_media::Medium;
use firn_structures::avl::Avl;
use firn_structures::hash::HashRoot;
use firn_structures::inline_tree::Inline;
use firn_structures::map::MapRoot;
use firn_structures::red_black::RedBlack;
use firn_structures::strings::StringsRoot;
use firn_structures::tree::{Kind, Tree};
use firn_structures::{HashMap, Map, StringArray};

use super::chain::Chain;
use super::map::{key, key_number};
use super::{operation, reclaim};

/// The root of a map.
pub(super) const MAP: &str = "map";
/// Objects that one transaction brings or takes, unless told otherwise.
const BATCH: usize = 16;
/// Of so many objects, four are deleted.
const DELETED_OF: usize = 5;
/// What decides sizes, and which objects are deleted where nothing else does.
pub(crate) const SEED: u64 = 1;
/// Sizes that are drawn: from the smallest, doubled so many times at most.
const SMALLEST_BYTES: f64 = 16.0;
const DOUBLINGS: f64 = 11.0;
/// Bytes of the largest value.
const LARGEST_BYTES: usize = 32 << 10;

/// How objects refer to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Values of an ordered map, a B+tree.
    Map,
    /// Named by one flat array of references.
    Refs,
    /// A singly linked list of values.
    List,
    /// A doubly linked list of values whose elements an array of references names too.
    Chain,
    /// An AVL tree.
    Avl,
    /// A red-black tree.
    RedBlack,
    /// A B+tree with values in its leaves.
    InlineTree,
    /// An array of strings.
    Strings,
    /// A hash map.
    Hash,
}

impl Shape {
    /// What its figures are called.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Shape::Map => "map",
            Shape::Refs => "refs",
            Shape::List => "list",
            Shape::Chain => "linked_list",
            Shape::Avl => "avl",
            Shape::RedBlack => "red_black",
            Shape::InlineTree => "inline_tree",
            Shape::Strings => "strings",
            Shape::Hash => "hash",
        }
    }
}

/// How large values are. Those of a list are all alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// 128 bytes, as in FFCCD's workloads.
    Fixed,
    /// Log-uniform from 16 bytes to 32 KiB.
    LogUniform,
}

impl Sizes {
    /// What its figures are called.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Sizes::Fixed => "128",
            Sizes::LogUniform => "mixed",
        }
    }

    fn draw(self, rng: &mut fastrand::Rng) -> usize {
        match self {
            Sizes::Fixed => operation::SMALL_BYTES,
            Sizes::LogUniform => (SMALLEST_BYTES * (rng.f64() * DOUBLINGS).exp2()) as usize,
        }
    }
}

pub(super) const VALUE_WORDS: usize = operation::SMALL_BYTES / size_of::<u64>();

/// An element of a list.
#[derive(Stored)]
#[repr(C)]
pub(super) struct Link {
    next: Ref<Link>,
    number: u64,
    value: [u64; VALUE_WORDS],
}

/// What leads to the objects.
enum Way<M: Medium> {
    Map(Handle<MapRoot, M>),
    Refs(Handle<Refs<Bytes>, M>),
    /// In front of the first element.
    List(Handle<Link, M>),
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
    /// Brings an object.
    #[inline]
    fn insert(&self, tx: Tx<'_, M>, number: u32, value: &[u8]) -> Result<(), Error> {
        match self {
            Way::Map(map) => {
                let mut map = Map::at(tx.deref(map).ok_or(GONE)?);
                map.insert(&key(number), value).map(|_| ())
            }
            Way::Refs(refs) => {
                let refs = tx.deref(refs).ok_or(GONE)?;
                refs.set(number as usize, Some(tx.alloc_bytes(value)?))
            }
            Way::List(front) => {
                let front = tx.deref(front).ok_or(GONE)?;
                let link = tx.alloc(Link::new(number, Ref::NULL))?;
                link.link(Link::NEXT, front.follow(Link::NEXT));
                front.link(Link::NEXT, Some(link));
                Ok(())
            }
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

    /// Takes an object away that is there.
    #[inline]
    fn remove(&self, tx: Tx<'_, M>, number: u32) -> Result<(), Error> {
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
            // They go in one pass over the list.
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
    fn get<'g, V: View<'g, Medium = M>>(
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

    /// Asks for the values of objects that are there all at once, where the structure can be asked so.
    #[inline]
    fn get_each<'g, V: View<'g, Medium = M>>(
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

/// Gets one after the other into a buffer, which every one of them is.
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

/// A structure and its objects, through one thread's session.
pub(crate) struct Population<M: Medium> {
    pool: Pool<M>,
    session: Session<M>,
    way: Way<M>,
    sizes: Sizes,
    /// Objects that one transaction brings or takes.
    batch: usize,
    rng: fastrand::Rng,
    value: Vec<u8>,
}

/// The numbers of `n` objects: first those that are deleted, four of five, then those that stay; both
/// in random order.
pub(crate) fn shuffled(n: u64, seed: u64) -> (Vec<u32>, Vec<u32>) {
    let mut all: Vec<u32> = (0..n as u32).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut all);
    let stay = all.split_off(all.len() / DELETED_OF * (DELETED_OF - 1));
    (all, stay)
}

impl<M: Medium> Population<M> {
    /// Makes an empty structure that will hold numbers below `n`.
    pub(crate) fn new(pool: &Pool<M>, shape: Shape, sizes: Sizes, n: u64) -> Result<Self, Error> {
        let mut session = pool.session()?;
        let way = session.transaction(|tx| {
            Ok::<_, Error>(match shape {
                Shape::Map => Way::Map(pool.handle(Map::create(tx, MAP)?.object())),
                Shape::Refs => Way::Refs(pool.handle(tx.alloc_refs::<Bytes>(n as usize)?)),
                Shape::List => Way::List(pool.handle(tx.alloc(Link::new(0, Ref::NULL))?)),
                Shape::Chain => Way::Chain(Chain::new(pool, tx, n)?),
                Shape::Avl => Way::Avl(pool.handle(Tree::<_, Avl>::new(tx)?.object())),
                Shape::RedBlack => {
                    Way::RedBlack(pool.handle(Tree::<_, RedBlack>::new(tx)?.object()))
                }
                Shape::InlineTree => {
                    Way::InlineTree(pool.handle(Tree::<_, Inline>::new(tx)?.object()))
                }
                Shape::Strings => Way::Strings(pool.handle(StringArray::new(tx, n)?.object())),
                Shape::Hash => Way::Hash(pool.handle(HashMap::new(tx)?.object())),
            })
        })?;
        Ok(Self {
            pool: pool.clone(),
            session,
            way,
            sizes,
            batch: BATCH,
            rng: fastrand::Rng::with_seed(SEED),
            value: vec![1; LARGEST_BYTES],
        })
    }

    /// Makes a structure with the objects below `n`, brought in order.
    pub(super) fn filled(
        pool: &Pool<M>,
        shape: Shape,
        sizes: Sizes,
        n: u64,
    ) -> Result<Self, Error> {
        let mut population = Self::new(pool, shape, sizes, n)?;
        let all: Vec<u32> = (0..n as u32).collect();
        population.add(&all)?;
        Ok(population)
    }

    /// From now on every object is brought or taken by a transaction of its own.
    pub(crate) fn take_one_a_transaction(&mut self) {
        self.batch = 1;
    }

    /// The thread's session.
    pub(super) fn session(&mut self) -> &mut Session<M> {
        &mut self.session
    }

    /// Brings objects.
    pub(crate) fn add(&mut self, numbers: &[u32]) -> Result<(), Error> {
        numbers
            .chunks(self.batch)
            .try_for_each(|some| self.add_some(some))
    }

    /// Takes objects that are there away.
    pub(crate) fn remove(&mut self, numbers: &[u32]) -> Result<(), Error> {
        if let Way::List(_) = self.way {
            return self.unlink(numbers);
        }
        numbers
            .chunks(self.batch)
            .try_for_each(|some| self.remove_some(some))
    }

    fn add_some(&mut self, numbers: &[u32]) -> Result<(), Error> {
        let Self {
            session,
            way,
            sizes,
            rng,
            value,
            ..
        } = self;
        session.transaction(|tx| {
            numbers.iter().try_for_each(|&number| {
                let len = sizes.draw(rng);
                way.insert(tx, number, &value[..len])
            })
        })
    }

    fn remove_some(&mut self, numbers: &[u32]) -> Result<(), Error> {
        let way = &self.way;
        self.session.transaction(|tx| {
            numbers
                .iter()
                .try_for_each(|&number| way.remove(tx, number))
        })
    }

    /// Finds objects that are there and copies the value of each, in one guard.
    pub(super) fn get(&mut self, numbers: &[u32], value: &mut Vec<u8>) -> Result<(), Error> {
        self.way.get(self.session.guard().view(), numbers, value)
    }

    /// Finds objects that are there, all of which are asked for at once.
    pub(super) fn get_each(&mut self, numbers: &[u32], value: &mut Vec<u8>) -> Result<(), Error> {
        self.way
            .get_each(self.session.guard().view(), numbers, value)
    }

    /// Goes through the list once and takes these away, some in each transaction.
    fn unlink(&mut self, numbers: &[u32]) -> Result<(), Error> {
        let most = numbers.iter().max().map_or(0, |&most| most as usize + 1);
        let mut gone = vec![false; most];
        numbers.iter().for_each(|&n| gone[n as usize] = true);
        let is_gone = |number: u64| gone.get(number as usize).copied().unwrap_or(false);
        let Way::List(front) = &self.way else {
            return Ok(());
        };
        let (pool, batch) = (&self.pool, self.batch);
        let mut before: Option<Handle<Link, M>> = None;
        loop {
            let next = self.session.transaction(|tx| {
                let mut at = tx.deref(before.as_ref().unwrap_or(front)).ok_or(GONE)?;
                let mut left = batch;
                while let Some(next) = at.follow(Link::NEXT) {
                    if !is_gone(next.load(Link::NUMBER)) {
                        at = next;
                        continue;
                    }
                    if left == 0 {
                        return Ok::<_, Error>(Some(pool.handle(at)));
                    }
                    at.link(Link::NEXT, next.follow(Link::NEXT));
                    reclaim::free(tx, next)?;
                    left -= 1;
                }
                Ok(None)
            })?;
            match next {
                Some(at) => before = Some(at),
                None => return Ok(()),
            }
        }
    }
}

impl Link {
    fn new(number: u32, next: Ref<Link>) -> Self {
        Self {
            next,
            number: u64::from(number),
            value: [0; VALUE_WORDS],
        }
    }
}

pub(super) const GONE: Error = Error::NotAllocated { at: 0 };
