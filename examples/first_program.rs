//! Notes in a pool: each run adds one and prints them all, newest first.
use std::path::Path;

use firn_heap::{Bytes, Error, Pool, PoolOptions, Ref, Stored, View};
use firn_mapped::{Mapped, MappedOptions};

#[derive(Stored)]
#[repr(C)]
struct Note {
    older: Ref<Note>,
    text: Ref<Bytes>,
    number: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or("notes.firn".into());
    let (medium, options) = (MappedOptions::default(), PoolOptions::new("notes"));
    let pool = match Path::new(&path).exists() {
        true => Pool::open(Mapped::open(&path, &medium)?, &options)?,
        false => Pool::create(Mapped::create(&path, 16 << 20, &medium)?, &options)?,
    };
    let mut session = pool.session()?;
    session.transaction(|tx| {
        let older = tx.find_root::<Note>("newest")?;
        let number = older.map_or(1, |note| note.load(Note::NUMBER) + 1);
        let note = tx.alloc(Note { older: Ref::null(), text: Ref::null(), number })?;
        note.link(Note::OLDER, older);
        note.link(Note::TEXT, Some(tx.alloc_bytes(format!("run {number}").as_bytes())?));
        tx.set_root("newest", note) // durable when the transaction returns, or not at all
    })?;
    session.read(|view| {
        let mut next = view.find_root::<Note>("newest")?;
        while let Some(note) = next {
            let text = note.follow(Note::TEXT).map(|t| t.to_vec()).transpose()?.unwrap_or_default();
            println!("{}: {}", note.load(Note::NUMBER), String::from_utf8_lossy(&text));
            next = note.follow(Note::OLDER);
        }
        Ok::<_, Error>(())
    })?;
    drop(session);
    Ok(pool.close()?)
}
