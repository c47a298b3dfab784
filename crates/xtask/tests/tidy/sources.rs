//! The repository's sources.

use std::fs;
use std::path::{Path, PathBuf};

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A Rust file.
pub struct Source {
    /// Its path from the repository's root.
    pub path: String,
    pub text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of a page.
pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn entries(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap_or_else(|e| panic!("{folder}: {e}"));
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<String> = entries
        .map(|entry| name(entry).into_string().expect("a name in UTF-8"))
        .collect();
    names.sort_unstable();
    names
}

/// The folders of all crates.
pub fn crates() -> Vec<String> {
    let of = |folder: &str| {
        let names = entries(folder).into_iter();
        names
            .map(|name| format!("{folder}/{name}"))
            .collect::<Vec<_>>()
    };
    [of("crates"), of("bindings")].concat()
}

/// The modules of a folder: its files except `lib.rs`, `main.rs` and `mod.rs`, and its folders.
pub fn modules(folder: &str) -> Vec<String> {
    let names = entries(folder).into_iter();
    let modules = names.map(|name| name.trim_end_matches(".rs").to_owned());
    modules
        .filter(|module| !["lib", "main", "mod"].contains(&module.as_str()))
        .collect()
}

/// All Rust files below a folder.
pub fn below(folder: &str) -> Vec<Source> {
    let mut found = Vec::new();
    for name in entries(folder) {
        let path = format!("{folder}/{name}");
        if root().join(&path).is_dir() {
            found.extend(below(&path));
        } else if name.ends_with(".rs") {
            let text = read(&path);
            found.push(Source { path, text });
        }
    }
    found
}

/// The headers of the C binding, with their number of lines.
pub fn headers() -> Vec<(String, usize)> {
    let folders = ["bindings/c/include", "bindings/c/include/firn"];
    let paths = folders.iter().flat_map(|folder| {
        let names = entries(folder).into_iter();
        names.map(move |name| format!("{folder}/{name}"))
    });
    let files = paths.filter(|path| !root().join(path).is_dir());
    files
        .map(|path| {
            let lines = read(&path).lines().count();
            (path, lines)
        })
        .collect()
}

/// All Rust files of all crates.
pub fn all() -> Vec<Source> {
    crates().iter().flat_map(|folder| below(folder)).collect()
}

impl Source {
    pub fn parsed(&self) -> syn::File {
        syn::parse_file(&self.text).unwrap_or_else(|error| panic!("{}: {error}", self.path))
    }

    /// Each function's name and lines, signature and body.
    pub fn functions(&self) -> Vec<(String, usize)> {
        let mut functions = Functions(Vec::new());
        functions.visit_file(&self.parsed());
        functions.0
    }
}

struct Functions(Vec<(String, usize)>);

impl Functions {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let (first, last) = (signature.span().start(), block.span().end());
        let lines = last.line - first.line + 1;
        self.0.push((signature.ident.to_string(), lines));
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}
