//! Does every command explain itself?

use crate::support::firn;

#[test]
fn every_command_explains_itself() {
    let help = firn(&["--help"]);
    assert_eq!(help.status, 0);
    for name in [
        "load", "get", "scan", "delete", "stat", "top", "map", "check", "copy", "backup", "defrag",
        "churn", "demo",
    ] {
        assert!(help.out.contains(name), "{name}");
        let help = firn(&[name, "--help"]);
        assert_eq!(help.status, 0);
        assert!(help.out.contains(&format!("firn {name}")), "{}", help.out);
    }
}
