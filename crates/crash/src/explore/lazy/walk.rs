//! The lazy walk: classes of images, split only where a check looks.
//!
//! A check runs on one image of the class at hand and its loads are recorded; wherever another
//! image of the class would have given another value, the class is split and the other part goes
//! its own way. What runs did is kept by what they read ([`crate::explore::lazy::decisions`]), so an image whose
//! loads would be those of an earlier run costs a walk through the tree, not a run.

use std::rc::Rc;

use firn_media::Domain;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::explore::explorer::{Exploration, Failure};
use crate::explore::lazy::candidates::Candidates;
use crate::explore::lazy::class::{BEGINS, ENDS, ImageClass, Key, SCANS};
use crate::explore::lazy::completion::{Completed, Completions, Marks, Uncompleted};
use crate::explore::lazy::decisions::{Course, Decisions, News, Node, Outcome, Recovery, Step};
use crate::explore::lazy::overlay::{Overlay, Stored};
use crate::explore::lazy::verified::Verified;
use crate::explore::walk::{CheckRun, Walker};
use crate::medium::state::Stage;
use crate::memory::cells::Line;
use crate::memory::event::Event;
use crate::memory::footprint::{FirstLoad, Looked};
use crate::schedule::policy::Schedule;

/// Something that a run looked at and that narrowed the class at hand: what a line may hold from there on.
#[derive(Clone)]
pub(crate) struct Filter {
    /// Events of the run before.
    pub(crate) at: u32,
    pub(crate) slot: usize,
    pub(crate) narrowing: Narrowing,
    pub(crate) kept: Rc<Candidates>,
    pub(crate) before: Rc<Candidates>,
}

/// Why a line may hold less.
#[derive(Clone)]
pub(crate) enum Narrowing {
    /// A load of a word that split the class.
    Word(usize, u64),
    /// Other contents go another way, or none.
    Line,
    /// A line of a copy is marked. Nothing is narrowed.
    Begun,
    /// It is this one of those of the copy that might be.
    Marked(usize),
    /// The line's completion begins.
    Begins,
    /// It ends: what it stored to unmarked contents, and the contents that are the same now.
    Ends {
        stored: Stored,
        joined: Rc<Candidates>,
    },
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
    /// What narrowed the classes at hand, the innermost last.
    pub(crate) filters: Vec<Vec<Filter>>,
    pub(crate) completions: Completions,
    pub(crate) failures: Vec<Failed>,
    /// What verifications read of what recoveries had left.
    verifications: Decisions,
    /// Those that found nothing wrong.
    verified: Verified,
    /// Runs of the check on this execution.
    runs: u64,
    pub(crate) stopped: bool,
}

