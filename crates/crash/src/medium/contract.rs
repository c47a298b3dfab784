//! The contract, on this memory.

use core::sync::atomic::Ordering::Relaxed;

use firn_media::{
    Domain, Hardware, Level, MediumError, Memory, Offers, Probe, Runtime, Space, Step, Ticket,
};
use firn_units::{FRAME_BYTES, VirtAddr, WORD_BYTES};

use crate::medium::crash::Crash;
use crate::medium::place::CrashPlace;
use crate::medium::threads::CrashThread;
use crate::medium::words::CrashWords;
use crate::memory::buffer::Pending;
use crate::memory::cells::lines_of;
use crate::memory::event::Event;
use crate::memory::log::Record;

/// Simulated nanoseconds that a reading of the clock takes, so that time always moves.
const LOOK_NS: u64 = 10;

fn word_of(at: VirtAddr) -> u64 {
    debug_assert_eq!(at.bytes() % WORD_BYTES, 0, "{at} is no multiple of a word");
    at.bytes() / WORD_BYTES
}

impl Memory for Crash {
    type Place<'m> = CrashPlace<'m>;

    fn domain(&self) -> Domain {
        self.shared.options.domain
    }

    #[inline]
    fn place(&self, at: VirtAddr) -> CrashPlace<'_> {
        let window = self.shared.options.capacity - 1;
        CrashPlace {
            shared: &self.shared,
            at: VirtAddr(at.bytes() & window & !15),
        }
    }

    fn address(&self, place: CrashPlace<'_>) -> VirtAddr {
        place.at
    }

    #[inline]
    fn load_u64(&self, at: VirtAddr) -> u64 {
        self.shared.load(word_of(at))
    }

    fn store_u64(&self, at: VirtAddr, value: u64) {
        self.shared.store(word_of(at), value);
    }

    fn compare_exchange_u64(&self, at: VirtAddr, current: u64, new: u64) -> Result<u64, u64> {
        self.shared.point();
        let word = word_of(at);
        if !self.shared.is_dead() {
            self.shared.check_store(word);
        }
        let mut state = self.shared.lock();
        self.shared.drain_current(&mut state);
        let old = self.shared.visible(word);
        state.thread().counts.loads += 1;
        if old != current {
            return Err(old);
        }
        state.thread().counts.stores += 1;
        let thread = state.current as u16;
        self.shared.emit(
            &mut state,
            Event::Store {
                thread,
                word,
                old,
                new,
            },
        );
        Ok(old)
    }

    fn load_bytes(&self, at: VirtAddr, into: &mut [u8]) {
        let mut done = 0;
        if at.bytes().is_multiple_of(WORD_BYTES) {
            let (words, _) = into.as_chunks_mut::<{ WORD_BYTES as usize }>();
            if self.shared.load_at_once(word_of(at), words) {
                done = words.len() * WORD_BYTES as usize;
            }
        }
        while done < into.len() {
            let byte = at.bytes() + done as u64;
            let word = self.shared.load(byte / WORD_BYTES).to_le_bytes();
            let from = &word[(byte % WORD_BYTES) as usize..];
            let step = from.len().min(into.len() - done);
            into[done..done + step].copy_from_slice(&from[..step]);
            done += step;
        }
    }

    fn load_checked(
        &self,
        at: VirtAddr,
        into: &mut [u8],
        is_whole: impl Fn(&[u8]) -> bool,
    ) -> bool {
        let torn = self.shared.load_torn(at, into, &is_whole);
        torn.unwrap_or_else(|| {
            self.load_bytes(at, into);
            is_whole(into)
        })
    }

    fn store_bytes(&self, at: VirtAddr, from: &[u8]) {
        let (words, rest) = from.as_chunks::<{ WORD_BYTES as usize }>();
        if !self.shared.store_at_once(word_of(at), words) {
            for (word, place) in words.iter().zip(0..) {
                self.store_u64(at + place * WORD_BYTES, u64::from_le_bytes(*word));
            }
        }
        let at = at + words.len() as u64 * WORD_BYTES;
        if !rest.is_empty() {
            let mut last = self.load_u64(at).to_le_bytes();
            last[..rest.len()].copy_from_slice(rest);
            self.store_u64(at, u64::from_le_bytes(last));
        }
    }

    fn store_part(&self, at: VirtAddr, from: &[u8]) {
        self.shared.point();
        if self.shared.is_dead() {
            return;
        }
        let (word, within) = (at.bytes() / WORD_BYTES, (at.bytes() % WORD_BYTES) as usize);
        self.shared.check_store(word);
        let part = |fill: &dyn Fn(&mut [u8])| {
            let mut bytes = [0; WORD_BYTES as usize];
            fill(&mut bytes[within..within + from.len()]);
            u64::from_le_bytes(bytes)
        };
        let value = part(&|bytes| bytes.copy_from_slice(from));
        let mask = part(&|bytes| bytes.fill(u8::MAX));
        let mut state = self.shared.lock();
        state.thread().counts.stores += 1;
        self.shared
            .issue(&mut state, Pending::Part { word, value, mask });
    }

    fn write_back(&self, at: VirtAddr, len: u64) {
        self.shared.write_back(at.0, len);
    }

    fn fence(&self) {
        self.shared.point();
        if self.shared.has_log() {
            return self.append_noted();
        }
        let mut state = self.shared.lock();
        self.shared.drain_current(&mut state);
        state.thread().counts.fences += 1;
        let thread = state.current as u16;
        self.shared.emit(&mut state, Event::Fence { thread });
    }

    fn most_recorded_lines(&self) -> usize {
        match self.shared.has_log() {
            true => self.shared.options.recorded_lines,
            false => 0,
        }
    }

    fn record(&self, store: impl FnOnce()) {
        self.shared.point();
        self.append_stored(store);
    }

    fn commit(&self) -> Ticket {
        self.shared.point();
        let mut state = self.shared.lock();
        state.thread().counts.commits += 1;
        if self.shared.has_log() {
            return Ticket(state.records);
        }
        let (thread, ticket) = (state.current as u16, state.ticket + 1);
        self.shared
            .emit(&mut state, Event::Commit { thread, ticket });
        if !state.dead {
            state.ticket = ticket;
        }
        Ticket(ticket)
    }

    fn durable(&self) -> Ticket {
        let state = self.shared.lock();
        Ticket(if state.dead { u64::MAX } else { state.ticket })
    }

    fn wait_durable(&self, ticket: Ticket) -> Result<(), MediumError> {
        if self.shared.has_log() {
            self.shared.point();
            self.make_durable(ticket);
        }
        debug_assert!(self.durable() >= ticket, "{ticket:?} is not durable yet");
        Ok(())
    }

    fn level(&self) -> Level {
        self.shared.options.level
    }

    fn wait_at(&self, ticket: Ticket, level: Level) -> Result<(), MediumError> {
        match level {
            // The log may become durable at any time, or not: a crash leaves any prefix.
            Level::Written | Level::Group(_) if self.shared.has_log() => Ok(()),
            _ => self.wait_durable(ticket),
        }
    }
}

