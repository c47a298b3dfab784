//! Two threads that insert into one structure, and then delete from it.
//!
//! libpmemobj does not isolate transactions from each other: its users lock what they share, and so does this. The
//! second thread makes nothing faster; its cost is what is measured.

use std::sync::{Barrier, Mutex};
use std::thread;

use super::{Failure, Use};
use crate::clock::{Times, timed};
use crate::phases::{Structure, key, value};

const THREADS: u32 = 2;

/// The workload.
pub struct TwoThreads {
    /// Entries of both threads together.
    pub n: u32,
}

/// The times.
pub struct Shared {
    /// The insertions.
    pub insert: Times,
    /// The deletions.
    pub delete: Times,
}

impl Use for TwoThreads {
    type Output = Shared;

    fn with<S: Structure + Send>(self, structure: S) -> Result<Shared, Failure> {
        let structure = Mutex::new(structure);
        let insert = self.both(&structure, |structure, number| {
            let key = key(number);
            structure.insert(number, key, &value(key))
        })?;
        let delete = self.both(&structure, |structure, number| {
            structure.delete(number, key(number))
        })?;
        Ok(Shared { insert, delete })
    }
}

impl TwoThreads {
    /// Gives each thread every other number.
    fn both<S: Send>(
        &self,
        structure: &Mutex<S>,
        operation: impl Fn(&mut S, u32) -> Result<(), Failure> + Sync,
    ) -> Result<Times, Failure> {
        let start = Barrier::new(THREADS as usize);
        let worker = |first: u32| {
            start.wait();
            timed(|| {
                let mut numbers = (first..self.n).step_by(THREADS as usize);
                numbers.try_for_each(|number| {
                    let mut locked = structure.lock().expect("no worker panics");
                    operation(&mut locked, number)
                })
            })
        };
        thread::scope(|scope| {
            let other = scope.spawn(|| worker(1));
            let this = worker(0);
            let (this, other) = (this?, other.join().expect("a worker does not panic")?);
            Ok(Times {
                cpu: this.cpu + other.cpu,
                wall: this.wall.max(other.wall),
            })
        })
    }
}
