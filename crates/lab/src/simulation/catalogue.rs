//! What can be simulated: machines, mechanisms and workloads.

use firn_machine::description::{Description, Kind, NAMES, Number};
use firn_machine::mechanism::{MECHANISMS, MechanismSpec};
use firn_workloads::Shape;
use serde::Serialize;

use super::plan::SimulationError;

/// Names of workloads.
pub fn workloads() -> impl Iterator<Item = &'static str> {
    Shape::WORKLOADS.into_iter().map(Shape::name)
}

/// A machine, in one line.
#[derive(Clone, Debug, Serialize)]
pub struct MachineLine {
    /// Its name.
    pub name: String,
    /// Its description.
    pub about: String,
    /// Cores.
    pub cores: u32,
    /// Megahertz.
    pub clock_mhz: u32,
    /// Levels of cache.
    pub caches: usize,
    /// Devices whose energy its description has numbers for.
    pub energy: Vec<&'static str>,
    /// Counts of its numbers that its paper gives, that were measured, and that were assumed.
    pub numbers: [usize; 3],
    /// Digest of the description.
    pub digest: String,
}

/// A number of a machine.
#[derive(Clone, Debug, Serialize)]
pub struct MachineNumber {
    /// Its path in the description.
    pub field: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// SPEC, MEASURED or ASSUMED.
    pub kind: String,
    /// Its source, or the reason for its choice.
    pub source: String,
}

/// The machines that there are.
pub fn machines() -> Result<Vec<MachineLine>, SimulationError> {
    NAMES.iter().map(|name| machine_line(name)).collect()
}

fn machine_line(name: &str) -> Result<MachineLine, SimulationError> {
    let (described, numbers) = Description::with_numbers(name)?;
    let count = |kind| numbers.iter().filter(|number| number.kind == kind).count();
    Ok(MachineLine {
        cores: described.core.count,
        clock_mhz: described.core.clock_mhz,
        caches: described.caches.len(),
        energy: [("NVM", &described.nvm), ("DRAM", &described.dram)]
            .into_iter()
            .filter_map(|(name, device)| device.energy.as_ref().map(|_| name))
            .collect(),
        numbers: [Kind::Spec, Kind::Measured, Kind::Assumed].map(count),
        digest: format!("{:016x}", described.digest()),
        name: described.name,
        about: described.about,
    })
}

/// Every number of a machine, by its name or the file of its description.
pub fn machine_numbers(name: &str) -> Result<Vec<MachineNumber>, SimulationError> {
    let (_, numbers) = Description::with_numbers(name)?;
    let number = |number: Number| MachineNumber {
        field: number.field,
        value: number.value,
        unit: number.unit,
        kind: number.kind.to_string(),
        source: number.source,
    };
    Ok(numbers.into_iter().map(number).collect())
}

/// A mechanism.
#[derive(Clone, Debug, Serialize)]
pub struct MechanismLine {
    /// Its name.
    pub name: &'static str,
    /// Its description.
    pub about: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Its parts on the chip.
    pub parts: Vec<PartLine>,
}

/// A part of the chip.
#[derive(Clone, Debug, Serialize)]
pub struct PartLine {
    /// Its name.
    pub name: &'static str,
    /// Bytes, computed from the structure in the model.
    pub bytes: u64,
    /// Bytes as printed.
    pub printed_bytes: Option<u64>,
    /// Square millimetres as printed.
    pub printed_area_mm2: Option<f64>,
}

/// The mechanisms that there are.
pub fn mechanisms() -> Vec<MechanismLine> {
    MECHANISMS.into_iter().map(mechanism_line).collect()
}

fn mechanism_line(spec: &'static MechanismSpec) -> MechanismLine {
    let parts = spec.parts.iter().map(|part| PartLine {
        name: part.name,
        bytes: part.bytes,
        printed_bytes: part.printed_bytes,
        printed_area_mm2: part.printed_area_mm2,
    });
    MechanismLine {
        name: spec.name,
        about: spec.about,
        source: spec.source,
        parts: parts.collect(),
    }
}
