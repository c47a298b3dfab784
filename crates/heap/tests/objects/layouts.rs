//! Is a type with a changed layout noticed, wherever in a pool its objects are?

use firn_heap::{Bytes, Error, FieldDescriptor, FieldKind, Pool, PoolOptions, Ref, Refs};
use firn_heap::{CopyIdentity, PoolKind, TypeDescriptor, View};
use firn_mapped::{Mapped, MappedOptions};

/// Declares the types of one version of a program.
macro_rules! program {
    ($(#[$of_module:meta])* $module:ident { $($item:item)* }) => {
        $(#[$of_module])*
        #[allow(dead_code, unused_imports)]
        mod $module {
            use firn_heap::{Bytes, Plain, Ref, Refs, Stored};
            $($item)*
        }
    };
}

// After the macro that it uses.
mod migrations;

program!(
    /// A list of items.
    first {
        #[derive(Stored)]
        #[repr(C)]
        pub struct Item { pub a: u64, pub next: Ref<Item> }
        #[derive(Stored)]
        #[repr(C)]
        pub struct Top { pub first: Ref<Item>, pub all: Ref<Refs<Item>>, pub name: Ref<Bytes> }
    }
);

program!(
    /// The program with longer items.
    second {
        #[derive(Stored)]
        #[repr(C)]
        #[firn(version = 2)]
        pub struct Item { pub a: u64, pub next: Ref<Item>, pub seen: u64, pub more: u64 }
        #[derive(Stored)]
        #[repr(C)]
        pub struct Top { pub first: Ref<Item>, pub all: Ref<Refs<Item>>, pub name: Ref<Bytes> }
    }
);

program!(
    /// The program with fields in another order, but without a new version.
    reordered {
        #[derive(Stored)]
        #[repr(C)]
        pub struct Item { pub next: Ref<Item>, pub a: u64 }
        #[derive(Stored)]
        #[repr(C)]
        pub struct Top { pub first: Ref<Item>, pub all: Ref<Refs<Item>>, pub name: Ref<Bytes> }
    }
);

fn pool_of(kind: PoolKind) -> Pool<Mapped> {
    let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
    let options = PoolOptions {
        kind,
        ..PoolOptions::new("layouts")
    };
    Pool::create(medium, &options).unwrap()
}

fn pool() -> Pool<Mapped> {
    pool_of(PoolKind::Traced)
}

const ITEMS: u64 = 100;

/// A top with a list of items.
fn fill(pool: &Pool<Mapped>) {
    use first::{Item, Top};
    let fill = |tx: firn_heap::Tx<'_, Mapped>| {
        let (first, all, name) = (Ref::NULL, Ref::NULL, Ref::NULL);
        let top = tx.alloc(Top { first, all, name })?;
        let all = tx.alloc_refs::<Item>(ITEMS as usize)?;
        let mut next = None;
        for a in (0..ITEMS).rev() {
            let item = tx.alloc(Item { a, next: Ref::NULL })?;
            item.link(Item::NEXT, next);
            all.set(a as usize, Some(item))?;
            next = Some(item);
        }
        top.link(Top::FIRST, next);
        top.link(Top::ALL, Some(all));
        tx.set_root("top", top)?;
        tx.set_root("all", all)
    };
    pool.session().unwrap().transaction(fill).unwrap();
}

fn to_second(old: first::Item) -> second::Item {
    second::Item {
        a: old.a,
        next: old.next.retyped(),
        seen: 0,
        more: 0,
    }
}

/// Opens the root as this type.
fn root<T: firn_heap::Target>(pool: &Pool<Mapped>, name: &str) -> Result<(), Error> {
    let mut session = pool.session()?;
    session.read(|view| view.root::<T>(name).map(|_| ()))
}

#[track_caller]
fn assert_says(error: &Error, words: &[&str]) {
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "no `{word}` in: {text}");
    }
}

/// Asserts that the list is that of the later program.
fn assert_second(pool: &Pool<Mapped>) {
    use second::{Item, Top};
    let mut session = pool.session().unwrap();
    session.read(|view| {
        let top = view.root::<Top>("top").unwrap();
        let (mut next, mut a) = (top.follow(Top::FIRST), 0);
        while let Some(item) = next {
            let item = item.check_type().unwrap();
            assert_eq!((item.load(Item::A), item.load(Item::SEEN)), (a, 0));
            (next, a) = (item.follow(Item::NEXT), a + 1);
        }
        assert_eq!(a, ITEMS);
    });
    drop(session);
    assert_eq!(pool.check().unwrap(), []);
}

