//! Names on command lines and in findings: schemes, domains, ways to explore, steps.

use firn_crash::Exploration;
use firn_heap::collector::scheme::{SCHEMES, Scheme};
use firn_heap::steps;
use firn_media::{Domain, Step};

use super::error::CrashError;

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

/// The domain of this name.
///
/// Errors: there is none.
pub fn domain(name: &str) -> Result<Domain, CrashError> {
    let domains = [Domain::Adr, Domain::Eadr, Domain::Process];
    let found = domains.into_iter().find(|domain| domain.name() == name);
    found.ok_or_else(|| CrashError::Unknown {
        what: "domain",
        name: name.to_owned(),
        known: domains.map(Domain::name).join(", "),
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
