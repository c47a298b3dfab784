//! The commands on one pool.

use std::fs::File;
use std::io::{self, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use firn_tools::lines::{json_field, json_line, text_line};
use firn_tools::{
    CopyIdentity, DefragPlan, LineInput, LoadReport, Store, StoreOptions, ToolError, Torn,
};
use serde_json::json;

use crate::Verdict;
use crate::arguments::{
    Backup, Check, Convert, Copy, Defrag, Delete, Get, Limit, Load, Map, MapName, On, Scan,
};
use crate::bars::Bars;
use crate::failure::Failure;
use crate::figures;
use crate::output::Output;

/// Bytes read at once.
const BUFFER_BYTES: usize = 1 << 20;

fn options(map: &MapName, on: &On) -> StoreOptions {
    StoreOptions {
        map: map.name.clone(),
        mapped: on.mapped(),
        ..StoreOptions::default()
    }
}

pub fn load(load: &Load, output: &mut Output) -> Result<Verdict, Failure> {
    let mut bars = Bars::new();
    // A source that cannot be opened should not leave a new pool behind.
    let source = Source::open(load)?;
    let options = StoreOptions {
        max_bytes: load.max_bytes,
        new_domain: load.domain.map(Into::into),
        ..options(&load.map, &load.on)
    };
    let mut store = Store::open_or_create(&load.pool, &options, &mut bars)?;
    let loaded = source.load(&mut store, load.raw, &mut bars);
    drop(bars);
    let closed = store.close();
    let report = loaded?;
    closed?;
    if output.json() {
        output.object(&report)?;
    } else {
        output.line(&figures::loaded(&report))?;
    }
    Ok(Verdict::Well)
}

/// The source of entries.
enum Source {
    Tree(PathBuf),
    File(PathBuf, File),
    Input,
}

impl Source {
    fn open(load: &Load) -> Result<Self, ToolError> {
        let error = |path: &Path, doing| {
            let path = path.to_path_buf();
            move |source| ToolError::File {
                path,
                doing,
                source,
            }
        };
        match (&load.tree, &load.file) {
            (Some(tree), _) => {
                std::fs::read_dir(tree).map_err(error(tree, "reading the directory"))?;
                Ok(Self::Tree(tree.clone()))
            }
            (None, Some(path)) if path != Path::new("-") => {
                let file = File::open(path).map_err(error(path, "opening"))?;
                Ok(Self::File(path.clone(), file))
            }
            _ => Ok(Self::Input),
        }
    }

    fn load(
        self,
        store: &mut Store,
        is_raw: bool,
        bars: &mut Bars,
    ) -> Result<LoadReport, ToolError> {
        let buffered = |file| BufReader::with_capacity(BUFFER_BYTES, file);
        match self {
            Self::Tree(root) => firn_tools::load_tree(store, &root, bars),
            Self::File(path, file) => {
                // Only a regular file has a meaningful length.
                let metadata = file.metadata().ok().filter(|m| m.is_file());
                let bytes = metadata.map(|m| m.len());
                let input = LineInput {
                    lines: buffered(file),
                    name: &path,
                    bytes,
                    is_raw,
                };
                firn_tools::load_lines(store, input, bars)
            }
            Self::Input => {
                let input = LineInput {
                    lines: io::stdin().lock(),
                    name: Path::new("standard input"),
                    bytes: None,
                    is_raw,
                };
                firn_tools::load_lines(store, input, bars)
            }
        }
    }
}

pub fn get(get: &Get, output: &mut Output) -> Result<Verdict, Failure> {
    let mut store = Store::open_to_read(&get.pool, &options(&get.map, &get.on), &mut Bars::new())?;
    let (mut missing, mut line) = (Vec::new(), Vec::new());
    for key in &get.keys {
        match store.get(key.as_bytes())? {
            Some(value) if output.json() => {
                line.clear();
                json_line(key.as_bytes(), &value, &mut line);
                output.bytes(&[&line])?;
            }
            Some(value) => output.bytes(&[&value])?,
            None => {
                missing.push(key);
                if output.json() {
                    line.clear();
                    json_field("key", key.as_bytes(), &mut line);
                    output.bytes(&[b"{", &line, b",\"missing\":true}"])?;
                }
            }
        }
    }
    output.flush()?;
    for key in &missing {
        let (pool, key) = (get.pool.display(), key.display());
        crate::output::remark(&format!("firn: {pool}: no key {key}"));
    }
    store.close()?;
    Ok(verdict(missing.is_empty()))
}

pub fn scan(scan: &Scan, output: &mut Output) -> Result<Verdict, Failure> {
    let mut store =
        Store::open_to_read(&scan.pool, &options(&scan.map, &scan.on), &mut Bars::new())?;
    let (prefix, limit) = (scan.prefix.as_bytes(), scan.limit.unwrap_or(u64::MAX));
    let (mut left, mut printed, mut line) = (limit, Ok(()), Vec::new());
    let json = output.json();
    let scanned = if limit == 0 {
        Ok(0)
    } else {
        store.scan(prefix, |key, value| {
            left -= 1;
            line.clear();
            match (json, scan.raw) {
                (true, _) => json_line(key, value, &mut line),
                (false, false) => text_line(key, value, &mut line),
                (false, true) => line.extend([key, b"\t", value].concat()),
            }
            printed = output.bytes(&[&line]);
            left > 0 && printed.is_ok()
        })
    };
    // The pool is closed even if printing failed.
    let closed = store.close();
    scanned?;
    printed?;
    closed?;
    Ok(Verdict::Well)
}

pub fn delete(delete: &Delete, output: &mut Output) -> Result<Verdict, Failure> {
    let mut bars = Bars::new();
    let mut store = Store::open(&delete.pool, &options(&delete.map, &delete.on), &mut bars)?;
    let deleted = match delete.fraction {
        Some(fraction) => firn_tools::delete_fraction(&mut store, fraction, delete.seed, &mut bars)
            .map(|n| (n, 0)),
        None => delete_keys(&mut store, delete),
    };
    drop(bars);
    let closed = store.close();
    let (deleted, missing) = deleted?;
    closed?;
    if output.json() {
        output.object(&json!({ "deleted": deleted, "missing": missing }))?;
    } else {
        output.line(&format!("{deleted} deleted"))?;
    }
    Ok(verdict(missing == 0))
}

/// Deletes the named keys. Returns how many were there, and how many were not.
fn delete_keys(store: &mut Store, delete: &Delete) -> Result<(u64, u64), ToolError> {
    let keys: Vec<&[u8]> = delete.keys.iter().map(|key| key.as_bytes()).collect();
    let there = store.remove_all(&keys)?;
    for (key, _) in delete.keys.iter().zip(&there).filter(|(_, there)| !**there) {
        let (pool, key) = (delete.pool.display(), key.display());
        crate::output::remark(&format!("firn: {pool}: no key {key}"));
    }
    let deleted = there.iter().filter(|&&there| there).count();
    Ok((deleted as u64, (there.len() - deleted) as u64))
}

pub fn stat(pool: &Path, output: &mut Output) -> Result<Verdict, Failure> {
    let stat = firn_tools::stat(pool)?;
    if output.json() {
        output.object(&stat)?;
    } else {
        output.line(&figures::stat(&stat))?;
    }
    Ok(Verdict::Well)
}

pub fn map(map: &Map, output: &mut Output) -> Result<Verdict, Failure> {
    let report = firn_tools::map::map(&map.pool, map.beside.as_deref(), &map.output)?;
    if output.json() {
        output.object(&report)?;
    } else {
        output.line(&figures::drawn(&report))?;
    }
    Ok(Verdict::Well)
}

pub fn check(check: &Check, output: &mut Output) -> Result<Verdict, Failure> {
    let report = firn_tools::check(&check.pool, &check.on.mapped(), &mut Bars::new())?;
    if output.json() {
        output.object(&report)?;
    } else if report.ok {
        let version = report.version.map_or_else(String::new, figures::version);
        output.line(&format!("{}: ok{version}", check.pool.display()))?;
        if let Some(log) = &report.log {
            output.line(&figures::log_beside(log))?;
        }
    } else {
        for finding in &report.findings {
            output.line(finding)?;
        }
    }
    Ok(verdict(report.ok))
}

pub fn limit(limit: &Limit, output: &mut Output) -> Result<Verdict, Failure> {
    let report = firn_tools::set_limit(&limit.pool, limit.limit.0, &limit.on.mapped())?;
    if output.json() {
        output.object(&report)?;
    } else {
        let now = report.limit_bytes.map_or("none".into(), figures::bytes);
        let (pool, file) = (limit.pool.display(), figures::bytes(report.file_bytes));
        output.line(&format!("{pool}: limit {now}, length {file}"))?;
    }
    Ok(Verdict::Well)
}

pub fn convert(pool: &Convert, output: &mut Output) -> Result<Verdict, Failure> {
    let report = firn_tools::convert(&pool.pool, &pool.mapped(), &mut Bars::new())?;
    if output.json() {
        output.object(&report)?;
    } else {
        output.line(&figures::converted(&report))?;
    }
    Ok(Verdict::Well)
}

pub fn copy(copy: &Copy, output: &mut Output) -> Result<Verdict, Failure> {
    let torn = if copy.salvage {
        Torn::InMemory
    } else {
        Torn::Refuse
    };
    let identity = match copy.new_id {
        true => CopyIdentity::New,
        false => CopyIdentity::Kept,
    };
    let report = firn_tools::copy(
        &copy.pool,
        &copy.new,
        torn,
        identity,
        &copy.on.mapped(),
        &mut Bars::new(),
    )?;
    if output.json() {
        output.object(&report)?;
    } else {
        output.line(&figures::copied(&report))?;
        for what in &report.lost {
            output.line(what)?;
        }
    }
    Ok(verdict(report.lost.is_empty()))
}

pub fn backup(backup: &Backup, output: &mut Output) -> Result<Verdict, Failure> {
    let (pool, new, mapped) = (&backup.pool, &backup.new, backup.on.mapped());
    let report = firn_tools::backup(pool, new, &mapped, &mut Bars::new())?;
    if output.json() {
        output.object(&report)?;
    } else {
        output.line(&figures::backed_up(&report))?;
    }
    Ok(Verdict::Well)
}

pub fn defrag(defrag: &Defrag, output: &mut Output) -> Result<Verdict, Failure> {
    let plan = DefragPlan {
        pool: defrag.pool.clone(),
        target: defrag.target,
        pages: defrag.pages.into(),
        scheme: firn_tools::scheme(&defrag.scheme)?,
        map: defrag.map.clone(),
        mapped: defrag.on.mapped(),
    };
    let report = firn_tools::defrag(&plan, &mut Bars::new())?;
    if output.json() {
        output.object(&report)?;
    } else {
        output.line(&figures::defragmented(&report))?;
    }
    Ok(verdict(report.reached || !report.lacked_room))
}

fn verdict(well: bool) -> Verdict {
    if well {
        Verdict::Well
    } else {
        Verdict::Finding
    }
}
