//! Objects of types that are described while the program runs: is everything checked that a compiler would have
//! checked?

use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{
    Bytes, Error, FieldDescriptor, FieldKind, Layout, Obj, Pool, PoolOptions, Session, Tx,
    TypeDescriptor, Untyped, View,
};
use firn_mapped::{Mapped, MappedOptions};

const fn field(name: &'static str, kind: FieldKind, offset: u32, count: u32) -> FieldDescriptor {
    FieldDescriptor::new(name, kind, [offset, 8, count])
}

/// Two references, a number, a reference, eight bytes.
static NODE: TypeDescriptor = TypeDescriptor {
    name: "node",
    version: 1,
    size: 40,
    fields: &[
        field("pair", FieldKind::Reference, 0, 2),
        field("next", FieldKind::Reference, 24, 1),
    ],
    with: &[],
};

fn described(
    name: &'static str,
    size: u32,
    fields: Vec<FieldDescriptor>,
) -> &'static TypeDescriptor {
    Box::leak(Box::new(TypeDescriptor {
        name,
        version: 1,
        size,
        fields: fields.leak(),
        with: &[],
    }))
}

fn made() -> (Pool<Mapped>, Layout) {
    let medium = Mapped::anonymous(0, &MappedOptions::default()).unwrap();
    let pool = Pool::create(medium, &PoolOptions::new("untyped")).unwrap();
    let layout = pool.register_described(&NODE).unwrap();
    (pool, layout)
}

fn transaction(
    session: &mut Session<Mapped>,
    mut body: impl for<'t> FnMut(Tx<'t, Mapped>) -> Result<(), Error>,
) {
    session.transaction(&mut body).unwrap();
}

