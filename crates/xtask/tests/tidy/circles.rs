//! Which files use each other, by their `use` lines.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, UseTree, Visibility};

use super::sources::{self, Source};

/// Names, from the outermost module to the item.
type Path = Vec<String>;

/// The modules of a crate.
struct Modules {
    files: BTreeMap<Path, String>,
    /// Items that a module re-exports, by their name there: the path to each.
    passed_on: BTreeMap<Path, Path>,
}

/// The largest set of a crate's files in which each uses every other, directly or through others. Empty if there is
/// none.
///
/// A file uses the files that define the names in its `use` lines, even if the names are re-exported.
pub fn largest(folder: &str) -> Vec<String> {
    let src = format!("{folder}/src");
    let sources = sources::below(&src);
    let module = |source: &Source| module_of(&source.path[src.len() + 1..]);
    let files: BTreeMap<Path, String> = sources
        .iter()
        .map(|source| (module(source), source.path.clone()))
        .collect();
    let known: BTreeSet<Path> = files.keys().cloned().collect();
    let mut passed_on = BTreeMap::new();
    for source in &sources {
        let here = module(source);
        for path in paths(source, &here, &known, true) {
            if let Some(name) = path.last() {
                passed_on.insert([&here[..], std::slice::from_ref(name)].concat(), path);
            }
        }
    }
    let modules = Modules { files, passed_on };
    let uses: BTreeMap<&str, BTreeSet<&str>> = sources
        .iter()
        .map(|source| {
            let paths = paths(source, &module(source), &known, false);
            let used = paths.into_iter().filter_map(|path| modules.file_of(path));
            let others = used.filter(|other| *other != source.path);
            (source.path.as_str(), others.collect())
        })
        .collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> = uses
        .keys()
        .map(|&file| (file, reachable(file, &uses)))
        .collect();
    let circle_of = |file: &str| -> Vec<String> {
        let others = reached[file].iter();
        others
            .filter(|other| reached[*other].contains(file))
            .map(ToString::to_string)
            .collect()
    };
    let circles = uses.keys().map(|file| circle_of(file));
    circles.max_by_key(Vec::len).unwrap_or_default()
}

impl Modules {
    /// The file that holds the item of a path.
    fn file_of(&self, mut path: Path) -> Option<&str> {
        // As often as a name can be re-exported.
        for _ in 0..self.passed_on.len() {
            match self.passed_on.get(&path) {
                Some(there) if *there != path => path.clone_from(there),
                _ => break,
            }
        }
        // A name that is no module is an item of the one before it.
        loop {
            if let Some(file) = self.files.get(&path) {
                return Some(file);
            }
            path.pop()?;
        }
    }
}

fn module_of(path: &str) -> Path {
    let mut module: Path = path
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    if ["lib", "main", "mod"].contains(&module.last().map_or("", String::as_str)) {
        module.pop();
    }
    module
}

/// The paths of a file's `use` lines, from the crate's root: either those that only re-export names, or the others.
fn paths(file: &Source, here: &[String], modules: &BTreeSet<Vec<String>>, on: bool) -> Vec<Path> {
    let mut paths = Vec::new();
    for item in file.parsed().items {
        if let Item::Use(item) = item
            && matches!(item.vis, Visibility::Inherited) != on
        {
            spread(&item.tree, &mut Vec::new(), &mut paths);
        }
    }
    let absolute = |path: Path| {
        let first = path.first()?;
        let mut absolute = match first.as_str() {
            "crate" => Vec::new(),
            "super" | "self" => here.to_vec(),
            // A child module, or another crate, which is no module of this one.
            _ => {
                let child = [here, std::slice::from_ref(first)].concat();
                modules.contains(&child).then(|| here.to_vec())?
            }
        };
        for name in path {
            match name.as_str() {
                "crate" | "self" => {}
                "super" => drop(absolute.pop()),
                _ => absolute.push(name),
            }
        }
        Some(absolute)
    };
    paths.into_iter().filter_map(absolute).collect()
}

/// Adds the paths of a tree of `use`.
fn spread(tree: &UseTree, before: &mut Path, into: &mut Vec<Path>) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            spread(&path.tree, before, into);
            before.pop();
        }
        UseTree::Name(name) => into.push([&before[..], &[name.ident.to_string()]].concat()),
        UseTree::Rename(rename) => into.push([&before[..], &[rename.ident.to_string()]].concat()),
        UseTree::Glob(_) => into.push(before.clone()),
        UseTree::Group(group) => {
            for tree in &group.items {
                spread(tree, before, into);
            }
        }
    }
}

fn reachable<'a>(file: &str, uses: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut left: Vec<&str> = uses[file].iter().copied().collect();
    while let Some(next) = left.pop() {
        if found.insert(next) {
            left.extend(&uses[next]);
        }
    }
    found
}
