//! Collections: the functions that `include/firn/containers.h` declares.
//!
//! Each call finds the collection at an object, in the view of the open operation, and calls the structure of the same
//! name. Results lie in the session's memory until the next such call.

mod hash;
mod map;
mod vector;

use core::ffi::c_void;

use crate::given::{Out, Room, Source, check_len};
use crate::session::Session;
use crate::status::{Failure, Outcome, Status, result_of};
use firn_structures::map::MAX_KEY_BYTES;

pub use hash::*;
pub use map::*;
pub use vector::*;

/// Bytes after which a scan stops.
const SCAN_BYTES: usize = 64 << 10;
/// Memory that a session keeps for results.
const KEPT_BYTES: usize = 1 << 20;

/// `firn_span`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Span {
    pub bytes: *const c_void,
    pub len: usize,
}

/// `firn_entry`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Entry {
    pub key: Span,
    pub value: Span,
}

impl Span {
    fn of(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.as_ptr().cast(),
            len: bytes.len(),
        }
    }
}

/// Runs a call that may find nothing.
#[inline(always)]
fn answer_of(call: impl FnOnce() -> Outcome<Status>) -> Status {
    match result_of(None, || call().map(Some)) {
        Some(answer) => answer,
        None => crate::status::firn_last_status(),
    }
}

/// The answer of a call that looked for something.
#[inline(always)]
fn there(is_there: bool) -> Status {
    match is_there {
        true => Status::Ok,
        false => Status::NotFound,
    }
}

/// A key that a program passes. Of an overlong key only as much is read as shows its excess: an insertion refuses it,
/// and comparisons with existing keys give the results of the whole key.
///
/// # Safety
///
/// `len` is the number of bytes that the header promises of the key.
#[inline(always)]
unsafe fn key(from: Source<'_>, len: usize) -> Outcome<&[u8]> {
    const WHAT: &str = "the key";
    check_len(len, WHAT)?;
    // SAFETY: these are no more bytes than the program promises, by this function's contract.
    unsafe { from.bytes(len.min(MAX_KEY_BYTES + 1), WHAT) }
}

impl Session {
    /// Finds something: `look` appends it to the session's memory and returns whether it is there.
    #[inline(always)]
    fn find(
        &self,
        into: Out<'_, Span>,
        look: impl FnOnce(&mut Vec<u8>) -> Outcome<bool>,
    ) -> Outcome<Status> {
        let mut found = self.found.borrow_mut();
        let found = found.other();
        let is_there = self.looked(look(found))?;
        if is_there {
            into.put(Span::of(found));
        }
        Ok(there(is_there))
    }
}

/// A session's memory for results. There are two, used in turn: the result of one call may be passed to the next.
#[derive(Default)]
pub(crate) struct Found {
    memory: [Vec<u8>; 2],
    last: bool,
}

impl Found {
    /// The memory that was not used last, emptied; if it is large, only part of it is kept.
    #[inline(always)]
    fn other(&mut self) -> &mut Vec<u8> {
        self.last = !self.last;
        let found = &mut self.memory[usize::from(self.last)];
        found.clear();
        if found.capacity() > KEPT_BYTES {
            found.shrink_to(KEPT_BYTES);
        }
        found
    }
}

/// Entries found by a scan.
struct Scan<'s> {
    found: &'s mut Vec<u8>,
    /// Offsets in `found`: the start of each key, the start of its value, and the value's end.
    parts: Vec<[usize; 3]>,
}

impl Scan<'_> {
    /// Takes one more entry: `key` and `value` append to the given memory.
    fn take<E>(
        &mut self,
        key: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
        value: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let key_at = self.found.len();
        key(self.found)?;
        let value_at = self.found.len();
        value(self.found)?;
        self.parts.push([key_at, value_at, self.found.len()]);
        Ok(())
    }

    /// Whether there is room for another.
    fn goes_on(&self, room: usize) -> bool {
        self.parts.len() < room && self.found.len() < SCAN_BYTES
    }
}

