//! Random calls of the C interface, right and wrong: whatever a program calls, it is told what the header says, what
//! it did right is there, and nothing else is.
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "one reason for all: pointers are null, from the library, or lead to what the header asks for; wrong \
              ones are what the header says is refused"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, c_void};
use std::path::Path;
use std::ptr;

use firn::*;
use firn_format::geometry::{SUPERBLOCK_BYTES, SUPERBLOCKS};
use firn_format::superblock::{StoredDomain, Superblock};

/// The round that failed, to be run alone: its seed is in the message.
const SEEDS: std::ops::Range<u64> = 0..60;
const STEPS: usize = 220;
const NODES: usize = 24;
const ROOTS: usize = 4;
const BYTES: usize = 40;

/// What the program calls a node: two references, a number, bytes.
const LEFT: usize = 0;
const RIGHT: usize = 8;
const NUMBER: usize = 16;
const CONTENT: usize = 24;
const SIZE: usize = CONTENT + BYTES;

struct Tables {
    fields: [Field; 2],
    names: [CString; 3],
}

impl Tables {
    fn new() -> Box<Self> {
        let names = ["node", "left", "right"].map(|name| CString::new(name).unwrap());
        let field = |name: &CString, offset| Field {
            name: name.as_ptr(),
            offset,
            bytes: 8,
        };
        let fields = [
            field(&names[1], LEFT as u32),
            field(&names[2], RIGHT as u32),
        ];
        Box::new(Self { fields, names })
    }

