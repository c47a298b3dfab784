//! Reference pages from the comments of the C headers.
//!
//! A header begins with a comment about all of it. Lines of words between dashes make sections. A comment stands before
//! the declarations that it describes, up to an empty line. Names that begin with an underscore, and names in the
//! layers below, are not for programs.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Pages, and for each the header that a program includes and the header's parts.
const PAGES: [(&str, &[&str]); 3] = [
    ("firn", &["firn.h"]),
    ("containers", &["firn/containers.h"]),
    (
        "pmemobj",
        &[
            "firn/pmemobj.h",
            "firn/pmemobj/objects.h",
            "firn/pmemobj/locks.h",
            "firn/pmemobj/transactions.h",
        ],
    ),
];
const HEADERS: &str = "bindings/c/include";
const FOLDER: &str = "docs/reference";
/// Prefixes of names that are not for programs.
const INTERNAL: [&str; 4] = ["_", "firn_pobj_", "firn_pmemobj_", "FIRN_POBJ_"];
/// The section before which the reference ends.
const INLINE: &str = "what is inline of it";

/// Writes the pages, or reports a page that differs from its header.
pub(crate) fn pages(check: bool) -> Result<(), String> {
    let root = &Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (name, headers) in PAGES {
        let to = root.join(FOLDER).join(name).with_extension("md");
        let told = |path: &Path, error| format!("{}: {error}", path.display());
        let mut page = format!(
            "# `{}`\n\nMade from the header by `cargo xtask reference`.\n",
            headers[0]
        );
        for header in headers {
            let from = root.join(HEADERS).join(header);
            let text = fs::read_to_string(&from).map_err(|error| told(&from, error))?;
            add(header, &text, &mut page)?;
        }
        if !check {
            fs::create_dir_all(root.join(FOLDER)).map_err(|error| told(&to, error))?;
            fs::write(&to, page).map_err(|error| told(&to, error))?;
        } else if fs::read_to_string(&to).map_err(|error| told(&to, error))? != page {
            return Err(format!(
                "{} is not what {} says; `cargo xtask reference` writes it",
                to.display(),
                headers[0]
            ));
        }
    }
    Ok(())
}

/// A header's declaration: the lines that a program has to see, and the text of its comment.
struct Item {
    code: String,
    comment: Option<String>,
    /// Whether it follows the one before without an empty line, and shares that one's comment.
    is_next: bool,
}

enum Part {
    Section { level: usize, name: String },
    Item(Item),
}

/// Adds a header's contents to a page.
fn add(header: &str, text: &str, page: &mut String) -> Result<(), String> {
    let mut lines = text.lines().peekable();
    let first = lines.next().unwrap_or_default();
    if first != "/*" {
        return Err(format!("{header} does not begin with a comment"));
    }
    let about: Vec<&str> = lines
        .by_ref()
        .take_while(|line| *line != " */")
        .map(|line| line.strip_prefix(" * ").unwrap_or_default())
        .collect();
    let _ = write!(page, "\n```text\n{}\n```\n", about.join("\n"));
    let mut blocks: Vec<(Vec<String>, Option<String>)> = Vec::new();
    let flush = |blocks: &mut Vec<(Vec<String>, Option<String>)>, page: &mut String| {
        for (code, comment) in blocks.drain(..) {
            let _ = write!(page, "\n```c\n{}\n```\n", code.join("\n"));
            if let Some(comment) = comment {
                let _ = write!(page, "\n{comment}\n");
            }
        }
    };
    for part in parts(&mut lines) {
        match part {
            Part::Section { name, .. } if name == INLINE => break,
            Part::Section { level, name } => {
                flush(&mut blocks, page);
                let _ = write!(page, "\n{} {name}\n", "#".repeat(level));
            }
            Part::Item(item) => match blocks.last_mut() {
                Some((code, comment))
                    if item.comment.is_none() && (item.is_next || comment.is_none()) =>
                {
                    code.push(item.code);
                }
                _ => blocks.push((vec![item.code], item.comment)),
            },
        }
    }
    flush(&mut blocks, page);
    Ok(())
}

