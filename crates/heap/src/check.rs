//! The checker and the trace: whether every invariant holds, and what can be reclaimed.

use std::sync::atomic::Ordering;

use firn_format::frame::FrameUse;
use firn_format::geometry::Frame;
use firn_format::statistics::{Counter, FIRST_CLASS, FIRST_EVENT, WORDS};
use firn_format::superblock::PoolKind;
use firn_media::Medium;
use firn_units::WORD_BYTES;

use crate::alloc::{Footprint, locate};
use crate::error::Error;
use crate::finding::Finding;
use crate::inner::Inner;
use crate::object::requested_bytes;
use crate::pool::Pool;
use crate::relocation::cycle::Cycle;
use crate::shape::Shapes;
use crate::stat_shard;
use crate::trace::{InCycle, Trace};
use crate::walk::{each_allocated, runs, slot_at, slots};

/// What [`Pool::trace`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traced {
    /// Reachable objects.
    pub objects: u64,
    /// Their bytes as requested.
    pub live_bytes: u64,
    /// Allocated slots that nothing reached, free now. Counted where allocation was known.
    pub reclaimed: u64,
}

impl<M: Medium> Pool<M> {
    /// Walks the pool while no operation is open and lists its defects: in tables, headers, types, references, and
    /// allocation.
    ///
    /// Errors: an operation stayed open.
    pub fn check(&self) -> Result<Vec<Finding>, Error> {
        self.inner.stopped(|| self.inner.check())
    }

    /// Finds the reachable objects, and in a traced pool reclaims the rest; counts what lives. Stops all operations
    /// while it runs. Needed once after a crash; see [`Pool::needs_trace`].
    ///
    /// Errors: an operation stayed open, a collection is under way; the pool is damaged, and nothing was
    /// reclaimed.
    pub fn trace(&self) -> Result<Traced, Error> {
        if !self.inner.writable {
            return Err(Error::ReadOnly);
        }
        let _only = self.inner.without_collector()?;
        self.inner.stopped(|| self.inner.trace())?
    }
}

impl<M: Medium> Inner<M> {
    fn trace_all(&self) -> Trace<'_, M, InCycle<'_, M>> {
        let mut trace = Trace::new(&self.medium, self.id, &self.types, InCycle::of(self));
        trace.run(&self.handles.strong(&self.medium));
        trace
    }

    fn check(&self) -> Vec<Finding> {
        let mut trace = self.trace_all();
        if self.writable
            && let Err(error) = self.allocator.look_at_all(&self.medium)
        {
            trace.find(0, error.to_string());
        }
        let runs = match runs(&self.medium) {
            Ok(runs) => runs,
            Err(findings) => {
                trace.findings.extend(findings);
                return trace.findings;
            }
        };
        // Where allocation bits are exact, nothing reachable may be free.
        let exact = self.knows_slots();
        for (frame, what) in runs {
            let used = self.allocator.used_bits(&self.medium, frame);
            let reached = trace.marks.of(frame);
            for (word, (&used, &reached)) in used.iter().zip(&reached).enumerate() {
                let lost = reached & !used;
                if exact && lost != 0 {
                    let slot = word as u64 * 64 + u64::from(lost.trailing_zeros());
                    trace.find(
                        slot_at(frame, what, slot).0,
                        "reachable, but its slot is free".into(),
                    );
                }
            }
        }
        if self.kind == PoolKind::Explicit {
            self.check_bits(&mut trace);
            self.check_allocated(&mut trace);
        }
        trace.findings
    }

    /// In an explicit pool an object lives whether anything reaches it or not, so each is checked by itself.
    fn check_allocated(&self, trace: &mut Trace<'_, M, InCycle<'_, M>>) {
        let shapes = Shapes::new(&self.types);
        let cycle = trace.visitor.cycle();
        let walked = each_allocated(&self.medium, cycle.as_deref(), |slot, header| {
            if trace.marks.has(&slot) {
                return;
            }
            let content = |cycle: &Cycle<M>| cycle.content(&self.medium, slot.at);
            let at = cycle.as_deref().map_or(slot.at, content);
            let sense = match requested_bytes(header, slot.bytes) {
                None => Err("the object is larger than its slot".into()),
                Some(requested) => shapes.references(&self.medium, at, header, requested, |_| {}),
            };
            if let Err(what) = sense {
                trace.find(at.0, what);
            }
        });
        if let Err(error) = walked {
            trace.find(0, error.to_string());
        }
    }

