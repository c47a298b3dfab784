//! How far an exploration goes.

use crate::medium::options::CrashOptions;
use crate::schedule::policy::Schedule;

/// What fails under [`firn_media::Domain::Process`]. The other domains have power failures only.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Failure {
    /// The process dies: one image per event, and nothing is lost.
    #[default]
    Kill,
    /// The power fails: any prefix of every line since the last sync.
    Power,
}

/// How the images of a moment are tried. Those of [`firn_media::Domain::Logged`] are always tried one by one: there is
/// one for each record that may be lost, and one without them. Unless the exploration is eager, what their recoveries
/// leave is verified once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Exploration {
    /// Images are told apart only where the check looks: one run for all images in which its loads give equal values.
    /// The check must be deterministic, and learn of memory through the medium. Of contents that a checksum refuses
    /// ([`firn_media::Memory::load_checked`]) it looks only at the words up to the first wrong one. Where each line of
    /// a copy is completed alone ([`firn_media::Relocate::unless_reached`]), which lines arrived makes no difference.
    #[default]
    Lazy,
    /// Like [`Exploration::Lazy`], but looks at all words that a checksum covers, and at each line's mark.
    EachWord,
    /// Images are tried one by one. Drawn images are always tried this way.
    Eager,
}

/// How far an exploration goes.
#[derive(Clone, Debug)]
pub struct ExploreOptions {
    /// The medium; its seed is the execution's.
    pub medium: CrashOptions,
    /// What fails under `Process`.
    pub failure: Failure,
    /// How images are tried.
    pub exploration: Exploration,
    /// Crashes inside recovery, one after the other.
    pub recovery_depth: u32,
    /// Images tried in an execution; beyond that they are drawn, and the report says so. If lazy: runs of the check,
    /// after which as many images are drawn.
    pub max_states: u64,
    /// Images tried inside one recovery, if eager.
    pub states_per_recovery: u64,
    /// Crash each recovery at this many drawn events with a drawn image, instead of everywhere.
    pub drawn_in_recovery: Option<u32>,
    /// Findings after which the exploration stops.
    pub max_findings: usize,
    /// What [`Schedule::Inherited`] means in the workload.
    pub schedule: Schedule,
}

impl Default for ExploreOptions {
    fn default() -> Self {
        Self {
            medium: CrashOptions::default(),
            failure: Failure::Kill,
            exploration: Exploration::Lazy,
            recovery_depth: 1,
            max_states: 1_000_000,
            states_per_recovery: 10_000,
            drawn_in_recovery: None,
            max_findings: 1,
            schedule: Schedule::Sequential,
        }
    }
}
