//! Recognises the instructions that matter for persistence by their bytes.
//!
//! Source: AMD64 Architecture Programmer's Manual, volume 3, appendix A (group 15, the VEX and EVEX prefixes).

/// Most bytes an instruction can have.
pub const LONGEST: usize = 15;

/// An instruction's role in persistence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// `sfence` or `mfence`.
    Fence,
    /// `clwb`.
    Clwb,
    /// `clflushopt`.
    ClflushOpt,
    /// `clflush`.
    Clflush,
    /// A store past the cache.
    Nontemporal,
    /// A lock prefix, or an exchange with memory, which locks without one.
    Locked,
    /// A system call.
    SystemCall,
    /// Anything else.
    Other,
}

/// The legacy prefixes that choose between instructions.
#[derive(Default)]
struct Prefixes {
    operand_size: bool,
    repeat: bool,
    lock: bool,
}

impl Instruction {
    /// Decodes the instruction that starts at `bytes`; bytes beyond its end do not matter.
    pub fn decode(bytes: &[u8; LONGEST]) -> Self {
        let mut prefixes = Prefixes::default();
        let mut rest = &bytes[..];
        loop {
            match rest {
                [0x66, ..] => prefixes.operand_size = true,
                [0xF2 | 0xF3, ..] => prefixes.repeat = true,
                [0xF0, ..] => prefixes.lock = true,
                // Segments, and the size of addresses.
                [0x26 | 0x2E | 0x36 | 0x3E | 0x64 | 0x65 | 0x67, ..] => {}
                _ => break,
            }
            rest = &rest[1..];
        }
        if let [0x40..=0x4F, after_rex @ ..] = rest {
            rest = after_rex;
        }
        if prefixes.lock {
            Self::Locked
        } else {
            Self::opcode(rest, &prefixes)
        }
    }

    fn opcode(bytes: &[u8], prefixes: &Prefixes) -> Self {
        match *bytes {
            [0x0F, 0xAE, modrm, ..] => Self::group_15(modrm, prefixes),
            [0x0F, 0x05, ..] => Self::SystemCall,
            // movnti; movntps and movntpd; movntq and movntdq.
            [0x0F, 0xC3, ..] if !prefixes.operand_size && !prefixes.repeat => Self::Nontemporal,
            [0x0F, 0x2B | 0xE7, ..] if !prefixes.repeat => Self::Nontemporal,
            [0x86 | 0x87, modrm, ..] if !is_register(modrm) => Self::Locked,
            // VEX and EVEX: the last two bits of `pp` stand for the legacy prefix (1 is 66), `map` selects the table,
            // where 1 is the one that 0F opens.
            [0xC5, pp, opcode, ..] => Self::vector(1, pp & 3, opcode),
            [0xC4, map, pp, opcode, ..] => Self::vector(map & 0x1F, pp & 3, opcode),
            [0x62, map, pp, _, opcode, ..] => Self::vector(map & 0x07, pp & 3, opcode),
            _ => Self::Other,
        }
    }

    fn group_15(modrm: u8, prefixes: &Prefixes) -> Self {
        if prefixes.repeat {
            return Self::Other;
        }
        match (is_register(modrm), (modrm >> 3) & 7, prefixes.operand_size) {
            (true, 6 | 7, false) => Self::Fence,
            (false, 6, true) => Self::Clwb,
            (false, 7, true) => Self::ClflushOpt,
            (false, 7, false) => Self::Clflush,
            _ => Self::Other,
        }
    }

    fn vector(map: u8, pp: u8, opcode: u8) -> Self {
        match (map, pp, opcode) {
            (1, 1, 0xE7) | (1, 0 | 1, 0x2B) => Self::Nontemporal,
            _ => Self::Other,
        }
    }
}

/// Whether the operand is a register rather than memory.
fn is_register(modrm: u8) -> bool {
    modrm >= 0xC0
}

#[cfg(test)]
mod tests {
    use super::Instruction::{self, *};

    fn decode(start: &[u8]) -> Instruction {
        let mut bytes = [0x90; super::LONGEST];
        bytes[..start.len()].copy_from_slice(start);
        Instruction::decode(&bytes)
    }

    #[test]
    fn assembler_output_is_told_apart() {
        let cases: &[(&[u8], Instruction, &str)] = &[
            (&[0x0F, 0xAE, 0xF8], Fence, "sfence"),
            (&[0x0F, 0xAE, 0xF0], Fence, "mfence"),
            (&[0x0F, 0xAE, 0xE8], Other, "lfence"),
            (&[0x66, 0x0F, 0xAE, 0x30], Clwb, "clwb (%rax)"),
            (&[0x66, 0x41, 0x0F, 0xAE, 0x34, 0x24], Clwb, "clwb (%r12)"),
            (&[0x66, 0x0F, 0xAE, 0x38], ClflushOpt, "clflushopt (%rax)"),
            (&[0x0F, 0xAE, 0x38], Clflush, "clflush (%rax)"),
            (&[0x0F, 0xAE, 0x30], Other, "xsaveopt (%rax)"),
            (&[0x66, 0x0F, 0xAE, 0xF0], Other, "tpause %eax"),
            (&[0xF3, 0x0F, 0xAE, 0xF0], Other, "umonitor %rax"),
            (
                &[0xF0, 0x48, 0x0F, 0xB1, 0x0A],
                Locked,
                "lock cmpxchg %rcx,(%rdx)",
            ),
            (&[0x48, 0x87, 0x02], Locked, "xchg %rax,(%rdx)"),
            (&[0x48, 0x87, 0xC2], Other, "xchg %rax,%rdx"),
            (&[0x48, 0x0F, 0xC3, 0x02], Nontemporal, "movnti %rax,(%rdx)"),
            (
                &[0x66, 0x0F, 0xE7, 0x07],
                Nontemporal,
                "movntdq %xmm0,(%rdi)",
            ),
            (
                &[0xC5, 0xFD, 0xE7, 0x07],
                Nontemporal,
                "vmovntdq %ymm0,(%rdi)",
            ),
            (
                &[0xC4, 0xC1, 0x7D, 0xE7, 0x00],
                Nontemporal,
                "vmovntdq %ymm0,(%r8)",
            ),
            (
                &[0x62, 0xF1, 0x7D, 0x48, 0xE7, 0x07],
                Nontemporal,
                "vmovntdq %zmm0,(%rdi)",
            ),
            (&[0xF3, 0x0F, 0xE6, 0xC0], Other, "cvtdq2pd %xmm0,%xmm0"),
            (&[0x0F, 0x05], SystemCall, "syscall"),
            (&[0x90], Other, "nop"),
        ];
        for (bytes, expected, assembly) in cases {
            assert_eq!(decode(bytes), *expected, "{assembly}");
        }
    }

    #[test]
    fn fifteen_prefixes_do_not_run_over_the_end() {
        assert_eq!(decode(&[0x66; super::LONGEST]), Other);
    }
}
