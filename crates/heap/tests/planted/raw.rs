//! Objects with stores through raw addresses, moved twice, crashed everywhere.

use firn_crash::{Crash, CrashOptions, Explorer, Image, Report};
use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{
    Error, LogKind, Obj, Pool, PoolKind, PoolOptions, RawGuard, RawTx, Session, Untyped,
};
use firn_media::{MediumExt, Memory};
use firn_units::VirtAddr;

use crate::pools::{self, LEN, Missing, explore, open};

/// The part that the workload covers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A cycle, with changes of objects that it moves.
    Moving,
    /// After a cycle: an old address is stored, an object replaced.
    Moved,
    /// A second cycle after that, and closing the pool.
    Closing,
}

#[derive(Clone, Copy)]
pub struct Raw {
    pub part: Part,
    pub depth: u32,
}

/// Bytes of an object; four of them fill a page.
const BYTES: u64 = 1000;
/// Offset of the second copy of an object's value, in another line.
const FAR: u64 = 992;
/// Offset of a pair that names the object's own byte 8.
const PAIR: u64 = 16;
const OBJECTS: usize = 12;
/// The ones that stay, one per page.
const STAY: [usize; 3] = [0, 5, 10];

/// The progress of the workload, in order.
const STORED: u64 = 1;
const COMMITTED: u64 = 2;
const FINISHED: u64 = 3;
const OLD_ADDRESS: u64 = 4;
const REPLACED: u64 = 5;
const CLOSED: u64 = 6;

fn options() -> PoolOptions {
    PoolOptions {
        kind: PoolKind::Explicit,
        log: LogKind::Undo,
        lanes: 1,
        publish_every: u32::MAX,
        ..PoolOptions::new("raw")
    }
}

fn collect() -> CollectOptions {
    CollectOptions {
        target: 1.0,
        pages: PageSize::Small,
        ..CollectOptions::default()
    }
}

fn put(tx: RawTx<'_, Crash>, at: VirtAddr, words: &[u64]) -> Result<(), Error> {
    tx.log(&[(at, words.len() as u64 * 8)])?;
    tx.store(at, bytemuck::cast_slice(words))
}

/// A new object with a value.
fn allocate(pool: &Pool<Crash>, tx: RawTx<'_, Crash>, value: u64) -> Result<VirtAddr, Error> {
    let new = tx.alloc_of(pool.register_pairs("anything")?, BYTES)?;
    tx.store(new, &value.to_le_bytes())?;
    tx.store(
        new + PAIR,
        bytemuck::cast_slice(&[pool.pair_id(), new.0 + 8]),
    )?;
    tx.store(new + FAR, &value.to_le_bytes())?;
    Ok(new)
}

/// A pool, and the addresses of its objects when the workload began.
struct Made {
    image: Image,
    table: VirtAddr,
    objects: [VirtAddr; 3],
}

impl Raw {
    fn made(self) -> Made {
        let crash = Crash::new(LEN, CrashOptions::default());
        let pool = Pool::create(crash.clone(), &options()).unwrap();
        let mut session = pool.session().unwrap();
        let made = session.raw_transaction(|tx| {
            let what = pool.register_pairs("anything")?;
            let table = tx.alloc_of(what, 64)?;
            tx.set_root("table", Some(table))?;
            let all: Vec<VirtAddr> = (0..OBJECTS)
                .map(|_| allocate(&pool, tx, 1))
                .collect::<Result<_, _>>()?;
            let objects = STAY.map(|i| all[i]);
            for (i, at) in objects.iter().enumerate() {
                tx.store(
                    table + i as u64 * 16,
                    bytemuck::cast_slice(&[pool.pair_id(), at.0]),
                )?;
            }
            Ok::<_, Error>((all, table, objects))
        });
        let (all, table, objects) = made.unwrap();
        session
            .raw_transaction(|tx| {
                let leave = (0..OBJECTS).filter(|i| !STAY.contains(i));
                // SAFETY: nothing but themselves refers to them.
                leave
                    .into_iter()
                    .try_for_each(|i| unsafe { tx.free(all[i]) })
            })
            .unwrap();
        let made = |image| Made {
            image,
            table,
            objects,
        };
        if self.part == Part::Moving {
            drop(session);
            pool.close().unwrap();
            return made(crash.cache_image());
        }
        let made = made(crash.cache_image());
        self.moving(&pool, &mut session, &made);
        if self.part == Part::Closing {
            self.moved(&pool, &mut session, &made);
        }
        pool.abandon();
        let image = crash.cache_image();
        Made { image, ..made }
    }

