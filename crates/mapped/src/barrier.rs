//! Barriers that one thread has all threads of the process pass, so that the others need none of their own.
//!
//! Where two threads each store something and then look at what the other stores, each needs a barrier between the
//! two, or both may miss the other. If one of them does so all the time and the other hardly ever, the first passes
//! [`light`] and the second [`heavy`]: `membarrier(2)`, private and expedited, has every thread that runs pass a
//! barrier at some moment before it returns. Either the first thread's store came before its own, and the second
//! sees it, or its look came behind that, and sees what the second stored.
//!
//! Where the system has no such call (Linux before 4.14, or if it is forbidden), both are fences.

use core::sync::atomic::{AtomicU8, Ordering, compiler_fence, fence};

use rustix::thread::{MembarrierCommand, membarrier};

const UNKNOWN: u8 = 0;
const IS_THERE: u8 = 1;
const IS_NOT_THERE: u8 = 2;

/// Whether the system has the call. The process registers for it once.
static CALL: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Between a store and a load of a thread that does this often.
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

/// Between a store and a load of a thread that does this seldom: a few microseconds.
///
/// Panics if the system takes the call back that the process registered for: other threads may be without a fence.
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

    /// Each thread stores a round's number and looks for the other's: at least one finds it. Without barriers, both
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
