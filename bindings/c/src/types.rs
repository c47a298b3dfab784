//! Types that a session has used, and their layouts in the pool.

use core::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use firn_heap::{Layout, Pool, TypeId};
use firn_mapped::Mapped;

use crate::describe::{Type, descriptor};
use crate::given::In;
use crate::status::Outcome;

/// A session's knowledge of types.
#[derive(Default)]
pub(crate) struct Types(RefCell<Known>);

#[derive(Default)]
struct Known {
    /// By the table of the program.
    described: HashMap<usize, Rc<Layout>>,
    last: Option<(usize, Rc<Layout>)>,
    /// By their number in the pool.
    numbered: Vec<Option<Rc<Layout>>>,
}

impl Types {
    /// The layout of a program's type in the pool, registered if it is new.
    #[inline(always)]
    pub(crate) fn layout(&self, pool: &Pool<Mapped>, of: In<'static, Type>) -> Outcome<Rc<Layout>> {
        if let Some((last, layout)) = &self.0.borrow().last
            && *last == of.addr()
        {
            return Ok(Rc::clone(layout));
        }
        self.layout_of_another(pool, of)
    }

    /// The layout of another type than the last one.
    #[inline(never)]
    fn layout_of_another(&self, pool: &Pool<Mapped>, of: In<'static, Type>) -> Outcome<Rc<Layout>> {
        let mut known = self.0.borrow_mut();
        let layout = known.described(pool, of)?;
        known.last = Some((of.addr(), Rc::clone(&layout)));
        Ok(layout)
    }

    /// The layout of the type with a number; `None` if the type is not a program's.
    #[inline]
    pub(crate) fn numbered(&self, pool: &Pool<Mapped>, id: TypeId) -> Option<Rc<Layout>> {
        let mut known = self.0.borrow_mut();
        match known.numbered.get(id.0 as usize) {
            Some(Some(layout)) => Some(Rc::clone(layout)),
            _ => known.look_up(pool, id),
        }
    }
}

impl Known {
    #[cold]
    fn described(&mut self, pool: &Pool<Mapped>, of: In<'static, Type>) -> Outcome<Rc<Layout>> {
        if let Some(layout) = self.described.get(&of.addr()) {
            return Ok(Rc::clone(layout));
        }
        let layout = Rc::new(pool.register_described(descriptor(of)?)?);
        self.described.insert(of.addr(), Rc::clone(&layout));
        self.number(&layout);
        Ok(layout)
    }

    #[cold]
    fn look_up(&mut self, pool: &Pool<Mapped>, id: TypeId) -> Option<Rc<Layout>> {
        let layout = Rc::new(pool.layout(id)?);
        self.number(&layout);
        Some(layout)
    }

    fn number(&mut self, layout: &Rc<Layout>) {
        let number = layout.id().0 as usize;
        if self.numbered.len() <= number {
            self.numbered.resize(number + 1, None);
        }
        self.numbered[number] = Some(Rc::clone(layout));
    }
}
