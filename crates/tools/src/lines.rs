//! Entries as lines that preserve every byte: `firn scan` prints them and `firn load` reads them.
//!
//! A line of text is the key, a tab and the value. In both, a backslash begins an escape: `\\`, `\t`, `\n`, `\r`,
//! `\0`, and `\xHH` for a byte that is another control character or not UTF-8. A line of JSON is an object with `key`
//! and `value`; if either is not UTF-8, it is called `key_hex` or `value_hex` instead, with two digits per byte.
//!
//! No line of JSON has a tab, and every line of text has one, so a reader can tell them apart.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::Entry;

/// Appends a line of text, without its end.
pub fn text_line(key: &[u8], value: &[u8], into: &mut Vec<u8>) {
    escape(key, into);
    into.push(b'\t');
    escape(value, into);
}

/// Appends a line of JSON, without its end.
pub fn json_line(key: &[u8], value: &[u8], into: &mut Vec<u8>) {
    into.push(b'{');
    json_field("key", key, into);
    into.push(b',');
    json_field("value", value, into);
    into.push(b'}');
}

/// Appends a field of a JSON object.
pub fn json_field(name: &str, bytes: &[u8], into: &mut Vec<u8>) {
    let (suffix, text) = match core::str::from_utf8(bytes) {
        Ok(text) => ("", Cow::Borrowed(text)),
        Err(_) => (
            HEX,
            bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        ),
    };
    into.extend_from_slice(format!("\"{name}{suffix}\":").as_bytes());
    // A string can always be written to memory.
    let _ = serde_json::to_writer(into, &text);
}

const HEX: &str = "_hex";

/// Appends bytes as text without tabs and line ends.
pub fn escape(bytes: &[u8], into: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '\\' => into.extend_from_slice(br"\\"),
                '\t' => into.extend_from_slice(br"\t"),
                '\n' => into.extend_from_slice(br"\n"),
                '\r' => into.extend_from_slice(br"\r"),
                '\0' => into.extend_from_slice(br"\0"),
                control if control.is_ascii_control() => escape_byte(control as u8, into),
                other => into.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        chunk
            .invalid()
            .iter()
            .for_each(|&byte| escape_byte(byte, into));
    }
}

fn escape_byte(byte: u8, into: &mut Vec<u8>) {
    into.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
}

/// Parses a line of text or of JSON, with or without the newline at its end.
///
/// Errors: what is wrong with it, to be printed after the line's number.
pub fn parse(line: &[u8]) -> Result<Entry, String> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    match line.iter().position(|&byte| byte == b'\t') {
        Some(tab) => Ok(Entry {
            key: unescape(&line[..tab])?,
            value: unescape(&line[tab + 1..])?,
        }),
        None if line.first() == Some(&b'{') => parse_json(line),
        None => Err(NO_TABULATOR.to_owned()),
    }
}

const NO_TABULATOR: &str = "has no tabulator between key and value";

/// Parses a line of text in which a backslash is an ordinary character.
///
/// Errors: as [`parse`].
pub fn parse_raw(line: &[u8]) -> Result<Entry, String> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let tab = line.iter().position(|&byte| byte == b'\t');
    let tab = tab.ok_or(NO_TABULATOR)?;
    Ok(Entry {
        key: line[..tab].to_vec(),
        value: line[tab + 1..].to_vec(),
    })
}

fn unescape(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        bytes.extend_from_slice(&rest[..at]);
        let (byte, len) = match &rest[at + 1..] {
            [b'\\', ..] => (b'\\', 2),
            [b't', ..] => (b'\t', 2),
            [b'n', ..] => (b'\n', 2),
            [b'r', ..] => (b'\r', 2),
            [b'0', ..] => (0, 2),
            [b'x', high, low, ..] => match hex(*high, *low) {
                Some(byte) => (byte, 4),
                None => return Err(BAD_ESCAPE.to_owned()),
            },
            _ => return Err(BAD_ESCAPE.to_owned()),
        };
        bytes.push(byte);
        rest = &rest[at + len..];
    }
    bytes.extend_from_slice(rest);
    Ok(bytes)
}

const BAD_ESCAPE: &str = "has a backslash that begins none of \\\\ \\t \\n \\r \\0 \\xHH; write \\\\ for a \
                          backslash, or load with --raw";

fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    Some((digit(high)? * 16 + digit(low)?) as u8)
}

fn parse_json(line: &[u8]) -> Result<Entry, String> {
    let fields: Map<String, Value> =
        serde_json::from_slice(line).map_err(|error| format!("is no JSON object: {error}"))?;
    let entry = Entry {
        key: json_bytes(&fields, "key")?,
        value: json_bytes(&fields, "value")?,
    };
    match fields.len() {
        2 => Ok(entry),
        _ => Err("has more than a key and a value".to_owned()),
    }
}

fn json_bytes(fields: &Map<String, Value>, name: &str) -> Result<Vec<u8>, String> {
    if let Some(Value::String(text)) = fields.get(name) {
        return Ok(text.clone().into_bytes());
    }
    let missing = || format!("has no string `{name}` and no `{name}{HEX}` of two digits a byte");
    let Some(Value::String(text)) = fields.get(&format!("{name}{HEX}")) else {
        return Err(missing());
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|&[high, low]| hex(high, low)).collect();
    match bytes {
        Some(bytes) if rest.is_empty() => Ok(bytes),
        _ => Err(missing()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &[u8], value: &[u8]) -> Entry {
        Entry {
            key: key.to_vec(),
            value: value.to_vec(),
        }
    }

    #[test]
    fn lines_split_at_their_first_tabulator() {
        assert_eq!(parse(b"a\tb\n"), Ok(entry(b"a", b"b")));
        assert_eq!(parse(b"a\tb\tc"), Ok(entry(b"a", b"b\tc")));
        assert_eq!(parse(b"\t\n"), Ok(entry(b"", b"")));
        assert_eq!(parse_raw(b"a\\t\tb\\\n"), Ok(entry(b"a\\t", b"b\\")));
        for line in [&b"a b\n"[..], b"\n", b"a\\tb"] {
            assert_eq!(parse(line), Err(NO_TABULATOR.to_owned()));
        }
    }

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        let pieces = all.chunks(1).chain(all.chunks(7)).chain([
            &all[..],
            b"",
            "\u{fffd}ä".as_bytes(),
            b"{",
            b"\\x41",
        ]);
        for (number, piece) in pieces.enumerate() {
            let value: Vec<u8> = piece.iter().rev().copied().collect();
            for write in [text_line, json_line] {
                let mut line = Vec::new();
                write(piece, &value, &mut line);
                assert!(core::str::from_utf8(&line).is_ok() && !line.contains(&b'\n'));
                line.push(b'\n');
                assert_eq!(parse(&line), Ok(entry(piece, &value)), "{number}: {line:?}");
            }
        }
    }

    #[test]
    fn what_is_no_line_is_refused_with_the_reason() {
        for (line, reason) in [
            (&b"a\\q\tb"[..], "backslash"),
            (b"a\tb\\", "backslash"),
            (b"a\tb\\x4", "backslash"),
            (b"a\tb\\xg0", "backslash"),
            (b"{\"key\":\"a\"}", "`value`"),
            (b"{\"key_hex\":\"abc\",\"value\":\"\"}", "`key_hex`"),
            (b"{\"key\":\"a\",\"value\":\"b\",\"more\":1}", "more than"),
            (b"{\"key\":1,\"value\":\"\"}", "`key`"),
            (b"{", "JSON"),
        ] {
            let refused = parse(line).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
