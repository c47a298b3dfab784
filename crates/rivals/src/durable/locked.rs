//! Versions of crates that do not export their own: the lock file's, which this program was built from.

use serde::Deserialize;

#[derive(Deserialize)]
struct Lock {
    package: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
}

/// The version of the crate `name` that the workspace is built with, or none if the workspace does not use it.
pub fn version(name: &str) -> Option<String> {
    let lock: Lock =
        toml::from_str(include_str!("../../../../Cargo.lock")).expect("Cargo writes TOML");
    lock.package
        .into_iter()
        .find(|package| package.name == name)
        .map(|package| package.version)
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn crates_of_the_workspace_have_versions_and_others_have_none() {
        let major =
            |name| version(name).and_then(|version| version.split('.').next().map(str::to_owned));
        assert_eq!(major("fjall").as_deref(), Some("3"));
        assert_eq!(major("redb").as_deref(), Some("4"));
        assert_eq!(version("no-such-crate"), None);
    }
}
