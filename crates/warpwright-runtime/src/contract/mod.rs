//! Checks launches against contracts, as pure logic: it takes what a kernel declares, what a device supports and what a
//! launch was given, and yields a fully checked launch or the rule that is broken.
//!
//! It knows no device and no memory: addresses are plain numbers. Every launch is resolved here, except raw launches of
//! PTX (see [`LaunchBuilder`](crate::LaunchBuilder)).
//!
//! Properties of the kernel alone (architecture, block, shared memory, clusters) are checked once, when the contract is
//! made. [`resolve`](Contract::resolve) is on the path of every launch and allocates only what it returns.

mod arguments;
mod error;
mod limits;
#[cfg(test)]
mod tests;

pub(crate) use arguments::{Argument, Arguments, Number, Param, Span};
pub use error::{ContractError, Kind, Measure, Violation};
pub(crate) use limits::Limits;

use crate::op::Shape;
use crate::overlap::Access;
use std::sync::Arc;
use warpwright_dsl::{ArgDesc, Block, Extent, LaunchRule, Role};
use warpwright_ptx::ir::Type;

/// The alignment of buffers, in bytes: the DSL declares it, and uses it for vector accesses.
pub(crate) const ALIGNMENT: u64 = 16;

/// What a kernel requires of its launches, on a device.
#[derive(Debug)]
pub(crate) struct Contract {
    pub(crate) kernel: Arc<str>,
    pub(crate) args: Box<[ArgDesc]>,
    /// The numbers that lengths and the grid depend on and that are not arguments.
    pub(crate) dims: Box<[&'static str]>,
    pub(crate) rule: LaunchRule,
    limits: Limits,
    /// Whether the kernel also takes the size in bytes of each buffer, after its arguments.
    checked: bool,
}

/// A launch with all checks done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resolved {
    /// Its dimensions.
    pub(crate) shape: Shape,
    /// The parameters, in order.
    pub(crate) params: Vec<Param>,
    /// What decides whether it overlaps with the launch in front of it.
    pub(crate) access: Access,
}

/// The only block that a rule allows, or the largest.
fn largest(block: Block) -> [u32; 3] {
    let (Block::Exactly(dims) | Block::AtMost(dims)) = block;
    dims
}

impl Contract {
    /// The contract of a kernel, whose launch rule includes the shared memory that its build needs. Refused if the
    /// device cannot run the kernel with any arguments.
    pub(crate) fn new(
        kernel: &str,
        args: Vec<ArgDesc>,
        rule: LaunchRule,
        limits: Limits,
    ) -> Result<Self, ContractError> {
        let mut dims = Vec::new();
        let extents = args.iter().filter(|arg| arg.role != Role::Scalar).map(|arg| arg.len);
        for name in extents.chain(rule.grid).flat_map(Extent::depends_on) {
            let is_scalar = args.iter().any(|arg| arg.name == name && arg.role == Role::Scalar);
            if !is_scalar && !dims.contains(&name) {
                dims.push(name);
            }
        }
        Self::check_rule(kernel, &rule, &limits)?;
        Ok(Contract {
            kernel: kernel.into(),
            args: args.into(),
            dims: dims.into(),
            rule,
            limits,
            checked: false,
        })
    }

    /// The same contract for a kernel that was built with checked pointers: after its arguments it takes the size in
    /// bytes of each buffer.
    pub(crate) fn checked(self, checked: bool) -> Self {
        Contract { checked, ..self }
    }

    /// Refuses a kernel whose launch rule the device cannot satisfy.
    pub(crate) fn check_rule(kernel: &str, rule: &LaunchRule, limits: &Limits) -> Result<(), ContractError> {
        let refuse = |violation| Err(ContractError::new(kernel, violation));
        if limits.arch.sm < rule.min_sm {
            return refuse(Violation::Architecture { given: limits.arch, needed: rule.min_sm });
        }
        if let Err(violation) = limits.check_block(rule.block, limits.threads, largest(rule.block)) {
            return refuse(violation);
        }
        let given = u64::from(rule.static_shared) + u64::from(rule.dynamic_shared);
        if given > limits.shared {
            return refuse(Violation::SharedMemory { given, needed: limits.shared });
        }
        match rule.cluster {
            Some(given) if !limits.clusters => refuse(Violation::Cluster { given }),
            _ => Ok(()),
        }
    }

