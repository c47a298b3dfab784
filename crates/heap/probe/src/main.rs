//! The code that the heap's `tests/assembly.rs` inspects: reading a field, and following a reference.
#![deny(unsafe_op_in_unsafe_fn)]

use std::hint::black_box;

use firn_heap::{Error, Obj, Pool, PoolOptions, Reading, Ref, Stored, View};
use firn_mapped::{Mapped, MappedOptions};

/// A node of a list.
#[derive(Stored)]
#[repr(C)]
struct Node {
    next: Ref<Node>,
    key: u64,
}

type Seen<'g> = Obj<'g, Node, Reading<'g, Mapped>>;

/// Loads a field.
#[unsafe(no_mangle)]
#[inline(never)]
fn probe_load(node: Seen<'_>) -> u64 {
    node.load(Node::KEY)
}

/// Follows a reference and loads a field.
#[unsafe(no_mangle)]
#[inline(never)]
fn probe_follow(node: Seen<'_>) -> u64 {
    node.follow(Node::NEXT)
        .map_or(0, |next| next.load(Node::KEY))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let medium = Mapped::anonymous(16 << 20, &MappedOptions::default())?;
    let pool = Pool::create(medium, &PoolOptions::new("probe"))?;
    let mut session = pool.session()?;
    session.transaction(|tx| {
        let node = tx.alloc(Node {
            next: Ref::null(),
            key: 7,
        })?;
        node.link(Node::NEXT, Some(node));
        tx.set_root("node", node)
    })?;
    // Opaque to the optimiser, so that the functions stay as they are.
    let load = black_box(probe_load as fn(Seen<'_>) -> u64);
    let follow = black_box(probe_follow as fn(Seen<'_>) -> u64);
    let sum = session.read(|view| {
        let node = view.root::<Node>("node")?;
        Ok::<_, Error>(load(node) + follow(node))
    })?;
    println!("{sum}");
    Ok(())
}
