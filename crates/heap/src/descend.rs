//! Descending from object to object along references, as in a search tree.

use core::hint::select_unpredictable;

use firn_format::reference::RefWord;
use firn_format::registry::MOST_TYPES;
use firn_format::superblock::TYPE_OF_NULL;
use firn_media::{Memory, Probe};
use firn_units::VirtAddr;

use crate::error::Error;
use crate::object::{KnownType, Obj};
use crate::relocation::cycle::Cycle;
use crate::stored::{Ref, Target};
use crate::value::Field;
use crate::view::View;
use crate::work;

/// Objects between two checks of the limit on their number.
const STRIDE: usize = 4;

impl<'g, T: Target, V: View<'g>> Obj<'g, T, V> {
    /// Follows one of the two references `links` of this object, then of the next one, and so on, until a reference is
    /// null, or `onward` returns `None` for an object, which is then returned. `onward` gets the object and its `key`,
    /// and returns whether to follow the second reference. It may be called with an object of another type, whose words
    /// are no keys; its answer for such an object is not used.
    ///
    /// There is as little work as possible between two objects, and the choice of the reference is no branch: so the
    /// processor starts the next search while this one waits for memory (`docs/decisions/short-searches.md`).
    ///
    /// Errors: an object of another type; more than about `most` objects on the way, which indicates a circle
    /// ([`Error::Damaged`]).
    #[inline(always)]
    pub fn descend(
        self,
        known: KnownType<T>,
        key: Field<T, u64>,
        links: [Field<T, Ref<T>>; 2],
        most: usize,
        mut onward: impl FnMut(Self, u64) -> Option<bool>,
    ) -> Result<Option<Self>, Error> {
        // No cycle begins while the view lasts (rule T2), and nothing is stored meanwhile, so both are checked once.
        if !self.view().reads_in_place() {
            return self.descend_looking_up(known, key, links, most, onward);
        }
        if let Some(cycle) = self.view().cycle() {
            return self.descend_in(cycle, known, key, links, most, onward);
        }
        let (mut at, view, place) = (self, self.view(), self.view().medium().places());
        for _ in 0..most.div_ceil(STRIDE) {
            for _ in 0..STRIDE {
                view.medium().work(work::DESCENT);
                let Some(second) = onward(at, at.word_in_place(key.offset())) else {
                    return match at.differs_in_place(known) {
                        false => Ok(Some(at)),
                        true => at.refused(),
                    };
                };
                let [first, other] = links.map(|link| at.word_in_place(link.offset()));
                let next = RefWord(select_unpredictable(second, other, first));
                if at.differs_in_place(known) {
                    return at.refused();
                }
                at = Obj::new(view, place(next.address()));
            }
        }
        Err(self.endless())
    }

    /// Descends while objects move: each object on the way passes the read barrier, and is then read in place.
    #[cold]
    #[inline(never)]
    fn descend_in(
        self,
        cycle: &Cycle<V::Medium>,
        known: KnownType<T>,
        key: Field<T, u64>,
        links: [Field<T, Ref<T>>; 2],
        most: usize,
        mut onward: impl FnMut(Self, u64) -> Option<bool>,
    ) -> Result<Option<Self>, Error> {
        let (mut at, view, medium) = (self, self.view(), self.view().medium());
        for _ in 0..most.next_multiple_of(STRIDE) {
            medium.work(work::DESCENT);
            let way = onward(at, at.word_in_place(key.offset()));
            if at.differs_in_place(known) {
                return Err(at.wrong_type());
            }
            let Some(second) = way else {
                return Ok(Some(at));
            };
            let link = links[usize::from(second)].offset();
            let next = RefWord(at.word_in_place(link));
            if next.is_null() {
                return Ok(None);
            }
            let field = at.body() + u64::from(link);
            at = Obj::new(view, medium.place(cycle.touch(medium, next, Some(field))));
        }
        Err(self.endless())
    }

    /// Descends where the transaction may have stored to some of the objects: looks each word up in the write set.
    #[cold]
    #[inline(never)]
    fn descend_looking_up(
        self,
        known: KnownType<T>,
        key: Field<T, u64>,
        links: [Field<T, Ref<T>>; 2],
        most: usize,
        mut onward: impl FnMut(Self, u64) -> Option<bool>,
    ) -> Result<Option<Self>, Error> {
        let mut at = self;
        for _ in 0..most.next_multiple_of(STRIDE) {
            let object = at.check_known_type(known)?;
            let Some(second) = onward(object, object.load(key)) else {
                return Ok(Some(object));
            };
            match object.follow_one_of(links, second) {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
        Err(self.endless())
    }

    /// The result of a descent that ended at an address without an object of the type. It is `None` if a null reference
    /// led here: that address holds the superblock and so no header of any type.
    #[cold]
    #[inline(never)]
    fn refused(self) -> Result<Option<Self>, Error> {
        const _: () = assert!(TYPE_OF_NULL.0 > MOST_TYPES);
        match self.address() {
            VirtAddr(0) => Ok(None),
            _ => Err(self.wrong_type()),
        }
    }

    #[cold]
    fn endless(self) -> Error {
        Error::Damaged {
            what: "a circle of references, or a tree without balance",
            at: self.address().0,
        }
    }
}
