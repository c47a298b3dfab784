//! Does `firn defrag` do what it prints?

use serde_json::Value;

use crate::support::{Folder, firn};

fn defrag(arguments: &[&str]) -> Value {
    let called = firn(&[&["defrag", "--json"], arguments].concat());
    assert_eq!(called.status, 0, "{}", called.err);
    serde_json::from_str(&called.out).unwrap()
}

#[test]
fn objects_move_together_and_pages_go_back_to_the_disk() {
    let folder = Folder::new();
    let pool = folder.fragmented_pool("pool");
    let content = firn(&["scan", &pool, ""]).out;
    let report = defrag(&[&pool]);
    let figure = |when: &str, name: &str| report[when][name].as_f64().unwrap();
    assert!(figure("before", "ratio_4k") > 2.5, "{report:#}");
    assert!(figure("after", "ratio_4k") < 1.3, "{report:#}");
    assert!(figure("after", "ratio_2m") < figure("before", "ratio_2m") / 2.0);
    assert_eq!(report["before"]["objects"], report["after"]["objects"]);
    assert_eq!(
        report["before"]["live_bytes"],
        report["after"]["live_bytes"]
    );
    let backed = |when| figure(when, "file_backed_bytes");
    assert!(backed("after") < backed("before"), "{report:#}");
    assert!(report["work"]["moved"].as_u64().unwrap() > 1000);
    assert!(report["work"]["cycles"].as_u64().unwrap() > 0);
    assert!(report["work"]["longest_stop_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(
        (&report["scheme"], &report["pages"]),
        (&"piggyback".into(), &"2m".into())
    );
    assert_eq!(firn(&["scan", &pool, ""]).out, content);
    assert_eq!(firn(&["check", &pool]).status, 0);
    let stat = firn(&["stat", &pool, "--json"]).out;
    let stat: Value = serde_json::from_str(&stat).unwrap();
    assert_eq!(stat["ratio_4k"], report["after"]["ratio_4k"]);
    assert_eq!(stat["ratio_2m"], report["after"]["ratio_2m"]);
    assert_eq!(
        (&stat["open"], &stat["exact"]),
        (&false.into(), &true.into())
    );
    let again = firn(&["defrag", &pool, "--target", "9"]);
    assert!(again.out.contains("0 moved in 0 cycles"), "{}", again.out);
}

#[test]
fn every_sound_scheme_keeps_what_is_there() {
    for scheme in ["espresso", "sfccd", "piggyback", "none"] {
        let folder = Folder::new();
        let pool = folder.fragmented_pool("pool");
        let content = firn(&["scan", &pool, ""]).out;
        let report = defrag(&[&pool, "--pages", "4k", "--scheme", scheme]);
        let moved = report["work"]["moved"].as_u64().unwrap();
        assert_eq!(moved == 0, scheme == "none", "{report:#}");
        assert_eq!(firn(&["scan", &pool, ""]).out, content);
        assert_eq!(firn(&["check", &pool]).status, 0, "{scheme}");
    }
}

#[test]
fn the_picture_shows_before_and_after() {
    let folder = Folder::new();
    let (pool, svg) = (folder.fragmented_pool("pool"), folder.arg("map.svg"));
    let printed = firn(&["defrag", &pool, "--map", &svg]);
    assert!(printed.out.contains(&svg), "{}", printed.out);
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.contains(">\nbefore\n<") && svg.contains(">\nafter\n<"));
}

#[test]
fn what_is_refused_says_what_is_allowed() {
    let folder = Folder::new();
    let pool = folder.pool("pool.svg");
    let before = std::fs::read(&pool).unwrap();
    for (arguments, words) in [
        (
            ["--scheme", "copying"],
            &["copying", "espresso, sfccd, piggyback"][..],
        ),
        (
            ["--scheme", "sfccd-as-printed"],
            &["loses committed changes", "piggyback"],
        ),
        (["--target", "0.9"], &["target", "1 or more", "0.9"]),
        (["--pages", "3k"], &["3k", "4k, 2m"]),
        (["--map", "map.jpg"], &[".svg or .png"]),
        (["--map", &pool], &["is the pool itself"]),
    ] {
        let called = firn(&["defrag", &pool, arguments[0], arguments[1]]);
        assert_eq!(called.status, 2, "{arguments:?}");
        for word in words {
            assert!(called.err.contains(word), "{word}: {}", called.err);
        }
    }
    assert!(before == std::fs::read(&pool).unwrap());
}
