//! Why something could not be done.

use crate::contract::ContractError;
use crate::graph::GraphNode;
use std::fmt;
use warpwright_dsl::BuildError;
use warpwright_ptx::diag::Diagnostics;
use warpwright_ptx::ir::Type;

/// What functions of this crate return.
pub type Result<T, E = RuntimeError> = std::result::Result<T, E>;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The name of a device means none.
    #[error("`{given}` is no device: it must be `auto`, `vm` or `cuda:N`, N from 0 on")]
    UnknownDevice {
        /// The name.
        given: String,
    },
    /// The virtual GPU refuses.
    #[error(transparent)]
    Vm(#[from] warpwright_vm::DeviceError),
    /// CUDA, or its driver, refuses.
    #[error(transparent)]
    Cuda(#[from] Box<crate::cuda::CudaError>),
    /// A CUDA device does not load a module: its target, its PTX version, or what the driver's compiler says.
    #[error(transparent)]
    Module(#[from] Box<crate::cuda::ModuleError>),
    /// A launch, or a kernel, is against the contract: nothing has run.
    #[error(transparent)]
    Contract(#[from] Box<ContractError>),
    /// A kernel of the DSL was not built.
    #[error("kernel `{kernel}` was not built: {source}")]
    Build {
        /// Its entry.
        kernel: String,
        /// Why.
        source: BuildError,
    },
    /// A CUDA device would do whatever the kernel does, and nothing says that it stays within its arguments.
    #[error(
        "kernel `{kernel}` is not `Bounded`, and a CUDA device checks no access: promise with `unsafe impl Bounded`, and \
         show in `Kernel::bounded`, that it stays within its arguments; or have it checked with `Device::checked`; or \
         launch it with `unsafe` and `launch_unbounded`; or run it on a virtual GPU, which checks every access"
    )]
    Unbounded {
        /// Its entry.
        kernel: String,
    },
    /// A text is no PTX, or the verifier refuses it.
    #[error("the text is no valid PTX:{}", lines(.0))]
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
    /// A node of a graph cannot become that launch: it must launch the same kernel, with the same attributes.
    #[error("node {node} of the graph cannot become {given}: it is {}; only a launch of the same kernel, cooperative or not \
             and in clusters as that one is, can be updated",
        found.as_ref().map_or("not there".to_owned(), ToString::to_string))]
    GraphUpdate {
        /// The node's place.
        node: usize,
        /// What the node is, if there is one.
        found: Option<Box<GraphNode>>,
        /// What it was to become.
        given: Box<GraphNode>,
    },
    /// There is not that much memory, although what was cached has been given back.
    #[error(
        "{asked} bytes of device memory were asked for: of {capacity} bytes {free} are free, in no block of that size, and \
         {live} are in buffers that live; {cached} that the cache held have been given back; ask for less, or drop \
         buffers first"
    )]
    OutOfMemory {
        /// Bytes asked for.
        asked: u64,
        /// Bytes of the device that nobody has, in this process or another one.
        free: u64,
        /// Bytes of buffers that live.
        live: u64,
        /// Bytes of dropped buffers that the pool held when it was asked, and has given back.
        cached: u64,
        /// Bytes of the device.
        capacity: u64,
    },
    /// What only CUDA devices do.
    #[error("{operation}: the device is a virtual GPU, and this is between a CUDA device and cudarc")]
    NotCuda {
        /// The operation.
        operation: &'static str,
    },
    /// What is of a CUDA device, and of a virtual GPU of this process.
    #[error(
        "{operation}: one side is of a CUDA device and the other one of a virtual GPU, which meet at the host alone: copy \
         with `clone_dtoh` and `memcpy_htod`, and wait with `synchronize`"
    )]
    OtherKind {
        /// The operation.
        operation: &'static str,
    },
    /// A buffer of memory that was lent for a time which is over.
    #[error(
        "a buffer is used whose memory was lent, and the loan has ended; lend it again for as long as it is used"
    )]
    LoanEnded,
    /// Both sides of a copy must have the same number of elements.
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
    /// Both sides of a copy lie over each other.
    #[error("{operation}: source and target overlap; copy through another buffer")]
    Overlap {
        /// The operation.
        operation: &'static str,
    },
    /// A range that is not inside its buffer.
    #[error("elements {start}..{end} are not a range inside a buffer of {len}")]
    Range {
        /// First element.
        start: usize,
        /// The element behind the last one.
        end: usize,
        /// Elements of the buffer.
        len: usize,
    },
    /// Memory that cannot be seen as elements of another type.
    #[error("{bytes} bytes at {address:#x} cannot be seen as {to}: {rule}", to = to.name())]
    Cast {
        /// Address of the buffer.
        address: u64,
        /// Its size.
        bytes: u64,
        /// The other element type.
        to: Type,
        /// What is against it.
        rule: &'static str,
    },
    /// A buffer of other elements than asked for.
    #[error("the buffer holds {found} and not {asked}; `cast` sees its bytes as another type",
        found = found.name(), asked = asked.name())]
    ElementType {
        /// What it holds.
        found: Type,
        /// What was asked for.
        asked: Type,
    },
    /// Something of another device.
    #[error("{operation}: the {what} is of another device; what works together must be of one")]
    OtherDevice {
        /// The operation.
        operation: &'static str,
        /// What.
        what: &'static str,
    },
    /// A kernel failed on the device. What was issued before this error was returned, and had not been executed,
    /// never is.
    #[error(transparent)]
    Failed(Box<Failure>),
    /// What was asked for had not been executed when another call returned the error of an earlier operation.
    #[error("{operation} was not executed: an operation before it failed, which another call has returned")]
    Skipped {
        /// The operation.
        operation: &'static str,
    },
    /// The stream captures, and this cannot be captured.
    #[error("{operation} cannot be captured: the stream is capturing a graph; end the capture first")]
    Capturing {
        /// The operation.
        operation: &'static str,
    },
    /// The stream does not capture.
    #[error("the stream captures no graph; begin a capture first")]
    NotCapturing,
    /// An event has not been reached: time is known of complete events.
    #[error(
        "an event is not complete, or was skipped after an error; synchronize it before asking for its time"
    )]
    Incomplete,
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
    /// The kernel; or what it was that failed, if it was no launch. The first of several that it may have been.
    pub kernel: String,
    /// The launch's number on its device, from 0 on, if it began.
    pub launch: Option<u64>,
    /// Where it is not known which launch has failed, the last that it may have been: kernel and number. It was that
    /// one, `kernel`, or one between them.
    pub last: Option<(String, u64)>,
    /// Whether the device does nothing any more in this process. Every call that waits returns this error then.
    pub lost: bool,
    /// What happened.
    pub message: String,
}

impl Failure {
    /// Of an operation that is known, on a device that goes on.
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
