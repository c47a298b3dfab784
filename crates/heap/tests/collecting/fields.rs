//! Are references, and data that looks like them, treated correctly beside a collector, in every interleaving?
//!
//! One thread changes a few objects often, another reads them without a lock, the collector moves them.

use crate::collect_support::{KINDS, collect, options, words_of};
use firn_crash::{
    Crash, CrashOptions, CrashState, ExploreOptions, Explorer, Report, Schedule, SwarmOptions,
};
use firn_heap::collector::PageSize;
use firn_heap::{Bytes, Error, Obj, Pool, PoolKind, Ref, Refs, Session, Stored, Tx, View};
use firn_media::Runtime;

#[derive(Stored)]
#[repr(C)]
struct Node {
    next: Ref<Node>,
    other: Ref<Node>,
    number: u64,
}

type Spine = Refs<Node>;

/// Nodes that stay.
const NODES: usize = 6;
/// Places whose slots alternate between a node and data.
const SCRATCH: usize = 2;
/// Nodes on the pages with those that stay.
const ALL: usize = 6 * 40;
const STEPS: u64 = 16;

fn setup(crash: &Crash, kind: PoolKind) {
    let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let all = tx.alloc_refs::<Node>(ALL)?;
            tx.set_root("all", all)?;
            for i in 0..ALL {
                all.set(i, Some(node(tx, 0)?))?;
            }
            let spine = tx.alloc_refs::<Node>(NODES)?;
            for place in 0..NODES {
                spine.set(place, all.get(place * 40 + 20))?;
            }
            tx.set_root("spine", spine)?;
            let scratch = tx.alloc_refs::<Node>(SCRATCH)?;
            let data = tx.alloc_refs::<Bytes>(SCRATCH)?;
            for place in 0..SCRATCH {
                scratch.set(place, Some(node(tx, 0)?))?;
            }
            tx.set_root("scratch", scratch)?;
            tx.set_root("data", data)
        })
        .unwrap();
    session
        .transaction(|tx| {
            let all = tx.root::<Spine>("all")?;
            for i in (0..ALL).filter(|i| i % 40 != 20) {
                // SAFETY: the array that refers to it is freed below.
                unsafe { tx.free(all.get(i).unwrap())? };
            }
            tx.remove_root("all")?;
            // SAFETY: the root that referred to it is gone.
            unsafe { tx.free(all) }
        })
        .unwrap();
    drop(session);
    pool.close().unwrap();
}

fn node<'t>(tx: Tx<'t, Crash>, number: u64) -> Result<Obj<'t, Node, Tx<'t, Crash>>, Error> {
    let (next, other) = (Ref::NULL, Ref::NULL);
    tx.alloc(Node {
        next,
        other,
        number,
    })
}

#[derive(Clone, Copy, Debug)]
enum Op {
    /// Exchange two places.
    Swap(usize, usize),
    /// Link the first nodes of two places: the first refers to the second.
    Link(usize, usize),
    Change(usize),
    /// Turn a scratch node's slot into data that looks like two references, or back.
    Turn(usize),
}

fn op(seed: u64, step: u64) -> Op {
    let mut random = seed ^ step.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut below = |end: u64| {
        random = (random ^ random >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((random >> 20) % end) as usize
    };
    let (a, b) = (below(NODES as u64), below(NODES as u64));
    match below(5) {
        0 | 1 => Op::Swap(a, b),
        2 => Op::Link(a, b),
        3 => Op::Change(a),
        _ => Op::Turn(a % SCRATCH),
    }
}

/// Nodes, named by their first places.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Model {
    places: [usize; NODES],
    next: [Option<usize>; NODES],
    number: [u64; NODES],
    is_data: [bool; SCRATCH],
}

