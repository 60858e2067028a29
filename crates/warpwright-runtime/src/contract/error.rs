//! Why a kernel was not launched: what it was given, and what it needs.

use std::fmt;
use warpwright_dsl::Extent;
use warpwright_ptx::ir::{Arch, Type};

/// A kernel was refused, or its launch, before anything ran.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("kernel `{kernel}`: {violation}")]
#[non_exhaustive]
pub struct ContractError {
    /// The kernel's entry.
    pub kernel: String,
    /// What is wrong.
    pub violation: Violation,
}

impl ContractError {
    pub(crate) fn new(kernel: &str, violation: Violation) -> Self {
        ContractError { kernel: kernel.to_owned(), violation }
    }

    /// The argument that is wrong, or the name that is not known, where it is about one.
    pub fn argument(&self) -> Option<&str> {
        self.violation.argument()
    }
}

/// What of a launch is against the kernel's contract. Lengths are in elements.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The kernel takes no argument of that name, and nothing depends on such a number.
    #[error("there is no argument `{argument}`: it takes {}", names(known))]
    Unknown {
        /// The name that was given.
        argument: String,
        /// The arguments, and the numbers that their lengths and the grid depend on.
        known: Vec<&'static str>,
    },
    /// An argument was given twice.
    #[error("`{argument}` is given twice; it takes one")]
    Twice {
        /// The argument.
        argument: &'static str,
    },
    /// An argument was not given.
    #[error("`{argument}` is missing: give {needed}")]
    Missing {
        /// The argument.
        argument: &'static str,
        /// What it is.
        needed: Kind,
    },
    /// A buffer was given for a number, or a number for a buffer.
    #[error("`{argument}` is {given}; it must be {needed}")]
    Kind {
        /// The argument.
        argument: &'static str,
        /// What was given.
        given: Kind,
        /// What it must be.
        needed: Kind,
    },
    /// Elements or a number of the wrong type.
    #[error("`{argument}` is {given}; it must be {needed}")]
    Type {
        /// The argument.
        argument: &'static str,
        /// What was given.
        given: Kind,
        /// What it must be.
        needed: Kind,
    },
    /// A number that lengths or the grid depend on was not given.
    #[error("{of} depends on `{dim}`, which is missing: give it with `dim`")]
    MissingDim {
        /// Its name.
        dim: &'static str,
        /// What depends on it first.
        of: Measure,
    },
    /// A number that is a count cannot be one, or does not fit its argument's type.
    #[error("`{argument}` is {given}, which is no number of {}", needed.name())]
    Count {
        /// The argument.
        argument: &'static str,
        /// Its value.
        given: String,
        /// The type of the argument, or of counts.
        needed: Type,
    },
    /// A length or the grid is more than a 64-bit number holds.
    #[error("{of}, {extent}, is too large")]
    Overflow {
        /// Of what.
        of: Measure,
        /// What it is made of.
        extent: Box<Extent>,
    },
    /// A buffer is too short.
    #[error("`{argument}` has {given} elements; it needs {needed} ({extent})")]
    TooShort {
        /// The argument.
        argument: &'static str,
        /// Elements that it has.
        given: u64,
        /// Elements that it needs.
        needed: u64,
        /// What that follows from.
        extent: Box<Extent>,
    },
    /// A buffer does not begin where vector accesses need it to.
    #[error("`{argument}` begins at {given:#x}; its address must be a multiple of {needed}")]
    Misaligned {
        /// The argument.
        argument: &'static str,
        /// Its address.
        given: u64,
        /// What the address must be a multiple of, in bytes.
        needed: u64,
    },
    /// A buffer of another device.
    #[error("`{argument}` is on device {given}; it must be on device {needed}, where the kernel runs")]
    OtherDevice {
        /// The argument.
        argument: &'static str,
        /// The device where it is: its number in this process.
        given: u64,
        /// The device where the kernel runs.
        needed: u64,
    },
    /// What the kernel writes lies over what else it is given.
    #[error(
        "`{argument}`, which it writes, overlaps `{other}` by {bytes} bytes; {}",
        if *shareable { "it may be exactly that buffer, or must be apart from it" } else { "they must be apart" }
    )]
    Overlap {
        /// The argument that the kernel writes.
        argument: &'static str,
        /// The other one.
        other: &'static str,
        /// Bytes that both have.
        bytes: u64,
        /// Whether the kernel lets both be one buffer.
        shareable: bool,
    },
    /// The grid is empty, or larger than the device takes.
    #[error("a grid of {given:?} blocks: each dimension must be from 1 to {needed:?}")]
    Grid {
        /// Blocks along x, y and z.
        given: [u64; 3],
        /// The most along each.
        needed: [u32; 3],
    },
    /// The block is empty, larger than the device takes, or not one that the kernel takes.
    #[error("a block of {given:?} threads: {}", block_rule(*needed, *exactly, *max))]
    Block {
        /// Threads along x, y and z.
        given: [u32; 3],
        /// Along each dimension, what the kernel takes, or at most takes.
        needed: [u32; 3],
        /// Whether the kernel takes nothing else.
        exactly: bool,
        /// Threads of a block at most.
        max: u32,
    },
    /// A block wants more shared memory than the device gives one.
    #[error("a block has {given} bytes of shared memory; the device gives it {needed} at most")]
    SharedMemory {
        /// Static and dynamic shared memory, in bytes.
        given: u64,
        /// What a block can have.
        needed: u64,
    },
    /// A raw launch asks for more dynamic shared memory than the function was allowed.
    #[error(
        "a block has {given} bytes of dynamic shared memory; {needed} are allowed, and up to {max} by \
         `Function::set_max_dynamic_shared`"
    )]
    DynamicShared {
        /// Bytes of the launch.
        given: u32,
        /// Bytes that are allowed.
        needed: u32,
        /// Bytes that can be allowed.
        max: u64,
    },
    /// A raw launch has another number of parameters than the function.
    #[error("{given} parameters are given; it takes {needed}")]
    ParameterCount {
        /// Parameters of the launch.
        given: usize,
        /// Parameters of the function.
        needed: usize,
    },
    /// A parameter of a raw launch has another size than the function's.
    #[error("parameter {index} (`{argument}`) has {given} bytes; it needs {needed}")]
    ParameterSize {
        /// Which one, from 0 on.
        index: usize,
        /// Its name.
        argument: String,
        /// Bytes of what was given.
        given: usize,
        /// Bytes of the parameter.
        needed: usize,
    },
    /// A buffer of a raw launch does not begin where the PTX says that the parameter points.
    #[error("parameter {index} (`{argument}`) is {given:#x}; it must be a multiple of {needed}")]
    ParameterAlignment {
        /// Which one, from 0 on.
        index: usize,
        /// Its name.
        argument: String,
        /// The buffer's address.
        given: u64,
        /// What it must be a multiple of, in bytes.
        needed: u64,
    },
    /// The device is too old.
    #[error("the device is {given}; it needs sm_{needed} or later")]
    Architecture {
        /// The device's architecture.
        given: Arch,
        /// The oldest that will do.
        needed: u16,
    },
    /// Not all blocks of a cooperative launch can be resident at once.
    #[error("a cooperative launch of {given} blocks, which must all be resident; at most {needed} can be")]
    NotResident {
        /// Blocks of the grid.
        given: u64,
        /// The most blocks of that shape that are resident at once.
        needed: u64,
    },
    /// Operands for a kernel whose blocks run together, which other kernels do not run in its place.
    #[error(
        "its blocks run together, cooperatively or in clusters, as they do in a launch of its own alone; operands are \
         made for kernels whose blocks run one by one"
    )]
    NotCallable,
    /// The device runs no clusters.
    #[error("clusters of {given:?} blocks; the device runs none")]
    Cluster {
        /// Blocks of a cluster along x, y and z.
        given: [u32; 3],
    },
    /// Clusters that the grid is not made of, or of too many blocks.
    #[error(
        "clusters of {given:?} blocks in a grid of {grid:?}; a cluster has 1 to 8 blocks, and the grid is a multiple of \
         it along each axis"
    )]
    ClusterShape {
        /// Blocks of a cluster along x, y and z.
        given: [u32; 3],
        /// Blocks of the grid along x, y and z.
        grid: [u32; 3],
    },
}

