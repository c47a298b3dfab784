//! Settings: a structure under a scheme, in a kind of pool, in a domain, with a number of threads.

use core::fmt;
use core::str::FromStr;

use firn_heap::PoolKind;
use firn_heap::collector::scheme::{FFCCD, SFCCD, Scheme};
use firn_media::{Domain, Level};
use firn_workloads::under_test::Structure;

use super::error::CrashError;
use super::named;

/// Lines of a transaction that is a record, as the medium of files with a log has it.
pub(super) const RECORDED_LINES: usize = 1792;

/// What survives a crash: a domain, and how far transactions wait on a medium with a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Survival {
    /// The domain.
    pub domain: Domain,
    /// The level.
    pub level: Level,
    /// Lines of a transaction that is a record of the log at most; a longer one has an entry in a lane.
    pub recorded_lines: usize,
}

impl From<Domain> for Survival {
    /// Transactions wait until they are durable.
    fn from(domain: Domain) -> Self {
        Self {
            domain,
            level: Level::Sync,
            recorded_lines: RECORDED_LINES,
        }
    }
}

/// One combination that a campaign crashes.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The structure.
    pub structure: Structure,
    /// How the collector moves objects.
    pub scheme: &'static Scheme,
    /// What survives a crash.
    pub survival: Survival,
    /// What decides which objects live.
    pub pool: PoolKind,
    /// Threads of the program; the collector works beside them.
    pub threads: usize,
}

impl Setting {
    /// Every structure under every scheme in every domain, in a traced pool, by one thread.
    pub fn every(
        structures: &[Structure],
        schemes: &[&'static Scheme],
        domains: &[impl Into<Survival> + Copy],
    ) -> Vec<Self> {
        let mut all = Vec::new();
        for &structure in structures {
            for &scheme in schemes {
                all.extend(domains.iter().map(|&survival| Self {
                    structure,
                    scheme,
                    survival: survival.into(),
                    pool: PoolKind::Traced,
                    threads: 1,
                }));
            }
        }
        all
    }

    /// The name of domain and level.
    pub(super) fn survival_name(&self) -> &'static str {
        named::survival_name(self.survival)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            structure,
            scheme,
            pool,
            threads,
            ..
        } = self;
        let (structure, scheme, domain) = (structure.name(), scheme.name, self.survival_name());
        let pool = pool_name(*pool);
        write!(f, "{structure}/{scheme}/{domain}/{pool}/{threads}")
    }
}

impl FromStr for Setting {
    type Err = CrashError;

    /// Parses what [`Setting`] prints.
    fn from_str(text: &str) -> Result<Self, CrashError> {
        let unknown = || CrashError::Unknown {
            what: "setting",
            name: text.to_owned(),
            known: "structure/scheme/domain/pool/threads".to_owned(),
        };
        let [structure, scheme, domain, kind, threads] = text
            .split('/')
            .collect::<Vec<_>>()
            .try_into()
            .map_err(|_| unknown())?;
        Ok(Self {
            structure: Structure::named(structure)?,
            scheme: named::scheme(scheme)?,
            survival: named::domain(domain)?,
            pool: pool(kind)?,
            threads: threads.parse().map_err(|_| unknown())?,
        })
    }
}

const POOLS: [PoolKind; 2] = [PoolKind::Traced, PoolKind::Explicit];

/// Name of a kind of pool on command lines and in reports.
pub(super) const fn pool_name(kind: PoolKind) -> &'static str {
    match kind {
        PoolKind::Traced => "traced",
        PoolKind::Explicit => "explicit",
    }
}

/// The kind of pool of this name.
///
/// Errors: there is none.
pub fn pool(name: &str) -> Result<PoolKind, CrashError> {
    let found = POOLS.into_iter().find(|&kind| pool_name(kind) == name);
    found.ok_or_else(|| CrashError::Unknown {
        what: "kind of pool",
        name: name.to_owned(),
        known: POOLS.map(pool_name).join(", "),
    })
}

/// The microbenchmarks of FFCCD's table 3 as structures of ours: linked list, AVL tree, red-black tree, string swap, B+
/// tree.
const MICROBENCHMARKS: [&str; 5] = ["list", "avl", "red_black", "strings", "inline_tree"];
/// In place of BzTree and FPTree, which several threads share.
const CONCURRENT: [&str; 2] = ["map", "hash"];
const CONCURRENT_THREADS: [usize; 4] = [1, 2, 4, 8];
/// The name of [`ffccd_7_1`].
const FFCCD_7_1: &str = "ffccd-7.1";

/// The 26 settings of FFCCD, section 7.1: SFCCD and FFCCD, both corrected, on each microbenchmark with one thread and
/// on each concurrent structure with 1, 2, 4 and 8, in the domain ADR.
fn ffccd_7_1() -> Result<Vec<Setting>, CrashError> {
    let single = MICROBENCHMARKS.into_iter().map(|name| (name, 1));
    let shared = CONCURRENT
        .into_iter()
        .flat_map(|name| CONCURRENT_THREADS.map(|threads| (name, threads)));
    let programs: Vec<(&str, usize)> = single.chain(shared).collect();
    let mut all = Vec::new();
    for scheme in [&SFCCD, &FFCCD] {
        for &(name, threads) in &programs {
            all.push(Setting {
                structure: Structure::named(name)?,
                scheme,
                survival: Domain::Adr.into(),
                pool: PoolKind::Traced,
                threads,
            });
        }
    }
    Ok(all)
}

/// The settings that a publication crashed, by its name and section.
///
/// Errors: there are none of this name.
pub fn settings(name: &str) -> Result<Vec<Setting>, CrashError> {
    match name {
        FFCCD_7_1 => ffccd_7_1(),
        _ => Err(CrashError::Unknown {
            what: "list of settings",
            name: name.to_owned(),
            known: FFCCD_7_1.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_setting_is_read_as_it_is_written() {
        for text in [
            "list/piggyback/logged/traced/1",
            "map/none/logged-written/explicit/2",
        ] {
            assert_eq!(text.parse::<Setting>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn ffccd_has_26_settings() {
        let all = settings(FFCCD_7_1).unwrap();
        let distinct: HashSet<String> = all.iter().map(Setting::to_string).collect();
        assert_eq!((all.len(), distinct.len()), (26, 26));
        let of_threads = |n| all.iter().filter(|setting| setting.threads == n).count();
        assert_eq!([1, 2, 4, 8].map(of_threads), [14, 4, 4, 4]);
        for setting in &all {
            let read: Setting = setting.to_string().parse().unwrap();
            assert_eq!(read.to_string(), setting.to_string());
        }
    }
}