impl Session {
    /// Finds entries, which `scan` takes as long as there is room.
    ///
    /// # Safety
    ///
    /// `room` is the number of entries that the header promises room for.
    unsafe fn scan(
        &self,
        entries: Room<'_, Entry>,
        room: usize,
        count: Out<'_, usize>,
        scan: impl FnOnce(&mut Scan<'_>) -> Outcome<()>,
    ) -> Outcome<()> {
        if entries.is_null() || count.is_null() || room == 0 {
            return Err(Failure::invalid(
                "a scan needs room for at least one entry, and for the count",
            ));
        }
        let mut found = self.found.borrow_mut();
        let found = found.other();
        let mut taken = Scan {
            found,
            parts: Vec::new(),
        };
        self.looked(scan(&mut taken))?;
        let parts = taken.parts;
        for (index, &[key_at, value_at, end]) in parts.iter().enumerate() {
            let entry = Entry {
                key: Span::of(&found[key_at..value_at]),
                value: Span::of(&found[value_at..end]),
            };
            // SAFETY: `Scan` takes no more than `room` entries, for which there is room by this function's contract.
            unsafe { entries.pointer().add(index).write(entry) };
        }
        count.put(parts.len());
        Ok(())
    }
}

/// Reads the collection at an object, in the open operation.
macro_rules! reading {
    ($kind:ident, $session:expr, $object:expr, |$it:ident| $body:expr) => {
        $crate::operation::with_view!($session, |view| {
            let $it = firn_structures::$kind::at($session.typed(view, $object)?);
            $body
        })
    };
}

/// Changes the collection at an object, in the transaction.
macro_rules! changing {
    ($kind:ident, $session:expr, $object:expr, |$it:ident| $body:expr) => {
        $session.change(|tx| {
            #[allow(unused_mut, reason = "not every change asks for it")]
            let mut $it = firn_structures::$kind::at($session.object(tx, $object)?.typed()?);
            $body
        })
    };
}
pub(crate) use {changing, reading};

/// The collection of a root, made in a transaction if there is no such root.
macro_rules! found_or_made {
    ($kind:ident, $it:ident, $root:expr) => {{
        let found = $it.looked($crate::operation::with_view!($it, |view| {
            let found = firn_structures::$kind::find(view, $root)?;
            Ok(found.map(|found| $it.pointer(found.object())))
        }))?;
        match found {
            Some(found) => Ok(found),
            None if $it.operation.is_in_transaction() => $it
                .change(|tx| Ok($it.pointer(firn_structures::$kind::create(tx, $root)?.object()))),
            None => {
                let name = firn_heap::RootKey::<firn_heap::Untyped>::text(&$root);
                Err(firn_heap::Error::NoRoot { name }.into())
            }
        }
    }};
}
pub(crate) use found_or_made;

/// The functions of every collection: `new`, `root`, `named`, `len`, `clear`, `check`.
macro_rules! collection {
    ($kind:ident: $new:ident, $root:ident, $named:ident, $len:ident, $clear:ident, $check:ident) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $new(pointer: Handed<Session>) -> *const c_void {
            object_of(|| {
                let it = session(pointer)?;
                it.change(|tx| Ok(it.pointer(firn_structures::$kind::new(tx)?.object())))
            })
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $root(pointer: Handed<Session>, name: Text<'_>) -> *const c_void {
            object_of(|| {
                let (it, name) = (session(pointer)?, name.text(NAME)?);
                $crate::containers::found_or_made!($kind, it, name)
            })
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $named(
            pointer: Handed<Session>,
            name: Handed<RootName>,
        ) -> *const c_void {
            object_of(|| {
                let (it, name) = (session(pointer)?, name.open()?);
                $crate::containers::found_or_made!($kind, it, &name.name)
            })
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $len(pointer: Handed<Session>, object: *const c_void) -> u64 {
            result_of(0, || {
                let it = session(pointer)?;
                it.looked(reading!($kind, it, object, |found| Ok(found.len()?)))
            })
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $clear(pointer: Handed<Session>, object: *const c_void) -> Status {
            status_of(|| {
                let it = session(pointer)?;
                changing!($kind, it, object, |found| Ok(found.clear()?))
            })
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $check(
            pointer: Handed<Session>,
            object: *const c_void,
            tell: Option<Finding>,
            argument: *mut c_void,
            findings: Out<'_, usize>,
        ) -> Status {
            status_of(|| {
                let it = session(pointer)?;
                let (at, found) = it.looked(reading!($kind, it, object, |found| {
                    Ok((found.object().address().0, found.check()?))
                }))?;
                findings.put(found.len());
                tell_findings(found.into_iter().map(|what| (at, what)), tell, argument);
                Ok(())
            })
        }
    };
}
pub(crate) use collection;

/// The further functions of both maps: `get`, `insert`, `remove`.
macro_rules! keyed {
    ($kind:ident: $get:ident, $insert:ident, $remove:ident) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $get(
            pointer: Handed<Session>,
            object: *const c_void,
            key_at: Source<'_>,
            key_len: usize,
            value: Out<'_, Span>,
        ) -> Status {
            answer_of(|| {
                let it = session(pointer)?;
                // SAFETY: the header promises `key_len` bytes.
                let key = unsafe { key(key_at, key_len) }?;
                it.find(value, |found| {
                    reading!($kind, it, object, |map| Ok(map.get_into(key, found)?))
                })
            })
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $insert(
            pointer: Handed<Session>,
            object: *const c_void,
            key_at: Source<'_>,
            key_len: usize,
            value_at: Source<'_>,
            value_len: usize,
            replaced: Out<'_, c_int>,
        ) -> Status {
            status_of(|| {
                let it = session(pointer)?;
                // SAFETY: the header promises `key_len` bytes.
                let key = it.given(unsafe { key(key_at, key_len) })?;
                // SAFETY: the header promises `value_len` bytes.
                let value = it.given(unsafe { value_at.bytes(value_len, "the value") })?;
                let was_there = changing!($kind, it, object, |map| Ok(map.insert(key, value)?))?;
                replaced.put(c_int::from(was_there));
                Ok(())
            })
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $remove(
            pointer: Handed<Session>,
            object: *const c_void,
            key_at: Source<'_>,
            key_len: usize,
        ) -> Status {
            answer_of(|| {
                let it = session(pointer)?;
                // SAFETY: the header promises `key_len` bytes.
                let key = it.given(unsafe { key(key_at, key_len) })?;
                changing!($kind, it, object, |map| Ok(there(map.remove(key)?)))
            })
        }
    };
}
pub(crate) use keyed;
