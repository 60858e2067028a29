//! Why an operation failed or was refused.

use crate::contract::ContractError;
use crate::graph::GraphNode;
use std::fmt;
use warpwright_dsl::BuildError;
use warpwright_ptx::diag::Diagnostics;
use warpwright_ptx::ir::Type;

/// The result of functions of this crate.
pub type Result<T, E = RuntimeError> = std::result::Result<T, E>;

/// Why an operation failed or was refused.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// A name is not the name of a device.
    #[error("`{given}` is no device: it must be `auto`, `vm` or `cuda:N`, N from 0 on")]
    UnknownDevice {
        /// The name.
        given: String,
    },
    /// An error of the virtual GPU.
    #[error(transparent)]
    Vm(#[from] warpwright_vm::DeviceError),
    /// An error of CUDA or its driver.
    #[error(transparent)]
    Cuda(#[from] Box<crate::cuda::CudaError>),
    /// A CUDA device did not load a module: because of its target, its PTX version, or an error of the driver's
    /// compiler.
    #[error(transparent)]
    Module(#[from] Box<crate::cuda::ModuleError>),
    /// A kernel or its launch breaks the contract: nothing has run.
    #[error(transparent)]
    Contract(#[from] Box<ContractError>),
    /// A kernel of the DSL did not build.
    #[error("kernel `{kernel}` was not built: {source}")]
    Build {
        /// Its entry name.
        kernel: String,
        /// Why.
        source: BuildError,
    },
    /// A safe launch on a CUDA device of a kernel without a promise that it stays within its arguments.
    #[error(
        "kernel `{kernel}` is not `Bounded`, and a CUDA device checks no access: promise with `unsafe impl Bounded`, and \
         show in `Kernel::bounded`, that it stays within its arguments; or have it checked with `Device::checked`; or \
         launch it with `unsafe` and `launch_unbounded`; or run it on a virtual GPU, which checks every access"
    )]
    Unbounded {
        /// Its entry name.
        kernel: String,
    },
    /// A text is not PTX, or the verifier refuses it.
    #[error("the text is not valid PTX:{}", lines(.0))]
    Invalid(Diagnostics),
    /// The module has no such kernel.
    #[error("there is no kernel `{name}` in the module: it has {}",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") })]
    UnknownFunction {
        /// The name.
        name: String,
        /// The module's kernels.
        known: Vec<String>,
    },
    /// A node of a graph cannot be updated to that launch: it must launch the same kernel, with the same attributes.
    #[error("node {node} of the graph cannot become {given}: it is {}; only a launch of the same kernel, cooperative or not \
             and in clusters as that one is, can be updated",
        found.as_ref().map_or("not there".to_owned(), ToString::to_string))]
    GraphUpdate {
        /// The node's index.
        node: usize,
        /// The node, if there is one.
        found: Option<Box<GraphNode>>,
        /// The launch that was given for it.
        given: Box<GraphNode>,
    },
    /// A node's new arguments, with which a launch would overlap with one that writes its constants. The edges of a graph
    /// do not change when a node is updated.
    #[error(
        "an update of node {node}: node {constant_of} overlaps with the one before it, which would then write a constant of \
         it; prepare the launches with `dependent(false)`, or record the graph anew"
    )]
    GraphOverlap {
        /// The node that was to be updated.
        node: usize,
        /// The node of the constant: the same one, or the one behind it.
        constant_of: usize,
    },
    /// There is not enough memory, even after cached memory was released.
    #[error(
        "out of device memory: {asked} bytes were asked for; of {capacity} bytes {free} are free, in smaller blocks, and \
         {live} are in live buffers; {cached} cached bytes were released; ask for less, or drop buffers first"
    )]
    OutOfMemory {
        /// Bytes asked for.
        asked: u64,
        /// Bytes of the device that are free: not in use by this process or another one.
        free: u64,
        /// Bytes of live buffers.
        live: u64,
        /// Bytes of dropped buffers that the pool held before, and has released.
        cached: u64,
        /// The memory of the device, in bytes.
        capacity: u64,
    },
    /// An operation that only CUDA devices support.
    #[error("{operation} needs a CUDA device, and the device is a virtual GPU")]
    NotCuda {
        /// The operation.
        operation: &'static str,
    },
    /// An operation between a CUDA device and a virtual GPU of this process.
    #[error(
        "{operation}: one side belongs to a CUDA device and the other to a virtual GPU; go through the host: copy with \
         `clone_dtoh` and `memcpy_htod`, and wait with `synchronize`"
    )]
    OtherKind {
        /// The operation.
        operation: &'static str,
    },
    /// A buffer of lent memory was used after the loan had ended.
    #[error("the loan of a buffer's memory has ended; lend it again for as long as it is used")]
    LoanEnded,
    /// There is no such tensor map: a rule that the tensor or its tiles break.
    #[error("a tensor map: {0}")]
    TensorMap(#[from] Box<warpwright_vm::TensorMapError>),
    /// A tensor has more bytes than the buffer that it is in.
    #[error("a tensor map of a tensor of {needed} bytes: the buffer has {given}")]
    TensorLength {
        /// The tensor's bytes, gaps included.
        needed: u64,
        /// The buffer's.
        given: u64,
    },
    /// Tensor maps have no such elements.
    #[error("there are no tensor maps of elements of type {}: name another with `TensorLayout::element`", element.name())]
    TensorElement {
        /// The type of the buffer's elements.
        element: warpwright_ptx::ir::Type,
    },
    /// The two sides of a copy differ in their number of elements.
    #[error(
        "{operation}: the source has {source_len} elements and the target {target_len}; both must be equal"
    )]
    Length {
        /// The operation.
        operation: &'static str,
        /// Elements of the source.
        source_len: usize,
        /// Elements of the target.
        target_len: usize,
    },
    /// The two sides of a copy overlap.
    #[error("{operation}: source and target overlap; copy through another buffer")]
    Overlap {
        /// The operation.
        operation: &'static str,
    },
    /// A range is not within its buffer.
    #[error("elements {start}..{end} are not a range inside a buffer of {len}")]
    Range {
        /// First element.
        start: usize,
        /// One past the last element.
        end: usize,
        /// Elements of the buffer.
        len: usize,
    },
    /// Memory cannot be cast to elements of another type.
    #[error("{bytes} bytes at {address:#x} cannot be cast to {to}: {rule}", to = to.name())]
    Cast {
        /// Address of the buffer.
        address: u64,
        /// Its size.
        bytes: u64,
        /// The other element type.
        to: Type,
        /// The rule that was broken.
        rule: &'static str,
    },
    /// A buffer has another element type than the one asked for.
    #[error("the buffer holds {found}, not {asked}; use `cast` to reinterpret its bytes",
        found = found.name(), asked = asked.name())]
    ElementType {
        /// The buffer's element type.
        found: Type,
        /// The type that was asked for.
        asked: Type,
    },
    /// A stream, buffer, event or other argument belongs to another device.
    #[error("{operation}: the {what} belongs to another device; all must belong to one")]
    OtherDevice {
        /// The operation.
        operation: &'static str,
        /// The argument.
        what: &'static str,
    },
    /// A kernel failed on the device. Operations that were issued before this error was returned, and had not been
    /// executed, are skipped.
    #[error(transparent)]
    Failed(Box<Failure>),
    /// The operation was skipped: an earlier one failed, and another call returned that error.
    #[error("{operation} was skipped: an earlier operation failed, and another call returned that error")]
    Skipped {
        /// The operation.
        operation: &'static str,
    },
    /// The operation cannot be captured, and the stream is capturing.
    #[error("{operation} cannot be captured: the stream is capturing a graph; end the capture first")]
    Capturing {
        /// The operation.
        operation: &'static str,
    },
    /// The stream is not capturing.
    #[error("the stream is not capturing; begin a capture first")]
    NotCapturing,
    /// An event is not complete, so its time is unknown.
    #[error(
        "an event is not complete, or was skipped after an error; synchronize it before asking for its time"
    )]
    Incomplete,
}

