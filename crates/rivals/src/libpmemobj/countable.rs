//! Operations that can be single-stepped, by name.

use super::{Kind, StructureKind};

/// A change of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Inserting an entry.
    Insert,
    /// Deleting an entry.
    Delete,
}

/// An operation whose fences can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Countable {
    /// An operation.
    Operation(Kind),
    /// A change of a structure, called `list_insert` and the like.
    Structure(StructureKind, Step),
}

const STEPS: [(&str, Step); 2] = [("_insert", Step::Insert), ("_delete", Step::Delete)];

impl Countable {
    /// The names of all changes of structures.
    pub fn names_of_steps() -> impl Iterator<Item = String> {
        let names = StructureKind::names().into_iter();
        names.flat_map(|name| STEPS.map(|(step, _)| format!("{name}{step}")))
    }

    /// The operation called `name`.
    pub fn named(name: &str) -> Option<Self> {
        let step = |(suffix, step): (&str, Step)| {
            let structure = StructureKind::named(name.strip_suffix(suffix)?)?;
            Some(Self::Structure(structure, step))
        };
        let operation = Kind::named(name).map(Self::Operation);
        operation.or_else(|| STEPS.into_iter().find_map(step))
    }

    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::Operation(kind) => kind.name().into(),
            Self::Structure(structure, step) => {
                let suffix = STEPS.iter().find(|(_, known)| *known == step);
                let suffix = suffix.expect("both steps have a name").0;
                format!("{}{suffix}", structure.name())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_things_belong_together() {
        for name in Countable::names_of_steps() {
            let countable = Countable::named(&name).expect("a known name");
            assert_eq!(countable.name(), name);
        }
        assert_eq!(Countable::named("tx_empty").unwrap().name(), "tx_empty");
        assert_eq!(Countable::named("list_dance"), None);
    }
}
