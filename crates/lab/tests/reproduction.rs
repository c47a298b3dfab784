//! Does what is reproduced have the shape that the paper prints: the order of schemes, and the signs?

use firn_lab::Silent;
use firn_lab::reproduction::{NAMES, Reproduced, Reproduction, ReproductionError, Scale};

fn reproduce(only: &[&str], out: &std::path::Path) -> Result<Reproduced, ReproductionError> {
    Reproduction {
        only: only.iter().map(|&name| name.to_owned()).collect(),
        scale: Scale::Quick,
        out: out.to_path_buf(),
        seed: 1,
    }
    .run(&mut Silent)
}

fn figure(reproduced: &Reproduced, name: &str, what: &str) -> f64 {
    let artefact = reproduced
        .artefacts
        .iter()
        .find(|artefact| artefact.name == name);
    let mut rows = artefact.unwrap().rows.iter();
    let row = rows.find(|row| row.what == what);
    row.unwrap_or_else(|| panic!("{name} has no `{what}`")).ours
}

/// Everything at the smallest scale, once; and the same again, for which nothing is run.
#[test]
fn figures_have_the_shape_that_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    let reproduced = reproduce(&[], directory.path()).unwrap();
    assert_eq!(reproduced.artefacts.len(), NAMES.len());
    let of = |name, what: &str| figure(&reproduced, name, what);

    // Fewer fences, less of copying; and less than that without any, where objects are small.
    let sfccd = of("fig14", "data copy of an object, SFCCD less than Espresso");
    assert!(sfccd > 0.0, "{sfccd}");
    for structure in ["AVL", "SS", "RB"] {
        let what = format!("data copy of an object, FFCCD less than Espresso, {structure}");
        assert!(of("fig14", &what) > sfccd, "{structure}");
    }
    let over = |scheme| of("fig14", &format!("time over no defragmentation, {scheme}"));
    assert!(over("espresso") > over("piggyback"));

    // Every structure is smaller with either target.
    for structure in [
        "LL, N", "AVL, N", "SS, N", "BT, N", "RB, N", "LL, R", "AVL, R", "SS, R", "BT, R", "RB, R",
    ] {
        let reduced = of("table3", &format!("fragmentation reduced, {structure}"));
        assert!(reduced > 0.0, "{structure}: {reduced}");
    }

    // What follows from the structures is exactly what is printed.
    for name in ["table1", "section4.3"] {
        let artefact = reproduced
            .artefacts
            .iter()
            .find(|artefact| artefact.name == name);
        let printed = artefact
            .unwrap()
            .rows
            .iter()
            .filter(|row| row.published.is_some());
        assert!(printed.clone().count() >= 3);
        assert!(printed.clone().all(|row| row.close == Some(true)), "{name}");
    }

    let page = std::fs::read_to_string(&reproduced.page).unwrap();
    assert!(page.contains("<svg") && page.contains(&reproduced.digest));
    assert!(
        !page.contains("http://www.w3.org/1999/xhtml\" src="),
        "it needs another file"
    );

    let again = reproduce(&["fig14"], directory.path()).unwrap();
    assert!(again.runs.0 > 40 && again.runs.1 == 0, "{:?}", again.runs);
    assert_eq!(again.artefacts.len(), 1);
}

#[test]
fn what_is_off_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let unknown = reproduce(&["fig99"], directory.path()).unwrap_err();
    assert!(unknown.to_string().contains("fig14"), "{unknown}");
    std::fs::write(directory.path().join("outcomes.jsonl"), "{}\n").unwrap();
    let broken = reproduce(&["table1"], directory.path()).unwrap_err();
    assert!(broken.to_string().contains("line 1"), "{broken}");
    assert!(Scale::named("huge").is_err());
}