#[test]
fn a_forgotten_migration_is_noticed_at_the_root_that_leads_there() {
    let pool = pool();
    fill(&pool);
    let error = root::<second::Top>(&pool, "top").unwrap_err();
    assert!(matches!(error, Error::NeedsMigration { .. }), "{error}");
    let said = [
        "`Item`",
        "version 1",
        "version 2",
        "`seen`",
        "Pool::migrate",
    ];
    assert_says(&error, &said);
    assert_says(
        &error,
        &[
            "16 bytes stored, 32 in the program",
            "field `first` of `Top`",
        ],
    );
    // Unchanged types can be used, and the old program still works.
    root::<first::Top>(&pool, "top").unwrap();
    assert_eq!(pool.migrate(to_second).unwrap(), ITEMS);
    assert_second(&pool);
}

#[test]
fn it_is_noticed_through_an_array_of_references_too() {
    let pool = pool();
    fill(&pool);
    let error = root::<Refs<second::Item>>(&pool, "all").unwrap_err();
    assert!(matches!(error, Error::NeedsMigration { .. }), "{error}");
    let error = root::<Refs<Refs<reordered::Item>>>(&pool, "all").unwrap_err();
    assert!(matches!(error, Error::LayoutChanged { .. }), "{error}");
    root::<Refs<first::Item>>(&pool, "all").unwrap();
    let mut session = pool.session().unwrap();
    let made = session.transaction(|tx| tx.alloc_refs::<second::Item>(1).map(|_| ()));
    assert!(
        matches!(made, Err(Error::NeedsMigration { .. })),
        "{made:?}"
    );
}

#[test]
fn fields_in_another_order_without_a_new_version_are_refused() {
    let pool = pool();
    fill(&pool);
    let error = root::<reordered::Top>(&pool, "top").unwrap_err();
    assert!(matches!(error, Error::LayoutChanged { .. }), "{error}");
    let said = [
        "`Item` version 1",
        "`a`",
        "at byte 0 stored",
        "at byte 8 in",
    ];
    assert_says(&error, &said);
    assert_says(
        &error,
        &["higher version and migrate", "field `first` of `Top`"],
    );
}

#[test]
fn an_old_program_is_refused_by_a_migrated_pool() {
    let pool = pool();
    fill(&pool);
    pool.migrate(to_second).unwrap();
    let error = root::<first::Top>(&pool, "top").unwrap_err();
    assert!(matches!(error, Error::NewerType { .. }), "{error}");
    assert_says(&error, &["`Item`", "version 2", "use a newer program"]);
    let error = root::<Refs<first::Item>>(&pool, "all").unwrap_err();
    assert!(matches!(error, Error::NewerType { .. }), "{error}");
    // This program drops its knowledge of the type from before its migration.
    let mut session = pool.session().unwrap();
    let item = |a| first::Item { a, next: Ref::NULL };
    let made = session.transaction(|tx| tx.alloc(item(1)).map(|_| ()));
    assert!(matches!(made, Err(Error::NewerType { .. })), "{made:?}");
}

#[test]
fn programs_in_turns_have_one_version_between_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pool");
    let on = MappedOptions::default();
    let options = PoolOptions::new("layouts");
    let open = || Pool::open(Mapped::open(&path, &on).unwrap(), &options).unwrap();
    let made = Pool::create(Mapped::create(&path, 16 << 20, &on).unwrap(), &options).unwrap();
    fill(&made);
    made.close().unwrap();
    let turn = |refused: fn(&Pool<Mapped>) -> Error, works: fn(&Pool<Mapped>)| {
        for _ in 0..3 {
            let pool = open();
            let error = refused(&pool);
            pool.close().unwrap();
            let pool = open();
            works(&pool);
            assert_eq!(pool.check().unwrap(), [], "after {error}");
            pool.close().unwrap();
        }
    };
    let new = |pool: &Pool<Mapped>| root::<second::Top>(pool, "top").unwrap_err();
    turn(new, |pool| root::<first::Top>(pool, "top").unwrap());
    let pool = open();
    assert_eq!(pool.migrate(to_second).unwrap(), ITEMS);
    pool.close().unwrap();
    let old = |pool: &Pool<Mapped>| root::<first::Top>(pool, "top").unwrap_err();
    turn(old, assert_second);
    // Also for reading only.
    let look = Mapped::open_read_only(&path, &on).unwrap();
    let look = Pool::open_read_only(look, "layouts").unwrap();
    root::<second::Top>(&look, "top").unwrap();
    assert!(root::<first::Top>(&look, "top").is_err());
}

