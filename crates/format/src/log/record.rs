//! Records: what happened to the pool, in order.
//!
//! ```text
//! u32 bytes of the rest | u8 kind | fields
//!   lines     for each line: its distance from the line before (signed varint) | mask of words |
//!             mask of those that are not zero | these words
//!   reserve   start, bytes (varints, in frames)
//!   discard   start, bytes (varints, in frames)
//!   truncate  length (varint, in frames)
//! ```

use core::ops::Range;

use firn_units::{FRAME_BYTES, LINE_BYTES, WORDS_PER_LINE};

const LINES: u8 = 1;
const RESERVE: u8 = 2;
const DISCARD: u8 = 3;
const TRUNCATE: u8 = 4;
/// Bytes that tell a record's length.
const LENGTH_BYTES: usize = 4;

/// The words of a line that a record holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineWords {
    /// The line's first byte, in bytes from the pool's start.
    pub line: u64,
    /// Which words the record holds, a bit each.
    pub mask: u8,
    /// Their content; zero where the mask has no bit.
    pub words: [u64; WORDS_PER_LINE],
}

/// A record. Ranges and lengths are in bytes, multiples of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// Words got this content.
    Lines(Vec<LineWords>),
    /// The range can be stored to; where it was discarded before, it reads as zeros.
    Reserve(Range<u64>),
    /// The range reads as zeros, and its blocks are given back.
    Discard(Range<u64>),
    /// The pool ends here.
    Truncate(u64),
}

/// Appends records to bytes.
#[derive(Debug)]
pub struct RecordWriter<'a> {
    into: &'a mut Vec<u8>,
    start: usize,
    last: u64,
}

impl<'a> RecordWriter<'a> {
    /// Begins a record of lines. It is there once it is ended.
    pub fn lines(into: &'a mut Vec<u8>) -> Self {
        Self::begin(into, LINES)
    }

    /// Adds words of the line at `line` to a record of lines.
    #[inline]
    pub fn line(&mut self, line: u64, mask: u8, words: &[u64; WORDS_PER_LINE]) {
        let number = line / LINE_BYTES;
        let distance = number.wrapping_sub(self.last) as i64;
        self.last = number;
        put(self.into, (distance << 1 ^ distance >> 63) as u64);
        let mut full = 0;
        for (index, &word) in words.iter().enumerate() {
            full |= u8::from(word != 0) << index;
        }
        full &= mask;
        self.into.extend_from_slice(&[mask, full]);
        for (index, word) in words.iter().enumerate() {
            if full >> index & 1 != 0 {
                self.into.extend_from_slice(&word.to_le_bytes());
            }
        }
    }

    /// Bytes of the record up to now.
    pub fn bytes(&self) -> usize {
        self.into.len() - self.start
    }

    /// Ends the record.
    pub fn end(self) {
        let body = self.into.len() - self.start - LENGTH_BYTES;
        let len = u32::try_from(body).expect("a record is split before it is so long");
        self.into[self.start..][..LENGTH_BYTES].copy_from_slice(&len.to_le_bytes());
    }

    /// Appends a record that is not about lines.
    pub fn append(into: &'a mut Vec<u8>, record: &Record) {
        let range = |kind, range: &Range<u64>, into| {
            let writer = Self::begin(into, kind);
            put(writer.into, range.start / FRAME_BYTES);
            put(writer.into, (range.end - range.start) / FRAME_BYTES);
            writer
        };
        match record {
            Record::Lines(lines) => {
                let mut writer = Self::begin(into, LINES);
                for line in lines {
                    writer.line(line.line, line.mask, &line.words);
                }
                writer
            }
            Record::Reserve(reserved) => range(RESERVE, reserved, into),
            Record::Discard(discarded) => range(DISCARD, discarded, into),
            Record::Truncate(len) => {
                let writer = Self::begin(into, TRUNCATE);
                put(writer.into, len / FRAME_BYTES);
                writer
            }
        }
        .end();
    }

