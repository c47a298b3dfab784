//! Relocation schemes: how a copy becomes the object, whatever a crash keeps.
//!
//! A scheme is a table of facts, in a file of its own; [`SCHEMES`] lists them. Only the open cycle acts on the facts,
//! so a scheme cannot forget half of a rule.

mod espresso;
mod espresso_as_printed;
mod ffccd;
mod ffccd_as_printed;
mod ffccd_checklookup;
mod none;
mod piggyback;
mod sfccd;
mod sfccd_as_printed;

/// How it is decided whether an object moves, and where to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// By software, from tables of frames and of the plan.
    InTables,
    /// By the hardware, which was told when the plan came into force ([`firn_media::CheckLookup::check_lookup`]).
    ByHardware,
}

/// When the settled word of a unit is stored: from then on the copy counts and the source does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settle {
    /// By the copying thread, right after the copy.
    AtCopy,
    /// By the first transaction that changes the object, strictly after its log's fence, which covers
    /// the copy's lines as well.
    AtChange,
    /// Never: the hardware remembers which lines of copies reached persistence ([`firn_media::Relocate::relocate`]),
    /// and these lines count.
    ByHardware,
}

/// When others may begin to use a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// After the last fence of its relocation.
    AfterFence,
    /// After the store of its settled word, before the fence that follows: meanwhile a thread may durably change bytes
    /// that recovery will copy over.
    AtStore,
}

/// How recovery interprets settled words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// The copy is whole: settled units stay as they are, others are copied again.
    CopyUnsettled,
    /// The copy may be torn: settled units are compared with their source and copied again where they differ (figure 7b
    /// of FFCCD). Loses commits to the copy.
    CopyDifferent,
    /// A line that reached persistence stays as it is. Where objects share lines with one that did, their other lines
    /// are copied and marked durably.
    CopyUnreached,
    /// An object is copied again as a whole if some of its lines reached persistence and some did not (FFCCD, section
    /// 3.3.3). Loses commits to the lines that did.
    CopyReached,
}

/// The facts of a relocation scheme.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scheme {
    /// Its name on command lines and in reports.
    pub name: &'static str,
    /// Its number on media.
    pub number: u64,
    /// Whether objects move at all.
    pub moves: bool,
    /// How the destinations of objects are found.
    pub found: Found,
    /// Whether only the thread that claimed an object copies it. Otherwise several threads may, over each other.
    pub claims: bool,
    /// Whether objects whose destinations share lines are copied together, so that no line counts while it holds only a
    /// part of them.
    pub groups: bool,
    /// Whether the copying thread writes the copy's lines back.
    pub write_back_copy: bool,
    /// Whether a fence follows the copy.
    pub fence_copy: bool,
    /// When the settled word is stored.
    pub settle: Settle,
    /// Whether a fence follows the settled word's write-back, before any other thread may use the copy.
    pub fence_settled: bool,
    /// When others may begin to use the copy.
    pub shown: Shown,
    /// What recovery does.
    pub recovery: Recovery,
    /// Whether it keeps committed data. A scheme that does not serves as a demonstration, and is refused on memory that
    /// holds data.
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

    /// Whether it keeps committed data on stock hardware.
    pub const fn is_for_stock_hardware(&self) -> bool {
        self.sound && !self.relocates() && !self.checks_lookup()
    }

    /// Fences that one relocation issues, on a domain that needs fences.
    pub const fn fences(&self) -> u64 {
        self.fence_copy as u64 + self.fence_settled as u64
    }

    /// The scheme with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SCHEMES.iter().copied().find(|s| s.name == name)
    }

    /// The scheme with this number on media.
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

/// Every scheme.
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
