//! The library for C and C++, built and installed where compilers look.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The libraries that the static library needs: `rustc --print native-static-libs` lists them.
const STATIC_LIBRARIES: &str = "-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc";
const CRATE: &str = "bindings/c";

/// The folders of an installation.
pub struct Places {
    /// The prefix that compilers are told: headers lie in its `include`, libraries in its `lib`.
    pub prefix: PathBuf,
    /// A folder put before the prefix while files are copied, for packagers.
    pub destination: Option<PathBuf>,
}

/// Builds the library and installs it. Reports what it does.
pub fn install(places: &Places) -> Result<(), String> {
    if !places.prefix.is_absolute() {
        let prefix = places.prefix.display();
        return Err(format!(
            "the prefix `{prefix}` is not absolute; begin it with a slash"
        ));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built = build(&root)?;
    let under = |folder: &str| {
        let placed = places.prefix.join(folder);
        match &places.destination {
            Some(destination) => destination.join(placed.strip_prefix("/").unwrap_or(&placed)),
            None => placed,
        }
    };
    let (include, lib) = (under("include"), under("lib"));
    copy_headers(&root.join(CRATE).join("include"), &include)?;
    let version = env!("CARGO_PKG_VERSION");
    let short = version.rsplit_once('.').map_or(version, |(short, _)| short);
    let real = format!("libfirn.so.{version}");
    make_folder(&lib)?;
    copy(&built.join("libfirn.so"), &lib.join(&real))?;
    link(&real, &lib.join(format!("libfirn.so.{short}")))?;
    link(&real, &lib.join("libfirn.so"))?;
    copy(&built.join("libfirn.a"), &lib.join("libfirn.a"))?;
    let description = lib.join("pkgconfig");
    make_folder(&description)?;
    let file = description.join("firn.pc");
    fs::write(&file, package(&places.prefix, version)).map_err(|error| told(&file, &error))?;
    say(&file);
    Ok(())
}

/// Builds the library and returns the folder where it lies.
fn build(root: &Path) -> Result<PathBuf, String> {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--package", "firn-c"])
        .current_dir(root)
        .status()
        .map_err(|error| format!("cargo cannot be started: {error}"))?;
    if !status.success() {
        return Err(format!("the library was not built: {status}"));
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    Ok(target
        .unwrap_or_else(|| root.join("target"))
        .join("release"))
}

/// The file that pkg-config reads.
fn package(prefix: &Path, version: &str) -> String {
    let prefix = prefix.display();
    format!(
        "prefix={prefix}\nincludedir=${{prefix}}/include\nlibdir=${{prefix}}/lib\n\n\
         Name: firn\n\
         Description: Objects in a pool that survive crashes, and a collector that moves them together\n\
         Version: {version}\n\
         Cflags: -I${{includedir}}\n\
         Libs: -L${{libdir}} -lfirn\n\
         Libs.private: {STATIC_LIBRARIES}\n"
    )
}

fn copy_headers(from: &Path, to: &Path) -> Result<(), String> {
    make_folder(to)?;
    let entries = fs::read_dir(from).map_err(|error| told(from, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| told(from, &error))?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match from.is_dir() {
            true => copy_headers(&from, &to)?,
            false => copy(&from, &to)?,
        }
    }
    Ok(())
}

fn make_folder(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| told(folder, &error))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    // A running program keeps the file that it was started with.
    remove(to)?;
    fs::copy(from, to).map_err(|error| told(to, &error))?;
    say(to);
    Ok(())
}

fn link(name: &str, at: &Path) -> Result<(), String> {
    remove(at)?;
    symlink(name, at).map_err(|error| told(at, &error))?;
    say(at);
    Ok(())
}

fn remove(file: &Path) -> Result<(), String> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(told(file, &error)),
        _ => Ok(()),
    }
}

fn told(file: &Path, error: &std::io::Error) -> String {
    format!(
        "{}: {error}; choose a prefix that may be written to",
        file.display()
    )
}

fn say(file: &Path) {
    println!("xtask: installed {}", file.display());
}
