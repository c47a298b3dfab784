//! Runs of the check on an image of a class, and what they leave in the trees.

use crate::explore::lazy::class::ImageClass;
use crate::explore::lazy::completion::{Completed, Marks, Uncompleted};
use crate::explore::lazy::decisions::{Course, News, Outcome, Recovery, Step};
use crate::explore::lazy::overlay::Overlay;
use crate::explore::lazy::walk::Lazy;
use crate::explore::options::Exploration;
use crate::explore::walker::CheckRun;
use crate::medium::state::Stage;
use crate::memory::event::Event;
use crate::memory::footprint::{FirstLoad, Looked};

impl Lazy<'_, '_> {
    /// Runs the check on an image of the current class, up to the end of recovery if it has two stages, and records its
    /// reads and actions. Returns whether some marks were hidden from it.
    pub(super) fn run_recorded(&mut self, depth: u32, known: u128, marks: Marks) -> bool {
        self.runs += 1;
        self.walker.report.states += 1;
        self.walker.report.recovery_states += u64::from(depth > 0);
        let begun_on = self.uncomplete(marks);
        let hides = begun_on.hides;
        let (mut run, loads) = self.run_on_class(depth, Stage::Recovery, begun_on);
        let there = run.recovered;
        let loads = &loads[..there.map_or(loads.len(), |there| there.loads)];
        let completed = Completed::all(loads);
        let numbers = self.number(&completed, &run.trace);
        let path = self.path(loads, &numbers, 0);
        let is_crashed = depth < self.walker.options.recovery_depth;
        run.trace.truncate(match there {
            Some(there) => there.events,
            None if is_crashed => run.end,
            None => 0,
        });
        if !run.trace.is_empty() {
            let lines = run.trace.iter().filter_map(Event::changes);
            self.vary(&lines.collect::<Vec<_>>(), depth + 1);
        }
        if is_crashed {
            self.rewrite(&run.trace, depth + 1);
        }
        let course = match there {
            Some(there) => Course::Recovered(Recovery {
                overlay: Overlay::new(&run.trace, &completed, &self.class),
                events: match is_crashed {
                    true => run.trace[..run.end].to_vec(),
                    false => Vec::new(),
                },
                knows: there.knows,
            }),
            None => Course::Ended(Outcome {
                verdict: run.verdict,
                recovery: run.trace.clone(),
            }),
        };
        self.walker.spare(run.trace);
        let tree = &mut self.decisions[depth as usize];
        match tree.insert(known, &path, course) {
            Ok(News::Path) => {}
            Ok(News::Nothing) if hides => {}
            _ => self.diverged(),
        }
        hides
    }

    /// Runs the whole check on an image of the current class and records what it did after recovery.
    pub(super) fn verify_recorded(&mut self, depth: u32, known: u128) {
        self.walker.report.verifications += 1;
        let again = self.class.lines().to_vec();
        self.walker.crash.shared.footprint.mark_again(again);
        let (run, loads) = self.run_on_class(depth, Stage::Whole, Uncompleted::default());
        self.walker.crash.shared.footprint.mark_again(Vec::new());
        let there = run.recovered;
        let path = there.map(|there| self.path(&loads[there.loads..], &[], there.events));
        for step in path.iter().flatten() {
            self.verified.reads(ImageClass::place(step.key).0);
        }
        self.walker.spare(run.trace);
        let outcome = Course::Ended(Outcome {
            verdict: run.verdict,
            recovery: Vec::new(),
        });
        let tree = &mut self.verifications;
        let is_news = |path: Vec<Step>| {
            let news = tree.insert(known, &path, outcome);
            matches!(news, Ok(News::Path))
        };
        if !path.is_some_and(is_news) {
            self.diverged();
        }
    }

    /// Runs the check on an image of the current class as it is in `begun_on`. Returns what it did, and its loads of
    /// words that may differ.
    fn run_on_class(
        &mut self,
        depth: u32,
        stage: Stage,
        begun_on: Uncompleted,
    ) -> (CheckRun, Vec<FirstLoad>) {
        let shared = &self.walker.crash.shared;
        shared.footprint.set_marked(begun_on.marked);
        self.class.lay(&shared.memory, depth);
        self.complete_again(begun_on.now);
        let shared = &self.walker.crash.shared;
        shared.footprint.take();
        let spares =
            self.walker.options.exploration == Exploration::Lazy && stage == Stage::Recovery;
        let torn = |depth| shared.footprint.with_torn(|torn| torn.set_depth(depth));
        torn(spares.then_some(depth));
        let run = self.walker.run_check(depth, self.walker.is_kill(), stage);
        let shared = &self.walker.crash.shared;
        shared.footprint.with_torn(|torn| torn.set_depth(None));
        self.class.unmark(&shared.memory);
        (run, shared.footprint.take())
    }

    /// The loads as steps. The run had done `before` events when counting began; its completions have these numbers.
    pub(super) fn path(
        &self,
        loads: &[FirstLoad],
        completions: &[u64],
        before: usize,
    ) -> Vec<Step> {
        let mut slots = self.class.finder();
        let mut completions = completions.iter();
        let step = |load: &FirstLoad| {
            let slot_of = |line| {
                let slot = slots.of(line);
                slot.expect("a load is recorded where lines vary, which have slots")
            };
            let number = match load.what {
                Looked::Ends(_) => completions.next(),
                _ => None,
            };
            Step {
                key: ImageClass::key(load.what, slot_of),
                value: number.copied().unwrap_or(load.value),
                at: load.at - before as u32,
            }
        };
        loads.iter().map(step).collect()
    }
}
