//! Which thread goes next: the policies that interleave a run.
//!
//! At every memory event of a simulated thread the scheduler chooses between going on, switching to another thread, and
//! letting a store leave a buffer.

use crate::schedule::choices::Choices;
use crate::schedule::turns::{Turn, Turns};
use crate::schedule::view::{Action, View};

/// How a run is interleaved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// No preemption and no delayed store: a thread runs until it waits or ends.
    Sequential,
    /// Switches and drains at random.
    Random {
        /// Seed of the choices.
        seed: u64,
    },
    /// The runnable thread of highest priority goes; priorities are random and change at random
    /// points. A thread that waits falls to the lowest. Source: Burckhardt et al., ASPLOS 2010
    /// (PCT), with random drains added.
    Priorities {
        /// Seed of the choices.
        seed: u64,
        /// Priority changes of a run.
        changes: u32,
    },
    /// The given choices, then the first one everywhere: what [`crate::interleavings`] enumerates
    /// and a finding replays.
    Chosen {
        /// Choice per decision.
        choices: Vec<u32>,
        /// Preemptions, delayed stores and partial drains allowed.
        bound: u32,
    },
    /// A thread runs until it waits or ends, except at the turns, which ascend by point. After a turn's thread waits or
    /// ends, the thread that was interrupted last continues. No store is delayed.
    Turns(Vec<Turn>),
    /// The schedule set by the last [`crate::Crash::set_schedule`]; the explorer and the swarm set it.
    Inherited,
}

/// One point in this many switches, under [`Schedule::Random`].
const SWITCH_ONE_IN: u8 = 4;
/// Priorities change within a range of steps. The range is drawn too, by its binary logarithm, so that both short and
/// long runs see changes.
const CHANGE_WITHIN_LOG: core::ops::Range<u32> = 3..16;

enum Policy {
    Sequential,
    Random,
    Priorities {
        of: Vec<i64>,
        lowest: i64,
        changes: Vec<u64>,
        steps: u64,
    },
    Chosen(Choices),
    Turns(Turns),
}

/// A policy with its source of randomness.
pub(crate) struct Scheduler {
    policy: Policy,
    random: fastrand::Rng,
    /// One point in this many drains a waiting store.
    drain_one_in: u8,
}

impl Scheduler {
    pub(crate) fn sequential() -> Self {
        Self {
            policy: Policy::Sequential,
            random: fastrand::Rng::with_seed(0),
            drain_one_in: 1,
        }
    }

    pub(crate) fn new(schedule: &Schedule) -> Self {
        let (policy, seed) = match schedule {
            Schedule::Sequential | Schedule::Inherited => return Self::sequential(),
            Schedule::Random { seed } => (Policy::Random, *seed),
            Schedule::Priorities { seed, changes } => {
                let mut random = fastrand::Rng::with_seed(!seed);
                let changes = (0..*changes).map(|_| change_step(&mut random)).collect();
                (
                    Policy::Priorities {
                        of: Vec::new(),
                        lowest: 0,
                        changes,
                        steps: 0,
                    },
                    *seed,
                )
            }
            Schedule::Turns(turns) => (Policy::Turns(Turns::new(turns.clone())), 0),
            Schedule::Chosen { choices, bound } => {
                (Policy::Chosen(Choices::replay(choices.clone(), *bound)), 0)
            }
        };
        let mut random = fastrand::Rng::with_seed(seed);
        let drain_one_in = [1, 2, 4, 16, 64][random.usize(..5)];
        Self {
            policy,
            random,
            drain_one_in,
        }
    }

    /// Whether a store stays for now in a buffer that was empty.
    pub(crate) fn hold(&mut self) -> bool {
        match &mut self.policy {
            Policy::Sequential | Policy::Turns(_) => false,
            Policy::Random | Policy::Priorities { .. } => true,
            Policy::Chosen(choices) => choices.pick(&[0, 1]) == 1,
        }
    }

    /// Told when a thread waits.
    pub(crate) fn paused(&mut self, thread: usize) {
        match &mut self.policy {
            Policy::Priorities { of, lowest, .. } => {
                if let Some(priority) = of.get_mut(thread) {
                    *lowest -= 1;
                    *priority = *lowest;
                }
            }
            Policy::Turns(turns) => turns.paused(thread),
            Policy::Sequential | Policy::Random | Policy::Chosen(_) => {}
        }
    }

    pub(crate) fn next(&mut self, view: &View<'_>) -> Action {
        match &mut self.policy {
            Policy::Sequential => Action::Run(view.current.unwrap_or(view.runnable[0])),
            Policy::Random => {
                if let Some(drain) = random_drain(&mut self.random, self.drain_one_in, view) {
                    return drain;
                }
                match view.current {
                    Some(current) if self.random.u8(..SWITCH_ONE_IN) != 0 => Action::Run(current),
                    _ => Action::Run(view.runnable[self.random.usize(..view.runnable.len())]),
                }
            }
            Policy::Priorities {
                of,
                lowest,
                changes,
                steps,
            } => {
                if let Some(drain) = random_drain(&mut self.random, self.drain_one_in, view) {
                    return drain;
                }
                let most = view.runnable[view.runnable.len() - 1];
                while of.len() <= most {
                    of.push(i64::from(self.random.u32(..)));
                }
                *steps += 1;
                if changes.contains(steps)
                    && let Some(current) = view.current
                {
                    *lowest -= 1;
                    of[current] = *lowest;
                }
                let first = view.runnable.iter().max_by_key(|&&thread| of[thread]);
                Action::Run(*first.expect("someone is runnable"))
            }
            Policy::Chosen(choices) => choose(choices, view),
            Policy::Turns(turns) => turns.next(view),
        }
    }

    /// The decisions of a run under [`Schedule::Chosen`].
    pub(crate) fn take_choices(&mut self) -> Option<Choices> {
        match core::mem::replace(&mut self.policy, Policy::Sequential) {
            Policy::Chosen(choices) => Some(choices),
            _ => None,
        }
    }
}

fn change_step(random: &mut fastrand::Rng) -> u64 {
    let log = random.u32(CHANGE_WITHIN_LOG);
    random.u64(..1 << log)
}

fn random_drain(random: &mut fastrand::Rng, one_in: u8, view: &View<'_>) -> Option<Action> {
    if view.buffered.is_empty() || random.u8(..one_in) != 0 {
        return None;
    }
    let (thread, _) = view.buffered[random.usize(..view.buffered.len())];
    Some(if random.bool() {
        Action::Drain(thread)
    } else {
        Action::DrainAll(thread)
    })
}

/// Continuing is free, and so is emptying a held buffer; a preemption or a partial drain costs one.
fn choose(choices: &mut Choices, view: &View<'_>) -> Action {
    let mut actions = Vec::with_capacity(8);
    let mut costs = Vec::with_capacity(8);
    let mut offer = |action, cost| {
        actions.push(action);
        costs.push(cost);
    };
    if let Some(current) = view.current {
        offer(Action::Run(current), 0);
    }
    let switch_cost = u32::from(view.current.is_some());
    for &thread in view
        .runnable
        .iter()
        .filter(|&&thread| Some(thread) != view.current)
    {
        offer(Action::Run(thread), switch_cost);
    }
    for &(thread, entries) in view.buffered {
        offer(Action::DrainAll(thread), 0);
        if entries > 1 {
            offer(Action::Drain(thread), 1);
        }
    }
    if actions.len() == 1 {
        return actions[0];
    }
    actions[choices.pick(&costs) as usize]
}
