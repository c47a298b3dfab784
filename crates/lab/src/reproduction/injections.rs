//! Crashes at drawn moments, as section 7.1 injects them.

use firn_heap::PoolKind;
use firn_heap::collector::scheme::{FFCCD_AS_PRINTED, SFCCD_AS_PRINTED};
use firn_media::Domain;

use super::ReproductionError;
use super::scale::Scale;
use crate::Progress;
use crate::crash::{Campaign, CrashReport, Mode, Setting, settings};

/// The paper's settings.
const SETTINGS: &str = "ffccd-7.1";

/// What crashes came to.
pub(super) struct Injected {
    /// Of the schemes as corrected, in the paper's settings.
    pub(super) corrected: CrashReport,
    /// Of the schemes as printed, where those settings have one thread. Each ends at the first finding.
    pub(super) printed: CrashReport,
}

/// Injects as many as the scale has.
///
/// Errors: a pool to be crashed cannot be made. What crashes find is no error.
pub(super) fn inject(
    scale: Scale,
    seed: u64,
    progress: &mut dyn Progress,
) -> Result<Injected, ReproductionError> {
    let corrected = settings(SETTINGS)?;
    let alone = |setting: &&Setting| setting.threads == 1 && setting.domain == Domain::Adr;
    let mut printed: Vec<Setting> = Vec::new();
    for scheme in [&SFCCD_AS_PRINTED, &FFCCD_AS_PRINTED] {
        for setting in corrected.iter().filter(alone) {
            let is_new = |other: &Setting| {
                other.structure.name() != setting.structure.name()
                    || other.scheme.name != scheme.name
            };
            if printed.iter().all(is_new) {
                printed.push(Setting {
                    structure: setting.structure,
                    scheme,
                    domain: setting.domain,
                    pool: PoolKind::Traced,
                    threads: setting.threads,
                });
            }
        }
    }
    let campaign = |settings| Campaign {
        settings,
        mode: Mode::injections(scale.injections()),
        seed,
        ..Campaign::default()
    };
    Ok(Injected {
        corrected: campaign(corrected).run(progress)?,
        printed: campaign(printed).run(progress)?,
    })
}
