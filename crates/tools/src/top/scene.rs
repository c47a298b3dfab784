//! The observations of a pool so far.

use core::fmt;
use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;

use super::Change;
use super::change::went_back;
use crate::Stat;
use crate::figures::bytes;

/// Looks that are remembered.
const MOST_MOMENTS: usize = 300;
/// Incidents that are remembered.
const MOST_INCIDENTS: usize = 20;

/// The observations of a pool so far.
#[derive(Clone, Debug, Serialize)]
pub struct Scene {
    /// The pool's file.
    pub pool: String,
    /// What it is doing.
    pub condition: Condition,
    /// The last figures that could be read.
    pub stat: Stat,
    /// The change since the look before those figures; none after the first look.
    pub change: Option<Change>,
    /// Incidents of the pool, the latest first.
    pub incidents: VecDeque<Incident>,
    /// Time from the first look to the last.
    #[serde(skip)]
    pub watched: Duration,
    /// The looks, the latest first.
    #[serde(skip)]
    pub moments: VecDeque<Moment>,
    /// The time of the figures.
    #[serde(skip)]
    read: Duration,
}

/// What a pool is doing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Condition {
    /// A program has it open, or died while it had.
    Open,
    /// No program has it open.
    Closed,
    /// It cannot be read, for this reason.
    Lost(String),
}

/// A look.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Footprint on 2 MiB pages divided by live bytes; none without objects.
    pub ratio_2m: Option<f64>,
    /// Committed transactions in a second.
    pub commits_per_second: f64,
}

/// An event in the pool's history.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Incident {
    /// Since the first look.
    #[serde(serialize_with = "as_seconds")]
    pub at: Duration,
    /// Its kind.
    #[serde(serialize_with = "as_text")]
    pub what: What,
}

/// Kinds of incidents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// A program opened it.
    Opened,
    /// The program closed it.
    Closed,
    /// It cannot be read any more.
    Lost(String),
    /// It can be read again.
    Found,
    /// Its file has another length.
    Resized {
        /// Bytes before.
        from: u64,
        /// Bytes now.
        to: u64,
    },
    /// Counters are lower than they were.
    WentBack,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened => f.write_str("a program opened the pool"),
            Self::Closed => f.write_str("the pool was closed"),
            Self::Lost(why) => write!(f, "cannot be read: {why}"),
            Self::Found => f.write_str("the pool can be read again"),
            Self::Resized { from, to } => {
                let verb = if to > from { "grew" } else { "shrank" };
                write!(f, "file {verb} from {} to {}", bytes(*from), bytes(*to))
            }
            Self::WentBack => f.write_str("counters went back: crash, or new pool"),
        }
    }
}

fn as_seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

fn as_text<S: serde::Serializer>(what: &What, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(what)
}

impl Scene {
    /// The scene after the first look.
    pub fn new(pool: String, stat: Stat) -> Self {
        let mut scene = Self {
            pool,
            condition: condition(&stat),
            stat,
            change: None,
            incidents: VecDeque::new(),
            watched: Duration::ZERO,
            moments: VecDeque::new(),
            read: Duration::ZERO,
        };
        scene.remember();
        scene
    }

    /// Adds another look, at this time after the first.
    pub fn see(&mut self, stat: Stat, at: Duration) {
        self.watched = at;
        let now = condition(&stat);
        match (&self.condition, &now) {
            (Condition::Lost(_), _) => self.befell(What::Found),
            (Condition::Closed, Condition::Open) => self.befell(What::Opened),
            (Condition::Open, Condition::Closed) => self.befell(What::Closed),
            _ => {}
        }
        if went_back(&self.stat, &stat) {
            self.befell(What::WentBack);
        }
        if stat.file_bytes != self.stat.file_bytes {
            self.resized(self.stat.file_bytes, stat.file_bytes);
        }
        let time = at.saturating_sub(self.read);
        self.change = Some(Change::between(&self.stat, &stat, time));
        self.stat = stat;
        self.condition = now;
        self.read = at;
        self.remember();
    }

