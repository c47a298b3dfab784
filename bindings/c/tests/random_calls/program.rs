//! A program that makes random calls, and keeps a model of the pool's content.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::Path;
use std::ptr;

use firn::*;

use crate::calls::{
    BYTES, CONTENT, LEFT, NUMBER, RIGHT, SIZE, alloc, close_pool, close_session, drop_handle,
    expect, expect_null, follow, kept, load, message, name, node, open_pool, store, word,
};

const NODES: usize = 24;
const ROOTS: usize = 4;

#[derive(Clone, Debug, PartialEq)]
struct Node {
    links: [Option<usize>; 2],
    number: u64,
    content: [u8; BYTES],
}

/// The expected content of the pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    nodes: BTreeMap<usize, Node>,
    roots: [Option<usize>; ROOTS],
}

impl Model {
    /// Drops nodes that no root leads to.
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

/// A part of a transaction: the model before it, and whether a changing call in it failed.
pub struct Part {
    before: Model,
    addresses: BTreeMap<usize, *const c_void>,
    failed: Option<Status>,
}

pub struct Program {
    pub random: fastrand::Rng,
    pub pool: Handed<Pool>,
    pub session: Handed<Session>,
    other: Handed<Pool>,
    pub other_session: Handed<Session>,
    pub model: Model,
    /// The addresses of the model's nodes in this operation.
    pub addresses: BTreeMap<usize, *const c_void>,
    pub parts: Vec<Part>,
    pub is_reading: bool,
    pub next_key: usize,
    pub node: In<'static, Type>,
}

impl Program {
    pub fn new(folder: &Path, seed: u64) -> Self {
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
            node: kept(node()),
        }
    }

    pub fn any(&mut self) -> Option<(usize, *const c_void)> {
        let keys: Vec<usize> = self.addresses.keys().copied().collect();
        let key = *keys.get(self.random.usize(0..keys.len().max(1)))?;
        Some((key, self.addresses[&key]))
    }

    pub fn any_or_none(&mut self) -> Option<(usize, *const c_void)> {
        match self.random.bool() {
            true => self.any(),
            false => None,
        }
    }

    pub fn load(&self, object: *const c_void, offset: usize, into: &mut [u8]) -> Status {
        load(self.session, object, offset, into)
    }

    pub fn store(&self, object: *const c_void, offset: usize, bytes: &[u8]) -> Status {
        store(self.session, object, offset, bytes)
    }

    fn root(&self, root: usize) -> *const c_void {
        firn_root(self.session, (&*name(root)).into(), self.node)
    }

    /// Walks the whole pool, and compares it with the model.
    fn compare(&mut self) {
        self.addresses.clear();
        let mut waiting = Vec::new();
        for root in 0..ROOTS {
            let found = self.root(root);
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
            assert_eq!(firn_size(self.session, at), SIZE);
            assert_eq!(firn_is(self.session, at, self.node), 1);
            for (offset, link) in [LEFT, RIGHT].into_iter().zip(node.links) {
                let to = follow(self.session, at, offset);
                match link {
                    Some(link) => waiting.push((link, to)),
                    None => assert!(to.is_null(), "{key}"),
                }
            }
        }
    }

    pub fn is_open(&self) -> bool {
        self.is_reading || !self.parts.is_empty()
    }

    /// Notes that a call to change something has failed.
    pub fn fail(&mut self, status: Status) {
        if let Some(part) = self.parts.last_mut() {
            part.failed.get_or_insert(status);
        }
    }

    fn begin(&mut self) {
        expect(firn_tx_begin(self.session), Status::Ok);
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
                expect(firn_tx_commit(self.session), Status::Ok);
                false
            }
            (true, Some(status)) => {
                expect(firn_tx_commit(self.session), status);
                true
            }
            (false, _) => {
                expect(firn_tx_abort(self.session), Status::Ok);
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
                    true => firn_link(self.session, at, side * 8, to),
                    false => self.store(at, side * 8, &word(self.session, to).to_ne_bytes()),
                };
                expect(status, Status::Ok);
                self.model.nodes.get_mut(&key).unwrap().links[side] = target.map(|(key, _)| key);
            }
            _ => {
                let root = self.random.usize(0..ROOTS);
                let to = target.map_or(ptr::null(), |(_, at)| at);
                let status = firn_set_root(self.session, (&*name(root)).into(), to);
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
        front[..8].copy_from_slice(&word(self.session, to).to_ne_bytes());
        front[NUMBER..CONTENT].copy_from_slice(&number.to_ne_bytes());
        let at = alloc(self.session, self.node, &front);
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

    pub fn step(&mut self) {
        match self.random.u32(0..40) {
            _ if self.is_reading => {
                self.compare();
                if self.random.bool() {
                    self.misuse();
                }
                expect(firn_read_end(self.session), Status::Ok);
                self.is_reading = false;
                self.addresses.clear();
            }
            0..3 if self.parts.is_empty() => {
                expect(firn_read_begin(self.session), Status::Ok);
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

    /// The transaction sees its own changes.
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
            firn_collect(self.pool, (&how).into(), Out::NULL),
            Status::Ok,
        );
    }

    /// A handle leads to its object across a collection.
    fn keep(&mut self) {
        expect(firn_read_begin(self.session), Status::Ok);
        self.compare();
        let Some((key, at)) = self.any() else {
            expect(firn_read_end(self.session), Status::Ok);
            return;
        };
        let strong = firn_handle_strong(self.session, at);
        assert!(!strong.is_null(), "{}", message());
        expect(firn_read_end(self.session), Status::Ok);
        expect_null(firn_handle_get(self.session, strong), Status::Misuse);
        self.collect();
        expect(firn_read_begin(self.session), Status::Ok);
        let found = firn_handle_get(self.session, strong);
        let mut number = [0; 8];
        expect(self.load(found, NUMBER, &mut number), Status::Ok);
        assert_eq!(u64::from_ne_bytes(number), self.model.nodes[&key].number);
        expect(firn_read_end(self.session), Status::Ok);
        drop_handle(strong);
        assert!(firn_handle_get(self.session, strong).is_null());
        self.addresses.clear();
    }

    pub fn close(&mut self) {
        while !self.parts.is_empty() {
            self.end(false);
        }
        if self.is_reading {
            expect(firn_read_end(self.session), Status::Ok);
            self.is_reading = false;
        }
        let mut findings = 99;
        let checked = firn_check(self.pool, None, ptr::null_mut(), (&mut findings).into());
        expect(checked, Status::Ok);
        assert_eq!(findings, 0);
        for (session, pool) in [(self.session, self.pool), (self.other_session, self.other)] {
            expect(close_session(session), Status::Ok);
            expect(close_session(session), Status::Misuse);
            expect(close_pool(pool), Status::Ok);
            expect(close_pool(pool), Status::Misuse);
        }
    }
}
