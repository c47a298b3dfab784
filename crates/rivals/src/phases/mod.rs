//! FFCCD's phases: insert all, delete four fifths, insert these again, delete another four fifths.
//!
//! One operation is one transaction. Operations are timed in chunks, so that sampling the pages of live blocks stays
//! out of the time. The first and the last phase are followed by gets of random entries that are there; they copy the
//! value out. At the end every key is looked up once more, untimed: a rival that lost entries or kept wrong ones gets
//! no answer line.
//!
//! Source: the FFCCD paper, its section on micro-benchmarks; the numbers' order is ours.

mod footprint;
mod workload;

pub use footprint::{Change, Footprint, Occupied};
pub use workload::{VALUE_BYTES, Value, deleted, key, value};

use serde::Serialize;

use crate::clock::{Times, timed};
use crate::failure::Failure;

/// A phase over all `n` numbers is timed in this many chunks.
const CHUNKS: usize = 200;
/// Samples of the pages in a phase.
const LOOKS: usize = 20;
/// Gets, and swaps, of a part at most.
const MOST_GETS: usize = 200_000;
/// More bytes than all caches hold.
const CACHES_BYTES: u64 = 128 << 20;
/// Bytes of an entry: its key and its value.
const ENTRY_BYTES: u64 = 8 + VALUE_BYTES as u64;
/// Fewest and most entries of a request: some stay after the deletions, and the numbers fit.
pub const ENTRIES: std::ops::RangeInclusive<u64> = 5..=10_000_000;

/// Exchanges the values of two numbers.
pub type Swap<S> = fn(&mut S, u32, u32) -> Result<(), Failure>;

/// The operations that the phases use on a rival's structure. Each change is durable on return.
pub trait Structure {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Inserts an entry that is not there.
    fn insert(&mut self, number: u32, key: u64, value: &Value) -> Result<(), Failure>;

    /// Deletes an entry that is there.
    fn delete(&mut self, number: u32, key: u64) -> Result<(), Failure>;

    /// Copies the value of an entry. Returns whether it is there.
    fn get(&mut self, number: u32, key: u64, into: &mut Value) -> Result<bool, Failure>;

    /// The function that exchanges the values of two numbers; `None` if the structure has no such operation.
    fn swap(&self) -> Option<Swap<Self>> {
        None
    }

    /// The live bytes; `None` if blocks have no addresses.
    fn occupied(&mut self) -> Option<Occupied> {
        None
    }

    /// Bytes of the file that the structure needs.
    fn file_bytes(&mut self) -> Result<u64, Failure>;
}

/// Nanoseconds of an operation, phase by phase.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct PerOperation {
    /// The first insertion.
    pub insert: f64,
    /// The first deletion.
    pub delete: f64,
    /// The insertion of the deleted entries.
    pub reinsert: f64,
    /// The deletion of other entries.
    pub redelete: f64,
    /// Gets after the first insertion.
    pub get_full: f64,
    /// Gets after the last deletion.
    pub get_after: f64,
    /// Exchanges of two values, after `get_full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<f64>,
}

/// The results of the phases.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Outcome {
    /// CPU time of the thread.
    pub ns_cpu: PerOperation,
    /// Wall time.
    pub ns_wall: PerOperation,
    /// Bytes of 2 MiB pages over live bytes, mean of the samples after the first insertion.
    pub ratio_2m_mean: Option<f64>,
    /// Bytes of 4 KiB pages over live bytes, mean of these samples.
    pub ratio_4k_mean: Option<f64>,
    /// Bytes of 2 MiB pages, summed over these samples, over live bytes, summed likewise.
    pub ratio_2m_of_means: Option<f64>,
    /// Bytes of 4 KiB pages, summed, over live bytes, summed.
    pub ratio_4k_of_means: Option<f64>,
    /// Bytes of 2 MiB pages over live bytes after the last deletion.
    pub ratio_2m_after: Option<f64>,
    /// Bytes of 4 KiB pages over live bytes after the last deletion.
    pub ratio_4k_after: Option<f64>,
    /// Bytes of the file after the last deletion over keys and values left.
    pub file_over_payload: f64,
}

