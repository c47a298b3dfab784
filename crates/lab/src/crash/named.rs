//! Names on command lines and in findings: schemes, domains, ways to explore, steps.

use firn_crash::Exploration;
use firn_heap::collector::scheme::{SCHEMES, Scheme};
use firn_heap::steps;
use firn_media::{Domain, Level, Step};

use super::error::CrashError;
use super::setting::{RECORDED_LINES, Survival};

/// The schemes that keep committed data on existing hardware. Recovery with hardware that remembers looks at each line
/// of each copy, and has fifty times the images; the caller has to ask for it.
pub fn stock_schemes() -> Vec<&'static Scheme> {
    let stock = SCHEMES
        .into_iter()
        .filter(|scheme| scheme.is_for_stock_hardware());
    stock.collect()
}

/// The scheme of this name, including those that lose commits: on this medium no user loses anything.
///
/// Errors: there is none.
pub fn scheme(name: &str) -> Result<&'static Scheme, CrashError> {
    Scheme::named(name).ok_or_else(|| CrashError::Unknown {
        what: "scheme",
        name: name.to_owned(),
        known: SCHEMES.map(|scheme| scheme.name).join(", "),
    })
}

/// What survives a crash, by its names.
const SURVIVALS: [(&str, Domain, Level, usize); 6] = [
    ("adr", Domain::Adr, Level::Sync, RECORDED_LINES),
    ("eadr", Domain::Eadr, Level::Sync, RECORDED_LINES),
    ("process", Domain::Process, Level::Sync, RECORDED_LINES),
    ("logged", Domain::Logged, Level::Sync, RECORDED_LINES),
    (
        "logged-written",
        Domain::Logged,
        Level::Written,
        RECORDED_LINES,
    ),
    ("logged-mixed", Domain::Logged, Level::Sync, FEW_LINES),
];

/// Where transactions are sometimes records, and sometimes have an entry in a lane.
const FEW_LINES: usize = 4;

/// The name of a domain and a level. The crash medium waits for a log at one level only, so the others have one name.
pub(super) fn survival_name(survival: Survival) -> &'static str {
    let Survival { domain, level, .. } = survival;
    let waits = |level| domain != Domain::Logged || level == Level::Sync;
    let found = SURVIVALS.iter().find(|&&(_, known, at, lines)| {
        known == domain && waits(at) == waits(level) && lines == survival.recorded_lines
    });
    found.map_or(domain.name(), |known| known.0)
}

/// What survives a crash, by its name: `adr`, `eadr`, `process`; `logged` where transactions wait for the log,
/// `logged-written` where they do not, and `logged-mixed` where only short ones are records of the log.
///
/// Errors: there is none.
pub fn domain(name: &str) -> Result<Survival, CrashError> {
    let found = SURVIVALS.iter().find(|known| known.0 == name);
    let (_, domain, level, recorded_lines) = *found.ok_or_else(|| CrashError::Unknown {
        what: "domain",
        name: name.to_owned(),
        known: SURVIVALS.map(|known| known.0).join(", "),
    })?;
    Ok(Survival {
        domain,
        level,
        recorded_lines,
    })
}

/// How images are tried, by its name: `lazy`, `each-word` or `eager`.
///
/// Errors: there is no such way.
pub fn exploration(name: &str) -> Result<Exploration, CrashError> {
    let known = [
        ("lazy", Exploration::Lazy),
        ("each-word", Exploration::EachWord),
        ("eager", Exploration::Eager),
    ];
    let found = known.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, way)| *way)
        .ok_or_else(|| CrashError::Unknown {
            what: "way to try images",
            name: name.to_owned(),
            known: known.map(|(known, _)| known).join(", "),
        })
}

/// The step of this name.
///
/// Errors: there is none.
pub fn plant(name: &str) -> Result<&'static Step, CrashError> {
    steps::named(name).ok_or_else(|| CrashError::Unknown {
        what: "step",
        name: name.to_owned(),
        known: names(steps::STEPS.iter().map(|step| step.name)),
    })
}

fn names(names: impl Iterator<Item = &'static str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
