//! Steps of a protocol that a test can take away, to see that it is missed.

/// A write-back, a fence, an order or a rule of the code that runs on a medium, by name.
///
/// The code asks [`crate::Probe::leaves_out`] at the place where it does the step. Every medium says no but
/// one that is made to lose power and was told to leave this step out; elsewhere the question compiles to
/// nothing.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// What it is called on command lines and in reports.
    pub name: &'static str,
    /// The rule of `docs/protocol.md` that asks for it.
    pub rule: &'static str,
    /// What the code does no more without it.
    pub what: &'static str,
}
