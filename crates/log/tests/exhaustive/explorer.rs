//! Every execution of a driver, every crash, every image, every recovery.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use firn_format::log::{BLOCK_BYTES, Head, head_offset};
use firn_log::coalesce;

use crate::disk::{Contents, File, Id};
use crate::driver::{Config, Driver, STEPS, Start, Step};
use crate::faults::{Fault, read_log};
use crate::pool::{Deed, Words, bring_home};

/// What the second opening does: enough for two writes and a checkpoint.
const SECOND: Config = Config {
    name: "second opening",
    segment: 0,
    segments: (0, 0),
    deeds: &[Deed::Store(&[0]), Deed::Store(&[1])],
    one_by_one: true,
    may_fail: false,
};

/// How much was tried.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    /// States of the log and its disk before a crash.
    pub states: u64,
    /// Choices of a content for each sector, over all crashes.
    pub subsets: u128,
    /// Recoveries that ran: of images that they tell apart, each once with what is expected of it.
    pub recoveries: u64,
    /// Of them, those after a crash inside recovery.
    pub of_recoveries: u64,
    /// Pools that were opened a second time.
    pub second_openings: u64,
}

/// The states that a crash may leave.
struct Expected {
    states: Vec<Words>,
    hash: u64,
}

impl Expected {
    fn new(states: &[Words]) -> Self {
        let mut hash = DefaultHasher::new();
        states.hash(&mut hash);
        Self {
            states: states.to_vec(),
            hash: hash.finish(),
        }
    }
}

type Image = (Vec<Id>, Vec<Id>);

/// A crash whose images are tried.
#[derive(Clone, Copy)]
struct Crash<'c> {
    config: &'c Config,
    start: &'c Start,
    expected: &'c Expected,
    /// Crashes inside recovery that follow, one inside the other.
    depth: u32,
    /// Crashes inside recovery that came before.
    in_recovery: u32,
}

impl Crash<'_> {
    /// The next crash inside recovery, if there is to be one.
    fn deeper(&self) -> Option<Self> {
        Some(Self {
            depth: self.depth.checked_sub(1)?,
            in_recovery: self.in_recovery + 1,
            ..*self
        })
    }
}

pub struct Explorer {
    contents: Contents,
    fault: Option<Fault>,
    /// States of the driver, by opening.
    known: HashSet<(Vec<u32>, u64)>,
    /// Images, with what is expected of them and the opening: how many crashes inside recovery were tried.
    recovered: HashMap<(Image, u64, u64), u32>,
    /// Pools that were opened a second time.
    opened: HashSet<Image>,
    pub counts: Counts,
    pub found: Option<String>,
}

impl Explorer {
    pub fn new(fault: Option<Fault>) -> Self {
        Self {
            contents: Contents::new(),
            fault,
            known: HashSet::new(),
            recovered: HashMap::new(),
            opened: HashSet::new(),
            counts: Counts::default(),
            found: None,
        }
    }

    /// Explores a new pool, with so many crashes inside each recovery.
    pub fn explore(&mut self, config: &Config, depth: u32) {
        let start = Start::new(config, &mut self.contents);
        self.walk(config, &start, depth, &mut Vec::new());
    }

    /// Goes on from the state after these steps.
    fn walk(&mut self, config: &Config, start: &Start, depth: u32, steps: &mut Vec<Step>) {
        let mut driver = Driver::new(config, start, self.fault);
        for &step in &*steps {
            if !driver.take(step, &mut self.contents) {
                return;
            }
        }
        if self.found.is_some() || !self.known.insert((driver.key(), opening_of(start))) {
            return;
        }
        self.counts.states += 1;
        match driver.refused {
            Some(block) => {
                let what = "a write to the log is refused for want of space";
                self.found = Some(format!("{what}, at block {block} of its file"));
            }
            None => self.crash(config, start, &driver, depth),
        }
        if let Some(found) = &mut self.found {
            *found = format!(
                "{found}\n{}, opening {}: {steps:?}",
                config.name, start.opening
            );
        }
        let next = STEPS.into_iter().filter(|&step| driver.may(step));
        let next: Vec<Step> = next.collect();
        drop(driver);
        // Every step comes nearer to an end, at which nothing is left to do.
        for step in next {
            steps.push(step);
            self.walk(config, start, depth, steps);
            steps.pop();
        }
    }

