//! The unordered map.

use core::ffi::{c_char, c_int, c_void};

use firn_structures::hash::Position;

use super::{Entry, Scan, Span, answer_of, changing, collection, key, keyed, reading};
use super::{tell_findings, there};
use crate::collection::Finding;
use crate::describe::text_in_place;
use crate::object::bytes;
use crate::root::RootName;
use crate::session::{Session, session, with_view};
use crate::shelf::open;
use crate::status::{Failure, Status, object_of, result_of, status_of};

collection!(HashMap: firn_hash_new, firn_hash_root, firn_hash_named, firn_hash_len, firn_hash_clear, firn_hash_check);
keyed!(HashMap: firn_hash_get, firn_hash_insert, firn_hash_remove);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_hash_scan(
    pointer: *mut Session,
    object: *const c_void,
    position: *mut u64,
    entries: *mut Entry,
    room: usize,
    count: *mut usize,
) -> Status {
    status_of(|| {
        // SAFETY: as the header asks of sessions, and of the position.
        let (it, position) = unsafe { (session(pointer)?, position.as_mut()) };
        let position = position.ok_or_else(|| Failure::invalid("the scan's position is null"))?;
        let scan = |taken: &mut Scan<'_>| {
            reading!(HashMap, it, object, |map| {
                let reader = map.read()?;
                let mut rest = reader.iter_from(Position::from_word(*position));
                while taken.goes_on(room) {
                    let Some(entry) = rest.next().transpose()? else {
                        break;
                    };
                    taken.take(|to| entry.key_into(to), |to| entry.value_into(to))?;
                }
                *position = rest.position().word();
                Ok(())
            })
        };
        // SAFETY: the header asks for the room.
        unsafe { it.scan(entries, room, count, scan) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn firn_hash_position(
    pointer: *mut Session,
    object: *const c_void,
    key_at: *const c_void,
    key_len: usize,
    position: *mut u64,
) -> Status {
    answer_of(|| {
        // SAFETY: as the header asks of sessions, keys, and of the position.
        let (it, key, position) =
            unsafe { (session(pointer)?, key(key_at, key_len)?, position.as_mut()) };
        let found = it.looked(reading!(HashMap, it, object, |map| {
            Ok(map.read()?.position_of(key)?)
        }))?;
        if let (Some(found), Some(position)) = (found, position) {
            *position = found.word();
        }
        Ok(there(found.is_some()))
    })
}
