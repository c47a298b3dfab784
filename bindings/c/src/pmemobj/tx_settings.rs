//! What a program sets for its open transaction. Without one the process stops, as with libpmemobj.

use core::ffi::{c_int, c_void};

use super::local::local;
use super::stages::Behavior;
use super::tx::{at_work, check_open};

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_set_failure_behavior(behavior: Behavior) {
    at_work("pmemobj_tx_set_failure_behavior");
    local().stages.set_behavior(behavior);
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_failure_behavior() -> Behavior {
    at_work("pmemobj_tx_get_failure_behavior");
    local().stages.behavior()
}

/// Whether a failed call only returns its failure.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_returns() -> c_int {
    c_int::from(local().stages.behavior() == Behavior::Return)
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_set_user_data(data: *mut c_void) {
    check_open("pmemobj_tx_set_user_data");
    local().stages.set_user_data(data);
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_tx_user_data() -> *mut c_void {
    check_open("pmemobj_tx_get_user_data");
    local().stages.user_data()
}
