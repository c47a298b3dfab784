//! Is every line that was stored to found again, and are the caches' flags true?

use std::collections::BTreeMap;

use super::*;

const LINES: u64 = 96;
const CORES: usize = 3;

fn level(lines: u64, ways: u32) -> description::Cache {
    description::Cache {
        name: String::new(),
        bytes: lines * LINE,
        ways,
        hit_cycles: 1,
        shared: false,
    }
}

/// The lines that memory lacks, by a plain account of stores and evictions.
#[derive(Default)]
struct Account {
    dirty: BTreeMap<u64, u32>,
    stored: u64,
    departed: u64,
}

impl Account {
    fn store(&mut self, line: u64, flags: u32) {
        *self.dirty.entry(line).or_default() |= flags;
        self.stored += 1;
    }

    fn depart(&mut self, eviction: Option<Eviction>) {
        let Some(eviction) = eviction else { return };
        let flags = self.dirty.remove(&eviction.line);
        assert_eq!(flags, Some(flags_of(eviction)), "{eviction:?}");
        self.departed += 1;
    }
}

fn flags_of(eviction: Eviction) -> u32 {
    let pending = if eviction.pending { flag::PENDING } else { 0 };
    pending | if eviction.dirty { flag::DIRTY } else { 0 }
}

/// Checks the promises of the module's header.
fn check(caches: &mut Caches, account: &Account) {
    for core in 0..CORES {
        for level in 0..caches.levels {
            let lines: Vec<(usize, u64)> = caches.of(core)[level].lines.tags().collect();
            for (slot, line) in lines {
                check_line(caches, core, level, (slot, line));
            }
        }
    }
    let dirty: BTreeMap<u64, u32> = caches
        .dirty()
        .into_iter()
        .map(|eviction| (eviction.line, flags_of(eviction)))
        .collect();
    assert_eq!(dirty, account.dirty);
}

fn check_line(caches: &mut Caches, core: usize, level: usize, (slot, line): (usize, u64)) {
    let word = *caches.of(core)[level].word(slot);
    let mut next = slot;
    for further in &mut caches.of(core)[level..] {
        assert_eq!(further.lines.find(line), Some(next), "{line} is further on");
        next = (*further.word(next) >> flag::BITS) as usize;
    }
    assert_eq!(caches.last.lines.find(line), Some(next), "{line} is in all");
    let last = *caches.last.word(next);
    let me = sharer(core);
    assert!(last & me != 0, "the last level knows who holds {line}");
    let owned = word & flag::OWNED != 0;
    assert!(!owned || last & SHARED == me, "{line} is owned by one");
    assert!(
        owned || word & flag::KEPT == 0,
        "{line} is stored to where it is owned"
    );
}

/// An access, as the computer makes it.
fn access(caches: &mut Caches, core: usize, line: u64, flags: u32) -> Found {
    match caches.is_near(core, line, flags) {
        true => Found::at(0),
        false => caches.further(core, line, flags),
    }
}

#[test]
fn nothing_is_lost_on_the_way_to_memory() {
    let shapes = [
        vec![level(24, 2)],
        vec![level(6, 2), level(24, 3)],
        vec![level(4, 1), level(12, 4), level(36, 4)],
    ];
    for (seed, shape) in shapes.iter().cycle().take(30).enumerate() {
        let mut random = fastrand::Rng::with_seed(seed as u64);
        let mut caches = Caches::new(shape, CORES as u32);
        let mut account = Account::default();
        for _ in 0..2_000 {
            let (core, line) = (random.usize(..CORES), random.u64(..LINES));
            let flags = match random.u32(..8) {
                0..4 => 0,
                4 | 5 => flag::DIRTY,
                6 => flag::KEPT,
                _ => {
                    account.depart(caches.clean(line));
                    assert!(!account.dirty.contains_key(&line));
                    continue;
                }
            };
            let found = access(&mut caches, core, line, flags);
            account.depart(found.eviction);
            if flags != 0 {
                account.store(line, flags);
            }
            let again = access(&mut caches, core, line, flags);
            let near = Found {
                level: 0,
                transfer: false,
                eviction: None,
            };
            assert_eq!(again, near, "{line} is there now");
            check(&mut caches, &account);
        }
        assert!(account.departed > 300 && account.stored > 600);
    }
}
