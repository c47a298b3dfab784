//! The contract on real memory: threads, clocks and waiting.

use core::time::Duration;
use std::thread;

use firn_media::{Hardware, MediumError, Probe, Runtime};

use crate::logged::Logged;
use crate::system::{cpu_ns, now_ns};
use crate::{Mapped, MappedWords};

impl Runtime for Mapped {
    type Words = MappedWords;
    type Thread = thread::JoinHandle<()>;

    #[inline(always)]
    fn is_ours(&self) -> bool {
        self.process.is_this()
    }

    #[inline(always)]
    fn is_usable(&self) -> bool {
        self.is_ours() && !self.logged.as_ref().is_some_and(Logged::has_failed)
    }

    fn failure(&self) -> Option<MediumError> {
        self.logged.as_ref()?.failure(self)
    }

    fn words(&self, count: usize) -> MappedWords {
        MappedWords::new(count)
    }

    /// Spins, then yields, then sleeps: briefly at first, and never for much more than a thirtieth of the time already
    /// waited.
    fn pause(&self, attempt: u32) {
        const SPINS: u32 = 64;
        const YIELDS: u32 = 256;
        const SLEEP: Duration = Duration::from_micros(50);
        /// Sleeps before their length doubles, and how often it doubles.
        const SLEEPS: u32 = 64;
        const DOUBLINGS: u32 = 7;
        if attempt < SPINS {
            core::hint::spin_loop();
        } else if attempt < YIELDS {
            thread::yield_now();
        } else {
            thread::sleep(SLEEP * (1 << ((attempt - YIELDS) / SLEEPS).min(DOUBLINGS)));
        }
    }

    fn wait_while(&self, words: &MappedWords, index: usize, seen: u64, until_ns: u64) {
        words.wait_while(index, seen, until_ns);
    }

    fn wake(&self, words: &MappedWords, index: usize) {
        words.wake(index);
    }

    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn cpu_ns(&self) -> u64 {
        cpu_ns()
    }

    fn random_u64(&self) -> u64 {
        self.randomness.next()
    }

    fn spawn(
        &self,
        name: &str,
        job: Box<dyn FnOnce() + Send>,
    ) -> Result<Self::Thread, MediumError> {
        thread::Builder::new()
            .name(name.replace('\0', ""))
            .spawn(job)
            .map_err(|e| self.io("starting a thread", e))
    }

    /// The address of a variable of the thread's own.
    fn thread(&self) -> u64 {
        thread_local! {
            static MARK: u8 = const { 0 };
        }
        // At the end of a thread there may be none any more.
        let mark = MARK.try_with(|mark| core::ptr::from_ref(mark).addr() as u64);
        mark.unwrap_or(0)
    }

    fn join(&self, thread: Self::Thread) -> bool {
        thread.join().is_ok()
    }
}

impl Probe for Mapped {}

impl Hardware for Mapped {}
