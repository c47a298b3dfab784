//! The pool that is collected, the program's operations on it, and the content that they allow.

use firn_crash::Crash;
use firn_format::statistics::{FIRST_CLASS, FIRST_EVENT, block_at};
use firn_heap::collector::scheme::Scheme;
use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Bytes, Error, Obj, Pool, PoolKind, PoolOptions, Refs, Session, Tx, View};
use firn_media::MediumExt;
use firn_units::WORD_BYTES;

type Spine = Refs<Bytes>;
/// The content of the spine's places.
pub type Content = [Option<Vec<u8>>; 3];

/// Objects of the pool before most are freed: two frames.
const BEFORE: usize = 120;
/// The objects that stay: two in the first frame, one of them at its beginning, and one in the second.
const KEPT: [usize; 3] = [0, 60, 100];
const LEN: usize = 30;
/// The length of an object of another class.
const LONG: usize = 60;
const WORD: usize = WORD_BYTES as usize;
/// The most threads of the program.
pub const MUTATORS: usize = 2;

/// The program's operations. Each holds the locks of its places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Change a word of the object in place; the operation's number selects the word.
    Change(usize),
    /// Put a new object in the place, and free the old one.
    Replace(usize),
    /// Put a longer object in the place, and free the old one.
    Enlarge(usize),
    /// Free it.
    Remove(usize),
    /// Unlink it without freeing: only a traced pool gets the space back.
    Unlink(usize),
    /// Exchange two places' references.
    Swap,
    /// Change, replace and remove objects, then abort.
    Abort,
    /// Read everything, which moves it.
    Read,
    /// Look at the object's length, which moves it, without its lock.
    Touch(usize),
}

/// Every operation; a note names it by its index here.
const ALL: [Op; 15] = [
    Op::Touch(0),
    Op::Touch(1),
    Op::Swap,
    Op::Abort,
    Op::Read,
    Op::Change(0),
    Op::Change(1),
    Op::Change(2),
    Op::Replace(0),
    Op::Replace(1),
    Op::Replace(2),
    Op::Remove(0),
    Op::Remove(1),
    Op::Unlink(2),
    Op::Enlarge(1),
];

impl Op {
    /// The operation's places, ascending.
    fn places(self) -> &'static [usize] {
        match self {
            Op::Change(place)
            | Op::Replace(place)
            | Op::Enlarge(place)
            | Op::Remove(place)
            | Op::Unlink(place) => &[0, 1, 2][place..=place],
            Op::Swap | Op::Abort => &[0, 2],
            Op::Read => &[0, 1, 2],
            Op::Touch(_) => &[],
        }
    }

    fn apply(self, content: &mut Content, number: u8) {
        match self {
            Op::Change(place) => {
                if let Some(bytes) = &mut content[place] {
                    let at = changed_by(number);
                    bytes[at..at + WORD].fill(number);
                }
            }
            Op::Replace(place) => content[place] = Some(vec![number; LEN]),
            Op::Enlarge(place) => content[place] = Some(vec![number; LONG]),
            Op::Remove(place) | Op::Unlink(place) => content[place] = None,
            Op::Swap => content.swap(0, 2),
            Op::Abort | Op::Read | Op::Touch(_) => {}
        }
    }
}

/// Where the operation with this number changes an object: consecutive operations change different words, so that the
/// second does not hide the fate of the first.
fn changed_by(number: u8) -> usize {
    usize::from(number % 2) * 2 * WORD
}

/// A lock for each place.
fn lock_of(place: usize) -> u64 {
    1 + place as u64
}

pub fn options(kind: PoolKind, lanes: usize) -> PoolOptions {
    PoolOptions {
        kind,
        lanes,
        publish_every: u32::MAX,
        ..PoolOptions::new("collect")
    }
}

pub fn collect(scheme: &'static Scheme) -> CollectOptions {
    CollectOptions {
        target: 1.0,
        pages: PageSize::Small,
        scheme,
        ..CollectOptions::default()
    }
}

/// The initial object at a place: all differ, so that each can be recognised.
fn start(place: usize) -> Vec<u8> {
    vec![1 + place as u8; LEN]
}

pub fn setup(crash: &Crash, options: &PoolOptions) {
    let pool = Pool::create(crash.clone(), options).unwrap();
    fill(&pool);
    pool.close().unwrap();
}

