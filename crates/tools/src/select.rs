//! Deleting many entries: those that are named, or a fraction of all, chosen by a seed.

use fastrand::Rng;

use crate::{Progress, Store, ToolError};

/// Keys of a transaction.
const BATCH_KEYS: usize = 256;

/// Deletes the `fraction` of all entries that `seed` chooses, rounded to whole entries. In equal maps, equal seeds
/// choose equal entries. Returns the number deleted.
///
/// Errors: a fraction that is none; see [`Store::remove_all`]. Source: selection sampling (Knuth, TAOCP 2, algorithm
/// 3.4.2 S).
pub fn delete_fraction(
    store: &mut Store,
    fraction: f64,
    seed: u64,
    progress: &mut dyn Progress,
) -> Result<u64, ToolError> {
    if !(0.0..=1.0).contains(&fraction) {
        return Err(ToolError::Range {
            what: "the fraction to delete",
            range: "between 0 and 1",
            found: fraction.to_string(),
        });
    }
    let mut left = store.len()?;
    let mut wanted = (left as f64 * fraction).round() as u64;
    let mut rng = Rng::with_seed(seed);
    let (mut chosen, mut deleted) = (Vec::with_capacity(BATCH_KEYS), 0);
    progress.begin("deleting", Some(wanted));
    // Deleting entries behind a scan does not disturb it.
    let mut scan = store.all();
    while wanted > 0 {
        let Some(key) = store.next_key(&mut scan)? else {
            break;
        };
        if rng.u64(0..left.max(1)) < wanted {
            chosen.push(key);
            wanted -= 1;
        }
        left = left.saturating_sub(1);
        if chosen.len() == BATCH_KEYS {
            deleted += remove_batch(store, &mut chosen, progress)?;
        }
    }
    deleted += remove_batch(store, &mut chosen, progress)?;
    progress.end();
    Ok(deleted)
}

fn remove_batch(
    store: &mut Store,
    chosen: &mut Vec<Vec<u8>>,
    progress: &mut dyn Progress,
) -> Result<u64, ToolError> {
    let there = store.remove_all(chosen)?;
    progress.advance(chosen.len() as u64);
    chosen.clear();
    Ok(there.iter().filter(|&&there| there).count() as u64)
}

/// Removes keys, many in a transaction. Returns how many were there.
///
/// Errors: see [`Store::remove_all`].
pub fn remove_keys<K: AsRef<[u8]>>(
    store: &mut Store,
    keys: &[K],
    progress: &mut dyn Progress,
) -> Result<u64, ToolError> {
    progress.begin("deleting", Some(keys.len() as u64));
    let mut deleted = 0;
    for keys in keys.chunks(BATCH_KEYS) {
        let there = store.remove_all(keys)?;
        deleted += there.iter().filter(|&&there| there).count() as u64;
        progress.advance(keys.len() as u64);
    }
    progress.end();
    Ok(deleted)
}