    /// The default block: the only one, or the largest.
    pub(crate) fn block(&self) -> [u32; 3] {
        largest(self.rule.block)
    }

    fn check_block(&self, given: [u32; 3]) -> Result<(), Violation> {
        self.limits.check_block(self.rule.block, self.limits.threads, given)
    }

    /// Checks the arguments against the contract. `block` is the caller's choice; `max_blocks` yields how many blocks
    /// of that shape are resident at once, and is called only for cooperative kernels.
    pub(crate) fn resolve(
        &self,
        arguments: &Arguments,
        block: [u32; 3],
        max_blocks: impl FnOnce() -> u64,
    ) -> Result<Resolved, ContractError> {
        self.resolved(arguments, block, max_blocks).map_err(|violation| self.refuse(violation))
    }

    fn resolved(
        &self,
        arguments: &Arguments,
        block: [u32; 3],
        max_blocks: impl FnOnce() -> u64,
    ) -> Result<Resolved, Violation> {
        let mut params = Vec::with_capacity(self.args.len());
        for (arg, given) in self.args.iter().zip(&arguments.given) {
            params.push(self.check_kind(arg, given)?);
        }
        let mut touched = vec![0; self.args.len()];
        for ((arg, given), touched) in self.args.iter().zip(&arguments.given).zip(&mut touched) {
            if let Argument::Buffer(span) = given {
                *touched = self.check_buffer(arg, span, arguments)?;
            }
        }
        self.check_overlaps(&params, &touched)?;
        if self.checked {
            let buffers = self.args.iter().zip(&touched).filter(|(arg, _)| arg.role != Role::Scalar);
            let bytes = |(_, bytes): (_, &u64)| Number { ty: Type::U64, bytes: bytes.to_le_bytes() };
            params.extend(buffers.map(bytes).map(Param::Number));
        }
        if block != self.block() {
            self.check_block(block)?;
        }
        let LaunchRule { dynamic_shared, cooperative, cluster, .. } = self.rule;
        let grid = self.grid(arguments)?;
        self.limits.check_cluster(cluster, grid)?;
        let shape = Shape { grid, block, dynamic_shared, cooperative, cluster, dependent: true };
        if cooperative {
            let (given, needed) = (shape.blocks(), max_blocks());
            if given > needed {
                return Err(Violation::NotResident { given, needed });
            }
        }
        Ok(Resolved { shape, access: self.access(&params, &touched), params })
    }

    /// Checks the kind and the type of an argument, but not its size.
    fn check_kind(&self, arg: &ArgDesc, given: &Argument) -> Result<Param, Violation> {
        let argument = arg.name;
        let is_number = arg.role == Role::Scalar;
        let needed = if is_number { Kind::Number(arg.dtype) } else { Kind::Buffer(arg.dtype) };
        let (kind, param) = match given {
            Argument::Nothing => return Err(Violation::Missing { argument, needed }),
            Argument::Number(number) => (Kind::Number(number.ty), Param::Number(*number)),
            Argument::Buffer(span) => (Kind::Buffer(span.dtype), Param::Address(span.address)),
        };
        if kind == needed {
            return Ok(param);
        }
        match (kind, needed) {
            (Kind::Buffer(_), Kind::Buffer(_)) | (Kind::Number(_), Kind::Number(_)) => {
                Err(Violation::Type { argument, given: kind, needed })
            }
            _ => Err(Violation::Kind { argument, given: kind, needed }),
        }
    }

