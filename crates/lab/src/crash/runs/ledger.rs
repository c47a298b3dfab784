//! What a run did, and which contents a crash may leave of it.

use firn_workloads::under_test::{Content, Key, Order};

/// What was done, in the order of the structure's lock.
#[derive(Default)]
pub(super) struct Ledger {
    /// An attempt that was started over leaves a gap.
    entries: Vec<Option<Entry>>,
}

/// An operation that changes something.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) thread: usize,
    /// Among the thread's operations, from 1.
    pub(super) number: u64,
    pub(super) change: Change,
}

#[derive(Clone)]
pub(super) enum Change {
    Insert(Key, Vec<u8>),
    Remove(Key),
}

impl Change {
    /// Does to a content what it does to the structure.
    pub(super) fn apply(&self, order: Order, content: &mut Content) {
        match self {
            Self::Insert(key, value) => order.insert(content, *key, value.clone()),
            Self::Remove(key) => order.remove(content, *key),
        }
    }
}

impl Ledger {
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Puts an operation down in the place of the attempt before, if there was one. Returns its place.
    pub(super) fn put(&mut self, before: Option<usize>, entry: Entry) -> usize {
        if let Some(before) = before {
            self.entries[before] = None;
        }
        self.entries.push(Some(entry));
        self.entries.len() - 1
    }

    /// Every change, in order.
    pub(super) fn changes(&self) -> Vec<&Change> {
        self.done().into_iter().map(|entry| &entry.change).collect()
    }

    fn done(&self) -> Vec<&Entry> {
        self.entries.iter().flatten().collect()
    }

    /// The beginnings of the ledger, as numbers of changes, that leave the content that was found, have
    /// all that was acknowledged, and of each thread one operation more at most.
    ///
    /// Errors: there is none.
    pub(super) fn beginnings(
        &self,
        (order, mut content): (Order, Content),
        acknowledged: &[u64],
        found: &Content,
    ) -> Result<Vec<usize>, String> {
        let entries = self.done();
        let is_in = |entry: &&Entry| entry.number <= acknowledged[entry.thread];
        let least = entries.iter().rposition(is_in).map_or(0, |last| last + 1);
        let beyond = |entry: &&Entry| entry.number > acknowledged[entry.thread] + 1;
        let most = entries.iter().position(beyond).unwrap_or(entries.len());
        for entry in entries.iter().take(least) {
            entry.change.apply(order, &mut content);
        }
        let acknowledged_content = content.clone();
        let mut legal = Vec::new();
        for next in least..=most {
            if content == *found {
                legal.push(next);
            }
            if let Some(entry) = entries.get(next) {
                entry.change.apply(order, &mut content);
            }
        }
        match legal.is_empty() {
            true => Err(difference(acknowledged, &acknowledged_content, found)),
            false => Ok(legal),
        }
    }
}

/// What is told of contents that differ: the first elements that are not as they were acknowledged.
fn difference(acknowledged: &[u64], expected: &Content, found: &Content) -> String {
    let short = |of: Option<&(Key, Vec<u8>)>| match of {
        Some((key, value)) => format!("{key}: {value:?}"),
        None => "nothing".to_owned(),
    };
    let longest = expected.len().max(found.len());
    let differing = (0..longest).find(|&n| expected.get(n) != found.get(n));
    let at = differing.unwrap_or(longest);
    format!(
        "{acknowledged:?} operations of the threads were acknowledged, after which there are {} elements; \
         found {}, of which number {at} is {} where {} is expected",
        expected.len(),
        found.len(),
        short(found.get(at)),
        short(expected.get(at)),
    )
}