fn parts<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut comment: Option<String> = None;
    let mut is_next = false;
    while let Some(line) = lines.next() {
        if line.is_empty() {
            (comment, is_next) = (None, false);
        } else if let Some(section) = section(line) {
            parts.push(section);
        } else if let Some(rest) = line.strip_prefix("/* ") {
            comment = Some(comment_of(rest, lines));
            is_next = false;
        } else if let Some(code) = declared(line, lines) {
            let name = name_of(&code);
            let is_internal = INTERNAL.iter().any(|internal| name.starts_with(internal));
            // The include guard is not for programs either.
            if !is_internal && !name.ends_with("_H") {
                let comment = comment.take();
                parts.push(Part::Item(Item {
                    code,
                    comment,
                    is_next,
                }));
                is_next = true;
            }
            comment = None;
        }
    }
    parts
}

/// A line of words and dashes.
fn section(line: &str) -> Option<Part> {
    let inner = line.strip_prefix("/* ")?.strip_suffix(" */")?;
    let name = inner.trim_matches(['-', ' ']).to_owned();
    let level = if inner.starts_with("-----") { 2 } else { 3 };
    inner
        .contains("-----")
        .then_some(Part::Section { level, name })
}

/// The text of a comment. A line that begins with a label, such as `Fails`, stays a line of its own.
fn comment_of<'a>(first: &str, lines: &mut impl Iterator<Item = &'a str>) -> String {
    let mut all = vec![first];
    while !all.last().is_some_and(|line| line.ends_with("*/")) {
        let Some(line) = lines.next() else { break };
        all.push(line.trim_start_matches(" *").trim_start_matches(' '));
    }
    let mut text = String::new();
    for line in all {
        let line = line.trim_end_matches("*/").trim_end();
        let label = line.split_once([':', ' ']).map_or(line, |(word, _)| word);
        let begins = ["Fails", "Durable", "Not"].contains(&label);
        let indented = line.starts_with("struct") || line.starts_with("FIRN_TYPE(");
        match (text.is_empty(), begins, indented || line.is_empty()) {
            (true, ..) => {}
            (_, _, true) => text.push_str("\n\n"),
            (_, true, _) => text.push_str("  \n"),
            _ => text.push(if text.ends_with('\n') { '\n' } else { ' ' }),
        }
        match indented {
            true => {
                let _ = write!(text, "`{line}`");
            }
            false => text.push_str(line),
        }
    }
    let paragraphs = text.split("\n\n").filter(|paragraph| !paragraph.is_empty());
    paragraphs.map(str::trim).collect::<Vec<_>>().join("\n\n")
}

/// The declaration that a line begins, without the parts that only the library uses: bodies of functions and macros.
fn declared<'a>(first: &str, lines: &mut impl Iterator<Item = &'a str>) -> Option<String> {
    if let Some(macro_) = first.strip_prefix("#define ") {
        let mut last = first;
        while last.ends_with('\\') {
            last = lines.next()?;
        }
        let has_arguments = macro_.split(' ').next()?.contains('(');
        let end = match has_arguments {
            true => macro_.find(')')? + 1,
            false => macro_.find(' ').unwrap_or(macro_.len()),
        };
        return Some(format!("#define {}", &macro_[..end]));
    }
    if !first.starts_with(|c: char| c.is_ascii_alphabetic()) || first.starts_with("extern") {
        return None;
    }
    let mut code = vec![first];
    let is_type = ["typedef", "struct", "enum", "union"]
        .iter()
        .any(|word| first.starts_with(word))
        && first.ends_with('{');
    loop {
        let last = *code.last()?;
        if last.ends_with(';') && !last.starts_with('\t') || (is_type && last.starts_with('}')) {
            break;
        }
        if last.ends_with(';') && !is_type {
            break;
        }
        if !is_type && last == "{" {
            // A function's body.
            code.pop();
            while lines.next()? != "}" {}
            break;
        }
        code.push(lines.next()?);
    }
    let mut code = code.join("\n").replace('\t', "    ");
    if let Some(alias) = code.find("FIRN_POBJ_AS") {
        code.truncate(alias);
    }
    let code = code.trim_end().trim_start_matches("static inline ");
    Some(match code.ends_with(';') {
        true => code.to_owned(),
        false => format!("{code};"),
    })
}

/// The declared name.
fn name_of(code: &str) -> &str {
    let code = code.strip_prefix("#define ").unwrap_or(code);
    let front = match code.find('(') {
        Some(at) if !code[..at].contains('{') => &code[..at],
        _ => code.split(['{', ';', '=']).next().unwrap_or(code),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let last = front.trim_end().rsplit(|c| !is_name(c)).next();
    last.unwrap_or(front)
}
