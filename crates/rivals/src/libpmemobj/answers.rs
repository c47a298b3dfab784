//! libpmemobj's answers to requests.

use std::collections::HashMap;
use std::time::Duration;

use super::structures::{Packed, Phases, Shared, TwoThreads, pack};
use super::{Countable, Failure, Kind, Library, Pool, Step, StructureKind, tracee, version};
use crate::arguments::{Arguments, RivalName};
use crate::clock::Times;
use crate::measure::measure;
use crate::protocol::{
    Answer, Changes, Counted, Defragmented, Fences, Hello, Phased, Request, SharedByTwo, Timed,
};
use crate::serve::Rival;
use crate::single_step::Tally;

const HOW: &str = "one thread in a process of its own, single-stepped by ptrace after warm-up; \
                   every sfence and mfence met, lock prefixes not counted";
const NOT_YET: &str = "not counted yet: ask {\"op\":\"count_fences\",\"of\":OP} first";
const HOW_PHASES: &str = "one undo transaction an operation, in a pool of its own that is allocated as a whole before; \
     thread CPU time in chunks of n/200 operations; gets copy the value out, the list's start from \
     the volatile array of nodes; live bytes are what was asked for, the head and the array of \
     strings included; the file is taken as far as an object ever reached";
const HOW_SHARED: &str = "two threads take turns by one lock around the structure, since the library isolates no \
     transaction from another; each inserts, and then deletes, every other of n entries; CPU time \
     of both over n, wall time of the slower one over n";

const HOW_PACKED: &str = "n inserted, four fifths deleted at random; CPU time of listing all references and of one \
     call of pmemobj_defrag, beside which nobody works, over the objects that it moved";

/// libpmemobj, with a pool for single operations.
pub struct Libpmemobj<'a> {
    arguments: &'a Arguments,
    library: &'a Library,
    pool: &'a Pool<'a>,
    fences: HashMap<Countable, f64>,
}

impl<'a> Libpmemobj<'a> {
    /// Answers from this pool, and from pools of its own.
    pub fn new(arguments: &'a Arguments, library: &'a Library, pool: &'a Pool<'a>) -> Self {
        Self {
            arguments,
            library,
            pool,
            fences: HashMap::new(),
        }
    }

    fn time(&self, kind: Kind, count: u64, threads: u64) -> Result<Timed, Failure> {
        let times = measure(self.pool, kind, count, threads)?;
        let fences = self.fences.get(&Countable::Operation(kind)).copied();
        Ok(Timed {
            op: kind.name(),
            count,
            threads,
            ns_cpu_per_op: times.cpu.as_nanos() as f64 / count as f64,
            ns_wall_per_op: times.wall.as_nanos() as f64 / count as f64,
            fences_per_op: fences,
            how_fences_were_counted: if fences.is_some() { HOW } else { NOT_YET },
        })
    }

    fn count_fences(&mut self, of: Countable) -> Result<Counted, Failure> {
        let tallies = tracee::count(self.arguments, of)?;
        let count = tallies.len() as u64;
        let mean =
            |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>() as f64 / count as f64;
        let fences_per_op = mean(|tally| tally.fences);
        self.fences.insert(of, fences_per_op);
        Ok(Counted {
            op: "count_fences",
            of: of.name(),
            count,
            fences_per_op,
            fences_least: tallies.iter().map(|tally| tally.fences).min().unwrap_or(0),
            fences_most: tallies.iter().map(|tally| tally.fences).max().unwrap_or(0),
            write_backs_per_op: mean(|tally| tally.clwb + tally.clflushopt + tally.clflush),
            clwb_per_op: mean(|tally| tally.clwb),
            clflushopt_per_op: mean(|tally| tally.clflushopt),
            clflush_per_op: mean(|tally| tally.clflush),
            nontemporal_stores_per_op: mean(|tally| tally.nontemporal),
            locked_per_op: mean(|tally| tally.locked),
            system_calls_per_op: mean(|tally| tally.system_calls),
            instructions_per_op: mean(|tally| tally.instructions),
            how_fences_were_counted: HOW,
        })
    }