    /// Checks that a buffer is on this device, long enough and aligned. Yields the bytes that the kernel may touch.
    fn check_buffer(&self, arg: &ArgDesc, span: &Span, arguments: &Arguments) -> Result<u64, Violation> {
        let argument = arg.name;
        if span.device != self.limits.device {
            return Err(Violation::OtherDevice { argument, given: span.device, needed: self.limits.device });
        }
        let of = Measure::Length { argument };
        let needed = self.evaluate(arg.len, of, arguments)?;
        let size = u64::from(arg.dtype.bytes()).max(1);
        let bytes = needed.checked_mul(size).ok_or(Violation::Overflow { of, extent: arg.len.into() })?;
        if span.bytes < bytes {
            return Err(Violation::TooShort {
                argument,
                given: span.bytes / size,
                needed,
                extent: arg.len.into(),
            });
        }
        if !span.address.is_multiple_of(ALIGNMENT) {
            return Err(Violation::Misaligned { argument, given: span.address, needed: ALIGNMENT });
        }
        Ok(bytes)
    }

    /// The constants and what is written, where each argument's `touched` bytes are.
    fn access(&self, params: &[Param], touched: &[u64]) -> Access {
        let mut access = Access { constants: Vec::new(), writes: Some(Vec::new()) };
        for ((arg, param), bytes) in self.args.iter().zip(params).zip(touched) {
            let Param::Address(begin) = *param else { continue };
            let range = begin..begin.saturating_add(*bytes);
            match (arg.role, &mut access.writes) {
                (Role::Out | Role::InOut, Some(writes)) => writes.push(range),
                (Role::In, _) if arg.constant => access.constants.push(range),
                _ => {}
            }
        }
        access
    }

    /// Checks that a written buffer overlaps nothing else, or is exactly the buffer that it may share.
    fn check_overlaps(&self, params: &[Param], touched: &[u64]) -> Result<(), Violation> {
        let is_written = |arg: &ArgDesc| matches!(arg.role, Role::Out | Role::InOut);
        for (i, arg) in self.args.iter().enumerate().filter(|(_, arg)| is_written(arg)) {
            let Param::Address(begin) = params[i] else { continue };
            let end = begin.saturating_add(touched[i]);
            for (j, other) in self.args.iter().enumerate() {
                let Param::Address(other_begin) = params[j] else { continue };
                // Of two that are both written, the later one is told.
                if i == j || is_written(other) && j > i {
                    continue;
                }
                let other_end = other_begin.saturating_add(touched[j]);
                let bytes = end.min(other_end).saturating_sub(begin.max(other_begin));
                if bytes == 0 {
                    continue;
                }
                let shareable = other.role == Role::In && arg.shares.contains(&other.name);
                if !(shareable && begin == other_begin && end == other_end) {
                    return Err(Violation::Overlap {
                        argument: arg.name,
                        other: other.name,
                        bytes,
                        shareable,
                    });
                }
            }
        }
        Ok(())
    }

    fn grid(&self, arguments: &Arguments) -> Result<[u32; 3], Violation> {
        let mut given = [0; 3];
        for (given, extent) in given.iter_mut().zip(self.rule.grid) {
            *given = self.evaluate(extent, Measure::Grid, arguments)?;
        }
        self.limits.check_grid(given)
    }

    fn evaluate(&self, extent: Extent, of: Measure, arguments: &Arguments) -> Result<u64, Violation> {
        if let Some(count) = extent.evaluate(|name| self.count(name, arguments)) {
            return Ok(count);
        }
        let unknown = extent.depends_on().find(|name| self.count(name, arguments).is_none());
        Err(match unknown.map(|dim| (dim, self.number(dim, arguments))) {
            Some((dim, None)) => Violation::MissingDim { dim, of },
            Some((argument, Some(number))) => {
                Violation::Count { argument, given: number.to_string(), needed: Type::U64 }
            }
            None => Violation::Overflow { of, extent: extent.into() },
        })
    }

    /// The value of a number that an extent depends on.
    fn count(&self, name: &str, arguments: &Arguments) -> Option<u64> {
        match self.dims.iter().position(|dim| *dim == name) {
            Some(at) => arguments.dims[at],
            None => u64::try_from(self.number(name, arguments)?.whole()?).ok(),
        }
    }

    /// The scalar argument of that name.
    fn number(&self, name: &str, arguments: &Arguments) -> Option<Number> {
        let at = self.args.iter().position(|arg| arg.name == name)?;
        match arguments.given[at] {
            Argument::Number(number) => Some(number),
            _ => None,
        }
    }
}
