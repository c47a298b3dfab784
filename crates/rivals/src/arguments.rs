//! The command line.

use std::path::PathBuf;

use crate::libpmemobj::Countable;

/// The usage message.
pub const USAGE: &str = "\
usage: firn-rivals libpmemobj --dir DIR [--library libpmemobj.so.1]
       firn-rivals lmdb --dir DIR
       firn-rivals redb --dir DIR
       firn-rivals sqlite --dir DIR
       firn-rivals fjall --dir DIR
libpmemobj answers single operations, count_fences, defrag, and phases and two_threads of list, avl,
red_black, string_swap and btree; lmdb and redb answer phases of map; all databases answer durable_insert,
durable_reopen and durable_volume. Requests are lines of JSON on standard input.";

/// The system to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RivalName {
    /// Intel's library of persistent objects.
    Libpmemobj,
    /// A database in a mapped file.
    Lmdb,
    /// A database in a file, in Rust.
    Redb,
    /// A database in a file with a log.
    Sqlite,
    /// A log-structured database, in Rust.
    Fjall,
}

const RIVALS: [(&str, RivalName); 5] = [
    ("libpmemobj", RivalName::Libpmemobj),
    ("lmdb", RivalName::Lmdb),
    ("redb", RivalName::Redb),
    ("sqlite", RivalName::Sqlite),
    ("fjall", RivalName::Fjall),
];

impl RivalName {
    /// The names of all rivals.
    pub fn names() -> Vec<&'static str> {
        RIVALS.iter().map(|(name, _)| *name).collect()
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let found = RIVALS.iter().find(|(_, rival)| *rival == self);
        found.expect("every rival has a name").0
    }

    fn named(name: &str) -> Result<Self, String> {
        let found = RIVALS.iter().find(|(known, _)| *known == name);
        let found = found.map(|(_, rival)| *rival);
        found.ok_or_else(|| {
            let known = Self::names().join(", ");
            format!("unknown rival '{name}', known: {known}")
        })
    }
}

/// The process's task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Answer lines.
    Serve,
    /// Run this operation while the process that started this one traces it.
    Traced(Countable),
}

/// The parsed command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// The rival.
    pub rival: RivalName,
    /// The folder of pool files.
    pub dir: PathBuf,
    /// The name passed to dlopen.
    pub library: String,
    /// The task.
    pub task: Task,
}

impl Arguments {
    /// Parses the words after the program's name.
    ///
    /// Errors: a sentence that names the word that is wrong or missing.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut words = words.into_iter();
        let rival = RivalName::named(&words.next().ok_or("no rival named")?)?;
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
        for (name, rival) in RIVALS {
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