    fn two_threads(&self, structure: &str, n: u32) -> Result<SharedByTwo, Failure> {
        let kind = kind_named(structure)?;
        let shared = kind.with(self.library, &self.arguments.dir, n, TwoThreads { n })?;
        let times = |of: fn(Times) -> Duration| {
            let each = |times| of(times).as_nanos() as f64 / f64::from(n);
            let Shared { insert, delete } = shared;
            Changes {
                insert: each(insert),
                delete: each(delete),
            }
        };
        Ok(SharedByTwo {
            op: "two_threads",
            structure: kind.name(),
            n,
            ns_cpu: times(|times| times.cpu),
            ns_wall: times(|times| times.wall),
            how: HOW_SHARED,
        })
    }

    fn defrag(&self, structure: &str, n: u32, seed: u64) -> Result<Defragmented, Failure> {
        let kind = kind_named(structure)?;
        let Packed {
            times,
            moved,
            occupied,
        } = pack(self.library, &self.arguments.dir, kind, n, seed)?;
        let each = |time: Duration| time.as_nanos() as f64 / moved.max(1) as f64;
        Ok(Defragmented {
            op: "defrag",
            structure: kind.name(),
            n,
            moved,
            ns_cpu_per_moved: each(times.cpu),
            ns_wall_per_moved: each(times.wall),
            ratio_2m: occupied.map(|it| it.pages_2m as f64 / it.live as f64),
            ratio_4k: occupied.map(|it| it.pages_4k as f64 / it.live as f64),
            how: HOW_PACKED,
        })
    }

    fn phases(&self, structure: &str, n: u32, seed: u64) -> Result<Phased, Failure> {
        let kind = kind_named(structure)?;
        let user = Phases { n, seed };
        let outcome = kind.with(self.library, &self.arguments.dir, n, user)?;
        let of = |step| self.fences.get(&Countable::Structure(kind, step)).copied();
        let fences = Fences {
            insert: of(Step::Insert),
            delete: of(Step::Delete),
        };
        Ok(Phased {
            op: "phases",
            structure: kind.name(),
            n,
            outcome,
            fences: fences.any(),
            how: HOW_PHASES,
        })
    }
}

fn kind_named(structure: &str) -> Result<StructureKind, Failure> {
    StructureKind::named(structure).ok_or_else(|| {
        let known = StructureKind::names().join(", ");
        Failure::Unknown(format!("unknown structure '{structure}', known: {known}"))
    })
}

impl Rival for Libpmemobj<'_> {
    fn hello(&self) -> Hello {
        Hello {
            rival: RivalName::Libpmemobj.name(),
            rivals: RivalName::names(),
            version: version::of_mapped_library(),
            fences_counted: "by single-stepping, on request (count_fences)",
            operations: Kind::all().map(Kind::name).collect(),
            structures: StructureKind::names(),
        }
    }

    fn answer(&mut self, request: Request) -> Result<Answer, Failure> {
        match request {
            Request::Time {
                kind,
                count,
                threads,
            } => self.time(kind, count, threads).map(Answer::Timed),
            Request::CountFences(of) => self.count_fences(of).map(Answer::Counted),
            Request::Phases { structure, n, seed } => {
                self.phases(&structure, n, seed).map(Answer::Phased)
            }
            Request::Defrag { structure, n, seed } => {
                self.defrag(&structure, n, seed).map(Answer::Defragmented)
            }
            Request::TwoThreads { structure, n } => {
                self.two_threads(&structure, n).map(Answer::Shared)
            }
            Request::Insert(_) | Request::Reopen | Request::Volume { .. } => {
                let name = RivalName::Libpmemobj.name();
                let none = format!("{name} is not durable on a disk: it needs persistent memory");
                Err(Failure::Unknown(none))
            }
        }
    }
}