/// The same text as `Display`: a program or a test that returns the error prints it.
impl fmt::Debug for RuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<ContractError> for RuntimeError {
    fn from(error: ContractError) -> Self {
        RuntimeError::Contract(Box::new(error))
    }
}

impl From<crate::cuda::ModuleError> for RuntimeError {
    fn from(error: crate::cuda::ModuleError) -> Self {
        RuntimeError::Module(Box::new(error))
    }
}

impl From<crate::cuda::CudaError> for RuntimeError {
    fn from(error: crate::cuda::CudaError) -> Self {
        RuntimeError::Cuda(Box::new(error))
    }
}

impl From<crate::cuda::CallError> for RuntimeError {
    fn from(error: crate::cuda::CallError) -> Self {
        crate::cuda::CudaError::Call(error).into()
    }
}

fn lines(diagnostics: &Diagnostics) -> String {
    diagnostics.iter().map(|diagnostic| format!("\n{diagnostic}")).collect()
}

/// How an operation failed on the device.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The kernel, or the name of the operation if it was not a launch. If several launches may have failed, the first
    /// of them.
    pub kernel: String,
    /// The launch's number on its device, from 0 in the order in which launches begin, if it began.
    pub launch: Option<u64>,
    /// The kernel and number of the last launch that may have failed, if it is not known which one did: `kernel`, this
    /// one, or one between them.
    pub last: Option<(String, u64)>,
    /// Whether the device is lost for this process. Every call that waits then returns this error.
    pub lost: bool,
    /// A description of the failure.
    pub message: String,
}

impl Failure {
    /// A failure of a known operation, on a device that goes on.
    pub(crate) fn new(kernel: &str, launch: Option<u64>, message: String) -> Self {
        Failure { kernel: kernel.to_owned(), launch, last: None, lost: false, message }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { kernel, launch, last, lost, message } = self;
        match (launch, last) {
            (Some(number), None) => {
                write!(f, "kernel `{kernel}` failed (launch {number} of the device): {message}")?;
            }
            (Some(number), Some((last, at))) => write!(
                f,
                "one of the launches {number} (`{kernel}`) to {at} (`{last}`) of the device failed: {message}; \
                 with WARPWRIGHT_SYNC_LAUNCHES=1 in the environment it is known which one"
            )?,
            (None, _) if *lost => write!(f, "the device failed, which `{kernel}` has met: {message}")?,
            (None, _) => write!(f, "`{kernel}` failed before it began: {message}")?,
        }
        if *lost { f.write_str("; the device is lost for this process") } else { Ok(()) }
    }
}

impl std::error::Error for Failure {}
