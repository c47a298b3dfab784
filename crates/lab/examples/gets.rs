//! The cost of a get's checks: gets of a structure, in turns with a loop over the same memory that takes the same path
//! and copies the same bytes, but checks nothing. `docs/profile.md` has its figures.
//!
//! ```text
//! gets avl|red_black|strings ENTRIES PASSES [get|bare]
//! ```
//! A pass gets every entry in random order, 100 in a guard. Prints the medians of the passes, in CPU time, and
//! the median of the ratios of a pass to the one that follows it. With `get` or `bare` only these run, for
//! counting programs.
#![allow(unsafe_code)]

use std::hint::{black_box, select_unpredictable};
use std::process::ExitCode;

use firn_format::reference::RefWord;
use firn_heap::{Error, Handle, Obj, Pool, PoolOptions, Session, Target, View};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::Domain;
use firn_structures::{AvlTree, RedBlackTree, StringArray};
use rustix::time::{ClockId, clock_gettime};

const USAGE: &str = "gets avl|red_black|strings ENTRIES PASSES [get|bare]";
const VALUE: [u8; 128] = [7; 128];
const GETS_AT_ONCE: usize = 100;
const POOL_BYTES: u64 = 64 << 20;

type AnyError = Box<dyn std::error::Error>;

/// CPU time of this thread, in nanoseconds.
fn cpu() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The pool's memory, read directly.
struct Bare(*const u8);

impl Bare {
    /// A word of an object; word 0 is its header.
    fn word(&self, object: u64, word: u64) -> u64 {
        // SAFETY: every caller passes a word of a live object, found by references of a pool that no thread changes.
        unsafe {
            self.0
                .add((object + 8 * word) as usize)
                .cast::<u64>()
                .read()
        }
    }

    fn follow(&self, object: u64, word: u64) -> u64 {
        RefWord(self.word(object, word)).address().0
    }

    /// Copies a value, which follows its header and its length.
    fn copy(&self, value: u64, into: &mut [u8; VALUE.len()]) {
        // SAFETY: every value has this many bytes, and no thread changes the pool.
        unsafe {
            let from = self.0.add(value as usize + 16);
            from.copy_to_nonoverlapping(into.as_mut_ptr(), into.len());
        }
    }

    /// The root of a tree refers to its top in word 3; a node has key, left, right and value in words 1 to 4.
    fn in_tree(&self, root: u64, key: u64, into: &mut [u8; VALUE.len()]) {
        let mut node = self.follow(root, 3);
        loop {
            let here = self.word(node, 1);
            if here == key {
                break;
            }
            let links = (self.word(node, 3), self.word(node, 2));
            node = RefWord(select_unpredictable(key > here, links.0, links.1))
                .address()
                .0;
        }
        self.copy(self.follow(node, 4), into);
    }

    /// The root refers to the array in word 3; a string's reference follows header and length.
    fn in_array(&self, root: u64, index: u64, into: &mut [u8; VALUE.len()]) {
        let strings = self.follow(root, 3);
        self.copy(self.follow(strings, 2 + index), into);
    }
}

/// The structure's root object.
fn seen<'g, T: Target, V: View<'g, Medium = Mapped>>(
    view: V,
    root: &Handle<T, Mapped>,
) -> Result<Obj<'g, T, V>, Error> {
    let gone = || Error::NoRoot {
        name: "gets".into(),
    };
    view.deref(root).ok_or_else(gone)
}

/// The parts to run.
struct Plan {
    keys: Vec<u64>,
    passes: usize,
    only: Option<String>,
}

impl Plan {
    fn runs(&self, which: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == which)
    }

    fn run(
        &self,
        mut pass: impl FnMut() -> Result<(), Error>,
        bare: impl Fn(u64, &mut [u8; VALUE.len()]),
    ) -> Result<(), AnyError> {
        let (mut gets, mut bares, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        let each = self.keys.len() as f64;
        for _ in 0..self.passes {
            let began = cpu();
            if self.runs("get") {
                pass()?;
            }
            let between = cpu();
            if self.runs("bare") {
                let mut into = [0; VALUE.len()];
                for &key in &self.keys {
                    bare(key, &mut into);
                    black_box(&into);
                }
            }
            let ended = cpu();
            gets.push((between - began) / each);
            bares.push((ended - between) / each);
            ratios.push((between - began) / (ended - between));
        }
        if self.only.is_none() {
            let [get, bare, ratio] = [gets, bares, ratios].map(median);
            println!("get {get:.0} ns, bare {bare:.0} ns, ratio {ratio:.2}");
        }
        Ok(())
    }
}

macro_rules! run {
    ($plan:expr, $structure:ident, ($($len:expr)?), $insert:ident, $bare:ident) => {{
        let mut on = MappedOptions::default();
        on.domain = Some(Domain::Adr);
        let pool = Pool::create(Mapped::anonymous(POOL_BYTES, &on)?, &PoolOptions::new("gets"))?;
        let mut session: Session<Mapped> = pool.session()?;
        let root = session.transaction(|tx| Ok::<_, Error>(pool.handle($structure::new(tx $(, $len)?)?.object())))?;
        for key in 0..$plan.keys.len() as u64 {
            session.transaction(|tx| $structure::at(seen(tx, &root)?).$insert(key, &VALUE).map(|_| ()))?;
        }
        let memory = Bare(pool.medium().base_address() as *const u8);
        let at = seen(session.guard().view(), &root)?.address().0;
        let pass = || {
            let mut value = Vec::new();
            for keys in $plan.keys.chunks(GETS_AT_ONCE) {
                let guard = session.guard();
                let structure = $structure::at(seen(guard.view(), &root)?);
                let reader = structure.read()?;
                for &key in keys {
                    value.clear();
                    black_box(reader.get_into(key, &mut value)?);
                    black_box(&value);
                }
            }
            Ok(())
        };
        $plan.run(pass, |key, into| memory.$bare(at, key, into))
    }};
}

fn gets(arguments: &[String]) -> Result<(), AnyError> {
    let [shape, entries, passes, only @ ..] = arguments else {
        return Err(USAGE.into());
    };
    let mut keys: Vec<u64> = (0..entries.parse()?).collect();
    fastrand::Rng::with_seed(7).shuffle(&mut keys);
    let plan = Plan {
        passes: passes.parse()?,
        only: only.first().cloned(),
        keys,
    };
    match shape.as_str() {
        "avl" => run!(plan, AvlTree, (), insert, in_tree),
        "red_black" => run!(plan, RedBlackTree, (), insert, in_tree),
        "strings" => run!(plan, StringArray, (plan.keys.len() as u64), set, in_array),
        other => Err(format!("no structure {other}; {USAGE}").into()),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match gets(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
