//! Stores: a transaction's changes of objects.

use firn_format::reference::RefWord;
use firn_media::Medium;
use firn_units::{VirtAddr, WORD_BYTES};

use super::Tx;
use crate::error::Error;
use crate::object::Obj;
use crate::stored::{Bytes, Raw, Ref, Refs, Target};
use crate::value::{Field, Plain, Sink};
use crate::view::View;

/// The words of a new object's body.
pub(crate) struct Body<'a>(pub(crate) &'a mut [u64]);

impl Sink for Body<'_> {
    #[inline]
    fn put_run(&mut self, at: u32, words: &[u64]) {
        self.0[at as usize / 8..][..words.len()].copy_from_slice(words);
    }

    #[inline]
    fn put(&mut self, at: u32, word: u64, mask: u64) {
        let target = &mut self.0[at as usize / 8];
        *target = *target & !mask | word & mask;
    }
}

/// The words of an object's body, stored by a transaction.
struct InTx<'t, M: Medium> {
    tx: Tx<'t, M>,
    body: VirtAddr,
}

impl<M: Medium> Sink for InTx<'_, M> {
    fn put_run(&mut self, at: u32, words: &[u64]) {
        let at = self.body + u64::from(at);
        self.tx.note_stores(at, words.len() as u64 * WORD_BYTES);
        self.tx.state().changes.writes.store_words(at, words);
    }

    #[inline]
    fn put(&mut self, at: u32, word: u64, mask: u64) {
        let at = self.body + u64::from(at);
        let stored = if mask == u64::MAX {
            word
        } else {
            let old = self
                .tx
                .own_word(at)
                .unwrap_or_else(|| self.tx.medium().load_u64(at));
            old & !mask | word & mask
        };
        self.tx.store_word(at, stored);
    }
}

impl<'t, T, M: Medium> Obj<'t, T, Tx<'t, M>> {
    /// Stores a field. A word is the unit: fields that share one belong under one lock.
    #[inline]
    pub fn store<F: Plain>(self, field: Field<T, F>, value: F) {
        let mut sink = InTx {
            tx: self.view(),
            body: self.body(),
        };
        value.encode(&mut sink, field.offset());
    }

    /// Makes a field refer to `to`, or to nothing. The tag becomes zero.
    #[inline]
    pub fn link<U: Target>(self, field: Field<T, Ref<U>>, to: Option<Obj<'t, U, Tx<'t, M>>>) {
        self.link_tagged(field, to, 0);
    }

    /// Makes a field refer to `to` with a tag; only the low four bits of the tag are kept.
    #[inline]
    pub fn link_tagged<U: Target>(
        self,
        field: Field<T, Ref<U>>,
        to: Option<Obj<'t, U, Tx<'t, M>>>,
        tag: u8,
    ) {
        let word = to.map_or(RefWord::NULL, Obj::reference).with_tag(tag);
        self.view()
            .store_reference(self.body() + u64::from(field.offset()), word);
    }
}

impl<'t, T: Target, M: Medium> Obj<'t, Refs<T>, Tx<'t, M>> {
    /// Makes reference `index` refer to `to`, or to nothing.
    ///
    /// Errors: [`Error::BadRange`] beyond the array.
    pub fn set(self, index: usize, to: Option<Obj<'t, T, Tx<'t, M>>>) -> Result<(), Error> {
        let field = self.element(index).ok_or(Error::BadRange {
            at: self.address().0,
            len: (index as u64).saturating_add(1).saturating_mul(WORD_BYTES),
        })?;
        self.link(field, to);
        Ok(())
    }
}

impl<'t, M: Medium> Obj<'t, Bytes, Tx<'t, M>> {
    /// Replaces the bytes from `offset`; the length stays.
    ///
    /// Errors: [`Error::BadRange`] beyond the array's end.
    pub fn overwrite(self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        let len = self.checked_len()?;
        self.overwrite_behind(Self::CONTENT, len, offset, bytes)
    }
}

impl<'t, M: Medium> Obj<'t, Raw, Tx<'t, M>> {
    /// Replaces the bytes from `offset`; the length stays.
    ///
    /// Errors: [`Error::BadRange`] beyond the object's end.
    pub fn overwrite(self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        let len = self.checked_len()?;
        self.overwrite_behind(0, len, offset, bytes)
    }
}

impl<'t, T, M: Medium> Obj<'t, T, Tx<'t, M>> {
    /// Replaces bytes from `offset` of an array of `len` bytes that begins at byte `content` of the body.
    fn overwrite_behind(
        self,
        content: u64,
        len: usize,
        offset: usize,
        bytes: &[u8],
    ) -> Result<(), Error> {
        if offset.checked_add(bytes.len()).is_none_or(|end| end > len) {
            return Err(Error::BadRange {
                at: self.address().0,
                len: bytes.len() as u64,
            });
        }
        self.view()
            .store_range(self.body() + content + offset as u64, bytes);
        Ok(())
    }
}

impl<'t, M: Medium> Tx<'t, M> {
    pub(crate) fn store_at(self, at: VirtAddr, words: &[u64]) {
        for (i, &word) in words.iter().enumerate() {
            self.store_word(at + i as u64 * 8, word);
        }
    }

    /// Stores bytes that contain no references.
    pub(crate) fn store_range(self, at: VirtAddr, bytes: &[u8]) {
        self.note_stores(at, bytes.len() as u64);
        let medium = self.medium();
        self.state()
            .changes
            .writes
            .store_bytes(at, bytes, |word| medium.load_u64(word));
    }
}
