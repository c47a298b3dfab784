//! The unordered map.

use core::ffi::{c_int, c_void};

use firn_structures::hash::Position;

use super::there;
use super::{Entry, Scan, Span, answer_of, changing, collection, key, keyed, reading};
use crate::collection::{Finding, tell_findings};
use crate::given::{InOut, Out, Room, Source, Text};
use crate::handle_pool::Handed;
use crate::root::{NAME, RootName};
use crate::session::{Session, session};
use crate::status::{Failure, Status, object_of, result_of, status_of};

collection!(HashMap: firn_hash_new, firn_hash_root, firn_hash_named, firn_hash_len, firn_hash_clear, firn_hash_check);
keyed!(HashMap: firn_hash_get, firn_hash_insert, firn_hash_remove);

#[unsafe(no_mangle)]
pub extern "C" fn firn_hash_scan(
    pointer: Handed<Session>,
    object: *const c_void,
    position: InOut<'_, u64>,
    entries: Room<'_, Entry>,
    room: usize,
    count: Out<'_, usize>,
) -> Status {
    status_of(|| {
        let it = session(pointer)?;
        let begin = position.get();
        let begin = begin.ok_or_else(|| Failure::invalid("the scan's position is null"))?;
        let scan = |taken: &mut Scan<'_>| {
            reading!(HashMap, it, object, |map| {
                let reader = map.read()?;
                let mut rest = reader.iter_from(Position::from_word(begin));
                while taken.goes_on(room) {
                    let Some(entry) = rest.next().transpose()? else {
                        break;
                    };
                    taken.take(|to| entry.key_into(to), |to| entry.value_into(to))?;
                }
                position.put(rest.position().word());
                Ok(())
            })
        };
        // SAFETY: the header promises room for `room` entries.
        unsafe { it.scan(entries, room, count, scan) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_hash_position(
    pointer: Handed<Session>,
    object: *const c_void,
    key_at: Source<'_>,
    key_len: usize,
    position: InOut<'_, u64>,
) -> Status {
    answer_of(|| {
        let it = session(pointer)?;
        // SAFETY: the header promises `key_len` bytes.
        let key = unsafe { key(key_at, key_len) }?;
        let found = it.looked(reading!(HashMap, it, object, |map| {
            Ok(map.read()?.position_of(key)?)
        }))?;
        if let Some(found) = found {
            position.put(found.word());
        }
        Ok(there(found.is_some()))
    })
}
