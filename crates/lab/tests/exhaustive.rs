//! Every crash of every short sequence, on every structure, under every scheme that keeps what was committed,
//! in every domain.

use firn_heap::collector::scheme::{FFCCD, FFCCD_CHECKLOOKUP, Scheme};
use firn_lab::Silent;
use firn_lab::crash::{Campaign, Mode, Setting, Structure, stock_schemes};
use firn_media::Domain;

/// Crashes every sequence of up to so many letters, and the recoveries to this depth.
fn crash(schemes: &[&'static Scheme], letters: usize, depth: u32) {
    let every = Setting::every(
        &Structure::all(),
        schemes,
        &[Domain::Adr, Domain::Eadr, Domain::Process],
    );
    let campaign = Campaign {
        settings: every
            .into_iter()
            .filter(|s| has_few_states(s, letters))
            .collect(),
        mode: Mode::Exhaustive(letters),
        depth,
        ..Campaign::default()
    };
    let report = campaign.run(&mut Silent).unwrap();
    assert!(report.ok, "{:?}", report.findings);
    let cut = report.rows.iter().filter(|row| !row.exhaustive);
    let cut: Vec<_> = cut
        .map(|row| (row.structure, row.scheme, row.domain))
        .collect();
    assert!(cut.is_empty(), "{cut:?}");
    let images: u128 = report.rows.iter().map(|row| row.images).sum();
    println!(
        "{letters} letters, depth {depth}: {} states of {images} images in {:.0} s",
        report.states, report.seconds
    );
}

/// Where caches are lost, two are beyond what can be tried. Hardware that settles line by line leaves each line
/// of each large node there or not, and recovery looks at each. And some inserts of the map log so many lines
/// that a torn entry alone leaves more states than a sequence may have.
fn has_few_states(setting: &Setting, letters: usize) -> bool {
    let (structure, is_adr) = (setting.structure.name(), setting.domain == Domain::Adr);
    let by_lines = setting.scheme.relocates() && structure == "inline_tree";
    !(is_adr && (by_lines || structure == "map" && letters > 1))
}

fn with_hardware() -> [&'static Scheme; 2] {
    [&FFCCD, &FFCCD_CHECKLOOKUP]
}

#[test]
fn one_letter_and_two_crashes_in_recovery() {
    crash(&stock_schemes(), 1, 2);
}

#[test]
fn one_letter_with_hardware() {
    crash(&with_hardware(), 1, 0);
}

#[test]
fn two_letters() {
    crash(&stock_schemes(), 2, 0);
}

#[test]
fn two_letters_with_hardware() {
    crash(&with_hardware(), 2, 0);
}

#[test]
#[ignore = "takes minutes; cargo xtask test --long"]
fn three_letters() {
    crash(&stock_schemes(), 3, 0);
}
