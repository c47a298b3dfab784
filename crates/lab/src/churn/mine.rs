//! The map that entries come to and go from, and the check that it holds no other entries.

use std::path::Path;

use firn_heap::{Target, View};
use firn_mapped::MappedError;
use firn_structures::map::MapRoot;
use firn_tools::{Progress, Store, StoreOptions, ToolError, open_to_change, remove_keys};

use super::ChurnPlan;
use super::entries::PREFIX;
use crate::LabError;

/// The text for a root that refers to nothing known.
const UNKNOWN: &str = "of a type that is not registered";

/// Keys that are collected before they are removed.
const KEYS_AT_ONCE: usize = 4096;

/// Opens the plan's pool, or makes it, with an empty map. Entries that an earlier
/// run left there are removed.
///
/// Errors: as [`Store::open_or_create`]; the root is no map, or one that holds other entries.
pub(super) fn open(plan: &ChurnPlan, progress: &mut dyn Progress) -> Result<Store, LabError> {
    let (path, map, mapped) = (&*plan.pool, &*plan.map, &plan.mapped);
    let options = StoreOptions {
        map: map.to_owned(),
        mapped: mapped.clone(),
        new_domain: plan.new_domain,
        ..StoreOptions::default()
    };
    let pool = match open_to_change(path, mapped, progress) {
        Err(ToolError::Mapped(MappedError::NotFound { .. })) => {
            return Ok(Store::open_or_create(path, &options, progress)?);
        }
        other => other?,
    };
    let mut store = Store::on(pool, path, &options)?;
    match take_over(&mut store, path, map, progress) {
        Ok(()) => Ok(store),
        Err(error) => {
            // Only the refusal is reported.
            let _ = store.close();
            Err(error)
        }
    }
}

fn take_over(
    store: &mut Store,
    path: &Path,
    map: &str,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    refuse_other_kind(store, path, map)?;
    store.make_map()?;
    if let Some(key) = store.foreign_key(PREFIX)? {
        return Err(LabError::ForeignEntries {
            path: path.to_path_buf(),
            root: map.to_owned(),
            key: String::from_utf8_lossy(&key).into_owned(),
        });
    }
    let left = clear(store, progress)?;
    if left > 0 {
        progress.remark(&format!(
            "{}: removed {left} entries that an earlier run left",
            path.display()
        ));
    }
    Ok(())
}

/// The registry tells the root's type: asking for a map would register the map's type.
fn refuse_other_kind(store: &Store, path: &Path, map: &str) -> Result<(), LabError> {
    let error = ToolError::pool(path);
    let mut session = store.pool().session().map_err(&error)?;
    let guard = session.guard();
    let view = guard.view();
    let names = view.root_names().map_err(&error)?;
    if !names.iter().any(|name| name == map) {
        return Ok(());
    }
    match view.root_type_name(map).map_err(&error)?.as_deref() {
        Some(MapRoot::NAME) => Ok(()),
        found => Err(LabError::NoMap {
            path: path.to_path_buf(),
            root: map.to_owned(),
            found: found.map_or_else(|| UNKNOWN.to_owned(), |name| format!("a `{name}`")),
        }),
    }
}

/// Removes every entry. Returns how many there were.
pub(super) fn clear(store: &mut Store, progress: &mut dyn Progress) -> Result<u64, LabError> {
    let mut cleared = 0;
    loop {
        let mut keys = Vec::with_capacity(KEYS_AT_ONCE);
        store.scan(PREFIX, |key, _| {
            keys.push(key.to_vec());
            keys.len() < KEYS_AT_ONCE
        })?;
        if keys.is_empty() {
            return Ok(cleared);
        }
        cleared += remove_keys(store, &keys, progress)?;
    }
}
