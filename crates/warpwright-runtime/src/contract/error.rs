//! Why a launch was refused: what the kernel was given, and what it needs.

use std::fmt;
use warpwright_dsl::Extent;
use warpwright_ptx::ir::{Arch, Type};

/// A kernel or its launch was refused before anything ran.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("kernel `{kernel}`: {violation}")]
#[non_exhaustive]
pub struct ContractError {
    /// The kernel's entry name.
    pub kernel: String,
    /// The rule that was broken.
    pub violation: Violation,
}

impl ContractError {
    pub(crate) fn new(kernel: &str, violation: Violation) -> Self {
        ContractError { kernel: kernel.to_owned(), violation }
    }

    /// The argument that is wrong, or the unknown name, if the error is about one.
    pub fn argument(&self) -> Option<&str> {
        self.violation.argument()
    }
}

/// How a launch breaks the kernel's contract. Lengths are in elements.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The kernel has no argument of that name, and no length or grid depends on such a number.
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
    /// An argument that is a count has a value that no count has, or that its type does not hold.
    #[error("`{argument}` is {given}, which is no number of {}", needed.name())]
    Count {
        /// The argument.
        argument: &'static str,
        /// Its value.
        given: String,
        /// The type of the argument, or of counts.
        needed: Type,
    },
    /// A length or the grid does not fit in 64 bits.
    #[error("{of}, {extent}, is too large")]
    Overflow {
        /// The length or the grid.
        of: Measure,
        /// Its formula.
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
        /// The formula for that length.
        extent: Box<Extent>,
    },
    /// A buffer is not aligned for vector accesses.
    #[error("`{argument}` begins at {given:#x}; its address must be a multiple of {needed}")]
    Misaligned {
        /// The argument.
        argument: &'static str,
        /// Its address.
        given: u64,
        /// The alignment that is needed, in bytes.
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
    /// A buffer that the kernel writes overlaps another argument.
    #[error(
        "`{argument}`, which it writes, overlaps `{other}` by {bytes} bytes; {}",
        if *shareable { "it may be exactly that buffer, or must be apart from it" } else { "they must be apart" }
    )]
    Overlap {
        /// The argument that the kernel writes.
        argument: &'static str,
        /// The other argument.
        other: &'static str,
        /// The number of bytes that overlap.
        bytes: u64,
        /// Whether the kernel allows both to be the same buffer.
        shareable: bool,
    },
    /// The grid is empty, or larger than the device allows.
    #[error("a grid of {given:?} blocks: each dimension must be from 1 to {needed:?}")]
    Grid {
        /// Blocks along x, y and z.
        given: [u64; 3],
        /// The maximum along each dimension.
        needed: [u32; 3],
    },
    /// The block is empty, larger than the device allows, or not one that the kernel supports.
    #[error("a block of {given:?} threads: {}", block_rule(*needed, *exactly, *max))]
    Block {
        /// Threads along x, y and z.
        given: [u32; 3],
        /// The block that the kernel requires, or the maximum along each dimension.
        needed: [u32; 3],
        /// Whether the kernel supports only that block.
        exactly: bool,
        /// The maximum number of threads of a block.
        max: u32,
    },
    /// A block needs more shared memory than the device allows.
    #[error("a block has {given} bytes of shared memory; the device gives it {needed} at most")]
    SharedMemory {
        /// Static and dynamic shared memory, in bytes.
        given: u64,
        /// The maximum for a block, in bytes.
        needed: u64,
    },
    /// A raw launch asks for more dynamic shared memory than the function was allowed.
    #[error(
        "a block has {given} bytes of dynamic shared memory; {needed} are allowed, and up to {max} by \
         `Function::set_max_dynamic_shared`"
    )]
    DynamicShared {
        /// Bytes that the launch asks for.
        given: u32,
        /// Bytes that are allowed.
        needed: u32,
        /// The maximum that can be allowed, in bytes.
        max: u64,
    },
    /// A raw launch has the wrong number of parameters.
    #[error("{given} parameters are given; it takes {needed}")]
    ParameterCount {
        /// Parameters of the launch.
        given: usize,
        /// Parameters of the function.
        needed: usize,
    },
    /// A parameter of a raw launch has the wrong size.
    #[error("parameter {index} (`{argument}`) has {given} bytes; it needs {needed}")]
    ParameterSize {
        /// Its index, from 0.
        index: usize,
        /// Its name.
        argument: String,
        /// Bytes of what was given.
        given: usize,
        /// Bytes of the parameter.
        needed: usize,
    },
    /// A buffer of a raw launch is not aligned as the PTX says.
    #[error("parameter {index} (`{argument}`) is {given:#x}; it must be a multiple of {needed}")]
    ParameterAlignment {
        /// Its index, from 0.
        index: usize,
        /// Its name.
        argument: String,
        /// The buffer's address.
        given: u64,
        /// The alignment that is needed, in bytes.
        needed: u64,
    },
    /// The device is too old.
    #[error("the device is {given}; it needs sm_{needed} or later")]
    Architecture {
        /// The device's architecture.
        given: Arch,
        /// The oldest architecture that runs the kernel.
        needed: u16,
    },
    /// Not all blocks of a cooperative launch can be resident at once.
    #[error("a cooperative launch of {given} blocks, which must all be resident; at most {needed} can be")]
    NotResident {
        /// Blocks of the grid.
        given: u64,
        /// The maximum number of such blocks that are resident at once.
        needed: u64,
    },
    /// Operands for a kernel whose blocks run together: other kernels cannot call such a kernel.
    #[error(
        "its blocks run together, cooperatively or in clusters, as they do in a launch of its own alone; operands are \
         made for kernels whose blocks run one by one"
    )]
    NotCallable,
    /// The device does not support clusters.
    #[error("clusters of {given:?} blocks; the device runs none")]
    Cluster {
        /// Blocks of a cluster along x, y and z.
        given: [u32; 3],
    },
    /// A cluster has too many blocks, or the grid is not a multiple of the clusters.
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

/// The kind of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A buffer of elements of that type.
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

/// A quantity that depends on numbers given by the caller.
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
