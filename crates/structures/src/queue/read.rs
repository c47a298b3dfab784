//! Iterating over the elements, and checking them.

use std::collections::HashSet;

use firn_heap::{Error, Obj, View};

use super::{PLACES, QueueRoot, Root, Segment, SegmentAt, element_of, front, place};
use crate::element::{self, Element, damaged};
use crate::protocol::{MAX_FINDINGS, Walk};

/// Elements of a queue.
pub struct Segments<'g, V: View<'g>> {
    root: Root<'g, V>,
    /// Where the next element is; `None` before the first.
    at: Option<(SegmentAt<'g, V>, usize)>,
    /// Elements to come, according to the length: damaged links cannot lead in a circle.
    left: u64,
}

impl<'g, V: View<'g>> Segments<'g, V> {
    pub(crate) fn new(root: Root<'g, V>) -> Self {
        Self {
            root,
            at: None,
            left: crate::plausible_len(root.view(), root.load(QueueRoot::LEN)),
        }
    }

    fn element(&mut self) -> Result<Element<'g, V>, Error> {
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

impl<'g, V: View<'g>> Walk for Segments<'g, V> {
    type Found = Vec<u8>;
    type Item<'r> = Vec<u8>;

    #[inline]
    fn step(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        self.element().and_then(Obj::to_vec).map(Some)
    }

    fn end(&mut self) {
        self.left = 0;
    }

    #[inline]
    fn item<'r>(found: Vec<u8>) -> Self::Item<'r> {
        found
    }
}

/// Checks every element; the caller holds the lock. Ends at the first finding after which the rest cannot be trusted.
pub(crate) fn check<'g, V: View<'g>>(
    root: Root<'g, V>,
    findings: &mut Vec<String>,
) -> Result<(), Error> {
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
