//! One HTML page that needs no other file, and a picture of its own for each chart.

use std::path::Path;

use firn_mapped::write_whole;

use super::Reproduced;
use super::artefact::Artefact;
use super::error::ReproductionError;
use crate::html::{Kind, Page};

pub(super) fn write(reproduced: &Reproduced) -> Result<(), ReproductionError> {
    put(&reproduced.page, &html(reproduced))?;
    let directory = reproduced.page.parent().unwrap_or(Path::new("."));
    for artefact in &reproduced.artefacts {
        if let Some(chart) = &artefact.chart {
            put(
                &directory.join(format!("{}.svg", artefact.name)),
                &chart.svg(),
            )?;
        }
    }
    Ok(())
}

fn put(path: &Path, text: &str) -> Result<(), ReproductionError> {
    write_whole(path, text.as_bytes()).map_err(|source| ReproductionError::File {
        path: path.to_path_buf(),
        what: "writing it",
        source,
    })
}

fn html(reproduced: &Reproduced) -> String {
    let mut page = Page::new(
        &format!("Firn: {} again", reproduced.paper.title),
        &format!(
            "{} again: published, ours, and why they differ",
            reproduced.paper.title
        ),
    );
    page.paragraph(&format!(
        "Scale {}: {} objects of 128 bytes first, seed {}; {} runs on the machine {} (digest of its description as \
         run: {}); commit {}.",
        reproduced.scale,
        reproduced.objects,
        reproduced.seed,
        reproduced.runs.0,
        reproduced.machine,
        reproduced.digest,
        reproduced.commit,
    ));
    for artefact in &reproduced.artefacts {
        section(&mut page, artefact);
    }
    page.part("What was run");
    reproduced
        .matrix
        .iter()
        .for_each(|line| page.paragraph(line));
    page.end()
}

fn section(page: &mut Page, artefact: &Artefact) {
    page.named_part(artefact.name, &artefact.title);
    if let Some(chart) = &artefact.chart {
        page.picture(&chart.svg(), "");
    }
    page.table(&artefact.table(), Kind::Reasons);
    artefact.notes.iter().for_each(|note| page.paragraph(note));
    for more in &artefact.tables {
        page.smaller_part(&more.title);
        page.table(more, Kind::Figures);
    }
}
