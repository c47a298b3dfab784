//! The comparison of the pool's content with what was acknowledged.

use firn_tools::Store;

use super::input::Input;
use super::map_of;
use super::script::{Deed, Operation, Script};
use crate::LabError;

/// The result of a comparison.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verified {
    /// Entries that were there and right.
    pub(crate) entries: u64,
    /// Operations that were committed and not yet acknowledged.
    pub(crate) in_flight: u64,
    /// Entries that are not as they were acknowledged, in sentences.
    pub(crate) lost: Vec<String>,
}

/// Where a map differs from what was acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Difference {
    /// An acknowledged entry is not there.
    Missing(usize),
    /// The entry is there, with this value of the operation in flight.
    InFlight(usize),
    /// The entry is there with a value that is not the last one stored.
    Wrong(usize),
    /// A key that no writer inserted.
    Foreign,
}

/// Compares each writer's map in `store` with its script, and tells the script of an operation that was in flight.
pub(crate) fn verify(
    store: &mut Store,
    scripts: &mut [Script],
    input: &Input,
) -> Result<Verified, LabError> {
    let mut verified = Verified::default();
    for script in scripts {
        store.select(&map_of(script.writer()));
        // The map may be absent if its creation was in flight; it is empty then.
        store.make_map()?;
        let (same, differences) = compare(store, script, input)?;
        verified.entries += same;
        match (&differences[..], script.next()) {
            ([], _) => {}
            ([one], Some(next)) if explains(next, *one) => {
                script.done(next);
                verified.in_flight += 1;
            }
            (all, _) => {
                let say = |d: &Difference| sentence(*d, input);
                verified.lost.extend(all.iter().map(say));
            }
        }
    }
    Ok(verified)
}

/// Walks the map and the script, both in the order of the keys. Returns the number of equal entries, and where the two
/// differ.
fn compare(
    store: &mut Store,
    script: &Script,
    input: &Input,
) -> Result<(u64, Vec<Difference>), LabError> {
    let next = script.next();
    let (mut same, mut differences) = (0, Vec::new());
    let mut content = script.content().peekable();
    let mut expected = Vec::new();
    store.scan(b"", |key, found| {
        while let Some((index, stamp)) = content.next_if(|(i, _)| input.key(*i) < key) {
            differences.extend(stamp.map(|_| Difference::Missing(index)));
        }
        let Some((index, stamp)) = content.next_if(|(i, _)| input.key(*i) == key) else {
            differences.push(Difference::Foreign);
            return true;
        };
        let mut is = |stamp| {
            input.value(index, stamp, &mut expected);
            expected == found
        };
        if stamp.is_some_and(&mut is) {
            same += 1;
        } else if next.is_some_and(|next| next.index == index && is(next.stamp)) {
            differences.push(Difference::InFlight(index));
        } else {
            differences.push(Difference::Wrong(index));
        }
        true
    })?;
    differences.extend(content.filter_map(|(i, stamp)| stamp.map(|_| Difference::Missing(i))));
    Ok((same, differences))
}

/// Whether the operation in flight explains this difference.
fn explains(next: Operation, difference: Difference) -> bool {
    match difference {
        Difference::Missing(index) => next.deed == Deed::Remove && next.index == index,
        Difference::InFlight(index) => next.deed != Deed::Remove && next.index == index,
        Difference::Wrong(_) | Difference::Foreign => false,
    }
}

fn sentence(difference: Difference, input: &Input) -> String {
    let key = |index: usize| String::from_utf8_lossy(input.key(index));
    match difference {
        Difference::Missing(i) => format!("{}: acknowledged, and not there", key(i)),
        Difference::InFlight(i) => format!("{}: changed besides another entry", key(i)),
        Difference::Wrong(i) => format!("{}: there with a value that is not the last", key(i)),
        Difference::Foreign => "a key that nobody inserted".into(),
    }
}
