//! The part of libpmemobj's C interface that is used: the facts of its public headers.
//!
//! Source: libpmemobj/{base,pool_base,atomic_base,tx_base}.h of 1.12.1 (interface 2.4), x86-64.

use std::ffi::{c_int, c_void};

/// `TX_PARAM_NONE`, which ends the variable arguments of `pmemobj_tx_begin`.
pub const TX_PARAM_NONE: c_int = 0;
/// `TX_STAGE_WORK`.
pub const TX_STAGE_WORK: c_int = 1;
/// `POBJ_XADD_NO_SNAPSHOT`.
pub const POBJ_XADD_NO_SNAPSHOT: u64 = 1 << 2;
/// `OID_NULL`.
pub const OID_NULL: Oid = Oid {
    pool_uuid_lo: 0,
    off: 0,
};

/// `PMEMoid`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oid {
    /// The pool's number.
    pub pool_uuid_lo: u64,
    /// Bytes from the pool's base to the object's first.
    pub off: u64,
}

impl Oid {
    /// `OID_IS_NULL`.
    #[inline]
    pub fn is_null(self) -> bool {
        self.off == 0
    }
}

/// `pobj_defrag_result`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DefragResult {
    /// Objects that were examined.
    pub total: usize,
    /// Objects that were moved.
    pub relocated: usize,
}

/// `PMEMobjpool`, opaque.
pub type RawPool = *mut c_void;
/// `pmemobj_constr`.
pub type Constructor = Option<unsafe extern "C" fn(RawPool, *mut c_void, *mut c_void) -> c_int>;

/// Passes `$then` the functions and their types, so that each is looked up once.
macro_rules! with_calls {
    ($then:ident) => {
        $then! {
            pmemobj_create: unsafe extern "C" fn(*const c_char, *const c_char, usize, u32) -> RawPool,
            pmemobj_close: unsafe extern "C" fn(RawPool),
            pmemobj_errormsg: unsafe extern "C" fn() -> *const c_char,
            pmemobj_alloc: unsafe extern "C" fn(
                RawPool, *mut Oid, usize, u64, Constructor, *mut c_void,
            ) -> c_int,
            pmemobj_zalloc: unsafe extern "C" fn(RawPool, *mut Oid, usize, u64) -> c_int,
            pmemobj_free: unsafe extern "C" fn(*mut Oid),
            pmemobj_defrag: unsafe extern "C" fn(
                RawPool, *mut *mut Oid, usize, *mut DefragResult,
            ) -> c_int,
            pmemobj_tx_begin: unsafe extern "C" fn(RawPool, *mut c_void, ...) -> c_int,
            pmemobj_tx_stage: unsafe extern "C" fn() -> c_int,
            pmemobj_tx_commit: unsafe extern "C" fn(),
            pmemobj_tx_abort: unsafe extern "C" fn(c_int),
            pmemobj_tx_end: unsafe extern "C" fn() -> c_int,
            pmemobj_tx_add_range_direct: unsafe extern "C" fn(*const c_void, usize) -> c_int,
            pmemobj_tx_xadd_range_direct: unsafe extern "C" fn(*const c_void, usize, u64) -> c_int,
            pmemobj_tx_alloc: unsafe extern "C" fn(usize, u64) -> Oid,
            pmemobj_tx_free: unsafe extern "C" fn(Oid) -> c_int,
        }
    };
}
pub(super) use with_calls;
