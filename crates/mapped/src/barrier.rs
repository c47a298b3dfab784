//! Asymmetric barriers: one thread makes all threads of the process pass a barrier, so that the others need none.
//!
//! When two threads each store a word and then load the other's, each needs a barrier in between, or both may miss the
//! other's store. If one thread does this often and the other rarely, the first passes [`light`] and the second
//! [`heavy`]. `membarrier(2)`, private and expedited, makes every running thread pass a barrier before it returns. If
//! the first thread stored before that barrier, the second sees the store; otherwise the first loads after it and sees
//! what the second stored.
//!
//! If the system has no such call (Linux before 4.14) or forbids it, both are fences.

use core::sync::atomic::{AtomicU8, Ordering, compiler_fence, fence};

use rustix::thread::{MembarrierCommand, membarrier};

const UNKNOWN: u8 = 0;
const IS_THERE: u8 = 1;
const IS_NOT_THERE: u8 = 2;

/// Whether the system has the call. The process registers for it once.
static CALL: AtomicU8 = AtomicU8::new(UNKNOWN);

/// A barrier between a store and a load, for the thread that passes it often.
#[inline(always)]
pub fn light() {
    match CALL.load(Ordering::Relaxed) {
        IS_THERE => compiler_fence(Ordering::SeqCst),
        _ => light_unless_there(),
    }
}

#[cold]
#[inline(never)]
fn light_unless_there() {
    is_there();
    fence(Ordering::SeqCst);
}

/// A barrier between a store and a load, for the thread that passes it rarely. Takes a few microseconds.
///
/// Panics if the system withdraws the call after the process registered for it: other threads may then have no fence.
#[inline(never)]
pub fn heavy() {
    fence(Ordering::SeqCst);
    if is_there() {
        membarrier(MembarrierCommand::PrivateExpedited)
            .expect("membarrier(2), which the process registered for, works");
    }
}

fn is_there() -> bool {
    if CALL.load(Ordering::Relaxed) == UNKNOWN {
        let call = match membarrier(MembarrierCommand::RegisterPrivateExpedited) {
            Ok(()) => IS_THERE,
            Err(_) => IS_NOT_THERE,
        };
        CALL.store(call, Ordering::Relaxed);
    }
    CALL.load(Ordering::Relaxed) == IS_THERE
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU64;
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    /// Each thread stores the round's number and loads the other's: at least one must see it. Without barriers, both
    /// miss it in some round in thousands.
    #[test]
    fn one_of_two_sees_the_other() {
        const ROUNDS: u64 = 20_000;
        let words = [AtomicU64::new(0), AtomicU64::new(0)];
        let (seen, begin) = ([AtomicU64::new(0), AtomicU64::new(0)], Barrier::new(2));
        let play = |me: usize, pass: fn()| {
            let mut missed = Vec::new();
            for round in 1..=ROUNDS {
                words[me].store(round, Ordering::Relaxed);
                pass();
                missed.push(words[1 - me].load(Ordering::Relaxed) < round);
                // The next round begins when both have looked.
                seen[me].store(round, Ordering::Release);
                while seen[1 - me].load(Ordering::Acquire) < round {
                    core::hint::spin_loop();
                }
            }
            missed
        };
        let [light, heavy] = thread::scope(|scope| {
            let start = |me, pass| {
                let (play, begin) = (&play, &begin);
                scope.spawn(move || {
                    begin.wait();
                    play(me, pass)
                })
            };
            let threads = [start(0, light as fn()), start(1, heavy as fn())];
            threads.map(|thread| thread.join().unwrap())
        });
        assert!(light.iter().zip(&heavy).all(|(a, b)| !(a & b)));
    }
}
