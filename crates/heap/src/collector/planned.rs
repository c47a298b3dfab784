//! The second state of a collection: a plan whose sources are closed and whose destinations are taken. It does not count
//! yet.

use firn_format::frame::FrameUse;
use firn_format::geometry::FrameRun;
use firn_format::plan::PlanHeader;
use firn_media::Medium;

use super::compaction_plan::{CompactionPlan, RUNS_AHEAD};
use super::figures::Ended;
use super::options::{Goal, PageSize};
use super::survey::Survey;
use crate::alloc::{Purpose, Run};
use crate::error::Error;
use crate::inner::Inner;
use crate::steps;

/// A plan that wins pages or frames.
pub(super) struct Planned<'p, M: Medium> {
    pub(super) inner: &'p Inner<M>,
    pub(super) plan: CompactionPlan,
    /// Frames for the plan itself.
    pub(super) frames: FrameRun,
}

/// A plan, or why there is none.
type Found<P> = Result<P, Ended>;

impl<'p, M: Medium> Planned<'p, M> {
    /// Takes what the next plan needs. Where even the survivors of the emptiest page find no room, some of them move: a
    /// few frames win a few more, and these more again, until the rest finds room. In a pool that cannot grow as it
    /// likes, single runs move, too, when no page can be won any more: only frames are left to be won.
    ///
    /// Errors: stop S was not granted, the frame table is damaged; everything is open again.
    pub(super) fn find(
        inner: &'p Inner<M>,
        goal: &Goal,
        survey: Survey,
    ) -> Result<Found<Self>, Error> {
        let found = Self::find_with(inner, goal, &survey)?;
        // Where addresses stay, frames that are emptied within a page are no room for other objects.
        if goal.pages == PageSize::Small || goal.everything || inner.keeps_addresses {
            return Ok(found);
        }
        let target = match found {
            Ok(_) => return Ok(found),
            Err(Ended::NoRoom) => 1.0,
            // Only as far as a limit requires.
            Err(_) => f64::INFINITY,
        };
        let small = Goal {
            pages: PageSize::Small,
            target,
            ..*goal
        };
        Ok(match Self::find_with(inner, &small, &survey.in_frames())? {
            Err(_) => found,
            plan => plan,
        })
    }

    /// Begins a cycle with the candidates of one survey: as many of them as win pages or frames.
    fn find_with(inner: &'p Inner<M>, goal: &Goal, survey: &Survey) -> Result<Found<Self>, Error> {
        let mut most = survey.candidates.len();
        let mut why = Ended::NothingToWin;
        loop {
            let selection = survey.select(inner, goal, most)?;
            if selection.lacks_room {
                why = Ended::NoRoom;
            }
            if selection.reached && why == Ended::NothingToWin {
                why = Ended::Target;
            }
            let sources = survey.sources(inner, goal, &selection);
            if sources.is_empty() {
                return Ok(Err(why));
            }
            match Self::prepare(inner, goal, survey, sources)? {
                Ok(planned) => return Ok(Ok(planned)),
                Err(other) => why = why.max(other),
            }
            // Half of them may fit into the holes between the others.
            if selection.count <= 1 {
                return Ok(Err(why));
            }
            most = selection.first + selection.count / 2;
        }
    }

    /// Closes the chosen sources and takes what their plan needs; the plan does not count yet. If it wins nothing,
    /// everything is undone.
    ///
    /// Errors: stop S was not granted, the frame table is damaged; everything is open again.
    fn prepare(
        inner: &'p Inner<M>,
        goal: &Goal,
        survey: &Survey,
        chosen: Vec<Run>,
    ) -> Result<Found<Self>, Error> {
        let mut plan = CompactionPlan::default();
        let frames = close_runs(inner, chosen, &mut plan.closed)
            .and_then(|()| plan.place_survivors(inner, goal))
            .and_then(|()| match survey.wins(inner, goal, &plan)? {
                true => take_plan_frames(inner, &plan).map(Some),
                false => Ok(None),
            });
        if let Ok(Some(frames)) = frames {
            return Ok(Ok(Self {
                inner,
                plan,
                frames,
            }));
        }
        let lacks_room = plan.entries.len() < plan.closed.len();
        abandon(inner, &plan, Unused::AtOnce)?;
        match frames {
            Err(error) if !error.is_no_room() => Err(error),
            Ok(_) if !lacks_room => Ok(Err(Ended::NothingToWin)),
            Ok(_) | Err(_) => Ok(Err(Ended::NoRoom)),
        }
    }
}

