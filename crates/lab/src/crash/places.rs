//! FFCCD's second validation (section 7.1): the objects of an interrupted cycle are where media says, and each is at
//! one place, with one content.
//!
//! The plan, the settled words and the marks of `relocate` are read from media here, not by the heap. As printed,
//! nothing may name the destination of an object that was not moved. Here recovery resumes a cycle and leaves such
//! references, which still lead to the object (rule 8 of `docs/protocol.md`). So the check is instead that every
//! object, once it was touched, has its former content at its one place.

use std::collections::{HashMap, HashSet};

use firn_crash::Crash;
use firn_format::FormatError;
use firn_format::geometry::PHASE;
use firn_format::plan::{ENTRY_WORDS, Entry, Phase, PlanHeader};
use firn_format::reference::RefWord;
use firn_format::sealed::Seal;
use firn_heap::Pool;
use firn_heap::collector::Relocation;
use firn_heap::collector::scheme::Scheme;
use firn_media::{Hardware, Memory, Relocate};
use firn_units::{LINE_BYTES, VirtAddr, WORD_BYTES};

/// The plan that is active according to media.
struct Plan {
    at: firn_format::geometry::Frame,
    header: PlanHeader,
    entries: Vec<Entry>,
}

impl Plan {
    fn read(crash: &Crash) -> Result<Option<Self>, FormatError> {
        let value = Seal::Phase.open_at(crash.load_u64(PHASE), PHASE)?;
        let at = match Phase::from_value(value, PHASE)? {
            Phase::Active(at) => at,
            // Recovery completes a release.
            Phase::Idle | Phase::Release(_) => return Ok(None),
        };
        let line = |at: VirtAddr| -> [u64; ENTRY_WORDS] {
            core::array::from_fn(|word| crash.load_u64(at + word as u64 * WORD_BYTES))
        };
        let header = PlanHeader::from_words(&line(at.start()), at.start())?;
        let entries = (0..header.entries).map(|index| {
            let entry_at = PlanHeader::entry_at(at, index);
            Entry::from_words(&line(entry_at), entry_at)
        });
        let entries = entries.collect::<Result<_, _>>()?;
        Ok(Some(Self {
            at,
            header,
            entries,
        }))
    }

    /// Source, destination and settled word of every unit, by ascending sources.
    fn units(&self) -> impl Iterator<Item = (VirtAddr, VirtAddr, VirtAddr)> {
        let settled = self.header.settled_at(self.at);
        self.entries.iter().flat_map(move |entry| {
            let bytes = entry.class.map_or(0, |class| class.slot_bytes());
            (0..).zip(entry.slots()).map(move |(rank, slot)| {
                let (frame, to) = match entry.class {
                    Some(_) => entry.destination(rank),
                    None => (entry.first, 0),
                };
                let (from, to) = (
                    entry.source.start() + slot * bytes,
                    frame.start() + to * bytes,
                );
                (from, to, settled + (entry.unit + rank) * WORD_BYTES)
            })
        })
    }
}

/// An object at its one place.
struct Placed {
    relocation: Relocation,
    content: Vec<u64>,
}

/// The objects of an interrupted cycle, as recovery found them.
pub(super) struct Places {
    objects: Vec<Placed>,
}

impl Places {
    /// Records where recovery found each object, before anything is touched, provided that media agrees.
    pub(super) fn read(pool: &Pool<Crash>) -> Result<Self, String> {
        let crash = pool.medium();
        let plan = Plan::read(crash).map_err(|e| e.to_string())?;
        if plan.is_some() != pool.has_open_cycle() {
            return Err("whether a cycle is open is not what media says".to_owned());
        }
        let relocations = pool.relocations();
        if let Some(plan) = plan {
            let scheme = Scheme::numbered(plan.header.scheme).ok_or("the plan has no scheme")?;
            agree(crash, scheme, &plan, &relocations)?;
        }
        let objects = relocations.into_iter().map(|relocation| {
            let at = match relocation.moved {
                true => relocation.to,
                false => relocation.from,
            };
            Placed {
                relocation,
                content: words(crash, at, relocation.bytes),
            }
        });
        Ok(Self {
            objects: objects.collect(),
        })
    }

