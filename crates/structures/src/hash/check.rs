//! Whether every invariant of a hash map holds.

use std::collections::HashSet;

use firn_heap::{Error, View};

use super::HashRoot;
use super::bucket::{self, PLACES, Root, bucket_count, chain, directory, hashes};
use super::hash::{bucket_of, hash_of};
use crate::map::entry;
use crate::protocol::MAX_FINDINGS;

/// How full the buckets of a map are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Shape {
    /// Number of entries.
    pub entries: u64,
    /// Number of buckets.
    pub buckets: u64,
    /// Nodes of all buckets.
    pub nodes: u64,
    /// Nodes of the longest bucket.
    pub longest: u64,
}

/// How full the buckets are, as far as the map is sound; the caller holds the lock.
pub(crate) fn shape<'g, V: View<'g>>(root: Root<'g, V>) -> Shape {
    let mut shape = Shape::default();
    // `walk` reports damage to the checker, not here.
    let _ = walk(root, &mut Vec::new(), &mut shape);
    shape
}

/// Checks every entry; the caller holds the lock. Ends at the first finding after which the rest cannot be trusted.
pub(crate) fn walk<'g, V: View<'g>>(
    root: Root<'g, V>,
    findings: &mut Vec<String>,
    shape: &mut Shape,
) -> Result<(), Error> {
    let buckets = bucket_count(root)?;
    directory(root).check(buckets, findings)?;
    let mut seen = HashSet::new();
    for index in 0..buckets {
        check_bucket(root, index, buckets, &mut seen, findings, shape)?;
        if findings.len() >= MAX_FINDINGS {
            return Ok(());
        }
    }
    shape.buckets = buckets;
    let mut referred = 0;
    directory(root).visit(&mut |array, level| {
        if level == 0 {
            referred += (0..array.len()).filter(|&p| array.get(p).is_some()).count() as u64;
        }
        Ok(())
    })?;
    if referred != buckets {
        findings.push(format!(
            "the map says {buckets} buckets, there are {referred}"
        ));
    }
    let len = root.load(HashRoot::LEN);
    if len != shape.entries {
        let found = shape.entries;
        findings.push(format!("the map says {len} entries, there are {found}"));
    }
    Ok(())
}

fn check_bucket<'g, V: View<'g>>(
    root: Root<'g, V>,
    index: u64,
    buckets: u64,
    seen: &mut HashSet<u64>,
    findings: &mut Vec<String>,
    shape: &mut Shape,
) -> Result<(), Error> {
    let nodes = chain(root, bucket::first(root, index)?)?;
    let mut keys = HashSet::new();
    let seed = root.load(HashRoot::SEED);
    for (position, &node) in nodes.iter().enumerate() {
        let at = node.address().0;
        if !seen.insert(at) {
            findings.push(format!("the node at {at:#x} is reached twice"));
            return Ok(());
        }
        let mut used = 0;
        for (place, hash) in hashes(node).into_iter().enumerate() {
            if hash == 0 {
                if node.follow(super::Bucket::ENTRIES.at(place)).is_some() {
                    findings.push(format!("an entry without its hash in the node at {at:#x}"));
                }
                continue;
            }
            used += 1;
            let entry = bucket::entry(node, place)?;
            let key = entry::sound_key(entry)?;
            if hash != hash_of(&key, seed) || bucket_of(hash, buckets) != index {
                findings.push(format!("an entry in the wrong place: the node at {at:#x}"));
            }
            if !keys.insert(key) || !seen.insert(entry.address().0) {
                findings.push(format!("an entry is there twice: the node at {at:#x}"));
            }
        }
        let is_last = position + 1 == nodes.len();
        if !is_last && used != PLACES || position > 0 && used == 0 {
            findings.push(format!("the node at {at:#x} holds {used} entries"));
        }
        shape.entries += used as u64;
    }
    shape.nodes += nodes.len() as u64;
    shape.longest = shape.longest.max(nodes.len() as u64);
    Ok(())
}
