//! Programs whose types differ from those of the pools.

use firn_heap::{Bytes, Error, LogKind, Pool, PoolKind, Ref, Refs, Stored, View};
use firn_mapped::{Mapped, MappedOptions};

use crate::Golden;

/// With its fields in another order, but without another version.
#[derive(Stored)]
#[repr(C)]
#[firn(name = "Note", version = 1)]
struct Note {
    text: Ref<Bytes>,
    next: Ref<Note>,
    number: u64,
}

/// The type from which pages were migrated before.
#[derive(Stored)]
#[repr(C)]
#[firn(name = "Page", version = 1)]
struct PageV1 {
    number: u64,
}

/// A type that the pools do not know, which refers to notes.
#[derive(Stored)]
#[repr(C)]
struct Shelf {
    notes: Ref<Refs<Note>>,
}

/// Under that name, with correct notes.
#[derive(Stored)]
#[repr(C)]
#[firn(name = "Shelf")]
struct RightShelf {
    notes: Ref<Refs<crate::content::Note>>,
}

fn assert_refused(pool: &Pool<Mapped>) {
    let shelf = pool.register::<Shelf>().unwrap_err();
    assert!(matches!(shelf, Error::LayoutChanged { .. }), "{shelf}");
    assert!(shelf.to_string().contains("`next`"), "{shelf}");
    let page = pool.register::<PageV1>().unwrap_err();
    assert!(matches!(page, Error::NewerType { stored: 2, .. }), "{page}");
    let mut session = pool.session().unwrap();
    let page = session.read(|view| view.root::<Refs<PageV1>>("pages").map(|_| ()));
    assert!(matches!(page, Err(Error::NewerType { .. })), "{page:?}");
    let notes = session.read(|view| view.root::<Note>("notes").map(|_| ()));
    assert!(
        matches!(notes, Err(Error::LayoutChanged { .. })),
        "{notes:?}"
    );
}

#[test]
fn a_pool_of_version_1_refuses_types_that_are_not_its_own() {
    for (name, kind) in [
        ("v1-traced-redo-closed", PoolKind::Traced),
        ("v1-explicit-redo-closed", PoolKind::Explicit),
    ] {
        let golden = Golden::unpack(name);
        let only = Mapped::open_read_only(&golden.path, &MappedOptions::default()).unwrap();
        let only = Pool::open_read_only(only, "golden").unwrap();
        assert_refused(&only);
        drop(only);
        let pool = golden.open(kind, LogKind::Redo);
        assert_refused(&pool);
        // The refused registration has left nothing.
        pool.register::<RightShelf>().unwrap();
        pool.close().unwrap();
    }
}

#[test]
fn a_pool_of_version_1_in_the_middle_of_a_migration_waits_for_its_end() {
    for (name, kind) in [
        ("v1-traced-redo-migrating", PoolKind::Traced),
        ("v1-explicit-redo-migrating", PoolKind::Explicit),
    ] {
        let golden = Golden::unpack(name);
        let pool = golden.open(kind, LogKind::Redo);
        let error = pool.session().err().unwrap();
        assert!(
            matches!(error, Error::MigrationUnfinished { .. }),
            "{error}"
        );
        assert!(
            error.to_string().contains("`Thing` to version 2"),
            "{error}"
        );
        pool.migrate(crate::content::turned).unwrap();
        assert_refused(&pool);
        pool.close().unwrap();
    }
}