    fn node(&self) -> Type {
        Type {
            name: self.names[0].as_ptr(),
            version: 1,
            size: SIZE as u32,
            field_count: 2,
            fields: self.fields.as_ptr(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Node {
    links: [Option<usize>; 2],
    number: u64,
    content: [u8; BYTES],
}

/// What the pool holds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    nodes: BTreeMap<usize, Node>,
    roots: [Option<usize>; ROOTS],
}

impl Model {
    /// Forgets what no root leads to.
    fn trim(&mut self) {
        let mut reached = BTreeMap::new();
        let mut waiting: Vec<usize> = self.roots.iter().flatten().copied().collect();
        while let Some(key) = waiting.pop() {
            if let Some(node) = self.nodes.get(&key)
                && reached.insert(key, node.clone()).is_none()
            {
                waiting.extend(node.links.iter().flatten());
            }
        }
        self.nodes = reached;
    }
}

/// A part of a transaction: what was there before it, and whether a call in it failed that changes something.
struct Part {
    before: Model,
    addresses: BTreeMap<usize, *const c_void>,
    failed: Option<Status>,
}

struct Program {
    random: fastrand::Rng,
    pool: *mut Pool,
    session: *mut Session,
    other: *mut Pool,
    other_session: *mut Session,
    model: Model,
    /// Where the model's nodes are, in this operation.
    addresses: BTreeMap<usize, *const c_void>,
    parts: Vec<Part>,
    is_reading: bool,
    next_key: usize,
    tables: Box<Tables>,
    node: Box<Type>,
}

fn name(root: usize) -> CString {
    CString::new(format!("root {root}")).unwrap()
}

fn message() -> String {
    // SAFETY: it is text, valid until the next call.
    let text = unsafe { CStr::from_ptr(firn_last_message()) };
    text.to_str().unwrap().to_owned()
}

#[track_caller]
fn expect(found: Status, wanted: Status) {
    assert_eq!(found, wanted, "{}", message());
    if wanted != Status::Ok {
        assert_eq!(firn_last_status(), wanted);
        assert!(message().len() > 10, "{wanted:?} without a message");
    }
}

/// A call that yields a pointer was refused so.
#[track_caller]
fn expect_null(found: *const c_void, wanted: Status) {
    assert!(found.is_null());
    expect(firn_last_status(), wanted);
}

fn open_pool(path: &Path) -> (*mut Pool, *mut Session) {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    let (mut pool, mut session) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: pointers lead to what the header asks for.
    unsafe {
        let mut status = firn_open(path.as_ptr(), ptr::null(), &mut pool);
        if status == Status::NotFound {
            status = firn_create(path.as_ptr(), ptr::null(), &mut pool);
        }
        expect(status, Status::Ok);
        expect(firn_session_open(pool, &mut session), Status::Ok);
    }
    (pool, session)
}

impl Program {
    fn new(folder: &Path, seed: u64) -> Self {
        let tables = Tables::new();
        let node = Box::new(tables.node());
        let (pool, session) = open_pool(&folder.join("pool"));
        let (other, other_session) = open_pool(&folder.join("other"));
        Self {
            random: fastrand::Rng::with_seed(seed),
            pool,
            session,
            other,
            other_session,
            model: Model::default(),
            addresses: BTreeMap::new(),
            parts: Vec::new(),
            is_reading: false,
            next_key: 0,
            tables,
            node,
        }
    }

    fn type_of(&self) -> *const Type {
        &raw const *self.node
    }

    fn any(&mut self) -> Option<(usize, *const c_void)> {
        let keys: Vec<usize> = self.addresses.keys().copied().collect();
        let key = *keys.get(self.random.usize(0..keys.len().max(1)))?;
        Some((key, self.addresses[&key]))
    }

    fn any_or_none(&mut self) -> Option<(usize, *const c_void)> {
        match self.random.bool() {
            true => self.any(),
            false => None,
        }
    }

    /// The word that refers to an object, as the header makes it.
    fn word(&self, object: *const c_void) -> u64 {
        // SAFETY: the header's structure begins a session.
        let [objects, _, bits, _] = unsafe { *self.session.cast::<[u64; 4]>() };
        match object.is_null() {
            true => 0,
            false => bits | (object.addr() as u64 - objects),
        }
    }

    fn load(&self, object: *const c_void, offset: usize, into: &mut [u8]) -> Status {
        unsafe {
            firn_load(
                self.session,
                object,
                offset,
                into.as_mut_ptr().cast(),
                into.len(),
            )
        }
    }

    fn store(&self, object: *const c_void, offset: usize, bytes: &[u8]) -> Status {
        unsafe {
            firn_store(
                self.session,
                object,
                offset,
                bytes.as_ptr().cast(),
                bytes.len(),
            )
        }
    }

    /// Goes through everything, and compares it with the model.
    fn compare(&mut self) {
        self.addresses.clear();
        let mut waiting = Vec::new();
        for root in 0..ROOTS {
            let found = unsafe { firn_root(self.session, name(root).as_ptr(), self.type_of()) };
            match self.model.roots[root] {
                Some(key) => waiting.push((key, found)),
                None => expect_null(found, Status::NotFound),
            }
        }
        while let Some((key, at)) = waiting.pop() {
            assert!(!at.is_null(), "{key}: {}", message());
            if let Some(&known) = self.addresses.get(&key) {
                assert_eq!(known, at, "{key} is at two places");
                continue;
            }
            self.addresses.insert(key, at);
            let node = self.model.nodes[&key].clone();
            let mut number = [0; 8];
            expect(self.load(at, NUMBER, &mut number), Status::Ok);
            assert_eq!(u64::from_ne_bytes(number), node.number, "{key}");
            let mut content = [0; BYTES];
            expect(self.load(at, CONTENT, &mut content), Status::Ok);
            assert_eq!(content, node.content, "{key}");
            assert_eq!(unsafe { firn_size(self.session, at) }, SIZE);
            assert_eq!(unsafe { firn_is(self.session, at, self.type_of()) }, 1);
            for (offset, link) in [LEFT, RIGHT].into_iter().zip(node.links) {
                let field = at.wrapping_byte_add(offset).cast::<u64>();
                let to = unsafe { firn_follow_slow(self.session, field) };
                match link {
                    Some(link) => waiting.push((link, to)),
                    None => assert!(to.is_null(), "{key}"),
                }
            }
        }
    }

    fn is_open(&self) -> bool {
        self.is_reading || !self.parts.is_empty()
    }

    /// A call that changes something has failed.
    fn fail(&mut self, status: Status) {
        if let Some(part) = self.parts.last_mut() {
            part.failed.get_or_insert(status);
        }
    }

    fn begin(&mut self) {
        expect(unsafe { firn_tx_begin(self.session) }, Status::Ok);
        if self.parts.is_empty() {
            self.compare();
        }
        self.parts.push(Part {
            before: self.model.clone(),
            addresses: self.addresses.clone(),
            failed: None,
        });
    }

    fn end(&mut self, commits: bool) {
        let part = self.parts.pop().unwrap();
        let rolls_back = match (commits, part.failed) {
            (true, None) => {
                expect(unsafe { firn_tx_commit(self.session) }, Status::Ok);
                false
            }
            (true, Some(status)) => {
                expect(unsafe { firn_tx_commit(self.session) }, status);
                true
            }
            (false, _) => {
                expect(unsafe { firn_tx_abort(self.session) }, Status::Ok);
                true
            }
        };
        if rolls_back {
            (self.model, self.addresses) = (part.before, part.addresses);
        }
        if self.parts.is_empty() {
            self.model.trim();
            self.addresses.clear();
        }
    }

    fn change(&mut self) {
        let (number, target) = (self.random.u64(..), self.any_or_none());
        match self.random.u32(0..12) {
            0..4 if self.model.nodes.len() < NODES => self.allocate(number, target),
            0..6 => {
                let Some((key, at)) = self.any() else { return };
                expect(self.store(at, NUMBER, &number.to_ne_bytes()), Status::Ok);
                self.model.nodes.get_mut(&key).unwrap().number = number;
            }
            6 => {
                let Some((key, at)) = self.any() else { return };
                let from = self.random.usize(0..BYTES);
                let len = self.random.usize(0..=BYTES - from);
                let bytes: Vec<u8> = (0..len).map(|_| self.random.u8(..)).collect();
                expect(self.store(at, CONTENT + from, &bytes), Status::Ok);
                let node = self.model.nodes.get_mut(&key).unwrap();
                node.content[from..from + len].copy_from_slice(&bytes);
            }
            7 | 8 => {
                let Some((key, at)) = self.any() else { return };
                let side = self.random.usize(0..2);
                let to = target.map_or(ptr::null(), |(_, at)| at);
                let status = match self.random.bool() {
                    true => unsafe { firn_link(self.session, at, side * 8, to) },
                    false => self.store(at, side * 8, &self.word(to).to_ne_bytes()),
                };
                expect(status, Status::Ok);
                self.model.nodes.get_mut(&key).unwrap().links[side] = target.map(|(key, _)| key);
            }
            _ => {
                let root = self.random.usize(0..ROOTS);
                let to = target.map_or(ptr::null(), |(_, at)| at);
                let status = unsafe { firn_set_root(self.session, name(root).as_ptr(), to) };
                if target.is_none() && self.model.roots[root].is_none() {
                    expect(status, Status::NotFound);
                    self.fail(Status::NotFound);
                } else {
                    expect(status, Status::Ok);
                    self.model.roots[root] = target.map(|(key, _)| key);
                }
            }
        }
    }

    fn allocate(&mut self, number: u64, target: Option<(usize, *const c_void)>) {
        let mut front = [0; SIZE];
        let to = target.map_or(ptr::null(), |(_, at)| at);
        front[..8].copy_from_slice(&self.word(to).to_ne_bytes());
        front[NUMBER..CONTENT].copy_from_slice(&number.to_ne_bytes());
        let at = unsafe { firn_alloc(self.session, self.type_of(), front.as_ptr().cast()) };
        assert!(!at.is_null(), "{}", message());
        let key = self.next_key;
        self.next_key += 1;
        let links = [target.map(|(key, _)| key), None];
        let content = [0; BYTES];
        self.model.nodes.insert(
            key,
            Node {
                links,
                number,
                content,
            },
        );
        self.addresses.insert(key, at);
    }

    /// A call that is wrong here.
    fn misuse(&mut self) {
        let in_transaction = !self.parts.is_empty();
        let outside = if in_transaction {
            Status::Invalid
        } else {
            Status::Misuse
        };
        let object = self.any().map_or(ptr::null(), |(_, at)| at);
        let word = [7u8; 8];
        match self.random.u32(0..16) {
            0 => expect(unsafe { firn_read_begin(ptr::null_mut()) }, Status::Invalid),
            1 if !self.is_open() => {
                expect(unsafe { firn_read_end(self.session) }, Status::Misuse);
                expect(unsafe { firn_tx_commit(self.session) }, Status::Misuse);
                expect(unsafe { firn_tx_abort(self.session) }, Status::Misuse);
                expect_null(
                    unsafe { firn_alloc(self.session, self.type_of(), ptr::null()) },
                    Status::Misuse,
                );
            }
            2 if in_transaction => {
                // Behind the object's end, and from far behind it.
                for offset in [SIZE - 4, SIZE, usize::MAX - 3, 1 << 40] {
                    if object.is_null() {
                        return;
                    }
                    expect(self.store(object, offset, &word), Status::Invalid);
                    let mut into = [0; 8];
                    expect(self.load(object, offset, &mut into), Status::Invalid);
                }
                self.fail(Status::Invalid);
            }
            3 if in_transaction && !object.is_null() => {
                // A part of a reference, and a reference to nothing.
                expect(self.store(object, 4, &word), Status::Invalid);
                self.fail(Status::Invalid);
                expect(self.store(object, 0, &word), Status::NotAllocated);
            }
            4 if in_transaction && !object.is_null() => {
                expect(
                    unsafe { firn_link(self.session, object, NUMBER, object) },
                    Status::Invalid,
                );
                expect(
                    unsafe { firn_link(self.session, object, usize::MAX - 7, object) },
                    Status::Invalid,
                );
                self.fail(Status::Invalid);
            }
            5 if in_transaction => {
                // Not where an object begins: between, outside, and in the program's own memory.
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
                    expect(unsafe { firn_free(self.session, at) }, Status::NotAllocated);
                }
            }
            6 => {
                expect(self.store(ptr::null(), 0, &word), outside);
                if in_transaction {
                    self.fail(Status::Invalid);
                }
            }
            7 => {
                let session = self.session.expose_provenance();
                let status = std::thread::spawn(move || {
                    let session = ptr::with_exposed_provenance_mut::<Session>(session);
                    (unsafe { firn_read_begin(session) }, message())
                });
                let (status, told) = status.join().unwrap();
                assert_eq!(status, Status::Misuse);
                assert!(told.contains("another thread"), "{told}");
            }
            8 => {
                let mut copy = Type {
                    size: SIZE as u32 - 8,
                    ..self.tables.node()
                };
                expect(
                    unsafe { firn_register(self.pool, &copy) },
                    Status::WrongType,
                );
                copy = Type {
                    size: 4,
                    version: 9,
                    ..self.tables.node()
                };
                expect(unsafe { firn_register(self.pool, &copy) }, Status::Invalid);
                copy = Type {
                    name: ptr::null(),
                    ..self.tables.node()
                };
                expect(unsafe { firn_register(self.pool, &copy) }, Status::Invalid);
                copy = Type {
                    name: c"not \xff text".as_ptr(),
                    ..self.tables.node()
                };
                expect(unsafe { firn_register(self.pool, &copy) }, Status::Invalid);
                copy = Type {
                    fields: ptr::null(),
                    name: c"new".as_ptr(),
                    ..self.tables.node()
                };
                expect(unsafe { firn_register(self.pool, &copy) }, Status::Invalid);
            }
            9 => {
                // It is another pool's object, or no object there.
                if in_transaction && !object.is_null() {
                    expect(unsafe { firn_tx_begin(self.other_session) }, Status::Ok);
                    expect(
                        unsafe { firn_set_root(self.other_session, c"r".as_ptr(), object) },
                        Status::NotAllocated,
                    );
                    expect(
                        unsafe { firn_tx_commit(self.other_session) },
                        Status::NotAllocated,
                    );
                }
            }
            10 => {
                expect(unsafe { firn_close(self.pool) }, Status::Busy);
                expect(
                    unsafe {
                        firn_handle_drop(ptr::null_mut());
                        Status::Ok
                    },
                    Status::Ok,
                );
            }
            11 if self.is_open() => {
                expect(unsafe { firn_session_close(self.session) }, Status::Misuse);
                let long = CString::new("x".repeat(1000)).unwrap();
                let found = unsafe { firn_root(self.session, long.as_ptr(), ptr::null()) };
                assert!(found.is_null());
            }
            12 if in_transaction => {
                let huge = unsafe {
                    firn_alloc_sized(self.session, self.type_of(), ptr::null(), 0, usize::MAX)
                };
                assert!(huge.is_null());
                let status = firn_last_status();
                assert!(
                    [Status::TooLarge, Status::NoSpace].contains(&status),
                    "{status:?}"
                );
                self.fail(status);
                let short = unsafe {
                    firn_alloc_sized(self.session, self.type_of(), ptr::null(), 0, SIZE - 1)
                };
                expect_null(short, Status::Invalid);
            }
            13 if self.is_reading => {
                expect(unsafe { firn_tx_begin(self.session) }, Status::Misuse);
                expect(self.store(object, NUMBER, &word), Status::Misuse);
            }
            14 if in_transaction && !object.is_null() => {
                assert!(unsafe { firn_bytes(self.session, object, ptr::null_mut()) }.is_null());
                expect_null(
                    unsafe { firn_refs_get(self.session, object, 0) },
                    Status::WrongType,
                );
                expect(
                    unsafe { firn_refs_set(self.session, object, 0, object) },
                    Status::WrongType,
                );
                self.fail(Status::WrongType);
            }
            _ => {
                expect(unsafe { firn_exit(self.pool) }, Status::Misuse);
                expect(unsafe { firn_sync(ptr::null_mut()) }, Status::Invalid);
            }
        }
    }

    fn step(&mut self) {
        match self.random.u32(0..40) {
            _ if self.is_reading => {
                self.compare();
                if self.random.bool() {
                    self.misuse();
                }
                expect(unsafe { firn_read_end(self.session) }, Status::Ok);
                self.is_reading = false;
                self.addresses.clear();
            }
            0..3 if self.parts.is_empty() => {
                expect(unsafe { firn_read_begin(self.session) }, Status::Ok);
                self.is_reading = true;
            }
            3 if self.parts.is_empty() => self.collect(),
            4 if self.parts.is_empty() => self.keep(),
            5 if self.parts.len() < 4 => self.begin(),
            6 if !self.parts.is_empty() => {
                let commits = self.random.u32(0..3) > 0;
                self.end(commits);
            }
            7 | 8 => self.misuse(),
            9 if !self.parts.is_empty() => self.compare_within(),
            _ if self.parts.is_empty() => self.begin(),
            _ => self.change(),
        }
    }

    /// What the transaction sees is what it did.
    fn compare_within(&mut self) {
        let (model, addresses) = (self.model.clone(), self.addresses.clone());
        self.compare();
        for (key, at) in &self.addresses {
            assert_eq!(addresses[key], *at);
        }
        (self.model, self.addresses) = (model, addresses);
    }

    fn collect(&mut self) {
        let how = Collecting {
            trigger: 0.0,
            target: 1.0,
            pages: 1,
            least_bytes: 0,
            interval_us: 0,
        };
        expect(
            unsafe { firn_collect(self.pool, &how, ptr::null_mut()) },
            Status::Ok,
        );
    }

    /// A handle leads to its object across a collection.
    fn keep(&mut self) {
        expect(unsafe { firn_read_begin(self.session) }, Status::Ok);
        self.compare();
        let Some((key, at)) = self.any() else {
            expect(unsafe { firn_read_end(self.session) }, Status::Ok);
            return;
        };
        let strong = unsafe { firn_handle_strong(self.session, at) };
        assert!(!strong.is_null(), "{}", message());
        expect(unsafe { firn_read_end(self.session) }, Status::Ok);
        expect_null(
            unsafe { firn_handle_get(self.session, strong) },
            Status::Misuse,
        );
        self.collect();
        expect(unsafe { firn_read_begin(self.session) }, Status::Ok);
        let found = unsafe { firn_handle_get(self.session, strong) };
        let mut number = [0; 8];
        expect(self.load(found, NUMBER, &mut number), Status::Ok);
        assert_eq!(u64::from_ne_bytes(number), self.model.nodes[&key].number);
        expect(unsafe { firn_read_end(self.session) }, Status::Ok);
        unsafe { firn_handle_drop(strong) };
        assert!(unsafe { firn_handle_get(self.session, strong) }.is_null());
        self.addresses.clear();
    }

    fn close(&mut self) {
        while !self.parts.is_empty() {
            self.end(false);
        }
        if self.is_reading {
            expect(unsafe { firn_read_end(self.session) }, Status::Ok);
            self.is_reading = false;
        }
        let mut findings = 99;
        unsafe {
            let checked = firn_check(self.pool, None, ptr::null_mut(), &mut findings);
            expect(checked, Status::Ok);
            assert_eq!(findings, 0);
            for (session, pool) in [(self.session, self.pool), (self.other_session, self.other)] {
                expect(firn_session_close(session), Status::Ok);
                expect(firn_session_close(session), Status::Misuse);
                expect(firn_close(pool), Status::Ok);
                expect(firn_close(pool), Status::Misuse);
            }
        }
    }
}

#[test]
fn whatever_is_called_is_answered() {
    for seed in SEEDS {
        let folder = tempfile::tempdir().unwrap();
        let played = std::panic::catch_unwind(|| {
            let mut model = Model::default();
            let mut next_key = 0;
            for round in 0..3 {
                let mut program = Program::new(folder.path(), seed * 3 + round);
                (program.model, program.next_key) = (model, next_key);
                for _ in 0..STEPS {
                    program.step();
                }
                program.close();
                (model, next_key) = (program.model, program.next_key);
            }
        });
        if let Err(payload) = played {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(payload);
        }
    }
}

/// A pool says in its superblock what keeps it from losing what was stored.
#[test]
fn the_domain_that_a_program_asks_for_is_the_one_that_it_gets() {
    let folder = tempfile::tempdir().unwrap();
    let asked = [
        (0, StoredDomain::Process),
        (1, StoredDomain::Adr),
        (2, StoredDomain::Eadr),
    ];
    for (domain, stored) in asked {
        let path = folder.path().join(format!("{domain}"));
        let text = CString::new(path.to_str().unwrap()).unwrap();
        let options = Options {
            domain,
            ..Options::default()
        };
        let mut pool = ptr::null_mut();
        unsafe {
            expect(firn_create(text.as_ptr(), &options, &mut pool), Status::Ok);
            expect(firn_close(pool), Status::Ok);
        }
        let file = std::fs::read(&path).unwrap();
        let newest = SUPERBLOCKS
            .into_iter()
            .filter_map(|at| {
                let bytes = &file[at.0 as usize..][..SUPERBLOCK_BYTES as usize];
                Superblock::decode(bytes.try_into().unwrap(), at).ok()
            })
            .max_by_key(|superblock| superblock.generation);
        assert_eq!(newest.unwrap().domain, stored);
    }
    let options = Options {
        domain: 3,
        ..Options::default()
    };
    let refused = unsafe { firn_create(ptr::null(), &options, &mut ptr::null_mut()) };
    expect(refused, Status::Invalid);
}

#[test]
fn a_new_lock_is_no_other_structures() {
    let folder = tempfile::tempdir().unwrap();
    let (pool, session) = open_pool(&folder.path().join("pool"));
    let locks: BTreeSet<u64> = (0..1_000)
        .map(|_| unsafe { firn_new_lock(session) })
        .collect();
    assert_eq!(locks.len(), 1_000);
    assert_eq!(unsafe { firn_new_lock(ptr::null_mut()) }, 0);
    expect(firn_last_status(), Status::Invalid);
    expect(unsafe { firn_session_close(session) }, Status::Ok);
    expect(unsafe { firn_close(pool) }, Status::Ok);
}

#[test]
fn a_copy_is_in_use_while_its_original_is() {
    let folder = tempfile::tempdir().unwrap();
    let [path, copy] = ["pool", "copy"].map(|name| folder.path().join(name));
    let close = |(pool, session)| unsafe {
        expect(firn_session_close(session), Status::Ok);
        expect(firn_close(pool), Status::Ok);
    };
    close(open_pool(&path));
    std::fs::copy(&path, &copy).unwrap();
    let original = open_pool(&path);
    let text = CString::new(copy.to_str().unwrap()).unwrap();
    let mut pool = ptr::null_mut();
    let refused = unsafe { firn_open(text.as_ptr(), ptr::null(), &mut pool) };
    expect(refused, Status::InUse);
    close(original);
    close(open_pool(&copy));
}

#[test]
fn a_word_that_held_something_else_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (pool, session) = open_pool(&folder.path().join("pool"));
    let tables = Tables::new();
    let node = tables.node();
    let content = [0_u64, 0, 7, 0, 0, 0, 0, 0];
    unsafe {
        expect(firn_tx_begin(session), Status::Ok);
        let object = firn_alloc(session, &node, content.as_ptr().cast());
        expect(firn_set_root(session, name(0).as_ptr(), object), Status::Ok);
        expect(firn_tx_commit(session), Status::Ok);
        expect(firn_read_begin(session), Status::Ok);
        let object = firn_root(session, name(0).as_ptr(), &node);
        let mut seen = 6;
        let mut exchange =
            |desired| firn_compare_exchange(session, object, NUMBER, &mut seen, desired);
        expect(exchange(8), Status::Conflict);
        expect(exchange(9), Status::Ok);
        expect(exchange(10), Status::Conflict);
        assert_eq!(seen, 9);
        expect(firn_read_end(session), Status::Ok);
        expect(firn_session_close(session), Status::Ok);
        expect(firn_close(pool), Status::Ok);
    }
}

/// Two may hold a lock for reading; then neither gets it for writing.
#[test]
fn a_lock_that_a_transaction_has_taken_for_reading_keeps_writers_out() {
    const LOCK: u64 = 5;
    let folder = tempfile::tempdir().unwrap();
    let (pool, session) = open_pool(&folder.path().join("pool"));
    expect(unsafe { firn_tx_begin(session) }, Status::Ok);
    expect(unsafe { firn_lock_shared(session, LOCK) }, Status::Ok);
    let address = pool.expose_provenance();
    let other = std::thread::spawn(move || unsafe {
        let mut session = ptr::null_mut();
        let pool = ptr::with_exposed_provenance_mut::<Pool>(address);
        expect(firn_session_open(pool, &mut session), Status::Ok);
        expect(firn_tx_begin(session), Status::Ok);
        expect(firn_lock_shared(session, LOCK), Status::Ok);
        expect(firn_lock_exclusive(session, LOCK), Status::Conflict);
        expect(firn_tx_abort(session), Status::Ok);
        expect(firn_session_close(session), Status::Ok);
    });
    other.join().unwrap();
    expect(unsafe { firn_lock_exclusive(session, LOCK) }, Status::Ok);
    expect(unsafe { firn_tx_commit(session) }, Status::Ok);
    expect(unsafe { firn_session_close(session) }, Status::Ok);
    expect(unsafe { firn_close(pool) }, Status::Ok);
}
