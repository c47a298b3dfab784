//! Does a program build with the library as it is installed, shared and static?

use std::path::Path;
use std::process::Command;

fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn install(folder: &Path, more: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("install")
        .arg("--prefix")
        .arg(folder)
        .args(more)
        .output()
        .unwrap()
}

/// pkg-config's answer, as arguments.
fn flags(folder: &Path, what: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command
        .env("PKG_CONFIG_PATH", folder.join("lib/pkgconfig"))
        .args(what)
        .arg("firn");
    run(&mut command)
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_program_builds_with_what_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let output = install(folder, &[]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/c/examples/list.c");
    let program = |name: &str, flags: Vec<String>| {
        let program = folder.join(name);
        run(Command::new("gcc")
            .arg(&source)
            .args(flags)
            .arg("-o")
            .arg(&program));
        program
    };
    let shared = program("shared", flags(folder, &["--cflags", "--libs"]));
    let needs = run(Command::new("objdump").arg("-p").arg(&shared));
    let short = env!("CARGO_PKG_VERSION").rsplit_once('.').unwrap().0;
    assert!(
        needs.contains(&format!("NEEDED               libfirn.so.{short}")),
        "{needs}"
    );
    let mut all = vec!["-Wl,-Bstatic".to_owned()];
    // The static library lies beside the shared one, so it is asked for by its file name.
    all.extend(
        flags(folder, &["--cflags", "--static", "--libs"])
            .into_iter()
            .map(|flag| match flag.as_str() {
                "-lfirn" => "-l:libfirn.a".to_owned(),
                _ => flag,
            }),
    );
    all[0] = "-O1".to_owned();
    let alone = program("static", all);
    for (program, pool) in [(&shared, "one"), (&alone, "two")] {
        let mut command = Command::new(program);
        command
            .env("LD_LIBRARY_PATH", folder.join("lib"))
            .arg(folder.join(pool))
            .args(["7", "8"]);
        assert_eq!(run(&mut command), "2: 8 7\n");
    }
    let needs = run(Command::new("objdump").arg("-p").arg(&alone));
    assert!(!needs.contains("libfirn"), "{needs}");
}

#[test]
fn a_prefix_that_is_not_absolute_is_refused() {
    let output = install(Path::new("somewhere"), &[]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && told.contains("is not absolute"),
        "{told}"
    );
}