    fn moving(self, pool: &Pool<Crash>, session: &mut Session<Crash>, made: &Made) {
        let medium = pool.medium();
        let mut collection = pool.collection(&collect()).unwrap();
        assert!(collection.begin().unwrap(), "nothing moves");
        {
            let guard = session.raw_guard().unwrap();
            let at = guard.resolve(made.objects[0]);
            for at in [at, at + FAR] {
                medium.store_u64(at, 2);
                medium.persist(at, 8);
            }
        }
        medium.note(STORED);
        let both = |tx: RawTx<'_, Crash>, at: VirtAddr, value| {
            put(tx, at, &[value])?;
            put(tx, at + FAR, &[value])
        };
        session
            .raw_transaction(|tx| both(tx, tx.resolve(made.objects[1]), 2))
            .unwrap();
        medium.note(COMMITTED);
        let aborted = session.raw_transaction(|tx| {
            both(tx, tx.resolve(made.objects[2]), 9)?;
            Err::<(), _>(Error::ReadOnly)
        });
        assert!(aborted.is_err());
        collection.finish().unwrap();
        medium.note(FINISHED);
    }

    fn moved(self, pool: &Pool<Crash>, session: &mut Session<Crash>, made: &Made) {
        let medium = pool.medium();
        {
            let guard = session.raw_guard().unwrap();
            let at = guard.resolve(made.table) + 48;
            medium.store_u64(at, pool.pair_id());
            medium.store_u64(at + 8, made.objects[0].0);
            medium.persist(at, 16);
        }
        medium.note(OLD_ADDRESS);
        session
            .raw_transaction(|tx| {
                // SAFETY: the table's reference is replaced.
                unsafe { tx.free(tx.resolve(made.objects[1])) }?;
                let new = allocate(pool, tx, 7)?;
                put(tx, tx.resolve(made.table) + 16, &[pool.pair_id(), new.0])
            })
            .unwrap();
        medium.note(REPLACED);
    }

    fn workload(self, crash: &Crash, made: &Made) {
        let pool = Pool::open(crash.clone(), &options()).unwrap();
        let mut session = pool.session().unwrap();
        match self.part {
            Part::Moving => self.moving(&pool, &mut session, made),
            Part::Moved => self.moved(&pool, &mut session, made),
            Part::Closing => {
                drop(session);
                pool.close().unwrap();
                crash.note(CLOSED);
                return;
            }
        }
        drop(session);
        pool.abandon();
    }

    fn begins_at(self) -> u64 {
        match self.part {
            Part::Moving => 0,
            Part::Moved => FINISHED,
            Part::Closing => REPLACED,
        }
    }

    fn verify(self, crash: Crash, made: &Made, noted: u64) -> Result<(), String> {
        let done = noted.max(self.begins_at());
        let pool = open(crash.clone(), &options())?;
        let mut session = pool.session().map_err(|e| e.to_string())?;
        let found = {
            let guard = session.raw_guard().map_err(|e| e.to_string())?;
            let seen = Seen::by(&pool, &guard)?;
            seen.check(done)?;
            // Addresses stay as long as the pool was not closed.
            if done < REPLACED && guard.resolve_to_read(made.objects[0]) != seen.objects[0] {
                return Err("an old address leads elsewhere".into());
            }
            seen
        };
        // The program continues, and closes the pool.
        let changed = session.raw_transaction(|tx| put(tx, tx.resolve(found.objects[2]) + 8, &[5]));
        changed.map_err(|e| e.to_string())?;
        // Nothing is allocated where an old address would lead to another object.
        let allocated = session.raw_transaction(|tx| {
            for _ in 0..OBJECTS {
                let new = allocate(&pool, tx, 1)?;
                if tx.resolve(new) != new {
                    return Err(Error::NotAllocated { at: new.0 });
                }
            }
            Ok(())
        });
        allocated.map_err(|e| e.to_string())?;
        drop(session);
        let findings = pool.check().map_err(|e| e.to_string())?;
        if let Some(finding) = findings.first() {
            return Err(finding.to_string());
        }
        pool.close().map_err(|e| e.to_string())?;
        let pool = Pool::open(crash, &options()).map_err(|e| e.to_string())?;
        let mut session = pool.session().map_err(|e| e.to_string())?;
        {
            let guard = session.raw_guard().map_err(|e| e.to_string())?;
            let again = Seen::by(&pool, &guard)?;
            if again.values != found.values || again.words != again.objects {
                return Err(format!("{found:?} became {again:?}"));
            }
        }
        drop(session);
        pools::check(pool)
    }

    /// Crashes everywhere.
    pub fn explore(self, missing: Missing) -> Report {
        let made = self.made();
        let explorer = Explorer::from_image(
            explore(missing, self.depth),
            &made.image,
            |crash| self.workload(crash, &made),
            |crash, state| self.verify(crash, &made, state.note(0)),
        );
        explorer.explore()
    }
}

