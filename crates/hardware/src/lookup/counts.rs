//! How often each part gave the answer.

use core::ops::AddAssign;

use super::{Answer, Check, Lookup};

/// Answers, by the steps that they took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct LookupCounts {
    /// All answers.
    pub asked: u64,
    /// The page lay in no filter's range.
    pub out_of_range: u64,
    /// A filter was fetched, and replaced the cached one if there was one.
    pub filters_fetched: u64,
    /// The filter said no.
    pub denied: u64,
    /// The look-aside buffer had the entry.
    pub hits: u64,
    /// An entry was fetched from the table.
    pub misses: u64,
    /// Another entry was evicted for that.
    pub replaced: u64,
    /// The filter said yes, the table said no.
    pub wrong: u64,
}

impl LookupCounts {
    /// Counts an answer.
    pub fn add(&mut self, answer: &Answer) {
        self.asked += 1;
        self.filters_fetched += u64::from(answer.check == Check::Fetched);
        match answer.lookup {
            None if answer.check == Check::OutOfRange => self.out_of_range += 1,
            None => self.denied += 1,
            Some(Lookup::Hit) => self.hits += 1,
            Some(Lookup::Miss { replaced }) => {
                self.misses += 1;
                self.replaced += u64::from(replaced);
            }
            Some(Lookup::NotFound) => self.wrong += 1,
        }
    }
}

impl AddAssign for LookupCounts {
    fn add_assign(&mut self, other: Self) {
        self.asked += other.asked;
        self.out_of_range += other.out_of_range;
        self.filters_fetched += other.filters_fetched;
        self.denied += other.denied;
        self.hits += other.hits;
        self.misses += other.misses;
        self.replaced += other.replaced;
        self.wrong += other.wrong;
    }
}
