//! Pools to damage, and the layout of their content.

use firn_crash::{Crash, CrashOptions, Image};
use firn_format::geometry::{PHASE, STATISTICS};
use firn_format::lane::{LANES, SLOTS, slot_at};
use firn_format::plan::Phase;
use firn_format::reference::RefWord;
use firn_format::sealed::Seal;
use firn_heap::collector::scheme::PIGGYBACK;
use firn_heap::{Error, Pool, PoolKind};
use firn_media::{Domain, Memory, Space};
use firn_units::{FRAME_BYTES, VirtAddr, WORD_BYTES};
use firn_workloads::under_test::{Content, Key};
use serde::{Deserialize, Serialize};

use super::error::DamageError;
use super::undoing;
use crate::crash::fixture::{Fixture, ROOT, value};
use crate::crash::{Setting, Structure};

/// Keys below this are in use.
pub(super) const KEYS: Key = 48;
/// Transactions that a crash leaves in the log.
const IN_LOG: Key = 6;

/// How a pool was left before it was damaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// Closed.
    Closed,
    /// Crashed, with entries in its log.
    Crashed,
    /// Crashed in the middle of a cycle of the collector, with entries in its log.
    Moving,
    /// Crashed in the middle of two transactions with undo logs.
    Undoing,
    /// Crashed, with entries in its log, in a pool whose allocation bits decide which objects live.
    Explicit,
    /// Crashed in the middle of a cycle of the collector, where allocation bits decide which objects live.
    ExplicitMoving,
    /// Crashed in the middle of two transactions with undo logs, where allocation bits decide which objects live.
    ExplicitUndoing,
}

impl Condition {
    /// Every condition.
    pub const ALL: [Self; 7] = [
        Self::Closed,
        Self::Crashed,
        Self::Moving,
        Self::Undoing,
        Self::Explicit,
        Self::ExplicitMoving,
        Self::ExplicitUndoing,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Crashed => "crashed",
            Self::Moving => "moving",
            Self::Undoing => "undoing",
            Self::Explicit => "explicit",
            Self::ExplicitMoving => "explicit-moving",
            Self::ExplicitUndoing => "explicit-undoing",
        }
    }

    /// What decides which objects live.
    pub(super) const fn kind(self) -> PoolKind {
        match self {
            Self::Explicit | Self::ExplicitMoving | Self::ExplicitUndoing => PoolKind::Explicit,
            _ => PoolKind::Traced,
        }
    }

    /// Whether undo logs are open.
    pub(super) const fn is_undoing(self) -> bool {
        matches!(self, Self::Undoing | Self::ExplicitUndoing)
    }
}

/// A pool to damage.
pub(super) struct Sample {
    pub(super) condition: Condition,
    pub(super) fixture: Fixture,
    pub(super) image: Image,
    /// The structure's content.
    pub(super) content: Content,
    pub(super) map: Map,
}

/// The layout of a pool's content.
pub(super) struct Map {
    /// Words that are not zero, without the statistics: address and content.
    pub(super) words: Vec<(VirtAddr, u64)>,
    /// Words that look like references into the pool.
    pub(super) references: Vec<(VirtAddr, RefWord)>,
    /// Frames with content.
    pub(super) frames: Vec<VirtAddr>,
    /// Entries of redo logs, and batches of undo logs.
    pub(super) entries: Vec<VirtAddr>,
    /// The plan of a cycle.
    pub(super) plan: Option<VirtAddr>,
}

