//! Crashes at drawn moments, as section 7.1 injects them.

use firn_heap::collector::scheme::{FFCCD_AS_PRINTED, SFCCD, SFCCD_AS_PRINTED, Scheme};
use firn_tools::Progress;

use super::size::injections;
use crate::crash::{Campaign, CrashReport, Mode, Setting, settings};
use crate::reproduction::ReproductionError;
use crate::reproduction::scale::Scale;

/// The paper's settings.
const SETTINGS: &str = "ffccd-7.1";

/// Results of the crashes.
pub(super) struct Injected {
    /// The schemes as corrected, in the paper's settings.
    pub(super) corrected: CrashReport,
    /// The schemes as printed, in those settings that have one thread. Each ends at the first finding.
    pub(super) printed: CrashReport,
}

/// Injects as many crashes as the scale has.
///
/// Errors: a pool to be crashed cannot be made. Findings are no errors.
pub(super) fn inject(
    scale: Scale,
    seed: u64,
    progress: &mut dyn Progress,
) -> Result<Injected, ReproductionError> {
    let corrected = settings(SETTINGS)?;
    // The settings are equal for both schemes.
    let alone: Vec<Setting> = corrected
        .iter()
        .copied()
        .filter(|setting| setting.threads == 1 && core::ptr::eq(setting.scheme, &SFCCD))
        .collect();
    let of = |scheme: &'static Scheme| {
        alone
            .iter()
            .map(move |&setting| Setting { scheme, ..setting })
    };
    let printed = of(&SFCCD_AS_PRINTED).chain(of(&FFCCD_AS_PRINTED)).collect();
    let campaign = |settings| Campaign {
        settings,
        mode: Mode::injections(injections(scale)),
        seed,
        ..Campaign::default()
    };
    Ok(Injected {
        corrected: campaign(corrected).run(progress)?,
        printed: campaign(printed).run(progress)?,
    })
}
