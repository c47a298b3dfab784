//! Calls that are wrong in the state in which they are made.

use std::ffi::{CString, c_void};
use std::ptr;

use firn::*;

use crate::calls::{
    NUMBER, SIZE, close_pool, close_session, drop_handle, expect, expect_null, free, kept, message,
    node,
};
use crate::program::Program;

const WORD: [u8; 8] = [7; 8];

impl Program {
    /// Makes a call that is wrong in this state.
    pub fn misuse(&mut self) {
        let in_transaction = !self.parts.is_empty();
        let object = self.any().map_or(ptr::null(), |(_, at)| at);
        match self.random.u32(0..16) {
            0 => expect(firn_read_begin(Handed::NULL), Status::Invalid),
            1 if !self.is_open() => self.end_nothing(),
            2 if in_transaction && !object.is_null() => self.leave_the_object(object),
            2 if in_transaction => {}
            3 if in_transaction && !object.is_null() => {
                // A part of a reference, and a reference to nothing.
                expect(self.store(object, 4, &WORD), Status::Invalid);
                self.fail(Status::Invalid);
                expect(self.store(object, 0, &WORD), Status::NotAllocated);
            }
            4 if in_transaction && !object.is_null() => {
                let link = |offset| firn_link(self.session, object, offset, object);
                expect(link(NUMBER), Status::Invalid);
                expect(link(usize::MAX - 7), Status::Invalid);
                self.fail(Status::Invalid);
            }
            5 if in_transaction => self.use_no_object(object),
            6 => {
                let outside = if in_transaction {
                    Status::Invalid
                } else {
                    Status::Misuse
                };
                expect(self.store(ptr::null(), 0, &WORD), outside);
                if in_transaction {
                    self.fail(Status::Invalid);
                }
            }
            7 => self.use_on_another_thread(),
            8 => self.register_what_is_wrong(),
            9 if in_transaction && !object.is_null() => self.name_another_pools(object),
            9 => {}
            10 => {
                expect(close_pool(self.pool), Status::Busy);
                drop_handle(Handed::NULL);
            }
            11 if self.is_open() => self.close_too_early(),
            12 if in_transaction => self.allocate_too_much(),
            13 if self.is_reading => {
                expect(firn_tx_begin(self.session), Status::Misuse);
                expect(self.store(object, NUMBER, &WORD), Status::Misuse);
            }
            14 if in_transaction && !object.is_null() => self.take_for_an_array(object),
            _ => {
                expect(firn_exit(self.pool), Status::Misuse);
                expect(firn_sync(Handed::NULL), Status::Invalid);
            }
        }
    }

    /// The object belongs to another pool, or there is none.
    fn name_another_pools(&self, object: *const c_void) {
        expect(firn_tx_begin(self.other_session), Status::Ok);
        let named = firn_set_root(self.other_session, c"r".into(), object);
        expect(named, Status::NotAllocated);
        expect(firn_tx_commit(self.other_session), Status::NotAllocated);
    }

    fn close_too_early(&self) {
        expect(close_session(self.session), Status::Misuse);
        let long = CString::new("x".repeat(1000)).unwrap();
        let found = firn_root(self.session, (&*long).into(), In::NULL);
        assert!(found.is_null());
    }

    fn end_nothing(&mut self) {
        expect(firn_read_end(self.session), Status::Misuse);
        expect(firn_tx_commit(self.session), Status::Misuse);
        expect(firn_tx_abort(self.session), Status::Misuse);
        let made = firn_alloc(self.session, self.node, Source::NULL);
        expect_null(made, Status::Misuse);
    }

    /// Beyond the object's end, and far beyond it.
    fn leave_the_object(&mut self, object: *const c_void) {
        for offset in [SIZE - 4, SIZE, usize::MAX - 3, 1 << 40] {
            expect(self.store(object, offset, &WORD), Status::Invalid);
            let mut into = [0; 8];
            expect(self.load(object, offset, &mut into), Status::Invalid);
        }
        self.fail(Status::Invalid);
    }

    /// Addresses at which no object begins: between objects, outside the pool, and in the program's own memory.
    fn use_no_object(&mut self, object: *const c_void) {
        let word = WORD;
        let strange = [
            object.wrapping_byte_add(16),
            object.wrapping_byte_add(3),
            (&raw const word).cast(),
        ];
        for at in strange {
            if self.addresses.values().any(|&known| known == at) || object.is_null() {
                continue;
            }
            expect(self.store(at, NUMBER, &word), Status::NotAllocated);
            self.fail(Status::NotAllocated);
            expect(free(self.session, at), Status::NotAllocated);
        }
    }

    fn use_on_another_thread(&self) {
        let session = self.session.pointer().expose_provenance();
        let status = std::thread::spawn(move || {
            // SAFETY: it was handed out, and stays open: its thread waits for this one, which is refused.
            let session = unsafe { Handed::new(ptr::with_exposed_provenance_mut(session)) };
            (firn_read_begin(session), message())
        });
        let (status, told) = status.join().unwrap();
        assert_eq!(status, Status::Misuse);
        assert!(told.contains("another thread"), "{told}");
    }

    fn register_what_is_wrong(&self) {
        let (mut shorter, mut too_short, mut nameless, mut no_text) =
            (node(), node(), node(), node());
        shorter.size = SIZE as u32 - 8;
        (too_short.size, too_short.version) = (4, 9);
        nameless.name = Text::NULL;
        no_text.name = c"not \xff text".into();
        let mut no_table = node().without_table();
        no_table.name = c"new".into();
        let register = |of| firn_register(self.pool, kept(of));
        expect(register(shorter), Status::WrongType);
        for of in [too_short, nameless, no_text, no_table] {
            expect(register(of), Status::Invalid);
        }
    }

    fn allocate_too_much(&mut self) {
        let alloc = |len| firn_alloc_sized(self.session, self.node, Source::NULL, 0, len);
        let huge = alloc(usize::MAX);
        assert!(huge.is_null());
        let status = firn_last_status();
        assert!(
            [Status::TooLarge, Status::NoSpace].contains(&status),
            "{status:?}"
        );
        expect_null(alloc(SIZE - 1), Status::Invalid);
        self.fail(status);
    }

    fn take_for_an_array(&mut self, object: *const c_void) {
        assert!(firn_bytes(self.session, object, Out::NULL).is_null());
        let found = firn_refs_get(self.session, object, 0);
        expect_null(found, Status::WrongType);
        let set = firn_refs_set(self.session, object, 0, object);
        expect(set, Status::WrongType);
        self.fail(Status::WrongType);
    }
}
