//! Do the examples run, twice on one pool, and say what they should?

use std::path::Path;
use std::process::Command;

use firn_heap::{Pool, PoolOptions, Ref, Tx};
use firn_mapped::{Mapped, MappedOptions};

fn run(program: &str, arguments: &[&Path]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_first_program_remembers_its_runs() {
    let dir = tempfile::tempdir().unwrap();
    let pool = dir.path().join("notes.firn");
    let program = env!("CARGO_BIN_EXE_first_program");
    assert_eq!(run(program, &[&pool]), "run 1\n");
    assert_eq!(run(program, &[&pool]), "run 2\nrun 1\n");
}

#[test]
fn words_are_counted_across_runs() {
    let dir = tempfile::tempdir().unwrap();
    let (pool, text) = (dir.path().join("words.firn"), dir.path().join("text"));
    std::fs::write(&text, "snow ice snow firn").unwrap();
    let program = env!("CARGO_BIN_EXE_word_count");
    run(program, &[&pool, &text]);
    let counted = run(program, &[&pool, &text]);
    assert_eq!(counted, "       2 firn\n       2 ice\n       4 snow\n");
}

#[test]
fn contacts_are_added_deleted_and_backed_up() {
    let dir = tempfile::tempdir().unwrap();
    let (pool, copy) = (dir.path().join("contacts.firn"), dir.path().join("copy"));
    let program = env!("CARGO_BIN_EXE_contacts");
    let contacts = |pool: &Path, what: &[&str]| {
        let what = what.iter().map(Path::new);
        let arguments: Vec<&Path> = [pool].into_iter().chain(what).collect();
        run(program, &arguments)
    };
    for name in ["Ada", "Bo", "Cy"] {
        contacts(&pool, &["add", name]);
    }
    assert_eq!(contacts(&pool, &["list"]), "Cy\nBo\nAda\n");
    contacts(&pool, &["back-up", copy.to_str().unwrap()]);
    contacts(&pool, &["delete", "Bo"]);
    contacts(&pool, &["delete", "Cy"]);
    assert_eq!(contacts(&pool, &["list"]), "Ada\n");
    assert_eq!(contacts(&copy, &["list"]), "Cy\nBo\nAda\n");
    let refused = Command::new(program)
        .args([pool.to_str().unwrap(), "delete", "Bo"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(told, "contacts: no contact is called Bo\n");
}

/// The types of the program's first release.
mod first_release {
    use firn_heap::{Bytes, Ref, Stored};

    #[derive(Stored)]
    #[repr(C)]
    #[firn(name = "contact")]
    pub struct Contact {
        pub next: Ref<Contact>,
        pub name: Ref<Bytes>,
    }

    #[derive(Stored)]
    #[repr(C)]
    pub struct Book {
        pub first: Ref<Contact>,
    }
}

#[test]
fn contacts_of_the_first_release_are_migrated() {
    use first_release::{Book, Contact};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("contacts.firn");
    let file = Mapped::create(&path, 16 << 20, &MappedOptions::default()).unwrap();
    let pool = Pool::create(file, &PoolOptions::new("contacts")).unwrap();
    let write = |tx: Tx<'_, Mapped>| {
        let (next, name) = (Ref::null(), Ref::null());
        let contact = tx.alloc(Contact { next, name })?;
        contact.link(Contact::NAME, Some(tx.alloc_bytes(b"Ada")?));
        let book = tx.alloc(Book { first: Ref::null() })?;
        book.link(Book::FIRST, Some(contact));
        tx.set_root("book", book)
    };
    pool.session().unwrap().transaction(write).unwrap();
    pool.close().unwrap();
    let program = env!("CARGO_BIN_EXE_contacts");
    let list: [&Path; 2] = [&path, Path::new("list")];
    assert_eq!(run(program, &list), "Ada\n");
}

#[test]
fn the_readme_shows_the_first_program() {
    let readme = include_str!("../../README.md");
    let program = include_str!("../first_program.rs");
    let (_, program) = program.split_once('\n').unwrap();
    assert!(
        readme.contains(program),
        "README.md shows another program than the one that runs"
    );
}
