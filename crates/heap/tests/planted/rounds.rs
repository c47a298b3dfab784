//! One session that commits round after round, crashed at drawn moments or everywhere, again in each recovery.

use firn_crash::{Crash, Explorer, Report, SwarmOptions};
use firn_heap::{Bytes, Error, Pool, PoolKind, PoolOptions, Refs, Session, Tx, View};

use crate::pools::{self, LEN, Missing, explore, open};

type Spine = Refs<Bytes>;

/// The action of a round, and the place of its number.
pub struct Rounds {
    pub kind: PoolKind,
    /// Rounds of the workload.
    pub count: u64,
    /// Earlier rounds, after which the pool was not closed.
    pub before: u64,
    pub round: fn(Tx<'_, Crash>, u64) -> Result<(), Error>,
    /// The content of each place after this many rounds.
    pub places: fn(u64) -> Vec<Option<Vec<u8>>>,
    pub swarm: SwarmOptions,
}

const SWARM: SwarmOptions = SwarmOptions {
    seeds: 0..40,
    crashes: 40,
    images: 6,
    crashes_in_recovery: 3,
};

/// New objects of three lengths in one place after the other, and one that changes in place.
pub const MIXED: Rounds = Rounds {
    kind: PoolKind::Traced,
    count: 30,
    before: 0,
    round: mixed,
    places: mixed_places,
    swarm: SWARM,
};

pub const MIXED_EXPLICIT: Rounds = Rounds {
    kind: PoolKind::Explicit,
    ..MIXED
};

/// Rounds in a pool that is recovered first.
pub const RECOVERED: Rounds = Rounds {
    before: 11,
    count: 19,
    ..MIXED
};

/// Large objects: every other round replaces one, the others change it in place.
pub const LARGE: Rounds = Rounds {
    count: 14,
    round: large,
    places: large_places,
    swarm: SwarmOptions {
        seeds: 0..16,
        crashes: 24,
        images: 6,
        crashes_in_recovery: 1,
    },
    ..MIXED
};

/// One large object that is mostly zeros, as its frames are: few of its lines vary, so it can be crashed everywhere.
/// Among thousands of moments there are few at which its entry is on media and the object is not.
pub const HOLLOW: Rounds = Rounds {
    count: 1,
    round: hollow,
    places: |n| vec![(n > 0).then(hollow_bytes)],
    ..MIXED
};

/// Entries that do not fit into their slots.
pub const LONG: Rounds = Rounds {
    count: 8,
    round: long,
    places: long_places,
    swarm: SwarmOptions {
        seeds: 0..12,
        crashes: 24,
        images: 6,
        crashes_in_recovery: 1,
    },
    ..MIXED
};

const PLACES: usize = 12;

fn mixed(tx: Tx<'_, Crash>, n: u64) -> Result<(), Error> {
    let spine = tx.root::<Spine>("spine")?;
    replace(tx, n as usize % PLACES, &mixed_bytes(n))?;
    match spine.get(PLACES) {
        Some(last) => last.overwrite(0, &n.to_le_bytes()),
        None => spine.set(PLACES, Some(tx.alloc_bytes(&n.to_le_bytes())?)),
    }
}

fn mixed_bytes(n: u64) -> Vec<u8> {
    let mut bytes = vec![n as u8; [8, 100, 400][n as usize % 3]];
    bytes[..8].copy_from_slice(&n.to_le_bytes());
    bytes
}

fn mixed_places(n: u64) -> Vec<Option<Vec<u8>>> {
    let mut places = vec![None; PLACES + 1];
    for n in n.saturating_sub(PLACES as u64 - 1).max(1)..=n {
        places[n as usize % PLACES] = Some(mixed_bytes(n));
    }
    places[PLACES] = (n > 0).then(|| n.to_le_bytes().to_vec());
    places
}

/// Bytes of an object with frames of its own.
const LARGE_BYTES: usize = 40_000;

fn large(tx: Tx<'_, Crash>, n: u64) -> Result<(), Error> {
    match n % 2 {
        1 => replace(tx, 0, &[n as u8; LARGE_BYTES]),
        _ => match tx.root::<Spine>("spine")?.get(0) {
            Some(object) => object.overwrite(LARGE_BYTES / 2, &[n as u8; 8]),
            None => Ok(()),
        },
    }
}

fn large_places(n: u64) -> Vec<Option<Vec<u8>>> {
    let mut bytes = vec![n.saturating_sub(1 - n % 2) as u8; LARGE_BYTES];
    bytes[LARGE_BYTES / 2..][..8].fill(n as u8);
    vec![(n > 0).then_some(bytes)]
}

fn hollow(tx: Tx<'_, Crash>, _: u64) -> Result<(), Error> {
    replace(tx, 0, &hollow_bytes())
}

fn hollow_bytes() -> Vec<u8> {
    let mut bytes = vec![0; LARGE_BYTES];
    bytes[LARGE_BYTES - 1] = 1;
    bytes
}

/// Bytes of an object whose log entry takes more than a slot.
const LONG_BYTES: usize = 6000;

fn long(tx: Tx<'_, Crash>, n: u64) -> Result<(), Error> {
    match tx.root::<Spine>("spine")?.get(0) {
        Some(object) => object.overwrite(0, &[n as u8; LONG_BYTES]),
        None => replace(tx, 0, &[n as u8; LONG_BYTES]),
    }
}

fn long_places(n: u64) -> Vec<Option<Vec<u8>>> {
    vec![(n > 0).then(|| vec![n as u8; LONG_BYTES])]
}

fn replace(tx: Tx<'_, Crash>, place: usize, bytes: &[u8]) -> Result<(), Error> {
    let spine = tx.root::<Spine>("spine")?;
    if let Some(old) = spine.get(place) {
        // SAFETY: the only reference is replaced.
        unsafe { tx.free(old)? };
    }
    spine.set(place, Some(tx.alloc_bytes(bytes)?))
}

impl Rounds {
    fn options(&self) -> PoolOptions {
        PoolOptions {
            kind: self.kind,
            lanes: 2,
            publish_every: u32::MAX,
            ..PoolOptions::new("rounds")
        }
    }

