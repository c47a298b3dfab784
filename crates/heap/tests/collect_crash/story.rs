//! A crash state's story in words: who did what to the moving objects, to their references and to the log, and what the
//! crash left of it.

use std::collections::BTreeMap;
use std::fmt::Write;

use firn_crash::{Event, Image, Passed, Stored, Story};
use firn_format::class::Class;
use firn_format::geometry::{LANES_START, PHASE, WATERMARK};
use firn_format::header::{ObjectHeader, TypeId};
use firn_format::lane::{LANE_BYTES, LANES};
use firn_format::plan::{ENTRY_WORDS, Entry, Phase, PlanHeader};
use firn_format::reference::RefWord;
use firn_format::sealed::Seal;
use firn_units::{LINE_BYTES, VirtAddr, WORD_BYTES};

/// A unit of the plan: its source, its destination, and the length of a slot.
struct Moves {
    /// Its number, P for the array of references.
    name: String,
    from: VirtAddr,
    to: VirtAddr,
    bytes: u64,
}

/// The names of places while a plan counts.
struct Names {
    header: PlanHeader,
    settled: VirtAddr,
    units: Vec<Moves>,
}

impl Names {
    /// The names for the plan that the phase on media names.
    fn of(image: &Image) -> Option<Self> {
        let value = Seal::Phase.open_at(image.load_u64(PHASE), PHASE).ok()?;
        let plan = match Phase::from_value(value, PHASE).ok()? {
            Phase::Active(plan) | Phase::Release(plan) => plan,
            Phase::Idle => return None,
        };
        let line = |at: VirtAddr| -> [u64; ENTRY_WORDS] {
            core::array::from_fn(|i| image.load_u64(at + i as u64 * WORD_BYTES))
        };
        let header = PlanHeader::from_words(&line(plan.start()), plan.start()).ok()?;
        let mut units = Vec::new();
        for index in 0..header.entries {
            let at = PlanHeader::entry_at(plan, index);
            let entry = Entry::from_words(&line(at), at).ok()?;
            let bytes = entry.class.map_or(0, Class::slot_bytes);
            for (rank, slot) in (0..).zip(entry.slots()) {
                let (frame, to) = entry.destination(rank);
                let from = entry.source.start() + slot * bytes;
                let header = ObjectHeader(image.load_u64(from));
                let name = match header.type_id() {
                    TypeId::REFS => "P".into(),
                    _ => units.len().to_string(),
                };
                units.push(Moves {
                    name,
                    from,
                    to: frame.start() + to * bytes,
                    bytes,
                });
            }
        }
        Some(Self {
            header,
            settled: header.settled_at(plan),
            units,
        })
    }

    /// The object at an address, with the offset into it: x stands for its source, y for its destination.
    fn object(&self, at: VirtAddr) -> Option<(String, u64)> {
        let within = |start: VirtAddr, bytes| at.0.checked_sub(start.0).filter(|at| *at < bytes);
        self.units.iter().find_map(|unit| {
            let Moves {
                name,
                from,
                to,
                bytes,
            } = unit;
            let source = within(*from, *bytes).map(|at| (format!("x{name}"), at));
            source.or_else(|| within(*to, *bytes).map(|at| (format!("y{name}"), at)))
        })
    }

    fn settled(&self, at: VirtAddr) -> Option<u64> {
        let word = at.0.checked_sub(self.settled.0)? / WORD_BYTES;
        (word < self.header.units).then_some(word)
    }

    /// The content of an address, if it is of interest.
    fn place(&self, at: VirtAddr) -> Option<String> {
        let lanes = LANES_START.0..LANES_START.0 + LANES as u64 * LANE_BYTES;
        if let Some((object, _)) = self.object(at) {
            return Some(object);
        }
        if let Some(unit) = self.settled(at) {
            return Some(format!("moved[{}]", self.units[unit as usize].name));
        }
        match at {
            PHASE => Some("the phase".into()),
            WATERMARK => Some("W_pool".into()),
            _ if lanes.contains(&at.0) => Some("the log".into()),
            _ => None,
        }
    }

    /// The meaning of a word that holds `value`: for a word outside the plan, its target.
    fn word(&self, at: VirtAddr, value: u64) -> Option<String> {
        self.place(at)
            .or_else(|| match self.object(RefWord(value).address())? {
                (object, 0) => Some(format!("a reference to {object}")),
                _ => None,
            })
    }

    /// The content of a line.
    fn line(&self, line: VirtAddr) -> Vec<String> {
        let words = (0..LINE_BYTES).step_by(WORD_BYTES as usize);
        let place = |at| match self.settled(at) {
            Some(_) => Some("moved".into()),
            None => self.place(at),
        };
        let mut names: Vec<String> = words.filter_map(|at| place(line + at)).collect();
        names.dedup();
        names
    }

    /// The effect of an event, if it is of interest.
    fn event(&self, event: &Event) -> Option<String> {
        match event {
            Event::Store { new, .. } => match event.stored()? {
                Stored::Mark(line) if *new != 0 => Some(format!(
                    "marks the line of {}",
                    self.line(line).join(" and ")
                )),
                Stored::Mark(_) => None,
                Stored::Word(at) => Some(format!("stores {}", self.word(at, *new)?)),
            },
            Event::WriteBack { .. } => {
                let names = self.line(event.written_back()?);
                (!names.is_empty()).then(|| format!("writes {} back", names.join(" and ")))
            }
            Event::Fence { .. } => Some("fence".into()),
            // The last bit of a note says whether its operation has only begun.
            Event::Note { progress, .. } if progress & 1 == 0 => Some("returns".into()),
            _ => None,
        }
    }
}

