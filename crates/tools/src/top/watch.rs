//! Looks at a pool from time to time.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::Scene;
use crate::{ToolError, stat};

/// Looks at a pool from time to time, read-only and without a lock.
pub struct Watch {
    path: PathBuf,
    start: Instant,
    scene: Scene,
}

impl Watch {
    /// Looks at the pool in `path` for the first time.
    ///
    /// Errors: no such file, not a pool, a damaged one.
    pub fn begin(path: &Path) -> Result<Self, ToolError> {
        let first = stat(path)?;
        Ok(Self {
            path: path.to_path_buf(),
            start: Instant::now(),
            scene: Scene::new(path.display().to_string(), first),
        })
    }

    /// Looks again. The file is opened anew each time, so a pool that grew is seen whole, and a pool made anew is seen
    /// too.
    pub fn look(&mut self) {
        let seen = stat(&self.path);
        let at = self.start.elapsed();
        match seen {
            Ok(stat) => self.scene.see(stat, at),
            Err(error) => self.scene.miss(&error.to_string(), at),
        }
    }

    /// The observations so far.
    pub fn scene(&self) -> &Scene {
        &self.scene
    }
}
