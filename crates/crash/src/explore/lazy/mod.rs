//! The lazy walk: classes of images, split only where a check looks.

pub(crate) mod candidates;
pub(crate) mod class;
pub(crate) mod completion;
pub(crate) mod decisions;
pub(crate) mod overlay;
mod passage;
mod unsettled;
pub(crate) mod verified;
pub(crate) mod walk;
