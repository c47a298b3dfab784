//! The lazy walk: classes of images, split only where a check looks.
//!
//! A check runs on one image of the class at hand and its loads are recorded; wherever another
//! image of the class would have given another value, the class is split and the other part goes
//! its own way. What runs did is kept by what they read ([`crate::decisions`]), so an image whose
//! loads would be those of an earlier run costs a walk through the tree, not a run.

use std::rc::Rc;

use firn_media::Domain;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::candidates::Candidates;
use crate::class::{ImageClass, Key};
use crate::decisions::{Decisions, Node, Outcome, Step};
use crate::explorer::Failure;
use crate::memory::Line;
use crate::schedule::Schedule;
use crate::trace::Event;
use crate::walk::Walker;

/// A load that split the class at hand, and the part that was taken.
#[derive(Clone)]
pub(crate) struct Filter {
    /// Events of the run before the load.
    pub(crate) at: u32,
    pub(crate) slot: usize,
    pub(crate) word: usize,
    pub(crate) value: u64,
    pub(crate) kept: Rc<Candidates>,
    before: Rc<Candidates>,
}

/// An image that a check rejected.
pub(crate) struct Failed {
    pub(crate) message: String,
    /// What the outermost execution that is named yet started from.
    pub(crate) image: Vec<Line>,
    /// The last crash first: events done, and what it left.
    pub(crate) crashes: Vec<(usize, Vec<Line>)>,
}

/// The state of the walk.
#[derive(Default)]
pub(crate) struct Lazy {
    pub(crate) class: ImageClass,
    /// By crashes in recovery so far.
    decisions: Vec<Decisions>,
    /// Splits of the classes at hand, the innermost last.
    filters: Vec<Vec<Filter>>,
    pub(crate) failures: Vec<Failed>,
    /// Runs of the check on this execution.
    runs: u64,
    pub(crate) stopped: bool,
}

