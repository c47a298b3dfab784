//! The one line that replays a finding.
//!
//! `seed=7 event=12:40@2,41@1 event=3:` reads: run the workload with seed 7; crash before event 12 with line 40 at
//! version 2, line 41 at version 1 and every other line as guaranteed; recover; crash the recovery before its event 3.
//! `choices=` precedes the events where a schedule was chosen, and so does `turns=120>2` where thread 2 interrupted
//! after 120 points. `event=12:log@5` is a crash that leaves five records of a log. `kill=` stands for `event=` where the process died.

use core::fmt;
use core::str::FromStr;

use crate::schedule::policy::Schedule;
use crate::schedule::turns::Turn;

/// Stands for a line's number where the log is meant.
const LOG: &str = "log";

/// Where one crash fell and what it left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CrashPoint {
    /// Number of the event before which it fell.
    pub(crate) event: usize,
    /// Whether the process died, rather than the power.
    pub(crate) kill: bool,
    /// Lines that are not at their guaranteed version.
    pub(crate) lines: Vec<(u64, u32)>,
    /// Records of the log that it left, if the medium has one.
    pub(crate) records: Option<u64>,
}

/// How a state is reached: an execution and the crashes in it and in the recoveries after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) seed: u64,
    pub(crate) schedule: Schedule,
    pub(crate) crashes: Vec<CrashPoint>,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed={}", self.seed)?;
        match &self.schedule {
            Schedule::Sequential | Schedule::Inherited => {}
            Schedule::Random { seed } => write!(f, " random={seed}")?,
            Schedule::Priorities { seed, changes } => write!(f, " priorities={seed}/{changes}")?,
            Schedule::Chosen { choices, bound } => {
                let list: Vec<String> = choices.iter().map(u32::to_string).collect();
                write!(f, " choices={bound}/{}", list.join("."))?;
            }
            Schedule::Turns(turns) => {
                let one = |turn: &Turn| format!("{}>{}", turn.after, turn.thread);
                let list: Vec<String> = turns.iter().map(one).collect();
                write!(f, " turns={}", list.join(","))?;
            }
        }
        for crash in &self.crashes {
            let lines = crash.lines.iter();
            let lines = lines.map(|(line, version)| format!("{line}@{version}"));
            let records = crash.records.map(|records| format!("{LOG}@{records}"));
            let lines: Vec<String> = lines.chain(records).collect();
            let kind = if crash.kill { "kill" } else { "event" };
            write!(f, " {kind}={}:{}", crash.event, lines.join(","))?;
        }
        Ok(())
    }
}

impl FromStr for Path {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut path = Path {
            seed: 0,
            schedule: Schedule::Sequential,
            crashes: Vec::new(),
        };
        for part in text.split_whitespace() {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| format!("`{part}` has no `=`"))?;
            match name {
                "seed" => path.seed = number(value)?,
                "random" => {
                    path.schedule = Schedule::Random {
                        seed: number(value)?,
                    }
                }
                "priorities" => {
                    let (seed, changes) = pair(value, '/')?;
                    path.schedule = Schedule::Priorities {
                        seed: number(seed)?,
                        changes: number(changes)?,
                    };
                }
                "choices" => {
                    let (bound, list) = pair(value, '/')?;
                    let choices = list
                        .split('.')
                        .filter(|one| !one.is_empty())
                        .map(number)
                        .collect::<Result<_, _>>()?;
                    path.schedule = Schedule::Chosen {
                        choices,
                        bound: number(bound)?,
                    };
                }
                "turns" => {
                    let one = |text| {
                        let (after, thread) = pair(text, '>')?;
                        let (after, thread) = (number(after)?, number(thread)?);
                        Ok::<_, String>(Turn { after, thread })
                    };
                    let list = value.split(',').filter(|one| !one.is_empty()).map(one);
                    path.schedule = Schedule::Turns(list.collect::<Result<_, _>>()?);
                }
                "event" | "kill" => path.crashes.push(crash_point(name == "kill", value)?),
                _ => return Err(format!("`{name}` is no part of a replay line")),
            }
        }
        Ok(path)
    }
}

fn crash_point(kill: bool, value: &str) -> Result<CrashPoint, String> {
    let (event, lines) = pair(value, ':')?;
    let mut point = CrashPoint {
        event: number(event)?,
        kill,
        ..CrashPoint::default()
    };
    for text in lines.split(',').filter(|text| !text.is_empty()) {
        match pair(text, '@')? {
            (LOG, records) => point.records = Some(number(records)?),
            (line, version) => point.lines.push((number(line)?, number(version)?)),
        }
    }
    Ok(point)
}

fn pair(text: &str, by: char) -> Result<(&str, &str), String> {
    text.split_once(by)
        .ok_or_else(|| format!("`{text}` has no `{by}`"))
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_it_is_written() {
        for text in [
            "seed=7 event=12:40@2,41@1 event=3:",
            "seed=0 choices=2/0.1.0.3 event=5:",
            "seed=9 priorities=9/3 kill=4:",
            "seed=1 random=2",
            "seed=0 turns=120>2,300>1 event=5:",
            "seed=0 turns=",
            "seed=0 event=5:log@3 event=2:log@0",
        ] {
            assert_eq!(text.parse::<Path>().unwrap().to_string(), text);
        }
    }
}
