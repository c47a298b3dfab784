use std::time::Instant;
use firn_heap::{Error, Pool, PoolOptions, Statistics, Stored, View};
use firn_mapped::{Mapped, MappedOptions};
use firn_structures::{List, Vector};
#[cfg(feature = "new")]
use firn_heap::RootHandle;

#[derive(Stored)]
#[repr(C)]
struct Word { n: u64 }

fn time(n: u64, mut f: impl FnMut()) -> f64 {
    let mut best: Vec<f64> = (0..7).map(|_| { let s = Instant::now(); for _ in 0..n { f(); } s.elapsed().as_nanos() as f64 / n as f64 }).collect();
    best.sort_by(f64::total_cmp);
    best[3]
}

fn main() {
    let medium = Mapped::anonymous(256 << 20, &MappedOptions { assume_persistent: Some(firn_media::Domain::Adr), ..MappedOptions::default() }).unwrap();
    let pool = Pool::create(medium, &PoolOptions::new("x")).unwrap();
    let mut s = pool.session().unwrap();
    s.transaction(|tx| {
        let mut v = Vector::create(tx, "list")?;
        for n in 0..100u64 { v.push(&n.to_le_bytes())?; }
        let mut l = List::create(tx, "linked")?;
        l.push_back(1, b"abcdefgh")?;
        tx.set_root("word", tx.alloc(Word { n: 0 })?)
    }).unwrap();
    let mut into = Vec::new();
    let mut i = 0u64;
    #[cfg(feature = "new")]
    let keys = (RootHandle::new("list").unwrap(), RootHandle::<Word>::new("word").unwrap());
    let name_own = time(200_000, || { let g = s.guard(); let v = Vector::open(g.view(), "list").unwrap(); into.clear(); v.get_into(i % 100, &mut into).unwrap(); i += 1; });
    let shared = time(2_000, || { let g = s.guard(); let v = Vector::open(g.view(), "list").unwrap(); for k in 0..100 { into.clear(); v.get_into(k, &mut into).unwrap(); } }) / 100.0;
    println!("get by name, own guard {name_own:.1} ns; shared by a hundred {shared:.1} ns");
    let bare = time(200_000, || { let g = s.guard(); std::hint::black_box(g.view()); });
    println!("guard alone {bare:.1} ns");
    let empty = time(200_000, || { s.transaction(|_| Ok::<_, Error>(())).unwrap(); });
    let word_name = time(200_000, || { s.transaction(|tx| { let w = tx.root::<Word>("word")?; w.store(Word::N, w.load(Word::N) + 1); Ok::<_, Error>(()) }).unwrap(); });
    println!("empty transaction {empty:.1}; one word by name {word_name:.1} ns");
    #[cfg(feature = "new")]
    {
        let own = time(200_000, || { let g = s.guard(); let v = Vector::open(g.view(), &keys.0).unwrap(); into.clear(); v.get_into(i % 100, &mut into).unwrap(); i += 1; });
        println!("get by handle, own guard {own:.1} ns, {:.1} above shared", own - shared);
        let w = time(200_000, || { s.transaction(|tx| { let w = tx.root(&keys.1)?; w.store(Word::N, w.load(Word::N) + 1); Ok::<_, Error>(()) }).unwrap(); });
        println!("one word by handle {w:.1} ns");
    }
    let known = pool.handle(s.guard().root::<Word>("word").unwrap());
    let w = time(200_000, || { s.transaction(|tx| { let w = tx.deref(&known).unwrap(); w.store(Word::N, w.load(Word::N) + 1); Ok::<_, Error>(()) }).unwrap(); });
    println!("one word by an object handle {w:.1} ns");
    let two = |names: [&str; 2]| {
        let before = Statistics::read(pool.medium()).unwrap();
        std::thread::scope(|scope| for name in names { let pool = &pool; scope.spawn(move || { let mut s = pool.session().unwrap(); for n in 0..31_250u64 {
            s.transaction(|tx| { let mut l = List::open(tx, name)?; l.pop_front()?; l.push_back(n, b"abcdefgh") }).unwrap(); } s.publish_statistics(); }); });
        let after = Statistics::read(pool.medium()).unwrap();
        println!("aborts of 62,500 of two threads on {names:?}: {}", after.aborts - before.aborts);
    };
    two(["linked", "linked"]);
}
