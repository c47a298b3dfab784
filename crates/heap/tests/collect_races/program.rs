//! The program beside the collector: its threads' steps, and the content that must be there afterwards.
//!
//! Each thread has places of its own, with a chain of nodes in each, and draws its steps from a seed, so a model can be
//! computed for any number of steps. Each thread also stores its number of steps in a field of one shared object,
//! without a lock.

#[path = "model.rs"]
mod model;

pub use model::{Draw, Log, Model};

use std::sync::{Arc, Mutex};

use firn_heap::{Bytes, Error, Handle, Obj, Pool, PoolKind, Ref, Refs, Session, Stored, Tx, View};
use firn_media::Medium;

#[derive(Stored)]
#[repr(C)]
pub struct Node {
    next: Ref<Node>,
    data: Ref<Bytes>,
    number: u64,
}

/// One word per thread: the steps that it has done.
#[derive(Stored)]
#[repr(C)]
pub struct Done {
    first: u64,
    second: u64,
}

pub type Spine = Refs<Node>;
type InTx<'t, M> = Obj<'t, Node, Tx<'t, M>>;

pub const THREADS: usize = 2;
/// Places of a thread.
pub const PLACES: usize = 4;
/// Longest chain.
const MAX_CHAIN: usize = 4;

/// A node and its data, as the model has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    number: u64,
    stamp: u64,
    len: usize,
}

/// The content of a thread's places and of its own root.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Region {
    places: [Vec<Item>; PLACES],
    root: Option<u64>,
}

/// One step, in one transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Change the data of the first node in place, at both of its ends, and the node's number.
    Change(usize),
    /// Put a new node before the others: the only reference to them moves into a new object.
    Push(usize, usize),
    /// Drop the first node; free it, or leave it to the collector.
    Pop(usize, bool),
    /// Exchange the chains of two places.
    Swap(usize, usize),
    /// Exchange the nodes behind the first nodes of two places.
    Splice(usize, usize),
    /// Other data for the first node.
    Replace(usize, usize),
    /// Take the first node out, and keep a strong handle to it.
    Hold(usize),
    /// Put it back.
    Unhold(usize),
    /// Take the first node out, and keep a weak handle to it.
    Forget(usize),
    /// Put it back if it still exists.
    Recall(usize),
    /// Make a root, or remove it.
    Root,
}

fn thread_draw(seed: u64, thread: usize) -> Draw {
    Draw::new(seed ^ (thread as u64 + 1) << 40)
}

/// A thread of the program.
pub struct Program<'p, M: Medium> {
    pool: &'p Pool<M>,
    pub session: Session<M>,
    thread: usize,
    draw: Draw,
    pub model: Model,
    step: u64,
    log: Arc<Mutex<Log>>,
    held: Option<Handle<Node, M>>,
    weak: Option<Handle<Node, M>>,
}

impl<'p, M: Medium> Program<'p, M> {
    pub fn new(pool: &'p Pool<M>, thread: usize, log: &Arc<Mutex<Log>>) -> Self {
        let seed = log.lock().unwrap().seed;
        Self {
            pool,
            session: pool.session().unwrap(),
            thread,
            draw: thread_draw(seed, thread),
            model: Model::start(thread),
            step: 0,
            log: Arc::clone(log),
            held: None,
            weak: None,
        }
    }

    /// Does another step, sometimes after one that is aborted.
    pub fn step(&mut self) -> u64 {
        self.step += 1;
        let step = self.step;
        if step % 5 == 3 {
            self.abort();
        }
        let op = self.model.sensible(self.draw.op());
        let recalled = self.run(op, step).unwrap();
        {
            let log = &mut self.log.lock().unwrap().recalled[self.thread];
            log.resize(step as usize + 1, false);
            log[step as usize] = recalled;
        }
        self.model.apply(op, step, recalled);
        step
    }

    /// Makes changes and rolls them back.
    fn abort(&mut self) {
        let thread = self.thread;
        let gone = self.session.transaction(|tx| {
            for place in 0..PLACES {
                let spine = tx.root::<Spine>("spine")?;
                let at = place_of(thread, place);
                if let Some(node) = spine.get(at) {
                    change(node, u64::MAX)?;
                    drop_node(node)?;
                }
                let node = new_node(tx, u64::MAX, 100)?;
                spine.set(at, Some(node))?;
            }
            Err::<(), _>(Error::ReadOnly)
        });
        assert!(matches!(gone, Err(Error::ReadOnly)), "{gone:?}");
    }

