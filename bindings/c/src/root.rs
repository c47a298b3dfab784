//! Roots.

use core::ffi::c_void;
use core::sync::atomic::AtomicU64;

use firn_heap::{Error, Obj, RootKey, Untyped};

use crate::describe::Type;
use crate::given::{In, Text};
use crate::handle_pool::{Handed, HandlePool, Pooled};
use crate::operation::with_view;
use crate::session::{Session, session};
use crate::status::{Failure, Outcome, Status, object_of, result_of, status_of};

/// The messages' name for the name that a program passes.
pub(crate) const NAME: &str = "the root's name";

/// `firn_root_name`.
pub struct RootName {
    mark: AtomicU64,
    pub(crate) name: firn_heap::RootName,
}

impl Pooled for RootName {
    const NAME: &'static str = "name of a root";

    fn mark(&self) -> &AtomicU64 {
        &self.mark
    }
}

static FREE_HANDLES: HandlePool<RootName> = HandlePool::new();

#[unsafe(no_mangle)]
pub extern "C" fn firn_root_name_new(name: Text<'_>) -> Handed<RootName> {
    result_of(Handed::NULL, || {
        Ok(FREE_HANDLES.hand_out(RootName {
            mark: AtomicU64::new(0),
            name: firn_heap::RootName::new(name.text(NAME)?)?,
        }))
    })
}

/// # Safety
///
/// As the header asks: no thread uses the name meanwhile, or afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_root_name_drop(name: Handed<RootName>) {
    result_of((), || {
        if !name.is_null() {
            // SAFETY: the header asks that no thread uses it meanwhile, and no call keeps a reference to a name.
            unsafe { FREE_HANDLES.take_back(name) }?;
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_root(
    pointer: Handed<Session>,
    name: Text<'_>,
    of: In<'static, Type>,
) -> *const c_void {
    object_of(|| found(session(pointer)?, name.text(NAME)?, of))
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_root_named(
    pointer: Handed<Session>,
    name: Handed<RootName>,
    of: In<'static, Type>,
) -> *const c_void {
    object_of(|| found(session(pointer)?, &name.open()?.name, of))
}

/// The object of a root, of the given type unless that is null.
fn found(
    it: &Session,
    root: impl RootKey<Untyped>,
    of: In<'static, Type>,
) -> Outcome<*const c_void> {
    let expected = match of.is_null() {
        true => None,
        false => Some(it.layout(of)?),
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
pub extern "C" fn firn_set_root(
    pointer: Handed<Session>,
    name: Text<'_>,
    object: *const c_void,
) -> Status {
    status_of(|| {
        let (it, name) = (session(pointer)?, name.text(NAME)?);
        it.change(|tx| {
            match it.object_or_null(tx, object)? {
                Some(object) => tx.set_root(name, object)?,
                None => tx.remove_root(name)?,
            }
            Ok(())
        })
    })
}
