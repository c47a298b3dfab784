//! Every crash of every short sequence, on every structure, under every scheme that keeps committed data, in every
//! domain.

use firn_heap::collector::scheme::{FFCCD, FFCCD_CHECKLOOKUP, Scheme};
use firn_lab::crash::{Campaign, Mode, Setting, Structure, stock_schemes};
use firn_media::Domain;
use firn_tools::Silent;

/// Crashes every sequence of up to this many operations, and the recoveries to this depth.
fn crash(schemes: &[&'static Scheme], ops: usize, depth: u32) {
    let domains = [Domain::Adr, Domain::Eadr, Domain::Process];
    let campaign = Campaign {
        settings: Setting::every(&Structure::ALL, schemes, &domains),
        mode: Mode::Exhaustive(ops),
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
        "{ops} operations, depth {depth}: {} states of {images} images in {:.0} s",
        report.states, report.seconds
    );
}

fn with_hardware() -> [&'static Scheme; 2] {
    [&FFCCD, &FFCCD_CHECKLOOKUP]
}

#[test]
fn two_letters_and_two_crashes_in_recovery() {
    crash(&stock_schemes(), 2, 2);
}

#[test]
fn one_letter_with_hardware_and_two_crashes_in_recovery() {
    crash(&with_hardware(), 1, 2);
}

#[test]
fn two_letters_with_hardware_and_a_crash_in_recovery() {
    crash(&with_hardware(), 2, 1);
}

#[test]
fn three_letters() {
    crash(&stock_schemes(), 3, 0);
}

#[test]
#[ignore = "takes minutes; cargo xtask test --long"]
fn three_letters_and_two_crashes_in_recovery() {
    crash(&stock_schemes(), 3, 2);
}

#[test]
#[ignore = "takes minutes; cargo xtask test --long"]
fn three_letters_with_hardware_and_two_crashes_in_recovery() {
    crash(&with_hardware(), 3, 2);
}
