//! Is every damaged pool a clear error or a sound answer, and can saved damage be repeated?

use firn_lab::crash::Structure;
use firn_lab::damage::{Condition, DamageCampaign, DamageFinding, DamageReport, Until};

fn damage(structures: Vec<Structure>, runs: u64, seed: u64) -> DamageReport {
    let campaign = DamageCampaign {
        structures,
        until: Until::Runs(runs),
        seed,
        corpus: None,
    };
    campaign.run().unwrap()
}

#[test]
fn damaged_pools_of_every_structure_are_errors_or_answers() {
    for seed in [11, 12] {
        let report = damage(Structure::ALL.to_vec(), 1080, seed);
        assert!(report.ok, "{:?}", report.findings);
        let rows = Structure::ALL.len() * Condition::ALL.len();
        assert_eq!(report.rows.len(), rows);
        // Damage without effect, and damage that no open accepts, gives few answers.
        assert!(report.answers > 80, "{} answers", report.answers);
        assert!(report.unnoticed < report.runs / 2, "{report:?}");
    }
}

#[test]
fn equal_seeds_give_equal_campaigns() {
    let of = |seed| {
        let report = damage(vec![Structure::named("avl").unwrap()], 60, seed);
        (report.answers, report.unnoticed, report.corpus)
    };
    assert_eq!(of(5), of(5));
}

#[test]
fn damage_that_led_to_new_answers_is_kept_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = folder.path().join("new");
    let campaign = |runs| DamageCampaign {
        structures: vec![Structure::named("list").unwrap()],
        until: Until::Runs(runs),
        seed: 3,
        corpus: Some(corpus.clone()),
    };
    let first = campaign(30).run().unwrap();
    let files = std::fs::read_dir(&corpus).unwrap();
    let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 4 && files.len() == first.corpus);
    let kept = DamageFinding::read(&files[0]).unwrap();
    assert!(Condition::ALL.contains(&kept.condition) && !kept.mutations.is_empty());
    assert_eq!(kept.replay().unwrap(), Ok(()));
    let again = campaign(3).run().unwrap();
    assert!(again.corpus >= first.corpus);
}
