//! Which pools this process has open for stores, by identity.
//!
//! A copy of a file has its own lock but holds the same pool. If a process had both open, references of one copy would
//! lead into the other, and programs that find pools by id would find the wrong one. Two processes do not meet.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use firn_media::MediumError;

/// The open pools, each with the name of its file.
static OPEN: Mutex<Option<HashMap<[u8; 16], String>>> = Mutex::new(None);

/// A pool that this process has open; released on drop.
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