/// Collects, and makes everything anew, so that the moved objects are garbage.
pub fn collect_and_refill(crash: &Crash, options: &PoolOptions, scheme: &'static Scheme) {
    let pool = Pool::open(crash.clone(), options).unwrap();
    pool.collect(&collect(scheme)).unwrap();
    fill(&pool);
    pool.close().unwrap();
}

fn fill(pool: &Pool<Crash>) {
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let all = tx.alloc_refs::<Bytes>(BEFORE)?;
            for i in 0..BEFORE {
                let place = KEPT
                    .iter()
                    .position(|kept| *kept == i)
                    .unwrap_or(KEPT.len());
                all.set(i, Some(tx.alloc_bytes(&start(place))?))?;
            }
            tx.set_root("all", all)
        })
        .unwrap();
    session
        .transaction(|tx| {
            let all = tx.root::<Spine>("all")?;
            let spine = tx.alloc_refs::<Bytes>(KEPT.len())?;
            for i in 0..BEFORE {
                match KEPT.iter().position(|kept| *kept == i) {
                    Some(place) => spine.set(place, all.get(i))?,
                    // SAFETY: the array that refers to it is freed below.
                    None => unsafe { tx.free(all.get(i).unwrap())? },
                }
            }
            tx.set_root("spine", spine)?;
            tx.remove_root("all")?;
            // SAFETY: the root that referred to it is gone.
            unsafe { tx.free(all) }
        })
        .unwrap();
}

/// An object that no operation touches, but that moves, too. An array fills two lines.
type Bystander = Refs<Spine>;
const BYSTANDERS: &str = "bystanders";
const PLACES: usize = 14;
/// How many there were before most were freed.
const BYSTANDERS_BEFORE: usize = 48;
/// The ones that stay.
const BYSTANDERS_KEPT: [usize; 2] = [5, 40];

/// Adds bystanders: where objects move together, an operation moves all others at once, and would leave nothing to the
/// collector.
pub fn add_bystanders(crash: &Crash, options: &PoolOptions) {
    let pool = Pool::open(crash.clone(), options).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let kept = tx.alloc_refs::<Bystander>(BYSTANDERS_KEPT.len())?;
            let mut others = Vec::new();
            for i in 0..BYSTANDERS_BEFORE {
                let one = tx.alloc_refs::<Spine>(PLACES)?;
                match BYSTANDERS_KEPT.iter().position(|kept| *kept == i) {
                    Some(place) => kept.set(place, Some(one))?,
                    None => others.push(pool.handle(one)),
                }
            }
            tx.set_root(BYSTANDERS, kept)?;
            Ok::<_, Error>(others)
        })
        .and_then(|others| {
            session.transaction(|tx| {
                others.iter().try_for_each(|other| {
                    let other = tx.deref(other).unwrap();
                    // SAFETY: nothing refers to it.
                    unsafe { tx.free(other) }
                })
            })
        })
        .unwrap();
    drop(session);
    pool.close().unwrap();
}

/// Carries out an operation; returns the content if it reads.
pub fn apply(session: &mut Session<Crash>, op: Op, number: u8) -> Result<Option<Content>, Error> {
    match op {
        Op::Read => return read(session).map(Some),
        Op::Touch(place) => return touch(session, place).map(|()| None),
        _ => {}
    }
    let done = session.transaction(|tx| {
        for &place in op.places() {
            tx.lock_exclusive(lock_of(place))?;
        }
        change(tx, op, number)
    });
    match (op, done) {
        (Op::Abort, Err(Error::ReadOnly)) => Ok(None),
        (_, done) => done.map(|()| None),
    }
}

