//! The changes of a run, and the contents that a crash may leave of them.

use firn_media::Ticket;
use firn_workloads::under_test::{Content, Key, Order};

/// The changes in the order of the structure's lock.
#[derive(Default)]
pub(super) struct Ledger {
    /// A restarted attempt leaves a gap.
    entries: Vec<Option<Entry>>,
    /// The newest place in the log when an operation had returned: thread, number, place.
    places: Vec<(usize, u64, Ticket)>,
}

/// What is known of the operations of each thread at a moment, as numbers.
pub(super) struct Progress {
    /// The last one that has returned.
    pub(super) returned: Vec<u64>,
    /// The last one that survives for certain.
    pub(super) certain: Vec<u64>,
}

/// An operation that changes something.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) thread: usize,
    /// Its number among the thread's operations, from 1.
    pub(super) number: u64,
    pub(super) change: Change,
}

#[derive(Clone)]
pub(super) enum Change {
    Insert(Key, Vec<u8>),
    Remove(Key),
}

impl Change {
    /// Applies its effect on the structure to a content.
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
        self.places.clear();
    }

    /// Records that an operation has returned, and the newest place in the log by then.
    pub(super) fn returned(&mut self, thread: usize, number: u64, place: Ticket) {
        self.places.push((thread, number, place));
    }

    /// The last operation of a thread whose place in the log is at most `durable`.
    pub(super) fn last_durable(&self, thread: usize, durable: Ticket) -> u64 {
        let of_thread = self.places.iter().filter(|(other, ..)| *other == thread);
        let durable = of_thread.take_while(|(_, _, place)| *place <= durable);
        durable.last().map_or(0, |(_, number, _)| *number)
    }

    /// Records an operation in place of its former attempt, if there was one. Returns its place.
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

    /// The prefixes of the ledger, as numbers of changes, that leave the content found, have all operations that survive
    /// for certain, and of each thread at most one that has not returned.
    ///
    /// Errors: there is none.
    pub(super) fn beginnings(
        &self,
        (order, mut content): (Order, Content),
        progress: &Progress,
        found: &Content,
    ) -> Result<Vec<usize>, String> {
        let Progress { returned, certain } = progress;
        let entries = self.done();
        let is_in = |entry: &&Entry| entry.number <= certain[entry.thread];
        let least = entries.iter().rposition(is_in).map_or(0, |last| last + 1);
        let beyond = |entry: &&Entry| entry.number > returned[entry.thread] + 1;
        let most = entries.iter().position(beyond).unwrap_or(entries.len());
        for entry in entries.iter().take(least) {
            entry.change.apply(order, &mut content);
        }
        let certain_content = content.clone();
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
            true => Err(difference(certain, &certain_content, found)),
            false => Ok(legal),
        }
    }
}

/// Describes how contents differ: the first elements that are not as they were acknowledged.
fn difference(certain: &[u64], expected: &Content, found: &Content) -> String {
    let short = |of: Option<&(Key, Vec<u8>)>| match of {
        Some((key, value)) => format!("{key}: {value:?}"),
        None => "nothing".to_owned(),
    };
    let longest = expected.len().max(found.len());
    let differing = (0..longest).find(|&n| expected.get(n) != found.get(n));
    let at = differing.unwrap_or(longest);
    format!(
        "{certain:?} operations of the threads were acknowledged, after which there are {} elements; \
         found {}, of which number {at} is {} where {} is expected",
        expected.len(),
        found.len(),
        short(found.get(at)),
        short(expected.get(at)),
    )
}
