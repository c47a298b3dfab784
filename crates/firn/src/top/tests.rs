//! Are the important figures on the screen, however small it is?

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use firn_tools::top::Scene;
use firn_tools::{
    CollectorFigures, LogFigures, Stat, StepTime, StopBucket, StopFigures, TypeFigures,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::draw::draw;
use super::ends;
use super::plain;

/// The screen on a terminal of this size.
fn drawn(scene: &Scene, columns: u16, lines: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
    terminal
        .draw(|frame| draw(scene, frame.area(), frame.buffer_mut()))
        .unwrap();
    plain::text_of(terminal.backend().buffer()).join("\n")
}

fn stat(commits: u64) -> Stat {
    let step = StepTime {
        ms: 12.5,
        cpu_ms: 10.0,
    };
    let bucket = |i: u32| StopBucket {
        from_ns: 1 << i,
        below_ns: 2 << i,
        count: u64::from(i),
    };
    let of_type = |name: &str, live_bytes| TypeFigures {
        name: name.into(),
        version: 1,
        objects: 7,
        live_bytes,
    };
    Stat {
        layout: "firn map".into(),
        kind: "traced",
        backing: "disk",
        open: true,
        cycle_open: true,
        objects: 31_839,
        live_bytes: 12 << 20,
        footprint_4k_bytes: 13 << 20,
        footprint_2m_bytes: 48 << 20,
        ratio_4k: Some(13.0 / 12.0),
        ratio_2m: Some(4.0),
        file_bytes: 64 << 20,
        file_backed_bytes: 16 << 20,
        commits,
        aborts: commits / 10,
        collector: CollectorFigures {
            cycles: 4,
            moved_objects: 1234,
            moved_bytes: 5 << 20,
            mark: step,
            summary: step,
            compact: step,
            finish: step,
            stops: StopFigures {
                count: 48,
                total_ms: 1.5,
                longest_ms: 0.18,
                histogram: (10..30).map(bucket).collect(),
            },
            ..CollectorFigures::default()
        },
        types: vec![of_type("small", 10), of_type("firn.map.node", 4 << 20)],
        ..Stat::default()
    }
}

fn scene() -> Scene {
    let mut scene = Scene::new("/some/where/p.firn".into(), stat(0));
    scene.see(stat(177_572), Duration::from_secs(2));
    scene
}

fn assert_says(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "{words}:\n{text}");
    }
}

#[test]
fn a_log_is_shown_where_there_is_one() {
    let with_log = |commits, writes| Stat {
        log: Some(LogFigures {
            lag_bytes: 3 << 20,
            writes,
            ..LogFigures::default()
        }),
        ..stat(commits)
    };
    let mut scene = Scene::new("/some/where/p.firn".into(), with_log(0, 0));
    scene.see(with_log(9000, 2000), Duration::from_secs(2));
    let text = drawn(&scene, 120, 40);
    assert_says(&text, &["4.5 a write, 1 000 writes /s, 3.0 MiB behind"]);
}

#[test]
fn a_large_terminal_shows_everything() {
    let text = drawn(&scene(), 120, 40);
    assert_says(
        &text,
        &[
            "/some/where/p.firn  open  firn map (traced), disk",
            "12.0 MiB in 31 839 objects",
            "13.0 MiB  ratio 1.083",
            "48.0 MiB  ratio 4.000",
            "16.0 MiB of 64.0 MiB",
            "ratio on 2 MiB pages, 4.00 to 4.00",
            "88 786 /s  177 572 in all",
            "8 878 /s",
            "commits a second, peak 88 786",
            "moving objects; 4 cycles (+0)",
            "1 234, 5.0 MiB",
            "marking",
            "12.5 ms ████",
            "48, total 1.5 ms",
            "0.180 ms",
            " us to ",
            "firn.map.node",
            "nothing so far",
            "q, Esc or Ctrl-C quits",
        ],
    );
    assert!(text.find("firn.map.node") < text.find("small"), "{text}");
}

#[test]
fn a_small_terminal_shows_the_main_figures() {
    let text = drawn(&scene(), 40, 10);
    assert_says(
        &text,
        &[
            "p.firn  open",
            "88 786 /s",
            "12.0 MiB in 31 839",
            "ratio 4.000 █",
            "4 cycles",
            "48, longest 0.180 ms",
            "q, Esc",
        ],
    );
    assert!(!text.contains("/some/where"), "{text}");
}

#[test]
fn no_terminal_is_too_small() {
    for (columns, lines) in [
        (0, 0),
        (1, 1),
        (3, 2),
        (20, 1),
        (76, 22),
        (75, 60),
        (500, 4),
    ] {
        drawn(&scene(), columns, lines);
    }
    let empty = Scene::new("p".into(), Stat::default());
    for (columns, lines) in [(40, 10), (120, 40)] {
        assert_says(&drawn(&empty, columns, lines), &["closed", "- /s", "none"]);
    }
}

#[test]
fn what_befell_the_pool_is_told_in_both() {
    let mut scene = scene();
    let grown = Stat {
        file_bytes: 128 << 20,
        ..stat(177_572)
    };
    scene.see(grown, Duration::from_secs(3));
    let grew = "file grew from 64.0 MiB to 128.0 MiB";
    assert_says(&drawn(&scene, 120, 40), &["open, idle", "3 s", grew]);
    scene.miss(
        "/some/where/p.firn: not found; check the path",
        Duration::from_secs(4),
    );
    for (columns, lines) in [(120, 40), (60, 12)] {
        let text = drawn(&scene, columns, lines);
        assert_says(&text, &["cannot be read: not found", "- /s"]);
    }
}

#[test]
fn only_its_keys_end_it() {
    let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
    let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    for key in [plain(KeyCode::Char('q')), plain(KeyCode::Esc), control('c')] {
        assert!(ends(&key));
    }
    for key in [
        plain(KeyCode::Char('c')),
        plain(KeyCode::Enter),
        control('d'),
    ] {
        assert!(!ends(&key));
    }
}
