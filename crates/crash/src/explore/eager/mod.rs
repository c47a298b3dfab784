//! Each image by itself.

pub(crate) mod plan;
pub(crate) mod walk;