    fn run(&mut self, op: Op, step: u64) -> Result<bool, Error> {
        let (pool, thread) = (self.pool, self.thread);
        let op = match op {
            Op::Pop(place, _) if pool.kind() == PoolKind::Explicit => Op::Pop(place, true),
            op => op,
        };
        let (held, weak) = (&self.held, &self.weak);
        let mut kept = None;
        let recalled = self.session.transaction(|tx| {
            let places = Places::of(tx, thread)?;
            let mut recalled = false;
            kept = None;
            match op {
                Op::Hold(place) => kept = Some(pool.handle(places.take(place)?)),
                Op::Forget(place) => kept = Some(pool.weak_handle(places.take(place)?)),
                Op::Unhold(place) => {
                    let node = held.as_ref().and_then(|held| tx.deref(held));
                    places.put(place, node.unwrap())?;
                }
                Op::Recall(place) => {
                    if let Some(node) = weak.as_ref().and_then(|weak| tx.deref(weak)) {
                        recalled = true;
                        places.put(place, node)?;
                    }
                }
                op => places.act(op, step)?,
            }
            let done = tx.root::<Done>("done")?;
            done.store([Done::FIRST, Done::SECOND][thread], step);
            Ok::<_, Error>(recalled)
        })?;
        match op {
            Op::Hold(_) => self.held = kept,
            Op::Forget(_) => self.weak = kept,
            Op::Unhold(_) => self.held = None,
            Op::Recall(_) => self.weak = None,
            _ => {}
        }
        Ok(recalled)
    }

    /// Reads and checks everything that belongs to the thread.
    pub fn verify(&mut self) {
        let found = read(&mut self.session, self.thread).unwrap();
        assert_eq!(found, self.model.region, "after step {}", self.step);
    }
}

/// A thread's places, in a transaction.
struct Places<'t, M: Medium> {
    tx: Tx<'t, M>,
    spine: Obj<'t, Spine, Tx<'t, M>>,
    thread: usize,
}

impl<M: Medium> Clone for Places<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M: Medium> Copy for Places<'_, M> {}

impl<'t, M: Medium> Places<'t, M> {
    fn of(tx: Tx<'t, M>, thread: usize) -> Result<Self, Error> {
        let spine = tx.root::<Spine>("spine")?;
        Ok(Self { tx, spine, thread })
    }

    fn top(self, place: usize) -> Option<InTx<'t, M>> {
        self.spine.get(place_of(self.thread, place))
    }

    fn set(self, place: usize, to: Option<InTx<'t, M>>) -> Result<(), Error> {
        self.spine.set(place_of(self.thread, place), to)
    }

    fn take(self, place: usize) -> Result<InTx<'t, M>, Error> {
        let node = self.top(place).unwrap();
        self.set(place, node.follow(Node::NEXT))?;
        node.link(Node::NEXT, None);
        Ok(node)
    }

    fn put(self, place: usize, node: InTx<'t, M>) -> Result<(), Error> {
        node.link(Node::NEXT, self.top(place));
        self.set(place, Some(node))
    }

    fn act(self, op: Op, step: u64) -> Result<(), Error> {
        let tx = self.tx;
        match op {
            Op::Change(place) => change(self.top(place).unwrap(), step),
            Op::Push(place, len) => self.put(place, new_node(tx, step, len)?),
            Op::Pop(place, free) => {
                let node = self.take(place)?;
                if free { drop_node(node) } else { Ok(()) }
            }
            Op::Swap(a, b) => {
                let (first, second) = (self.top(a), self.top(b));
                self.set(a, second)?;
                self.set(b, first)
            }
            Op::Splice(a, b) => {
                let node = self.top(a).unwrap();
                let (rest, there) = (node.follow(Node::NEXT), self.top(b));
                node.link(Node::NEXT, there);
                self.set(b, rest)
            }
            Op::Replace(place, len) => replace(self.top(place).unwrap(), step, len),
            _ => self.toggle_root(step),
        }
    }

    fn toggle_root(self, step: u64) -> Result<(), Error> {
        let (tx, name) = (self.tx, root_name(self.thread));
        match tx.find_root::<Bytes>(name)? {
            Some(old) => {
                tx.remove_root(name)?;
                // SAFETY: the root was the only reference.
                unsafe { tx.free(old) }
            }
            None => tx.set_root(name, data(tx, 1, step, 24)?),
        }
    }
}

/// Replaces a node's data in a nested transaction, after one that fails.
fn replace<M: Medium>(node: InTx<'_, M>, step: u64, len: usize) -> Result<(), Error> {
    let tx = node.view();
    let failed = tx.nested(|tx| {
        node.link(Node::DATA, Some(data(tx, 1, 1, 30)?));
        Err::<(), _>(Error::ReadOnly)
    });
    assert!(failed.is_err());
    tx.nested(|tx| {
        let old = node.follow(Node::DATA).unwrap();
        let number = node.load(Node::NUMBER);
        node.link(Node::DATA, Some(data(tx, number, step, len)?));
        // SAFETY: the only reference is replaced.
        unsafe { tx.free(old) }
    })
}

const fn place_of(thread: usize, place: usize) -> usize {
    thread * PLACES + place
}

fn root_name(thread: usize) -> &'static str {
    ["first", "second"][thread]
}

fn data<'t, M: Medium>(
    tx: Tx<'t, M>,
    number: u64,
    stamp: u64,
    len: usize,
) -> Result<Obj<'t, Bytes, Tx<'t, M>>, Error> {
    let mut bytes = vec![number as u8; len];
    bytes[..8].copy_from_slice(&stamp.to_le_bytes());
    bytes[len - 8..].copy_from_slice(&stamp.to_le_bytes());
    tx.alloc_bytes(&bytes)
}

