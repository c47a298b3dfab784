//! One HTML page that needs no other file, and a picture of its own for each chart.

use std::path::Path;

use firn_mapped::write_whole;

use super::artefacts::Row;
use super::{Artefact, Reproduced, ReproductionError};
use crate::Table;
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
        "Firn: FFCCD again",
        "FFCCD again: published, ours, and why they differ",
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

impl Artefact {
    /// What is compared, as a table.
    pub fn table(&self) -> Table {
        let head = ["", "published", "ours", "deviation", "close", "why not"];
        Table {
            title: self.title.clone(),
            head: head.map(str::to_owned).to_vec(),
            rows: self.rows.iter().map(Row::cells).collect(),
        }
    }
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let figure = |value: f64| match self.unit {
            "bytes" => format!("{value:.0} bytes"),
            "" => format!("{value:.2}"),
            unit => format!("{value:.1} {unit}"),
        };
        let off = self.published.map(|published| self.ours - published);
        vec![
            self.what.clone(),
            self.published.map_or_else(String::new, figure),
            figure(self.ours),
            off.map_or_else(String::new, |off| format!("{off:+.2}")),
            match self.close {
                Some(true) => "yes".to_owned(),
                Some(false) => "no".to_owned(),
                None => String::new(),
            },
            self.reason.to_owned(),
        ]
    }
}
