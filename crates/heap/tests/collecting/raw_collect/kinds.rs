//! Pools that refuse a collection, lists of objects, copies.

use super::*;

#[test]
fn pools_in_which_addresses_do_not_stay_refuse() {
    let medium = Mapped::anonymous(0, &MappedOptions::default()).unwrap();
    let redo = PoolOptions {
        log: LogKind::Redo,
        ..options()
    };
    let pool = Pool::create(medium, &redo).unwrap();
    let refused = pool.register_pairs("anything").unwrap_err().to_string();
    assert!(refused.contains("an undo log"), "{refused}");
    assert!(pool.session().unwrap().raw_guard().is_err());

    let medium = Mapped::anonymous(0, &MappedOptions::default()).unwrap();
    let traced = PoolOptions {
        kind: PoolKind::Traced,
        ..options()
    };
    let pool = Pool::create(medium, &traced).unwrap();
    assert!(pool.collect(&collect(PageSize::Small)).is_err());
}

/// A pool with pairs that is opened with a redo log is not collected, because its addresses would not be kept.
#[test]
fn pairs_are_not_moved_under_a_redo_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool.firn");
    let mut program = Program::on(
        Mapped::create(&path, 0, &MappedOptions::default().domain(Domain::Process)).unwrap(),
    );
    let pool = program.pool.clone();
    let mut session = pool.session().unwrap();
    thin_out(&mut program, &mut session, 0);
    drop(session);
    pool.abandon();
    drop(program);
    let redo = PoolOptions {
        log: LogKind::Redo,
        ..options()
    };
    let medium = Mapped::open(&path, &MappedOptions::default()).unwrap();
    let pool = Pool::open(medium, &redo).unwrap();
    let refused = pool
        .collect(&collect(PageSize::Small))
        .unwrap_err()
        .to_string();
    assert!(refused.contains("by their positions"), "{refused}");
    pool.close().unwrap();
}

/// The listed objects move to the front, and no other ones, even if they share a page.
#[test]
fn listed_objects_move_together_and_nothing_else_does() {
    const LENGTHS: [u64; 3] = [504, 1000, 200];
    const EACH: u64 = 600;
    let mut program = Program::new();
    let mut session = program.pool.session().unwrap();
    let keys = 0..EACH * LENGTHS.len() as u64;
    for key in keys.clone() {
        let length = LENGTHS[(key / EACH) as usize];
        program.allocate(&mut session, key, length, key);
    }
    for key in keys.filter(|key| key % 3 != 0) {
        program.free(&mut session, key);
    }
    let listed: Vec<u64> = program
        .objects
        .keys()
        .copied()
        .filter(|key| key.is_multiple_of(2))
        .collect();
    let pages = |program: &Program| program.pool.ratio(PageSize::Small);
    let before = pages(&program);
    let table = program.table;
    // Objects that moved last leave room behind, so there are a few rounds; each brings everything nearer to the front.
    let mut rounds = Vec::new();
    while rounds.last() != Some(&0) {
        let bodies: Vec<_> = listed
            .iter()
            .map(|key| program.objects[key].addresses[0])
            .collect();
        let mut gathering = Gathering::new(&session.raw_guard().unwrap(), &bodies).unwrap();
        let mut count = 0;
        loop {
            let step = session.raw_transaction(|tx| {
                let step = gathering.step(tx)?.unwrap_or_default();
                for Moved { from, to, .. } in &step {
                    let number = bodies.iter().position(|at| at == from).unwrap();
                    put(tx, table + listed[number] * 16 + 8, &[to.0])?;
                    put(tx, *to + PAIR + 8, &[to.0 + 8])?;
                }
                Ok::<_, Error>(step)
            });
            let step = step.unwrap();
            if step.is_empty() {
                break;
            }
            for Moved { from, to, .. } in step {
                assert!(to < from);
                let number = bodies.iter().position(|at| *at == from).unwrap();
                program.objects.get_mut(&listed[number]).unwrap().addresses = vec![to];
                count += 1;
            }
        }
        rounds.push(count);
        assert!(rounds.len() < 10, "{rounds:?}");
        // Unlisted objects are found at their old addresses, listed ones by their pairs in the table.
        program.check(&mut session);
    }
    assert!(rounds[0] > listed.len() / 2, "{rounds:?}");
    assert!(
        pages(&program) < before * 0.9,
        "{before}, {}",
        pages(&program)
    );
    drop(session);
    assert_eq!(program.pool.check().unwrap(), []);
}

