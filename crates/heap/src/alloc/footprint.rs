//! The footprint of objects.

/// Frames of runs that hold objects, and chunks in which such runs lie; or a change of these counts.
#[derive(Clone, Copy, Default)]
pub(crate) struct Footprint {
    pub(crate) frames: i64,
    pub(crate) chunks: i64,
}
