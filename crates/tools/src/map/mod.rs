//! Pictures of pools: a small square a page, its colour what the page holds and how full it is.
//!
//! ```text
//! picture    what is drawn where      square   what a page counts as, and its colours
//! layout     how squares are arranged legend   what the colours mean
//! scene      marks on paper           svg, png, font   the two ways to put them down
//! ```
//!
//! [`Picture::draw`] takes snapshots, so a program can take one of its own pool before and after
//! something, and show both side by side.

mod error;
mod font;
mod layout;
mod legend;
mod picture;
mod png;
mod scene;
mod square;
mod svg;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use firn_heap::{FrameContent, Occupancy};
use firn_mapped::Mapped;
use firn_media::Space;
use firn_units::FRAME_BYTES;
use serde::Serialize;

use crate::ToolError;

pub use error::MapError;
pub use picture::{Panel, Picture};

/// Levels of fullness by which pages are counted.
const TENTHS: usize = 10;

/// The result of [`map`].
#[derive(Clone, Debug, Serialize)]
pub struct MapReport {
    /// The picture's file.
    pub picture: String,
    /// Pages for which a square stands.
    pub pages_a_square: u64,
    /// Figures of the pools, in the order of the picture.
    pub pools: Vec<MapFigures>,
}

/// What the pages of a pool hold.
#[derive(Clone, Debug, Serialize)]
pub struct MapFigures {
    /// The pool's file.
    pub pool: String,
    /// Whether the fullness of each page is known.
    pub exact: bool,
    /// Objects.
    pub objects: u64,
    /// Bytes of the objects as requested.
    pub live_bytes: u64,
    /// Bytes of the 4 KiB pages that hold a live object.
    pub footprint_4k_bytes: u64,
    /// Bytes of the 2 MiB pages that hold a live object.
    pub footprint_2m_bytes: u64,
    /// Footprint on 4 KiB pages divided by live bytes; none without objects.
    pub ratio_4k: Option<f64>,
    /// Footprint on 2 MiB pages divided by live bytes; none without objects.
    pub ratio_2m: Option<f64>,
    /// Pages of 4 KiB.
    pub pages: u64,
    /// Pages of metadata, logs and tables.
    pub metadata_pages: u64,
    /// Free pages.
    pub free_pages: u64,
    /// Free pages for which the device still holds data; none if the medium cannot tell.
    pub free_pages_with_data: Option<u64>,
    /// Pages of runs of slots.
    pub slot_pages: u64,
    /// Pages of large objects.
    pub large_pages: u64,
    /// Pages in use of unknown fullness.
    pub unknown_pages: u64,
    /// Pages in use that hold no object.
    pub empty_pages: u64,
    /// Pages that hold objects, by the share of their bytes that objects fill: up to a tenth, up to two tenths, and so
    /// on.
    pub pages_by_tenth: [u64; TENTHS],
}

/// Draws the pool in `path`, and `beside` to its right, into `picture`, an SVG or PNG file that is made or replaced.
/// Programs may have the pools open.
///
/// Errors: no such pool, damaged; the picture's name has another extension, or is a directory or one of the pools.
/// Nothing was written then.
pub fn map(path: &Path, beside: Option<&Path>, picture: &Path) -> Result<MapReport, ToolError> {
    let kind = PictureKind::of(picture)?;
    let pools: Vec<&Path> = [Some(path), beside].into_iter().flatten().collect();
    for pool in &pools {
        refuse_pool(pool, picture)?;
    }
    let taken: Result<Vec<Occupancy>, ToolError> = pools.iter().map(|p| occupancy(p)).collect();
    let taken = taken?;
    let headings: Vec<String> = pools.iter().map(|path| heading(path)).collect();
    let panel = |(heading, occupancy)| Panel { heading, occupancy };
    let panels: Vec<Panel<'_>> = headings
        .iter()
        .map(String::as_str)
        .zip(&taken)
        .map(panel)
        .collect();
    let drawn = Picture::draw(&panels);
    drawn.write_as(kind, picture)?;
    Ok(MapReport {
        picture: picture.display().to_string(),
        pages_a_square: drawn.pages_a_square(),
        pools: pools
            .iter()
            .zip(&taken)
            .map(|(path, taken)| MapFigures::of(&path.display().to_string(), taken))
            .collect(),
    })
}

