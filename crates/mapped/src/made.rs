//! What a medium is made of.

use firn_media::Domain;
use firn_units::FRAME_BYTES;

use crate::file::PoolFile;
use crate::flush::Flush;
use crate::window::{Aside, FileMapping, Stores};
use crate::{Backing, MappedError, MappedOptions};

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

    /// A new file's. On a disk it gets a log, unless another domain is asked for: a new pool survives a power failure
    /// wherever it can.
    pub(crate) fn new_on(file: &PoolFile, options: &MappedOptions) -> Result<Self, MappedError> {
        let made = Self::of(file)?;
        let is_logged = match options.domain {
            None => options.log.by_default && made.backing == Backing::Disk && !is_on_dax(file),
            Some(domain) => domain == Domain::Logged,
        };
        Ok(match is_logged {
            true => made.with_log(),
            false => Self {
                domain: options.domain,
                ..made
            },
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

/// Whether a file's device is memory: no page cache lies between its mapping and the device.
fn is_on_dax(file: &PoolFile) -> bool {
    let directly = FileMapping {
        writable: true,
        dax: true,
        private: false,
    };
    Aside::map(0..FRAME_BYTES, &file.file, directly).is_ok()
}
