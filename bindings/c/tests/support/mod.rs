//! Programs in C and C++: compiled as a user would compile them, run, and their output read.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

/// Values of `FIRN_COLLECT`, which say when objects move.
pub const NEVER: &str = "0";
pub const BESIDE: &str = "1";
pub const AT_SAFEPOINTS: &str = "safepoints";

/// Flags that stop a program when it misuses memory.
pub const SANITIZED: [&str; 3] = [
    "-O1",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover",
];

/// Warnings that a program may have switched on, beside those of [`compile_with`]. The headers cause none.
const STRICT: [&str; 5] = [
    "-Wshadow",
    "-Wconversion",
    "-Wsign-conversion",
    "-Wundef",
    "-Wcast-qual",
];
/// Those that only C++ has.
const STRICT_CPP: [&str; 2] = ["-Wold-style-cast", "-Wnon-virtual-dtor"];

/// The language of a program.
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

/// The warnings for a language's programs.
pub fn strict(language: Language) -> Vec<&'static str> {
    let mut flags = STRICT.to_vec();
    if language != Language::C11 {
        flags.extend(STRICT_CPP);
    }
    flags
}

/// Compiles a program, with warnings as errors. Returns its path.
pub fn compile(
    compiler: &str,
    language: Language,
    source: &Path,
    more: &[&str],
    into: &Path,
) -> PathBuf {
    let mut flags = strict(language);
    flags.extend(more);
    compile_plainly(compiler, language, source, &flags, into)
}

/// Compiles a program without those warnings.
fn compile_plainly(
    compiler: &str,
    language: Language,
    source: &Path,
    more: &[&str],
    into: &Path,
) -> PathBuf {
    let mut flags = vec![concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include")];
    flags.extend(more);
    let folder = format!("-L{}", library_folder().display());
    let libraries = [folder.as_str(), "-lfirn", "-pthread"];
    compile_with(compiler, language, source, &flags, &libraries, into)
}

/// Compiles a program that was written for libpmemobj.
pub fn compile_pmemobj(compiler: &str, source: &Path, more: &[&str], into: &Path) -> PathBuf {
    compile_pmemobj_as(Language::C11, compiler, source, more, into)
}

/// Compiles such a program in another language.
pub fn compile_pmemobj_as(
    language: Language,
    compiler: &str,
    source: &Path,
    more: &[&str],
    into: &Path,
) -> PathBuf {
    let mut flags = vec![concat!(
        "-I",
        env!("CARGO_MANIFEST_DIR"),
        "/include/firn/compat"
    )];
    flags.extend(pmemobj_flags(compiler));
    flags.extend(more);
    compile_plainly(compiler, language, source, &flags, into)
}

/// Compiles such a program with libpmemobj itself; `None` if its headers are not installed.
pub fn compile_with_libpmemobj(source: &Path, more: &[&str], into: &Path) -> Option<PathBuf> {
    if !Path::new("/usr/include/libpmemobj.h").exists() {
        eprintln!("libpmemobj.h is not there: apt-get install libpmemobj-dev");
        return None;
    }
    let mut flags = pmemobj_flags("gcc");
    // Its inline functions cause this warning.
    flags.push("-Wno-uninitialized");
    flags.extend(more);
    Some(compile_with(
        "gcc",
        Language::C11,
        source,
        &flags,
        &["-lpmemobj"],
        into,
    ))
}

/// Warnings that libpmemobj's own macros cause: about variables around a setjmp, and casts to unions.
fn pmemobj_flags(compiler: &str) -> Vec<&'static str> {
    let mut flags = vec!["-D_GNU_SOURCE", "-Wno-pedantic"];
    if compiler.starts_with('g') {
        flags.push("-Wno-clobbered");
    }
    flags
}

fn compile_with(
    compiler: &str,
    language: Language,
    source: &Path,
    more: &[&str],
    libraries: &[&str],
    into: &Path,
) -> PathBuf {
    let stem = source.file_stem().unwrap_or_default().to_string_lossy();
    let mut how = DefaultHasher::new();
    (more, libraries).hash(&mut how);
    let program = into.join(format!("{stem}-{compiler}-{:016x}", how.finish()));
    let output = Command::new(compiler)
        .args([
            standard(language),
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            "-g",
        ])
        .args(more)
        .arg(source)
        .arg("-o")
        .arg(&program)
        .args(libraries)
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

/// A command that runs a compiled program. ThreadSanitizer is told that the library was not built with it.
pub fn command(program: &Path) -> Command {
    let uninstrumented = here("tests/uninstrumented.supp");
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", library_folder()).env(
        "TSAN_OPTIONS",
        format!("suppressions={}", uninstrumented.display()),
    );
    command
}

/// Runs a program to its end, whatever its status.
pub fn output<A: AsRef<OsStr>>(program: &Path, arguments: &[A]) -> Output {
    let output = command(program).args(arguments).output();
    output.unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()))
}

/// The output of a program that must end well.
pub fn run<A: AsRef<OsStr>>(program: &Path, arguments: &[A]) -> String {
    run_while(BESIDE, program, arguments)
}

/// The output of a program that must end well, while objects move when `collects` says.
pub fn run_while<A: AsRef<OsStr>>(collects: &str, program: &Path, arguments: &[A]) -> String {
    let mut command = command(program);
    command.args(arguments).env("FIRN_COLLECT", collects);
    let output = command.output();
    let output =
        output.unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()));
    assert!(
        output.status.success(),
        "{} {}:\n{}",
        program.display(),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// When a program is killed: counted in what it says, so that a slow machine kills it as far on as a fast one.
#[derive(Clone, Copy)]
pub struct Kill {
    /// Lines that it has said by then.
    lines: usize,
    /// And so long after the last of them, somewhere in its next change.
    then: Duration,
}

impl Kill {
    /// After at most `most` lines. One in eight comes while the pool is being opened.
    pub fn within(most: usize, random: &mut fastrand::Rng) -> Self {
        let lines = match random.u8(..8) {
            0 => 0,
            _ => random.usize(1..=most),
        };
        let then = Duration::from_micros(random.u64(..4_000));
        Self { lines, then }
    }

    /// Before the first line, at most so many milliseconds after the start.
    pub fn before_a_line(milliseconds: u64, random: &mut fastrand::Rng) -> Self {
        let then = Duration::from_micros(random.u64(..milliseconds * 1000));
        Self { lines: 0, then }
    }
}

/// Kills a program that says a number a line. Returns the last number that it said, zero if there was none.
pub fn said_until_killed(command: &mut Command, kill: Kill) -> u64 {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("a program");
    let mut output = BufReader::new(child.stdout.take().expect("its output"));
    let mut said = String::new();
    for _ in 0..kill.lines {
        let read = output.read_line(&mut said).expect("a line");
        assert_ne!(read, 0, "it ended before it was killed");
    }
    std::thread::sleep(kill.then);
    child.kill().expect("a program that runs");
    let status = child.wait().expect("its end");
    assert_eq!(status.signal(), Some(libc::SIGKILL), "{status}");
    output.read_to_string(&mut said).expect("lines");
    // The kill may have cut the last line.
    let whole = said.rfind('\n').map_or("", |end| &said[..end]);
    let last = whole.lines().next_back();
    last.map_or(0, |line| line.parse().expect("a number"))
}
