//! The operands of a schedule in device memory, checked against the contracts of the called kernels.

use super::super::error::ExecuteError;
use super::super::placed::{BoundArg, Placed};
use super::error::PersistentError;
use crate::persistent::{Assigned, Encoded, Instance, Operand, Origin, Schedule};
use warpwright_dsl::{Asked, BuildError, Role};
use warpwright_kernels::persistent::format::RECORD_HEAD;
use warpwright_runtime::{AnyBuffer, OperandList, Operands};

/// Buffers that are not the plan's, by name.
pub(super) type Externals = [(&'static str, AnyBuffer)];

/// The words of the schedule, and its operands as a list that is ready to be uploaded.
///
/// Records are laid out by the schedule with nothing where the arguments go, which come from the contracts: nobody but
/// those knows addresses.
pub(super) fn list(
    placed: &Placed,
    schedule: &Schedule,
    assigned: &Assigned,
    externals: &Externals,
) -> Result<(Encoded, OperandList), PersistentError> {
    let encoded = schedule.encode(assigned, |_| Ok::<u64, BuildError>(0)).map_err(PersistentError::Option)?;
    let mut list = OperandList::new();
    for (instance, &record) in schedule.instances.iter().zip(&encoded.records) {
        let given = operands(placed, instance, externals)?;
        for (asked, at) in instance.call.operands().zip(record as usize + RECORD_HEAD..) {
            let Asked::Arg(name) = asked else { continue };
            // What is between the arguments: numbers, tables, the heads of records.
            list.push_words(encoded.operands.get(list.len()..at).unwrap_or_default().iter().copied());
            list.push_arg(&given, name);
        }
    }
    list.push_words(encoded.operands.get(list.len()..).unwrap_or_default().iter().copied());
    Ok((encoded, list))
}

/// The operands of an instance.
fn operands(
    placed: &Placed,
    instance: &Instance,
    externals: &Externals,
) -> Result<Operands, PersistentError> {
    let bind = || -> Result<Operands, ExecuteError> {
        let kernel = instance.call.kernel();
        let mut binder = placed.stream.device().operands(&**kernel)?;
        let descs = kernel.args();
        for (&(name, operand), desc) in instance.args.iter().zip(&descs) {
            let given = match operand {
                Operand::Plan(source) => placed.bound_arg(source, desc.dtype)?,
                Operand::External(wanted) => {
                    let found = externals.iter().find(|(name, _)| *name == wanted);
                    let missing = || ExecuteError::NoBuffer { name: wanted.into() };
                    BoundArg::Buffer(found.ok_or_else(missing)?.1.clone())
                }
            };
            binder = match given {
                BoundArg::Buffer(buffer) => binder.buffer(name, buffer),
                BoundArg::U32(value) => binder.scalar(name, value),
                BoundArg::F32(value) => binder.scalar(name, value),
            };
        }
        let is_number = |name: &str| descs.iter().any(|desc| desc.name == name && desc.role == Role::Scalar);
        for &(name, count) in &instance.dims {
            if binder.dims().contains(&name) || is_number(name) {
                binder = binder.dim(name, count);
            }
        }
        Ok(binder.resolve()?)
    };
    bind().map_err(|error| {
        PersistentError::Execute(match instance.origin {
            Origin::Plan { step, .. } => placed.at_step(step, error),
            Origin::Appended(_) => error,
        })
    })
}
