//! The instructions of one window.

use super::instruction::Instruction;

/// Instructions of one window, by their role in persistence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// `sfence` and `mfence`.
    pub fences: u64,
    /// `clwb`.
    pub clwb: u64,
    /// `clflushopt`.
    pub clflushopt: u64,
    /// `clflush`.
    pub clflush: u64,
    /// Stores past the cache.
    pub nontemporal: u64,
    /// Lock prefixes, and exchanges with memory.
    pub locked: u64,
    /// System calls.
    pub system_calls: u64,
    /// All of them. A repeated string instruction counts once.
    pub instructions: u64,
}

impl Tally {
    /// Adds one instruction.
    pub fn add(&mut self, instruction: Instruction) {
        self.instructions += 1;
        match instruction {
            Instruction::Fence => self.fences += 1,
            Instruction::Clwb => self.clwb += 1,
            Instruction::ClflushOpt => self.clflushopt += 1,
            Instruction::Clflush => self.clflush += 1,
            Instruction::Nontemporal => self.nontemporal += 1,
            Instruction::Locked => self.locked += 1,
            Instruction::SystemCall => self.system_calls += 1,
            Instruction::Other => {}
        }
    }

    /// This window less the cost of an empty one.
    pub fn less(self, empty: Self) -> Self {
        Self {
            fences: self.fences.saturating_sub(empty.fences),
            clwb: self.clwb.saturating_sub(empty.clwb),
            clflushopt: self.clflushopt.saturating_sub(empty.clflushopt),
            clflush: self.clflush.saturating_sub(empty.clflush),
            nontemporal: self.nontemporal.saturating_sub(empty.nontemporal),
            locked: self.locked.saturating_sub(empty.locked),
            system_calls: self.system_calls.saturating_sub(empty.system_calls),
            instructions: self.instructions.saturating_sub(empty.instructions),
        }
    }
}
