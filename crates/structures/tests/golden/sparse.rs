//! Files of pools with their holes: the length, then the runs of frames that have blocks (first frame, how many, their
//! content).

use firn_units::FRAME_BYTES;

/// A file of `len` bytes in which these frames, ascending, have blocks.
#[allow(dead_code, reason = "the generator packs, the tests unpack")]
pub fn pack(len: u64, frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut packed = len.to_le_bytes().to_vec();
    for run in frames.chunk_by(|(a, _), (b, _)| a + 1 == *b) {
        packed.extend(run[0].0.to_le_bytes());
        packed.extend((run.len() as u64).to_le_bytes());
        run.iter().for_each(|(_, content)| packed.extend(content));
    }
    packed
}

/// Runs of frames, by their first bytes.
#[allow(dead_code, reason = "the generator packs, the tests unpack")]
pub type Runs<'a> = Vec<(u64, &'a [u8])>;

/// The file's length and its runs.
#[allow(dead_code, reason = "the generator packs, the tests unpack")]
pub fn unpack(packed: &[u8]) -> Option<(u64, Runs<'_>)> {
    let (len, mut rest) = packed.split_first_chunk()?;
    let mut runs = Vec::new();
    while let Some((first, behind)) = rest.split_first_chunk() {
        let (count, behind) = behind.split_first_chunk()?;
        let bytes = u64::from_le_bytes(*count) * FRAME_BYTES;
        let (content, behind) = behind.split_at_checked(bytes as usize)?;
        runs.push((u64::from_le_bytes(*first) * FRAME_BYTES, content));
        rest = behind;
    }
    Some((u64::from_le_bytes(*len), runs))
}
