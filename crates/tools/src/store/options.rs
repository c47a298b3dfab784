//! Options of a map in a pool.

use firn_heap::PoolOptions;
use firn_mapped::MappedOptions;
use firn_media::Domain;

/// The command line's name for the content of its pools.
pub const LAYOUT: &str = "firn map";

/// Which map of which pool, and how large the pool may grow.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The root that names the map.
    pub map: String,
    /// Bytes beyond which the pool does not grow; unlimited if `None`.
    pub max_bytes: Option<u64>,
    /// How its file is mapped.
    pub mapped: MappedOptions,
    /// The domain of a pool that is made; `None`: the best one that the file system has.
    pub new_domain: Option<Domain>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            map: "map".into(),
            max_bytes: None,
            mapped: MappedOptions::default(),
            new_domain: None,
        }
    }
}

impl StoreOptions {
    /// The options for the heap.
    pub(crate) fn of_pool(&self) -> PoolOptions {
        PoolOptions {
            max_bytes: self.max_bytes,
            ..PoolOptions::new(LAYOUT)
        }
    }
}
