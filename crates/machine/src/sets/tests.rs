//! Do sets replace the tags that a plain list would?

use super::*;

/// The tags of each set, the most recently used first.
struct Model {
    sets: Vec<Vec<u64>>,
    ways: usize,
}

impl Model {
    fn set(&mut self, tag: u64) -> &mut Vec<u64> {
        let count = self.sets.len() as u64;
        &mut self.sets[(tag % count) as usize]
    }

    fn remove(&mut self, tag: u64) -> bool {
        let set = self.set(tag);
        let place = set.iter().position(|&held| held == tag);
        place.map(|place| set.remove(place)).is_some()
    }

    fn put(&mut self, tag: u64) -> Option<u64> {
        let ways = self.ways;
        let set = self.set(tag);
        set.insert(0, tag);
        (set.len() > ways).then(|| set.pop()).flatten()
    }
}

#[test]
fn what_was_used_longest_ago_goes_first() {
    for (seed, ways) in (0..).zip([1, 3, 4, 8, 12, 16, 20, 40]) {
        let count = 5;
        let mut random = fastrand::Rng::with_seed(seed);
        let mut sets = Sets::new(count * u64::from(ways), ways);
        sets.now = (i32::MAX / sets.step - 500) * sets.step;
        let mut model = Model {
            sets: vec![Vec::new(); count as usize],
            ways: ways as usize,
        };
        for _ in 0..4_000 {
            let tag = random.u64(..count * u64::from(ways) * 3 / 2);
            let slot = sets.find(tag);
            let held = model.remove(tag);
            assert_eq!(slot.is_some(), held, "{tag}");
            match slot {
                Some(slot) if random.u32(..5) == 0 => sets.take(slot),
                Some(slot) => {
                    match random.u32(..3) {
                        0 => sets.touch_slot(slot),
                        1 => assert!(sets.use_or_put(tag)),
                        _ => assert!(matches!(sets.touch_or_put(tag), Place::Held(_))),
                    }
                    model.put(tag);
                }
                None if random.u32(..4) == 0 => {
                    assert!(!sets.use_or_put(tag));
                    model.put(tag);
                }
                None => {
                    let victim = match sets.touch_or_put(tag) {
                        Place::Held(slot) => panic!("{tag} was put into {slot}"),
                        Place::Put(_, victim) => victim,
                    };
                    assert_eq!(victim, model.put(tag), "{ways} ways");
                }
            }
        }
        let mut found: Vec<u64> = sets.tags().map(|(_, tag)| tag).collect();
        found.sort_unstable();
        let mut expected = model.sets.concat();
        expected.sort_unstable();
        assert_eq!(found, expected);
        assert!(sets.now < i32::MAX / 2, "times began anew");
    }
}

#[test]
fn a_choice_is_the_slot_that_a_tag_comes_to_whatever_was_taken_since() {
    for (seed, ways) in (0..).zip([1, 4, 8, 16, 20]) {
        let count = 3;
        let mut random = fastrand::Rng::with_seed(seed);
        let mut chosen = Sets::new(count * u64::from(ways), ways);
        let mut plain = Sets::new(count * u64::from(ways), ways);
        for tag in 0..2_000 {
            let choice = chosen.choose(tag);
            let held: Vec<u64> = plain.tags().map(|(_, tag)| tag).collect();
            if random.bool() && !held.is_empty() {
                let taken = held[random.usize(..held.len())];
                for sets in [&mut chosen, &mut plain] {
                    sets.take(sets.find(taken).unwrap());
                }
            }
            let put = plain.put(tag);
            assert_eq!(chosen.put_chosen(tag, choice), put, "{ways} ways");
        }
    }
}

#[test]
fn sets_are_those_of_a_remainder() {
    for count in [1, 2, 3, 96, 1000, 3072, (1 << 22) - 1, 1 << 22] {
        let sets = Sets::new(count, 1);
        let tags = (0..200).chain((0..200).map(|back| Sets::END_OF_TAGS - 1 - back));
        for tag in tags {
            assert_eq!(sets.first(tag) as u64, tag % count, "{tag} of {count}");
        }
    }
}
