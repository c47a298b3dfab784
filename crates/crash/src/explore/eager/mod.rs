//! Images, tried one by one.

pub(crate) mod plan;
pub(crate) mod walk;
