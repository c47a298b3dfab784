//! Do write-backs use an instruction that this processor has, and leave content alone?

use firn_mapped::{FlushInstruction, Mapped};
use firn_media::{Domain, Memory};
use firn_units::{FRAME_BYTES, LINE_BYTES, VirtAddr};

fn flags() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let line = text.lines().find(|line| line.starts_with("flags")).unwrap();
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_best_instruction_of_this_processor_is_chosen() {
    let flags = flags();
    let has = |name: &str| flags.iter().any(|flag| flag == name);
    let best = [
        FlushInstruction::Clwb,
        FlushInstruction::ClflushOpt,
        FlushInstruction::Clflush,
    ]
    .into_iter()
    .find(|instruction| has(instruction.name()));
    for domain in [Domain::Adr, Domain::Eadr, Domain::Process] {
        let options = crate::support::unlogged().domain(domain);
        let medium = Mapped::anonymous(FRAME_BYTES, &options).unwrap();
        assert_eq!(Some(medium.flush_instruction()), best);
    }
}

#[test]
fn every_range_can_be_written_back() {
    let options = crate::support::unlogged().domain(Domain::Adr);
    let medium = Mapped::anonymous(2 * FRAME_BYTES, &options).unwrap();
    for at in (0..2 * FRAME_BYTES).step_by(8) {
        medium.store_u64(VirtAddr(at), at + 1);
    }
    for start in 0..2 * LINE_BYTES {
        for len in [0, 1, 8, 63, 64, 65, 200, 2 * FRAME_BYTES - start] {
            medium.write_back(VirtAddr(start), len);
        }
    }
    medium.write_back(VirtAddr(2 * FRAME_BYTES), 0);
    medium.fence();
    for at in (0..2 * FRAME_BYTES).step_by(8) {
        assert_eq!(medium.load_u64(VirtAddr(at)), at + 1);
    }
}
