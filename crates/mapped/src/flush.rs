//! The instructions that carry a store to persistence.

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count, __get_cpuid_max, _mm_clflush, _mm_sfence};
use core::iter;
use core::sync::atomic::{Ordering, compiler_fence};

use firn_media::Domain;
use firn_units::LINE_BYTES;

/// The instruction that writes a line back: the best one that the processor has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum FlushInstruction {
    /// Writes back and may keep the line cached.
    Clwb,
    /// Writes back and evicts, without an order among lines.
    ClflushOpt,
    /// Writes back and evicts, one line after another. Every x86-64 has it.
    Clflush,
}

impl FlushInstruction {
    /// Asks the processor for its best instruction.
    pub fn detect() -> Self {
        const EXTENDED_FEATURES: u32 = 7;
        const EBX_CLFLUSHOPT: u32 = 1 << 23;
        const EBX_CLWB: u32 = 1 << 24;
        let features = if __get_cpuid_max(0).0 >= EXTENDED_FEATURES {
            __cpuid_count(EXTENDED_FEATURES, 0).ebx
        } else {
            0
        };
        debug_assert!(__cpuid(1).edx & (1 << 19) != 0, "an x86-64 without clflush");
        if features & EBX_CLWB != 0 {
            Self::Clwb
        } else if features & EBX_CLFLUSHOPT != 0 {
            Self::ClflushOpt
        } else {
            Self::Clflush
        }
    }

    /// The instruction's mnemonic.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clwb => "clwb",
            Self::ClflushOpt => "clflushopt",
            Self::Clflush => "clflush",
        }
    }
}

/// What a domain requires of write-backs and fences, decided once at open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flush {
    /// `process`: nothing; the processor keeps the order that the compiler keeps.
    Nothing,
    /// `eadr`: fences only.
    FenceOnly,
    /// `adr`: write-backs by this instruction, and fences.
    Lines(FlushInstruction),
    /// `logged`: what is written back becomes a record at the fence.
    Log,
}

impl Flush {
    pub(crate) fn of(domain: Domain) -> Self {
        match domain {
            Domain::Adr => Self::Lines(FlushInstruction::detect()),
            Domain::Eadr => Self::FenceOnly,
            Domain::Process | Domain::Logged => Self::Nothing,
        }
    }

    /// Orders earlier stores and write-backs of this thread before later stores.
    #[inline(always)]
    pub(crate) fn fence(self) {
        if self == Self::Nothing {
            compiler_fence(Ordering::SeqCst);
        } else {
            // SAFETY: every x86-64 has the instruction.
            unsafe { _mm_sfence() }
        }
    }
}

/// The start of every line that holds one of the `len` bytes from `start`.
#[inline(always)]
fn lines(start: *const u8, len: u64) -> impl Iterator<Item = *const u8> {
    let end = start.wrapping_add(len as usize);
    let first = start.wrapping_sub(start.addr() % LINE_BYTES as usize);
    let next = |line: &*const u8| Some(line.wrapping_add(LINE_BYTES as usize));
    iter::successors(Some(first), next).take_while(move |&line| line < end)
}

/// Issues `instruction` for every line of the `len` bytes from `start`; `len` is not zero.
///
/// # Safety
/// Every line of the range lies in mapped memory.
#[inline]
pub(crate) unsafe fn write_back_lines(instruction: FlushInstruction, start: *const u8, len: u64) {
    match instruction {
        FlushInstruction::Clwb => {
            for line in lines(start, len) {
                // SAFETY: the line lies in the range, which is mapped by the function's contract. `detect` found that
                // the processor has the instruction; it changes neither memory nor flags. It must not be declared
                // `readonly`, because it has to stay behind the stores that it writes back.
                unsafe { asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags)) }
            }
        }
        FlushInstruction::ClflushOpt => {
            for line in lines(start, len) {
                // SAFETY: the line lies in the range, which is mapped by the function's contract. `detect` found that
                // the processor has the instruction; it changes neither memory nor flags. It is not `readonly`, for the
                // reason given at clwb.
                unsafe { asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags)) }
            }
        }
        FlushInstruction::Clflush => {
            for line in lines(start, len) {
                // SAFETY: the line lies in the range, which is mapped by the function's contract; every x86-64 has
                // clflush.
                unsafe { _mm_clflush(line) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines are exactly those that hold a byte of the range, each once, in ascending order.
    #[test]
    fn the_lines_of_a_range_are_those_that_hold_a_byte_of_it() {
        let line = LINE_BYTES as usize;
        let base = 100 * line;
        for start in base..base + 2 * line {
            for len in 1..4 * line {
                let held: Vec<usize> = lines(core::ptr::without_provenance(start), len as u64)
                    .map(|line| line.addr())
                    .collect();
                let (first, last) = (start / line, (start + len - 1) / line);
                let expected: Vec<usize> = (first..=last).map(|number| number * line).collect();
                assert_eq!(held, expected, "{len} bytes from {start}");
            }
        }
    }
}
