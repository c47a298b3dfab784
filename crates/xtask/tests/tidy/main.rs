//! Is the code base tidy? Files and functions are short, circles of files are small, documents name every module.
//!
//! Exceptions that remain stand in a list ([`debts`]). It may only get better: an entry that is no longer needed fails
//! the test, so the lists shrink as the code does.

mod circles;
mod debts;
mod reasons;
mod sources;

use std::collections::BTreeMap;

use sources::Source;

/// Lines of a file, and of a function, at most.
const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 60;

/// Reports what is worse than allowed, and allowances that are no longer needed.
fn assert_paid(found: &BTreeMap<String, usize>, allowed: &[(&str, usize, &str)], most: usize) {
    let entries = allowed.iter().map(|&(name, lines, _)| (name, lines));
    let allowed: BTreeMap<&str, usize> = entries.collect();
    let mut wrong = Vec::new();
    for (name, &lines) in found {
        let may_have = allowed.get(name.as_str()).copied().unwrap_or(most);
        if lines > may_have {
            wrong.push(format!("{name}: {lines}, at most {may_have}"));
        }
    }
    for (name, &lines) in &allowed {
        let now = found.get(*name).copied().unwrap_or_default();
        if now <= most {
            wrong.push(format!("{name}: {now}; take it off the list"));
        } else if now < lines {
            wrong.push(format!("{name}: {now}; lower the list's {lines}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_are_short() {
    let lines = |source: Source| (source.path, source.text.lines().count());
    let sources = sources::all().into_iter().map(lines);
    let found = sources.chain(sources::headers());
    assert_paid(&found.collect(), debts::LONG_FILES, FILE_LINES);
}

#[test]
fn functions_are_short() {
    let mut found = BTreeMap::new();
    for source in sources::all() {
        for (name, lines) in source.functions() {
            let name = format!("{} {name}", source.path);
            let longest: &mut usize = found.entry(name).or_default();
            *longest = lines.max(*longest);
        }
    }
    assert_paid(&found, debts::LONG_FUNCTIONS, FUNCTION_LINES);
}

/// A circle: files in which each uses every other, directly or through others.
#[test]
fn circles_of_files_are_small() {
    let mut found = BTreeMap::new();
    for folder in sources::crates() {
        let circle = circles::largest(&folder);
        found.insert(folder, circle.len());
    }
    assert_paid(&found, debts::CIRCLES, debts::CIRCLE);
}

#[test]
fn doc_comments_say_what_they_are_about() {
    let the_same = |source: &Source| {
        let lines = source.text.lines().map(str::trim_start);
        let docs = lines.filter_map(|line| line.strip_prefix("///").or(line.strip_prefix("//!")));
        docs.filter(|doc| doc.trim_start().starts_with("The same"))
            .count()
    };
    let found = sources::all()
        .into_iter()
        .filter(|source| the_same(source) > 0);
    let found: Vec<String> = found.map(|source| source.path).collect();
    assert!(
        found.is_empty(),
        "\"The same\" begins a comment of {found:?}"
    );
}

/// Every unsafe block names who upholds its invariant. Clippy asks for a reason; this test rejects stock phrases.
#[test]
fn unsafe_code_is_proved() {
    let sources = sources::all();
    let wrong: Vec<String> = sources.iter().flat_map(reasons::unproved).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let lines: usize = sources.iter().map(reasons::unsafe_lines).sum();
    assert!(
        lines <= debts::UNSAFE_LINES,
        "{lines} lines of unsafe code, at most {}",
        debts::UNSAFE_LINES
    );
}

/// A time or a share in a comment of the product belongs to one machine on one day: the comment must name its page.
#[test]
fn figures_have_a_source() {
    let sources = sources::all();
    let product = sources
        .iter()
        .filter(|source| source.path.contains("/src/"));
    let wrong: Vec<String> = product.flat_map(reasons::naked_figures).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The pages that list a folder's modules, and the heading under which they do.
const LISTS: [(&str, &str, &str); 3] = [
    ("ARCHITECTURE.md", "## Inside the heap", "crates/heap/src"),
    (
        "ARCHITECTURE.md",
        "Relocation in its files",
        "crates/heap/src/relocation",
    ),
    (
        "ARCHITECTURE.md",
        "The collector in its files",
        "crates/heap/src/collector",
    ),
];

#[test]
fn documents_name_every_module() {
    for (page, heading, folder) in LISTS {
        let text = sources::read(page);
        let (_, list) = text.split_once(heading).expect("the heading");
        let missing: Vec<String> = sources::modules(folder)
            .into_iter()
            .filter(|module| !list.contains(&format!("`{module}`")))
            .collect();
        assert!(
            missing.is_empty(),
            "{page} does not name {missing:?} of {folder}"
        );
    }
}

#[test]
fn documents_name_every_crate() {
    let text = sources::read("ARCHITECTURE.md");
    for folder in sources::crates() {
        let name = folder.trim_start_matches("crates/");
        let named = [format!("`{name}`"), format!("`{name}/`")];
        assert!(
            named.iter().any(|name| text.contains(name)),
            "ARCHITECTURE.md does not name {folder}"
        );
    }
}
