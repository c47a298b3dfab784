//! Telling the hardware about an open cycle, under a scheme that asks it where objects go (FFCCD, section 4.3).
//!
//! It knows the sources. In a cycle that a crash interrupted, references may name destinations without a copy (rule 8).
//! So it also learns those, as objects that move to where they are, and the read barrier needs only one query. The
//! destination tells which unit an object is.

use firn_format::class::Class;
use firn_format::reference::RefWord;
use firn_media::{Lookup, Medium, MediumExt, Move, Scope};
use firn_units::VirtAddr;

use super::cycle::Cycle;
use super::instructions::lookups;
use crate::relocation::copying::heal;
use crate::relocation::plan::destination_of;
use crate::steps;

impl<M: Medium> Cycle<M> {
    /// Whether the hardware says where objects go.
    #[inline(always)]
    pub(super) fn asks_hardware(&self) -> bool {
        M::MAY_OFFER && self.scheme.checks_lookup()
    }

    /// Tells the hardware where objects go, before any query about this cycle.
    pub(crate) fn install_lookup(&self, medium: &M) {
        if self.asks_hardware() && medium.keeps(&steps::LOOKUP_INSTALLED) {
            lookups(medium).install_lookup(&mut self.moves(medium));
        }
    }

    /// Tells the hardware about a cycle that a crash interrupted: it has forgotten the cycle, or knows it from a
    /// process that has ended.
    pub(crate) fn restore_lookup(&self, medium: &M) {
        if self.asks_hardware() && medium.keeps(&steps::LOOKUP_RESTORED) {
            lookups(medium).retire_lookup();
            lookups(medium).install_lookup(&mut self.moves(medium));
        }
    }

    /// Tells the hardware that objects stay from here on. No operation is open, and no query about this cycle will
    /// follow.
    pub(crate) fn retire_lookup(&self, medium: &M) {
        if self.asks_hardware() && medium.keeps(&steps::LOOKUP_RETIRED) {
            lookups(medium).retire_lookup();
        }
    }

    /// The hardware's answer: where the object at `at` goes.
    pub(super) fn looked_up(&self, medium: &M, at: VirtAddr) -> Option<VirtAddr> {
        match lookups(medium).check_lookup(at) {
            Lookup::Stays => None,
            Lookup::MovesTo(to) => Some(to),
        }
    }

    /// The read barrier, [`Cycle::touch`], with the hardware's answers.
    pub(super) fn touch_by_hardware(
        &self,
        medium: &M,
        word: RefWord,
        field: Option<VirtAddr>,
    ) -> VirtAddr {
        let at = word.address();
        let moved = {
            let _scope = medium.scope(Scope::Check);
            self.looked_up(medium, at)
        };
        let Some(unit) = moved.and_then(|to| self.unit_at(to)) else {
            return at;
        };
        self.relocate(medium, unit);
        if let Some(field) = field.filter(|_| unit.to != at) {
            let _scope = medium.scope(Scope::Reference);
            heal(medium, field, word, unit);
        }
        unit.to
    }

    fn moves(&self, medium: &M) -> impl Iterator<Item = Move> {
        let sources = self.entries.iter().flat_map(|entry| {
            let bytes = entry.class.map_or(0, Class::slot_bytes);
            (0..entry.count()).filter_map(move |rank| {
                Some(Move {
                    from: entry.source.start() + entry.slot_of_rank(rank)? * bytes,
                    to: destination_of(entry, rank),
                })
            })
        });
        let may_be_named = self.has_lost_copies(medium);
        let runs = self.destinations.iter().filter(move |_| may_be_named);
        let destinations = runs.flat_map(|run| {
            let bytes = run.class.map_or(0, Class::slot_bytes);
            (0..run.units).map(move |slot| {
                let at = run.frame.start() + slot * bytes;
                Move { from: at, to: at }
            })
        });
        sources.chain(destinations)
    }
}

#[cfg(test)]
mod tests {
    use firn_crash::{Crash, CrashOptions, LookupSizes, RelocateUnit};
    use firn_format::geometry::Frame;
    use firn_units::{FRAME_BYTES, WORD_BYTES};

    use firn_media::{Runtime, Space};

    use super::*;
    use crate::collector::{CollectOptions, Collection, PageSize};
    use crate::relocation::Part;
    use crate::relocation::scheme::FFCCD_CHECKLOOKUP;
    use crate::{Bytes, Error, Pool, PoolOptions, Refs, View};

    /// Objects of each length; one in five stays.
    const OBJECTS: usize = 400;
    /// A few words, some lines, runs of several frames, and a large object.
    const LENGTHS: [usize; 5] = [20, 100, 300, 1500, 9000];
    /// Filters that often err, and buffers that are too small.
    const SMALL: LookupSizes = LookupSizes {
        filters: 2,
        filter_bytes: 16,
        entries: 2,
        reach_bytes: 1024,
    };

    fn medium(lookup: LookupSizes) -> CrashOptions {
        CrashOptions {
            relocate: Some(RelocateUnit::Functional),
            lookup: Some(lookup),
            ..CrashOptions::default()
        }
    }

