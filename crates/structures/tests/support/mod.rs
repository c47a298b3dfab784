//! What the tests share: pools, and a generator of numbers.
#![allow(dead_code, reason = "each test uses a part")]

use firn_heap::{Pool, PoolOptions};
use firn_mapped::{Mapped, MappedOptions};

/// An anonymous pool.
pub fn pool() -> Pool<Mapped> {
    let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
    Pool::create(medium, &PoolOptions::new("test")).unwrap()
}

/// Numbers from a seed (xorshift64*).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 16) % limit
    }
}
