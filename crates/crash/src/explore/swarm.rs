//! Long random runs: a seed picks the schedule, the crashes and the images.

use core::ops::Range;
use std::time::Instant;

use crate::explore::eager::plan::Plan;
use crate::explore::eager::walk::Eager;
use crate::explore::explorer::{Explorer, finish};
use crate::explore::options::ExploreOptions;
use crate::explore::report::Report;
use crate::memory::event::Event;
use crate::schedule::policy::Schedule;

/// What a swarm tries.
#[derive(Clone, Debug)]
pub struct SwarmOptions {
    /// Seeds; each is one execution.
    pub seeds: Range<u64>,
    /// Events of an execution before which a crash is tried.
    pub crashes: u32,
    /// Images drawn at each.
    pub images: u32,
    /// Crashes drawn in each recovery, at every depth that the explorer's options allow.
    pub crashes_in_recovery: u32,
}

impl Default for SwarmOptions {
    fn default() -> Self {
        Self {
            seeds: 0..100,
            crashes: 10,
            images: 4,
            crashes_in_recovery: 1,
        }
    }
}

impl Explorer<'_> {
    /// Crashes random executions at random events with random images.
    pub fn swarm(&self, swarm: &SwarmOptions) -> Report {
        self.swarm_seen(swarm, |_| {})
    }

    /// Crashes random executions, and passes the events of each to `see` before it is crashed.
    pub fn swarm_seen(&self, swarm: &SwarmOptions, mut see: impl FnMut(&[Event])) -> Report {
        let started = Instant::now();
        let options = ExploreOptions {
            drawn_in_recovery: Some(swarm.crashes_in_recovery),
            ..self.options.clone()
        };
        let mut walker = self.walker(&options);
        for seed in swarm.seeds.clone() {
            let schedule = match seed % 2 {
                0 => Schedule::Random { seed },
                _ => Schedule::Priorities {
                    seed,
                    changes: (seed / 2 % 5) as u32,
                },
            };
            let execution = self.record(seed, &schedule);
            see(&execution.trace);
            walker.report.executions += 1;
            walker.report.hash = walker.report.hash.rotate_left(7) ^ execution.hash;
            if let Some(message) = execution.failure {
                walker.failed(message, seed, schedule);
            } else if !execution.trace.is_empty() {
                let mut random = fastrand::Rng::with_seed(seed);
                let event = |_| 1 + random.usize(..execution.trace.len());
                let mut events: Vec<usize> = (0..swarm.crashes).map(event).collect();
                events.sort_unstable();
                walker.report.sampled_events += events.len() as u64;
                let images = swarm.images;
                let plan = Plan::At { events, images };
                Eager::new(&mut walker).walk_as_planned(&execution.trace, seed, schedule, &plan);
            }
            if walker.enough() {
                break;
            }
        }
        finish(walker, started)
    }
}
