//! Defragmenting a pool: its objects move together, and the pages that they leave go back to the device.

use std::path::{Path, PathBuf};
use std::time::Instant;

use firn_heap::collector::scheme::{SCHEMES, Scheme};
use firn_heap::collector::{CollectOptions, Collected, Ended, PageSize};
use firn_heap::{Occupancy, Pool, Statistics};
use firn_mapped::{Mapped, MappedOptions};
use serde::Serialize;

use crate::any::open_to_change;
use crate::figures::ms;
use crate::map::{Panel, Picture, refuse_pool, refuse_unnamed};
use crate::{Progress, ToolError};

/// Objects moved between two reports of progress.
const STEP_UNITS: u64 = 1 << 14;

/// What to do.
#[derive(Clone, Debug)]
pub struct DefragPlan {
    /// The pool's file.
    pub pool: PathBuf,
    /// Ratio of page bytes to live bytes at which the collection may end; at least 1.
    pub target: f64,
    /// Which pages count.
    pub pages: PageSize,
    /// How a copy comes to count; see [`scheme`].
    pub scheme: &'static Scheme,
    /// Draws the pool before and after into this SVG or PNG file, which is made or replaced.
    pub map: Option<PathBuf>,
    /// How its file is mapped.
    pub mapped: MappedOptions,
}

/// The outcome.
#[derive(Clone, Debug, Serialize)]
pub struct DefragReport {
    /// The pool's file.
    pub pool: String,
    /// Target ratio.
    pub target: f64,
    /// Size of the pages counted: `4k` or `2m`.
    pub pages: &'static str,
    /// How copies came to count.
    pub scheme: &'static str,
    /// Whether the target is reached. If not, `ended` says why.
    pub reached: bool,
    /// Why the collection ended, in words.
    pub ended: &'static str,
    /// Whether nothing moved because there was no room, although there was something to gain.
    pub lacked_room: bool,
    /// Bytes of pages of objects above 1 MiB, which do not move.
    pub large_bytes: u64,
    /// The pool before.
    pub before: Standing,
    /// The pool after.
    pub after: Standing,
    /// The collector's work.
    pub work: Work,
    /// Total time, including opening and closing.
    pub seconds: f64,
    /// The picture's file.
    pub map: Option<String>,
}

/// How full a pool's pages are, and the size of its file.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Standing {
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
    /// Length of the file.
    pub file_bytes: u64,
    /// Bytes of the file that have blocks.
    pub file_backed_bytes: u64,
}

/// The collector's work, and the time it took.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Work {
    /// Cycles: each marks, plans, moves and frees.
    pub cycles: u64,
    /// Objects that moved.
    pub moved: u64,
    /// Unreachable objects that were reclaimed.
    pub reclaimed: u64,
    /// Bytes of free space that went back to the device.
    pub released_bytes: u64,
    /// Times that the collector stopped the program.
    pub stops: u64,
    /// The longest of them.
    pub longest_stop_ms: f64,
    /// Time of marking and reclaiming.
    pub mark_ms: f64,
    /// Time of choosing and planning.
    pub summary_ms: f64,
    /// Time of moving objects.
    pub compact_ms: f64,
    /// Time of healing references and freeing pages.
    pub finish_ms: f64,
}

/// The scheme of this name, if it is safe for a pool that matters.
///
/// Errors: there is none, or it is kept only to show what it loses.
pub fn scheme(name: &str) -> Result<&'static Scheme, ToolError> {
    let sound = SCHEMES
        .iter()
        .filter(|scheme| scheme.is_for_stock_hardware());
    let allowed = sound.map(|scheme| scheme.name).collect::<Vec<_>>();
    match Scheme::named(name) {
        Some(scheme) if scheme.is_for_stock_hardware() => Ok(scheme),
        Some(scheme) => Err(ToolError::UnsoundScheme {
            name: scheme.name,
            source_of: scheme.source,
            allowed: allowed.join(", "),
        }),
        None => Err(ToolError::Scheme {
            name: name.to_owned(),
            allowed: allowed.join(", "),
        }),
    }
}

/// Collects the pool in the plan's file until its ratio is at the target or nothing more can be gained, and gives its
/// free space back to the device. A pool that was not closed is recovered and traced first, and an interrupted
/// collection is completed.
///
/// Errors: a target below 1; no such file, in use, no pool, damaged; the picture cannot be drawn, which is found before
/// anything else is done. Crash: at any moment; nothing is lost, and the next open or `defrag` continues.
pub fn defrag(plan: &DefragPlan, progress: &mut dyn Progress) -> Result<DefragReport, ToolError> {
    let start = Instant::now();
    if !(plan.target >= 1.0 && plan.target.is_finite()) {
        return Err(ToolError::Range {
            what: "the target ratio",
            range: "1 or more",
            found: plan.target.to_string(),
        });
    }
    if let Some(picture) = &plan.map {
        refuse_unnamed(picture)?;
        refuse_pool(&plan.pool, picture)?;
    }
    let pool = open_to_change(&plan.pool, &plan.mapped, progress)?;
    let defragmented = on(&pool, plan, progress);
    let closed = pool.close().map_err(ToolError::pool(&plan.pool));
    let mut report = defragmented?;
    closed?;
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}

