//! What a crash left: content, length and holes of a medium.

use std::collections::BTreeMap;
use std::sync::Arc;

use firn_units::{FRAME_BYTES, LINE_BYTES, VirtAddr, WORD_BYTES};

use crate::memory::cells::{
    LINE_WORDS, Line, PAGE_LINES, PAGE_WORDS, PageWords, index_of, line_of, word_of_cell,
};
use crate::memory::pages::Memory;
use crate::memory::persistence::line_hash;

/// The persistent content of a medium. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Image {
    pub(crate) pages: Arc<BTreeMap<u64, Box<PageWords>>>,
    pub(crate) patches: BTreeMap<u64, Line>,
    pub(crate) len: u64,
    pub(crate) holes: Arc<Vec<u64>>,
    pub(crate) boots: u64,
}

impl Image {
    /// The current content of `memory`.
    pub(crate) fn of(memory: &Memory, boots: u64) -> Self {
        let occupied = memory
            .touched()
            .filter(|(_, page)| page.iter().any(|&word| word != 0));
        Self {
            pages: Arc::new(
                occupied
                    .map(|(number, page)| (number, Box::new(page)))
                    .collect(),
            ),
            patches: BTreeMap::new(),
            len: memory.len(),
            holes: Arc::new(memory.holes()),
            boots,
        }
    }

    /// Puts this image into fresh `memory`.
    pub(crate) fn fill(&self, memory: &Memory) {
        for (number, page) in self.pages.iter() {
            for (cell, word) in page.iter().enumerate().filter(|(_, word)| **word != 0) {
                memory.store(word_of_cell(*number, cell), *word);
            }
        }
        for (line, content) in &self.patches {
            memory.set_line(*line, content);
        }
        memory.set_len(self.len);
        for frame in 0..self.len.div_ceil(FRAME_BYTES) {
            memory.set_backed(frame, true);
        }
        for frame in self.holes.iter() {
            memory.set_backed(*frame, false);
        }
    }

    /// Bytes of the medium.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the medium has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the lines that are not all zeros.
    pub fn occupied_bytes(&self) -> u64 {
        let pages = self.pages.iter();
        let lines = pages.flat_map(|(page, _)| (0..PAGE_LINES).map(move |i| page * PAGE_LINES + i));
        let occupied = lines.filter(|&line| self.line(line) != Line::default());
        occupied.count() as u64 * LINE_BYTES
    }

    /// The word at `at`.
    pub fn load_u64(&self, at: VirtAddr) -> u64 {
        let word = at.bytes() / WORD_BYTES;
        self.line(line_of(word))[index_of(word)]
    }

    /// A hash of content and length.
    pub fn hash(&self) -> u128 {
        let whole = self
            .pages
            .keys()
            .flat_map(|page| page * PAGE_LINES..(page + 1) * PAGE_LINES);
        let unpatched = whole.filter(|line| !self.patches.contains_key(line));
        let lines = unpatched.chain(self.patches.keys().copied());
        let content = lines
            .map(|line| line_hash(line, &self.line(line)))
            .fold(0, |all, one| all ^ one);
        content ^ u128::from(self.len)
    }

    pub(crate) fn set_word(&mut self, word: u64, value: u64) {
        let line = line_of(word);
        let mut content = self.line(line);
        content[index_of(word)] = value;
        self.patches.insert(line, content);
    }

    fn line(&self, line: u64) -> Line {
        if let Some(content) = self.patches.get(&line) {
            return *content;
        }
        let Some(page) = self.pages.get(&(line / PAGE_LINES)) else {
            return Line::default();
        };
        let words = line % PAGE_LINES * LINE_WORDS;
        let mut content = Line::default();
        let (into, mark) = content.split_at_mut(LINE_WORDS as usize);
        into.copy_from_slice(&page[words as usize..][..into.len()]);
        mark[0] = page[(PAGE_WORDS + line % PAGE_LINES) as usize];
        content
    }
}
