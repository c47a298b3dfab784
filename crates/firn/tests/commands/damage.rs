//! Does `firn damage` print one line of figures, and exit with the right status?

use crate::support::{Folder, called, command};

#[test]
fn damage_of_a_structure_is_told() {
    let folder = Folder::new();
    let mut damage = command(&["damage", "--runs", "40", "--structure", "queue"]);
    let called = called(damage.current_dir(folder.0.path()).output().unwrap());
    assert_eq!(called.status, 0, "{}{}", called.out, called.err);
    assert!(called.out.contains("40 pools"), "{}", called.out);
    assert!(called.out.contains("nothing was found"), "{}", called.out);
}

#[test]
fn what_is_no_damage_is_refused() {
    let folder = Folder::new();
    std::fs::write(folder.0.path().join("it.json"), "{}").unwrap();
    let mut damage = command(&["damage", "--replay", "it.json"]);
    let called = called(damage.current_dir(folder.0.path()).output().unwrap());
    assert_eq!(called.status, 2, "{}{}", called.out, called.err);
    assert!(called.err.contains("firn damage"), "{}", called.err);
}