fn change(tx: Tx<'_, Crash>, op: Op, number: u8) -> Result<(), Error> {
    let spine = tx.root::<Spine>("spine")?;
    match op {
        Op::Change(place) => match spine.get(place) {
            Some(bytes) => bytes.overwrite(changed_by(number), &[number; WORD]),
            None => Ok(()),
        },
        Op::Replace(place) => replace(tx, spine, place, &[number; LEN]),
        Op::Enlarge(place) => replace(tx, spine, place, &[number; LONG]),
        Op::Remove(place) => {
            if let Some(old) = spine.get(place) {
                // SAFETY: the only reference is removed.
                unsafe { tx.free(old)? };
            }
            spine.set(place, None)
        }
        Op::Unlink(place) => spine.set(place, None),
        Op::Swap => {
            let (first, last) = (spine.get(0), spine.get(2));
            spine.set(0, last)?;
            spine.set(2, first)
        }
        Op::Abort => {
            if let Some(bytes) = spine.get(2) {
                bytes.overwrite(changed_by(number), &[number; WORD])?;
            }
            replace(tx, spine, 0, &[number; LEN])?;
            Err(Error::ReadOnly)
        }
        Op::Read | Op::Touch(_) => Ok(()),
    }
}

fn replace<'t>(
    tx: Tx<'t, Crash>,
    spine: Obj<'t, Spine, Tx<'t, Crash>>,
    place: usize,
    bytes: &[u8],
) -> Result<(), Error> {
    let new = tx.alloc_bytes(bytes)?;
    if let Some(old) = spine.get(place) {
        // SAFETY: the only reference is replaced.
        unsafe { tx.free(old)? };
    }
    spine.set(place, Some(new))
}

pub fn read(session: &mut Session<Crash>) -> Result<Content, Error> {
    session.read(|view| {
        let places = 0..KEPT.len();
        let locks = places.map(|place| view.lock_shared(lock_of(place)));
        let _locks = locks.collect::<Result<Vec<_>, _>>()?;
        let spine = view.root::<Spine>("spine")?;
        let mut content = Content::default();
        for (i, place) in content.iter_mut().enumerate() {
            *place = spine.get(i).map(|b| b.to_vec()).transpose()?;
        }
        Ok(content)
    })
}

fn touch(session: &mut Session<Crash>, place: usize) -> Result<(), Error> {
    session.read(|view| {
        let spine = view.root::<Spine>("spine")?;
        if let Some(bytes) = spine.get(place) {
            assert_eq!(bytes.len(), LEN);
        }
        Ok(())
    })
}

pub fn check(pool: &Pool<Crash>) -> Result<(), String> {
    let findings = pool.check().map_err(|e| e.to_string())?;
    findings
        .first()
        .map_or(Ok(()), |finding| Err(finding.to_string()))
}

/// Clears the counts of events from before the crash on the statistics page. They decide nothing, but further
/// collections add to them, and images would differ by them.
fn forget_events(crash: &Crash) {
    let words = (FIRST_CLASS - FIRST_EVENT) as u64;
    crash.zero(
        block_at(0) + FIRST_EVENT as u64 * WORD_BYTES,
        words * WORD_BYTES,
    );
}

/// Opens a crashed pool: nothing acknowledged is lost, and the pool can be used and collected further.
pub fn verify(
    crash: Crash,
    options: &PoolOptions,
    scheme: &'static Scheme,
    past: &Past,
) -> Result<(), String> {
    let pool = Pool::open(crash, options).map_err(|e| e.to_string())?;
    pool.medium().end_of_recovery();
    forget_events(pool.medium());
    check(&pool).map_err(|e| format!("after opening: {e}"))?;
    let mut session = pool.session().map_err(|e| e.to_string())?;
    let found = read(&mut session).map_err(|e| e.to_string())?;
    past.allows(&found)?;
    check(&pool).map_err(|e| format!("after reading: {e}"))?;
    // The cycle resumes where it stopped, beside further changes.
    let mut expected = found;
    for op in [Op::Change(0), Op::Replace(2)] {
        apply(&mut session, op, 77).map_err(|e| e.to_string())?;
        op.apply(&mut expected, 77);
    }
    pool.collect(&collect(scheme)).map_err(|e| e.to_string())?;
    check(&pool).map_err(|e| format!("after collecting: {e}"))?;
    let found = read(&mut session).map_err(|e| e.to_string())?;
    let leaked = leaked(&pool, &mut session, &found).map_err(|e| e.to_string())?;
    drop(session);
    pool.abandon();
    if found != expected {
        return Err(format!("after collecting: found {found:?}"));
    }
    match leaked {
        0 => Ok(()),
        leaked => Err(format!("after collecting: {leaked} objects leaked")),
    }
}