/// What each page of the pool in `path` holds, whether or not a program has it open.
///
/// Errors: no such file, not a pool, a damaged one.
pub fn occupancy(path: &Path) -> Result<Occupancy, ToolError> {
    let medium = Mapped::peek(path)?;
    Occupancy::read(&medium).map_err(|source| ToolError::Format {
        path: medium.name(),
        source,
    })
}

fn heading(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.display().to_string()
}

/// Refuses to write a picture over its pool, which would destroy the pool.
pub(crate) fn refuse_pool(pool: &Path, picture: &Path) -> Result<(), MapError> {
    let identity = |path| fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    let path = picture.to_path_buf();
    match (identity(pool), identity(picture)) {
        (Some(pool), Some(picture)) if pool == picture => Err(MapError::IsPool { path }),
        _ => Ok(()),
    }
}

/// Refuses a picture whose file name has no known extension.
pub(crate) fn refuse_unnamed(picture: &Path) -> Result<(), MapError> {
    PictureKind::of(picture).map(|_| ())
}

/// How a picture is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PictureKind {
    Svg,
    Png,
}

impl PictureKind {
    /// The kind that a file name's extension asks for.
    fn of(path: &Path) -> Result<Self, MapError> {
        let path_buf = || path.to_path_buf();
        if path.is_dir() {
            return Err(MapError::Directory { path: path_buf() });
        }
        let ending = path.extension().map(|e| e.to_ascii_lowercase());
        match ending.as_ref().and_then(|e| e.to_str()) {
            Some("svg") => Ok(Self::Svg),
            Some("png") => Ok(Self::Png),
            _ => Err(MapError::Ending { path: path_buf() }),
        }
    }
}

impl MapFigures {
    /// Counts the pages of `occupancy` under the name `pool`.
    pub fn of(pool: &str, occupancy: &Occupancy) -> Self {
        let mut figures = Self {
            pool: pool.to_owned(),
            exact: occupancy.exact,
            objects: occupancy.objects,
            live_bytes: occupancy.live_bytes,
            footprint_4k_bytes: occupancy.footprint_4k_bytes,
            footprint_2m_bytes: occupancy.footprint_2m_bytes,
            ratio_4k: occupancy.ratio_4k(),
            ratio_2m: occupancy.ratio_2m(),
            pages: occupancy.frames.len() as u64,
            metadata_pages: 0,
            free_pages: 0,
            free_pages_with_data: None,
            slot_pages: 0,
            large_pages: 0,
            unknown_pages: 0,
            empty_pages: 0,
            pages_by_tenth: [0; TENTHS],
        };
        for frame in &occupancy.frames {
            figures.count(frame.content, frame.has_data);
        }
        figures
    }

    fn count(&mut self, content: FrameContent, has_data: Option<bool>) {
        match content {
            FrameContent::Metadata | FrameContent::Log | FrameContent::Table => {
                self.metadata_pages += 1;
                return;
            }
            FrameContent::Free => {
                self.free_pages += 1;
                if let Some(has_data) = has_data {
                    *self.free_pages_with_data.get_or_insert(0) += u64::from(has_data);
                }
                return;
            }
            FrameContent::Slots { .. } => self.slot_pages += 1,
            FrameContent::Large { .. } => self.large_pages += 1,
        }
        match content.live_bytes() {
            None => self.unknown_pages += 1,
            Some(0) => self.empty_pages += 1,
            Some(live) => {
                let tenth = (live - 1) * TENTHS as u64 / FRAME_BYTES;
                self.pages_by_tenth[(tenth as usize).min(TENTHS - 1)] += 1;
            }
        }
    }
}
