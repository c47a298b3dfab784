//! One HTML page that needs no other file, and a picture of its own for each chart.

use std::fmt::Write as _;
use std::fs::write as write_file;
use std::path::Path;

use super::artefacts::Row;
use super::{Artefact, Reproduced, ReproductionError};
use crate::demo::{Table, escaped};

const HEAD: &str = include_str!("page/head.html");
const TAIL: &str = "</main></body></html>\n";

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
    write_file(path, text).map_err(|source| ReproductionError::File {
        path: path.to_path_buf(),
        what: "writing it",
        source,
    })
}

fn html(reproduced: &Reproduced) -> String {
    let mut html = HEAD.to_owned();
    // Writing to a string does not fail.
    let _ = writeln!(
        html,
        "<p>Scale {}: {} objects of 128 bytes first, seed {}; {} runs on the machine {} (digest of its description \
         as run: {}); commit {}.</p>",
        reproduced.scale,
        reproduced.objects,
        reproduced.seed,
        reproduced.runs.0,
        escaped(&reproduced.machine),
        reproduced.digest,
        escaped(&reproduced.commit),
    );
    for artefact in &reproduced.artefacts {
        section(&mut html, artefact);
    }
    html.push_str(TAIL);
    html
}

fn section(html: &mut String, artefact: &Artefact) {
    let _ = writeln!(
        html,
        "<h2 id=\"{}\">{}</h2>",
        artefact.name,
        escaped(&artefact.title)
    );
    if let Some(chart) = &artefact.chart {
        let _ = writeln!(html, "<figure>{}</figure>", chart.svg());
    }
    table(html, &artefact.table());
    for note in &artefact.notes {
        let _ = writeln!(html, "<p>{}</p>", escaped(note));
    }
    for more in &artefact.tables {
        let _ = writeln!(html, "<h3>{}</h3>", escaped(&more.title));
        table(html, more);
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

fn table(html: &mut String, table: &Table) {
    html.push_str("<table>\n");
    row(html, "th", &table.head);
    for cells in &table.rows {
        row(html, "td", cells);
    }
    html.push_str("</table>\n");
}

fn row(html: &mut String, tag: &str, cells: &[String]) {
    html.push_str("<tr>");
    for cell in cells {
        let _ = write!(html, "<{tag}>{}</{tag}>", escaped(cell));
    }
    html.push_str("</tr>\n");
}
