//! A description as it is written (TOML), and its conversion for the model.

use firn_units::LINE_BYTES;
use serde::Deserialize;

use super::error::DescriptionError;
use super::quantity::{Dimension, Number, Quantity, Reader};
use super::{
    BitEnergy, Buffer, Cache, Controller, Core, Description, Device, Latency, Translation,
};
use crate::caches::MOST_CORES;
use crate::sets::Sets;
use crate::statistics::MOST_LEVELS;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    name: String,
    about: String,
    core: CoreTable,
    cache: Vec<CacheTable>,
    translation: TranslationTable,
    controller: ControllerTable,
    dram: DeviceTable,
    nvm: DeviceTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CoreTable {
    count: Quantity,
    clock: Quantity,
    instruction: Quantity,
    parallel_misses: Quantity,
    store_buffer: Quantity,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CacheTable {
    name: String,
    shared: bool,
    size: Quantity,
    ways: Quantity,
    hit: Quantity,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TranslationTable {
    small_walk: Quantity,
    huge_walk: Quantity,
    small: Vec<BufferTable>,
    huge: Vec<BufferTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BufferTable {
    entries: Quantity,
    ways: Quantity,
    hit: Quantity,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ControllerTable {
    queue: Quantity,
    accept: Quantity,
    transfer: Quantity,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceTable {
    read_rate: Quantity,
    write_rate: Quantity,
    fixed: Option<FixedTable>,
    rows: Option<RowsTable>,
    energy: Option<EnergyTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FixedTable {
    read: Quantity,
    write: Quantity,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowsTable {
    banks: Quantity,
    row: Quantity,
    hit: Quantity,
    clean_miss: Quantity,
    dirty_miss: Quantity,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EnergyTable {
    buffer_read: Quantity,
    buffer_write: Quantity,
    array_read: Quantity,
    array_write: Quantity,
}

const CORES: Dimension = Dimension::Count("cores", MOST_CORES);
const MISSES: Dimension = Dimension::Count("misses", 1 << 10);
const ENTRIES: Dimension = Dimension::Count("entries", 1 << 20);
const WAYS: Dimension = Dimension::Count("ways", 1 << 10);
const BANKS: Dimension = Dimension::Count("banks", 1 << 16);

impl File {
    /// Reads a description. Errors call it `origin` until its name is known.
    pub(super) fn parse(origin: &str, text: &str) -> Result<Self, DescriptionError> {
        toml::from_str(text).map_err(|error| DescriptionError::Syntax {
            machine: origin.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })
    }

    /// The description in the model's units, and its numbers as they are written.
    pub(super) fn resolve(self) -> Result<(Description, Vec<Number>), DescriptionError> {
        let mut reader = Reader {
            machine: self.name.clone(),
            numbers: Vec::new(),
        };
        let core = self.core.resolve(&mut reader)?;
        let clock = core.clock_mhz;
        let description = Description {
            caches: caches(&self.cache, clock, &mut reader)?,
            translation: self.translation.resolve(clock, &mut reader)?,
            controller: self.controller.resolve(clock, &mut reader)?,
            dram: self.dram.resolve("dram", clock, &mut reader)?,
            nvm: self.nvm.resolve("nvm", clock, &mut reader)?,
            core,
            name: self.name,
            about: self.about,
        };
        Ok((description, reader.numbers))
    }
}

impl CoreTable {
    fn resolve(&self, reader: &mut Reader) -> Result<Core, DescriptionError> {
        let clock_mhz = reader.read("core.clock", &self.clock, Dimension::Frequency)?;
        let fine = Dimension::FineTime(clock_mhz);
        Ok(Core {
            count: reader.read("core.count", &self.count, CORES)?,
            clock_mhz,
            millicycles_per_instruction: reader.read(
                "core.instruction",
                &self.instruction,
                fine,
            )?,
            parallel_misses: reader.read("core.parallel_misses", &self.parallel_misses, MISSES)?,
            store_buffer_entries: reader.read("core.store_buffer", &self.store_buffer, ENTRIES)?,
        })
    }
}

/// The caches from the nearest level to the last one, which all cores share.
fn caches(
    tables: &[CacheTable],
    clock_mhz: u32,
    reader: &mut Reader,
) -> Result<Vec<Cache>, DescriptionError> {
    let syntax = |message: String| DescriptionError::Syntax {
        machine: reader.machine.clone(),
        message,
    };
    if tables.is_empty() || tables.len() >= MOST_LEVELS {
        let (found, most) = (tables.len(), MOST_LEVELS - 1);
        return Err(syntax(format!(
            "there are {found} caches: it has 1 to {most}"
        )));
    }
    for (index, table) in tables.iter().enumerate() {
        if table.shared != (index + 1 == tables.len()) {
            let name = &table.name;
            let message = "exactly the last cache is `shared = true`";
            return Err(syntax(format!("cache `{name}`: {message}")));
        }
    }
    tables
        .iter()
        .map(|table| table.resolve(clock_mhz, reader))
        .collect()
}

impl CacheTable {
    fn resolve(&self, clock_mhz: u32, reader: &mut Reader) -> Result<Cache, DescriptionError> {
        let field = |field: &str| format!("cache.{}.{field}", self.name);
        let bytes = reader
            .read(field("size"), &self.size, Dimension::Bytes)?
            .into();
        let ways = reader.read(field("ways"), &self.ways, WAYS)?;
        if bytes % (LINE_BYTES * u64::from(ways)) != 0 {
            let allowed = format!("a multiple of {ways} ways of {LINE_BYTES} bytes");
            return Err(reader.refuse(field("size"), &self.size, allowed));
        }
        if bytes / LINE_BYTES / u64::from(ways) > Sets::MOST_SETS {
            let allowed = format!("at most {} sets", Sets::MOST_SETS);
            return Err(reader.refuse(field("size"), &self.size, allowed));
        }
        Ok(Cache {
            name: self.name.clone(),
            bytes,
            ways,
            hit_cycles: reader.read(field("hit"), &self.hit, Dimension::Time(clock_mhz))?,
            shared: self.shared,
        })
    }
}

impl TranslationTable {
    fn resolve(
        &self,
        clock_mhz: u32,
        reader: &mut Reader,
    ) -> Result<Translation, DescriptionError> {
        let time = Dimension::Time(clock_mhz);
        let mut buffers = |size: &str, tables: &[BufferTable]| {
            let numbered = tables.iter().enumerate();
            numbered
                .map(|(level, table)| {
                    table.resolve(&format!("translation.{size}.{level}"), time, reader)
                })
                .collect::<Result<Vec<_>, _>>()
        };
        let (small, huge) = (buffers("small", &self.small)?, buffers("huge", &self.huge)?);
        Ok(Translation {
            small,
            huge,
            small_walk_cycles: reader.read("translation.small_walk", &self.small_walk, time)?,
            huge_walk_cycles: reader.read("translation.huge_walk", &self.huge_walk, time)?,
        })
    }
}

impl BufferTable {
    fn resolve(
        &self,
        path: &str,
        time: Dimension,
        reader: &mut Reader,
    ) -> Result<Buffer, DescriptionError> {
        let entries = reader.read(format!("{path}.entries"), &self.entries, ENTRIES)?;
        let ways = reader.read(format!("{path}.ways"), &self.ways, WAYS)?;
        if !entries.is_multiple_of(ways) || u64::from(entries / ways) > Sets::MOST_SETS {
            let allowed = format!(
                "a multiple of its {ways} ways, of at most {} sets",
                Sets::MOST_SETS
            );
            return Err(reader.refuse(format!("{path}.entries"), &self.entries, allowed));
        }
        Ok(Buffer {
            entries,
            ways,
            hit_cycles: reader.read(format!("{path}.hit"), &self.hit, time)?,
        })
    }
}

impl ControllerTable {
    fn resolve(&self, clock_mhz: u32, reader: &mut Reader) -> Result<Controller, DescriptionError> {
        let time = Dimension::Time(clock_mhz);
        Ok(Controller {
            queue_entries: reader.read("controller.queue", &self.queue, ENTRIES)?,
            accept_cycles: reader.read("controller.accept", &self.accept, time)?,
            transfer_cycles: reader.read("controller.transfer", &self.transfer, time)?,
        })
    }
}

impl DeviceTable {
    fn resolve(
        &self,
        name: &str,
        clock_mhz: u32,
        reader: &mut Reader,
    ) -> Result<Device, DescriptionError> {
        let field = |field: &str| format!("{name}.{field}");
        let time = Dimension::Time(clock_mhz);
        let latency = match (&self.fixed, &self.rows) {
            (Some(fixed), None) => Latency::Fixed {
                read: reader.read(field("fixed.read"), &fixed.read, time)?,
                write: reader.read(field("fixed.write"), &fixed.write, time)?,
            },
            (None, Some(rows)) => rows.resolve(name, time, reader)?,
            _ => {
                return Err(DescriptionError::Syntax {
                    machine: reader.machine.clone(),
                    message: format!("{name} has one of the tables `fixed` and `rows`"),
                });
            }
        };
        let energy = self.energy.as_ref();
        Ok(Device {
            latency,
            energy: energy
                .map(|energy| energy.resolve(name, reader))
                .transpose()?,
            read_megabytes_per_s: reader.read(
                field("read_rate"),
                &self.read_rate,
                Dimension::Rate,
            )?,
            write_megabytes_per_s: reader.read(
                field("write_rate"),
                &self.write_rate,
                Dimension::Rate,
            )?,
        })
    }
}

impl EnergyTable {
    fn resolve(&self, name: &str, reader: &mut Reader) -> Result<BitEnergy, DescriptionError> {
        let mut read = |field: &str, quantity| {
            reader.read(
                format!("{name}.energy.{field}"),
                quantity,
                Dimension::Energy,
            )
        };
        Ok(BitEnergy {
            buffer_read: read("buffer_read", &self.buffer_read)?,
            buffer_write: read("buffer_write", &self.buffer_write)?,
            array_read: read("array_read", &self.array_read)?,
            array_write: read("array_write", &self.array_write)?,
        })
    }
}

impl RowsTable {
    fn resolve(
        &self,
        name: &str,
        time: Dimension,
        reader: &mut Reader,
    ) -> Result<Latency, DescriptionError> {
        let field = |field: &str| format!("{name}.rows.{field}");
        let row_bytes = reader.read(field("row"), &self.row, Dimension::Bytes)?;
        if u64::from(row_bytes) % LINE_BYTES != 0 {
            let allowed = format!("a multiple of {LINE_BYTES} bytes");
            return Err(reader.refuse(field("row"), &self.row, allowed));
        }
        Ok(Latency::Rows {
            banks: reader.read(field("banks"), &self.banks, BANKS)?,
            row_bytes,
            hit: reader.read(field("hit"), &self.hit, time)?,
            clean_miss: reader.read(field("clean_miss"), &self.clean_miss, time)?,
            dirty_miss: reader.read(field("dirty_miss"), &self.dirty_miss, time)?,
        })
    }
}
