//! The command line.

use std::path::PathBuf;

use crate::libpmemobj::Countable;

/// What to type.
pub const USAGE: &str = "\
usage: firn-rivals libpmemobj --dir DIR [--library libpmemobj.so.1]
       firn-rivals lmdb --dir DIR
       firn-rivals redb --dir DIR
libpmemobj answers single operations, count_fences, and phases of list, avl, red_black, string_swap
and btree; lmdb and redb answer phases of map. Requests are lines of JSON on standard input.";

/// Who is to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RivalName {
    /// Intel's library of persistent objects.
    Libpmemobj,
    /// A database in a mapped file.
    Lmdb,
    /// A database in a file, in Rust.
    Redb,
}

/// What the process is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Answer lines.
    Serve,
    /// Run this operation under the eyes of the process that started this one.
    Traced(Countable),
}

/// The command line, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// Who.
    pub rival: RivalName,
    /// Where pool files go.
    pub dir: PathBuf,
    /// What is given to dlopen.
    pub library: String,
    /// What to do.
    pub task: Task,
}

impl Arguments {
    /// Reads the words after the program's name.
    ///
    /// Errors: a sentence that names the word that is wrong or missing.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut words = words.into_iter();
        let rival = match words.next().as_deref() {
            Some("libpmemobj") => RivalName::Libpmemobj,
            Some("lmdb") => RivalName::Lmdb,
            Some("redb") => RivalName::Redb,
            Some(other) => {
                return Err(format!(
                    "unknown rival '{other}', known: libpmemobj, lmdb, redb"
                ));
            }
            None => return Err("no rival named".into()),
        };
        let is_library = rival == RivalName::Libpmemobj;
        let (mut dir, mut library, mut task) = (None, "libpmemobj.so.1".into(), Task::Serve);
        while let Some(word) = words.next() {
            let value = words
                .next()
                .ok_or_else(|| format!("'{word}' needs a value"))?;
            match word.as_str() {
                "--dir" => dir = Some(PathBuf::from(value)),
                "--library" if is_library => library = value,
                "--traced" if is_library => {
                    let of = Countable::named(&value);
                    task = Task::Traced(of.ok_or_else(|| format!("unknown operation '{value}'"))?);
                }
                _ => return Err(format!("unknown option '{word}'")),
            }
        }
        let dir = dir.ok_or("--dir is missing")?;
        Ok(Self {
            rival,
            dir,
            library,
            task,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn the_problem_is_named() {
        assert_eq!(parse("libpmemobj").unwrap_err(), "--dir is missing");
        assert_eq!(
            parse("libpmemobj --dir").unwrap_err(),
            "'--dir' needs a value"
        );
        assert!(parse("ralloc --dir /tmp").unwrap_err().contains("'ralloc'"));
        assert!(parse("libpmemobj --traced x").unwrap_err().contains("'x'"));
    }

    #[test]
    fn each_rival_is_known_and_takes_its_own_options() {
        for (name, rival) in [
            ("libpmemobj", RivalName::Libpmemobj),
            ("lmdb", RivalName::Lmdb),
            ("redb", RivalName::Redb),
        ] {
            assert_eq!(parse(&format!("{name} --dir /d")).unwrap().rival, rival);
            assert!(USAGE.contains(&format!("firn-rivals {name} ")));
        }
        let refused = parse("redb --dir /d --library x").unwrap_err();
        assert_eq!(refused, "unknown option '--library'");
    }

    #[test]
    fn a_traced_operation_is_found_by_its_name() {
        let arguments = parse("libpmemobj --dir /d --traced tx_empty").unwrap();
        assert_eq!(
            arguments.task,
            Task::Traced(Countable::named("tx_empty").unwrap())
        );
        assert_eq!(arguments.library, "libpmemobj.so.1");
    }
}
