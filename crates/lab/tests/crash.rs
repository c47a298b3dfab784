//! Does a campaign of crashes cover what it says, and find what is broken?

use std::collections::HashSet;

use firn_heap::collector::scheme::{ESPRESSO, PIGGYBACK, SFCCD, SFCCD_AS_PRINTED};
use firn_heap::steps::ENTRY_FENCE;
use firn_lab::Silent;
use firn_lab::crash::{Campaign, CrashReport, Finding, Mode, Program, Structure, replay};
use firn_media::Domain;

fn named(names: &[&str]) -> Vec<Structure> {
    let one = |name: &&str| Structure::named(name).unwrap();
    names.iter().map(one).collect()
}

fn run(campaign: &Campaign) -> CrashReport {
    campaign.run(&mut Silent).unwrap()
}

/// Writes a finding, reads it, and runs it again.
fn found_again(finding: &Finding) {
    let folder = tempfile::tempdir().unwrap();
    let file = finding.write(folder.path()).unwrap();
    let read = Finding::read(&file).unwrap();
    assert_eq!(read, *finding);
    assert_eq!(replay(&file, &read).unwrap(), Err(finding.message.clone()));
}

#[test]
fn every_structure_is_crashed_everywhere_in_every_domain() {
    let report = run(&Campaign {
        schemes: vec![&PIGGYBACK],
        domains: vec![Domain::Eadr, Domain::Process],
        ..Campaign::default()
    });
    assert!(report.ok, "{:?}", report.findings);
    let rows: HashSet<_> = report
        .rows
        .iter()
        .map(|row| (row.structure, row.domain))
        .collect();
    assert_eq!(rows.len(), 2 * Structure::all().len());
    for row in &report.rows {
        assert!(row.exhaustive && row.recovery_states > 0, "{row:?}");
        assert_eq!(row.executions, 17);
    }
}

#[test]
fn two_letters_cover_what_one_does_and_more() {
    let of = |letters| {
        run(&Campaign {
            structures: named(&["strings"]),
            schemes: vec![&ESPRESSO],
            domains: vec![Domain::Process],
            mode: Mode::Exhaustive(letters),
            ..Campaign::default()
        })
    };
    let (one, two) = (of(1), of(2));
    assert!(one.ok && two.ok, "{:?} {:?}", one.findings, two.findings);
    assert!(two.states > one.states && two.rows[0].exhaustive);
    // At rest: a beginning leads to nine letters, seven others to eight. Under way: an end leads to
    // eight, eight others to nine. And all of one letter.
    let at_rest = 9 + 7 * 8;
    let under_way = 8 + 8 * 9;
    assert_eq!(two.rows[0].executions, at_rest + under_way + 17);
}

#[test]
fn a_fence_that_is_left_out_is_missed_and_found_again() {
    for (mode, threads) in [(Mode::Exhaustive(2), 1), (Mode::Injections(400), 4)] {
        let report = run(&Campaign {
            structures: named(&["queue"]),
            schemes: vec![&PIGGYBACK],
            mode,
            threads,
            plant: Some(&ENTRY_FENCE),
            ..Campaign::default()
        });
        let finding = report.findings.first().expect("the fence is missed");
        match &finding.program {
            Program::Sequence(letters) => assert_eq!(letters.len(), 1, "the shortest"),
            Program::Operations(operations) => assert!(*operations < 500, "{operations}"),
        }
        found_again(finding);
    }
}

#[test]
fn the_printed_scheme_loses_a_commit() {
    let report = run(&Campaign {
        structures: named(&["list"]),
        schemes: vec![&SFCCD_AS_PRINTED],
        ..Campaign::default()
    });
    let finding = report.findings.first().expect("S1 is found");
    let begun = ["begin".to_owned(), "step".to_owned()];
    assert!(
        matches!(&finding.program, Program::Sequence(letters) if letters.starts_with(&begun)),
        "{finding:?}"
    );
    found_again(finding);
}

/// A group of pages of which all but sources of a cycle were free lost its blocks, and a crash: the free
/// ones were used without asking for blocks again. A plan closed the only chunk of a pool that cannot
/// grow, and an insert failed though the chunk had room.
#[test]
fn seeds_that_once_found_something_find_nothing() {
    let report = run(&Campaign {
        structures: named(&["list", "avl", "red_black"]),
        schemes: vec![&ESPRESSO, &SFCCD, &PIGGYBACK],
        mode: Mode::Injections(160),
        ..Campaign::default()
    });
    assert!(report.ok, "{:?}", report.findings);
    assert_eq!(report.injected(), 9 * 160);
}
