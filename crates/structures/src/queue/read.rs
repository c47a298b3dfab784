//! Reading under a lock that is held.

use core::marker::PhantomData;
use std::collections::HashSet;

use firn_heap::{Error, Obj, ReadLock, View};

use super::{PLACES, QueueRoot, Root, Segment, SegmentAt, element_of, front, place};
use crate::element::{self, Element, damaged};

/// Findings after which a check ends.
const MAX_FINDINGS: usize = 100;

/// A queue that no writer changes while this lives. See [`super::Queue::read`].
pub struct QueueReader<'l, 'g, V: View<'g>> {
    root: Root<'g, V>,
    _lock: ReadLock<'g, V::Medium>,
    /// A transaction cannot change the queue through the value that this was made of.
    of: PhantomData<&'l ()>,
}

impl<'g, V: View<'g>> QueueReader<'_, 'g, V> {
    #[inline]
    pub(crate) fn new(root: Root<'g, V>, lock: ReadLock<'g, V::Medium>) -> Self {
        Self {
            root,
            _lock: lock,
            of: PhantomData,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.root.load(QueueRoot::LEN)
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first element.
    pub fn front(&self) -> Result<Option<Vec<u8>>, Error> {
        self.iter().next().transpose()
    }

    /// All elements, the first one first.
    pub fn iter(&self) -> Iter<'_, 'g, V> {
        Iter {
            root: self.root,
            at: None,
            left: crate::plausible_len(self.root.view(), self.len()),
            of: PhantomData,
        }
    }
}

/// Elements of a queue. After an error there are no further ones.
pub struct Iter<'r, 'g, V: View<'g>> {
    root: Root<'g, V>,
    /// Where the next element is; `None` before the first.
    at: Option<(SegmentAt<'g, V>, usize)>,
    /// Elements to come, as the length says: damaged links cannot lead in a circle.
    left: u64,
    of: PhantomData<&'r ()>,
}

impl<'g, V: View<'g>> Iter<'_, 'g, V> {
    fn step(&mut self) -> Result<Element<'g, V>, Error> {
        let (segment, place) = match self.at {
            None => front(self.root)?,
            Some((segment, place)) if place < PLACES => (segment, place),
            Some((segment, _)) => match segment.follow(Segment::NEXT) {
                Some(next) => (next.check_type()?, 0),
                None => return Err(damaged("a queue that ends early", segment)),
            },
        };
        self.at = Some((segment, place + 1));
        element_of(segment, place)
    }
}

impl<'g, V: View<'g>> Iterator for Iter<'_, 'g, V> {
    type Item = Result<Vec<u8>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let copied = self.step().and_then(Obj::to_vec);
        if copied.is_err() {
            self.left = 0;
        }
        Some(copied)
    }
}

impl<'g, V: View<'g>> core::iter::FusedIterator for Iter<'_, 'g, V> {}

/// Looks at every element; the caller holds the lock. Ends at the first finding behind which the
/// rest cannot be trusted.
pub(crate) fn check<'g, V: View<'g>>(root: Root<'g, V>) -> Vec<String> {
    let mut findings = Vec::new();
    if let Err(error) = walk(root, &mut findings) {
        findings.push(error.to_string());
    }
    findings
}

fn walk<'g, V: View<'g>>(root: Root<'g, V>, findings: &mut Vec<String>) -> Result<(), Error> {
    let (head, tail) = (place(root, QueueRoot::HEAD)?, place(root, QueueRoot::TAIL)?);
    let mut seen = HashSet::new();
    let mut found = 0;
    let mut previous: Option<SegmentAt<'g, V>> = None;
    let mut next = root.follow(QueueRoot::FIRST);
    while let Some(segment) = next {
        let segment = segment.check_type()?;
        let at = segment.address().0;
        if !seen.insert(at) {
            findings.push(format!("the segment at {at:#x} is reached twice"));
            return Ok(());
        }
        next = segment.follow(Segment::NEXT);
        let start = if previous.is_none() { head } else { 0 };
        let end = if next.is_none() { tail } else { PLACES };
        for place in 0..PLACES {
            let element = segment.follow(Segment::PLACES.at(place));
            if element.is_some() != (start..end).contains(&place) {
                findings.push(format!("place {place} of the segment at {at:#x}"));
            }
            let Some(element) = element else { continue };
            element::sound(element)?.checked_len()?;
            found += 1;
            if !seen.insert(element.address().0) {
                findings.push(format!("the element in place {place} is another's too"));
            }
        }
        if findings.len() >= MAX_FINDINGS {
            return Ok(());
        }
        previous = Some(segment);
    }
    if root.follow(QueueRoot::LAST) != previous {
        findings.push("the queue names another last segment".into());
    }
    let len = root.load(QueueRoot::LEN);
    if len != found {
        findings.push(format!("the queue says {len} elements, there are {found}"));
    }
    Ok(())
}
