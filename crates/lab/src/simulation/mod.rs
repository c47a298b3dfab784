//! Workloads on simulated machines: FFCCD's phases on one structure, and what the machine counted.
//!
//! ```text
//! catalogue   the machines, mechanisms and workloads that there are
//! plan        what is simulated
//! run         the program on the machine
//! report      what came of it
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
