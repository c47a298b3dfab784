//! What a line may hold after a crash: the prefixes of its store history.

use crate::memory::cells::Line;

/// A content that the line held, and the step at which the medium made it.
#[derive(Clone)]
pub(crate) struct Version {
    pub(crate) step: u64,
    pub(crate) content: Line,
    /// Hash of line number and content; zero unless the table keeps hashes.
    pub(crate) hash: u128,
}

/// The contents of one line since the last one known to be persistent, oldest first.
///
/// Invariant: never empty; the first version is the guaranteed one, the last is the cache's. A crash leaves exactly one
/// of them; it may be any.
#[derive(Clone)]
pub(crate) struct LineHistory {
    versions: Vec<Version>,
    /// Number of the first version, counted from when the line became dirty.
    absorbed: u32,
}

impl LineHistory {
    pub(crate) fn new(guaranteed: Version) -> Self {
        Self {
            versions: vec![guaranteed],
            absorbed: 0,
        }
    }

    pub(crate) fn push(&mut self, version: Version) {
        self.versions.push(version);
    }

    pub(crate) fn latest(&self) -> &Version {
        self.versions.last().expect("a history is never empty")
    }

    /// Rules out every version before the last one at or below `step`. Returns whether one version is left, so that the
    /// line is clean.
    pub(crate) fn guarantee(&mut self, step: u64) -> bool {
        let keep = self
            .versions
            .partition_point(|version| version.step <= step)
            .max(1)
            - 1;
        self.versions.drain(..keep);
        self.absorbed += keep as u32;
        self.versions.len() == 1
    }

    /// The versions with distinct contents, oldest first, the latest content always last. Each
    /// comes with its number since the line became dirty.
    pub(crate) fn distinct(&self) -> Vec<(u32, &Version)> {
        let mut found: Vec<(u32, &Version)> = Vec::with_capacity(self.versions.len());
        for (index, version) in self.versions.iter().enumerate() {
            if let Some(same) = found
                .iter()
                .position(|(_, seen)| seen.content == version.content)
            {
                found.remove(same);
            }
            found.push((self.absorbed + index as u32, version));
        }
        found
    }

    /// Number of the guaranteed version since the line became dirty.
    pub(crate) fn first_number(&self) -> u32 {
        self.absorbed
    }
}