fn new_node<'t, M: Medium>(tx: Tx<'t, M>, number: u64, len: usize) -> Result<InTx<'t, M>, Error> {
    let node = tx.alloc(Node {
        next: Ref::NULL,
        data: Ref::NULL,
        number,
    })?;
    node.link(Node::DATA, Some(data(tx, number, number, len)?));
    Ok(node)
}

fn change<M: Medium>(node: InTx<'_, M>, step: u64) -> Result<(), Error> {
    node.store(Node::NUMBER, step);
    let data = node.follow(Node::DATA).unwrap();
    data.overwrite(0, &step.to_le_bytes())?;
    data.overwrite(data.len() - 8, &step.to_le_bytes())
}

fn drop_node<M: Medium>(node: InTx<'_, M>) -> Result<(), Error> {
    let (tx, data) = (node.view(), node.follow(Node::DATA).unwrap());
    // SAFETY: the only reference to the node was removed, and the one to its data goes with it.
    unsafe {
        tx.free(data)?;
        tx.free(node)
    }
}

/// The content of a thread's region.
pub fn read<M: Medium>(session: &mut Session<M>, thread: usize) -> Result<Region, Error> {
    session.read(|view| {
        let spine = view.root::<Spine>("spine")?;
        let mut region = Region::default();
        for (place, chain) in region.places.iter_mut().enumerate() {
            let mut next = spine.get(place_of(thread, place));
            while let Some(node) = next.filter(|_| chain.len() <= MAX_CHAIN * 2) {
                let bytes = node.follow(Node::DATA).ok_or(Error::ReadOnly)?.to_vec()?;
                let stamp = stamp_of(&bytes);
                let number = node.load(Node::NUMBER);
                chain.push(Item {
                    number,
                    stamp: stamp.unwrap_or(u64::MAX),
                    len: bytes.len(),
                });
                next = node.follow(Node::NEXT);
            }
        }
        if let Some(bytes) = view.find_root::<Bytes>(root_name(thread))? {
            region.root = Some(stamp_of(&bytes.to_vec()?).unwrap_or(u64::MAX));
        }
        Ok(region)
    })
}

/// The stamp, if it is equal at both ends and the rest is uniform.
fn stamp_of(bytes: &[u8]) -> Option<u64> {
    let end = bytes.len().checked_sub(8)?;
    let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let same = bytes.get(8..end)?.windows(2).all(|pair| pair[0] == pair[1]);
    (same && word(0)? == word(end)?).then(|| word(0))?
}

/// The threads' numbers of steps.
pub fn steps_done<M: Medium>(session: &mut Session<M>) -> Result<[u64; THREADS], Error> {
    session.read(|view| {
        let done = view.root::<Done>("done")?;
        Ok([done.load(Done::FIRST), done.load(Done::SECOND)])
    })
}

const SETUP_LENS: [usize; 7] = [24, 100, 30, 1000, 24, 6000, 40_000];

/// Makes the threads' regions, between objects most of which are freed at the end, so that pages of many classes are
/// sparse.
pub fn setup<M: Medium>(pool: &Pool<M>, fillers: usize) {
    let mut session = pool.session().unwrap();
    let make = |tx: Tx<'_, M>| {
        let spine = tx.alloc_refs::<Node>(THREADS * PLACES)?;
        tx.set_root("spine", spine)?;
        let (first, second) = (0, 0);
        tx.set_root("done", tx.alloc(Done { first, second })?)?;
        tx.set_root("fillers", tx.alloc_refs::<Node>(PLACES * 2 * fillers)?)
    };
    session.transaction(make).unwrap();
    for n in 0..PLACES * 2 {
        let fill = |tx: Tx<'_, M>| {
            let all = tx.root::<Spine>("fillers")?;
            for i in 0..fillers {
                let lens = [24, 30, 100, 24, 30, 100, 24, 1000];
                let len = if i % 64 == 63 { 6000 } else { lens[i % 8] };
                all.set(n * fillers + i, Some(new_node(tx, 1, len)?))?;
            }
            let spine = tx.root::<Spine>("spine")?;
            for thread in 0..THREADS {
                let place = place_of(thread, n % PLACES);
                let len = SETUP_LENS[(thread + n) % SETUP_LENS.len()];
                let node = new_node(tx, n as u64, len)?;
                node.link(Node::NEXT, spine.get(place));
                spine.set(place, Some(node))?;
            }
            Ok::<_, Error>(())
        };
        session.transaction(fill).unwrap();
    }
    let free = |tx: Tx<'_, M>| {
        let all = tx.root::<Spine>("fillers")?;
        let traced = pool.kind() == PoolKind::Traced;
        for i in (0..all.len()).filter(|i| !traced || i % 16 != 0) {
            drop_node(all.get(i).unwrap())?;
        }
        tx.remove_root("fillers")?;
        if traced {
            return Ok(());
        }
        // SAFETY: the root that referred to it is gone.
        unsafe { tx.free(all) }
    };
    session.transaction(free).unwrap();
}
