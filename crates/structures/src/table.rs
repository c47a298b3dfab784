//! A table: an array of references that grows and shrinks at its end without being copied.
//!
//! It is a tree of arrays of [`FANOUT`] references each; the lowest arrays hold the table's own references. The digits
//! of an index lead to its place, so in at most [`MAX_HEIGHT`] steps in the largest pool, and three with sixteen
//! million places. No array is larger than the objects that a transaction logs without a further fence, and all of them
//! can be moved.
//!
//! A table that shrinks keeps one spare array of the lowest level, so that a program that goes back and forth at an
//! array's end does not allocate it each time.
//!
//! Source: the bit-mapped vector tries of Bagwell ("Ideal Hash Trees", 2001), with another fanout.

use std::collections::HashSet;

use firn_heap::{Error, Field, Obj, Ref, Refs, Target, Tx, TypeId, View};
use firn_media::Medium;

use crate::element::damaged;
use crate::reclaim::free_unlinked;

/// References of an array: as many as fit into a logged object of 2 KiB besides header and length.
pub(crate) const FANOUT: usize = 254;
/// Levels of a table, far more than any pool has room for.
pub(crate) const MAX_HEIGHT: usize = 5;
/// Places left in an array when the spare array behind it is freed.
const SPARE_AT: u64 = FANOUT as u64 / 2;

/// A table, whose topmost array and height are fields of `root`.
pub(crate) struct Table<'g, R, T: Target, V: View<'g>> {
    pub(crate) root: Obj<'g, R, V>,
    /// Refers to the topmost array; null where the height is zero.
    pub(crate) top: Field<R, Ref<Refs<T>>>,
    pub(crate) height: Field<R, u64>,
}

/// An array of the tree. Above the lowest level it refers to other arrays.
pub(crate) type Array<'g, T, V> = Obj<'g, Refs<T>, V>;

/// The reference at a place of an array above the lowest level.
fn child_field<T: Target>(place: usize) -> Field<Refs<T>, Ref<Refs<T>>> {
    Field::at_offset((1 + place as u32) * 8)
}

#[inline]
fn sound<'g, T: Target, V: View<'g>>(array: Array<'g, T, V>) -> Result<Array<'g, T, V>, Error> {
    if array.header().type_id() == TypeId::REFS && array.len() == FANOUT {
        return Ok(array);
    }
    Err(damaged("an array of a table", array))
}

#[inline]
fn child<'g, T: Target, V: View<'g>>(
    array: Array<'g, T, V>,
    place: usize,
) -> Result<Option<Array<'g, T, V>>, Error> {
    array.follow(child_field(place)).map(sound).transpose()
}

/// The place of an index within its array, on each level from the lowest.
#[inline]
fn digits(index: u64) -> [usize; MAX_HEIGHT] {
    let mut rest = index;
    core::array::from_fn(|_| {
        let digit = rest % FANOUT as u64;
        rest /= FANOUT as u64;
        digit as usize
    })
}

/// Places of a table with `height` levels.
const fn capacity(height: usize) -> u64 {
    (FANOUT as u64).pow(height as u32)
}

/// The place of `index` within an array of the lowest level.
#[inline]
pub(crate) fn place_of(index: u64) -> usize {
    (index % FANOUT as u64) as usize
}

impl<'g, R, T: Target, V: View<'g>> Table<'g, R, T, V> {
    #[inline]
    fn height(&self) -> Result<usize, Error> {
        match self.root.load(self.height) {
            height if height <= MAX_HEIGHT as u64 => Ok(height as usize),
            _ => Err(damaged("the height of a table", self.root)),
        }
    }

    #[inline]
    fn top(&self) -> Result<Array<'g, T, V>, Error> {
        match self.root.follow(self.top) {
            Some(top) => sound(top),
            None => Err(damaged("a table without its topmost array", self.root)),
        }
    }

    /// The array of the lowest level that contains `index`; `None` if the table does not reach there.
    #[inline(always)]
    pub(crate) fn array(&self, index: u64) -> Result<Option<Array<'g, T, V>>, Error> {
        let height = self.height()?;
        if height == 0 || index >= capacity(height) {
            return Ok(None);
        }
        let digits = digits(index);
        let mut array = self.top()?;
        for level in (1..height).rev() {
            match child(array, digits[level])? {
                Some(below) => array = below,
                None => return Ok(None),
            }
        }
        Ok(Some(array))
    }

    /// The reference at `index`; `None` if it is null, or the table does not reach there.
    #[inline(always)]
    pub(crate) fn get(&self, index: u64) -> Result<Option<Obj<'g, T, V>>, Error> {
        Ok(self.array(index)?.and_then(|a| a.get(place_of(index))))
    }

    /// Passes every array to `each`, with its level, after the arrays below it.
    ///
    /// Errors: an array is reached twice; the errors of `each`.
    pub(crate) fn visit(
        &self,
        each: &mut impl FnMut(Array<'g, T, V>, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self.height()? {
            0 => Ok(()),
            height => visit_below(self.top()?, height - 1, &mut HashSet::new(), each),
        }
    }

    /// Checks every array: those of the first `len` places exist, and at most one other.
    pub(crate) fn check(&self, len: u64, findings: &mut Vec<String>) -> Result<(), Error> {
        let mut lowest = 0;
        self.visit(&mut |_, level| {
            lowest += u64::from(level == 0);
            Ok(())
        })?;
        let needed = len.div_ceil(FANOUT as u64);
        if lowest < needed || lowest > needed + 1 {
            findings.push(format!(
                "a table of {len} places has {lowest} arrays for them"
            ));
        }
        let height = self.height()?;
        if height > 1 && child(self.top()?, 1)?.is_none() {
            findings.push(format!("a table has {height} levels for a single array"));
        }
        Ok(())
    }
}

