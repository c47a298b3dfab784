//! What a medium is made of.

use firn_media::Domain;

use crate::file::PoolFile;
use crate::flush::Flush;
use crate::window::Stores;
use crate::{Backing, MappedError};

/// What a medium is made of, which is known before it is mapped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) backing: Backing,
    /// `None`: as the backing says.
    pub(crate) domain: Option<Domain>,
    pub(crate) stores: Stores,
    pub(crate) logs: bool,
}

impl Made {
    pub(crate) fn in_memory() -> Self {
        Self {
            backing: Backing::Anonymous,
            domain: None,
            stores: Stores::Private,
            logs: false,
        }
    }

    pub(crate) fn of(file: &PoolFile) -> Result<Self, MappedError> {
        Ok(Self {
            backing: file.backing()?,
            domain: None,
            stores: Stores::Shared,
            logs: false,
        })
    }

    pub(crate) fn domain_on(self, backing: Backing) -> Domain {
        self.domain.unwrap_or(match backing {
            Backing::Dax => Domain::Adr,
            _ => Domain::Process,
        })
    }

    pub(crate) fn flush(self, domain: Domain) -> Flush {
        match self.logs {
            true => Flush::Log,
            false => Flush::of(domain),
        }
    }

    /// With a log, which alone reaches the file.
    pub(crate) fn with_log(self) -> Self {
        Self {
            domain: Some(Domain::Logged),
            stores: Stores::Private,
            logs: true,
            ..self
        }
    }
}
