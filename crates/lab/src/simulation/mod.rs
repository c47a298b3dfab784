//! Workloads on simulated machines: FFCCD's phases on one structure, and the machine's counts.
//!
//! ```text
//! catalogue   the machines, mechanisms and workloads that there are
//! plan        what to simulate
//! run         the program on the machine
//! report      the result
//! ```

mod catalogue;
mod plan;
mod report;
mod run;

pub use catalogue::{
    MachineLine, MachineNumber, MechanismLine, PartLine, machine_numbers, machines, mechanisms,
    workloads,
};
pub use plan::{
    Driver, MOST_OBJECTS, RatioOf, SimulationError, SimulationPlan, mechanism, mechanism_for,
};
pub use report::{Bytes, DeviceBytes, DeviceEnergy, Named, Phase, Simulation, Spent};
pub use run::simulate;
pub(crate) use run::simulate_on;