    fn options() -> PoolOptions {
        PoolOptions::new("lookup")
    }

    /// A pool in which a cycle has much to move.
    fn pool(lookup: LookupSizes) -> Pool<Crash> {
        let crash = Crash::new(16 << 20, medium(lookup));
        let pool = Pool::create(crash, &options()).unwrap();
        let mut session = pool.session().unwrap();
        session
            .transaction(|tx| tx.set_root("all", tx.alloc_refs::<Bytes>(OBJECTS * LENGTHS.len())?))
            .unwrap();
        let places = || (0..OBJECTS * LENGTHS.len()).collect::<Vec<_>>();
        for some in places().chunks(20) {
            session
                .transaction(|tx| {
                    let all = tx.root::<Refs<Bytes>>("all")?;
                    some.iter().try_for_each(|&place| {
                        let new = tx.alloc_bytes(&vec![1; LENGTHS[place % LENGTHS.len()]])?;
                        all.set(place, Some(new))
                    })
                })
                .unwrap();
        }
        for some in places().chunks(100) {
            session
                .transaction(|tx| {
                    let all = tx.root::<Refs<Bytes>>("all")?;
                    let mut goes = some
                        .iter()
                        .filter(|&place| !(place / LENGTHS.len()).is_multiple_of(5));
                    goes.try_for_each(|&place| all.set(place, None))?;
                    Ok::<_, Error>(())
                })
                .unwrap();
        }
        drop(session);
        pool
    }

    fn collection(pool: &Pool<Crash>) -> Collection<'_, Crash> {
        let options = CollectOptions {
            target: 1.0,
            pages: PageSize::Small,
            scheme: &FFCCD_CHECKLOOKUP,
            // Small, so that many pages stay between the emptied ones.
            max_source_bytes: 256 << 10,
            ..CollectOptions::default()
        };
        pool.collection(&options).unwrap()
    }

    /// The address of every word of the pool, and random addresses.
    fn addresses(crash: &Crash) -> impl Iterator<Item = VirtAddr> {
        let words = (0..crash.len()).step_by(WORD_BYTES as usize);
        let drawn = (0..100_000).map(|_| crash.random_u64() >> 20);
        words.chain(drawn).map(VirtAddr)
    }

    /// Hardware and tables agree on every address. Returns how many objects move.
    fn agree(pool: &Pool<Crash>, is_resumed: bool) -> u64 {
        let medium = pool.medium();
        let cycle = pool.inner.collector.cycle(medium).unwrap();
        let mut moving = 0;
        for at in addresses(medium) {
            let by_tables = cycle.find_in_tables(medium, at);
            let is_source = matches!(cycle.part(Frame::holding(at)), Some(Part::Source(_)));
            let known = by_tables.filter(|_| is_source || is_resumed);
            let expected = known.map_or(Lookup::Stays, |unit| Lookup::MovesTo(unit.to));
            assert_eq!(lookups(medium).check_lookup(at), expected, "{at}");
            assert_eq!(cycle.find(medium, at), by_tables, "{at}");
            let may = cycle.part(Frame::holding(at)).is_some();
            assert!(may || !cycle.concerns(medium, at), "{at}");
            assert!(by_tables.is_none() || cycle.concerns(medium, at), "{at}");
            moving += u64::from(by_tables.is_some() && is_source);
        }
        moving
    }

    fn tables_and_hardware_agree(lookup: LookupSizes) {
        let pool = pool(lookup);
        let mut collection = collection(&pool);
        assert!(collection.begin().unwrap());
        assert_eq!(agree(&pool, false), collection.collected().planned);
        collection.compact(100).unwrap();
        assert_eq!(agree(&pool, false), collection.collected().planned);

        // After a crash the hardware also knows destinations.
        let image = pool.medium().cache_image();
        let resumed = Pool::open(Crash::from_image(&image, medium(lookup)), &options()).unwrap();
        assert_eq!(agree(&resumed, true), collection.collected().planned);
        resumed.abandon();

        collection.finish().unwrap();
        let crash = pool.medium();
        for at in (0..crash.len()).step_by(FRAME_BYTES as usize) {
            assert_eq!(lookups(crash).check_lookup(VirtAddr(at)), Lookup::Stays);
        }
    }

    #[test]
    fn what_the_hardware_says_is_what_the_tables_say() {
        tables_and_hardware_agree(LookupSizes::default());
    }

    #[test]
    fn what_small_hardware_says_is_what_the_tables_say() {
        tables_and_hardware_agree(SMALL);
    }

    #[test]
    fn small_hardware_replaces_what_it_knows() {
        let counts = [LookupSizes::default(), SMALL].map(|lookup| {
            let pool = pool(lookup);
            pool.medium().reset_counts();
            let mut collection = collection(&pool);
            while collection.cycle().unwrap() {}
            assert!(pool.check().unwrap().is_empty());
            println!("{lookup:?}: {:?}", pool.medium().lookup_counts());
            pool.medium().lookup_counts()
        });
        let [printed, small] = counts;
        assert!(printed.wrong < small.wrong && printed.replaced < small.replaced);
        assert!(printed.denied > 0 && printed.hits > small.hits);
    }
}
