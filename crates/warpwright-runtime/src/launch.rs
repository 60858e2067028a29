//! Raw launches of PTX without a contract: dimensions, attributes, and parameters in the order of the signature.
//!
//! The signature and the device are checked: the number and sizes of the parameters, the alignment that is declared for
//! pointers, dimensions, shared memory, residency, and the device of each buffer. What the kernel does with a parameter
//! is unknown, so a launch is `unsafe`. [`CompiledKernel`](crate::CompiledKernel) is the checked alternative.

use crate::buffer::{AnyBuffer, Buffer, Element};
use crate::contract::{Limits, Number, Param, Violation};
use crate::error::{Result, RuntimeError};
use crate::function::{Function, FunctionAttributes};
use crate::op::Shape;
use crate::overlap::Access;
use crate::stream::Stream;
use crate::tensor_map::TensorMap;
use bytemuck::NoUninit;
use std::sync::Arc;
use warpwright_dsl::Block;

/// The dimensions of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks, along x, y and z.
    pub grid_dim: (u32, u32, u32),
    /// Threads of a block, along x, y and z.
    pub block_dim: (u32, u32, u32),
    /// Dynamic shared memory of a block, in bytes.
    pub shared_mem_bytes: u32,
}

impl LaunchConfig {
    /// One thread for each of `n` elements, in blocks of 1024, without dynamic shared memory.
    pub fn for_num_elems(n: u32) -> Self {
        const THREADS: u32 = 1024;
        LaunchConfig {
            grid_dim: (n.div_ceil(THREADS), 1, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: 0,
        }
    }
}

/// Attributes of a launch besides its dimensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchAttributes {
    /// Whether it is cooperative: all blocks are resident at once, and may wait for one another.
    pub cooperative: bool,
    /// Blocks of a cluster, along x, y and z. Devices from sm_90 on support clusters of up to 8 blocks.
    pub cluster: Option<(u32, u32, u32)>,
    /// Whether it is a programmatic dependent launch: it may begin before the launch in front of it in its stream is
    /// complete, and waits for that one at `griddepcontrol.wait`. A launch of code without a wait of its own is plain all
    /// the same, and so is a cooperative one.
    pub dependent: bool,
}

impl LaunchAttributes {
    /// Makes the launch cooperative.
    pub fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// Lets the launch begin before the one in front of it is complete.
    pub fn dependent(mut self) -> Self {
        self.dependent = true;
        self
    }

    /// Groups blocks into clusters of these dimensions.
    pub fn cluster(mut self, blocks: (u32, u32, u32)) -> Self {
        self.cluster = Some(blocks);
        self
    }
}

/// A parameter of a raw launch: a buffer's address, a number, the bytes of a structure, or a tensor in a buffer.
#[derive(Clone, Debug)]
pub struct RawArg(Value);

#[derive(Clone, Debug)]
enum Value {
    Buffer(AnyBuffer),
    Map(Box<TensorMap>),
    Param(Param),
}

impl RawArg {
    fn bytes(&self) -> usize {
        match &self.0 {
            Value::Buffer(_) => size_of::<u64>(),
            Value::Map(map) => map.as_bytes().len(),
            Value::Param(param) => param.size(),
        }
    }

    /// The bytes of a structure, as C lays it out.
    pub fn structure<T: NoUninit>(value: &T) -> Self {
        RawArg(Value::Param(Param::Bytes(bytemuck::bytes_of(value).into())))
    }

    /// The bytes of a parameter of any type, as they are in memory.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        RawArg(Value::Param(Param::Bytes(bytes.into())))
    }
}

impl<T: Element> From<T> for RawArg {
    fn from(value: T) -> Self {
        RawArg(Value::Param(Param::Number(Number::new(T::TYPE, bytemuck::bytes_of(&value)))))
    }
}

impl<T: Element> From<&Buffer<T>> for RawArg {
    fn from(buffer: &Buffer<T>) -> Self {
        buffer.as_any().into()
    }
}

impl From<&AnyBuffer> for RawArg {
    fn from(buffer: &AnyBuffer) -> Self {
        RawArg(Value::Buffer(buffer.clone()))
    }
}

impl From<&TensorMap> for RawArg {
    fn from(map: &TensorMap) -> Self {
        RawArg(Value::Map(Box::new(map.clone())))
    }
}

/// A launch of a [`Function`] under construction: takes its parameters in order.
///
/// ```
/// use warpwright_runtime::{Device, LaunchConfig, RuntimeError, VmConfig};
///
/// # fn main() -> Result<(), RuntimeError> {
/// let device = Device::vm(VmConfig::default())?;
/// let stream = device.default_stream();
/// let module = device.load_ptx(
///     ".version 8.0
///     .target sm_80
///     .address_size 64
///     .visible .entry add(.param .u64 x, .param .u32 n)
///     {
///         .reg .b32 %r<5>;
///         .reg .b64 %rd<3>;
///         ld.param.u64        %rd1, [x];
///         ld.param.u32        %r1, [n];
///         cvta.to.global.u64  %rd1, %rd1;
///         mov.u32             %r2, %tid.x;
///         mad.wide.u32        %rd2, %r2, 4, %rd1;
///         ld.global.u32       %r3, [%rd2];
///         add.u32             %r4, %r3, %r1;
///         st.global.u32       [%rd2], %r4;
///         ret;
///     }",
/// )?;
/// let add = module.load_function("add")?;
/// let x = stream.clone_htod(&[1u32, 2, 3])?;
/// let config = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (3, 1, 1), shared_mem_bytes: 0 };
/// // SAFETY: three threads read and write the three elements of `x`, which nothing else uses.
/// unsafe { stream.launch_builder(&add).arg(&x).arg(10u32).launch(config) }?;
/// assert_eq!(stream.clone_dtoh(&x)?, [11, 12, 13]);
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is launched before `launch`"]
pub struct LaunchBuilder<'a> {
    stream: &'a Stream,
    function: &'a Function,
    args: Vec<RawArg>,
    attributes: LaunchAttributes,
}

