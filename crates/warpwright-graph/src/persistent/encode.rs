//! Encoding of a schedule in the words that the decoder reads: see `warpwright_kernels::persistent::format`.
//!
//! Numbers are encoded here. Addresses are not known here: a callback provides the address of each buffer.

use super::assign::Assigned;
use super::schedule::{Instance, Operand, Schedule};
use crate::launch::ArgSource;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use warpwright_dsl::{Asked, BuildError};
use warpwright_kernels::persistent::{Assignment, PersistentDecoder, format};

/// The words of an assigned schedule, for the buffers of the decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Encoded {
    /// Records of the instances in their order, and tables between them.
    pub operands: Vec<u64>,
    /// The offset of each instance's record.
    pub records: Vec<u32>,
    /// Items.
    pub items: Vec<u32>,
    /// Bounds of lists.
    pub bounds: Vec<u32>,
    /// Number of counters.
    pub counters: u32,
    /// Phases of a token.
    pub phases: u32,
    /// Blocks.
    pub blocks: u32,
}

/// A buffer argument of an instance.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Buffer<'a> {
    /// The instance.
    pub instance: &'a Instance,
    /// The argument's name.
    pub name: &'static str,
    /// Its operand.
    pub operand: Operand,
}

impl Schedule {
    /// The kernel that runs the schedule.
    pub fn decoder(&self, assignment: Assignment) -> PersistentDecoder {
        PersistentDecoder { warps: self.warps, assignment, ..PersistentDecoder::new(self.ops.clone()) }
    }

    /// Encodes the schedule. `address` returns the address of each buffer of each instance; it is called in their
    /// order.
    ///
    /// # Errors
    ///
    /// Those of `address`, and an instance that does not match its op. Schedules that pass [`check`](super::check) have
    /// no such instance.
    pub fn encode<E: From<BuildError>>(
        &self,
        assigned: &Assigned,
        mut address: impl FnMut(Buffer<'_>) -> Result<u64, E>,
    ) -> Result<Encoded, E> {
        let mut operands: Vec<u64> = Vec::new();
        // Where the words of tables are, of which many instances have the same.
        let mut tables: HashMap<Vec<u64>, u32> = HashMap::new();
        let mut records = Vec::with_capacity(self.instances.len());
        for instance in &self.instances {
            // Tables first: they lie between records.
            let mut begins = Vec::new();
            for asked in instance.call.operands() {
                let Asked::Table(words) = asked else { continue };
                begins.push(match tables.entry(words.clone()) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => {
                        let at = index(operands.len())?;
                        operands.extend(new.key());
                        // Records are multiples of 16 bytes.
                        operands.resize(operands.len().next_multiple_of(2), 0);
                        *new.insert(at)
                    }
                });
            }
            records.push(index(operands.len())?);
            let mut begins = begins.into_iter();
            let record = instance.call.record(instance.grid, |asked| -> Result<u64, E> {
                let Asked::Arg(name) = asked else { return Ok(begins.next().unwrap_or(0).into()) };
                match instance.args.iter().find(|(arg, _)| arg == name) {
                    Some((_, Operand::Plan(ArgSource::U32(value)))) => Ok((*value).into()),
                    Some((_, Operand::Plan(ArgSource::F32(value)))) => Ok(value.to_bits().into()),
                    Some(&(name, operand)) => address(Buffer { instance, name, operand }),
                    None => Err(BuildError::field("args", name, "given").into()),
                }
            });
            operands.extend(record?);
        }
        let items = assigned.items.iter().map(|item| {
            let instance = self.instances.get(item.instance).zip(records.get(item.instance));
            let unknown =
                || BuildError::field("instance", item.instance, format!("one of {}", self.instances.len()));
            let (instance, &operands) = instance.ok_or_else(unknown)?;
            Ok(format::Item {
                op: index(instance.op)?,
                operands,
                first: item.first,
                end: item.end,
                wait: item.wait,
                signal: item.signal,
            })
        });
        let items: Vec<format::Item> = items.collect::<Result<_, BuildError>>()?;
        Ok(Encoded {
            operands,
            records,
            items: format::encode_items(items),
            bounds: format::encode_bounds(assigned.lists.iter().cloned()),
            counters: assigned.counters,
            phases: index(self.phases.len())?,
            blocks: assigned.blocks,
        })
    }
}

/// A place as the words have it.
fn index(place: usize) -> Result<u32, BuildError> {
    u32::try_from(place).map_err(|_| BuildError::field("operands", place, "less than 2³² words"))
}
