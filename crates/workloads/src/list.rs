//! A singly linked list of values.

use firn_heap::{Error, Handle, Pool, Ref, Session, Stored, Tx, View};
use firn_media::Medium;

use crate::reclaim;
use crate::{GONE, VALUE_WORDS};

/// An element. The first has no predecessor.
#[derive(Stored)]
#[repr(C)]
pub(crate) struct Link {
    next: Ref<Link>,
    number: u64,
    value: [u64; VALUE_WORDS],
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

/// A list.
pub(crate) struct List<M: Medium> {
    front: Handle<Link, M>,
}

impl<M: Medium> List<M> {
    /// Makes an empty list.
    pub(crate) fn new(pool: &Pool<M>, tx: Tx<'_, M>) -> Result<Self, Error> {
        Ok(Self {
            front: pool.handle(tx.alloc(Link::new(0, Ref::NULL))?),
        })
    }

    /// Inserts an element at the front.
    #[inline]
    pub(crate) fn insert(&self, tx: Tx<'_, M>, number: u32) -> Result<(), Error> {
        let front = tx.deref(&self.front).ok_or(GONE)?;
        let link = tx.alloc(Link::new(number, Ref::NULL))?;
        link.link(Link::NEXT, front.follow(Link::NEXT));
        front.link(Link::NEXT, Some(link));
        Ok(())
    }

    /// Walks the list once and removes these elements, up to `batch` in each transaction.
    pub(crate) fn unlink(
        &self,
        pool: &Pool<M>,
        session: &mut Session<M>,
        numbers: &[u32],
        batch: usize,
    ) -> Result<(), Error> {
        let most = numbers.iter().max().map_or(0, |&most| most as usize + 1);
        let mut gone = vec![false; most];
        numbers.iter().for_each(|&n| gone[n as usize] = true);
        let is_gone = |number: u64| gone.get(number as usize).copied().unwrap_or(false);
        let front = &self.front;
        let mut before: Option<Handle<Link, M>> = None;
        loop {
            let next = session.transaction(|tx| {
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