/// Who causes it.
fn who(event: &Event, threads: usize) -> String {
    match usize::from(event.thread()) {
        0 => "recovery".into(),
        thread if thread > threads => "collector".into(),
        thread => format!("thread {thread}"),
    }
}

/// Operations that are open when the plan comes into force: the index of that moment, and of the beginning of each.
fn open_from_before(events: &[&Event]) -> Option<(usize, Vec<usize>)> {
    let is_phase = |event: &&Event| event.stored() == Some(Stored::Word(PHASE));
    let phase = events.iter().position(is_phase)?;
    let mut open = BTreeMap::new();
    for (i, event) in events[..phase].iter().enumerate() {
        match event {
            Event::Note { progress, .. } if progress & 1 == 1 => open.insert(event.thread(), i),
            Event::Note { .. } => open.remove(&event.thread()),
            _ => None,
        };
    }
    let begun: Vec<usize> = open.into_values().collect();
    (!begun.is_empty()).then_some((phase, begun))
}

/// Tells the events from the first one on that touches an object's destination. If operations were open when the plan
/// came into force, tells their beginnings, and everything from then on. If nothing was copied, tells how the plan came
/// into force.
fn tell_from_copies(names: &Names, events: &[&Event], threads: usize, out: &mut String) {
    let copies = |event: &&Event| match event.stored() {
        Some(Stored::Word(at)) => names.units.iter().any(|unit| unit.to == at),
        _ => false,
    };
    let is_phase = |event: &&Event| event.stored() == Some(Stored::Word(PHASE));
    let first = events.iter().position(copies);
    let Some(first) = first.or_else(|| events.iter().position(is_phase)) else {
        return;
    };
    let Some((phase, begun)) = open_from_before(&events[..first]) else {
        return tell(names, &events[first..], threads, out);
    };
    for event in begun.into_iter().map(|at| events[at]) {
        let _ = write!(out, "\n{:<10} begins", who(event, threads));
    }
    tell(names, &events[phase..], threads, out);
}

/// Tells the events. Repetitions by one thread are told once.
fn tell(names: &Names, events: &[&Event], threads: usize, out: &mut String) {
    let (mut last_who, mut last_what) = (String::new(), String::new());
    for event in events {
        let Some(what) = names.event(event) else {
            continue;
        };
        let who = who(event, threads);
        if who != last_who {
            let _ = write!(out, "\n{who:<10} {what}");
        } else if what != last_what {
            let _ = write!(out, "; {what}");
        }
        (last_who, last_what) = (who, what);
    }
}

/// Places of which media holds an older version than the cache did.
fn lost(names: &Names, events: &[Event], left: &Image) -> Vec<String> {
    let stores = events
        .iter()
        .filter_map(|event| match (event, event.stored()) {
            (Event::Store { new, .. }, Some(Stored::Word(at))) => Some((at, *new)),
            _ => None,
        });
    let last: BTreeMap<VirtAddr, u64> = stores.collect();
    let older = last.iter().filter(|(at, new)| left.load_u64(**at) != **new);
    let mut lost: Vec<String> = older
        .filter_map(|(at, new)| names.word(*at, *new))
        .collect();
    lost.sort();
    lost.dedup();
    lost
}

/// The story of a crash state, one paragraph per crash. Of the check only its stores are told.
pub fn in_words(story: &Story, threads: usize) -> String {
    let mut out = String::new();
    let mut names = None;
    for Passed { events, left } in &story.passed {
        names = Names::of(left).or(names);
        let Some(names) = &names else { continue };
        let all: Vec<&Event> = events.iter().collect();
        tell_from_copies(names, &all, threads, &mut out);
        let lost = lost(names, events, left);
        out.push_str("\ncrash      ");
        match lost.is_empty() {
            true => out.push_str("everything is on media"),
            false => {
                let _ = write!(out, "not on media: {}", lost.join(", "));
            }
        }
    }
    if let Some(names) = &names {
        let stores = |event: &&Event| matches!(event.stored(), Some(Stored::Word(at)) if names.object(at).is_some());
        let stores: Vec<&Event> = story.check.iter().filter(stores).collect();
        tell(names, &stores, threads, &mut out);
    }
    let lines = out.trim_start().lines().map(wrapped);
    lines.collect::<Vec<_>>().join("\n")
}

/// Breaks a line that is too long for a page, and indents the rest.
fn wrapped(line: &str) -> String {
    let mut out = String::new();
    let mut width = 0;
    for part in line.split_inclusive("; ") {
        if width > 0 && width + part.trim_end().len() > WIDTH {
            out.truncate(out.trim_end().len());
            let _ = write!(out, "\n{:INDENT$}", "");
            width = INDENT;
        }
        out.push_str(part);
        width += part.len();
    }
    out
}

/// The width of a line in characters, and of the part that names the thread.
const WIDTH: usize = 100;
const INDENT: usize = 11;
