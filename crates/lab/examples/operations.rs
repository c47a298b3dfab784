//! Some phases on one structure and nothing else, for counting programs: the counts of `perf stat` or
//! `valgrind --tool=callgrind` for two runs differ by the cost of a phase. `docs/profile.md` has such figures.
//!
//! ```text
//! operations STRUCTURE ENTRIES PHASES PASSES
//! ```
//! STRUCTURE is avl, red_black, inline_tree or strings. PHASES are how many of these run: insert all, in
//! order; delete four of five, at random; insert these again. PASSES go over what is there then: each gets
//! every entry in random order, 100 in a guard.

use std::process::ExitCode;

use firn_heap::{Error, Handle, Obj, Pool, PoolOptions, Reading, Session, Target, Tx, View};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::Domain;
use firn_structures::{AvlTree, InlineTree, RedBlackTree, StringArray};

const USAGE: &str = "operations avl|red_black|inline_tree|strings ENTRIES PHASES PASSES";
const VALUE: [u8; 128] = [7; 128];
const GETS_AT_ONCE: usize = 100;
/// Of this many entries one stays.
const DELETED_OF: usize = 5;
const POOL_BYTES: u64 = 64 << 20;
const ROOT: &str = "operations";

type AnyError = Box<dyn std::error::Error>;

/// The parts to run.
struct Plan {
    entries: u64,
    phases: usize,
    passes: usize,
}

impl Plan {
    fn run(
        &self,
        session: &mut Session<Mapped>,
        insert: impl for<'t> Fn(Tx<'t, Mapped>, u64) -> Result<(), Error>,
        remove: impl for<'t> Fn(Tx<'t, Mapped>, u64) -> Result<(), Error>,
        get: impl for<'g> Fn(Reading<'g, Mapped>, &[u64]) -> Result<bool, Error>,
    ) -> Result<(), AnyError> {
        let all: Vec<u64> = (0..self.entries).collect();
        let mut shuffled = all.clone();
        fastrand::Rng::with_seed(7).shuffle(&mut shuffled);
        let (gone, stay) = shuffled.split_at(all.len() / DELETED_OF * (DELETED_OF - 1));
        let there = [&[], &shuffled[..], stay, &shuffled[..]][self.phases];
        for phase in 1..=self.phases {
            for &key in if phase == 1 { &all } else { gone } {
                session.transaction(|tx| match phase {
                    2 => remove(tx, key),
                    _ => insert(tx, key),
                })?;
            }
        }
        for keys in (0..self.passes).flat_map(|_| there.chunks(GETS_AT_ONCE)) {
            if !get(session.guard().view(), keys)? {
                return Err("an entry is missing".into());
            }
        }
        Ok(())
    }
}

/// The structure's root object.
fn seen<'g, T: Target, V: View<'g, Medium = Mapped>>(
    view: V,
    root: &Handle<T, Mapped>,
) -> Result<Obj<'g, T, V>, Error> {
    let gone = || Error::NoRoot { name: ROOT.into() };
    view.deref(root).ok_or_else(gone)
}

macro_rules! run {
    ($plan:expr, $structure:ident, ($($len:expr)?), $insert:ident, $remove:ident) => {{
        let mut on = MappedOptions::default();
        on.domain = Some(Domain::Adr);
        let pool = Pool::create(Mapped::anonymous(POOL_BYTES, &on)?, &PoolOptions::new(ROOT))?;
        let mut session = pool.session()?;
        let root = session.transaction(|tx| Ok::<_, Error>(pool.handle($structure::new(tx $(, $len)?)?.object())))?;
        $plan.run(
            &mut session,
            |tx, key| {
                $structure::at(seen(tx, &root)?)
                    .$insert(key, &VALUE)
                    .map(|_| ())
            },
            |tx, key| $structure::at(seen(tx, &root)?).$remove(key).map(|_| ()),
            |view, keys| {
                let (structure, mut value) = ($structure::at(seen(view, &root)?), Vec::new());
                let reader = structure.read()?;
                keys.iter().try_fold(true, |all, &key| {
                    value.clear();
                    Ok(all & reader.get_into(key, &mut value)?)
                })
            },
        )
    }};
}

fn operations(arguments: &[String]) -> Result<(), AnyError> {
    let [shape, entries, phases, passes] = arguments else {
        return Err(USAGE.into());
    };
    let plan = Plan {
        entries: entries.parse()?,
        phases: phases.parse()?,
        passes: passes.parse()?,
    };
    if plan.phases > 3 {
        return Err(format!("there are 3 phases, not {phases}; {USAGE}").into());
    }
    match shape.as_str() {
        "avl" => run!(plan, AvlTree, (), insert, remove),
        "red_black" => run!(plan, RedBlackTree, (), insert, remove),
        "inline_tree" => run!(plan, InlineTree, (), insert, remove),
        "strings" => run!(plan, StringArray, (plan.entries), set, remove),
        other => Err(format!("no structure {other}; {USAGE}").into()),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match operations(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