/// When unused destinations may be used again.
#[derive(Clone, Copy)]
pub(super) enum Unused {
    /// At once: nothing of them was written back except the reservation.
    AtOnce,
    /// Once a fence has covered their write-backs.
    InTime,
}

/// Closes runs, also those that are active in sessions.
fn close_runs<M: Medium>(
    inner: &Inner<M>,
    chosen: Vec<Run>,
    closed: &mut Vec<Run>,
) -> Result<(), Error> {
    let medium = &inner.medium;
    let mut open = Vec::new();
    for (i, run) in chosen.iter().enumerate() {
        if let Some(soon) = chosen.get(i + RUNS_AHEAD) {
            inner.allocator.expect(medium, soon.frame.start());
        }
        match inner
            .allocator
            .close_run(medium, run, inner.redo.counter())?
        {
            true => closed.push(*run),
            false => open.push(*run),
        }
    }
    // Sessions return their active runs while no operation is open. From then on every slot in use in a closed run was
    // committed.
    inner.stop_for(&steps::STOP_FOR_SOURCES, || {
        inner.allocator.drain_all(medium)?;
        for run in open {
            if inner
                .allocator
                .close_run(medium, &run, inner.redo.counter())?
            {
                closed.push(run);
            }
        }
        Ok::<_, Error>(())
    })??;
    // Nothing is allocated in closed runs any more, so the objects pinned in them since the choice are known now.
    let fixed = inner.collector.pinned.lock(medium).clone();
    for run in closed.extract_if(.., |run| fixed.contains(&run.frame)) {
        inner
            .allocator
            .reopen_run(medium, &run, inner.redo.counter())?;
    }
    Ok(())
}

fn take_plan_frames<M: Medium>(inner: &Inner<M>, plan: &CompactionPlan) -> Result<FrameRun, Error> {
    let medium = &inner.medium;
    let header = PlanHeader {
        entries: plan.entries.len() as u64,
        units: plan.units,
        scheme: 0,
        checksum: 0,
    };
    let frames = header.frames();
    let run = match take_beside_plans(inner, frames)? {
        Some(run) => run,
        None => {
            let durable = inner.redo.known_durable();
            inner
                .allocator
                .take_frames(medium, frames, Purpose::Collection, durable)?
        }
    };
    medium.populate(run.start(), run.bytes());
    for frame in run.each() {
        let word = FrameUse::Plan.to_word();
        medium.store_u64(frame.word_at(), word);
    }
    Ok(run)
}

/// Frames for a plan beside the retained ones, where plans are retained and the device takes back only whole pieces.
fn take_beside_plans<M: Medium>(inner: &Inner<M>, frames: u64) -> Result<Option<FrameRun>, Error> {
    if !inner.plans_hold_pages() {
        return Ok(None);
    }
    let shared = inner.pages_of_plans();
    inner
        .allocator
        .take_for_plans(&inner.medium, frames, &shared)
}

/// Undoes a plan that never counted.
pub(super) fn abandon<M: Medium>(
    inner: &Inner<M>,
    plan: &CompactionPlan,
    unused: Unused,
) -> Result<(), Error> {
    let medium = &inner.medium;
    for (run, _, _) in &plan.filled {
        match unused {
            Unused::AtOnce => inner.allocator.give_unused(medium, *run),
            Unused::InTime => {
                inner
                    .allocator
                    .give_frames(medium, *run, inner.redo.counter());
            }
        }
    }
    for run in &plan.closed {
        inner
            .allocator
            .reopen_run(medium, run, inner.redo.counter())?;
    }
    give_left_over(inner);
    inner.allocator.space().lock(medium).open_all();
    Ok(())
}

/// Frees large objects that were freed in runs that did not become sources. Slots in such runs are free already.
fn give_left_over<M: Medium>(inner: &Inner<M>) {
    let medium = &inner.medium;
    for place in inner.allocator.take_held(medium) {
        if place.class.is_none() {
            inner
                .allocator
                .release_one(medium, place, inner.redo.counter());
        }
    }
}
