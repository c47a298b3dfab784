//! No mechanism: every hook keeps its default. The example to begin from.

use firn_media::Offers;

use super::{Mechanism, MechanismSpec, Regions};

struct Nothing;

impl Mechanism for Nothing {}

/// The machine as it is described.
pub static NONE: MechanismSpec = MechanismSpec {
    name: "none",
    about: "the machine as it is described",
    source: "",
    offers: |_| Offers::NONE,
    regions: |_| Regions::default(),
    build: |_| Box::new(Nothing),
    parts: &[],
};
