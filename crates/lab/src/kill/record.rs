//! An acknowledgement's bytes. They are few enough for the system to pass them through a pipe in one piece.
//!
//! ```text
//! writer u8, deed u8, zero u16, index u32, stamp u64, little endian
//! ```

use crate::writers::{Deed, Operation};

/// Bytes of an acknowledgement.
pub(crate) const RECORD_BYTES: usize = 16;

pub(crate) fn encode(operation: Operation) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[0] = operation.writer as u8;
    record[1] = match operation.deed {
        Deed::Insert => 1,
        Deed::Update => 2,
        Deed::Remove => 3,
    };
    record[4..8].copy_from_slice(&(operation.index as u32).to_le_bytes());
    record[8..].copy_from_slice(&operation.stamp.to_le_bytes());
    record
}

/// The operation that these bytes encode, if they are one.
pub(crate) fn decode(record: &[u8; RECORD_BYTES]) -> Option<Operation> {
    Some(Operation {
        writer: record[0].into(),
        deed: match record[1] {
            1 => Deed::Insert,
            2 => Deed::Update,
            3 => Deed::Remove,
            _ => return None,
        },
        index: u32::from_le_bytes(record[4..8].try_into().ok()?) as usize,
        stamp: u64::from_le_bytes(record[8..].try_into().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back() {
        for deed in [Deed::Insert, Deed::Update, Deed::Remove] {
            let operation = Operation {
                writer: 1,
                deed,
                index: 0x0102_0304,
                stamp: 5 << 32 | 6,
            };
            assert_eq!(decode(&encode(operation)), Some(operation));
        }
        assert_eq!(decode(&[0; RECORD_BYTES]), None);
    }
}
