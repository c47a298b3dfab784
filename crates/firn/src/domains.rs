//! Domains, by their names on the command line.

use clap::ValueEnum;
use firn_tools::Domain;

/// The domains between which pools on ordinary disks change.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum DomainName {
    /// With a log: survives power failures
    Logged,
    /// Without: survives the death of the program
    Process,
}

impl From<DomainName> for Domain {
    fn from(name: DomainName) -> Self {
        match name {
            DomainName::Logged => Self::Logged,
            DomainName::Process => Self::Process,
        }
    }
}
