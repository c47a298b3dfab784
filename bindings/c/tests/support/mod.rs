//! Programs in C and C++: compiled as a stranger would, run, and heard.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

/// What a program is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    C11,
    Cpp11,
    Cpp20,
}

/// Both compilers of a language.
pub fn compilers(language: Language) -> [&'static str; 2] {
    match language {
        Language::C11 => ["gcc", "clang"],
        Language::Cpp11 | Language::Cpp20 => ["g++", "clang++"],
    }
}

fn standard(language: Language) -> &'static str {
    match language {
        Language::C11 => "-std=c11",
        Language::Cpp11 => "-std=c++11",
        Language::Cpp20 => "-std=c++20",
    }
}

/// A folder with the shared library as a system has it: a file, and links by its versioned name and
/// by the one that the linker looks for.
pub fn library_folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            let test = std::env::current_exe().expect("a test has a path");
            let library = test.with_file_name("libfirn.so");
            assert!(library.exists(), "{} is not there", library.display());
            let folder = tempfile::tempdir().expect("a temporary folder");
            for name in ["libfirn.so", "libfirn.so.0.1"] {
                std::os::unix::fs::symlink(&library, folder.path().join(name)).expect("a link");
            }
            folder
        })
        .path()
}

/// The sources' own folder.
pub fn here(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// Compiles a program, whose warnings are errors, and returns where it lies.
pub fn compile(
    compiler: &str,
    language: Language,
    source: &Path,
    more: &[&str],
    into: &Path,
) -> PathBuf {
    let stem = source.file_stem().unwrap_or_default().to_string_lossy();
    let program = into.join(format!(
        "{stem}-{compiler}{}",
        more.concat().replace('/', "_")
    ));
    let output = Command::new(compiler)
        .args([
            standard(language),
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            "-g",
        ])
        .arg(concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include"))
        .args(more)
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg(format!("-L{}", library_folder().display()))
        .args(["-lfirn", "-pthread"])
        .output()
        .unwrap_or_else(|error| panic!("{compiler} does not start: {error}"));
    assert!(
        output.status.success(),
        "{compiler} refuses {}:\n{}",
        source.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    program
}

/// A command that runs a compiled program.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", library_folder());
    command
}

/// Runs a program to its end, whatever that is.
pub fn output<A: AsRef<OsStr>>(program: &Path, arguments: &[A]) -> Output {
    let output = command(program).args(arguments).output();
    output.unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()))
}

/// What a program prints that ends well.
pub fn run<A: AsRef<OsStr>>(program: &Path, arguments: &[A]) -> String {
    let output = output(program, arguments);
    assert!(
        output.status.success(),
        "{} {}:\n{}",
        program.display(),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}