impl Stream {
    /// Begins a launch of a function with any parameters.
    pub fn launch_builder<'a>(&'a self, function: &'a Function) -> LaunchBuilder<'a> {
        let args = Vec::with_capacity(function.attributes().params.len());
        LaunchBuilder { stream: self, function, args, attributes: LaunchAttributes::default() }
    }
}

impl LaunchBuilder<'_> {
    /// Adds the next parameter. A buffer stays alive until the launch is complete.
    pub fn arg(mut self, arg: impl Into<RawArg>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Sets the attributes.
    pub fn attributes(mut self, attributes: LaunchAttributes) -> Self {
        self.attributes = attributes;
        self
    }

    /// Issues the launch on the stream.
    ///
    /// Refused if the number or the size of parameters does not match the function, if a buffer is not aligned as the
    /// parameter declares (`.ptr .align`), if the device or the function does not support the grid, the block, the
    /// shared memory or the attributes, or if a buffer is on another device than the stream.
    ///
    /// # Safety
    ///
    /// The kernel must access only memory of the buffers among its parameters, or of other buffers that outlive the
    /// launch, and write nothing that anything else uses at the same time. The virtual GPU reports other accesses and
    /// does not perform them; other devices perform them.
    #[allow(unsafe_code, reason = "what a kernel does with a raw parameter is the caller's promise")]
    pub unsafe fn launch(self, config: LaunchConfig) -> Result<()> {
        let LaunchBuilder { stream, function, args, attributes } = self;
        if function.device() != stream.device() {
            return Err(RuntimeError::OtherDevice { operation: "launch", what: "function" });
        }
        let shape = check(function, &args, config, attributes)
            .map_err(|violation| function.kernel().refuse(violation))?;
        let buffers = || {
            args.iter().filter_map(|arg| match &arg.0 {
                Value::Buffer(buffer) => Some(buffer),
                Value::Map(map) => Some(map.buffer()),
                Value::Param(_) => None,
            })
        };
        for buffer in buffers() {
            stream.must_own("launch", "buffer", buffer)?;
        }
        let params = args.iter().map(|arg| match &arg.0 {
            Value::Buffer(buffer) => Param::Address(buffer.device_ptr()),
            Value::Map(map) => Param::Bytes(map.as_bytes()[..].into()),
            Value::Param(param) => param.clone(),
        });
        let launch = function.kernel().launch((shape, Access::default()), params, buffers());
        stream.enqueue(Arc::new(launch).into(), buffers())
    }
}

/// Checks parameters, dimensions and attributes against the signature and the device.
fn check(
    function: &Function,
    args: &[RawArg],
    config: LaunchConfig,
    attributes: LaunchAttributes,
) -> Result<Shape, Violation> {
    let FunctionAttributes { params, static_shared, max_threads_per_block, required_block, .. } =
        function.attributes();
    if params.len() != args.len() {
        return Err(Violation::ParameterCount { given: args.len(), needed: params.len() });
    }
    for (index, (param, arg)) in params.iter().zip(args).enumerate() {
        let (given, needed) = (arg.bytes(), param.bytes as usize);
        if given != needed {
            return Err(Violation::ParameterSize { index, argument: param.name.clone(), given, needed });
        }
        if let (Value::Buffer(buffer), Some(align)) = (&arg.0, param.alignment) {
            let (given, needed) = (buffer.device_ptr(), u64::from(align));
            if !given.is_multiple_of(needed) {
                return Err(Violation::ParameterAlignment {
                    index,
                    argument: param.name.clone(),
                    given,
                    needed,
                });
            }
        }
    }
    let limits = Limits::of(function.device());
    let block = <[u32; 3]>::from(config.block_dim);
    let rule = match *required_block {
        Some(block) => Block::Exactly(block),
        None => Block::AtMost(limits.block),
    };
    limits.check_block(rule, *max_threads_per_block, block)?;
    let grid = limits.check_grid(<[u32; 3]>::from(config.grid_dim).map(u64::from))?;
    let (given, needed) = (config.shared_mem_bytes, function.max_dynamic_shared());
    if given > needed {
        let max = limits.shared.saturating_sub(*static_shared);
        return Err(Violation::DynamicShared { given, needed, max });
    }
    let cluster = attributes.cluster.map(<[u32; 3]>::from);
    limits.check_cluster(cluster, grid)?;
    let threads = block.iter().product();
    let LaunchAttributes { cooperative, dependent, .. } = attributes;
    let dynamic_shared = config.shared_mem_bytes;
    let shape = Shape { grid, block, dynamic_shared, cooperative, cluster, dependent };
    if shape.cooperative {
        let (given, needed) = (shape.blocks(), function.max_cooperative_grid(threads, shape.dynamic_shared));
        if given > needed {
            return Err(Violation::NotResident { given, needed });
        }
    }
    Ok(shape)
}
