//! How sizes and pools are written on the command line.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};

/// A number of bytes, or no limit.
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub Option<u64>);

/// Reads a number of bytes, or `none`.
pub fn limit(text: &str) -> Result<Bytes, String> {
    match text {
        "none" => Ok(Bytes(None)),
        size => bytes(size).map(|bytes| Bytes(Some(bytes))).map_err(|_| {
            format!("`{size}` is neither a number of bytes, as 4096 or 64M, nor `none`")
        }),
    }
}

/// A number of bytes: K is 1024 of them.
pub fn bytes(text: &str) -> Result<u64, String> {
    let binary = parse_size::Config::new().with_binary();
    let bytes = binary.parse_size(text);
    bytes.map_err(|_| format!("`{text}` is no number of bytes, as 4096 or 64M"))
}

/// A pool's file. Standard input is none.
pub fn pool_file() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|name| match name.to_str() {
        Some("-") => {
            Err("a pool is a file, and standard input is none; for a file of that name, `./-`")
        }
        _ => Ok(PathBuf::from(name)),
    })
}
