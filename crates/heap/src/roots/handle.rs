//! Keys of roots: a name, or a handle that remembers the root's place.

use core::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

use firn_format::root::{MAX_NAME_BYTES, Name};

use crate::error::Error;

/// The name of a root that refers to a `T`, for programs that look it up often, for instance in each operation.
///
/// It means the same as the name, in every pool and at every moment: the object to which the root refers now, or none
/// if it was removed. It remembers the root's place, so an operation gets the object in a few loads, without a search
/// and without a lock. Make one for the whole program; threads share it.
///
/// ```
/// # use firn_heap::{Bytes, Error, Pool, PoolOptions, RootHandle, View};
/// # use firn_mapped::{Mapped, MappedOptions};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let pool = Pool::create(Mapped::anonymous(16 << 20, &MappedOptions::default())?, &PoolOptions::new("example"))?;
/// # let mut session = pool.session()?;
/// let greeting = RootHandle::<Bytes>::new("greeting")?;
/// session.transaction(|tx| tx.set_root(&greeting, tx.alloc_bytes(b"welcome")?))?;
/// let length = session.read(|view| Ok::<_, Error>(view.root(&greeting)?.len()))?;
/// # assert_eq!(length, 7);
/// # Ok(())
/// # }
/// ```
pub struct RootHandle<T> {
    name: RootName,
    of: PhantomData<fn() -> T>,
}

impl<T> RootHandle<T> {
    /// The handle of the root `name`, which need not exist yet.
    ///
    /// Errors: [`Error::RootName`] for a name that no root can have.
    pub fn new(name: &str) -> Result<Self, Error> {
        let of = PhantomData;
        RootName::new(name).map(|name| Self { name, of })
    }
}

impl<T> Clone for RootHandle<T> {
    fn clone(&self) -> Self {
        let (name, of) = (self.name.clone(), PhantomData);
        Self { name, of }
    }
}

impl<T> core::fmt::Debug for RootHandle<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "root `{}`", self.name.name)
    }
}

/// A root's name with its remembered place, for a program in another language, which knows the type only at a look-up.
pub struct RootName {
    name: Name,
    /// The place where the root was found last. Each look-up checks whether it is still there.
    place: AtomicUsize,
}

impl RootName {
    /// The name `name` of a root that need not exist yet.
    ///
    /// Errors: [`Error::RootName`] for a name that no root can have.
    pub fn new(name: &str) -> Result<Self, Error> {
        Ok(Self {
            name: checked(name)?,
            place: AtomicUsize::new(0),
        })
    }
}

impl Clone for RootName {
    fn clone(&self) -> Self {
        Self {
            name: self.name,
            place: AtomicUsize::new(self.place.load(Ordering::Relaxed)),
        }
    }
}

/// A key for a root that refers to a `T`: a string, a [`RootHandle`], or a [`RootName`].
pub trait RootKey<T>: Copy + private::Sealed {
    /// The name; `None` if no root can have it, so that no root is found.
    #[doc(hidden)]
    fn name(&self) -> Option<Name>;

    /// The name, and the last place of the root, if the key remembers it.
    #[doc(hidden)]
    fn remembered(&self) -> Option<(&Name, &AtomicUsize)>;

    #[doc(hidden)]
    fn text(&self) -> String;
}

impl<T, S: AsRef<str> + ?Sized> RootKey<T> for &S {
    #[inline]
    fn name(&self) -> Option<Name> {
        checked(self.as_ref()).ok()
    }

    #[inline]
    fn remembered(&self) -> Option<(&Name, &AtomicUsize)> {
        None
    }

    fn text(&self) -> String {
        self.as_ref().to_owned()
    }
}

impl<T> RootKey<T> for &RootName {
    #[inline]
    fn name(&self) -> Option<Name> {
        Some(self.name)
    }

    #[inline]
    fn remembered(&self) -> Option<(&Name, &AtomicUsize)> {
        Some((&self.name, &self.place))
    }

    fn text(&self) -> String {
        self.name.to_string()
    }
}

impl<T> RootKey<T> for &RootHandle<T> {
    #[inline]
    fn name(&self) -> Option<Name> {
        Some(self.name.name)
    }

    #[inline]
    fn remembered(&self) -> Option<(&Name, &AtomicUsize)> {
        Some((&self.name.name, &self.name.place))
    }

    fn text(&self) -> String {
        self.name.name.to_string()
    }
}

/// A name as it lies on media.
///
/// Errors: a name that is empty, too long, or contains a zero.
#[inline]
pub(crate) fn checked(name: &str) -> Result<Name, Error> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains('\0') {
        return Err(Error::RootName {
            name: name.to_owned(),
            limit: MAX_NAME_BYTES,
        });
    }
    Ok(Name::new(name))
}

mod private {
    pub trait Sealed {}
    impl<S: AsRef<str> + ?Sized> Sealed for &S {}
    impl Sealed for &super::RootName {}
    impl<T> Sealed for &super::RootHandle<T> {}
}
