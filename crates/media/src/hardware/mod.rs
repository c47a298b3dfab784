//! What hardware offers beyond loads, stores, write-backs and fences.
//!
//! Each proposal is a *mechanism*: a contract in a file of its own here, and a value that a medium offers. The heap
//! asks for a mechanism by its contract:
//!
//! ```
//! use firn_media::{Hardware, Offers, Relocate};
//!
//! fn has_relocate(medium: &impl Hardware) -> bool {
//!     medium.offers().get::<dyn Relocate>().is_some()
//! }
//! # struct Plain;
//! # impl Hardware for Plain {}
//! # assert!(!has_relocate(&Plain));
//! ```

mod check_lookup;
mod relocate;

use std::any::{Any, type_name};
use std::fmt;

pub use check_lookup::{CheckLookup, Lookup, Move};
pub use relocate::Relocate;

/// The fifth part of a medium: the mechanisms that it has.
///
/// # What it promises
///
/// - **A mechanism that is offered works** for as long as the medium lives, from any thread.
/// - **What a medium offers never changes** while it lives. After a restart it may offer something else; recovery
///   refuses a pool that needs a missing mechanism.
/// - **A new mechanism changes no part of this contract.** It is a trait of its own and one more value in the
///   [`Offers`] of the media that have it.
pub trait Hardware {
    /// Whether media of this type can offer anything. If not, code that asks compiles to nothing.
    const MAY_OFFER: bool = false;

    /// The mechanisms of this medium.
    #[inline(always)]
    fn offers(&self) -> &Offers {
        const { &Offers::NONE }
    }
}

/// A set of mechanisms, each found by its contract.
#[derive(Default)]
pub struct Offers {
    /// Each is a `Box<dyn Contract>`.
    mechanisms: Vec<Box<dyn Any + Send + Sync>>,
}

impl Offers {
    /// No mechanism: plain memory.
    pub const NONE: Self = Self {
        mechanisms: Vec::new(),
    };

    /// Adds a mechanism under its contract, `C`: `offers.with::<dyn Relocate>(Box::new(unit))`.
    #[must_use]
    pub fn with<C: ?Sized + Send + Sync + 'static>(mut self, mechanism: Box<C>) -> Self {
        self.mechanisms.push(Box::new(mechanism));
        self
    }

    /// The mechanism with the contract `C`, for code that runs only if it is offered.
    ///
    /// Panics if it is not.
    #[inline]
    pub fn expect<C: ?Sized + 'static>(&self) -> &C {
        let missing = || -> ! { panic!("the medium does not offer {}", type_name::<C>()) };
        self.get().unwrap_or_else(|| missing())
    }

    /// The mechanism with the contract `C`, if it is offered.
    #[inline]
    pub fn get<C: ?Sized + 'static>(&self) -> Option<&C> {
        let mut offered = self.mechanisms.iter();
        offered.find_map(|one| one.downcast_ref::<Box<C>>().map(|found| &**found))
    }
}

impl fmt::Debug for Offers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Offers({})", self.mechanisms.len())
    }
}
