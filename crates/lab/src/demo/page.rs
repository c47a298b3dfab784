//! The page that shows what the demo did: one HTML file that needs no other.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write as _};
use std::path::{Path, PathBuf};

use firn_heap::Occupancy;

use super::{DemoReport, figures};
use crate::LabError;
use crate::map::{Panel, Picture};

/// What every page begins with, and what follows it and frames the rest.
const DOCTYPE: &str = "<!doctype html>";
const HEAD: &str = include_str!("page/head.html");
const TAIL: &str = "</main></body></html>\n";

/// The page's file, which goes again if nothing comes to be written.
pub(super) struct PageFile {
    path: PathBuf,
    file: File,
    is_new: bool,
}

impl PageFile {
    /// Makes the file, or opens it as it is: what cannot be written is told before the work.
    ///
    /// Errors: nowhere to write, or the file holds something that is no page.
    pub(super) fn make(path: &Path) -> Result<Self, LabError> {
        let is_new = !path.exists();
        let file = open(path).map_err(|source| LabError::Page {
            path: path.to_path_buf(),
            source,
        })?;
        Ok(Self {
            path: path.to_path_buf(),
            file,
            is_new,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the page, with pictures of what the pages held before and after.
    pub(super) fn write(
        mut self,
        report: &DemoReport,
        before: &Occupancy,
        after: &Occupancy,
    ) -> Result<(), LabError> {
        let html = html(report, before, after);
        let cut = self.file.rewind().and_then(|()| self.file.set_len(0));
        cut.and_then(|()| self.file.write_all(html.as_bytes()))
            .map_err(LabError::file(&self.path, "writing the page"))?;
        self.is_new = false;
        Ok(())
    }
}

/// Opens a file that is new, empty or a page.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    let mut file = options.open(path)?;
    let mut begin = Vec::new();
    (&mut file)
        .take(DOCTYPE.len() as u64)
        .read_to_end(&mut begin)?;
    if begin.is_empty() || begin == DOCTYPE.as_bytes() {
        return Ok(file);
    }
    let what = "it holds something that is no page";
    Err(io::Error::new(io::ErrorKind::AlreadyExists, what))
}

impl Drop for PageFile {
    fn drop(&mut self) {
        if self.is_new {
            // An empty page that stays does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn html(report: &DemoReport, before: &Occupancy, after: &Occupancy) -> String {
    let panel = |heading, occupancy| Panel { heading, occupancy };
    let picture = Picture::draw(&[panel("before", before), panel("after", after)]);
    let mut html = format!("{DOCTYPE}\n{HEAD}");
    // Writing to a string does not fail.
    let _ = write!(
        html,
        "<p>{}</p>\n<figure>\n{}\n<figcaption>{}</figcaption>\n</figure>\n",
        escaped(&figures::summary(report)),
        picture.svg(),
        escaped(figures::CAPTION),
    );
    for table in figures::tables(report) {
        let _ = writeln!(html, "<h2>{}</h2>\n<table>", escaped(&table.title));
        row(&mut html, "th", &table.head);
        for cells in &table.rows {
            row(&mut html, "td", cells);
        }
        html.push_str("</table>\n");
    }
    html.push_str(TAIL);
    html
}

fn row(html: &mut String, tag: &str, cells: &[String]) {
    if cells.is_empty() {
        return;
    }
    html.push_str("<tr>");
    for cell in cells {
        let _ = write!(html, "<{tag}>{}</{tag}>", escaped(cell));
    }
    html.push_str("</tr>\n");
}

/// Text as HTML: names of files may hold anything.
pub(crate) fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            other => html.push(other),
        }
    }
    html
}