impl Model {
    fn after(seed: u64, steps: u64) -> Self {
        let mut model = Self {
            places: core::array::from_fn(|place| place),
            next: [None; NODES],
            number: [0; NODES],
            is_data: [false; SCRATCH],
        };
        for step in 1..=steps {
            match op(seed, step) {
                Op::Swap(a, b) => model.places.swap(a, b),
                Op::Link(a, b) => model.next[model.places[a]] = Some(model.places[b]),
                Op::Change(a) => model.number[model.places[a]] = step,
                Op::Turn(place) => model.is_data[place] ^= true,
            }
        }
        model
    }

    /// The model as a reader sees it: numbers of the places' nodes and of their targets.
    fn seen(&self) -> Seen {
        let number = |node: usize| self.number[node];
        Seen {
            nodes: self
                .places
                .map(|node| (number(node), self.next[node].map(number))),
            is_data: self.is_data,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Seen {
    nodes: [(u64, Option<u64>); NODES],
    is_data: [bool; SCRATCH],
}

fn read(session: &mut Session<Crash>, fake: &[u8]) -> Result<Seen, String> {
    let text = |e: Error| e.to_string();
    session.read(|view| {
        let spine = view.root::<Spine>("spine").map_err(text)?;
        let nodes = core::array::from_fn(|place| {
            let node = spine.get(place).unwrap();
            let next = node.follow(Node::NEXT);
            let number = node.load(Node::NUMBER);
            (number, next.map(|next| next.load(Node::NUMBER)))
        });
        let data = view.root::<Refs<Bytes>>("data").map_err(text)?;
        let scratch = view.root::<Spine>("scratch").map_err(text)?;
        let mut is_data = [false; SCRATCH];
        for (place, is_data) in is_data.iter_mut().enumerate() {
            match (data.get(place), scratch.get(place)) {
                (Some(bytes), None) => {
                    let found = bytes.to_vec().map_err(text)?;
                    if found != fake {
                        return Err(format!("data became {found:?}"));
                    }
                    *is_data = true;
                }
                (None, Some(_)) => {}
                _ => return Err(format!("scratch {place} is both or neither")),
            }
        }
        Ok(Seen { nodes, is_data })
    })
}

fn apply(session: &mut Session<Crash>, op: Op, step: u64, fake: &[u8]) -> Result<(), Error> {
    session.transaction(|tx| {
        let spine = tx.root::<Spine>("spine")?;
        let at = |place| spine.get(place).unwrap();
        match op {
            Op::Swap(a, b) => {
                let (first, second) = (at(a), at(b));
                spine.set(a, Some(second))?;
                spine.set(b, Some(first))
            }
            Op::Link(a, b) => {
                at(a).link(Node::NEXT, Some(at(b)));
                Ok(())
            }
            Op::Change(a) => {
                at(a).store(Node::NUMBER, step);
                Ok(())
            }
            Op::Turn(place) => {
                let scratch = tx.root::<Spine>("scratch")?;
                let data = tx.root::<Refs<Bytes>>("data")?;
                match scratch.get(place) {
                    Some(old) => {
                        // SAFETY: the only reference is removed.
                        unsafe { tx.free(old)? };
                        scratch.set(place, None)?;
                        data.set(place, Some(tx.alloc_bytes(fake)?))
                    }
                    None => {
                        // SAFETY: the only reference is removed.
                        unsafe { tx.free(data.get(place).unwrap())? };
                        data.set(place, None)?;
                        let new = node(tx, 0)?;
                        new.link(Node::NEXT, Some(at(0)));
                        new.link(Node::OTHER, Some(at(1)));
                        scratch.set(place, Some(new))
                    }
                }
            }
        }
    })
}

/// Data that looks like references to the places of two nodes before the cycle.
fn fake(pool: &Pool<Crash>) -> Vec<u8> {
    let words = words_of::<Node, _>(pool, "spine");
    [words[0], words[1]].map(u64::to_le_bytes).concat()
}

struct Run {
    seed: u64,
    fake: Vec<u8>,
}

fn workload(crash: &Crash, kind: PoolKind, run: &std::cell::RefCell<Run>) {
    let pool = Pool::open(crash.clone(), &options(kind)).unwrap();
    let (seed, fake) = (crash.random_u64(), fake(&pool));
    *run.borrow_mut() = Run {
        seed,
        fake: fake.clone(),
    };
    let mut jobs: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
    let (writer, notes, data) = (pool.clone(), crash.clone(), fake.clone());
    jobs.push(Box::new(move || {
        let mut session = writer.session().unwrap();
        for step in 1..=STEPS {
            apply(&mut session, op(seed, step), step, &data).unwrap();
            notes.note(step);
        }
        std::mem::forget(session);
    }));
    let reader = pool.clone();
    jobs.push(Box::new(move || {
        let mut session = reader.session().unwrap();
        for _ in 0..STEPS {
            session.read(|view| {
                let spine = view.root::<Spine>("spine").unwrap();
                for place in 0..NODES {
                    let next = spine.get(place).unwrap().follow(Node::NEXT);
                    assert!(next.is_none_or(|n| n.load(Node::NUMBER) <= STEPS));
                }
            });
        }
        std::mem::forget(session);
    }));
    let collector = pool.clone();
    jobs.push(Box::new(move || {
        let how = collect(PageSize::Small);
        if seed & 64 == 0 {
            collector.collect(&how).unwrap();
            return;
        }
        let mut collection = collector.collection(&how).unwrap();
        if collection.begin().unwrap() {
            // In some runs objects wait for their first touch.
            for n in 0..seed % 64 {
                collector.medium().pause(n as u32);
            }
            while !collection.compact(1).unwrap() {}
            collection.finish().unwrap();
        }
    }));
    crash.run(jobs, Schedule::Inherited).finished().unwrap();
    let mut session = pool.session().unwrap();
    let found = read(&mut session, &fake).unwrap();
    assert_eq!(found, Model::after(seed, STEPS).seen());
    drop(session);
    assert_eq!(pool.check().unwrap(), []);
    pool.abandon();
}

fn verify(crash: Crash, state: &CrashState, kind: PoolKind, run: &Run) -> Result<(), String> {
    let text = |e: Error| e.to_string();
    let pool = Pool::open(crash, &options(kind)).map_err(|e| e.to_string())?;
    pool.medium().end_of_recovery();
    let mut session = pool.session().map_err(text)?;
    let found = read(&mut session, &run.fake)?;
    let done = state.note(1);
    let legal = |steps| Model::after(run.seed, steps).seen() == found;
    let is_legal = legal(done) || done < STEPS && legal(done + 1);
    if !is_legal {
        return Err(format!("after {done}: {found:?}"));
    }
    pool.collect(&collect(PageSize::Small)).map_err(text)?;
    if read(&mut session, &run.fake)? != found {
        return Err(format!("after {done}, collected: not {found:?}"));
    }
    let findings = pool.check().map_err(text)?;
    drop(session);
    pool.abandon();
    findings.first().map_or(Ok(()), |f| Err(f.to_string()))
}

fn swarm(kind: PoolKind, seeds: std::ops::Range<u64>) -> Report {
    let start = Run {
        seed: 0,
        fake: Vec::new(),
    };
    let run = std::cell::RefCell::new(start);
    let explorer = Explorer::new(
        ExploreOptions {
            medium: CrashOptions::default(),
            ..ExploreOptions::default()
        },
        16 << 20,
        |crash| setup(crash, kind),
        |crash| workload(crash, kind, &run),
        |crash, state| verify(crash, state, kind, &run.borrow()),
    );
    let report = explorer.swarm(&SwarmOptions {
        seeds,
        crashes: 2,
        images: 2,
        crashes_in_recovery: 1,
    });
    println!("{kind:?}: {report}");
    report
}

#[test]
fn fields_hold_what_was_committed() {
    for kind in KINDS {
        swarm(kind, 0..1000).expect_clean();
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn fields_hold_what_was_committed_with_many_seeds() {
    for kind in KINDS {
        swarm(kind, 1000..20_000).expect_clean();
    }
}
