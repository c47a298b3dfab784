//! Coverage of a run, read from its events: whole cycles, and pages that they released and that the program used again.

use std::collections::HashSet;
use std::ops::AddAssign;

use firn_crash::Event;
use firn_format::frame::FrameUse;
use firn_format::geometry::{Chunk, PHASE};
use firn_format::plan::Phase;
use firn_format::sealed::Seal;
use firn_units::{CHUNK_BYTES, FRAMES_PER_CHUNK, VirtAddr, WORD_BYTES};

/// Coverage of one run or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Coverage {
    /// Cycles of the collector, from the activation of the plan to the release of the pages.
    pub(super) cycles: u64,
    /// Pages that a cycle released and that later held objects of the program again, counted each time.
    pub(super) reused: u64,
    /// Runs with at least one of either.
    pub(super) whole_runs: u64,
}

impl AddAssign for Coverage {
    fn add_assign(&mut self, more: Self) {
        self.cycles += more.cycles;
        self.reused += more.reused;
        self.whole_runs += more.whole_runs;
    }
}

impl Coverage {
    /// The coverage in a run's events, in a pool of `pool_bytes` bytes.
    pub(super) fn of(events: &[Event], pool_bytes: u64) -> Self {
        let chunks = (0..pool_bytes / CHUNK_BYTES).map(Chunk);
        let tables: Vec<VirtAddr> = chunks.filter(|c| c.is_data()).map(Chunk::table).collect();
        let is_frame_word = |at: VirtAddr| {
            let of_table = |table: &VirtAddr| {
                (table.0..table.0 + FRAMES_PER_CHUNK * WORD_BYTES).contains(&at.0)
            };
            tables.iter().any(of_table)
        };
        let mut seen = Self::default();
        let mut phase = Phase::Idle;
        // Frame words of pages that cycles released.
        let mut released = HashSet::new();
        for event in events {
            let Event::Store { word, new, .. } = *event else {
                continue;
            };
            let at = VirtAddr(word.wrapping_mul(WORD_BYTES));
            if at == PHASE {
                let value = Seal::Phase.open(new).unwrap_or_default();
                let next = Phase::from_value(value, at).unwrap_or(Phase::Idle);
                seen.cycles += u64::from(next == Phase::Idle && matches!(phase, Phase::Release(_)));
                phase = next;
            } else if is_frame_word(at) {
                let holds = FrameUse::from_word(new, at).unwrap_or(FrameUse::Free);
                match (holds, phase) {
                    (FrameUse::Free, Phase::Release(_)) => _ = released.insert(at.0),
                    (FrameUse::Slots(_) | FrameUse::Large { .. } | FrameUse::Tail { .. }, _)
                        if !FrameUse::is_reserved(new) && released.remove(&at.0) =>
                    {
                        seen.reused += 1;
                    }
                    _ => {}
                }
            }
        }
        seen.whole_runs = u64::from(seen.cycles > 0 && seen.reused > 0);
        seen
    }
}
