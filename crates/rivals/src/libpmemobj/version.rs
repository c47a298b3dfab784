//! Which libpmemobj was opened.

use std::path::{Path, PathBuf};

/// The text before the version in the library's file.
const MARK: &[u8] = b"src version: ";

/// The version in the file mapped into this process, or 'unknown' if there is none.
pub fn of_mapped_library() -> String {
    let version = mapped_path()
        .and_then(|path| std::fs::read(path).ok())
        .and_then(|file| stated(&file));
    version.unwrap_or_else(|| "unknown".into())
}

fn mapped_path() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines()
        .filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])))
        .find(|path| {
            path.file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b"libpmemobj.so"))
        })
        .map(Path::to_path_buf)
}

fn stated(file: &[u8]) -> Option<String> {
    let at = file.windows(MARK.len()).position(|window| window == MARK)? + MARK.len();
    let text = file[at..].split(|byte| *byte == 0).next()?;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_ends_at_the_nul() {
        assert_eq!(
            super::stated(b"\0src version: 1.12.1\0libpmemobj").as_deref(),
            Some("1.12.1")
        );
        assert_eq!(super::stated(b"libpmemobj"), None);
    }
}
