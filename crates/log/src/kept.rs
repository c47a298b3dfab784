//! Records in memory until they are home: in few large pieces, because many small ones would leave holes behind when they go.

use std::collections::VecDeque;

/// Bytes of a piece that small writes share.
const PIECE_BYTES: usize = 256 << 10;

/// Records of writes, in their order. No record reaches over two pieces.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pieces: VecDeque<Vec<u8>>,
}

impl Kept {
    /// Keeps the records of a write, which is then empty and may keep its memory for the next one.
    pub(crate) fn keep(&mut self, records: &mut Vec<u8>) {
        if records.len() >= PIECE_BYTES {
            self.pieces.push_back(core::mem::take(records));
            return;
        }
        match self.pieces.back_mut() {
            Some(last) if last.len() + records.len() <= last.capacity() => last.append(records),
            _ => {
                let mut piece = Vec::with_capacity(PIECE_BYTES);
                piece.append(records);
                self.pieces.push_back(piece);
            }
        }
    }

    /// Takes the oldest `bytes` bytes, which end with a write.
    pub(crate) fn take(&mut self, mut bytes: usize) -> VecDeque<Vec<u8>> {
        let mut taken = VecDeque::new();
        while bytes > 0 {
            let piece = self.pieces.pop_front();
            let mut piece = piece.expect("as many bytes are kept");
            if piece.len() > bytes {
                self.pieces.push_front(piece.split_off(bytes));
            }
            bytes -= piece.len();
            taken.push_back(piece);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_what_was_kept_in_its_order() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut kept, mut all, mut sizes) = (Kept::default(), Vec::new(), VecDeque::new());
        let mut taken = Vec::new();
        for _ in 0..2000 {
            let most = if random.u8(..50) == 0 {
                2 * PIECE_BYTES
            } else {
                9000
            };
            let mut records: Vec<u8> = (0..random.usize(1..most)).map(|_| random.u8(..)).collect();
            sizes.push_back(records.len());
            all.extend_from_slice(&records);
            kept.keep(&mut records);
            assert!(records.is_empty());
            if random.u8(..20) == 0 {
                let writes = random.usize(..=sizes.len());
                let pieces = kept.take(sizes.drain(..writes).sum());
                taken.extend(pieces.into_iter().flatten());
                assert!(all.starts_with(&taken));
            }
        }
        let rest = sizes.drain(..).sum();
        taken.extend(kept.take(rest).into_iter().flatten());
        assert!(taken == all && kept.pieces.is_empty());
    }
}