impl Map {
    pub(super) fn of(crash: &Crash) -> Self {
        let mut page = [0u8; FRAME_BYTES as usize];
        let (mut words, mut frames) = (Vec::new(), Vec::new());
        for frame in (0..crash.len()).step_by(FRAME_BYTES as usize).map(VirtAddr) {
            crash.load_bytes(frame, &mut page);
            if page.iter().all(|&byte| byte == 0) || frame == STATISTICS {
                continue;
            }
            frames.push(frame);
            let all = page.as_chunks::<{ WORD_BYTES as usize }>().0.iter();
            let all = (0..).zip(all.map(|bytes| u64::from_le_bytes(*bytes)));
            let there = all.filter(|(_, word)| *word != 0);
            words.extend(there.map(|(i, word)| (frame + i * WORD_BYTES, word)));
        }
        let root = firn_format::root::root_at(0) + firn_format::root::REFERENCE_AT;
        let pool = RefWord(crash.load_u64(root)).pool();
        let is_reference = |word: RefWord| {
            word.pool() == pool && word.address().0 < crash.len() && word.address().0 != 0
        };
        let references = words.iter().map(|&(at, word)| (at, RefWord(word)));
        let slots = (0..LANES).flat_map(|lane| (0..SLOTS).map(move |slot| slot_at(lane, slot)));
        let slots = slots.filter(|&at| crash.load_u64(at) != 0);
        let batches = (0..LANES).flat_map(|lane| undoing::batches(crash, lane));
        let phase = Seal::Phase.open(crash.load_u64(PHASE));
        let plan = phase.and_then(|phase| match Phase::from_value(phase, PHASE) {
            Ok(Phase::Active(plan) | Phase::Release(plan)) => Some(plan.start()),
            _ => None,
        });
        Self {
            references: references.filter(|(_, word)| is_reference(*word)).collect(),
            words,
            frames,
            entries: slots.chain(batches).collect(),
            plan,
        }
    }
}

impl Sample {
    /// Makes a sample.
    ///
    /// Errors: the heap fails on an undamaged pool.
    pub(super) fn new(structure: Structure, condition: Condition) -> Result<Self, DamageError> {
        let setting = Setting {
            structure,
            scheme: &PIGGYBACK,
            survival: Domain::Adr.into(),
            pool: condition.kind(),
            threads: 2,
        };
        let fixture = Fixture::new(&setting, KEYS)?;
        let crash = Crash::from_image(&fixture.image, fixture.medium(None, 0));
        let failed = |what: String| DamageError::Sample {
            structure: structure.name(),
            condition: condition.name(),
            what,
        };
        let content = use_it(&fixture, &crash, condition).map_err(failed)?;
        let image = match condition.is_undoing() {
            true => undoing::leave(&fixture, &crash).map_err(|e| failed(e.to_string()))?,
            false => crash.cache_image(),
        };
        let map = Map::of(&Crash::from_image(&image, CrashOptions::default()));
        Ok(Self {
            condition,
            fixture,
            image,
            content,
            map,
        })
    }
}

/// Fills the structure, and leaves the pool in its condition. Returns the structure's content.
fn use_it(fixture: &Fixture, crash: &Crash, condition: Condition) -> Result<Content, String> {
    let pool = Pool::open(crash.clone(), &fixture.pool_options()).map_err(|e| e.to_string())?;
    use_pool(fixture, pool, condition).map_err(|e| e.to_string())
}

fn use_pool(fixture: &Fixture, pool: Pool<Crash>, condition: Condition) -> Result<Content, Error> {
    let (under_test, order) = (fixture.under_test, fixture.under_test.order());
    let mut content = fixture.content();
    let mut session = pool.session()?;
    let mut insert = |keys: core::ops::Range<Key>| {
        for key in keys {
            let value = value(key as u8);
            session.transaction(|tx| under_test.insert(tx, ROOT, key, &value))?;
            order.insert(&mut content, key, value);
        }
        Ok::<_, Error>(())
    };
    insert(0..KEYS - IN_LOG)?;
    if matches!(condition, Condition::Moving | Condition::ExplicitMoving) {
        let how = fixture.collect();
        let mut collection = pool.collection(&how)?;
        if collection.begin()? {
            collection.compact(1)?;
        }
    }
    insert(KEYS - IN_LOG..KEYS)?;
    drop(session);
    match condition == Condition::Closed || condition.is_undoing() {
        true => pool.close()?,
        false => pool.abandon(),
    }
    Ok(content)
}
