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
        // Nothing but the end of a paragraph leaves a line mostly empty.
        let lines: Vec<&str> = help.out.lines().collect();
        for pair in lines.windows(2) {
            let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
            let goes_on = is_prose(pair[0]) && is_prose(pair[1]) && !pair[0].ends_with(':');
            assert!(!goes_on || pair[0].len() > 70, "{name}: {}", pair[0]);
        }
    }
}
