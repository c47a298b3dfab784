//! The entries that are written, in a file that parent and child share.
//!
//! ```text
//! for each entry: bytes of the key, bytes of the value (u32 each, little endian), key, value
//! ```

use std::io;
use std::path::Path;

use firn_tools::{Entry, ToolError};

/// Bytes of a length.
const LENGTH: usize = 4;

/// Writes the entries to a new file.
pub(crate) fn save(path: &Path, entries: &[Entry]) -> Result<(), ToolError> {
    let mut bytes = Vec::new();
    for entry in entries {
        for part in [&entry.key, &entry.value] {
            bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
        }
        bytes.extend_from_slice(&entry.key);
        bytes.extend_from_slice(&entry.value);
    }
    firn_mapped::write_whole(path, &bytes).map_err(ToolError::file(path, "writing"))
}

/// Reads them back, in the same order.
pub(crate) fn read(path: &Path) -> Result<Vec<Entry>, ToolError> {
    let bytes = std::fs::read(path).map_err(ToolError::file(path, "reading"))?;
    let mut rest = &bytes[..];
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let entry = take(&mut rest);
        let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
        entries.push(entry.ok_or_else(|| ToolError::file(path, "reading")(cut()))?);
    }
    Ok(entries)
}

fn take(rest: &mut &[u8]) -> Option<Entry> {
    let mut piece = |len: usize| {
        let (front, back) = rest.split_at_checked(len)?;
        *rest = back;
        Some(front)
    };
    let key_len = u32::from_le_bytes(piece(LENGTH)?.try_into().ok()?);
    let value_len = u32::from_le_bytes(piece(LENGTH)?.try_into().ok()?);
    Some(Entry {
        key: piece(key_len as usize)?.to_vec(),
        value: piece(value_len as usize)?.to_vec(),
    })
}
