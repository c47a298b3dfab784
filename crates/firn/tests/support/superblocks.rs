//! Changes to superblocks behind the program's back.

use firn_format::geometry::{SUPERBLOCK_BYTES, SUPERBLOCKS};
use firn_format::superblock::Superblock;

/// Changes both superblocks of a pool.
pub fn change_superblocks(pool: &str, change: impl Fn(&mut Superblock)) {
    change_superblock_bytes(pool, |bytes, at| {
        if let Ok(mut superblock) = Superblock::decode(bytes, at) {
            change(&mut superblock);
            *bytes = superblock.encode();
        }
    });
}

pub fn change_superblock_bytes(
    pool: &str,
    change: impl Fn(&mut [u8; SUPERBLOCK_BYTES as usize], firn_units::VirtAddr),
) {
    let mut file = std::fs::read(pool).unwrap();
    for at in SUPERBLOCKS {
        let bytes = &mut file[at.0 as usize..][..SUPERBLOCK_BYTES as usize];
        change(bytes.try_into().unwrap(), at);
    }
    std::fs::write(pool, file).unwrap();
}
