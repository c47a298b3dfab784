//! Gives the shared library its name: programs linked with it find a library that keeps the same interface.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    let minor = std::env::var("CARGO_PKG_VERSION_MINOR").unwrap_or_default();
    // Before 1.0 the interface changes with the minor version.
    let version = if major == "0" {
        format!("0.{minor}")
    } else {
        major
    };
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libfirn.so.{version}");
}
