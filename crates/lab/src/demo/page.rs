//! The page about the demo: one HTML file that needs no other.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use firn_heap::Occupancy;
use firn_mapped::write_whole;
use firn_tools::ToolError;
use firn_tools::map::{Panel, Picture};

use super::{DemoReport, figures};
use crate::LabError;
use crate::html::{DOCTYPE, Kind, Page};

/// The page's file, which is removed again if nothing is written.
pub(super) struct PageFile {
    path: PathBuf,
    is_new: bool,
}

impl PageFile {
    /// Makes the file, or opens it as it is, so that a page that cannot be written is reported before the work.
    ///
    /// Errors: nowhere to write, or the file holds something other than a page.
    pub(super) fn make(path: &Path) -> Result<Self, LabError> {
        let is_new = !path.exists();
        open(path).map_err(|source| LabError::Page {
            path: path.to_path_buf(),
            source,
        })?;
        Ok(Self {
            path: path.to_path_buf(),
            is_new,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the page, with pictures of the pages before and after.
    pub(super) fn write(
        mut self,
        report: &DemoReport,
        before: &Occupancy,
        after: &Occupancy,
    ) -> Result<(), LabError> {
        let html = html(report, before, after);
        write_whole(&self.path, html.as_bytes())
            .map_err(ToolError::file(&self.path, "writing the page"))?;
        self.is_new = false;
        Ok(())
    }
}

/// Makes a file, or checks that the existing one is empty or a page.
fn open(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    let mut file = options.open(path)?;
    let mut begin = Vec::new();
    (&mut file)
        .take(DOCTYPE.len() as u64)
        .read_to_end(&mut begin)?;
    if begin.is_empty() || begin == DOCTYPE.as_bytes() {
        return Ok(());
    }
    let what = "it holds something that is no page";
    Err(io::Error::new(io::ErrorKind::AlreadyExists, what))
}

impl Drop for PageFile {
    fn drop(&mut self) {
        if self.is_new {
            // An empty page that is left behind does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn html(report: &DemoReport, before: &Occupancy, after: &Occupancy) -> String {
    let panel = |heading, occupancy| Panel { heading, occupancy };
    let picture = Picture::draw(&[panel("before", before), panel("after", after)]);
    let mut page = Page::new("Firn: a pool before and after", "A pool before and after");
    page.paragraph(&figures::summary(report));
    page.picture(&picture.svg(), figures::CAPTION);
    for table in figures::tables(report) {
        page.part(&table.title);
        page.table(&table, Kind::Figures);
    }
    page.end()
}