    fn begin(into: &'a mut Vec<u8>, kind: u8) -> Self {
        let start = into.len();
        into.extend_from_slice(&[0; LENGTH_BYTES]);
        into.push(kind);
        Self {
            into,
            start,
            last: 0,
        }
    }
}

/// Takes the first record off `bytes`. `None` if there is no whole one.
pub fn next_record(bytes: &mut &[u8]) -> Option<Record> {
    let (len, rest) = bytes.split_at_checked(LENGTH_BYTES)?;
    let len = u32::from_le_bytes(len.try_into().ok()?) as usize;
    let (mut body, rest) = rest.split_at_checked(len)?;
    let record = decode(&mut body)?;
    *bytes = rest;
    Some(record)
}

fn decode(body: &mut &[u8]) -> Option<Record> {
    let (&kind, fields) = body.split_first()?;
    *body = fields;
    let frames = |body: &mut &[u8]| take(body)?.checked_mul(FRAME_BYTES);
    let range = |body: &mut &[u8]| {
        let start = frames(body)?;
        Some(start..start.checked_add(frames(body)?)?)
    };
    let record = match kind {
        LINES => Record::Lines(decode_lines(body)?),
        RESERVE => Record::Reserve(range(body)?),
        DISCARD => Record::Discard(range(body)?),
        TRUNCATE => Record::Truncate(frames(body)?),
        _ => return None,
    };
    body.is_empty().then_some(record)
}

fn decode_lines(body: &mut &[u8]) -> Option<Vec<LineWords>> {
    let (mut lines, mut last) = (Vec::new(), 0u64);
    while !body.is_empty() {
        let distance = take(body)?;
        let distance = (distance >> 1) as i64 ^ -((distance & 1) as i64);
        last = last.wrapping_add(distance as u64);
        let (&[mask, full], mut rest) = body.split_first_chunk()?;
        let mut words = [0; WORDS_PER_LINE];
        for (index, word) in words.iter_mut().enumerate() {
            if full >> index & 1 != 0 {
                let (bytes, others) = rest.split_first_chunk()?;
                *word = u64::from_le_bytes(*bytes);
                rest = others;
            }
        }
        *body = rest;
        let line = last.checked_mul(LINE_BYTES)?;
        lines.push(LineWords { line, mask, words });
    }
    Some(lines)
}

/// Appends a number, seven bits a byte.
#[inline]
fn put(into: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

fn take(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<Record> {
        let line = |line: u64, mask, first: u64| LineWords {
            line: line * LINE_BYTES,
            mask,
            words: core::array::from_fn(|index| match mask >> index & 1 {
                1 => first * index as u64,
                _ => 0,
            }),
        };
        vec![
            Record::Lines(vec![
                line(5, 0xff, 9),
                line(4, 0b101, u64::MAX / 8),
                line(1 << 40, 0x80, 3),
            ]),
            Record::Lines(Vec::new()),
            Record::Reserve(0..FRAME_BYTES),
            Record::Discard(FRAME_BYTES << 20..(FRAME_BYTES << 20) + 3 * FRAME_BYTES),
            Record::Truncate(77 * FRAME_BYTES),
        ]
    }

    #[test]
    fn records_read_as_they_were_written() {
        let mut bytes = Vec::new();
        for record in &records() {
            RecordWriter::append(&mut bytes, record);
        }
        let mut rest = &bytes[..];
        for record in records() {
            assert_eq!(next_record(&mut rest), Some(record));
        }
        assert_eq!((rest, next_record(&mut rest)), (&[][..], None));
    }

    #[test]
    fn a_record_that_is_cut_is_none() {
        for record in &records() {
            let mut bytes = Vec::new();
            RecordWriter::append(&mut bytes, record);
            for len in 0..bytes.len() {
                let mut cut = &bytes[..len];
                assert_eq!(next_record(&mut cut), None, "{record:?} cut to {len}");
                assert_eq!(cut.len(), len, "nothing is taken");
            }
        }
    }
}
