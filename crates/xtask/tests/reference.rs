//! Are the reference pages up to date with the headers, and do they have every function?

use std::path::Path;
use std::process::Command;

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_pages_are_what_the_headers_say() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["reference", "--check"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
}

/// Exported functions are found here by their names in the library's source, independently of how the pages are made.
#[test]
fn every_function_of_the_library_has_its_place() {
    let page = |name: &str| {
        std::fs::read_to_string(
            root()
                .join("docs/reference")
                .join(name)
                .with_extension("md"),
        )
        .unwrap()
    };
    let pages = page("firn") + &page("containers");
    let mut functions = 0;
    let mut folders = vec![root().join("bindings/c/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            let words = source.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let exported = words.zip(
                source
                    .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .skip(1),
            );
            for (_, name) in exported.filter(|(word, _)| *word == "fn") {
                // Functions that an inline function of the header calls are not for programs.
                let is_public = name.starts_with("firn_")
                    && !name.starts_with("firn_pmemobj_")
                    && name != "firn_follow_slow";
                if is_public {
                    functions += 1;
                    assert!(pages.contains(&format!("{name}(")), "{name} is in no page");
                }
            }
        }
    }
    assert!(functions > 40, "{functions} functions were found");
}
