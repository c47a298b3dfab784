//! Which pools this process has open for stores, by who they are.
//!
//! A file that was copied is another file, with a lock of its own, and holds the same pool: references of one copy
//! lead into the other, and programs that find pools by their ids find the wrong one. Two processes do not meet.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use firn_media::MediumError;

/// The pools, each with the name of its file.
static OPEN: Mutex<Option<HashMap<[u8; 16], String>>> = Mutex::new(None);

/// A pool that is this process's; given up when it is dropped.
#[derive(Debug)]
pub(crate) struct Claim([u8; 16]);

impl Claim {
    /// Errors: another file of this process holds a copy of the pool.
    pub(crate) fn take(identity: [u8; 16], name: String) -> Result<Self, MediumError> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.get_or_insert_default();
        match open.get(&identity) {
            Some(other) => Err(MediumError::CopyIsOpen {
                medium: name,
                other: other.clone(),
            }),
            None => {
                open.insert(identity, name);
                Ok(Self(identity))
            }
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = &mut *open {
            open.remove(&self.0);
        }
    }
}
