//! Compacted copies: backups, upgrades, and salvage.

use std::path::Path;

use firn_heap::{CopyError, CopyIdentity, CopyProgress, OpenError, Pool};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::Domain;
use serde::Serialize;

use crate::any::{Torn, open_any};
use crate::check::findings;
use crate::convert::look;
use crate::{Progress, ToolError, stat};

/// The result of a copy.
#[derive(Clone, Debug, Serialize)]
pub struct CopyReport {
    /// Objects in the copy.
    pub objects: u64,
    /// Their bytes as requested.
    pub live_bytes: u64,
    /// Length of the pool's file.
    pub file_bytes: u64,
    /// Length of the copy's file.
    pub new_file_bytes: u64,
    /// What a salvaged pool lacks, and what in it made no sense, in sentences. Empty for any other pool.
    pub lost: Vec<String>,
}

/// Copies the live objects of the pool in `path` into a new pool in the file `new`, packed and checked. A pool whose
/// programs store addresses that no type declares is copied as it is. The copy has the identity of the pool, or one of
/// its own, and a log if the pool has one.
///
/// A pool that was open when the machine died, or whose log is lost, is salvaged if `torn` says so: what is whole is copied, and the report
/// says what is lost ([`Pool::salvage`]).
///
/// Errors: the pool cannot be opened, or is damaged; `new` exists, or there is no space for it. Then there is no new
/// file. Crash: `new` exists once the copy is complete; the next copy removes what a crash midway leaves beside it.
pub fn copy(
    path: &Path,
    new: &Path,
    torn: Torn,
    identity: CopyIdentity,
    mapped: &MappedOptions,
    progress: &mut dyn Progress,
) -> Result<CopyReport, ToolError> {
    let target = Mapped::create(new, 0, &of_copy_of(path, mapped))?;
    let lost = match open_any(path, Torn::Refuse, mapped, progress) {
        Err(ToolError::Open(OpenError::MachineDied { .. } | OpenError::NeedsLog { .. }))
            if torn == Torn::InMemory =>
        {
            salvage(target, path, new, mapped, progress)?
        }
        opened => {
            let from = opened?;
            copy_into(&from, target, identity, path, new, progress)?;
            from.close().map_err(ToolError::pool(path))?;
            Vec::new()
        }
    };
    let (old, new) = (stat(path)?, stat(new)?);
    Ok(CopyReport {
        objects: new.objects,
        live_bytes: new.live_bytes,
        file_bytes: old.file_bytes,
        new_file_bytes: new.file_bytes,
        lost,
    })
}

/// How a copy is mapped: with a log if the pool has one. A pool that cannot be looked at cannot be copied either, or only
/// in part.
fn of_copy_of(path: &Path, mapped: &MappedOptions) -> MappedOptions {
    let has_log = look(path).is_ok_and(|pool| pool.domain == Domain::Logged.name());
    match mapped.domain {
        None if has_log => mapped.clone().domain(Domain::Logged),
        _ => mapped.clone(),
    }
}

/// Makes a new pool of the parts that are whole. Returns what is lost, in sentences.
fn salvage(
    target: Mapped,
    path: &Path,
    new: &Path,
    mapped: &MappedOptions,
    progress: &mut dyn Progress,
) -> Result<Vec<String>, ToolError> {
    let torn = Mapped::open_private(path, mapped)?;
    let salvaged = shown("salvaging", progress, |tell| {
        Pool::salvage(torn, target, "", tell)
    });
    let (copy, salvaged) = salvaged.map_err(of_copy(path))?;
    let mut lost: Vec<String> = salvaged.findings.iter().map(ToString::to_string).collect();
    let roots = salvaged.lost_roots.iter();
    lost.extend(roots.map(|root| format!("root `{root}`, and what only it leads to, is lost")));
    if salvaged.lost_references > 0 {
        let references = salvaged.lost_references;
        lost.push(format!(
            "{references} references lead to what is lost; they are null now"
        ));
    }
    match findings(&copy) {
        Ok(found) => lost.extend(found.iter().map(|what| format!("in the new pool: {what}"))),
        Err(error) => {
            copy.abandon();
            return Err(ToolError::pool(new)(error));
        }
    }
    copy.close().map_err(ToolError::pool(new))?;
    Ok(lost)
}

/// Runs a copy, and shows its progress.
fn shown<R>(
    doing: &'static str,
    progress: &mut dyn Progress,
    copy: impl FnOnce(&mut dyn FnMut(CopyProgress)) -> R,
) -> R {
    let mut done = None;
    let copied = copy(&mut |now| {
        if done.is_none() {
            progress.begin(doing, Some(now.of));
        }
        progress.advance(now.done - done.unwrap_or(0));
        done = Some(now.done);
    });
    progress.end();
    copied
}

fn of_copy(path: &Path) -> impl FnOnce(CopyError) -> ToolError {
    let path = path.to_path_buf();
    move |error| match error {
        CopyError::Target(error) => error.into(),
        CopyError::Objects(source) => ToolError::Pool { path, source },
        other => ToolError::Copy {
            path,
            source: other,
        },
    }
}

/// Copies, and gives the copy its name once it is sound and closed.
fn copy_into(
    from: &Pool<Mapped>,
    target: Mapped,
    identity: CopyIdentity,
    path: &Path,
    new: &Path,
    progress: &mut dyn Progress,
) -> Result<(), ToolError> {
    let copied = shown("copying", progress, |tell| {
        from.copy_into(target, identity, tell)
    });
    let copy = copied.map_err(of_copy(path))?;
    let found = match findings(&copy) {
        Ok(found) => found,
        Err(error) => {
            copy.abandon();
            return Err(ToolError::pool(new)(error));
        }
    };
    if let Some(first) = found.first() {
        // It goes without ever having a name: half a copy is worse than none.
        copy.abandon();
        return Err(ToolError::UnsoundCopy {
            path: new.to_path_buf(),
            finding: first.clone(),
        });
    }
    copy.close().map_err(ToolError::pool(new))
}
