//! The ordered map.

use core::ffi::{c_int, c_void};
use core::ops::Bound::{Excluded, Included, Unbounded};

use super::there;
use super::{Entry, Scan, Span, answer_of, changing, collection, key, keyed, reading};
use crate::collection::{Finding, tell_findings};
use crate::given::{Out, Room, Source, Text};
use crate::handle_pool::Handed;
use crate::root::{NAME, RootName};
use crate::session::{Session, session};
use crate::status::{Failure, Status, object_of, result_of, status_of};

collection!(Map: firn_map_new, firn_map_root, firn_map_named, firn_map_len, firn_map_clear, firn_map_check);
keyed!(Map: firn_map_get, firn_map_insert, firn_map_remove);

const FIRST: u32 = 0;
const LAST: u32 = 1;
const FROM: u32 = 2;
const AFTER: u32 = 3;
const DOWN_FROM: u32 = 4;
const BEFORE: u32 = 5;

/// Takes a number for the start, not an enumeration: a program may pass any.
#[unsafe(no_mangle)]
pub extern "C" fn firn_map_scan(
    pointer: Handed<Session>,
    object: *const c_void,
    seek: u32,
    key_at: Source<'_>,
    key_len: usize,
    entries: Room<'_, Entry>,
    room: usize,
    count: Out<'_, usize>,
) -> Status {
    status_of(|| {
        let it = session(pointer)?;
        let key = match seek {
            FIRST | LAST => &[],
            // SAFETY: the header promises `key_len` bytes where the scan begins at a key.
            _ => unsafe { key(key_at, key_len) }?,
        };
        let bounds = match seek {
            FIRST | LAST => (Unbounded, Unbounded),
            FROM => (Included(key), Unbounded),
            AFTER => (Excluded(key), Unbounded),
            DOWN_FROM => (Unbounded, Included(key)),
            BEFORE => (Unbounded, Excluded(key)),
            _ => {
                return Err(Failure::invalid(format!("{seek} is not a firn_seek value")));
            }
        };
        let down = matches!(seek, LAST | DOWN_FROM | BEFORE);
        let scan = |taken: &mut Scan<'_>| {
            reading!(Map, it, object, |map| {
                let reader = map.read()?;
                let mut range = reader.range::<&[u8]>(bounds);
                while taken.goes_on(room) {
                    let next = match down {
                        true => range.next_back(),
                        false => range.next(),
                    };
                    let Some(entry) = next.transpose()? else {
                        break;
                    };
                    taken.take(|to| entry.key_into(to), |to| entry.value_into(to))?;
                }
                Ok(())
            })
        };
        // SAFETY: the header promises room for `room` entries.
        unsafe { it.scan(entries, room, count, scan) }
    })
}
