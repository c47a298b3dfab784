//! Types that are registered together, and types that get another version.

use firn_crash::{Crash, Explorer, Report};
use firn_heap::{Error, Pool, PoolOptions, Ref, Refs, Stored, View};

use crate::pools::{self, LEN, Missing, explore, open};

#[derive(Stored)]
#[repr(C)]
#[firn(name = "link")]
struct Link {
    next: Ref<Link>,
    number: u64,
}

#[derive(Stored)]
#[repr(C)]
#[firn(name = "chain")]
struct Chain {
    first: Ref<Link>,
}

/// A link with another layout.
#[derive(Stored)]
#[repr(C)]
#[firn(name = "link")]
struct OtherLink {
    number: u64,
    next: Ref<OtherLink>,
}

/// A chain with another layout.
#[derive(Stored)]
#[repr(C)]
#[firn(name = "chain")]
struct OtherChain {
    first: Ref<Link>,
    last: Ref<Link>,
}

fn options() -> PoolOptions {
    PoolOptions {
        lanes: 2,
        publish_every: u32::MAX,
        ..PoolOptions::new("types")
    }
}

fn setup(crash: &Crash) {
    let pool = Pool::create(crash.clone(), &options()).unwrap();
    pool.close().unwrap();
}

/// If one type is known, so is the other one, to which it refers.
pub fn registered(missing: Missing) -> Report {
    let explorer = Explorer::new(
        explore(missing, 0),
        LEN,
        setup,
        |crash| {
            let pool = Pool::open(crash.clone(), &options()).unwrap();
            pool.register::<Chain>().unwrap();
            crash.note(1);
            pool.abandon();
        },
        |crash, state| {
            let pool = open(crash, &options())?;
            let is_known = |registered: Result<(), Error>| match registered {
                Ok(()) => Ok(false),
                Err(Error::LayoutChanged { .. }) => Ok(true),
                Err(error) => Err(error.to_string()),
            };
            let chain = is_known(pool.register::<OtherChain>())?;
            let link = is_known(pool.register::<OtherLink>())?;
            pool.abandon();
            // If the chain was not known, its other declaration has registered the link.
            match (chain, link) {
                (false, _) if state.note(0) == 1 => Err("a registered type is lost".into()),
                (_, false) => Err("a chain leads to nothing that is known".into()),
                _ => Ok(()),
            }
        },
    );
    explorer.explore()
}

#[derive(Stored)]
#[repr(C)]
#[firn(name = "link", version = 2)]
struct LongLink {
    next: Ref<LongLink>,
    number: u64,
    twice: u64,
}

fn long(old: Link) -> LongLink {
    LongLink {
        next: old.next.retyped(),
        number: old.number,
        twice: 2 * old.number,
    }
}

fn setup_links(crash: &Crash) {
    let pool = Pool::create(crash.clone(), &options()).unwrap();
    let mut session = pool.session().unwrap();
    let made = session.transaction(|tx| {
        let (next, number) = (Ref::NULL, 7);
        let all = tx.alloc_refs::<Link>(1)?;
        all.set(0, Some(tx.alloc(Link { next, number })?))?;
        tx.set_root("links", all)
    });
    made.unwrap();
    drop(session);
    pool.close().unwrap();
}

/// A type that counts as migrated has no object of its older version.
pub fn migrated(missing: Missing) -> Report {
    let explorer = Explorer::new(
        explore(missing, 0),
        LEN,
        setup_links,
        |crash| {
            let pool = Pool::open(crash.clone(), &options()).unwrap();
            pool.migrate(long).unwrap();
            pool.abandon();
        },
        |crash, _| {
            let pool = open(crash, &options())?;
            let text = |error: Error| error.to_string();
            if pool.needs_trace() {
                pool.trace().map_err(text)?;
            }
            pool.migrate(long).map_err(text)?;
            let mut session = pool.session().map_err(text)?;
            let found = session.read(|view| {
                let all = view.root::<Refs<LongLink>>("links")?;
                let link = |i| all.get(i).unwrap().check_type();
                let number = |i| Ok(link(i)?.load(LongLink::TWICE));
                (0..all.len())
                    .map(number)
                    .collect::<Result<Vec<_>, Error>>()
            });
            drop(session);
            match found.map_err(text)? {
                found if found == [14] => pools::check(pool),
                other => Err(format!("found {other:?}")),
            }
        },
    );
    explorer.explore()
}
