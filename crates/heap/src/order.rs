//! The order of a protocol's phases.
//!
//! A protocol is a value with a method for each phase. [`in_order`] runs the phases in the order of its list, so the
//! list is all that a reader of the protocol needs. A medium that loses power may be told to get the order wrong
//! ([`Probe::is_perturbed`]); `perturbed.rs` defines the wrong orders, apart from the protocol. For all other media
//! none of this is compiled.

use firn_media::{Medium, Probe, Step};

/// Runs the phases of a protocol, which is a mutable reference, in this order. With `try`, a phase may fail, and then
/// no later one begins.
macro_rules! in_order {
    (try $protocol:ident => $($phase:ident),+ $(,)?) => {
        $(
            if $crate::order::is_due(&mut *$protocol, stringify!($phase)) {
                $protocol.$phase()?;
            }
        )+
    };
    ($protocol:ident => $($phase:ident),+ $(,)?) => {
        $(
            if $crate::order::is_due(&mut *$protocol, stringify!($phase)) {
                $protocol.$phase();
            }
        )+
    };
}
pub(crate) use in_order;

/// A protocol whose order the crash medium may get wrong.
pub(crate) trait Perturbed: Sized {
    type Medium: Medium;

    fn medium(&self) -> &Self::Medium;

    /// The faults, by the step that is left out.
    fn perturbations() -> Vec<Perturbation<Self>>;
}

/// The effect on a phase when a step is left out.
pub(crate) struct Perturbation<P> {
    pub(crate) step: &'static Step,
    pub(crate) phase: &'static str,
    pub(crate) how: How<P>,
}

pub(crate) enum How<P> {
    /// The phase is not run.
    LeftOut,
    /// A replacement is run.
    Instead(fn(&mut P)),
    /// The phase is run too early, before this other phase.
    Moved(&'static str, fn(&mut P)),
    /// The phase is run too early, and again in its place.
    Twice(&'static str, fn(&mut P)),
}

/// Whether a phase is run now: always, except on a medium that gets the order wrong.
#[inline(always)]
pub(crate) fn is_due<P: Perturbed>(protocol: &mut P, phase: &str) -> bool {
    !protocol.medium().is_perturbed() || perturb(protocol, phase)
}

#[cold]
#[inline(never)]
fn perturb<P: Perturbed>(protocol: &mut P, phase: &str) -> bool {
    let mut these = P::perturbations();
    these.retain(|one| protocol.medium().leaves_out(one.step));
    let mut is_due = true;
    for one in these {
        match one.how {
            How::Moved(other, carry_out) | How::Twice(other, carry_out) if other == phase => {
                carry_out(protocol);
            }
            How::Instead(carry_out) if one.phase == phase => carry_out(protocol),
            _ => {}
        }
        is_due &= one.phase != phase || matches!(one.how, How::Twice(..));
    }
    is_due
}

impl<P> Perturbation<P> {
    pub(crate) fn left_out(step: &'static Step, phase: &'static str) -> Self {
        let how = How::LeftOut;
        Self { step, phase, how }
    }

    pub(crate) fn instead(step: &'static Step, phase: &'static str, other: fn(&mut P)) -> Self {
        let how = How::Instead(other);
        Self { step, phase, how }
    }

    pub(crate) fn moved(
        step: &'static Step,
        (phase, carry_out): (&'static str, fn(&mut P)),
        before: &'static str,
    ) -> Self {
        let how = How::Moved(before, carry_out);
        Self { step, phase, how }
    }

    pub(crate) fn twice(
        step: &'static Step,
        (phase, carry_out): (&'static str, fn(&mut P)),
        before: &'static str,
    ) -> Self {
        let how = How::Twice(before, carry_out);
        Self { step, phase, how }
    }
}