impl Walker<'_> {
    /// Walks an execution that started on the memory as it is now. False if the limit of runs cut
    /// it short.
    pub(crate) fn execution_lazily(
        &mut self,
        trace: &[Event],
        seed: u64,
        schedule: Schedule,
    ) -> bool {
        self.start(seed, schedule);
        self.lazy.runs = 0;
        // What the oracle learnt from this execution, by a log say, is no load.
        self.lazy.decisions.clear();
        self.lazy.stopped = false;
        let lines = trace.iter().filter_map(Event::changes);
        self.vary(&lines.collect::<Vec<_>>(), 0);
        self.visit_class(0);
        for failed in &mut self.lazy.failures {
            let left = core::mem::take(&mut failed.image);
            failed.crashes.push((0, left));
        }
        if !self.lazy.stopped {
            self.pass(trace, &[], 0, 0);
        }
        self.lazy.class.lay_base(&self.crash.shared.memory);
        let failures = core::mem::take(&mut self.lazy.failures);
        let whole = !self.lazy.stopped || !failures.is_empty();
        for failed in failures {
            self.name(trace, failed);
        }
        whole
    }

    pub(crate) fn is_kill(&self) -> bool {
        self.domain() == Domain::Process && self.options.failure == Failure::Kill
    }

    /// Hash of what decides a check's course besides the image.
    fn known(&self) -> u128 {
        let memory = &self.crash.shared.memory;
        let mut bytes: Vec<u8> = Vec::with_capacity(64);
        bytes.extend(self.state.durable.0.to_le_bytes());
        bytes.extend(memory.len().to_le_bytes());
        bytes.extend(memory.backing().to_le_bytes());
        let last = self.state.notes.iter().rposition(|&note| note != 0);
        for note in &self.state.notes[..last.map_or(0, |last| last + 1)] {
            bytes.extend(note.to_le_bytes());
        }
        xxh3_128_with_seed(&bytes, 0)
    }

    /// Takes in that images after `depth` crashes in recovery may differ in `lines`.
    fn vary(&mut self, lines: &[u64], depth: u32) {
        let memory = &self.crash.shared.memory;
        let mut news = false;
        for &line in lines {
            news |= self.lazy.class.vary(line, depth, memory);
        }
        if news {
            // Runs recorded no loads of a line that could not vary.
            self.lazy.decisions.truncate(depth as usize);
        }
        let depths = self.options.recovery_depth as usize + 1;
        self.lazy.decisions.resize_with(depths, Decisions::default);
    }

    /// Checks every image of the class at hand, and crashes their recoveries.
    pub(crate) fn visit_class(&mut self, depth: u32) {
        self.report.classes += 1;
        let images = self.lazy.class.images();
        self.report.images = self.report.images.saturating_add(images);
        let known = self.known();
        let left = (self.options.recovery_depth - depth) as u8;
        let key = self.hash ^ self.lazy.class.hash() ^ known;
        if !self.is_new(key, left) {
            return;
        }
        self.lazy.filters.push(Vec::new());
        if let Some(root) = self.follow(depth, known, |tree| tree.root(known)) {
            self.refine(depth, known, root, 0);
        }
        self.lazy.filters.pop();
    }

    /// What `find` finds in the tree, after a run on the class at hand if nothing yet.
    fn follow(
        &mut self,
        depth: u32,
        known: u128,
        find: impl Fn(&Decisions) -> Option<u32>,
    ) -> Option<u32> {
        let found = find(&self.lazy.decisions[depth as usize]);
        if found.is_some() {
            return found;
        }
        if self.lazy.runs >= self.options.max_states {
            self.lazy.stopped = true;
            return None;
        }
        self.run_recorded(depth, known);
        find(&self.lazy.decisions[depth as usize])
    }

    /// Goes on in the tree from `node` with all images of the class at hand. Crashes before event
    /// `from` of their runs were tried already. Returns whether recoveries were crashed.
    fn refine(&mut self, depth: u32, known: u128, mut node: u32, from: u32) -> bool {
        loop {
            let (key, at) = match self.lazy.decisions[depth as usize].node(node) {
                Node::Load { key, at, .. } => (*key, *at),
                Node::End(outcome) => {
                    let outcome = Rc::clone(outcome);
                    return self.arrive(depth, &outcome, from);
                }
            };
            let (slot, word) = ImageClass::place(key);
            let Some(value) = self.lazy.class.get(slot).agreed(word) else {
                return self.split(depth, known, node, (key, at), from);
            };
            match self.follow(depth, known, |tree| tree.next(node, value)) {
                Some(next) => node = next,
                None => return false,
            }
        }
    }

    /// Goes on with each part of the class by the value of a word.
    fn split(
        &mut self,
        depth: u32,
        known: u128,
        node: u32,
        (key, at): (Key, u32),
        mut from: u32,
    ) -> bool {
        let (slot, word) = ImageClass::place(key);
        let before = Rc::clone(self.lazy.class.get(slot));
        let line = self.lazy.class.line(slot);
        let mut crashed = false;
        for value in before.values(word) {
            let kept = Rc::new(before.with(line, word, value));
            self.lazy.class.set(slot, Rc::clone(&kept));
            let filter = Filter {
                at,
                slot,
                word,
                value,
                kept,
                before: Rc::clone(&before),
            };
            self.splits().push(filter);
            let next = self.follow(depth, known, |tree| tree.next(node, value));
            if next.is_some_and(|next| self.refine(depth, known, next, from)) {
                // Up to this load, the other parts' runs are the same.
                from = from.max(at + 1);
                crashed = true;
            }
            self.splits().pop();
            self.lazy.class.set(slot, Rc::clone(&before));
            if self.lazy.stopped {
                break;
            }
        }
        crashed
    }

    fn splits(&mut self) -> &mut Vec<Filter> {
        self.lazy.filters.last_mut().expect("a class is at hand")
    }

    /// The end of a run, for all images of the class at hand. Returns whether it was crashed.
    fn arrive(&mut self, depth: u32, outcome: &Outcome, from: u32) -> bool {
        if let Err(message) = &outcome.verdict {
            self.fail(message.clone());
            return false;
        }
        if depth < self.options.recovery_depth && !outcome.recovery.is_empty() {
            let filters = self.splits().clone();
            for filter in filters.iter().rev() {
                let before = Rc::clone(&filter.before);
                self.lazy.class.set(filter.slot, before);
            }
            self.pass(&outcome.recovery, &filters, depth + 1, from);
            for filter in &filters {
                self.lazy.class.set(filter.slot, Rc::clone(&filter.kept));
            }
        }
        true
    }

    fn fail(&mut self, message: String) {
        let image = self.lazy.class.image();
        self.lazy.failures.push(Failed {
            message,
            image,
            crashes: Vec::new(),
        });
        let found = self.report.findings.len() + self.lazy.failures.len();
        self.lazy.stopped |= found >= self.options.max_findings;
    }

    /// Runs the check on an image of the class at hand and takes in what it read and did.
    fn run_recorded(&mut self, depth: u32, known: u128) {
        self.lazy.runs += 1;
        self.report.states += 1;
        self.report.recovery_states += u64::from(depth > 0);
        let shared = &self.crash.shared;
        self.lazy.class.lay(&shared.memory, depth);
        shared.footprint.take();
        let (mut trace, end, verdict) = self.run_check(depth, self.is_kill());
        let class = &self.lazy.class;
        class.unmark(&shared.memory);
        let path: Vec<Step> = shared
            .footprint
            .take()
            .iter()
            .map(|load| Step {
                key: class.key(load.word),
                value: load.value,
                at: load.at,
            })
            .collect();
        trace.truncate(if depth < self.options.recovery_depth {
            end
        } else {
            0
        });
        if !trace.is_empty() {
            let lines = trace.iter().filter_map(Event::changes);
            self.vary(&lines.collect::<Vec<_>>(), depth + 1);
        }
        let outcome = Outcome {
            verdict,
            recovery: trace.clone(),
        };
        trace.clear();
        self.spare.push(trace);
        let tree = &mut self.lazy.decisions[depth as usize];
        if tree.insert(known, &path, outcome).is_err() {
            self.fail("the check is not deterministic: its loads differ for one image".into());
            self.lazy.stopped = true;
        }
    }

    /// Makes a finding of an image that was rejected.
    fn name(&mut self, trace: &[Event], failed: Failed) {
        let (message, crashes) = failed.in_order();
        let class = &self.lazy.class;
        let by_line = |contents: Vec<Line>| -> FxHashMap<u64, Line> {
            let lines = contents.into_iter().enumerate();
            lines
                .map(|(slot, content)| (class.line(slot), content))
                .collect()
        };
        let crashes: Vec<_> = crashes
            .into_iter()
            .map(|(event, left)| (event, by_line(left)))
            .collect();
        self.find(trace, message, &crashes);
    }
}