impl Lazy {
    /// What checks did after so many crashes in recovery.
    pub(crate) fn decisions(&self, depth: u32) -> &Decisions {
        &self.decisions[depth as usize]
    }
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
        self.lazy.completions = Completions::default();
        let footprint = &self.crash.shared.footprint;
        footprint.with_torn(|torn| torn.begin(trace));
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
        let mut bytes: Vec<u8> = Vec::with_capacity(64);
        bytes.extend(self.state.durable.0.to_le_bytes());
        bytes.extend(self.space());
        let last = self.state.notes.iter().rposition(|&note| note != 0);
        for note in &self.state.notes[..last.map_or(0, |last| last + 1)] {
            bytes.extend(note.to_le_bytes());
        }
        xxh3_128_with_seed(&bytes, 0)
    }

    /// Length and blocks of memory.
    fn space(&self) -> [u8; 16] {
        let memory = &self.crash.shared.memory;
        (u128::from(memory.len()) << 64 | u128::from(memory.backing())).to_le_bytes()
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
            self.lazy.verifications = Decisions::default();
            self.lazy.verified = Verified::default();
        }
        let depths = self.options.recovery_depth as usize + 1;
        self.lazy.decisions.resize_with(depths, Decisions::default);
    }

    /// Takes in that images after `depth` crashes in recovery may show what a recovery did.
    fn rewrite(&mut self, trace: &[Event], depth: u32) {
        let footprint = &self.crash.shared.footprint;
        let lines = trace.iter().filter_map(Event::stores_to);
        let news =
            footprint.with_torn(|torn| lines.filter(|&line| torn.rewrite(line, depth)).count());
        if news > 0 {
            // Runs recorded less than all that a checksum covers.
            self.lazy.decisions[depth as usize..].fill_with(Decisions::default);
        }
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
        let root = self.follow(depth, known, |tree| tree.root(known));
        if let Some(root) = root {
            self.refine(depth, known, root, 0);
        }
        self.lazy.filters.pop();
    }

    /// What `find` finds in the tree, after a run on the class at hand if nothing yet.
    pub(crate) fn follow(
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
        // A run that was not shown all marks may have gone another way.
        let hides = self.run_recorded(depth, known, Marks::Hidden);
        let found = find(&self.lazy.decisions[depth as usize]);
        if found.is_none() && hides {
            self.run_recorded(depth, known, Marks::Shown);
            return find(&self.lazy.decisions[depth as usize]);
        }
        found
    }

    /// Goes on in the tree from `node` with all images of the class at hand. Crashes before event
    /// `from` of their runs were tried already. Returns whether recoveries were crashed.
    pub(crate) fn refine(&mut self, depth: u32, known: u128, mut node: u32, from: u32) -> bool {
        loop {
            let (key, at) = match self.lazy.decisions[depth as usize].node(node) {
                Node::Load { key, at } => (key, at),
                Node::Recovered(recovery) => {
                    let recovery = Rc::clone(recovery);
                    return self.recovered(depth, &recovery)
                        && self.crash_recovery(depth, &recovery.events, from);
                }
                Node::End(outcome) => {
                    let outcome = Rc::clone(outcome);
                    return self.arrive(depth, &outcome, from);
                }
            };
            let (slot, word) = match ImageClass::place(key) {
                (slot, SCANS) => return self.scan(depth, known, (node, at), slot, from),
                (slot, BEGINS) => {
                    return self.begin_completion(depth, known, (node, at), slot, from);
                }
                (slot, ENDS) => return self.end_completion(depth, known, (node, at), slot, from),
                place => place,
            };
            let Some(value) = self.lazy.class.get(slot).agreed(word) else {
                return self.split(depth, known, node, (key, at), from);
            };
            match self.follow(depth, known, |tree| tree.next(node, value)) {
                Some(next) => node = next,
                None => return false,
            }
        }
    }

    /// Verifies what recovery has made of all images of the class at hand, as far as no verification has
    /// read the same before. Returns whether nothing is wrong.
    fn recovered(&mut self, depth: u32, recovery: &Recovery) -> bool {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.space());
        bytes[16..24].copy_from_slice(&recovery.overlay.space().to_le_bytes());
        bytes[24..].copy_from_slice(&recovery.knows.to_le_bytes());
        let known = xxh3_128_with_seed(&bytes, 0);
        let (class, overlay) = (&self.lazy.class, &recovery.overlay);
        let walk = self.lazy.verified.walk(known, class, overlay);
        if self.lazy.verified.contains(walk) {
            return !self.lazy.stopped;
        }
        let failures = self.lazy.failures.len();
        if let Some(root) = self.verification(depth, known, |tree| tree.root(known)) {
            self.verify(depth, known, recovery, root);
        }
        let is_right = !self.lazy.stopped && self.lazy.failures.len() == failures;
        if is_right {
            let (class, overlay) = (&self.lazy.class, &recovery.overlay);
            let walk = self.lazy.verified.walk(known, class, overlay);
            self.lazy.verified.insert(walk);
        }
        is_right
    }

    /// What `find` finds in the tree of verifications, after a whole run on the class at hand if nothing
    /// yet.
    fn verification(
        &mut self,
        depth: u32,
        known: u128,
        find: impl Fn(&Decisions) -> Option<u32>,
    ) -> Option<u32> {
        let found = find(&self.lazy.verifications);
        if found.is_some() || self.lazy.stopped {
            return found;
        }
        self.verify_recorded(depth, known);
        find(&self.lazy.verifications)
    }

    /// Goes on in the tree of verifications from `node` with all images of the class at hand, recovered.
    fn verify(&mut self, depth: u32, known: u128, recovery: &Recovery, mut node: u32) {
        loop {
            let key = match self.lazy.verifications.node(node) {
                Node::Load { key, .. } => key,
                Node::End(outcome) => {
                    if let Some(message) = outcome.verdict.clone().err() {
                        self.fail(message);
                    }
                    return;
                }
                Node::Recovered(_) => return,
            };
            let (slot, word) = ImageClass::place(key);
            let stored = recovery.overlay.stored(slot, word);
            let Some(value) = stored.or_else(|| self.lazy.class.get(slot).agreed(word)) else {
                return self.verify_each(depth, known, recovery, node, (slot, word));
            };
            match self.verification(depth, known, |tree| tree.next(node, value)) {
                Some(next) => node = next,
                None => return,
            }
        }
    }

    /// Verifies each part of the class by the value of a word that recovery has left as it was.
    fn verify_each(
        &mut self,
        depth: u32,
        known: u128,
        recovery: &Recovery,
        node: u32,
        (slot, word): (usize, usize),
    ) {
        let before = Rc::clone(self.lazy.class.get(slot));
        for value in before.values(word) {
            let kept = before.with(word, value);
            self.lazy.class.set(slot, Rc::new(kept));
            if let Some(next) = self.verification(depth, known, |tree| tree.next(node, value)) {
                self.verify(depth, known, recovery, next);
            }
            self.lazy.class.set(slot, Rc::clone(&before));
            if self.lazy.stopped {
                break;
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
        let mut crashed = false;
        for value in before.values(word) {
            let kept = Rc::new(before.with(word, value));
            self.lazy.class.set(slot, Rc::clone(&kept));
            let filter = Filter {
                at,
                slot,
                narrowing: Narrowing::Word(word, value),
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

    pub(crate) fn splits(&mut self) -> &mut Vec<Filter> {
        self.lazy.filters.last_mut().expect("a class is at hand")
    }

    /// The end of a run, for all images of the class at hand. Returns whether it was crashed.
    fn arrive(&mut self, depth: u32, outcome: &Outcome, from: u32) -> bool {
        if let Err(message) = &outcome.verdict {
            self.fail(message.clone());
            return false;
        }
        self.crash_recovery(depth, &outcome.recovery, from)
    }

    /// Crashes the recovery of all images of the class at hand.
    fn crash_recovery(&mut self, depth: u32, events: &[Event], from: u32) -> bool {
        if depth < self.options.recovery_depth && !events.is_empty() {
            let filters = core::mem::take(self.splits());
            for filter in filters.iter().rev() {
                let before = Rc::clone(&filter.before);
                self.lazy.class.set(filter.slot, before);
            }
            self.pass(events, &filters, depth + 1, from);
            for filter in &filters {
                self.lazy.class.set(filter.slot, Rc::clone(&filter.kept));
            }
            *self.splits() = filters;
        }
        true
    }

    fn fail(&mut self, message: String) {
        let image = self.image_before();
        self.lazy.failures.push(Failed {
            message,
            image,
            crashes: Vec::new(),
        });
        let found = self.report.findings.len() + self.lazy.failures.len();
        self.lazy.stopped |= found >= self.options.max_findings;
    }

    /// Runs the check on an image of the class at hand, until recovery is complete if it has two stages, and
    /// takes in what it read and did. Whether it was not shown all marks.
    fn run_recorded(&mut self, depth: u32, known: u128, marks: Marks) -> bool {
        self.lazy.runs += 1;
        self.report.states += 1;
        self.report.recovery_states += u64::from(depth > 0);
        let begun_on = self.uncomplete(marks);
        let hides = begun_on.hides;
        let (mut run, loads) = self.run_on_class(depth, Stage::Recovery, begun_on);
        let there = run.recovered;
        let loads = &loads[..there.map_or(loads.len(), |there| there.loads)];
        let completed = Completed::all(loads);
        let numbers = self.number(&completed, &run.trace);
        let path = self.path(loads, &numbers, 0);
        let is_crashed = depth < self.options.recovery_depth;
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
                overlay: Overlay::new(&run.trace, &completed, &self.lazy.class),
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
        run.trace.clear();
        self.spare.push(run.trace);
        let tree = &mut self.lazy.decisions[depth as usize];
        match tree.insert(known, &path, course) {
            Ok(News::Path) => {}
            Ok(News::Nothing) if hides => {}
            _ => self.diverged(),
        }
        hides
    }

    /// Runs the whole check on an image of the class at hand and takes in what it read and did after recovery.
    fn verify_recorded(&mut self, depth: u32, known: u128) {
        self.report.verifications += 1;
        let again = self.lazy.class.lines().to_vec();
        self.crash.shared.footprint.mark_again(again);
        let (mut run, loads) = self.run_on_class(depth, Stage::Whole, Uncompleted::default());
        self.crash.shared.footprint.mark_again(Vec::new());
        let there = run.recovered;
        let path = there.map(|there| self.path(&loads[there.loads..], &[], there.events));
        for step in path.iter().flatten() {
            self.lazy.verified.reads(ImageClass::place(step.key).0);
        }
        run.trace.clear();
        self.spare.push(run.trace);
        let outcome = Course::Ended(Outcome {
            verdict: run.verdict,
            recovery: Vec::new(),
        });
        let tree = &mut self.lazy.verifications;
        let is_news = |path: Vec<Step>| {
            let news = tree.insert(known, &path, outcome);
            matches!(news, Ok(News::Path))
        };
        if !path.is_some_and(is_news) {
            self.diverged();
        }
    }

    fn diverged(&mut self) {
        self.fail("the check is not deterministic: its loads differ for one image".into());
        self.lazy.stopped = true;
    }

    /// Runs the check on an image of the class at hand as it is in `begun_on`. What it did, and its loads of words
    /// that may differ.
    fn run_on_class(
        &mut self,
        depth: u32,
        stage: Stage,
        begun_on: Uncompleted,
    ) -> (CheckRun, Vec<FirstLoad>) {
        let shared = &self.crash.shared;
        shared.footprint.set_marked(begun_on.marked);
        self.lazy.class.lay(&shared.memory, depth);
        self.complete_again(begun_on.now);
        let shared = &self.crash.shared;
        shared.footprint.take();
        let spares = self.options.exploration == Exploration::Lazy && stage == Stage::Recovery;
        let torn = |depth| shared.footprint.with_torn(|torn| torn.set_depth(depth));
        torn(spares.then_some(depth));
        let run = self.run_check(depth, self.is_kill(), stage);
        let shared = &self.crash.shared;
        shared.footprint.with_torn(|torn| torn.set_depth(None));
        self.lazy.class.unmark(&shared.memory);
        (run, shared.footprint.take())
    }

    /// Loads as steps, of a run that had done `before` events when it began to count; its completions have these
    /// numbers.
    fn path(&self, loads: &[FirstLoad], completions: &[u64], before: usize) -> Vec<Step> {
        let mut slots = self.lazy.class.finder();
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
