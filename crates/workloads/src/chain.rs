//! A doubly linked list whose elements are also named by an array of references, like a cache's list by its index: an
//! element is found and removed in constant time.

use firn_heap::{Error, Handle, Obj, Pool, Ref, Refs, Stored, Tx, View};
use firn_media::Medium;

use crate::reclaim;
use crate::{GONE, VALUE_WORDS};

/// Elements that are prefetched at once.
const ABREAST: usize = 16;

/// An element. The first has no predecessor and the last no successor.
#[derive(Stored)]
#[repr(C)]
pub(crate) struct Element {
    next: Ref<Element>,
    previous: Ref<Element>,
    number: u64,
    value: [u64; VALUE_WORDS],
}

/// A list and its index.
pub(crate) struct Chain<M: Medium> {
    /// Its next is the first element, its previous the last.
    ends: Handle<Element, M>,
    index: Handle<Refs<Element>, M>,
}

impl Element {
    const fn new(number: u64, byte: u8) -> Self {
        Self {
            next: Ref::NULL,
            previous: Ref::NULL,
            number,
            value: [byte as u64; VALUE_WORDS],
        }
    }
}

impl<M: Medium> Chain<M> {
    /// Makes an empty list that will hold numbers below `n`.
    pub(crate) fn new(pool: &Pool<M>, tx: Tx<'_, M>, n: u64) -> Result<Self, Error> {
        Ok(Self {
            ends: pool.handle(tx.alloc(Element::new(u64::MAX, 0))?),
            index: pool.handle(tx.alloc_refs::<Element>(n as usize)?),
        })
    }

    /// Appends an element.
    #[inline]
    pub(crate) fn insert(&self, tx: Tx<'_, M>, number: u32, value: &[u8]) -> Result<(), Error> {
        let ends = tx.deref(&self.ends).ok_or(GONE)?;
        let byte = value.first().copied().unwrap_or(0);
        let fresh = tx.alloc(Element::new(u64::from(number), byte))?;
        let last = ends.follow(Element::PREVIOUS);
        fresh.link(Element::PREVIOUS, last);
        last.unwrap_or(ends).link(Element::NEXT, Some(fresh));
        ends.link(Element::PREVIOUS, Some(fresh));
        let index = tx.deref(&self.index).ok_or(GONE)?;
        index.set(number as usize, Some(fresh))
    }

    /// Removes an element.
    #[inline]
    pub(crate) fn remove(&self, tx: Tx<'_, M>, number: u32) -> Result<(), Error> {
        let ends = tx.deref(&self.ends).ok_or(GONE)?;
        let index = tx.deref(&self.index).ok_or(GONE)?;
        let old = index.get(number as usize).ok_or(GONE)?;
        tx.expect_free(old);
        let (previous, next) = (old.follow(Element::PREVIOUS), old.follow(Element::NEXT));
        previous.unwrap_or(ends).link(Element::NEXT, next);
        next.unwrap_or(ends).link(Element::PREVIOUS, previous);
        index.set(number as usize, None)?;
        reclaim::free(tx, old)
    }

    /// The array of references.
    pub(crate) fn index<'g, V: View<'g, Medium = M>>(
        &self,
        view: V,
    ) -> Result<Obj<'g, Refs<Element>, V>, Error> {
        view.deref(&self.index).ok_or(GONE)
    }

    /// Appends the value of an element, if it is there.
    #[inline]
    pub(crate) fn get<'g, V: View<'g>>(
        index: Obj<'g, Refs<Element>, V>,
        number: u32,
        into: &mut Vec<u8>,
    ) -> bool {
        let Some(element) = index.get(number as usize) else {
            return false;
        };
        element.append_bytes(Element::VALUE, usize::MAX, into);
        true
    }

    /// Passes the values of some elements to `each`, through `into`. The elements are prefetched together.
    pub(crate) fn get_each<'g, V: View<'g>>(
        index: Obj<'g, Refs<Element>, V>,
        numbers: &[u32],
        into: &mut Vec<u8>,
        mut each: impl FnMut(usize, Option<&[u8]>),
    ) {
        let mut place = 0;
        for numbers in numbers.chunks(ABREAST) {
            let mut found = [None; ABREAST];
            for (found, &number) in found.iter_mut().zip(numbers) {
                *found = index.get(number as usize);
                if let Some(element) = found {
                    element.expect_field(Element::VALUE);
                }
            }
            for element in &found[..numbers.len()] {
                into.clear();
                if let Some(element) = element {
                    element.append_bytes(Element::VALUE, usize::MAX, into);
                }
                each(place, element.is_some().then_some(into));
                place += 1;
            }
        }
    }
}
