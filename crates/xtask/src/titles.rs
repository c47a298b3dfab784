//! Titles of commits: `room: what it does now`, and no longer than a line of a list.

use std::process::Command;

/// Characters of a title at most.
const MOST: usize = 65;

/// Checks the titles of a range of commits.
///
/// Errors: git knows no such range; titles that are too long, or name no room.
pub fn check(range: &str) -> Result<(), String> {
    let output = Command::new("git")
        .args(["log", "--no-merges", "--format=%h %s", range])
        .output()
        .map_err(|error| format!("git cannot be started: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git knows no commits {range}: {}", said.trim()));
    }
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong: Vec<String> = lines.lines().filter_map(fault).collect();
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n")),
    }
}

/// What is wrong with a commit, given its short hash and its title.
fn fault(line: &str) -> Option<String> {
    let (hash, title) = line.split_once(' ').unwrap_or((line, ""));
    let length = title.chars().count();
    if length > MOST {
        return Some(format!(
            "{hash}: {length} characters, at most {MOST}: {title}"
        ));
    }
    let names_a_room = title.split_once(": ").is_some_and(|(room, what)| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_./, ".contains(c);
        !room.is_empty() && room.chars().all(is_name) && !what.trim().is_empty()
    });
    (!names_a_room).then(|| format!("{hash}: `room: what it does now` is asked for: {title}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_names_its_room_and_is_short() {
        assert_eq!(
            fault("abc heap: plans share pages; full pools wait for the open cycle"),
            None
        );
        assert_eq!(fault("abc c, pmemobj: what is listed moves"), None);
        for (line, told) in [
            ("abc mend it", "room"),
            ("abc heap:", "room"),
            ("abc : nothing", "room"),
            (&format!("abc heap: {}", "x".repeat(60)), "66 characters"),
        ] {
            let fault = fault(line).expect(line);
            assert!(
                fault.starts_with("abc: ") && fault.contains(told),
                "{fault}"
            );
        }
    }
}