#[test]
fn a_pool_of_pairs_is_salvaged_as_it_is_or_not_at_all() {
    use std::os::unix::fs::FileExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let mut program = Program::on(
        Mapped::create(&path, 0, &MappedOptions::default().domain(Domain::Process)).unwrap(),
    );
    let mut session = program.pool.session().unwrap();
    for key in 0..200 {
        program.allocate(&mut session, key, 64 + key * 8, key * 7);
    }
    drop(session);
    let id = program.pool.pair_id();
    program.pool.clone().abandon();
    let objects = std::mem::take(&mut program.objects);
    drop(program);
    let before = std::fs::read(&path).unwrap();
    let salvage = |name: &str| {
        let torn = Mapped::open_private(&path, &MappedOptions::default()).unwrap();
        let target = Mapped::create(
            folder.path().join(name),
            0,
            &MappedOptions::default().domain(Domain::Process),
        );
        Pool::salvage(torn, target.unwrap(), "raw", &mut |_| {})
    };
    let (pool, salvaged) = salvage("new").unwrap();
    assert!(salvaged.is_whole(), "{salvaged:?}");
    assert_eq!(salvaged.objects, 201, "and the table");
    assert_eq!(pool.pair_id(), id);
    for known in objects.values() {
        let at = known.addresses[0];
        assert_eq!(pool.medium().load_u64(at), known.value);
        assert_eq!(pool.medium().load_u64(at + (known.len - 8)), !known.value);
    }
    pool.close().unwrap();
    assert!(folder.path().join("new").exists());
    assert!(before == std::fs::read(&path).unwrap(), "it is only read");

    // An object whose header names no type that is registered.
    let header = objects[&7].addresses[0].0 - 8;
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[0xff, 0x7f], header).unwrap();
    let refused = salvage("other").err().unwrap();
    assert!(matches!(refused, CopyError::NotWhole { .. }), "{refused}");
    assert!(!folder.path().join("other").exists());
}

/// Where programs keep addresses, a copy has every object at its old place, and is the same pool: one that was closed,
/// and one that was killed, whose earlier addresses are still forwarded.
#[test]
fn a_copy_of_a_pool_with_addresses_keeps_them_and_its_identity() {
    for is_closed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let file = |name| {
            let path = folder.path().join(name);
            Mapped::create(path, 0, &MappedOptions::default().domain(Domain::Process)).unwrap()
        };
        let mut program = Program::on(file("original"));
        let of = program.pool.clone();
        let mut session = of.session().unwrap();
        for round in 0..3 {
            thin_out(&mut program, &mut session, round);
        }
        program.check(&mut session);
        let refused = of.copy_into(file("new"), CopyIdentity::New, &mut |_| {});
        let told = refused.err().unwrap().to_string();
        assert!(told.contains("cannot be told from numbers"), "{told}");
        let mut said = CopyProgress::default();
        let copy = of.copy_into(file("kept"), CopyIdentity::Kept, &mut |now| said = now);
        let copy = copy.unwrap();
        assert!(said.of > 0 && said.done == said.of, "{said:?}");
        assert_eq!(copy.pair_id(), of.pair_id());
        assert_eq!(copy.check().unwrap(), []);
        match is_closed {
            true => copy.close().unwrap(),
            false => {
                copy.publish().unwrap();
                copy.abandon();
            }
        }
        drop((session, of));
        program = program.reopened(&folder.path().join("kept"));
        if is_closed {
            program.find_again();
        }
        let pool = program.pool.clone();
        let mut session = pool.session().unwrap();
        program.check(&mut session);
        // The copy can be used further.
        thin_out(&mut program, &mut session, 5);
        program.check(&mut session);
        assert_eq!(pool.check().unwrap(), []);
    }
}

/// A power failure right after a copy finds all of it; one before its superblocks are written finds no pool.
#[test]
fn a_copy_of_a_pool_with_addresses_is_durable_when_it_is_there() {
    let mut program = Program::new();
    let pool = program.pool.clone();
    let mut session = pool.session().unwrap();
    thin_out(&mut program, &mut session, 1);
    drop(session);
    let target = Crash::new(0, CrashOptions::default());
    let mut before = None;
    let copied = pool.copy_into(target.clone(), CopyIdentity::Kept, &mut |now| {
        if now.done == now.of {
            before = Some(target.random_image(7));
        }
    });
    copied.unwrap().abandon();
    for seed in 0..20 {
        let image = target.random_image(seed);
        let crashed = Crash::from_image(&image, CrashOptions::default());
        let pool = Pool::open(crashed.clone(), &options()).unwrap();
        assert_eq!(pool.check().unwrap(), []);
        let mut session = pool.session().unwrap();
        let guard = session.raw_guard().unwrap();
        for known in program.objects.values() {
            let at = guard.resolve_to_read(*known.addresses.last().unwrap());
            assert_eq!(crashed.load_u64(at), known.value);
            assert_eq!(crashed.load_u64(at + (known.len - 8)), !known.value);
        }
        drop(guard);
        drop(session);
        pool.abandon();
    }
    let half = Crash::from_image(&before.unwrap(), CrashOptions::default());
    assert!(Pool::open(half, &options()).is_err());
}
