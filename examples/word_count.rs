//! Counts words in an ordered map that stays: `word_count POOL [FILE]...`
use std::path::Path;

use firn_heap::{Error, Pool, PoolOptions};
use firn_mapped::{Mapped, MappedOptions};
use firn_structures::Map;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: word_count POOL [FILE]...")?;
    let (medium, options) = (MappedOptions::default(), PoolOptions::new("words"));
    let pool = match Path::new(&path).exists() {
        true => Pool::open(Mapped::open(&path, &medium)?, &options)?,
        false => Pool::create(Mapped::create(&path, 16 << 20, &medium)?, &options)?,
    };
    let mut session = pool.session()?;
    for file in arguments {
        let text = std::fs::read_to_string(&file)?;
        let words: Vec<&str> = text.split_whitespace().collect();
        // A hundred words are one transaction: one fence.
        for batch in words.chunks(100) {
            session.transaction(|tx| {
                let mut map = Map::open_or_create(tx, "words")?;
                for word in batch {
                    let old = map.get(word.as_bytes())?.unwrap_or_default();
                    let count = old.try_into().map_or(0, u64::from_le_bytes) + 1;
                    map.insert(word.as_bytes(), &count.to_le_bytes())?;
                }
                Ok::<_, Error>(())
            })?;
        }
    }
    session.read(|view| {
        let Some(map) = Map::find(view, "words")? else {
            return Ok(());
        };
        for entry in map.read()?.iter() {
            let (word, count) = entry?.to_pair()?;
            let count = count.try_into().map_or(0, u64::from_le_bytes);
            println!("{count:8} {}", String::from_utf8_lossy(&word));
        }
        Ok::<_, Error>(())
    })?;
    drop(session);
    Ok(pool.close()?)
}