/// Objects of an explicit pool that are allocated but in no place. A traced pool has reclaimed such objects.
fn leaked(
    pool: &Pool<Crash>,
    session: &mut Session<Crash>,
    content: &Content,
) -> Result<usize, Error> {
    if pool.kind() == PoolKind::Traced {
        return Ok(0);
    }
    let objects = session.read(|view| Ok::<_, Error>(view.objects::<Bytes>()?.len()))?;
    Ok(objects - content.iter().flatten().count())
}

/// An operation that was begun, and how many of the other thread's operations had returned by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Begun {
    op: Op,
    after: usize,
}

/// The operations of one thread.
#[derive(Clone, Debug, Default)]
struct History {
    begun: Vec<Begun>,
    /// How many of these have returned: all except perhaps the last.
    done: usize,
}

/// Bits of a note for one operation: its index, from one on, and the count of the other thread.
const OP_BITS: u32 = 6;
const AFTER_BITS: u32 = 2;

impl History {
    /// All of it as a note, for the oracle.
    fn note(&self) -> u64 {
        let unfinished = (self.begun.len() - self.done) as u64;
        self.begun.iter().fold(0, |note, begun| {
            let number = ALL.iter().position(|op| *op == begun.op).unwrap() as u64 + 1;
            note << OP_BITS | number << AFTER_BITS | begun.after as u64
        }) << 1
            | unfinished
    }

    fn of_note(note: u64) -> Self {
        let mut begun = Vec::new();
        let mut rest = note >> 1;
        while rest != 0 {
            let number = (rest & ((1 << OP_BITS) - 1)) >> AFTER_BITS;
            begun.push(Begun {
                op: ALL[number as usize - 1],
                after: (rest & ((1 << AFTER_BITS) - 1)) as usize,
            });
            rest >>= OP_BITS;
        }
        begun.reverse();
        let done = begun.len() - (note & 1) as usize;
        Self { begun, done }
    }
}

/// The operations of all threads.
#[derive(Clone, Debug, Default)]
pub struct Past([History; MUTATORS]);

impl Past {
    /// Reads the threads' notes.
    pub fn of_notes(notes: [u64; MUTATORS]) -> Self {
        Self(notes.map(History::of_note))
    }

    /// Notes that a thread begins an operation. Returns the note and the operation's number.
    pub fn begin(&mut self, thread: usize, op: Op) -> (u64, u8) {
        let after = self.0[1 - thread].done;
        let own = &mut self.0[thread];
        own.begun.push(Begun { op, after });
        (own.note(), number(thread, own.begun.len() - 1))
    }

    /// Notes that the operation returned.
    pub fn end(&mut self, thread: usize) -> u64 {
        let own = &mut self.0[thread];
        own.done += 1;
        own.note()
    }

    /// Returned operations must have taken effect; operations begun since may have.
    pub fn since(&self, before: &Self) -> Self {
        let mut past = self.clone();
        for (own, before) in past.0.iter_mut().zip(&before.0) {
            own.done = before.done;
        }
        past
    }

    /// Whether the spine may hold this: a returned operation has taken effect, another one wholly or not at all.
    pub fn allows(&self, found: &Content) -> Result<(), String> {
        let content: Content = core::array::from_fn(|place| Some(start(place)));
        match self.reaches(found, content, [0; MUTATORS]) {
            true => Ok(()),
            false => Err(format!("after {:?}: found {found:?}", self.0)),
        }
    }

    /// Whether some order of the operations leads to `found` from here.
    fn reaches(&self, found: &Content, content: Content, applied: [usize; MUTATORS]) -> bool {
        let all_there = (0..MUTATORS).all(|thread| applied[thread] >= self.0[thread].done);
        if all_there && content == *found {
            return true;
        }
        (0..MUTATORS).any(|thread| {
            let next = self.0[thread].begun.get(applied[thread]);
            next.is_some_and(|next| {
                let mut applied = applied;
                let mut content = content.clone();
                next.op.apply(&mut content, number(thread, applied[thread]));
                applied[thread] += 1;
                applied[1 - thread] >= next.after && self.reaches(found, content, applied)
            })
        })
    }
}

/// The number that an operation writes.
fn number(thread: usize, nth: usize) -> u8 {
    (11 * (thread + 1) + nth) as u8
}
