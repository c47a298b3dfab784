//! Information from the code for its medium, and faults that the medium plants in the code.

use crate::{Scope, Step, Table};

/// The fourth part of a medium: accounting for simulators, and faults for the tests of tests.
///
/// # What it promises
///
/// - **Nothing here changes what a program computes** on a medium without faults. A medium that neither counts nor
///   perturbs implements nothing, and every call compiles to nothing.
/// - **Work is declared where it happens**: a simulator sees loads and stores, and learns here of the instructions
///   between them and of tables in volatile memory.
/// - **A perturbed medium names one [`Step`]** that the code leaves out, moves or repeats. The pool then loses data,
///   and a test that does not notice this is worthless.
pub trait Probe {
    /// Whether the medium holds nothing of value and only shows what a protocol costs or loses.
    #[inline(always)]
    fn is_simulated(&self) -> bool {
        false
    }

    /// Declares `instructions` of computation. Free on media without time.
    #[inline(always)]
    fn work(&self, instructions: u64) {
        let _ = instructions;
    }

    /// Declares a load from a table, `offset` bytes from its start. Free on media without time.
    #[inline(always)]
    fn table_load(&self, table: Table, offset: u64) {
        let _ = (table, offset);
    }

    /// Begins a scope of the breakdown; use [`crate::MediumExt::scope`].
    #[inline(always)]
    fn scope_begin(&self, scope: Scope) {
        let _ = scope;
    }

    /// Ends a scope of the breakdown; use [`crate::MediumExt::scope`].
    #[inline(always)]
    fn scope_end(&self, scope: Scope) {
        let _ = scope;
    }

    /// Whether any step is to be left out.
    #[inline(always)]
    fn is_perturbed(&self) -> bool {
        false
    }

    /// Whether the code must leave this step out, which loses data. True only on a medium that is made to lose power.
    #[inline(always)]
    fn leaves_out(&self, step: &Step) -> bool {
        let _ = step;
        false
    }
}
