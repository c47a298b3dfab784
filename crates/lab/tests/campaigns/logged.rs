//! Do pools on a medium with a log survive as a prefix of their transactions, with all that were waited for?

use std::path::Path;

use firn_heap::collector::scheme::FFCCD;
use firn_heap::steps::{ENTRIES_HIDDEN, ENTRY_FENCE, HOMES_WRITE_BACK, WORDS_BEHIND_GAPS};
use firn_lab::crash::{
    Campaign, CrashReport, Mode, Setting, Structure, domain, replay, stock_schemes,
};
use firn_tools::Silent;

fn settings(domains: &[&str]) -> Vec<Setting> {
    let domains = domains.iter().map(|name| domain(name).unwrap());
    let domains: Vec<_> = domains.collect();
    Setting::every(&Structure::ALL, &stock_schemes(), &domains)
}

fn run(campaign: &Campaign) -> CrashReport {
    let report = campaign.run(&mut Silent).unwrap();
    let images: u128 = report.rows.iter().map(|row| row.images).sum();
    let seconds: f64 = report.rows.iter().map(|row| row.seconds).sum();
    println!(
        "{:?}, depth {}: {} states of {images} images, {seconds:.0} s of processor time",
        campaign.mode, campaign.depth, report.states
    );
    report
}

/// Crashes every sequence of up to this many operations, and the recoveries to this depth.
fn crash(domains: &[&str], ops: usize, depth: u32) {
    let report = run(&Campaign {
        settings: settings(domains),
        mode: Mode::Exhaustive(ops),
        depth,
        ..Campaign::default()
    });
    assert!(report.ok, "{:?}", report.findings);
    for row in &report.rows {
        assert!(row.exhaustive && row.states > 0, "{row:?}");
    }
}

#[test]
fn two_letters_and_two_crashes_in_recovery() {
    crash(&["logged"], 2, 2);
}

#[test]
fn a_letter_that_does_not_wait_and_two_crashes_in_recovery() {
    crash(&["logged-written"], 1, 2);
}

/// Some transactions are records, others have entries in lanes.
#[test]
fn two_letters_of_both_ways_and_two_crashes_in_recovery() {
    crash(&["logged-mixed"], 2, 2);
}

#[test]
#[ignore = "takes minutes; cargo xtask test --long"]
fn three_letters_of_both_ways_and_two_crashes_in_recovery() {
    crash(&["logged-mixed"], 3, 2);
}

#[test]
#[ignore = "takes minutes; cargo xtask test --long"]
fn three_letters_and_two_crashes_in_recovery() {
    crash(&["logged"], 3, 2);
}

#[test]
#[ignore = "takes minutes; cargo xtask test --long"]
fn letters_that_do_not_wait_and_two_crashes_in_recovery() {
    crash(&["logged-written"], 2, 2);
}

/// Random runs of two threads beside the collector.
fn two_threads(injections: u64) {
    let mut settings = settings(&["logged", "logged-written", "logged-mixed"]);
    for setting in &mut settings {
        setting.threads = 2;
    }
    let report = run(&Campaign {
        settings,
        mode: Mode::injections(injections),
        ..Campaign::default()
    });
    assert!(report.ok, "{:?}", report.findings);
    for row in &report.rows {
        assert_eq!(row.injections, injections);
    }
}

#[test]
fn two_threads_beside_the_collector() {
    two_threads(32);
}

#[test]
#[ignore = "takes minutes; cargo xtask test --long"]
fn two_threads_beside_the_collector_for_long() {
    two_threads(4000);
}

/// A transaction that writes nothing back has no place in the log that it could wait for; one with an entry has none
/// without the fence at its end.
#[test]
fn what_gives_a_transaction_its_place_is_missed() {
    for (domain, step) in [
        ("logged", &HOMES_WRITE_BACK),
        ("logged-written", &HOMES_WRITE_BACK),
        ("logged-mixed", &ENTRY_FENCE),
    ] {
        let report = run(&Campaign {
            settings: settings(&[domain])[..1].to_vec(),
            mode: Mode::Exhaustive(2),
            plant: Some(step),
            ..Campaign::default()
        });
        assert_eq!(report.findings.len(), 1, "{domain}");
        let finding = &report.findings[0];
        assert_eq!(finding.domain, domain);
        let again = replay(Path::new("finding"), finding).unwrap();
        assert_eq!(again.as_ref(), Err(&finding.message));
    }
}

/// R14: recovery carries out an entry again, over what a later record has stored.
#[test]
fn an_entry_that_is_not_hidden_from_recovery_is_missed() {
    let report = run(&Campaign {
        settings: settings(&["logged-mixed"]),
        mode: Mode::Exhaustive(2),
        plant: Some(&ENTRIES_HIDDEN),
        ..Campaign::default()
    });
    assert!(!report.ok && !report.findings.is_empty());
}

/// R5: the log holds words, not the lines that they are in.
#[test]
fn a_word_that_is_not_written_back_with_others_of_its_line_is_missed() {
    let report = run(&Campaign {
        settings: settings(&["logged"]),
        mode: Mode::Exhaustive(2),
        plant: Some(&WORDS_BEHIND_GAPS),
        ..Campaign::default()
    });
    assert!(!report.ok && !report.findings.is_empty());
}

#[test]
fn a_scheme_that_needs_hardware_is_refused() {
    let logged = [domain("logged").unwrap()];
    let campaign = Campaign {
        settings: Setting::every(&Structure::ALL[..1], &[&FFCCD], &logged),
        ..Campaign::default()
    };
    let refused = campaign.run(&mut Silent).unwrap_err();
    assert!(refused.to_string().contains("espresso"), "{refused}");
}
