//! Migrations, and layouts that one program knows only in part.

use super::*;

#[test]
fn a_migration_wants_the_versions_that_the_pool_has() {
    program!(third {
        #[derive(Stored)]
        #[repr(C)]
        #[firn(version = 3)]
        pub struct Item { pub a: u64, pub next: Ref<Item> }
    });
    let skip = |old: first::Item| third::Item {
        a: old.a,
        next: old.next.retyped(),
    };
    let last = |old: second::Item| third::Item {
        a: old.a,
        next: old.next.retyped(),
    };
    let wrong = |old: reordered::Item| second::Item {
        a: old.a,
        next: old.next.retyped(),
        seen: 0,
        more: 0,
    };
    let pool = pool();
    fill(&pool);
    // The converted layout must be the stored one.
    let error = pool.migrate(wrong).unwrap_err();
    assert!(matches!(error, Error::LayoutChanged { .. }), "{error}");
    let error = pool.migrate(last).unwrap_err();
    assert!(matches!(error, Error::NeedsMigration { .. }), "{error}");
    assert_eq!(pool.migrate(to_second).unwrap(), ITEMS);
    // Items of version 2 would be left behind.
    let error = pool.migrate(skip).unwrap_err();
    assert!(
        matches!(error, Error::NeedsMigration { stored: 2, .. }),
        "{error}"
    );
    assert_eq!(pool.migrate(last).unwrap(), ITEMS);
    // A program has one call per step, and makes all of them each time.
    assert_eq!(pool.migrate(to_second).unwrap(), 0);
    assert_eq!(pool.migrate(last).unwrap(), 0);
    pool.register::<third::Item>().unwrap();
}

#[test]
fn a_migration_leaves_no_object_of_an_explicit_pool_behind() {
    use first::Item;
    let pool = pool_of(PoolKind::Explicit);
    let fill = |tx: firn_heap::Tx<'_, Mapped>| {
        // Objects without a reference to them; they exist nevertheless.
        let lost = tx.alloc(Item {
            a: 1,
            next: Ref::NULL,
        })?;
        let behind = tx.alloc(Item {
            a: 2,
            next: Ref::NULL,
        })?;
        lost.link(Item::NEXT, Some(behind));
        Ok::<_, Error>(())
    };
    pool.session().unwrap().transaction(fill).unwrap();
    assert_eq!(pool.migrate(to_second).unwrap(), 2);
    let mut session = pool.session().unwrap();
    let found = session.read(|view| {
        let all = view.objects::<second::Item>().unwrap();
        let mut found = Vec::new();
        for item in all {
            let next = item.follow(second::Item::NEXT);
            let next = next.map(|next| next.check_type().unwrap().load(second::Item::A));
            found.push((item.load(second::Item::A), next));
        }
        found.sort_unstable();
        found
    });
    assert_eq!(found, [(1, Some(2)), (2, None)]);
    drop(session);
    assert_eq!(pool.check().unwrap(), []);
}

#[test]
fn a_migration_has_the_pool_for_itself() {
    let pool = pool();
    fill(&pool);
    let mut session = pool.session().unwrap();
    let error = pool.migrate(to_second).unwrap_err();
    assert!(matches!(error, Error::SessionsOpen { open: 1 }), "{error}");
    let handle = session.read(|view| {
        let top = view.root::<first::Top>("top").unwrap();
        pool.handle(top.follow(first::Top::FIRST).unwrap())
    });
    drop(session);
    let error = pool.migrate(to_second).unwrap_err();
    assert!(matches!(error, Error::HandleInTheWay { .. }), "{error}");
    assert_says(&error, &["`Item`", "drop the handle"]);
    drop(handle);
    // Neither has begun a migration.
    root::<first::Top>(&pool, "top").unwrap();
    let convert = |old| {
        let error = pool.session().err().unwrap();
        assert!(matches!(error, Error::Migrating), "{error}");
        to_second(old)
    };
    assert_eq!(pool.migrate(convert).unwrap(), ITEMS);
    assert_second(&pool);
}

#[test]
fn a_copy_of_a_pool_in_the_middle_of_a_migration_is_migrated_to_its_end() {
    let pool = pool();
    fill(&pool);
    // More than fit in one transaction.
    let mut left = 70;
    let some = |old| {
        left -= 1;
        assert!(left > 0, "the migration is interrupted here");
        to_second(old)
    };
    let stopped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pool.migrate(some)));
    assert!(stopped.is_err());
    let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
    let copy = pool
        .copy_into(medium, CopyIdentity::New, &mut |_| {})
        .unwrap();
    for pool in [pool, copy] {
        let error = pool.session().err().unwrap();
        assert!(
            matches!(error, Error::MigrationUnfinished { .. }),
            "{error}"
        );
        assert_says(&error, &["`Item`", "version 2", "Pool::migrate"]);
        assert!(pool.register::<second::Top>().is_err());
        assert_eq!(pool.check().unwrap(), []);
        let rest = pool.migrate(to_second).unwrap();
        assert!((1..ITEMS).contains(&rest), "{rest}");
        assert_second(&pool);
    }
}

/// A type as a program in C describes it.
fn described(
    (version, size): (u32, u32),
    fields: Vec<FieldDescriptor>,
    with: Vec<&'static TypeDescriptor>,
) -> &'static TypeDescriptor {
    Box::leak(Box::new(TypeDescriptor {
        name: "thing",
        version,
        size,
        fields: fields.leak(),
        with: with.leak(),
    }))
}

#[test]
fn where_one_program_says_less_the_rest_is_compared() {
    let reference = |at| FieldDescriptor::new("next", FieldKind::Reference, [at, 8, 1]);
    let number = |at| FieldDescriptor::new("number", FieldKind::Unsigned, [at, 8, 1]);
    let pool = pool();
    let register = |of| pool.register_described(of).map(|layout| layout.id());
    let id = register(described((1, 16), vec![reference(0)], vec![])).unwrap();
    let fuller = described((1, 16), vec![reference(0).to("thing"), number(8)], vec![]);
    assert_eq!(register(fuller).unwrap(), id);
    let less = described((1, 16), vec![reference(0)], vec![]);
    assert_eq!(register(less).unwrap(), id);
    // Recorded information stays recorded.
    let signed = FieldDescriptor::new("number", FieldKind::Signed, [8, 8, 1]);
    for fields in [
        vec![reference(0), signed],
        vec![reference(0).to("another"), number(8)],
        vec![reference(8)],
    ] {
        let error = register(described((1, 16), fields, vec![])).unwrap_err();
        assert!(matches!(error, Error::LayoutChanged { .. }), "{error}");
    }
    let error = register(described((2, 24), vec![reference(0)], vec![])).unwrap_err();
    assert!(matches!(error, Error::NeedsMigration { .. }), "{error}");
}
