//! The cost of packing a structure with `pmemobj_defrag` after deleting four fifths of it.
//!
//! The caller lists every reference, and no other thread may use the pool: a program that goes on meanwhile has no way
//! to do this.

use std::path::Path;

use super::avl::Avl;
use super::string_swap::StringSwap;
use super::{Failure, Library, StructureKind, nodes, pool_bytes};
use crate::clock::Times;
use crate::libpmemobj::Pool;
use crate::phases::{Occupied, Structure, VALUE_BYTES, deleted, key, value};

/// A structure that can list its references.
pub trait Pack: Structure {
    /// Lists all references and packs their objects by one call. Returns the time, and how many objects moved.
    fn pack(&mut self) -> Result<(Times, usize), Failure>;
}

/// The cost of packing.
pub struct Packed {
    /// Time of listing the references and of the call.
    pub times: Times,
    /// Objects that moved.
    pub moved: usize,
    /// The live bytes after it.
    pub occupied: Option<Occupied>,
}

/// Puts `n` entries into a structure, deletes four fifths at random, packs the others and looks all of them up.
///
/// Errors: the structure has no list of its references; the library refused; an entry got lost.
pub fn pack(
    library: &Library,
    dir: &Path,
    kind: StructureKind,
    n: u32,
    seed: u64,
) -> Result<Packed, Failure> {
    let pool = Pool::create_in(library, dir, pool_bytes(n))?;
    let nodes = nodes(&pool);
    match kind {
        StructureKind::Avl => packed(Avl::new(nodes)?, n, seed),
        StructureKind::StringSwap => packed(StringSwap::new(nodes, n)?, n, seed),
        _ => Err(Failure::Unknown(format!(
            "'{}' does not list its references: defrag takes 'avl' and 'string_swap'",
            kind.name()
        ))),
    }
}

fn packed(mut structure: impl Pack, n: u32, seed: u64) -> Result<Packed, Failure> {
    for number in 0..n {
        let key = key(number);
        structure.insert(number, key, &value(key))?;
    }
    let mut stays = vec![true; n as usize];
    for number in deleted(n, seed) {
        structure.delete(number, key(number))?;
        stays[number as usize] = false;
    }
    let (times, moved) = structure.pack()?;
    let mut copy = [0; VALUE_BYTES];
    for (number, stays) in (0..n).zip(stays) {
        let key = key(number);
        let there = structure.get(number, key, &mut copy)?;
        if there != stays || (there && copy != value(key)) {
            return Err(Failure::Wrong {
                structure: structure.name(),
                said: format!("entry {number} is not what it was before packing"),
            });
        }
    }
    Ok(Packed {
        times,
        moved,
        occupied: structure.occupied(),
    })
}
