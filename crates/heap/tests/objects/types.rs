//! Do types keep their meaning across programs, versions and copies?

use firn_heap::{Bytes, Error, Pool, PoolKind, PoolOptions, Ref, Refs, Statistics, Stored, View};
use firn_mapped::{Mapped, MappedOptions, Placement};

#[derive(Stored)]
#[repr(C)]
#[firn(name = "Person", version = 1)]
struct PersonV1 {
    name: Ref<Bytes>,
    friend: Ref<PersonV1>,
    age: u64,
}

#[derive(Stored)]
#[repr(C)]
#[firn(name = "Person", version = 2)]
struct PersonV2 {
    name: Ref<Bytes>,
    friend: Ref<PersonV2>,
    age: u64,
    /// Makes the object outgrow its slot.
    scores: [u64; 4],
}

#[derive(Stored)]
#[repr(C)]
#[firn(name = "Person", version = 1)]
struct PersonChanged {
    age: u64,
    name: Ref<Bytes>,
    friend: Ref<PersonV1>,
}

const PEOPLE: usize = 500;

fn options() -> PoolOptions {
    PoolOptions::new("types")
}

fn medium() -> Mapped {
    Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap()
}

/// People in a ring of friends.
fn fill(pool: &Pool<Mapped>) {
    let make = |tx: firn_heap::Tx<'_, Mapped>| {
        let all = tx.alloc_refs::<PersonV1>(PEOPLE)?;
        tx.set_root("people", all)?;
        for i in 0..PEOPLE {
            let new = PersonV1 {
                name: Ref::null(),
                friend: Ref::null(),
                age: i as u64,
            };
            let person = tx.alloc(new)?;
            person.link(
                PersonV1::NAME,
                Some(tx.alloc_bytes(format!("person {i}").as_bytes())?),
            );
            all.set(i, Some(person))?;
        }
        for i in 0..PEOPLE {
            let (a, b) = (all.get(i).unwrap(), all.get((i + 1) % PEOPLE));
            a.link_tagged(PersonV1::FRIEND, b, (i % 16) as u8);
        }
        Ok::<_, Error>(())
    };
    pool.session().unwrap().transaction(make).unwrap();
}

#[test]
fn a_migration_keeps_every_reference_and_tag() {
    let pool = Pool::create(medium(), &options()).unwrap();
    fill(&pool);
    assert!(matches!(
        pool.register::<PersonV2>(),
        Err(Error::NeedsMigration { .. })
    ));
    let turn = |old: PersonV1| PersonV2 {
        name: old.name,
        friend: old.friend.retyped(),
        age: old.age,
        scores: [old.age * 2; 4],
    };
    assert_eq!(pool.migrate(turn).unwrap(), PEOPLE as u64);
    assert_eq!(pool.migrate(turn).unwrap(), 0);
    assert!(matches!(
        pool.register::<PersonV1>(),
        Err(Error::NewerType { .. })
    ));
    let mut session = pool.session().unwrap();
    session.read(|view| {
        let all = view.root::<Refs<PersonV2>>("people").unwrap();
        for i in 0..PEOPLE {
            let person = all.get(i).unwrap().check_type().unwrap();
            assert_eq!(person.load(PersonV2::SCORES), [i as u64 * 2; 4]);
            let name = person.follow(PersonV2::NAME).unwrap().to_vec().unwrap();
            assert_eq!(name, format!("person {i}").as_bytes());
            let friend = person.follow(PersonV2::FRIEND).unwrap();
            assert_eq!(friend.load(PersonV2::AGE), (i as u64 + 1) % PEOPLE as u64);
            assert_eq!(person.tag(PersonV2::FRIEND), (i % 16) as u8);
        }
    });
    drop(session);
    assert_eq!(pool.check().unwrap(), []);
    assert_eq!(pool.trace().unwrap().objects, 2 * PEOPLE as u64 + 1);
}

#[test]
fn a_layout_that_changed_without_a_version_is_refused() {
    let pool = Pool::create(medium(), &options()).unwrap();
    fill(&pool);
    let error = pool.register::<PersonChanged>().unwrap_err();
    assert!(matches!(error, Error::LayoutChanged { .. }), "{error}");
    assert!(error.to_string().contains("higher version"), "{error}");
}

#[test]
fn a_copy_is_packed_and_equal() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let pool = Pool::create(medium(), &PoolOptions { kind, ..options() }).unwrap();
        fill(&pool);
        let dir = tempfile::tempdir().unwrap();
        let placed = MappedOptions::default().placement(Placement::Random(3));
        let path = dir.path().join("copy");
        let target = Mapped::create(&path, 16 << 20, &placed).unwrap();
        pool.copy_into(target, firn_heap::CopyIdentity::New, &mut |_| {})
            .unwrap()
            .close()
            .unwrap();
        let opened = Mapped::open_read_only(&path, &MappedOptions::default()).unwrap();
        let copy = Pool::open_read_only(opened, "types").unwrap();
        let mut session = copy.session().unwrap();
        session.read(|view| {
            let all = view.root::<Refs<PersonV1>>("people").unwrap();
            for i in 0..PEOPLE {
                let person = all.get(i).unwrap().check_type().unwrap();
                assert_eq!(person.load(PersonV1::AGE), i as u64);
                let friend = person.follow(PersonV1::FRIEND).unwrap();
                let name = friend.follow(PersonV1::NAME).unwrap().to_vec().unwrap();
                assert_eq!(name, format!("person {}", (i + 1) % PEOPLE).as_bytes());
                assert_eq!(person.tag(PersonV1::FRIEND), (i % 16) as u8);
            }
        });
        drop(session);
        assert_eq!(copy.check().unwrap(), []);
        let statistics = Statistics::read(copy.medium()).unwrap();
        assert!(statistics.exact);
        assert_eq!(statistics.objects, 2 * PEOPLE as u64 + 1);
        assert_eq!(
            Statistics::read(pool.medium()).unwrap().live_bytes,
            statistics.live_bytes
        );
    }
}

#[test]
fn free_space_goes_back_to_the_device() {
    let dir = tempfile::tempdir().unwrap();
    let target = Mapped::create(dir.path().join("pool"), 16 << 20, &Default::default()).unwrap();
    let pool = Pool::create(target, &options()).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| tx.set_root("all", tx.alloc_refs::<Bytes>(20)?))
        .unwrap();
    let mut set_all = |len: Option<usize>| {
        for i in 0..20 {
            session
                .transaction(|tx| {
                    let all = tx.root::<Refs<Bytes>>("all")?;
                    if let Some(old) = all.get(i) {
                        // SAFETY: the only reference is replaced.
                        unsafe { tx.free(old)? };
                    }
                    let new = len.map(|len| tx.alloc_bytes(&vec![7; len])).transpose()?;
                    all.set(i, new)
                })
                .unwrap();
        }
    };
    set_all(Some(1 << 20));
    let full = firn_media::Space::backed_bytes(pool.medium()).unwrap();
    set_all(None);
    // The last frees wait until older homes are durable; a few more transactions settle them.
    set_all(Some(10));
    assert!(pool.release_free_space().unwrap() >= 18 << 20);
    // With a log, when that is home.
    pool.sync().unwrap();
    let empty = firn_media::Space::backed_bytes(pool.medium()).unwrap();
    assert!(empty < full - (18 << 20), "{full} {empty}");
    set_all(Some(1 << 20));
    assert_eq!(pool.check().unwrap(), []);
}
