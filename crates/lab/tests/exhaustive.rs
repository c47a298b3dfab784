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

/// Where caches are lost, hardware that settles line by line leaves each line of each large object there or not,
/// and recovery looks at each: the inline tree's nodes, and more than one insert of the map, have more states than
/// can be tried.
fn has_few_states(setting: &Setting, letters: usize) -> bool {
    let by_lines = setting.domain == Domain::Adr && setting.scheme.relocates();
    match setting.structure.name() {
        "inline_tree" => !by_lines,
        "map" => !by_lines || letters < 2,
        _ => true,
    }
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
fn two_letters_and_two_crashes_in_recovery() {
    crash(&stock_schemes(), 2, 2);
}

#[test]
#[ignore = "takes minutes; cargo xtask test --long"]
fn three_letters() {
    crash(&stock_schemes(), 3, 0);
}
