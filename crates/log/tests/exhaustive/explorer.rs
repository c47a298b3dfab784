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
    steps: 7,
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
        self.crash(config, start, &driver, depth);
        if let Some(found) = &mut self.found {
            *found = format!(
                "{found}\n{}, opening {}: {steps:?}",
                config.name, start.opening
            );
        }
        drop(driver);
        if steps.len() < config.steps {
            for step in STEPS {
                steps.push(step);
                self.walk(config, start, depth, steps);
                steps.pop();
            }
        }
    }

    /// Loses power in a state of the driver.
    fn crash(&mut self, config: &Config, start: &Start, driver: &Driver<'_>, depth: u32) {
        let expected = Expected::new(&driver.states[driver.durable()..]);
        let (logs, of_logs) = driver.disk.log.left(&mut self.contents, false);
        let (homes, of_homes) = driver.disk.home.left(&mut self.contents, true);
        self.counts.subsets += of_logs * of_homes;
        for log in &logs {
            for home in &homes {
                let image = (log.clone(), home.clone());
                self.recover(config, start, image, &expected, depth, 0);
            }
        }
    }

    /// Recovers an image, and crashes its recovery `depth` times, one inside the other.
    fn recover(
        &mut self,
        config: &Config,
        start: &Start,
        image: Image,
        expected: &Expected,
        depth: u32,
        crashes: u32,
    ) {
        if self.found.is_some() {
            return;
        }
        let key = (image, expected.hash, start.opening);
        match self.recovered.get(&key) {
            Some(&tried) if tried > depth => return,
            _ => _ = self.recovered.insert(key.clone(), depth + 1),
        }
        let (log, home) = key.0;
        self.counts.recoveries += 1;
        self.counts.of_recoveries += u64::from(crashes > 0);
        let (head, records) = match read_log(&log, &self.contents, config.segment, self.fault) {
            Ok(read) => read,
            Err(refused) => {
                self.found = Some(format!("after {crashes} crashes in recovery: {refused}"));
                return;
            }
        };
        let mut home_file = File::durable(home);
        let brought = coalesce(records.into_iter());
        bring_home(&mut home_file, &brought, &mut self.contents);
        if depth > 0 {
            let (homes, subsets) = home_file.left(&mut self.contents, true);
            self.counts.subsets += subsets;
            for home in homes {
                self.recover(
                    config,
                    start,
                    (log.clone(), home),
                    expected,
                    depth - 1,
                    crashes + 1,
                );
            }
        }
        home_file.sync();
        let home: Vec<Id> = (0..home_file.len())
            .map(|block| home_file.now(block))
            .collect();
        let words = Words::of(&home, &self.contents);
        if !expected.states.contains(&words) {
            self.found.get_or_insert(format!(
                "after {crashes} crashes in recovery the pool is {words:?}, which is none of {:?}",
                expected.states
            ));
            return;
        }
        let next = Head {
            generation: head.generation + 1,
            salt: head.salt + u64::from(self.fault != Some(Fault::OldSalt)),
            tail: 0,
            ..head
        };
        let mut log_file = File::durable(log);
        let at = (head_offset(next.generation) / BLOCK_BYTES) as usize;
        log_file.write(at, self.contents.id(&next.encode()));
        if depth > 0 {
            let (logs, subsets) = log_file.left(&mut self.contents, false);
            self.counts.subsets += subsets;
            for log in logs {
                self.recover(
                    config,
                    start,
                    (log, home.clone()),
                    expected,
                    depth - 1,
                    crashes + 1,
                );
            }
        }
        log_file.sync();
        if start.opening == 1 {
            self.open_again(config, &log_file, home, next, words, depth);
        }
    }

    /// Opens a pool that was recovered, and crashes it again. The log has its first slots only (L8).
    fn open_again(
        &mut self,
        config: &Config,
        log: &File,
        home: Vec<Id>,
        head: Head,
        words: Words,
        depth: u32,
    ) {
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
        self.walk(&second, &start, depth.min(1), &mut Vec::new());
    }
}

/// Tells openings apart that begin on different pools.
fn opening_of(start: &Start) -> u64 {
    let mut hash = DefaultHasher::new();
    (start.opening, &start.log, &start.home).hash(&mut hash);
    hash.finish()
}