impl Violation {
    fn argument(&self) -> Option<&str> {
        match self {
            Violation::Unknown { argument, .. }
            | Violation::ParameterSize { argument, .. }
            | Violation::ParameterAlignment { argument, .. } => Some(argument),
            Violation::Twice { argument }
            | Violation::Missing { argument, .. }
            | Violation::Kind { argument, .. }
            | Violation::Type { argument, .. }
            | Violation::MissingDim { dim: argument, .. }
            | Violation::Count { argument, .. }
            | Violation::TooShort { argument, .. }
            | Violation::Misaligned { argument, .. }
            | Violation::OtherDevice { argument, .. }
            | Violation::Overlap { argument, .. }
            | Violation::Overflow { of: Measure::Length { argument }, .. } => Some(argument),
            _ => None,
        }
    }
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A buffer of such elements.
    Buffer(Type),
    /// A number of that type.
    Number(Type),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Buffer(ty) => write!(f, "a buffer of {}", ty.name()),
            Kind::Number(ty) => write!(f, "a number of type {}", ty.name()),
        }
    }
}

/// What is counted in terms of numbers that the caller gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The length of a buffer.
    Length {
        /// The buffer's argument.
        argument: &'static str,
    },
    /// The grid.
    Grid,
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measure::Length { argument } => write!(f, "the length of `{argument}`"),
            Measure::Grid => f.write_str("the grid"),
        }
    }
}

fn names(known: &[&str]) -> String {
    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
}

fn block_rule(needed: [u32; 3], exactly: bool, max: u32) -> String {
    if exactly {
        format!("it takes {needed:?} and no other")
    } else {
        format!("it takes 1 to {needed:?}, {max} in all at most")
    }
}
