//! What a log asks of the medium that it belongs to.

use core::ops::Range;
use std::sync::Arc;

use firn_media::MediumError;

use crate::file::PoolFile;
use crate::system::Randomness;
use crate::window::Window;

/// The pages of a medium, which are mapped privately.
pub(crate) trait Pages {
    /// The medium's name in errors.
    fn name(&self) -> String;

    /// The pool's file.
    fn file(&self) -> &Arc<PoolFile>;

    fn window(&self) -> &Window;

    fn randomness(&self) -> &Randomness;

    /// Bytes of the medium.
    fn bytes(&self) -> u64;

    /// Sets that, where the mapping reaches as far.
    fn set_bytes(&self, bytes: u64);

    /// The word at an address.
    fn word_at(&self, at: u64) -> u64;

    /// Stores a word, which may be stored to.
    fn set_word(&self, at: u64, word: u64);

    /// Allocates blocks, and maps what the medium grows by.
    fn allocate(&self, range: Range<u64>) -> Result<(), MediumError>;

    /// Gives a new file its name.
    fn give_name(&self) -> Result<(), MediumError>;

    fn io(&self, doing: &'static str, source: impl Into<std::io::Error>) -> MediumError {
        MediumError::Io {
            medium: self.name(),
            doing,
            source: source.into(),
        }
    }
}
