//! State that fibers share without a lock, because they take turns on one OS thread.
#![allow(unsafe_code)]

use core::cell::RefCell;
use core::ptr;

thread_local! {
    /// Its address identifies an OS thread among those alive.
    static HERE: u8 = const { 0 };
}

#[inline(always)]
fn here() -> usize {
    HERE.with(|here| ptr::from_ref(here).addr())
}

/// A value that only the OS thread that made it may touch, though any thread may hold it. A check costs a comparison; a
/// lock would cost two locked instructions.
pub struct Confined<T> {
    home: usize,
    value: RefCell<T>,
}

// SAFETY: `with` is the only way to the value through a shared reference, and it panics on every OS thread but the one
// that made the value, so no two threads ever touch it at once. If that thread has ended, a later one may get its
// address and is then the only one with access. `T: Send` lets the value be dropped elsewhere.
unsafe impl<T: Send> Sync for Confined<T> {}

impl<T> Confined<T> {
    /// A value of the calling OS thread.
    pub fn new(value: T) -> Self {
        Self {
            home: here(),
            value: RefCell::new(value),
        }
    }

    /// Whether this OS thread may touch it.
    #[inline(always)]
    pub fn is_here(&self) -> bool {
        self.home == here()
    }

    /// Touches the value. Panics on another OS thread, and when called from within itself.
    #[inline(always)]
    pub fn with<R>(&self, touch: impl FnOnce(&mut T) -> R) -> R {
        assert!(
            self.is_here(),
            "a simulated machine stays on the OS thread that made it"
        );
        touch(&mut self.value.borrow_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_thread_is_refused() {
        let confined = Confined::new(1);
        confined.with(|value| *value += 1);
        std::thread::scope(|scope| {
            assert!(
                scope
                    .spawn(|| confined.with(|value| *value))
                    .join()
                    .is_err()
            );
        });
        assert_eq!(confined.with(|value| *value), 2);
    }
}