#[test]
fn what_a_reference_leads_to_is_recorded_before_there_is_one() {
    let pool = pool();
    pool.register::<first::Top>().unwrap();
    // There never was an item, but the type of items is known.
    let error = pool.register::<reordered::Item>().unwrap_err();
    assert!(matches!(error, Error::LayoutChanged { .. }), "{error}");
    let error = pool.register::<second::Item>().unwrap_err();
    assert!(matches!(error, Error::NeedsMigration { .. }), "{error}");
    assert_eq!(pool.migrate(to_second).unwrap(), 0);
    pool.register::<second::Top>().unwrap();
}

#[test]
fn a_pool_open_for_reading_need_not_know_what_it_has_none_of() {
    program!(shorter {
        #[derive(Stored)]
        #[repr(C)]
        pub struct Lonely { pub a: u64 }
    });
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pool");
    let on = MappedOptions::default();
    let options = PoolOptions::new("layouts");
    let made = Pool::create(Mapped::create(&path, 16 << 20, &on).unwrap(), &options).unwrap();
    let array = |tx: firn_heap::Tx<'_, Mapped>| tx.set_root("all", tx.alloc_refs::<Bytes>(3)?);
    made.session().unwrap().transaction(array).unwrap();
    made.close().unwrap();
    let look = Mapped::open_read_only(&path, &on).unwrap();
    let look = Pool::open_read_only(look, "layouts").unwrap();
    root::<Refs<shorter::Lonely>>(&look, "all").unwrap();
    let error = look.register::<shorter::Lonely>().unwrap_err();
    assert!(matches!(error, Error::ReadOnly), "{error}");
}

program!(
    /// A and B refer to each other, through an array and directly.
    mutual {
        #[derive(Stored)]
        #[repr(C)]
        pub struct A { pub b: Ref<B>, pub x: u64 }
        #[derive(Stored)]
        #[repr(C)]
        pub struct B { pub all: [Ref<Refs<A>>; 2], pub y: u64 }
    }
);

program!(
    /// Both types have changed.
    mutual_2 {
        #[derive(Stored)]
        #[repr(C)]
        #[firn(version = 2)]
        pub struct A { pub x: u64, pub b: Ref<B> }
        #[derive(Stored)]
        #[repr(C)]
        #[firn(version = 2)]
        pub struct B { pub all: [Ref<Refs<A>>; 2], pub y: u64, pub z: [u64; 9] }
    }
);

program!(
    /// B has changed, but without a new version.
    mutual_changed {
        #[derive(Stored)]
        #[repr(C)]
        pub struct A { pub b: Ref<B>, pub x: u64 }
        #[derive(Stored)]
        #[repr(C)]
        pub struct B { pub y: u64, pub all: [Ref<Refs<A>>; 2] }
    }
);

/// An A and a B that lead to each other.
fn fill_mutual(pool: &Pool<Mapped>) {
    use mutual::{A, B};
    let fill = |tx: firn_heap::Tx<'_, Mapped>| {
        let a = tx.alloc(A { b: Ref::NULL, x: 7 })?;
        let all = [Ref::NULL; 2];
        let b = tx.alloc(B { all, y: 8 })?;
        let array = tx.alloc_refs::<A>(1)?;
        array.set(0, Some(a))?;
        a.link(A::B, Some(b));
        b.link(B::ALL.at(1), Some(array));
        tx.set_root("a", a)
    };
    pool.session().unwrap().transaction(fill).unwrap();
}

fn a_to_2(old: mutual::A) -> mutual_2::A {
    mutual_2::A {
        x: old.x,
        b: old.b.retyped(),
    }
}

fn b_to_2(old: mutual::B) -> mutual_2::B {
    mutual_2::B {
        all: old.all.map(Ref::retyped),
        y: old.y,
        z: [old.y; 9],
    }
}

#[test]
fn types_that_refer_to_each_other_are_compared_in_a_circle() {
    let pool = pool();
    fill_mutual(&pool);
    let error = root::<mutual_changed::A>(&pool, "a").unwrap_err();
    assert!(matches!(error, Error::LayoutChanged { .. }), "{error}");
    assert_says(&error, &["`B` version 1", "field `b` of `A`"]);
    root::<mutual::A>(&pool, "a").unwrap();
}

