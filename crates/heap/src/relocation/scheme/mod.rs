//! Relocation schemes: how a copy becomes the object, whatever a crash keeps.
//!
//! A scheme is a table of facts, one file each; [`SCHEMES`] lists them. What the facts mean is done in
//! one place (the open cycle), so that a scheme cannot forget half of a rule.

mod espresso;
mod espresso_as_printed;
mod ffccd;
mod ffccd_as_printed;
mod ffccd_checklookup;
mod none;
mod piggyback;
mod sfccd;
mod sfccd_as_printed;

/// Who says whether an object moves, and where to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// Tables of frames and of the plan, by software.
    InTables,
    /// The hardware, which was told when the plan came into force ([`firn_media::CheckLookup::check_lookup`]).
    ByHardware,
}

/// When the settled word of a unit is stored: from then on the copy counts and the source does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settle {
    /// By whoever copies, right after the copy.
    AtCopy,
    /// By the first transaction that changes the object, strictly after its log's fence, which covers
    /// the copy's lines as well.
    AtChange,
    /// By nobody: the hardware remembers which lines of copies reached persistence
    /// ([`firn_media::Relocate::relocate`]), and a line that did counts.
    ByHardware,
}

/// From when on others may use a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// From the last fence of its relocation on.
    AfterFence,
    /// From the store of its settled word on, which a fence follows: meanwhile somebody may change, durably,
    /// what recovery will copy over.
    AtStore,
}

/// What recovery takes a settled word for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// The copy is whole: settled units stay as they are, others are copied again.
    CopyUnsettled,
    /// The copy may be torn: settled units are compared with their source and copied again where
    /// they differ (figure 7b of FFCCD). Loses what was committed to the copy.
    CopyDifferent,
    /// A line that reached persistence stays as it is. Of objects that share lines with one that did, the
    /// other lines are copied and marked durably.
    CopyUnreached,
    /// An object of which some lines reached persistence, and some did not, is copied again as a whole (FFCCD,
    /// section 3.3.3). Loses what was committed to those that did.
    CopyReached,
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
    /// Who says where they go.
    pub found: Found,
    /// Whether the one thread that claimed an object copies it. Otherwise whoever comes does, over each
    /// other.
    pub claims: bool,
    /// Whether objects whose destinations share lines are copied together, so that no line holds half of
    /// them when it counts.
    pub groups: bool,
    /// Whether the copy's lines are written back by whoever copies.
    pub write_back_copy: bool,
    /// Whether a fence follows the copy.
    pub fence_copy: bool,
    /// When the settled word is stored.
    pub settle: Settle,
    /// Whether a fence follows the settled word's write-back, before anyone else may use the copy.
    pub fence_settled: bool,
    /// From when on others use the copy.
    pub shown: Shown,
    /// What recovery does.
    pub recovery: Recovery,
    /// Whether it keeps what was committed. One that does not serves to show so, and is refused on
    /// memory that holds something.
    pub sound: bool,
    /// Where it was published.
    pub source: &'static str,
}

impl Scheme {
    /// Whether it copies by an instruction that stock hardware lacks.
    pub const fn relocates(&self) -> bool {
        matches!(self.settle, Settle::ByHardware)
    }

    /// Whether it asks an instruction that stock hardware lacks where objects go.
    pub const fn checks_lookup(&self) -> bool {
        matches!(self.found, Found::ByHardware)
    }

    /// Whether it keeps what was committed on hardware that can be bought.
    pub const fn is_for_stock_hardware(&self) -> bool {
        self.sound && !self.relocates() && !self.checks_lookup()
    }

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
pub use espresso_as_printed::ESPRESSO_AS_PRINTED;
pub use ffccd::FFCCD;
pub use ffccd_as_printed::FFCCD_AS_PRINTED;
pub use ffccd_checklookup::FFCCD_CHECKLOOKUP;
pub use none::NONE;
pub use piggyback::PIGGYBACK;
pub use sfccd::SFCCD;
pub use sfccd_as_printed::SFCCD_AS_PRINTED;

/// Every scheme there is.
pub static SCHEMES: [&Scheme; 9] = [
    &NONE,
    &ESPRESSO,
    &SFCCD,
    &PIGGYBACK,
    &FFCCD,
    &FFCCD_CHECKLOOKUP,
    &ESPRESSO_AS_PRINTED,
    &SFCCD_AS_PRINTED,
    &FFCCD_AS_PRINTED,
];

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
        let printed = [&ESPRESSO_AS_PRINTED, &SFCCD_AS_PRINTED, &FFCCD_AS_PRINTED];
        assert_eq!(printed.map(fences), [2, 1, 0]);
        assert_eq!((fences(&FFCCD), fences(&FFCCD_CHECKLOOKUP)), (0, 0));
    }
}
