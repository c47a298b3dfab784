//! What objects take.

/// Frames of runs that hold objects, and chunks in which such runs lie; or by how much they change.
#[derive(Clone, Copy, Default)]
pub(crate) struct Footprint {
    pub(crate) frames: i64,
    pub(crate) chunks: i64,
}