#[test]
fn types_that_refer_to_each_other_are_migrated_in_either_order() {
    for a_comes_first in [true, false] {
        let pool = pool();
        fill_mutual(&pool);
        let migrate_a = |pool: &Pool<Mapped>| pool.migrate(a_to_2).unwrap();
        let migrate_b = |pool: &Pool<Mapped>| pool.migrate(b_to_2).unwrap();
        if a_comes_first {
            assert_eq!(migrate_a(&pool), 1);
        } else {
            assert_eq!(migrate_b(&pool), 1);
        }
        // Half of the migration is done: neither program fits.
        let error = root::<mutual_2::A>(&pool, "a").unwrap_err();
        assert!(matches!(error, Error::NeedsMigration { .. }), "{error}");
        assert!(root::<mutual::A>(&pool, "a").is_err());
        if a_comes_first {
            assert_eq!(migrate_b(&pool), 1);
        } else {
            assert_eq!(migrate_a(&pool), 1);
        }
        let mut session = pool.session().unwrap();
        session.read(|view| {
            use mutual_2::{A, B};
            let a = view.root::<A>("a").unwrap();
            let b = a.follow(A::B).unwrap();
            assert_eq!((a.load(A::X), b.load(B::Z)), (7, [8; 9]));
            let array = b.follow(B::ALL.at(1)).unwrap();
            assert_eq!(array.get(0), Some(a));
        });
        drop(session);
        assert_eq!(pool.check().unwrap(), []);
    }
}

program!(nested {
    #[derive(Clone, Copy, Plain)]
    #[repr(C)]
    pub struct Point { pub x: u32, pub y: u32 }
    #[derive(Clone, Copy, Plain)]
    #[repr(C)]
    pub struct Corner { pub at: [Point; 2] }
    #[derive(Stored)]
    #[repr(C)]
    pub struct Shape { pub corners: [Corner; 2] }
});

program!(nested_changed {
    #[derive(Clone, Copy, Plain)]
    #[repr(C)]
    pub struct Point { pub y: u32, pub x: u32 }
    #[derive(Clone, Copy, Plain)]
    #[repr(C)]
    pub struct Corner { pub at: [Point; 2] }
    #[derive(Stored)]
    #[repr(C)]
    pub struct Shape { pub corners: [Corner; 2] }
});

#[test]
fn a_structure_inside_a_structure_is_part_of_its_layout() {
    let pool = pool();
    pool.register::<nested::Shape>().unwrap();
    let error = pool.register::<nested_changed::Shape>().unwrap_err();
    assert!(matches!(error, Error::LayoutChanged { .. }), "{error}");
    assert_says(&error, &["field `corners`", "structure Corner (layout"]);
    pool.register::<nested::Shape>().unwrap();
}

program!(elements {
    #[derive(Stored)]
    #[repr(C)]
    pub struct Holder { pub all: Ref<Refs<Red>> }
    #[derive(Stored)]
    #[repr(C)]
    pub struct Red { pub a: u64 }
});

program!(elements_changed {
    #[derive(Stored)]
    #[repr(C)]
    pub struct Holder { pub all: Ref<Refs<Blue>> }
    #[derive(Stored)]
    #[repr(C)]
    pub struct Blue { pub b: f64 }
});

#[test]
fn what_an_array_leads_to_is_part_of_the_layout() {
    let pool = pool();
    pool.register::<elements::Holder>().unwrap();
    let error = pool.register::<elements_changed::Holder>().unwrap_err();
    assert!(matches!(error, Error::LayoutChanged { .. }), "{error}");
    assert_says(
        &error,
        &["reference to Refs<Red>", "reference to Refs<Blue>"],
    );
}

#[test]
fn two_types_of_one_program_do_not_share_a_name() {
    program!(clash {
        pub mod one {
            use firn_heap::Stored;
            #[derive(Stored)]
            #[repr(C)]
            #[firn(name = "Node")]
            pub struct Node { pub value: u64 }
        }
        pub mod other {
            use firn_heap::Stored;
            #[derive(Stored)]
            #[repr(C)]
            #[firn(name = "Node")]
            pub struct Node { pub value: u32, pub rest: u32 }
        }
        #[derive(Stored)]
        #[repr(C)]
        pub struct Both { pub a: Ref<one::Node>, pub b: Ref<other::Node> }
    });
    let pool = pool();
    let error = pool.register::<clash::Both>().unwrap_err();
    assert!(matches!(error, Error::LayoutChanged { .. }), "{error}");
    assert_says(&error, &["`Node`", "field `b` of `Both`"]);
    // None of the types was registered.
    pool.register::<clash::one::Node>().unwrap();
    assert!(pool.register::<clash::other::Node>().is_err());
}
