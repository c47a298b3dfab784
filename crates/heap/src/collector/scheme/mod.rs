//! Relocation schemes: how a copy becomes the object, whatever a crash keeps.
//!
//! A scheme is a table of facts, one file each; [`SCHEMES`] lists them. What the facts mean is done in
//! one place ([`super::cycle::Cycle`]), so that a scheme cannot forget half of a rule.

mod espresso;
mod none;
mod piggyback;
mod sfccd;
mod sfccd_as_printed;

/// When the settled word of a unit is stored: from then on the copy counts and the source does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settle {
    /// By whoever copies, right after the copy.
    AtCopy,
    /// By the first transaction that changes the object, strictly after its log's fence, which covers
    /// the copy's lines as well.
    AtChange,
}

/// What recovery takes a settled word for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// The copy is whole: settled units stay as they are, others are copied again.
    CopyUnsettled,
    /// The copy may be torn: settled units are compared with their source and copied again where
    /// they differ (figure 7b of FFCCD). Loses what was committed to the copy.
    CopyDifferent,
}

/// The facts of a relocation scheme.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scheme {
    /// What it is called on command lines and in reports.
    pub name: &'static str,
    /// Its number on media.
    pub number: u64,
    /// Whether objects move at all.
    pub moves: bool,
    /// Whether the copy's lines are written back by whoever copies.
    pub write_back_copy: bool,
    /// Whether a fence follows the copy.
    pub fence_copy: bool,
    /// When the settled word is stored.
    pub settle: Settle,
    /// Whether a fence follows the settled word's write-back, before anyone else may use the copy.
    pub fence_settled: bool,
    /// What recovery does.
    pub recovery: Recovery,
    /// Whether it keeps what was committed. One that does not serves to show so, and is refused on
    /// memory that holds something.
    pub sound: bool,
    /// Where it was published.
    pub source: &'static str,
}

impl Scheme {
    /// Fences that one relocation issues, on a domain that needs any.
    pub const fn fences(&self) -> u64 {
        self.fence_copy as u64 + self.fence_settled as u64
    }

    /// The scheme of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SCHEMES.iter().copied().find(|s| s.name == name)
    }

    /// The scheme of this number on media.
    pub fn numbered(number: u64) -> Option<&'static Self> {
        SCHEMES.iter().copied().find(|s| s.number == number)
    }
}

pub use espresso::ESPRESSO;
pub use none::NONE;
pub use piggyback::PIGGYBACK;
pub use sfccd::SFCCD;
pub use sfccd_as_printed::SFCCD_AS_PRINTED;

/// Every scheme there is.
pub static SCHEMES: [&Scheme; 5] = [&NONE, &ESPRESSO, &SFCCD, &PIGGYBACK, &SFCCD_AS_PRINTED];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_tell_schemes_apart() {
        for (i, scheme) in SCHEMES.iter().enumerate() {
            assert_eq!(Scheme::named(scheme.name), Some(*scheme));
            assert_eq!(Scheme::numbered(scheme.number), Some(*scheme));
            assert!(SCHEMES[..i].iter().all(|s| s.name != scheme.name));
        }
    }

    #[test]
    fn the_fences_are_those_of_the_papers() {
        let fences = |scheme: &Scheme| scheme.fences();
        assert_eq!(
            (fences(&ESPRESSO), fences(&SFCCD), fences(&PIGGYBACK)),
            (2, 1, 0)
        );
        assert_eq!(fences(&SFCCD_AS_PRINTED), 1);
    }
}
