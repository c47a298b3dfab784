//! All writers at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::Script;
use crate::LabError;

/// Runs `work` for each script in a thread of its own, and `beside` in this one. Both are told when to stop: the first
/// failure stops all.
///
/// Errors: the first of a writer, otherwise that of `beside`.
pub(crate) fn together<R: Send>(
    scripts: &mut [Script],
    work: impl Fn(&mut Script, &AtomicBool) -> Result<R, LabError> + Sync,
    beside: impl FnOnce(&AtomicBool) -> Result<(), LabError>,
) -> Result<Vec<R>, LabError> {
    let (work, stop) = (&work, &AtomicBool::new(false));
    let or_stop = |_: &LabError| stop.store(true, Ordering::Relaxed);
    thread::scope(|scope| {
        let start = |script| scope.spawn(move || work(script, stop).inspect_err(or_stop));
        let writers: Vec<_> = scripts.iter_mut().map(start).collect();
        let beside = beside(stop).inspect_err(or_stop);
        let ended = writers.into_iter().map(|writer| match writer.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let results = ended.collect::<Result<Vec<R>, _>>()?;
        beside.map(|()| results)
    })
}
