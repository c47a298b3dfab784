//! Lists.
/// A list.
pub struct List;