fn visit_below<'g, T: Target, V: View<'g>>(
    array: Array<'g, T, V>,
    level: usize,
    seen: &mut HashSet<u64>,
    each: &mut impl FnMut(Array<'g, T, V>, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    if !seen.insert(array.address().0) {
        return Err(damaged("an array of a table that is reached twice", array));
    }
    if level > 0 {
        for place in 0..FANOUT {
            if let Some(below) = child(array, place)? {
                visit_below(below, level - 1, seen, each)?;
            }
        }
    }
    each(array, level)
}

impl<'t, R, T: Target, M: Medium> Table<'t, R, T, Tx<'t, M>> {
    /// The array of the lowest level that contains `index`, made if the table does not reach there. The table already
    /// has every lower index.
    ///
    /// Errors: the pool is full; the table is unchanged.
    #[inline]
    pub(crate) fn reach(&self, index: u64) -> Result<Array<'t, T, Tx<'t, M>>, Error> {
        match self.array(index)? {
            Some(array) => Ok(array),
            None => self.root.view().nested(|tx| self.grow(tx, index)),
        }
    }

    #[cold]
    fn grow(&self, tx: Tx<'t, M>, index: u64) -> Result<Array<'t, T, Tx<'t, M>>, Error> {
        let mut height = self.height()?;
        while height == 0 || index >= capacity(height) {
            if height == MAX_HEIGHT {
                return Err(damaged("the length of a table", self.root));
            }
            let above = tx.alloc_refs::<T>(FANOUT)?;
            if height > 0 {
                above.link(child_field(0), Some(self.top()?));
            }
            self.root.link(self.top, Some(above));
            height += 1;
            self.root.store(self.height, height as u64);
        }
        let digits = digits(index);
        let mut array = self.top()?;
        for level in (1..height).rev() {
            array = match child(array, digits[level])? {
                Some(below) => below,
                None => {
                    let below = tx.alloc_refs::<T>(FANOUT)?;
                    array.link(child_field(digits[level]), Some(below));
                    below
                }
            };
        }
        Ok(array)
    }

    /// Gives space back; to be called whenever the table's length has decreased by one, to `len`. The references behind
    /// it are null. At most one array per level is freed.
    #[inline]
    pub(crate) fn shrink(&self, len: u64) -> Result<(), Error> {
        if len % FANOUT as u64 != SPARE_AT {
            return Ok(());
        }
        self.free_spare((len / FANOUT as u64 + 1) * FANOUT as u64)
    }

    /// Frees the array of the lowest level that begins with `index`, and the arrays that become empty.
    #[cold]
    fn free_spare(&self, index: u64) -> Result<(), Error> {
        let tx = self.root.view();
        let height = self.height()?;
        if height <= 1 || index >= capacity(height) {
            return Ok(());
        }
        let digits = digits(index);
        let mut path = vec![self.top()?];
        for level in (1..height).rev() {
            match child(path[path.len() - 1], digits[level])? {
                Some(below) => path.push(below),
                None => return Ok(()),
            }
        }
        // An array goes if it begins with `index`.
        for level in 0..height - 1 {
            let (Some(array), Some(&above)) = (path.pop(), path.last()) else {
                break;
            };
            above.link::<Refs<T>>(child_field(digits[level + 1]), None);
            free_unlinked(tx, array)?;
            if digits[level + 1] != 0 {
                break;
            }
        }
        self.lower(height)
    }

    /// Removes levels from the top that have a single child.
    fn lower(&self, mut height: usize) -> Result<(), Error> {
        while height > 1 {
            let top = self.top()?;
            if child(top, 1)?.is_some() {
                break;
            }
            let Some(below) = child(top, 0)? else {
                return Err(damaged("a table without its first array", top));
            };
            height -= 1;
            self.root.link(self.top, Some(below));
            self.root.store(self.height, height as u64);
            free_unlinked(self.root.view(), top)?;
        }
        Ok(())
    }

    /// Frees every array. `each` gets every reference of the lowest level, once.
    ///
    /// Errors: the table is damaged; the errors of `each`.
    pub(crate) fn free(
        &self,
        mut each: impl FnMut(Obj<'t, T, Tx<'t, M>>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let tx = self.root.view();
        self.visit(&mut |array, level| {
            if level == 0 {
                (0..FANOUT)
                    .filter_map(|place| array.get(place))
                    .try_for_each(&mut each)?;
            }
            free_unlinked(tx, array)
        })?;
        self.root.link::<Refs<T>>(self.top, None);
        self.root.store(self.height, 0);
        Ok(())
    }
}
