//! The program's random steps, and the content that it must find.

use super::*;

/// A sequence of numbers from a seed.
#[derive(Clone)]
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % end as u64) as usize
    }

    fn len(&mut self) -> usize {
        [24, 24, 24, 30, 100, 100, 1000, 6000, 40_000][self.below(9)]
    }

    pub fn op(&mut self) -> Op {
        let place = self.below(PLACES);
        let other = (place + 1 + self.below(PLACES - 1)) % PLACES;
        match self.below(16) {
            0..=2 => Op::Change(place),
            3..=4 => Op::Push(place, self.len()),
            5 => Op::Pop(place, true),
            6 => Op::Pop(place, self.below(2) == 0),
            7 => Op::Swap(place, other),
            8..=9 => Op::Splice(place, other),
            10 => Op::Replace(place, self.len()),
            11 => Op::Hold(place),
            12 => Op::Unhold(place),
            13 => Op::Forget(place),
            14 => Op::Recall(place),
            _ => Op::Root,
        }
    }
}

/// A thread's model: the durable part and the part held by handles.
#[derive(Clone, Default)]
pub struct Model {
    pub region: Region,
    held: Option<Item>,
    weak: Option<Item>,
}

impl Model {
    /// The state after the setup.
    pub fn start(thread: usize) -> Self {
        let mut model = Self::default();
        for n in 0..PLACES * 2 {
            let item = Item {
                number: n as u64,
                stamp: n as u64,
                len: SETUP_LENS[(thread + n) % SETUP_LENS.len()],
            };
            model.region.places[n % PLACES].insert(0, item);
        }
        model
    }

    /// Replaces an operation that has nothing to do by one that has.
    pub fn sensible(&self, op: Op) -> Op {
        let chain = |place: usize| self.region.places[place].len();
        match op {
            Op::Push(place, _) | Op::Unhold(place) | Op::Recall(place)
                if chain(place) >= MAX_CHAIN =>
            {
                Op::Pop(place, true)
            }
            Op::Splice(place, _) if chain(place) == 0 => Op::Root,
            Op::Unhold(_) if self.held.is_none() => Op::Root,
            Op::Recall(_) if self.weak.is_none() => Op::Root,
            Op::Change(place)
            | Op::Pop(place, _)
            | Op::Replace(place, _)
            | Op::Hold(place)
            | Op::Forget(place)
                if chain(place) == 0 =>
            {
                Op::Push(place, 24)
            }
            op => op,
        }
    }

    /// Does a step; `recalled` says whether a weak handle's object still existed.
    pub fn apply(&mut self, op: Op, step: u64, recalled: bool) {
        let places = &mut self.region.places;
        match op {
            Op::Change(place) => {
                places[place][0].stamp = step;
                places[place][0].number = step;
            }
            Op::Push(place, len) => {
                let (number, stamp) = (step, step);
                places[place].insert(0, Item { number, stamp, len });
            }
            Op::Pop(place, _) => {
                places[place].remove(0);
            }
            Op::Swap(a, b) => places.swap(a, b),
            Op::Splice(a, b) => {
                let rest = places[a].split_off(1);
                let there = std::mem::replace(&mut places[b], rest);
                places[a].extend(there);
            }
            Op::Replace(place, len) => {
                places[place][0].stamp = step;
                places[place][0].len = len;
            }
            Op::Hold(place) => self.held = Some(places[place].remove(0)),
            Op::Unhold(place) => {
                places[place].splice(0..0, self.held.take());
            }
            Op::Forget(place) => self.weak = Some(places[place].remove(0)),
            Op::Recall(place) => {
                let weak = self.weak.take();
                places[place].splice(0..0, weak.filter(|_| recalled));
            }
            Op::Root => {
                self.region.root = match self.region.root {
                    Some(_) => None,
                    None => Some(step),
                }
            }
        }
    }
}

/// The outcomes of a run that the models cannot predict: whether the weak handles' objects still existed.
#[derive(Default)]
pub struct Log {
    pub seed: u64,
    pub recalled: [Vec<bool>; THREADS],
}

impl Log {
    pub fn begin(&mut self, seed: u64) {
        self.seed = seed;
        self.recalled = Default::default();
    }

    /// The model of a thread after this many steps.
    pub fn model(&self, thread: usize, steps: u64) -> Model {
        let mut model = Model::start(thread);
        let mut draw = thread_draw(self.seed, thread);
        for step in 1..=steps {
            let op = model.sensible(draw.op());
            let recalled = &self.recalled[thread];
            let recalled = recalled.get(step as usize).copied().unwrap_or(false);
            model.apply(op, step, recalled);
        }
        model
    }
}