/// Runs the phases on an empty structure.
pub fn run<S: Structure>(structure: S, n: u32, seed: u64) -> Result<Outcome, Failure> {
    let mut course = Course {
        structure,
        chunk: (n as usize / CHUNKS).max(1),
        holds: (0..n).map(workload::key).collect(),
        present: vec![false; n as usize],
        rng: fastrand::Rng::with_seed(seed.wrapping_add(2)),
        looks: Vec::new(),
    };
    let all: Vec<u32> = (0..n).collect();
    let (first, second) = (deleted(n, seed), deleted(n, seed.wrapping_add(1)));
    let insert = course.insert(&all)?;
    let get_full = course.gets()?;
    let swap = course.swaps()?;
    course.looks.clear();
    let delete = course.delete(&first)?;
    let reinsert = course.insert(&first)?;
    let redelete = course.delete(&second)?;
    let after = course.structure.occupied();
    let file_bytes = course.structure.file_bytes()?;
    let get_after = course.gets()?;
    course.check()?;

    let times = |of: fn(&Timed) -> f64| PerOperation {
        insert: of(&insert),
        delete: of(&delete),
        reinsert: of(&reinsert),
        redelete: of(&redelete),
        get_full: of(&get_full),
        get_after: of(&get_after),
        swap: swap.as_ref().map(of),
    };
    let looks = &course.looks;
    let left = u64::from(n) - second.len() as u64;
    Ok(Outcome {
        ns_cpu: times(|timed| timed.times.cpu.as_nanos() as f64 / timed.count as f64),
        ns_wall: times(|timed| timed.times.wall.as_nanos() as f64 / timed.count as f64),
        ratio_2m_mean: mean_of_ratios(looks, |look| look.pages_2m),
        ratio_4k_mean: mean_of_ratios(looks, |look| look.pages_4k),
        ratio_2m_of_means: ratio_of_means(looks, |look| look.pages_2m),
        ratio_4k_of_means: ratio_of_means(looks, |look| look.pages_4k),
        ratio_2m_after: after.map(|look| look.pages_2m as f64 / look.live as f64),
        ratio_4k_after: after.map(|look| look.pages_4k as f64 / look.live as f64),
        file_over_payload: file_bytes as f64 / (left * ENTRY_BYTES) as f64,
    })
}

fn mean_of_ratios(looks: &[Occupied], pages: fn(&Occupied) -> u64) -> Option<f64> {
    let ratios = looks
        .iter()
        .map(|look| pages(look) as f64 / look.live as f64);
    (!looks.is_empty()).then(|| ratios.sum::<f64>() / looks.len() as f64)
}

fn ratio_of_means(looks: &[Occupied], pages: fn(&Occupied) -> u64) -> Option<f64> {
    let live: u64 = looks.iter().map(|look| look.live).sum();
    (live > 0).then(|| looks.iter().map(pages).sum::<u64>() as f64 / live as f64)
}

/// Fills the processor's caches with other data, so that gets begin as those of Firn do.
fn empty_caches() {
    let mut words: Vec<u64> = (0..CACHES_BYTES / 8).collect();
    words.iter_mut().for_each(|word| *word += 1);
    std::hint::black_box(&words);
}

struct Timed {
    times: Times,
    count: usize,
}

/// A structure during the phases, and the content that it should have.
struct Course<S> {
    structure: S,
    chunk: usize,
    /// The key from which the value of each number was made.
    holds: Vec<u64>,
    present: Vec<bool>,
    rng: fastrand::Rng,
    looks: Vec<Occupied>,
}

impl<S: Structure> Course<S> {
    fn insert(&mut self, numbers: &[u32]) -> Result<Timed, Failure> {
        for &number in numbers {
            self.present[number as usize] = true;
            self.holds[number as usize] = workload::key(number);
        }
        self.phase(numbers, |structure, number| {
            let key = workload::key(number);
            structure.insert(number, key, &value(key))
        })
    }

