//! Compacting a pool, and examining it.

use core::ffi::{CStr, c_int, c_void};
use core::time::Duration;
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use firn_heap::Error;
use firn_heap::collector::{
    CollectOptions, Collected as Figures, CollectorOptions, Ended, PageSize,
};
use firn_mapped::Mapped;

use crate::given::{In, Out, Text};
use crate::handle_pool::Handed;
use crate::pool::Pool;
use crate::status::{Failure, Outcome, Status, result_of, status_of};

/// `firn_collecting`. `pages` is a number here: a program may pass any.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Collecting {
    pub trigger: f64,
    pub target: f64,
    pub pages: c_int,
    pub least_bytes: u64,
    pub interval_us: u64,
}

/// `firn_collected`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Collected {
    pub cycles: u64,
    pub moved_objects: u64,
    pub moved_bytes: u64,
    pub reclaimed_objects: u64,
    pub large_bytes: u64,
    pub lacked_room: c_int,
}

impl From<Figures> for Collected {
    fn from(figures: Figures) -> Self {
        Self {
            cycles: figures.cycles,
            moved_objects: figures.planned,
            moved_bytes: figures.planned_bytes,
            reclaimed_objects: figures.reclaimed,
            large_bytes: figures.large_bytes,
            lacked_room: c_int::from(figures.ended == Ended::NoRoom && figures.planned == 0),
        }
    }
}

/// When the environment variable `FIRN_COLLECT` asks for pools to be collected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collects {
    /// `0`, or nothing: when the program asks for it.
    WhenAsked,
    /// `1`: above a ratio, beside a program that was written for libpmemobj.
    Beside,
    /// A whole cycle at every safepoint, to test a program: pointers that it should not have kept are invalid at once.
    AtSafepoints,
}

impl Collects {
    pub(crate) fn asked_for() -> Outcome<Self> {
        match std::env::var("FIRN_COLLECT").as_deref() {
            Err(_) | Ok("" | "0") => Ok(Self::WhenAsked),
            Ok("1") => Ok(Self::Beside),
            Ok("safepoints") => Ok(Self::AtSafepoints),
            Ok(other) => Err(Failure::invalid(format!(
                "FIRN_COLLECT must be `0`, `1` or `safepoints`, not `{other}`"
            ))),
        }
    }
}

/// Moves as much as possible at each safepoint of a program.
#[derive(Default)]
pub(crate) struct Wholly {
    /// Until then, the library does not wait again for a thread that stays inside an operation.
    rests_until: Mutex<Option<Instant>>,
}

impl Wholly {
    /// How long to wait for a moment without an open operation. A thread that holds pointers and waits for others
    /// prevents all moves, and would delay every safepoint of theirs.
    const PATIENCE: Duration = Duration::from_millis(100);
    /// The rest before the next attempt, in multiples of that time.
    const REST: u32 = 10;

    /// Runs a cycle beside other threads' operations, unless another is under way or a thread stays inside an
    /// operation. The caller has no operation open.
    pub(crate) fn collect(&self, heap: &firn_heap::Pool<Mapped>) -> Outcome<()> {
        let rests_until = || {
            self.rests_until
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if rests_until().is_some_and(|until| Instant::now() < until) {
            return Ok(());
        }
        let options = CollectOptions {
            pages: PageSize::Small,
            everything: true,
            patience: Self::PATIENCE,
            ..CollectOptions::default()
        };
        let busy = match heap.collect(&options) {
            Ok(_) | Err(Error::Collecting) => false,
            Err(Error::Busy { .. }) => true,
            Err(error) => return Err(error.into()),
        };
        *rests_until() = busy.then(|| Instant::now() + Self::PATIENCE * Self::REST);
        Ok(())
    }
}

/// `firn_finding`. The text lives until the function returns.
pub type Finding = extern "C" fn(at: u64, what: Text<'_>, argument: *mut c_void);

pub(crate) fn page_size(pages: c_int) -> Outcome<PageSize> {
    match pages {
        0 => Ok(PageSize::Huge),
        1 => Ok(PageSize::Small),
        pages => Err(Failure::invalid(format!(
            "the pages must be 0 or 1, not {pages}"
        ))),
    }
}

/// The options that a program passes.
pub(crate) fn collector_options(how: Option<Collecting>) -> Outcome<CollectorOptions> {
    let mut options = CollectorOptions::default();
    let Some(how) = how else {
        return Ok(options);
    };
    let collect = &mut options.collect;
    collect.pages = page_size(how.pages)?;
    if how.target != 0.0 {
        collect.target = how.target;
    }
    // NaN is not at least 1 either.
    if !matches!(collect.target.partial_cmp(&1.0), Some(order) if order.is_ge()) {
        let target = collect.target;
        return Err(Failure::invalid(format!(
            "the target must be at least 1, not {target}"
        )));
    }
    if how.trigger != 0.0 {
        options.trigger = how.trigger;
    }
    if how.least_bytes > 0 {
        options.least_bytes = how.least_bytes;
    }
    if how.interval_us > 0 {
        options.interval = Duration::from_micros(how.interval_us);
    }
    Ok(options)
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_init(pool: Handed<Pool>, how: In<'_, Collecting>) -> Status {
    status_of(|| {
        let it = pool.open()?;
        let options = collector_options(how.get())?;
        let mut collector = it.collector();
        if collector.is_some() {
            return Err(Failure::new(
                Status::Busy,
                "a collector thread is already running; firn_exit stops it",
            ));
        }
        *collector = Some(it.heap.start_collector(&options)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_exit(pool: Handed<Pool>) -> Status {
    status_of(|| {
        let it = pool.open()?;
        let Some(collector) = it.collector().take() else {
            return Err(Failure::misuse(
                "no collector thread is running; firn_init starts one",
            ));
        };
        collector.stop()?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_recovery(pool: Handed<Pool>) -> Status {
    status_of(|| {
        let it = pool.open()?;
        it.heap.trace()?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_collect(
    pool: Handed<Pool>,
    how: In<'_, Collecting>,
    collected: Out<'_, Collected>,
) -> Status {
    status_of(|| {
        let it = pool.open()?;
        let options = collector_options(how.get())?;
        // Blocks are given back during a cycle, as by a background collector.
        let figures = it.heap.collect(&CollectOptions {
            release_blocks: options.release_blocks,
            ..options.collect
        })?;
        collected.put(figures.into());
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_ratio(pool: Handed<Pool>, pages: c_int) -> f64 {
    result_of(0.0, || {
        let it = pool.open()?;
        Ok(it.heap.ratio(page_size(pages)?))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_release_free_space(pool: Handed<Pool>, bytes: Out<'_, u64>) -> Status {
    status_of(|| {
        bytes.put(pool.open()?.heap.release_free_space()?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_check(
    pool: Handed<Pool>,
    tell: Option<Finding>,
    argument: *mut c_void,
    findings: Out<'_, usize>,
) -> Status {
    status_of(|| {
        let found = pool.open()?.heap.check()?;
        let told = found
            .iter()
            .map(|finding| (finding.at, finding.what.to_string()));
        tell_findings(told, tell, argument);
        findings.put(found.len());
        Ok(())
    })
}

/// Reports a check's findings, and their addresses, to a program.
pub(crate) fn tell_findings(
    found: impl Iterator<Item = (u64, String)>,
    tell: Option<Finding>,
    argument: *mut c_void,
) {
    let Some(tell) = tell else { return };
    for (at, what) in found {
        let what = CString::new(what).unwrap_or_default();
        let what: &CStr = &what;
        tell(at, what.into(), argument);
    }
}
