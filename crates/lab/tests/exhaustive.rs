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
        settings: every.into_iter().filter(is_told_apart).collect(),
        mode: Mode::Exhaustive(letters),
        depth,
        ..Campaign::default()
    };
    let report = campaign.run(&mut Silent).unwrap();
    assert!(report.ok, "{:?}", report.findings);
    for row in &report.rows {
        assert!(row.exhaustive, "{row:?}");
    }
    let images: u128 = report.rows.iter().map(|row| row.images).sum();
    println!(
        "{letters} letters, depth {depth}: {} states of {images} images in {:.0} s",
        report.states, report.seconds
    );
}

/// Where caches are lost, hardware that settles line by line leaves each line of each large node there or not,
/// and recovery looks at each: as many states as images.
fn is_told_apart(setting: &Setting) -> bool {
    let by_lines = setting.scheme.relocates() && setting.domain == Domain::Adr;
    !(by_lines && setting.structure == Structure::named("inline_tree").unwrap())
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