    fn delete(&mut self, numbers: &[u32]) -> Result<Timed, Failure> {
        for &number in numbers {
            self.present[number as usize] = false;
        }
        self.phase(numbers, |structure, number| {
            structure.delete(number, workload::key(number))
        })
    }

    fn phase(
        &mut self,
        numbers: &[u32],
        operation: impl Fn(&mut S, u32) -> Result<(), Failure>,
    ) -> Result<Timed, Failure> {
        let mut times = Times::default();
        let chunks = numbers.chunks(self.chunk);
        let between_looks = chunks.len().div_ceil(LOOKS);
        for (at, chunk) in chunks.enumerate() {
            let structure = &mut self.structure;
            times += timed(|| {
                chunk
                    .iter()
                    .try_for_each(|&number| operation(structure, number))
            })?;
            let look = self.structure.occupied();
            if (at + 1) % between_looks == 0 {
                self.looks.extend(look);
            }
        }
        Ok(Timed {
            times,
            count: numbers.len(),
        })
    }

    /// Numbers of `count` random entries that are there.
    fn some(&mut self, count: usize) -> Vec<u32> {
        let present = (0u32..).zip(&self.present);
        let there: Vec<u32> = present.filter(|(_, is)| **is).map(|(n, _)| n).collect();
        let mut some = || there[self.rng.usize(..there.len())];
        (0..count).map(|_| some()).collect()
    }

    /// Numbers of random entries that are there, without repetition.
    fn each_once(&mut self) -> Vec<u32> {
        let present = (0u32..).zip(&self.present);
        let mut there: Vec<u32> = present.filter(|(_, is)| **is).map(|(n, _)| n).collect();
        self.rng.shuffle(&mut there);
        there.truncate(MOST_GETS);
        there
    }

    fn gets(&mut self) -> Result<Timed, Failure> {
        let numbers = self.each_once();
        let count = numbers.len();
        let wanted: Vec<(u32, u64)> = numbers
            .iter()
            .map(|&number| (number, self.holds[number as usize]))
            .collect();
        let (structure, mut good) = (&mut self.structure, 0);
        let mut copy = [0; VALUE_BYTES];
        empty_caches();
        let times = timed(|| {
            for &(number, holds) in &wanted {
                let found = structure.get(number, workload::key(number), &mut copy)?;
                // The whole value counts as used, though only its end is examined.
                let copy = std::hint::black_box(&copy);
                good += usize::from(found && copy[VALUE_BYTES - 8..] == holds.to_le_bytes());
            }
            Ok(())
        })?;
        if good != count {
            return Err(self.wrong(format!("{good} of {count} gets found their value")));
        }
        Ok(Timed { times, count })
    }

    fn swaps(&mut self) -> Result<Option<Timed>, Failure> {
        let Some(swap) = self.structure.swap() else {
            return Ok(None);
        };
        let count = self.present.len().min(MOST_GETS);
        let pairs: Vec<(u32, u32)> = self.some(count).into_iter().zip(self.some(count)).collect();
        for &(one, other) in &pairs {
            self.holds.swap(one as usize, other as usize);
        }
        let structure = &mut self.structure;
        let times = timed(|| {
            pairs
                .iter()
                .try_for_each(|&(one, other)| swap(structure, one, other))
        })?;
        Ok(Some(Timed { times, count }))
    }

    /// Looks up every key.
    fn check(&mut self) -> Result<(), Failure> {
        let mut copy = [0; VALUE_BYTES];
        for number in 0..self.present.len() as u32 {
            let found = self
                .structure
                .get(number, workload::key(number), &mut copy)?;
            let there = self.present[number as usize];
            if found != there {
                return Err(self.wrong(format!("number {number}: found {found}, there {there}")));
            }
            if found && copy != value(self.holds[number as usize]) {
                return Err(self.wrong(format!("number {number} has another's value")));
            }
        }
        Ok(())
    }

    fn wrong(&self, said: String) -> Failure {
        Failure::Wrong {
            structure: self.structure.name(),
            said,
        }
    }
}
