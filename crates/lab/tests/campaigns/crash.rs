//! Does a campaign of crashes cover what it claims, and find broken code?

use std::collections::HashSet;

use firn_heap::PoolKind;
use firn_heap::collector::scheme::{ESPRESSO, PIGGYBACK, SFCCD, SFCCD_AS_PRINTED, Scheme};
use firn_heap::steps::ENTRY_FENCE;
use firn_lab::crash::{
    Campaign, CrashReport, Finding, Log, Mode, Program, Setting, Structure, read_logs, replay,
};
use firn_media::Domain;
use firn_tools::Silent;

/// The settings of structures of these names.
fn every(names: &[&str], schemes: &[&'static Scheme], domains: &[Domain]) -> Vec<Setting> {
    let structures = names.iter().map(|name| Structure::named(name).unwrap());
    Setting::every(&structures.collect::<Vec<_>>(), schemes, domains)
}

fn run(campaign: &Campaign) -> CrashReport {
    campaign.run(&mut Silent).unwrap()
}

/// Writes a finding, reads it, and replays it.
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
        settings: Setting::every(
            &Structure::ALL,
            &[&PIGGYBACK],
            &[Domain::Eadr, Domain::Process],
        ),
        ..Campaign::default()
    });
    assert!(report.ok, "{:?}", report.findings);
    let rows: HashSet<_> = report
        .rows
        .iter()
        .map(|row| (row.structure, row.domain))
        .collect();
    assert_eq!(rows.len(), 2 * Structure::ALL.len());
    for row in &report.rows {
        assert!(row.exhaustive && row.recovery_states > 0, "{row:?}");
        assert_eq!(row.executions, 17);
    }
}

#[test]
fn two_letters_cover_what_one_does_and_more() {
    let of = |ops| {
        run(&Campaign {
            settings: every(&["strings"], &[&ESPRESSO], &[Domain::Process]),
            mode: Mode::Exhaustive(ops),
            ..Campaign::default()
        })
    };
    let (one, two) = (of(1), of(2));
    assert!(one.ok && two.ok, "{:?} {:?}", one.findings, two.findings);
    assert!(two.states > one.states && two.rows[0].exhaustive);
    // At rest: a beginning leads to nine operations, seven others to eight. Under way: an end leads to eight, eight
    // others to nine. And all sequences of one operation.
    let at_rest = 9 + 7 * 8;
    let under_way = 8 + 8 * 9;
    assert_eq!(two.rows[0].executions, at_rest + under_way + 17);
}

#[test]
fn a_fence_that_is_left_out_is_missed_and_found_again() {
    for (mode, threads) in [(Mode::Exhaustive(2), 1), (Mode::injections(400), 4)] {
        let mut settings = every(&["queue"], &[&PIGGYBACK], &[Domain::Adr]);
        settings[0].threads = threads;
        let report = run(&Campaign {
            settings,
            mode,
            plant: Some(&ENTRY_FENCE),
            ..Campaign::default()
        });
        let finding = report.findings.first().expect("the fence is missed");
        match &finding.program {
            Program::Sequence(ops) => assert_eq!(ops.len(), 1, "the shortest"),
            Program::Operations(operations) => assert!(*operations < 500, "{operations}"),
        }
        found_again(finding);
    }
}

#[test]
fn the_printed_scheme_loses_a_commit() {
    let report = run(&Campaign {
        settings: every(&["list"], &[&SFCCD_AS_PRINTED], &[Domain::Adr]),
        ..Campaign::default()
    });
    let finding = report.findings.first().expect("S1 is found");
    let begun = ["begin".to_owned(), "step".to_owned()];
    assert!(
        matches!(&finding.program, Program::Sequence(ops) if ops.starts_with(&begun)),
        "{finding:?}"
    );
    found_again(finding);
}

/// Two old findings. A group of pages, all free except for sources of a cycle, lost its blocks; after a crash the free
/// pages were used without asking for blocks again. A plan closed the only chunk of a pool that cannot grow, and an
/// insert failed though the chunk had room.
#[test]
fn seeds_that_once_found_something_find_nothing() {
    let report = run(&Campaign {
        settings: every(
            &["list", "avl", "red_black"],
            &[&ESPRESSO, &SFCCD, &PIGGYBACK],
            &[Domain::Adr],
        ),
        mode: Mode::injections(160),
        ..Campaign::default()
    });
    assert!(report.ok, "{:?}", report.findings);
    assert_eq!(report.injected(), 9 * 160);
}

/// Pools with allocation bits, in which nothing is traced: short sequences and long runs.
#[test]
fn explicit_pools_lose_and_leak_nothing() {
    let mut settings = Setting::every(&Structure::ALL, &[&PIGGYBACK], &[Domain::Adr]);
    for setting in &mut settings {
        setting.pool = PoolKind::Explicit;
    }
    for mode in [Mode::Exhaustive(1), Mode::injections(48)] {
        let report = run(&Campaign {
            settings: settings.clone(),
            mode,
            ..Campaign::default()
        });
        assert!(report.ok, "{:?}", report.findings);
        assert!(
            report
                .rows
                .iter()
                .all(|row| row.pool == "explicit" && row.states > 0)
        );
    }
}

/// However a campaign is divided, the result is equal.
#[test]
fn pieces_of_a_campaign_are_the_campaign() {
    let folder = tempfile::tempdir().unwrap();
    let campaign = |each, from_run| Campaign {
        settings: every(&["list", "hash"], &[&PIGGYBACK], &[Domain::Adr]),
        mode: Mode::Injections { each, from_run },
        ..Campaign::default()
    };
    let whole = run(&campaign(100, 0));
    let log = |name: &str, part: &Campaign| {
        let path = folder.path().join(name);
        let mut log = Log::open(&path, part).unwrap();
        (part.run_into(Some(&mut log), &mut Silent).unwrap(), path)
    };
    let (_, first) = log("first", &campaign(20, 0));
    // An interruption leaves half a line.
    let mut text = std::fs::read(&first).unwrap();
    let lines = text.iter().filter(|&&byte| byte == b'\n').count();
    text.extend_from_slice(br#"{"setting":"li"#);
    std::fs::write(&first, &text).unwrap();
    let (resumed, _) = log("first", &campaign(32, 0));
    assert_eq!(resumed.injected(), 64);
    let (_, second) = log("second", &campaign(68, 2));
    let (joined, commits) = read_logs(&[second, first.clone()]).unwrap();
    assert_eq!((joined.injected(), commits.len()), (200, 1));
    assert_eq!((&joined.hash, joined.states), (&whole.hash, whole.states));
    assert!(joined.ok && !joined.cut);
    // The first run was done in full, the second once with four crashes and once with all.
    let after = std::fs::read(&first).unwrap();
    let lines_after = after.iter().filter(|&&byte| byte == b'\n').count();
    assert_eq!((lines, lines_after), (1 + 2 * 2, 1 + 2 * 3));
    let other = Campaign {
        seed: 2,
        ..campaign(32, 0)
    };
    assert!(Log::open(&first, &other).is_err());
}

#[test]
fn a_time_that_is_up_leaves_the_rest_undone() {
    let report = run(&Campaign {
        mode: Mode::injections(1000),
        time: Some(std::time::Duration::ZERO),
        ..Campaign::default()
    });
    assert!(report.cut && report.ok && report.injected() == 0);
}
