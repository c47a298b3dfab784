//! Correct calls of the library: requirements that Rust cannot check are checked or stated here.

use std::ffi::{CStr, CString, c_void};
use std::path::Path;

use firn::*;

/// The program's layout of a node: two references, a number, bytes.
pub const LEFT: usize = 0;
pub const RIGHT: usize = 8;
pub const NUMBER: usize = 16;
pub const CONTENT: usize = 24;
pub const BYTES: usize = 40;
pub const SIZE: usize = CONTENT + BYTES;

/// The type of a node.
pub fn node() -> Type {
    let field = |name: &'static CStr, offset| Field {
        name: name.into(),
        offset,
        bytes: 8,
    };
    let fields = [field(c"left", LEFT as u32), field(c"right", RIGHT as u32)];
    Type::new(c"node".into(), 1, SIZE as u32, Vec::from(fields).leak())
}

/// A type at an address that stays valid for good.
pub fn kept(of: Type) -> In<'static, Type> {
    let kept: &'static Type = Box::leak(Box::new(of));
    kept.into()
}

pub fn name(root: usize) -> CString {
    CString::new(format!("root {root}")).unwrap()
}

pub fn message() -> String {
    // SAFETY: the header promises text, valid until the next call, and it is copied.
    let text = unsafe { CStr::from_ptr(firn_last_message()) };
    text.to_str().unwrap().to_owned()
}

#[track_caller]
pub fn expect(found: Status, wanted: Status) {
    assert_eq!(found, wanted, "{}", message());
    if wanted != Status::Ok {
        assert_eq!(firn_last_status(), wanted);
        assert!(message().len() > 10, "{wanted:?} without a message");
    }
}

/// Expects that a call which returns a pointer was refused with this status.
#[track_caller]
pub fn expect_null(found: *const c_void, wanted: Status) {
    assert!(found.is_null());
    expect(firn_last_status(), wanted);
}

/// The pool in a file, made if it is missing, and a session.
pub fn open_pool(path: &Path) -> (Handed<Pool>, Handed<Session>) {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    let mut pool = Handed::NULL;
    let mut status = firn_open((&*path).into(), In::NULL, (&mut pool).into());
    if status == Status::NotFound {
        status = firn_create((&*path).into(), In::NULL, (&mut pool).into());
    }
    expect(status, Status::Ok);
    (pool, open_session(pool))
}

pub fn open_session(pool: Handed<Pool>) -> Handed<Session> {
    let mut session = Handed::NULL;
    expect(firn_session_open(pool, (&mut session).into()), Status::Ok);
    session
}

pub fn close_session(session: Handed<Session>) -> Status {
    // SAFETY: it is this thread's session, and the thread is in no other call; a closed session is refused.
    unsafe { firn_session_close(session) }
}

pub fn close_pool(pool: Handed<Pool>) -> Status {
    // SAFETY: no test closes a pool while another thread is in a call with it; a closed pool is refused.
    unsafe { firn_close(pool) }
}

pub fn drop_handle(handle: Handed<Handle>) {
    // SAFETY: no test has a handle on two threads; null is no handle.
    unsafe { firn_handle_drop(handle) }
}

pub fn load(
    session: Handed<Session>,
    object: *const c_void,
    offset: usize,
    into: &mut [u8],
) -> Status {
    // SAFETY: the room is that of the borrowed slice, and as long as the call is told.
    let room = unsafe { Room::new(into.as_mut_ptr().cast()) };
    firn_load(session, object, offset, room, into.len())
}

pub fn store(
    session: Handed<Session>,
    object: *const c_void,
    offset: usize,
    bytes: &[u8],
) -> Status {
    // SAFETY: the bytes are those of the borrowed slice, and as many as the call is told.
    let source = unsafe { Source::new(bytes.as_ptr().cast()) };
    firn_store(session, object, offset, source, bytes.len())
}

/// Frees a pointer to no object, so that nothing leads there.
pub fn free(session: Handed<Session>, at: *const c_void) -> Status {
    // SAFETY: no test frees an object: the call is refused.
    unsafe { firn_free(session, at) }
}

/// A new node that begins with these bytes.
pub fn alloc(session: Handed<Session>, of: In<'static, Type>, front: &[u8; SIZE]) -> *const c_void {
    // SAFETY: every type whose objects the tests allocate has `SIZE` bytes.
    let source = unsafe { Source::new(front.as_ptr().cast()) };
    firn_alloc(session, of, source)
}

/// The target of the reference at a byte of an object.
pub fn follow(session: Handed<Session>, object: *const c_void, offset: usize) -> *const c_void {
    let field = object.wrapping_byte_add(offset).cast::<u64>();
    // SAFETY: the field is one of an object of the pool, which is mapped.
    firn_follow_slow(session, unsafe { In::new(field) })
}

/// The word that refers to an object, computed as in the header.
pub fn word(session: Handed<Session>, object: *const c_void) -> u64 {
    // SAFETY: a session begins with the header's structure of four words, and stays until the program closes it.
    let [objects, _, bits, _] = unsafe { *session.pointer().cast::<[u64; 4]>() };
    match object.is_null() {
        true => 0,
        false => bits | (object.addr() as u64 - objects),
    }
}
