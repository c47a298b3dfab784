//! Losses that the explorer finds: in protocols as they are printed, and in ours with a rule left out.
//! `docs/protocol.md` tells each as it is found here.

mod left_out;
mod printed;

use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::{env, fs};

use firn_crash::{Image, RelocateUnit, Turn};
use firn_heap::collector::scheme::{FFCCD_AS_PRINTED, Scheme};
use firn_media::Step;

use crate::beside::{Case, Run, Stage};
use crate::phases::point;
use crate::program::Op;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocol.md");
/// If this is set, the findings are written to the page instead of compared with it.
const TELL: &str = "FIRN_TELL";
static TELLING: Mutex<()> = Mutex::new(());

/// The second participant, at every point of the first thread's operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meets {
    Nobody,
    /// Nobody; instead the operation comes at every point of the stage, the last one first.
    Stage,
    /// A second thread, with an operation.
    Thread(Op),
    /// The collector, until it must wait.
    Collector,
}

/// A hole in a protocol.
struct Counterexample {
    name: &'static str,
    scheme: &'static Scheme,
    relocate: RelocateUnit,
    /// The rule that is left out, in a protocol without holes of its own.
    leave_out: Option<&'static Step>,
    /// The first thread's operation, the collector's stage at that time, and the second participant.
    first: Op,
    during: Stage,
    meets: Meets,
    /// The operations of the last participant after that, until the log no longer names the first change.
    then: &'static [Op],
    /// Earlier collections.
    earlier: u32,
    /// Crashes inside recovery.
    depth: u32,
    /// The check's message.
    says: &'static str,
    /// Parts of its story, in this order.
    tells: &'static [&'static str],
}

/// The object beside the changed one is unchanged.
const FIRST_IS_THERE: &str = "found [Some([1, 1, 1,";
/// Commits after which the first one's home is its only copy.
const OUTLIVED: [Op; 4] = [Op::Change(2); 4];
/// Points that the collector, or the interrupted thread, runs between two operations.
const BETWEEN: u64 = 4;
/// The times of the first operation in its stage, in twelfths.
const MOMENTS: RangeInclusive<u64> = 1..=11;

impl Counterexample {
    fn case(&self) -> Case {
        Case {
            scheme: self.scheme,
            relocate: self.relocate,
            threads: 1 + usize::from(matches!(self.meets, Meets::Thread(_))),
            earlier: self.earlier,
            depth: self.depth,
            leave_out: self.leave_out,
            looks: false,
            ..Case::default()
        }
    }

    /// The first operation at this many twelfths of its stage, alone, or interrupted at every one of its points.
    fn runs(&self, case: &Case, twelfths: u64) -> Vec<Run> {
        let image = case.image();
        let (bounds, stage) = (case.stages(&image), case.stage(self.during));
        let begin = point(&bounds, stage, twelfths);
        let (who, second) = match self.meets {
            Meets::Nobody | Meets::Stage => (None, vec![]),
            Meets::Thread(op) => (Some(2), vec![op]),
            Meets::Collector => (Some(case.collector()), vec![]),
        };
        let start = |at: Option<(u64, usize)>| {
            let turns: Vec<_> = [(begin, 1)].into_iter().chain(at).collect();
            Run::of([vec![self.first], second.clone()], &turns)
        };
        if self.meets == Meets::Stage {
            let run = |at| Run::of([vec![self.first], vec![]], &[(at, 1)]);
            return (bounds[stage]..=bounds[stage + 1]).rev().map(run).collect();
        }
        let Some(who) = who else {
            return vec![self.go_on(case, &image, start(None))];
        };
        let done = case.run(&image, &start(None)).done;
        let of_first = done.into_iter().find(|done| done.thread == 0).unwrap();
        let points = of_first.begin + 1..of_first.end;
        points
            .map(|at| self.go_on(case, &image, start(Some((at, who)))))
            .collect()
    }

    /// Extends a run by the later operations.
    fn go_on(&self, case: &Case, image: &Image, run: Run) -> Run {
        let (mut run, thread) = (run, case.threads);
        for &op in self.then {
            let done = case.run(image, &run).done;
            let last = done.iter().rfind(|done| done.thread == thread - 1);
            run.script[thread - 1].push(op);
            run.turns.push(Turn {
                after: last.map_or(0, |last| last.end) + BETWEEN,
                thread,
            });
        }
        run
    }

    /// Finds its story, which must be on the page.
    fn find(&self) {
        let case = self.case();
        let found = MOMENTS.into_iter().find_map(|twelfths| {
            let runs = self.runs(&case, twelfths);
            case.find(runs, self.says, |story| tells(story, self.tells))
        });
        expect_told(self.name, found);
    }
}

/// Whether a story has these parts in this order.
fn tells(story: &str, parts: &[&str]) -> bool {
    let mut rest = story;
    parts.iter().all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// Asserts that the page has the finding: the check's message, and the story.
fn expect_told(name: &str, found: Option<(String, String)>) {
    let (message, story) = found.unwrap_or_else(|| panic!("{name} is not found"));
    println!("{name}: {message}\n{story}");
    let _telling = TELLING.lock();
    let page = fs::read_to_string(PAGE).expect("docs/protocol.md is there");
    let (begin, end) =
        told(&page, name).unwrap_or_else(|| panic!("docs/protocol.md has no {name}"));
    if page[begin..end] == story {
        return;
    }
    assert!(
        env::var_os(TELL).is_some(),
        "docs/protocol.md does not tell {name} as it is found (with {TELL}=1 in the environment it will):\n\
         {story}"
    );
    fs::write(PAGE, [&page[..begin], &story, &page[end..]].concat())
        .expect("docs/protocol.md can be written");
}

/// The place of this story on the page: the first block of text after its name.
fn told(page: &str, name: &str) -> Option<(usize, usize)> {
    const FENCE: &str = "```text\n";
    let entry = page.find(&format!("**{name}.**"))?;
    let begin = entry + page[entry..].find(FENCE)? + FENCE.len();
    Some((begin, begin + page[begin..].find("\n```")?))
}

/// The common values.
const PLAIN: Counterexample = Counterexample {
    name: "",
    scheme: &FFCCD_AS_PRINTED,
    relocate: RelocateUnit::Functional,
    leave_out: None,
    first: Op::Touch(0),
    during: Stage::Moving,
    meets: Meets::Nobody,
    then: &[],
    earlier: 0,
    depth: 0,
    says: "",
    tells: &[],
};
