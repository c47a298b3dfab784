//! Contacts that outlive the program: adds, deletes, lists and backs up; and a type that has changed since its release.
//!
//! `contacts POOL add NAME | delete NAME | list | back-up FILE`
use std::error::Error as AnyError;
use std::process::ExitCode;

use firn_heap::{Bytes, CopyIdentity, Error, Pool, PoolOptions, Ref, Stored, View};
use firn_mapped::{Mapped, MappedError, MappedOptions};

/// The type as it was in the first release of the program.
#[derive(Stored)]
#[repr(C)]
#[firn(name = "contact")]
struct FirstContact {
    next: Ref<Contact>,
    name: Ref<Bytes>,
}

#[derive(Stored)]
#[repr(C)]
#[firn(name = "contact", version = 2)]
struct Contact {
    next: Ref<Contact>,
    name: Ref<Bytes>,
    favourite: u64,
}

#[derive(Stored)]
#[repr(C)]
struct Book {
    first: Ref<Contact>,
}

/// The lock that guards the list. The program chooses what each number means.
const LIST: u64 = 1;

fn open(path: &str) -> Result<Pool<Mapped>, Box<dyn AnyError>> {
    let (on, options) = (MappedOptions::default(), PoolOptions::new("contacts"));
    let pool = match Mapped::open(path, &on) {
        Ok(file) => Pool::open(file, &options)?,
        Err(MappedError::NotFound { .. }) => {
            Pool::create(Mapped::create(path, 16 << 20, &on)?, &options)?
        }
        Err(error) => return Err(error.into()),
    };
    // Converts the objects of pools that the first release wrote, before a session is opened. Other pools have none.
    pool.migrate(|old: FirstContact| Contact {
        next: old.next,
        name: old.name,
        favourite: 0,
    })?;
    Ok(pool)
}

fn add(pool: &Pool<Mapped>, name: &str) -> Result<(), Error> {
    pool.session()?.transaction(|tx| {
        // Held to the transaction's end. Other writers of the list wait for it; readers never see it half done.
        tx.lock_exclusive(LIST)?;
        let book = match tx.find_root::<Book>("book")? {
            Some(book) => book,
            None => {
                let book = tx.alloc(Book { first: Ref::null() })?;
                tx.set_root("book", book)?;
                book
            }
        };
        let contact = tx.alloc(Contact {
            next: Ref::null(),
            name: Ref::null(),
            favourite: 0,
        })?;
        contact.link(Contact::NEXT, book.follow(Book::FIRST));
        contact.link(Contact::NAME, Some(tx.alloc_bytes(name.as_bytes())?));
        book.link(Book::FIRST, Some(contact));
        Ok(())
    })
}

/// Takes a contact off the list. Nothing refers to it then, so its space is free after the next collection or trace.
fn delete(pool: &Pool<Mapped>, name: &str) -> Result<bool, Error> {
    pool.session()?.transaction(|tx| {
        tx.lock_exclusive(LIST)?;
        let Some(book) = tx.find_root::<Book>("book")? else {
            return Ok(false);
        };
        let mut before = None::<firn_heap::Obj<'_, Contact, _>>;
        let mut next = book.follow(Book::FIRST);
        while let Some(contact) = next {
            let after = contact.follow(Contact::NEXT);
            let known = contact.follow(Contact::NAME);
            if known.map(|bytes| bytes.to_vec()).transpose()?.as_deref() == Some(name.as_bytes()) {
                match before {
                    None => book.link(Book::FIRST, after),
                    Some(before) => before.link(Contact::NEXT, after),
                }
                return Ok(true);
            }
            (before, next) = (Some(contact), after);
        }
        Ok(false)
    })
}

fn list(pool: &Pool<Mapped>) -> Result<(), Error> {
    pool.session()?.read(|view| {
        let _shared = view.lock_shared(LIST)?;
        let book = view.find_root::<Book>("book")?;
        let mut next = book.and_then(|book| book.follow(Book::FIRST));
        while let Some(contact) = next {
            if let Some(name) = contact.follow(Contact::NAME) {
                println!("{}", String::from_utf8_lossy(&name.to_vec()?));
            }
            next = contact.follow(Contact::NEXT);
        }
        Ok(())
    })
}

/// Writes a compacted copy while other threads work on, between two of their operations.
fn back_up(pool: &Pool<Mapped>, file: &str) -> Result<(), Box<dyn AnyError>> {
    let file = Mapped::create(file, 0, &MappedOptions::default())?;
    let copy = pool.copy_into(file, CopyIdentity::Kept, &mut |_| {})?;
    Ok(copy.close()?)
}

fn run(arguments: &[&str]) -> Result<(), Box<dyn AnyError>> {
    let [path, what @ ..] = arguments else {
        return Err("usage: contacts POOL add NAME | delete NAME | list | back-up FILE".into());
    };
    let pool = open(path)?;
    match what {
        ["add", name] => add(&pool, name)?,
        ["delete", name] => {
            if !delete(&pool, name)? {
                return Err(format!("no contact is called {name}").into());
            }
        }
        ["list"] => list(&pool)?,
        ["back-up", file] => back_up(&pool, file)?,
        _ => return Err("add NAME, delete NAME, list or back-up FILE is asked for".into()),
    }
    Ok(pool.close()?)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("contacts: {error}");
            ExitCode::FAILURE
        }
    }
}
