//! Who is called when a record is durable.

use core::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use firn_media::WhenDurable;

/// Calls that are due when their record is durable.
#[derive(Default)]
pub(super) struct Callbacks(Vec<(u64, WhenDurable)>);

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = self.0.iter().map(|(record, _)| record);
        f.debug_list().entries(records).finish()
    }
}

impl Callbacks {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, record: u64, call: WhenDurable) {
        self.0.push((record, call));
    }

    /// Takes those that are due when everything up to a record is durable, in the order of their records.
    pub(super) fn take(&mut self, durable: u64) -> Vec<(u64, WhenDurable)> {
        let mut due: Vec<_> = self
            .0
            .extract_if(.., |(record, _)| *record <= durable)
            .collect();
        due.sort_by_key(|(record, _)| *record);
        due
    }
}

/// Calls. A panic of the program's code ends only that call: others wait for theirs.
pub(super) fn call(call: WhenDurable, result: Result<(), firn_media::MediumError>) {
    let _ = catch_unwind(AssertUnwindSafe(|| call(result)));
}
