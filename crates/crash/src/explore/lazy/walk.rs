//! The lazy walk: classes of images, split only where a check looks.
//!
//! A check runs on one image of the current class, and its loads are recorded. Wherever another image of the class
//! would have given another value, the class is split and the other part is explored separately. The actions of runs
//! are kept by what they read ([`crate::explore::lazy::decisions`]), so an image that would repeat an earlier run's
//! loads costs a walk through the tree, not a run.

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::explore::eager::walk::Eager;
use crate::explore::engine::Engine;
use crate::explore::lazy::class::ImageClass;
use crate::explore::lazy::completion::Completions;
use crate::explore::lazy::decisions::Decisions;
use crate::explore::lazy::failed::Failed;
use crate::explore::lazy::narrowing::Filter;
use crate::explore::lazy::verified::Verified;
use crate::explore::replay;
use crate::explore::walker::Walker;
use crate::memory::cells::Line;
use crate::memory::event::Event;
use crate::schedule::policy::Schedule;

/// Tries images by classes.
pub(crate) struct Lazy<'w, 'a> {
    pub(super) walker: &'w mut Walker<'a>,
    pub(super) class: ImageClass,
    /// By the number of crashes in recovery so far.
    pub(super) decisions: Vec<Decisions>,
    /// What narrowed the current classes, the innermost last.
    pub(super) filters: Vec<Vec<Filter>>,
    pub(super) completions: Completions,
    pub(super) failures: Vec<Failed>,
    /// What verifications read of recovered memory.
    pub(super) verifications: Decisions,
    /// Verifications that found nothing wrong.
    pub(super) verified: Verified,
    /// Runs of the check on this execution.
    pub(super) runs: u64,
    pub(super) stopped: bool,
}

impl<'a> Engine<'a> for Lazy<'_, 'a> {
    fn walker(&mut self) -> &mut Walker<'a> {
        self.walker
    }

    fn walk(&mut self, trace: &[Event], seed: u64, schedule: Schedule) {
        self.walker.start(seed, schedule.clone());
        if !self.execution(trace) {
            self.walker.report.cut = true;
            Eager::new(self.walker).walk(trace, seed, schedule);
        }
    }
}

impl<'w, 'a> Lazy<'w, 'a> {
    pub(crate) fn new(walker: &'w mut Walker<'a>) -> Self {
        Self {
            walker,
            class: ImageClass::default(),
            decisions: Vec::new(),
            filters: Vec::new(),
            completions: Completions::default(),
            failures: Vec::new(),
            verifications: Decisions::default(),
            verified: Verified::default(),
            runs: 0,
            stopped: false,
        }
    }
}

impl Lazy<'_, '_> {
    /// Walks an execution that started on memory as it is now. False if the limit of runs cut it short.
    fn execution(&mut self, trace: &[Event]) -> bool {
        self.runs = 0;
        // The oracle may have learnt from this execution by other means than loads, such as a log.
        self.decisions.clear();
        self.completions = Completions::default();
        let footprint = &self.walker.crash.shared.footprint;
        footprint.with_torn(|torn| torn.begin(trace));
        self.stopped = false;
        let lines = trace.iter().filter_map(Event::changes);
        self.vary(&lines.collect::<Vec<_>>(), 0);
        self.visit_class(0);
        for failed in &mut self.failures {
            let left = core::mem::take(&mut failed.image);
            failed.crashes.push((0, left));
        }
        if !self.stopped {
            self.pass(trace, &[], 0, 0);
        }
        self.class.lay_base(&self.walker.crash.shared.memory);
        let failures = core::mem::take(&mut self.failures);
        let whole = !self.stopped || !failures.is_empty();
        for failed in failures {
            self.name(trace, failed);
        }
        whole
    }

    /// Hash of everything but the image that decides a check's course.
    fn known(&self) -> u128 {
        let mut bytes: Vec<u8> = Vec::with_capacity(64);
        bytes.extend(self.walker.state.durable.0.to_le_bytes());
        bytes.extend(self.space());
        let last = self.walker.state.notes.iter().rposition(|&note| note != 0);
        for note in &self.walker.state.notes[..last.map_or(0, |last| last + 1)] {
            bytes.extend(note.to_le_bytes());
        }
        xxh3_128_with_seed(&bytes, 0)
    }

    /// Length and blocks of memory.
    pub(super) fn space(&self) -> [u8; 16] {
        let memory = &self.walker.crash.shared.memory;
        (u128::from(memory.len()) << 64 | u128::from(memory.backing())).to_le_bytes()
    }

    /// Records that images after `depth` crashes in recovery may differ in `lines`.
    pub(super) fn vary(&mut self, lines: &[u64], depth: u32) {
        let memory = &self.walker.crash.shared.memory;
        let mut news = false;
        for &line in lines {
            news |= self.class.vary(line, depth, memory);
        }
        if news {
            // Runs did not record loads of a line that could not vary.
            self.decisions.truncate(depth as usize);
            self.verifications = Decisions::default();
            self.verified = Verified::default();
        }
        let depths = self.walker.options.recovery_depth as usize + 1;
        self.decisions.resize_with(depths, Decisions::default);
    }

    /// Records that images after `depth` crashes in recovery may show a recovery's stores.
    pub(super) fn rewrite(&mut self, trace: &[Event], depth: u32) {
        let footprint = &self.walker.crash.shared.footprint;
        let lines = trace.iter().filter_map(Event::stores_to);
        let news =
            footprint.with_torn(|torn| lines.filter(|&line| torn.rewrite(line, depth)).count());
        if news > 0 {
            // Runs recorded only part of what a checksum covers.
            self.decisions[depth as usize..].fill_with(Decisions::default);
        }
    }

    /// Checks every image of the current class, and crashes their recoveries.
    pub(crate) fn visit_class(&mut self, depth: u32) {
        self.walker.report.classes += 1;
        let images = self.class.images();
        self.walker.report.images = self.walker.report.images.saturating_add(images);
        let known = self.known();
        let left = (self.walker.options.recovery_depth - depth) as u8;
        let key = self.walker.hash ^ self.class.hash() ^ known;
        if !self.walker.is_new(key, left) {
            return;
        }
        self.filters.push(Vec::new());
        let root = self.follow(depth, known, |tree| tree.root(known));
        if let Some(root) = root {
            self.refine(depth, known, root, 0);
        }
        self.filters.pop();
    }

    pub(super) fn fail(&mut self, message: String) {
        let image = self.image_before();
        self.failures.push(Failed {
            message,
            image,
            crashes: Vec::new(),
        });
        let found = self.walker.report.findings.len() + self.failures.len();
        self.stopped |= found >= self.walker.options.max_findings;
    }

    pub(super) fn diverged(&mut self) {
        self.fail("the check is not deterministic: its loads differ for one image".into());
        self.stopped = true;
    }

    /// Makes a finding of a rejected image.
    fn name(&mut self, trace: &[Event], failed: Failed) {
        let (message, crashes) = failed.in_order();
        let class = &self.class;
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
        replay::find(self.walker, trace, message, &crashes);
    }
}
