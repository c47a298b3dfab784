//! Roots.

use core::ffi::{c_char, c_void};
use core::ptr;
use core::sync::atomic::AtomicU64;

use firn_heap::{Error, Obj, RootKey, Untyped};

use crate::describe::{Type, text, text_in_place};
use crate::session::{Session, session, with_view};
use crate::shelf::{Shelf, Shelved, open};
use crate::status::{Failure, Outcome, Status, object_of, result_of, status_of};

/// `firn_root_name`.
pub struct RootName {
    mark: AtomicU64,
    pub(crate) name: firn_heap::RootName,
}

impl Shelved for RootName {
    const NAME: &'static str = "name of a root";

    fn mark(&self) -> &AtomicU64 {
        &self.mark
    }
}

static SHELF: Shelf<RootName> = Shelf::new();

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_root_name_new(name: *const c_char) -> *mut RootName {
    result_of(ptr::null_mut(), || {
        // SAFETY: as the header asks of names.
        let name = unsafe { text_in_place(name, "the root's name") }?;
        let made = SHELF.hand_out(RootName {
            mark: AtomicU64::new(0),
            name: firn_heap::RootName::new(name)?,
        });
        Ok(made.as_ptr())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_root_name_drop(name: *mut RootName) {
    result_of((), || {
        if name.is_null() {
            return Ok(());
        }
        // SAFETY: as the header asks of names of roots.
        unsafe { open(name) }?;
        // SAFETY: it is open, and the header asks that nobody uses it meanwhile.
        unsafe { SHELF.take_back(name) };
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_root(
    pointer: *mut Session,
    name: *const c_char,
    of: *const Type,
) -> *const c_void {
    object_of(|| {
        // SAFETY: as the header asks of sessions and names.
        let (it, name) = unsafe { (session(pointer)?, text_in_place(name, "the root's name")?) };
        // SAFETY: as the header asks of types.
        unsafe { found(it, name, of) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_root_named(
    pointer: *mut Session,
    name: *const RootName,
    of: *const Type,
) -> *const c_void {
    object_of(|| {
        // SAFETY: as the header asks of sessions and names of roots.
        let (it, name) = unsafe { (session(pointer)?, open(name)?) };
        // SAFETY: as the header asks of types.
        unsafe { found(it, &name.name, of) }
    })
}

/// The object of a root, of a type where that is not null.
///
/// # Safety
///
/// As the header asks of types.
unsafe fn found(
    it: &Session,
    root: impl RootKey<Untyped>,
    of: *const Type,
) -> Outcome<*const c_void> {
    let expected = match of.is_null() {
        true => None,
        // SAFETY: the caller says so.
        false => Some(unsafe { it.layout(of) }?),
    };
    it.looked(with_view!(it, |view| {
        let Some(found) = Obj::<Untyped, _>::of_root(view, root)? else {
            let name = root.text();
            return Err(Failure::from(Error::NoRoot { name }));
        };
        if let Some(expected) = expected {
            found.check_layout(&expected)?;
        }
        Ok(it.pointer(found))
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_set_root(
    pointer: *mut Session,
    name: *const c_char,
    object: *const c_void,
) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of sessions and names.
        let (it, name) = unsafe { (session(pointer)?, text(name, "the root's name")?) };
        it.change(|tx| {
            match it.object_or_null(tx, object)? {
                Some(object) => tx.set_root(&name, object)?,
                None => tx.remove_root(&name)?,
            }
            Ok(())
        })
    })
}