    /// In an explicit pool the bits on media are the truth, and must match the knowledge of this open.
    fn check_bits(&self, trace: &mut Trace<'_, M, InCycle<'_, M>>) {
        for (frame, what) in runs(&self.medium).unwrap_or_default() {
            let used = self.allocator.used_bits(&self.medium, frame);
            for (word, &used) in used
                .iter()
                .enumerate()
                .take(slots(what).div_ceil(64) as usize)
            {
                let at = frame.bitmap_at() + word as u64 * WORD_BYTES;
                let stored = self.medium.load_u64(at);
                // Slots in a session's active runs are in use here and free on media.
                if stored & !used != 0 {
                    trace.find(
                        at.0,
                        "the allocation bits differ from what is in use".into(),
                    );
                }
            }
        }
    }

    fn trace(&self) -> Result<Traced, Error> {
        let mut trace = self.trace_all();
        if let Some(finding) = trace.findings.first() {
            return Err(Error::Damaged {
                what: "a reference or an object",
                at: finding.at,
            });
        }
        // Removes the runs without objects that a crash left.
        self.allocator.look_at_all(&self.medium)?;
        let mut result = Traced {
            objects: trace.sums[Counter::Objects.word()] as u64,
            live_bytes: trace.sums[Counter::LiveBytes.word()] as u64,
            reclaimed: 0,
        };
        if self.kind == PoolKind::Traced {
            let runs = runs(&self.medium).map_err(|findings| {
                let at = findings.first().map_or(0, |f| f.at);
                Error::Damaged {
                    what: "the frame table",
                    at,
                }
            })?;
            for (frame, what) in runs {
                let used = trace.marks.of(frame);
                result.reclaimed += self.replace_used(frame, what, &used)?;
            }
            self.handles.clear_weak(&self.medium, |reference| {
                locate(&self.medium, reference.address()).is_ok_and(|s| trace.marks.has(&s))
            });
            self.allocator
                .space()
                .lock(&self.medium)
                .set_emergency(false);
        } else {
            trace.sums = self.count_allocated()?;
        }
        self.replace_counters(&mut trace.sums);
        Ok(result)
    }

    /// Counts the objects of an explicit pool, which live whether anything reaches them or not.
    fn count_allocated(&self) -> Result<Box<[i64; WORDS]>, Error> {
        let mut sums = Box::new([0; WORDS]);
        let mut damaged = None;
        each_allocated(&self.medium, None, |slot, header| {
            let what = (header.type_id(), slot.place.class_index());
            match requested_bytes(header, slot.bytes) {
                Some(requested) => stat_shard::count(&mut sums, what, (1, requested as i64)),
                None => damaged = Some(slot.at.0),
            }
        })?;
        match damaged {
            Some(at) => Err(Error::Damaged {
                what: "the header of an object",
                at,
            }),
            None => Ok(sums),
        }
    }

    /// Makes `sums` the counters of objects. Page counters come from the allocator, event counters keep their values.
    fn replace_counters(&self, sums: &mut [i64; WORDS]) {
        let before = self.begin_recount();
        let events = FIRST_EVENT..FIRST_CLASS;
        sums[events.clone()].copy_from_slice(&before[events]);
        let Footprint { frames, chunks } = self.allocator.footprint();
        sums[Counter::LiveFrames.word()] = frames;
        sums[Counter::LiveChunks.word()] = chunks;
        stat_shard::replace(&self.medium, self.lane_count, sums);
        self.exact.store(true, Ordering::Release);
    }

    fn replace_used(&self, frame: Frame, what: FrameUse, used: &[u64]) -> Result<u64, Error> {
        let stamp = self.redo.counter();
        match what {
            FrameUse::Slots(class) => {
                self.allocator
                    .set_used(&self.medium, frame, class, used, stamp)
            }
            FrameUse::Large { .. } if used[0] & 1 == 0 => {
                self.allocator.drop_large(&self.medium, frame, stamp)?;
                Ok(1)
            }
            _ => Ok(0),
        }
    }
}