    fn setup(&self, crash: &Crash) {
        let pool = Pool::create(crash.clone(), &self.options()).unwrap();
        let mut session = pool.session().unwrap();
        session
            .transaction(|tx| tx.set_root("spine", tx.alloc_refs::<Bytes>(PLACES + 1)?))
            .unwrap();
        drop(session);
        pool.close().unwrap();
        if self.before > 0 {
            let pool = Pool::open(crash.clone(), &self.options()).unwrap();
            self.run(&pool, 1..=self.before);
        }
    }

    fn run(&self, pool: &Pool<Crash>, rounds: core::ops::RangeInclusive<u64>) {
        let mut session = pool.session().unwrap();
        for n in rounds {
            session.transaction(|tx| (self.round)(tx, n)).unwrap();
            pool.medium().note(n);
        }
        pool.clone().abandon();
    }

    fn verify(&self, crash: Crash, done: u64) -> Result<(), String> {
        let pool = open(crash, &self.options())?;
        let mut session = pool.session().map_err(|e| e.to_string())?;
        let found = read(&mut session).map_err(|e| e.to_string())?;
        drop(session);
        let legal = |n| {
            let mut places = (self.places)(n);
            places.resize(found.len(), None);
            places == found
        };
        match legal(done) || legal(done + 1) {
            true => pools::check(pool),
            false => Err(format!("something else than after {done} rounds")),
        }
    }

    /// Crashes the rounds at drawn moments.
    pub fn swarm(&self, missing: Missing) -> Report {
        self.explorer(missing, 2).swarm(&self.swarm)
    }

    /// Crashes them everywhere.
    pub fn explore(&self, missing: Missing) -> Report {
        self.explorer(missing, 1).explore()
    }

    fn explorer(&self, missing: Missing, recovery_depth: u32) -> Explorer<'_> {
        Explorer::new(
            explore(missing, recovery_depth),
            LEN,
            |crash| self.setup(crash),
            |crash| {
                let pool = Pool::open(crash.clone(), &self.options()).unwrap();
                let first = self.before + 1;
                self.run(&pool, first..=self.before + self.count);
            },
            |crash, state| self.verify(crash, state.note(0).max(self.before)),
        )
    }
}

fn read(session: &mut Session<Crash>) -> Result<Vec<Option<Vec<u8>>>, Error> {
    session.read(|view| {
        let spine = view.root::<Spine>("spine")?;
        let place = |i| spine.get(i).map(|b| b.to_vec()).transpose();
        (0..=PLACES).map(place).collect()
    })
}
