//! A sequence of decisions, enumerated depth first within a bound on cost.

/// One decision: the costs of its options, and the option taken.
#[derive(Clone, Debug)]
struct Decision {
    costs: Vec<u32>,
    pick: u32,
}

/// Decisions of one run: a given prefix, then the first option everywhere.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    prefix: Vec<u32>,
    bound: u32,
    made: Vec<Decision>,
}

impl Choices {
    pub(crate) fn replay(prefix: Vec<u32>, bound: u32) -> Self {
        Self {
            prefix,
            bound,
            made: Vec::new(),
        }
    }

    pub(crate) fn pick(&mut self, costs: &[u32]) -> u32 {
        let pick = self.prefix.get(self.made.len()).copied().unwrap_or(0);
        let pick = pick.min(costs.len() as u32 - 1);
        self.made.push(Decision {
            costs: costs.to_vec(),
            pick,
        });
        pick
    }

    /// The options picked, without the trailing first options.
    pub(crate) fn picked(&self) -> Vec<u32> {
        let mut picks: Vec<u32> = self.made.iter().map(|decision| decision.pick).collect();
        while picks.last() == Some(&0) {
            picks.pop();
        }
        picks
    }

    /// The prefix of the next run in depth-first order, if the bound leaves one.
    pub(crate) fn following(&self) -> Option<Vec<u32>> {
        let cost = |decision: &Decision, pick: u32| decision.costs[pick as usize];
        let mut spent: u32 = self.made.iter().map(|made| cost(made, made.pick)).sum();
        for (index, decision) in self.made.iter().enumerate().rev() {
            spent -= cost(decision, decision.pick);
            let later = decision.pick + 1..decision.costs.len() as u32;
            if let Some(pick) = later
                .into_iter()
                .find(|&pick| spent + cost(decision, pick) <= self.bound)
            {
                let before = self.made[..index].iter().map(|made| made.pick);
                return Some(before.chain([pick]).collect());
            }
        }
        None
    }
}