impl Space for Crash {
    fn name(&self) -> String {
        format!("crash medium (seed {})", self.shared.options.seed)
    }

    fn len(&self) -> u64 {
        self.shared.memory.len()
    }

    fn capacity(&self) -> u64 {
        self.shared.options.capacity
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn boot_id(&self) -> [u8; 16] {
        let boots = self.shared.boots.load(Relaxed);
        let mut id = *b"boot............";
        id[8..].copy_from_slice(&boots.to_le_bytes());
        id
    }

    fn reserve(&self, at: VirtAddr, len: u64) -> Result<(), MediumError> {
        self.shared.point();
        if self.shared.is_dead() || len == 0 {
            return Ok(());
        }
        let capacity = self.capacity();
        let beyond = |asked| MediumError::BeyondCapacity {
            medium: self.name(),
            asked,
            capacity,
        };
        let end = at
            .bytes()
            .checked_add(len)
            .ok_or_else(|| beyond(u64::MAX))?;
        if end > capacity {
            return Err(beyond(end));
        }
        self.wait_for_place();
        let memory = &self.shared.memory;
        let frames = at.bytes() / FRAME_BYTES..end.div_ceil(FRAME_BYTES);
        let missing = frames
            .clone()
            .filter(|&frame| !memory.is_backed(frame))
            .count() as u64;
        let mut state = self.shared.lock();
        if missing == 0 && end <= memory.len() {
            self.shared.drain_current(&mut state);
            return Ok(());
        }
        if missing > 0
            && (memory.backed_frames() + missing) * FRAME_BYTES > self.shared.options.space_limit
        {
            self.shared.refusals.fetch_add(1, Relaxed);
            return Err(MediumError::NoSpace {
                medium: self.name(),
                bytes: missing * FRAME_BYTES,
            });
        }
        self.shared.drain_current(&mut state);
        self.shared.set_backing(&mut state, frames.clone(), true);
        self.shared.set_length(&mut state, end.max(memory.len()));
        self.append(&mut state, Record::Reserve { frames });
        Ok(())
    }

    fn discard(&self, at: VirtAddr, len: u64) -> Result<(), MediumError> {
        self.shared.point();
        let end = at.bytes().saturating_add(len).min(self.len());
        let len = end.saturating_sub(at.bytes());
        if len == 0 {
            return Ok(());
        }
        self.wait_for_place();
        let mut state = self.shared.lock();
        self.shared.drain_current(&mut state);
        let (lines, frames) = (
            lines_of(at.bytes(), len),
            at.bytes() / FRAME_BYTES..end / FRAME_BYTES,
        );
        self.shared.zero_lines(&mut state, lines.clone());
        self.shared.set_backing(&mut state, frames.clone(), false);
        self.append(&mut state, Record::Discard { lines, frames });
        Ok(())
    }

    fn truncate(&self, len: u64) -> Result<(), MediumError> {
        self.shared.point();
        let old = self.len();
        if len < old {
            self.wait_for_place();
            let mut state = self.shared.lock();
            self.shared.drain_current(&mut state);
            self.shared.zero_lines(&mut state, lines_of(len, old - len));
            self.shared.set_length(&mut state, len);
            self.shared.set_backing(
                &mut state,
                len / FRAME_BYTES..old.div_ceil(FRAME_BYTES),
                false,
            );
            self.append(&mut state, Record::Truncate { len });
        }
        Ok(())
    }

    fn is_full_of_copies(&self) -> bool {
        let Some(most) = self.shared.options.copies else {
            return false;
        };
        let state = self.shared.lock();
        state.events - state.dropped >= most
    }

    /// This medium has no copies to drop. A store by another thread meanwhile is a fault, and panics.
    fn drop_copies(&self, from: VirtAddr) -> bool {
        /// Points at which other threads may run.
        const POINTS: usize = 4;
        let mut state = self.shared.lock();
        state.dropping = Some((state.current as u16, from.0 / WORD_BYTES));
        drop(state);
        for _ in 0..POINTS {
            self.shared.point();
        }
        let mut state = self.shared.lock();
        state.dropping = None;
        state.dropped = state.events;
        false
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.shared.point();
        if self.shared.has_log() {
            self.append_noted();
            let newest = Ticket(self.shared.lock().records);
            self.make_durable(newest);
            return Ok(());
        }
        let mut state = self.shared.lock();
        self.shared.drain_current(&mut state);
        let thread = state.current as u16;
        self.shared.emit(&mut state, Event::Sync { thread });
        Ok(())
    }

    fn backed_bytes(&self) -> Result<u64, MediumError> {
        Ok(self.shared.memory.backed_frames() * FRAME_BYTES)
    }
}

impl Runtime for Crash {
    type Words = CrashWords;
    type Thread = CrashThread;