#[test]
fn a_type_that_contradicts_itself_is_refused() {
    let (pool, layout) = made();
    assert_eq!(layout.size(), 40);
    assert_eq!(pool.register_described(&NODE).unwrap().id(), layout.id());
    let reference = |name, offset, count| vec![field(name, FieldKind::Reference, offset, count)];
    let refused = [
        (described("", 8, vec![]), "its name must have"),
        (
            described("short", 16, reference("behind", 8, 2)),
            "ends at byte 24, behind the 16",
        ),
        (
            described("odd", 16, reference("at four", 4, 1)),
            "is no reference",
        ),
        (
            described("unnamed", 16, reference("", 0, 1)),
            "the name of a field",
        ),
        (
            described("node", 48, vec![]),
            "40 bytes stored, 48 in the program",
        ),
    ];
    for (descriptor, told) in refused {
        let error = pool.register_described(descriptor).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
    assert!(pool.layout(firn_heap::TypeId(4000)).is_none());
}

#[test]
fn references_are_checked_wherever_they_are_stored() {
    let (pool, layout) = made();
    let (other, other_layout) = made();
    let mut session = pool.session().unwrap();
    let mut elsewhere = other.session().unwrap();
    let mut foreign = 0;
    transaction(&mut elsewhere, |tx| {
        foreign = tx.alloc_untyped(&other_layout, &[], 40)?.reference_word();
        Ok(())
    });
    transaction(&mut session, |tx| {
        let first = tx.alloc_untyped(&layout, &[], 40)?;
        let mut front = [0u64; 5];
        (front[0], front[2], front[4]) = (first.reference_word(), 77, 99);
        let second = tx.alloc_untyped(&layout, bytemuck::cast_slice(&front), 40)?;
        assert_eq!(second.type_id(), layout.id());
        let followed = Obj::<Untyped, _>::followed_from(tx, second.address() + 8).unwrap();
        assert_eq!(followed, first);
        for (wrong, word) in [
            ("another pool's", foreign),
            ("nothing's", first.reference_word() + 16),
        ] {
            let refused = second.store_bytes(&layout, 24, &word.to_ne_bytes());
            assert!(
                matches!(refused, Err(Error::NotAllocated { .. })),
                "{wrong}: {refused:?}"
            );
            front[1] = word;
            let refused = tx.alloc_untyped(&layout, bytemuck::cast_slice(&front), 40);
            assert!(
                matches!(refused, Err(Error::NotAllocated { .. })),
                "{wrong}"
            );
            let refused = Obj::<Untyped, _>::of_word(tx, word);
            assert!(
                matches!(refused, Err(Error::NotAllocated { .. })),
                "{wrong}"
            );
        }
        assert_eq!(Obj::<Untyped, _>::of_word(tx, 0)?, None);
        // A part of a reference is not one, nor is a word that only looks like one.
        for (offset, len) in [(20, 8), (28, 4), (4, 40 - 4), (12, 4)] {
            let refused = second.store_bytes(&layout, offset, &vec![0; len]);
            assert!(
                matches!(refused, Err(Error::BadRange { .. })),
                "{offset}+{len}: {refused:?}"
            );
        }
        assert!(matches!(
            second.link_at(&layout, 16, None),
            Err(Error::BadRange { .. })
        ));
        assert!(matches!(
            second.link_at(&layout, u64::MAX - 3, None),
            Err(Error::BadRange { .. })
        ));
        second.link_at(&layout, 24, Some(second))?;
        let mut found = [0; 40];
        second.load_into(0, &mut found)?;
        let words: &[u64] = bytemuck::cast_slice(&found);
        assert_eq!(
            words,
            [first.reference_word(), 0, 77, second.reference_word(), 99]
        );
        assert!(matches!(
            second.load_into(33, &mut [0; 8]),
            Err(Error::BadRange { .. })
        ));
        assert!(matches!(
            second.load_into(u64::MAX, &mut [0; 8]),
            Err(Error::BadRange { .. })
        ));
        assert!(matches!(
            tx.alloc_untyped(&layout, &[], 39),
            Err(Error::BadRange { .. })
        ));
        tx.set_root("second", second)
    });
    // The pool's first byte is no object, not even in a transaction that has allocated none.
    transaction(&mut session, |tx| {
        let second = Obj::<Untyped, _>::of_root(tx, "second")?.unwrap();
        let front = [0, second.reference_word() - second.address().0, 0, 0, 0];
        let refused = tx.alloc_untyped(&layout, bytemuck::cast_slice(&front), 40);
        assert!(matches!(refused, Err(Error::NotAllocated { .. })));
        Ok(())
    });
    assert_eq!(pool.check().unwrap(), []);
}

#[test]
fn an_object_of_another_type_is_told_apart() {
    let (pool, layout) = made();
    let mut session = pool.session().unwrap();
    transaction(&mut session, |tx| {
        let bytes = tx.alloc_bytes(b"text")?;
        let refused = bytes.untyped().store_bytes(&layout, 16, &[0; 8]);
        assert!(
            matches!(
                refused,
                Err(Error::BadRange { .. } | Error::WrongType { .. })
            ),
            "{refused:?}"
        );
        let long = tx.alloc_bytes(&[0; 100])?.untyped();
        assert!(matches!(
            long.store_bytes(&layout, 16, &[0; 8]),
            Err(Error::WrongType { .. })
        ));
        assert!(matches!(
            long.link_at(&layout, 0, None),
            Err(Error::WrongType { .. })
        ));
        assert_eq!(long.typed::<Bytes>()?.len(), 100);
        assert_eq!(long.body_bytes()?, 108);
        let node = tx.alloc_untyped(&layout, &[1; 0], 64)?;
        assert_eq!(node.body_bytes()?, 64);
        assert!(node.typed::<Bytes>().is_err());
        assert!(Obj::<Untyped, _>::at(tx, node.address() + 16).is_err());
        assert_eq!(Obj::<Untyped, _>::at(tx, node.address())?, node);
        tx.set_root("node", node)
    });
    session.read(|view| {
        let node = Obj::<Untyped, _>::of_root(view, "node").unwrap().unwrap();
        assert_eq!(Obj::<Untyped, _>::of_root(view, "none").unwrap(), None);
        // A reference cannot be exchanged, a number can.
        assert!(node.compare_exchange_at(&layout, 0, 0, 1).is_err());
        assert!(node.compare_exchange_at(&layout, 60, 0, 1).is_err());
        assert!(node.compare_exchange_at(&layout, 17, 0, 1).is_err());
        assert_eq!(node.compare_exchange_at(&layout, 16, 0, 5).unwrap(), Ok(0));
        assert_eq!(node.compare_exchange_at(&layout, 16, 0, 6).unwrap(), Err(5));
        node.persist_at(&layout, 16).unwrap();
    });
}

/// A program has a copy of a reference from before its object moved.
#[test]
fn copies_of_references_hold_while_objects_move() {
    let (pool, layout) = made();
    let mut session = pool.session().unwrap();
    const COUNT: usize = 400;
    transaction(&mut session, |tx| {
        let spine = tx.alloc_refs::<Untyped>(COUNT)?;
        for i in 0..COUNT {
            let mut front = [0u64; 5];
            front[2] = i as u64;
            spine.set(
                i,
                Some(tx.alloc_untyped(&layout, bytemuck::cast_slice(&front), 40)?),
            )?;
        }
        tx.set_root("spine", spine)
    });
    transaction(&mut session, |tx| {
        let spine = tx.root::<firn_heap::Refs<Untyped>>("spine")?;
        (0..COUNT)
            .filter(|i| i % 8 != 0)
            .try_for_each(|i| spine.set(i, None))
    });
    let options = CollectOptions {
        target: 1.0,
        pages: PageSize::Small,
        ..CollectOptions::default()
    };
    let words: Vec<u64> = session.read(|view| {
        let spine = view.root::<firn_heap::Refs<Untyped>>("spine").unwrap();
        (0..COUNT)
            .step_by(8)
            .map(|i| spine.get(i).unwrap().reference_word())
            .collect()
    });
    let mut collection = pool.collection(&options).unwrap();
    assert!(collection.begin().unwrap());
    let mut moved = 0;
    transaction(&mut session, |tx| {
        let spine = tx.root::<firn_heap::Refs<Untyped>>("spine")?;
        for (i, &word) in (0..COUNT).step_by(8).zip(&words) {
            // From before the cycle began: it names the source, which the heap recognises.
            let object = Obj::<Untyped, _>::of_word(tx, word)?.unwrap();
            assert_eq!(object, spine.get(i).unwrap());
            moved += u64::from(object.reference_word() != word);
            object.store_bytes(&layout, 0, &word.to_ne_bytes())?;
            let own = Obj::<Untyped, _>::followed_from(tx, object.address() + 8).unwrap();
            assert_eq!(own, object);
        }
        Ok(())
    });
    assert!(moved > 10, "{moved} moved");
    collection.finish().unwrap();
    drop(collection);
    session.read(|view| {
        let spine = view.root::<firn_heap::Refs<Untyped>>("spine").unwrap();
        for i in (0..COUNT).step_by(8) {
            let object = spine.get(i).unwrap();
            let mut number = [0; 8];
            object.load_into(16, &mut number).unwrap();
            assert_eq!(u64::from_ne_bytes(number), i as u64);
        }
    });
    assert_eq!(pool.check().unwrap(), []);
}

/// Numbers that programs get wrong: around the end of an object, and around what fits in 32 bits, in 63 and in 64.
fn edges() -> impl Iterator<Item = u64> {
    let ends = (0..18).map(|i| u64::MAX - i);
    let powers = [1 << 31, 1 << 32, 1 << 46, 1 << 48, 1 << 63].into_iter();
    let around = powers.flat_map(|power: u64| [power - 8, power - 1, power, power + 1, power + 8]);
    ends.chain(around)
}

/// In typed transactions, with described types.
#[test]
fn lengths_and_offsets_at_every_edge_are_refused() {
    let (pool, layout) = made();
    let mut session = pool.session().unwrap();
    transaction(&mut session, |tx| {
        let node = tx.alloc_untyped(&layout, &[], 40)?;
        tx.set_root("node", node)?;
        let bytes = tx.alloc_bytes(&[1; 100])?;
        tx.set_root("bytes", bytes)?;
        tx.set_root("refs", tx.alloc_refs::<Untyped>(5)?)
    });
    for edge in edges() {
        let index = edge as usize;
        transaction(&mut session, |tx| {
            let too_large = |error| {
                matches!(
                    error,
                    Err(Error::ObjectTooLarge { .. } | Error::PoolFull { .. })
                )
            };
            assert!(too_large(tx.alloc_untyped(&layout, &[], edge).map(drop)));
            assert!(too_large(tx.alloc_refs::<Untyped>(index).map(drop)));
            let node = Obj::<Untyped, _>::of_root(tx, "node")?.unwrap();
            let bad = |error| matches!(error, Err(Error::BadRange { .. }));
            assert!(bad(node.load_into(edge, &mut [0; 8])), "{edge:#x}");
            assert!(bad(node.load_into(edge, &mut [0; 1])));
            assert!(bad(node.store_bytes(&layout, edge, &[0; 8])));
            assert!(bad(node.store_bytes(&layout, edge, &[0; 1])));
            assert!(bad(node.link_at(&layout, edge, None)));
            let bytes = tx.root::<Bytes>("bytes")?;
            assert!(bad(bytes.overwrite(index, &[0; 1])));
            assert!(bad(bytes.overwrite(index, &[0; 100])));
            let refs = tx.root::<firn_heap::Refs<Untyped>>("refs")?;
            assert!(refs.get(index).is_none());
            assert!(bad(refs.set(index, Some(node))));
            Ok(())
        });
        session.read(|view| {
            let node = Obj::<Untyped, _>::of_root(view, "node").unwrap().unwrap();
            let bad = |error| matches!(error, Err(Error::BadRange { .. }));
            assert!(bad(node.compare_exchange_at(&layout, edge, 0, 1).map(drop)));
            assert!(bad(node.persist_at(&layout, edge).map(drop)));
        });
    }
    assert_eq!(pool.check().unwrap(), []);
}
