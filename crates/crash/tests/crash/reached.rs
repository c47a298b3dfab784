//! Which lines count as reached once the bitmap was cleared?

use firn_crash::{Crash, CrashOptions, RelocateUnit};
use firn_media::{Domain, Hardware, MediumExt, Memory, Relocate};
use firn_units::{LINE_BYTES, VirtAddr};

fn unit(crash: &Crash) -> &dyn Relocate {
    crash.offers().expect()
}

const FROM: VirtAddr = VirtAddr(0);
const TO: VirtAddr = VirtAddr(4096);

fn medium(domain: Domain) -> Crash {
    let options = CrashOptions {
        relocate: Some(RelocateUnit::Functional),
        ..CrashOptions::with_domain(domain)
    };
    Crash::new(1 << 20, options)
}

fn relocated_and_cleared(domain: Domain, write_back_first: bool) -> bool {
    let crash = medium(domain);
    unit(&crash).relocate(FROM, TO, LINE_BYTES);
    assert!(unit(&crash).reached(TO));
    if write_back_first {
        crash.persist(TO, LINE_BYTES);
    }
    unit(&crash).clear_reached(TO, LINE_BYTES);
    crash.fence();
    unit(&crash).reached(TO)
}

#[test]
fn a_line_that_was_written_back_is_cleared() {
    for domain in [Domain::Adr, Domain::Eadr, Domain::Process] {
        assert!(!relocated_and_cleared(domain, true), "{domain}");
    }
}

/// F6: the cache still holds its mark.
#[test]
fn a_line_that_was_not_says_so_again() {
    assert!(relocated_and_cleared(Domain::Adr, false));
}

/// A line reaches persistence where it is stored: no cache holds a mark that could still arrive.
#[test]
fn where_caches_persist_nothing_says_so_again() {
    for domain in [Domain::Eadr, Domain::Process] {
        assert!(!relocated_and_cleared(domain, false), "{domain}");
    }
}