fn on(
    pool: &Pool<Mapped>,
    plan: &DefragPlan,
    progress: &mut dyn Progress,
) -> Result<DefragReport, ToolError> {
    let path = &plan.pool;
    let before = taken(pool, path)?;
    let standing_before = Standing::of(&before, path)?;
    let collected = collect(pool, plan, progress).map_err(ToolError::pool(path))?;
    progress.begin("giving free space back", None);
    let released = pool.release_free_space().map_err(ToolError::pool(path));
    progress.end();
    let released = released?;
    // A pool with a log gives blocks back when its log is home.
    pool.sync().map_err(ToolError::pool(path))?;
    let after = taken(pool, path)?;
    if let Some(picture) = &plan.map {
        let panel = |heading, occupancy| Panel { heading, occupancy };
        Picture::draw(&[panel("before", &before), panel("after", &after)]).write(picture)?;
    }
    let stops = pool.collector_stops();
    Ok(DefragReport {
        pool: path.display().to_string(),
        target: plan.target,
        pages: pages_name(plan.pages),
        scheme: plan.scheme.name,
        reached: pool.ratio(plan.pages) <= plan.target,
        ended: collected.ended.words(),
        lacked_room: collected.ended == Ended::NoRoom && collected.planned == 0,
        large_bytes: collected.large_bytes,
        before: standing_before,
        after: Standing::of(&after, path)?,
        work: Work {
            released_bytes: released,
            stops: stops.count,
            longest_stop_ms: ms(stops.longest_ns),
            ..Work::of(&collected)
        },
        seconds: 0.0,
        map: plan.map.as_ref().map(|map| map.display().to_string()),
    })
}

fn taken(pool: &Pool<Mapped>, path: &Path) -> Result<Occupancy, ToolError> {
    pool.occupancy().map_err(ToolError::pool(path))
}

fn collect(
    pool: &Pool<Mapped>,
    plan: &DefragPlan,
    progress: &mut dyn Progress,
) -> Result<Collected, firn_heap::Error> {
    let options = CollectOptions {
        target: plan.target,
        pages: plan.pages,
        scheme: plan.scheme,
        release_blocks: true,
        ..CollectOptions::default()
    };
    let mut collection = pool.collection(&options)?;
    progress.begin("moving objects", None);
    let mut cycle = || {
        while collection.begin()? {
            let mut all = false;
            while !all {
                let before = collection.collected().moved;
                all = collection.compact(STEP_UNITS)?;
                progress.advance(collection.collected().moved - before);
            }
            collection.finish()?;
        }
        Ok(*collection.collected())
    };
    let collected = cycle();
    progress.end();
    collected
}

/// The command line's name for a page size.
pub fn pages_name(pages: PageSize) -> &'static str {
    match pages {
        PageSize::Small => "4k",
        PageSize::Huge => "2m",
    }
}

impl Standing {
    /// From a snapshot of the pool, and its file as it is now.
    ///
    /// Errors: the file's blocks cannot be counted.
    pub fn of(occupancy: &Occupancy, path: &Path) -> Result<Self, ToolError> {
        let (file_bytes, file_backed_bytes) = file_sizes(path)?;
        Ok(Self {
            objects: occupancy.objects,
            live_bytes: occupancy.live_bytes,
            footprint_4k_bytes: occupancy.footprint_4k_bytes,
            footprint_2m_bytes: occupancy.footprint_2m_bytes,
            ratio_4k: occupancy.ratio_4k(),
            ratio_2m: occupancy.ratio_2m(),
            file_bytes,
            file_backed_bytes,
        })
    }

    /// From the counters of an open pool, and its file as it is now.
    ///
    /// Errors: a damaged pool, the file's blocks cannot be counted.
    pub fn now(pool: &Pool<Mapped>, path: &Path) -> Result<Self, ToolError> {
        let read = Statistics::read(pool.medium()).map_err(|source| ToolError::Format {
            path: path.display().to_string(),
            source,
        })?;
        let (file_bytes, file_backed_bytes) = file_sizes(path)?;
        Ok(Self {
            objects: read.objects,
            live_bytes: read.live_bytes,
            footprint_4k_bytes: read.footprint_4k_bytes,
            footprint_2m_bytes: read.footprint_2m_bytes,
            ratio_4k: read.ratio_4k(),
            ratio_2m: read.ratio_2m(),
            file_bytes,
            file_backed_bytes,
        })
    }
}

/// Length of a file, and bytes of it that have blocks.
fn file_sizes(path: &Path) -> Result<(u64, u64), ToolError> {
    use std::os::unix::fs::MetadataExt;
    /// The unit in which `stat` counts blocks.
    const BLOCK_BYTES: u64 = 512;
    let file = std::fs::metadata(path).map_err(ToolError::file(path, "counting its blocks"))?;
    Ok((file.len(), file.blocks() * BLOCK_BYTES))
}

impl Work {
    /// The work of a collection.
    pub(crate) fn of(collected: &Collected) -> Self {
        Self {
            cycles: collected.cycles,
            moved: collected.moved,
            reclaimed: collected.reclaimed,
            mark_ms: ms(collected.mark_ns),
            summary_ms: ms(collected.summary_ns),
            compact_ms: ms(collected.compact_ns),
            finish_ms: ms(collected.finish_ns),
            ..Self::default()
        }
    }
}