    /// Whether every object that is at its destination by now is unchanged, except for references that now name
    /// destinations. Nothing else has changed objects meanwhile.
    pub(super) fn are_kept(&self, pool: &Pool<Crash>) -> Result<(), String> {
        let of_objects = self.objects.iter().map(|object| object.relocation);
        let forwarded: HashMap<VirtAddr, VirtAddr> =
            of_objects.map(|object| (object.from, object.to)).collect();
        let forward = |word: u64| {
            let reference = RefWord(word);
            let to = forwarded.get(&reference.address())?;
            Some(
                RefWord::new(reference.pool(), *to)
                    .with_tag(reference.tag())
                    .0,
            )
        };
        for (object, now) in self.objects.iter().zip(pool.relocations()) {
            let Relocation {
                from, to, bytes, ..
            } = object.relocation;
            if (now.from, now.to) != (from, to) {
                return Err(format!("the object at {:#x} has another place now", from.0));
            }
            let found = if now.moved {
                words(pool.medium(), to, bytes)
            } else {
                continue;
            };
            let differs = |(before, now): &(&u64, &u64)| {
                before != now && forward(**before).as_ref() != Some(*now)
            };
            if let Some(word) = object.content.iter().zip(&found).position(|w| differs(&w)) {
                return Err(format!(
                    "the object at {:#x} changed on its way to {:#x}: word {word} is {:#x} instead of {:#x}",
                    from.0, to.0, found[word], object.content[word]
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
impl Places {
    /// Destination and settled word of an object that has moved, or of one that has not.
    pub(super) fn one(&self, crash: &Crash, moved: bool) -> Option<(VirtAddr, VirtAddr)> {
        let mut objects = self.objects.iter().map(|object| object.relocation);
        let it = objects.find(|object| object.moved == moved)?;
        let plan = Plan::read(crash).unwrap()?;
        let (_, to, settled) = plan.units().find(|&(from, ..)| from == it.from)?;
        Some((to, settled))
    }
}

/// Whether media and memory agree on every object, and no two objects share a place.
fn agree(
    crash: &Crash,
    scheme: &Scheme,
    plan: &Plan,
    relocations: &[Relocation],
) -> Result<(), String> {
    if plan.units().count() != relocations.len() {
        return Err("media plans another number of objects than memory".to_owned());
    }
    let mut places = HashSet::new();
    for ((from, to, settled), relocation) in plan.units().zip(relocations) {
        if (from, to) != (relocation.from, relocation.to) {
            return Err(format!("media plans another way for {:#x}", from.0));
        }
        if !places.insert(from) || !places.insert(to) {
            return Err(format!(
                "{:#x} or {:#x} is two objects' place",
                from.0, to.0
            ));
        }
        let has_moved = match scheme.relocates() {
            true => has_arrived(crash, to, relocation.bytes)?,
            false => crash.load_u64(settled) != 0,
        };
        if has_moved != relocation.moved {
            let place = |moved| if moved { "destination" } else { "source" };
            return Err(format!(
                "the object at {:#x} is at its {} on media, and at its {} for the pool",
                from.0,
                place(has_moved),
                place(relocation.moved)
            ));
        }
    }
    Ok(())
}

/// Whether every line of a copy is marked; recovery leaves no copy with only some lines marked.
fn has_arrived(crash: &Crash, to: VirtAddr, bytes: u64) -> Result<bool, String> {
    let lines = (to.line_start().0..(to + bytes).0).step_by(LINE_BYTES as usize);
    let unit: &dyn Relocate = crash.offers().expect();
    let reached: Vec<bool> = lines.map(|line| unit.reached(VirtAddr(line))).collect();
    match (reached.contains(&true), reached.contains(&false)) {
        (true, true) => Err(format!(
            "the copy at {:#x} has arrived in part on media",
            to.0
        )),
        (some, _) => Ok(some),
    }
}

fn words(crash: &Crash, at: VirtAddr, bytes: u64) -> Vec<u64> {
    let words = (0..bytes).step_by(WORD_BYTES as usize);
    words.map(|word| crash.load_u64(at + word)).collect()
}