    fn words(&self, count: usize) -> CrashWords {
        CrashWords::new(self.shared.clone(), count)
    }

    fn acquire_point(&self) {
        if self.shared.simulating() {
            self.shared.point();
            self.shared.drain_current(&mut self.shared.lock());
        }
    }

    fn release_point(&self) {
        if self.shared.simulating() {
            self.shared.point();
            self.shared.drain_current(&mut self.shared.lock());
        }
    }

    fn pause(&self, attempt: u32) {
        self.pause_thread(attempt);
    }

    fn wait_while(&self, words: &CrashWords, index: usize, seen: u64, until_ns: u64) {
        self.wait_thread(words, index, seen, until_ns);
    }

    fn wake(&self, words: &CrashWords, index: usize) {
        self.wake_threads(words, index);
    }

    fn now_ns(&self) -> u64 {
        let mut state = self.shared.lock();
        state.clock_ns += LOOK_NS;
        state.clock_ns
    }

    fn random_u64(&self) -> u64 {
        self.shared.lock().random.u64(..)
    }

    fn spawn(
        &self,
        _name: &str,
        job: Box<dyn FnOnce() + Send>,
    ) -> Result<CrashThread, MediumError> {
        Ok(self.spawn_thread(job))
    }

    fn join(&self, thread: CrashThread) -> bool {
        self.join_thread(&thread)
    }
}

impl Probe for Crash {
    fn is_simulated(&self) -> bool {
        true
    }

    fn is_perturbed(&self) -> bool {
        self.shared.options.leave_out.is_some()
    }

    fn leaves_out(&self, step: &Step) -> bool {
        self.shared.options.leave_out == Some(step)
    }
}

impl Hardware for Crash {
    const MAY_OFFER: bool = true;

    #[inline]
    fn offers(&self) -> &Offers {
        &self.offers
    }
}
