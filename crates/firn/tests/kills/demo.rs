//! Does the demo compact a pool, lose nothing, and show it?

use serde_json::Value;

use crate::support::{Folder, firn};

/// Paths of a small tree: with the demo's own entries, a pool of some MiB.
const PATHS: usize = 8000;

/// A folder with a small tree in it.
fn folder_with_tree() -> (Folder, String) {
    let folder = Folder::new();
    let tree = folder.path("tree <&>");
    std::fs::create_dir(&tree).unwrap();
    for i in 0..PATHS {
        std::fs::write(tree.join(format!("file-{i}")), "x").unwrap();
    }
    let tree = tree.to_str().unwrap().to_owned();
    (folder, tree)
}

#[test]
fn a_pool_is_compacted_and_nothing_is_lost() {
    let (folder, tree) = folder_with_tree();
    let (page, pool) = (folder.arg("page.html"), folder.arg("pool"));
    let short = ["--seconds", "2", "--kills", "12"];
    let files = ["--page", &page, "--pool", &pool];
    let called = firn(&[&["demo", &tree, "--json"], &short[..], &files].concat());
    assert_eq!(called.status, 0, "{}{}", called.out, called.err);
    let report: Value = serde_json::from_str(&called.out).unwrap();
    assert_eq!(
        (&report["ok"], &report["paths"]),
        (&true.into(), &PATHS.into())
    );
    assert_eq!(report["indexing"]["kills"], 4);
    assert_eq!(report["compactions"]["kills"], 8);
    assert!(
        report["compactions"]["killed_while_collecting"]
            .as_u64()
            .unwrap()
            > 0
    );
    let figure = |of: &Value, name: &str| of[name].as_f64().unwrap();
    assert!((1..12).contains(&power_failures(&report)));
    let (before, after) = (&report["fragmented"], &report["packed"]);
    assert!(figure(before, "ratio_2m") > 1.5, "{before:#}");
    assert!(figure(after, "ratio_2m") < figure(before, "ratio_2m") / 1.5);
    assert!(figure(after, "file_backed_bytes") < figure(before, "file_backed_bytes"));
    let comparison = &report["comparison"];
    let (without, with) = (&comparison["without"], &comparison["with"]);
    assert_eq!(
        without["transactions"], with["transactions"],
        "the same work"
    );
    assert!(figure(&without["per_second"], "median") > 0.0);
    assert!(comparison["collector"]["moved_objects"].as_u64().unwrap() > 0);
    assert!(comparison["collector"]["stops"].as_u64().unwrap() > 0);
    assert_eq!(report["page"], page);
    let html = std::fs::read_to_string(&page).unwrap();
    for words in [
        "<svg",
        ">\nbefore\n<",
        ">\nafter\n<",
        "nothing is lost",
        "the power failed, too",
        "tree &lt;&amp;&gt;",
    ] {
        assert!(html.contains(words), "{words}");
    }
    assert!(!html.contains("tree <&>"));
    assert_eq!(firn(&["check", &pool]).status, 0);
    assert!(firn(&["stat", &pool]).out.contains("logged"));
    assert_eq!(names(&folder), ["page.html", "pool", "tree <&>"]);
}

/// Power failures at the kills of a report.
fn power_failures(report: &Value) -> u64 {
    let failures = ["indexing", "compactions"].map(|kills| &report[kills]["power"]["failures"]);
    failures.iter().filter_map(|count| count.as_u64()).sum()
}

/// The names of what is in a folder.
fn names(folder: &Folder) -> Vec<String> {
    let listing = std::fs::read_dir(folder.0.path()).unwrap();
    let name = |item: std::io::Result<std::fs::DirEntry>| item.unwrap().file_name();
    let mut names: Vec<_> = listing
        .map(|item| name(item).into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_tiny_tree_is_enough_and_the_tables_say_what_came_of_it() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("tree/below")).unwrap();
    let (tree, page) = (folder.arg("tree"), folder.arg("page.html"));
    std::fs::write(
        &page,
        format!("<!doctype html>{}", "an old page ".repeat(1 << 16)),
    )
    .unwrap();
    let called = firn(&[
        "demo",
        &tree,
        "--seconds",
        "1",
        "--kills",
        "1",
        "--page",
        &page,
    ]);
    assert_eq!(called.status, 0, "{}{}", called.out, called.err);
    for words in [
        "footprint on 2 MiB pages",
        "longest stop",
        "1 paths",
        "nothing is lost",
        &page,
    ] {
        assert!(called.out.contains(words), "{words}: {}", called.out);
    }
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.ends_with("</html>\n") && !html.contains("old page"));
}

#[test]
fn a_page_that_cannot_be_written_is_told_before_the_work() {
    let (folder, tree) = folder_with_tree();
    let (nowhere, directory) = (folder.arg("nowhere/page.html"), folder.arg(""));
    for page in [&nowhere, &directory] {
        let called = firn(&["demo", &tree, "--page", page]);
        assert_eq!(called.status, 2);
        assert!(
            called.err.contains(page) && called.err.contains("--page"),
            "{}",
            called.err
        );
        assert!(!called.err.contains("walking"));
    }
    let page = folder.arg("page.html");
    let called = firn(&["demo", &folder.arg("missing"), "--page", &page]);
    assert_eq!(called.status, 2);
    assert!(!folder.path("page.html").exists(), "no work, no page");
    let pool = folder.pool("pool");
    let before = std::fs::read(&pool).unwrap();
    for files in [
        ["--pool", &pool, "--page", &page],
        ["--pool", &page, "--page", &pool],
    ] {
        let called = firn(
            &[
                &["demo", &tree, "--seconds", "1", "--kills", "1"],
                &files[..],
            ]
            .concat(),
        );
        assert_eq!(called.status, 2, "{files:?}: {}", called.out);
    }
    assert!(before == std::fs::read(&pool).unwrap());
}
