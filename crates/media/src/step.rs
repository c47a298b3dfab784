//! Steps of a protocol that a test can leave out, to show that they are missed.

/// A write-back, a fence, an order or a rule of the code that runs on a medium, by name.
///
/// The code asks [`crate::Probe::leaves_out`] where it does the step. The answer is no, except on a medium that is made
/// to lose power and was told to leave this step out. Elsewhere the question compiles to nothing.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// Its name on command lines and in reports.
    pub name: &'static str,
    /// The rule of `docs/protocol.md` that requires it.
    pub rule: &'static str,
    /// What the code no longer does without it.
    pub what: &'static str,
}