    /// Loses power in a state of the driver.
    fn crash(&mut self, config: &Config, start: &Start, driver: &Driver<'_>, depth: u32) {
        let expected = Expected::new(&driver.states[driver.durable()..]);
        let (logs, of_logs) = driver.disk.log.left(&mut self.contents, false);
        let (homes, of_homes) = driver.disk.home.left(&mut self.contents, true);
        self.counts.subsets += of_logs * of_homes;
        let crash = Crash {
            config,
            start,
            expected: &expected,
            depth,
            in_recovery: 0,
        };
        for log in &logs {
            for home in &homes {
                self.recover(&crash, (log.clone(), home.clone()));
            }
        }
    }

    /// Recovers an image, and crashes its recovery.
    fn recover(&mut self, crash: &Crash<'_>, image: Image) {
        if self.found.is_some() {
            return;
        }
        let key = (image, crash.expected.hash, crash.start.opening);
        match self.recovered.get(&key) {
            Some(&tried) if tried > crash.depth => return,
            _ => _ = self.recovered.insert(key.clone(), crash.depth + 1),
        }
        let (log, home) = key.0;
        self.counts.recoveries += 1;
        self.counts.of_recoveries += u64::from(crash.in_recovery > 0);
        let segment = crash.config.segment;
        let (head, records) = match read_log(&log, &self.contents, segment, self.fault) {
            Ok(read) => read,
            Err(refused) => return self.find(crash, &refused.to_string()),
        };
        let mut home = File::durable(home);
        let brought = coalesce(records.into_iter());
        bring_home(&mut home, &brought, &mut self.contents);
        if let Some(deeper) = crash.deeper() {
            let (homes, subsets) = home.left(&mut self.contents, true);
            self.counts.subsets += subsets;
            for home in homes {
                self.recover(&deeper, (log.clone(), home));
            }
        }
        home.sync();
        let home: Vec<Id> = (0..home.len()).map(|block| home.now(block)).collect();
        let words = Words::of(&home, &self.contents);
        let expected = &crash.expected.states;
        match expected.contains(&words) {
            true => self.begin_anew(crash, log, home, head, words),
            false => {
                let what = format!("the pool is {words:?}, which is none of {expected:?}");
                self.find(crash, &what);
            }
        }
    }

    fn find(&mut self, crash: &Crash<'_>, what: &str) {
        let crashes = crash.in_recovery;
        let what = || format!("after {crashes} crashes in recovery: {what}");
        self.found.get_or_insert_with(what);
    }

    /// Ends a recovery whose home is durable: the log begins anew, with another salt (L9).
    fn begin_anew(
        &mut self,
        crash: &Crash<'_>,
        log: Vec<Id>,
        home: Vec<Id>,
        head: Head,
        words: Words,
    ) {
        let next = Head {
            generation: head.generation + 1,
            salt: head.salt + u64::from(self.fault != Some(Fault::OldSalt)),
            tail: 0,
            ..head
        };
        let mut log = File::durable(log);
        let at = (head_offset(next.generation) / BLOCK_BYTES) as usize;
        log.write(at, self.contents.id(&next.encode()));
        if let Some(deeper) = crash.deeper() {
            let (logs, subsets) = log.left(&mut self.contents, false);
            self.counts.subsets += subsets;
            for log in logs {
                self.recover(&deeper, (log, home.clone()));
            }
        }
        log.sync();
        if crash.start.opening == 1 {
            self.open_again(crash.config, &log, home, next, words);
        }
    }

    /// Opens a pool that was recovered, and crashes it again. The log has its first slots only (L8).
    fn open_again(&mut self, config: &Config, log: &File, home: Vec<Id>, head: Head, words: Words) {
        let slots = config.options().initial_bytes / BLOCK_BYTES;
        let log: Vec<Id> = (0..2 + slots as usize)
            .map(|block| log.now(block))
            .collect();
        if self.found.is_some() || !self.opened.insert((log.clone(), home.clone())) {
            return;
        }
        self.counts.second_openings += 1;
        let start = Start {
            log,
            home,
            head,
            words,
            opening: 2,
        };
        let second = Config {
            segment: config.segment,
            segments: config.segments,
            ..SECOND
        };
        self.walk(&second, &start, 1, &mut Vec::new());
    }
}

/// Tells openings apart that begin on different pools.
fn opening_of(start: &Start) -> u64 {
    let mut hash = DefaultHasher::new();
    (start.opening, &start.log, &start.home).hash(&mut hash);
    hash.finish()
}