/// The content behind the table.
#[derive(Debug)]
struct Seen {
    /// Positions in the table's first three pairs.
    words: [VirtAddr; 3],
    objects: [VirtAddr; 3],
    /// The two values of each.
    values: [[u64; 2]; 3],
    /// The fourth pair.
    last: [u64; 2],
    last_object: Option<VirtAddr>,
}

impl Seen {
    fn by(pool: &Pool<Crash>, guard: &RawGuard<'_, Crash>) -> Result<Self, String> {
        let medium = pool.medium();
        let id = pool.pair_id();
        let table = Obj::<Untyped, _>::of_root(guard.view(), "table");
        let table = table
            .map_err(|e| e.to_string())?
            .ok_or("there is no table")?
            .address()
            + 8;
        let pair = |i: u64| [0, 8].map(|word| medium.load_u64(table + i * 16 + word));
        let pairs = [0, 1, 2].map(pair);
        if pairs.iter().any(|pair| pair[0] != id) {
            return Err(format!("the table holds {pairs:?}"));
        }
        let words = pairs.map(|pair| VirtAddr(pair[1]));
        let objects = words.map(|at| guard.resolve(at));
        for at in objects {
            let own = [PAIR, PAIR + 8].map(|i| medium.load_u64(at + i));
            if own[0] != id || guard.resolve_to_read(VirtAddr(own[1])) != at + 8 {
                return Err(format!("the object at {at} refers to {own:?}"));
            }
        }
        let last = pair(3);
        let names = last[0] == id && last[1] != 0;
        Ok(Self {
            words,
            objects,
            values: objects.map(|at| [at, at + FAR].map(|at| medium.load_u64(at))),
            last,
            last_object: names.then(|| guard.resolve(VirtAddr(last[1]))),
        })
    }

    fn check(&self, done: u64) -> Result<(), String> {
        let [stored, changed, aborted] = self.values;
        // Plain stores are not atomic before they are persisted.
        let stored_is_legal = match done {
            0 => stored.iter().all(|value| [1, 2].contains(value)),
            _ => stored == [2, 2],
        };
        let changed_is_legal = match done {
            0 => changed == [1, 1],
            STORED => [[1, 1], [2, 2]].contains(&changed),
            REPLACED.. => changed == [7, 7],
            OLD_ADDRESS => [[2, 2], [7, 7]].contains(&changed),
            _ => changed == [2, 2],
        };
        let last_is_legal = match done {
            ..FINISHED => self.last == [0, 0],
            FINISHED => self.last_object.is_none_or(|at| at == self.objects[0]),
            _ => self.last_object == Some(self.objects[0]),
        };
        match stored_is_legal && changed_is_legal && aborted == [1, 1] && last_is_legal {
            true => Ok(()),
            false => Err(format!("after {done}: {self:?}")),
        }
    }
}
