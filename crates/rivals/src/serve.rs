//! The loop that answers lines.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};

use serde::Serialize;

use crate::arguments::Arguments;
use crate::libpmemobj::{Failure, Kind, Library, Pool, tracee, version};
use crate::measure::measure;
use crate::protocol::{Complaint, Counted, Hello, Request, Timed};

const HOW: &str = "one thread in a process of its own, single-stepped by ptrace after warm-up; \
                   every sfence and mfence met, lock prefixes not counted";
const NOT_YET: &str = "not counted yet: ask {\"op\":\"count_fences\",\"of\":OP} first";

/// Answers standard input line by line until `quit` or its end.
pub fn serve(arguments: &Arguments) -> Result<(), Failure> {
    let library = Library::open(&arguments.library)?;
    let pool = Pool::create_in(&library, &arguments.dir)?;
    let hello = Hello {
        rival: "libpmemobj",
        version: version::of_mapped_library(),
        fences_counted: "by single-stepping, on request (count_fences)",
        operations: Kind::all().map(Kind::name).collect(),
    };
    let mut answers = Answers {
        arguments,
        pool: &pool,
        fences: HashMap::new(),
    };
    match answers.exchange(&hello, io::stdin().lock(), io::stdout().lock()) {
        // Whoever asked is gone: nobody is left to tell.
        Err(gone) if gone.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|source| Failure::Io {
            doing: "talking over the pipes",
            source,
        }),
    }
}

struct Answers<'a> {
    arguments: &'a Arguments,
    pool: &'a Pool<'a>,
    fences: HashMap<Kind, f64>,
}

impl Answers<'_> {
    fn exchange(
        &mut self,
        hello: &Hello,
        mut lines: impl BufRead,
        mut out: impl Write,
    ) -> io::Result<()> {
        say(&mut out, hello)?;
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            if lines.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let error = match Request::parse(&line) {
                Ok(Request::Quit) => break,
                Ok(Request::Time {
                    kind,
                    count,
                    threads,
                }) => match self.time(kind, count, threads) {
                    Ok(answer) => {
                        say(&mut out, &answer)?;
                        continue;
                    }
                    Err(failure) => failure.to_string(),
                },
                Ok(Request::CountFences(kind)) => match self.count_fences(kind) {
                    Ok(answer) => {
                        say(&mut out, &answer)?;
                        continue;
                    }
                    Err(failure) => failure.to_string(),
                },
                Err(problem) => problem,
            };
            say(
                &mut out,
                &Complaint {
                    line: number,
                    error,
                },
            )?;
        }
        Ok(())
    }

    fn time(&self, kind: Kind, count: u64, threads: u64) -> Result<Timed, Failure> {
        let times = measure(self.pool, kind, count, threads)?;
        let fences = self.fences.get(&kind).copied();
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

    fn count_fences(&mut self, kind: Kind) -> Result<Counted, Failure> {
        let tallies = tracee::count(self.arguments, kind)?;
        let count = tallies.len() as u64;
        let mean = |of: fn(&crate::single_step::Tally) -> u64| {
            tallies.iter().map(of).sum::<u64>() as f64 / count as f64
        };
        let fences_per_op = mean(|tally| tally.fences);
        self.fences.insert(kind, fences_per_op);
        Ok(Counted {
            op: "count_fences",
            of: kind.name(),
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
}

fn say(out: &mut impl Write, answer: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, answer)?;
    out.write_all(b"\n")?;
    out.flush()
}