    /// Adds a look that failed, at this time after the first.
    pub fn miss(&mut self, why: &str, at: Duration) {
        self.watched = at;
        // The pool's name is shown already.
        let name = format!("{}: ", self.pool);
        let why = why.strip_prefix(&name).unwrap_or(why).to_owned();
        if self.condition == Condition::Lost(why.clone()) {
            return;
        }
        self.befell(What::Lost(why.clone()));
        self.condition = Condition::Lost(why);
        self.change = None;
    }

    fn remember(&mut self) {
        let moment = Moment {
            ratio_2m: self.stat.ratio_2m,
            commits_per_second: self.change.map_or(0.0, |change| change.commits_per_second),
        };
        self.moments.push_front(moment);
        self.moments.truncate(MOST_MOMENTS);
    }

    fn befell(&mut self, what: What) {
        let at = self.watched;
        self.incidents.push_front(Incident { at, what });
        self.incidents.truncate(MOST_INCIDENTS);
    }

    /// A file that keeps growing is one incident. So is a file that grows and shrinks in turn, as files of collected
    /// pools do.
    fn resized(&mut self, from: u64, to: u64) {
        let at = self.watched;
        match self.incidents.front_mut() {
            Some(Incident {
                at: last,
                what:
                    What::Resized {
                        from: first,
                        to: end,
                    },
            }) => {
                if (*first < *end) != (from < to) {
                    *first = from;
                }
                (*last, *end) = (at, to);
            }
            _ => self.befell(What::Resized { from, to }),
        }
    }
}

fn condition(stat: &Stat) -> Condition {
    match stat.open {
        true => Condition::Open,
        false => Condition::Closed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(open: bool, commits: u64, file_bytes: u64) -> Stat {
        Stat {
            open,
            commits,
            file_bytes,
            ..Stat::default()
        }
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn told(scene: &Scene) -> Vec<String> {
        let told = scene.incidents.iter().rev();
        told.map(|incident| incident.what.to_string()).collect()
    }

    #[test]
    fn closing_growing_and_vanishing_are_told() {
        let mut scene = Scene::new("p".into(), stat(true, 10, 1 << 20));
        assert_eq!(scene.change, None);
        scene.see(stat(true, 30, 2 << 20), seconds(1));
        scene.see(stat(true, 30, 4 << 20), seconds(2));
        scene.see(stat(false, 40, 4 << 20), seconds(3));
        assert_eq!(scene.change.unwrap().commits_per_second, 10.0);
        scene.miss("p: not found", seconds(4));
        scene.miss("p: not found", seconds(5));
        assert_eq!(scene.condition, Condition::Lost("not found".into()));
        assert_eq!((scene.change, scene.stat.commits), (None, 40));
        scene.see(stat(true, 4, 1 << 20), seconds(7));
        let expected = [
            "file grew from 1.0 MiB to 4.0 MiB",
            "the pool was closed",
            "cannot be read: not found",
            "the pool can be read again",
            "counters went back: crash, or new pool",
            "file shrank from 4.0 MiB to 1.0 MiB",
        ];
        assert_eq!(told(&scene), expected);
        scene.see(stat(true, 4, 3 << 20), seconds(8));
        assert_eq!(scene.incidents.len(), expected.len());
        assert_eq!(told(&scene)[5], "file grew from 1.0 MiB to 3.0 MiB");
        assert_eq!(scene.change.unwrap().commits_per_second, 0.0);
        scene.see(stat(true, 44, 3 << 20), seconds(12));
        assert_eq!(scene.change.unwrap().commits_per_second, 10.0);
    }

    #[test]
    fn a_long_watch_forgets() {
        let mut scene = Scene::new("p".into(), stat(true, 0, 0));
        for n in 1..1000 {
            scene.see(stat(n % 2 == 0, n, 0), seconds(n));
        }
        assert_eq!(scene.moments.len(), MOST_MOMENTS);
        assert_eq!(scene.incidents.len(), MOST_INCIDENTS);
        assert_eq!(scene.incidents[0].at, seconds(999));
    }
}
