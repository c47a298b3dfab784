//! Times a rig's operations: warmed up, in blocks, without their setup and cleanup.

use std::sync::Barrier;
use std::thread;

use crate::clock::{Times, timed};
use crate::failure::Failure;
use crate::libpmemobj::{Kind, Pool, Rig};

/// Fewest and most operations of the warm-up; within these bounds it is a tenth of the timed ones.
const WARM_UP: (u64, u64) = (64, 4096);

/// Runs `count` operations, shared evenly by `threads` threads with a rig each.
pub fn measure(pool: &Pool<'_>, kind: Kind, count: u64, threads: u64) -> Result<Times, Failure> {
    let start = Barrier::new(threads as usize);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let share = count / threads + u64::from(thread < count % threads);
                let start = &start;
                scope.spawn(move || worker(pool, kind, share, start))
            })
            .collect();
        let mut all = Times::default();
        let mut outcome = Ok(());
        for worker in workers {
            match worker.join().expect("a worker does not panic") {
                Ok(one) => {
                    all.cpu += one.cpu;
                    all.wall = all.wall.max(one.wall);
                }
                Err(failure) => outcome = Err(failure),
            }
        }
        outcome.map(|()| all)
    })
}

fn worker(pool: &Pool<'_>, kind: Kind, count: u64, start: &Barrier) -> Result<Times, Failure> {
    let warm = || {
        let mut rig = Rig::new(pool, kind)?;
        blocks(&mut rig, (count / 10).clamp(WARM_UP.0, WARM_UP.1))?;
        Ok(rig)
    };
    let rig: Result<Rig<'_>, Failure> = warm();
    // A thread that failed still waits at the barrier, or the others would wait for ever.
    start.wait();
    blocks(&mut rig?, count)
}

/// Runs `count` operations and adds up the time of the operations alone.
fn blocks(rig: &mut Rig<'_>, count: u64) -> Result<Times, Failure> {
    let mut sum = Times::default();
    let mut left = count;
    while left > 0 {
        let block = left.min(rig.block());
        rig.before(block)?;
        sum += timed(|| rig.run(block))?;
        rig.after(block)?;
        left -= block;
    }
    Ok(sum)
}
