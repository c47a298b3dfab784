//! Is a pool of an older format converted, is that reported, and does an older program then refuse it?

use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

use firn_format::geometry::{SUPERBLOCK_BYTES, SUPERBLOCKS};
use firn_format::superblock::Superblock;
use firn_format::{FORMAT_VERSION, OLDEST_FORMAT_VERSION};

use crate::sparse;
use crate::support::{Folder, firn};

/// A pool as version 1 left it, in a file of this folder.
fn golden(folder: &Folder, name: &str) -> String {
    let pools = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../structures/tests/golden/pools"
    );
    let compressed = std::fs::read(Path::new(pools).join(format!("{name}.pool.gz"))).unwrap();
    let mut packed = Vec::new();
    let mut unpacking = flate2::read::GzDecoder::new(&compressed[..]);
    unpacking.read_to_end(&mut packed).unwrap();
    let (len, runs) = sparse::unpack(&packed).unwrap();
    let file = std::fs::File::create(folder.path(name)).unwrap();
    file.set_len(len).unwrap();
    for (at, content) in runs {
        file.write_all_at(content, at).unwrap();
    }
    folder.arg(name)
}

/// The versions that both copies of the superblock have.
fn versions(pool: &str) -> [u32; 2] {
    let file = std::fs::File::open(pool).unwrap();
    SUPERBLOCKS.map(|at| {
        let mut bytes = [0; SUPERBLOCK_BYTES as usize];
        file.read_exact_at(&mut bytes, at.bytes()).unwrap();
        Superblock::decode(&bytes, at).unwrap().version
    })
}

#[test]
fn a_pool_is_converted_on_purpose_once() {
    for name in [
        "v1-traced-redo-closed",
        "v1-explicit-redo-unclean",
        "v1-explicit-undo-active",
    ] {
        let folder = Folder::new();
        let pool = golden(&folder, name);
        assert_eq!(versions(&pool), [OLDEST_FORMAT_VERSION; 2]);
        let stat = firn(&["stat", &pool, "--json"]);
        assert!(stat.out.contains("\"version\": 1,"), "{}", stat.out);
        assert!(firn(&["stat", &pool]).out.contains("version 1\n"));
        assert_eq!(versions(&pool), [OLDEST_FORMAT_VERSION; 2]);
        let converted = firn(&["convert", &pool]);
        let told = format!(
            "{pool}: converted from format version 1 to version {FORMAT_VERSION}, converted from domain adr to domain process\n"
        );
        assert_eq!(
            (converted.status, &converted.out),
            (0, &told),
            "{}",
            converted.err
        );
        // A program that reads version 1 alone refuses each copy, and so the pool.
        assert_eq!(versions(&pool), [FORMAT_VERSION; 2]);
        let before = std::fs::read(&pool).unwrap();
        let again = firn(&["convert", &pool]);
        let told =
            format!("{pool}: already has format version {FORMAT_VERSION}, in domain process\n");
        assert_eq!((again.status, &again.out), (0, &told), "{}", again.err);
        assert!(std::fs::read(&pool).unwrap() == before);
        let json = firn(&["convert", &pool, "--json"]).out;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (&json["from"], &json["to"]),
            (&FORMAT_VERSION.into(), &FORMAT_VERSION.into())
        );
        assert_eq!(json["converted"], false);
        let checked = firn(&["check", &pool]);
        let told = format!("{pool}: ok (format version {FORMAT_VERSION})\n");
        assert_eq!(
            (checked.status, checked.out, checked.err),
            (0, told, String::new())
        );
    }
}

#[test]
fn who_converts_by_opening_for_changes_says_so() {
    let folder = Folder::new();
    let told = |pool: &str| {
        format!(
            "{pool}: had format version 1, has version {FORMAT_VERSION} now; older programs refuse it\n"
        )
    };
    let pool = golden(&folder, "v1-traced-redo-closed");
    let checked = firn(&["check", &pool]);
    assert_eq!(checked.out, format!("{pool}: ok (format version 1)\n"));
    assert_eq!(
        (checked.err, versions(&pool)),
        (String::new(), [OLDEST_FORMAT_VERSION; 2])
    );
    let collected = firn(&["defrag", &pool, "--pages", "4k"]);
    assert_eq!((collected.status, collected.err), (0, told(&pool)));
    assert_eq!(versions(&pool), [FORMAT_VERSION; 2]);
    assert_eq!(firn(&["defrag", &pool, "--pages", "4k"]).err, "");
    let pool = golden(&folder, "v1-traced-redo-unclean");
    let checked = firn(&["check", &pool]);
    assert!(checked.err.ends_with(&told(&pool)), "{}", checked.err);
    assert_eq!(checked.status, 0);
}

#[test]
fn what_is_no_pool_is_not_converted() {
    let folder = Folder::new();
    let file = folder.arg("words");
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    let refused = firn(&["convert", &file]);
    assert_eq!(refused.status, 2);
    assert!(refused.err.contains("words"), "{}", refused.err);
    assert_eq!(std::fs::read(&file).unwrap(), vec![7; 1 << 20]);
}

/// Back and forth, with the entries; a pool in use is refused, and one that was not closed is recovered first.
#[test]
fn a_pool_changes_its_domain() {
    let folder = Folder::new();
    let pool = folder.pool("pool");
    let entries = firn(&["scan", &pool]).out;
    for (from, to) in [
        ("logged", "process"),
        ("process", "logged"),
        ("logged", "process"),
        ("process", "logged"),
    ] {
        let converted = firn(&["convert", &pool, "--domain", to]);
        let told = format!("{pool}: converted from domain {from} to domain {to}\n");
        assert_eq!(
            (converted.status, converted.out),
            (0, told),
            "{}",
            converted.err
        );
        let again = firn(&["convert", &pool, "--domain", to]).out;
        assert!(again.contains(&format!("in domain {to}")), "{again}");
        let stat = firn(&["stat", &pool, "--json"]).out;
        assert!(stat.contains(&format!("\"domain\": \"{to}\"")), "{stat}");
        assert_eq!(firn(&["scan", &pool]).out, entries);
        assert!(!std::path::Path::new(&format!("{pool}.firn-log")).exists());
    }
    // It stays in its domain when it is changed, and copied.
    assert_eq!(firn(&["delete", &pool, "--fraction", "0.5"]).status, 0);
    assert_eq!(firn(&["check", &pool]).status, 0);
    let copy = folder.arg("copy");
    assert_eq!(firn(&["copy", &pool, &copy]).status, 0);
    assert_eq!(firn(&["scan", &copy]).out, firn(&["scan", &pool]).out);
    assert!(
        firn(&["stat", &copy, "--json"])
            .out
            .contains("\"domain\": \"logged\"")
    );
}
