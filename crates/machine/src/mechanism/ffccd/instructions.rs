//! The instructions as software sees them.

use std::sync::Arc;

use firn_hardware::relocate::Unit;
use firn_media::{CheckLookup, Lookup, Move, Offers, Relocate};
use firn_units::VirtAddr;

use crate::mechanism::{Cores, Cost};

/// The offers of cores with this mechanism: `relocate`, and `checklookup` if they are `with_lookup`.
pub(super) fn offers(cores: Arc<dyn Cores>, with_lookup: bool) -> Offers {
    let instructions = || Box::new(Instructions(Arc::clone(&cores)));
    let offers = Offers::NONE.with::<dyn Relocate>(instructions());
    match with_lookup {
        true => offers.with::<dyn CheckLookup>(instructions()),
        false => offers,
    }
}

struct Instructions(Arc<dyn Cores>);

impl Relocate for Instructions {
    fn relocate(&self, from: VirtAddr, to: VirtAddr, len: u64) {
        self.0.relocate(from, to, len, Unit::Functional);
    }

    fn reached(&self, at: VirtAddr) -> bool {
        let (at, mut answer) = (at.identity(), false);
        self.0.ask(&mut |_, mechanism, port| {
            let (reached, cost) = mechanism.reached(at, port);
            answer = reached;
            cost
        });
        answer
    }

    fn clear_reached(&self, at: VirtAddr, len: u64) {
        let at = at.identity();
        self.0
            .ask(&mut |_, mechanism, port| mechanism.clear_reached(at, len, port));
    }
}

impl CheckLookup for Instructions {
    fn install_lookup(&self, moves: &mut dyn Iterator<Item = Move>) {
        self.0
            .ask(&mut |_, mechanism, _| mechanism.install_lookup(moves));
    }

    fn retire_lookup(&self) {
        self.0.ask(&mut |_, mechanism, _| {
            mechanism.retire_lookup();
            Cost::default()
        });
    }

    fn check_lookup(&self, at: VirtAddr) -> Lookup {
        let (at, mut answer) = (at.identity(), Lookup::Stays);
        self.0.ask(&mut |core, mechanism, _| {
            let (lookup, cost) = mechanism.check_lookup(core, at);
            answer = lookup;
            cost
        });
        answer
    }
}
