//! Kernels of modules: their attributes and their occupancy.

use crate::backend;
use crate::buffer::AnyBuffer;
use crate::contract::{ContractError, Param, Violation};
use crate::device::Device;
use crate::error::Result;
use crate::op::{Launch, Shape};
use crate::overlap::Access;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use warpwright_ptx::ir::{self, FunctionDirective, FunctionKind};
use warpwright_ptx::verify::{FunctionInfo, ModuleInfo};

/// The maximum number of threads of a block on any GPU.
const MAX_THREADS: u32 = 1024;

/// A kernel of a module. A cheap handle: its clones, and further lookups of the name in the module, are the same
/// function.
#[derive(Clone)]
pub struct Function {
    device: Device,
    kernel: Arc<Kernel>,
}

/// Attributes of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionAttributes {
    /// Its parameters, in order.
    pub params: Vec<FunctionParam>,
    /// Static shared memory of a block, in bytes.
    pub static_shared: u64,
    /// The maximum number of threads of a block: the PTX's limit (`.maxntid`, or the product of `.reqntid`), or less if
    /// the compiler assigned many registers to each thread.
    pub max_threads_per_block: u32,
    /// The only block that it runs with (`.reqntid`), in threads along x, y and z.
    pub required_block: Option<[u32; 3]>,
    /// Registers of a thread; a virtual GPU does not allocate registers as a GPU does.
    pub registers: Option<u32>,
    /// Local memory of a thread, in bytes: its variables and, if a compiler allocated registers, those that were
    /// spilled.
    pub local_bytes: Option<u64>,
    /// Whether it contains `griddepcontrol.wait`, so that its launches may be programmatic dependent launches.
    pub waits_for_grids: bool,
    /// Whether each thread does so before it lets dependent grids begin and before it ends.
    pub waits_first: bool,
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionParam {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u32,
    /// Whether the PTX says that it is a pointer.
    pub is_pointer: bool,
    /// The alignment that the PTX declares for an address given for it, in bytes.
    pub alignment: Option<u32>,
}

/// The kernels of a module, with what the module declares of them.
pub(crate) fn declared<'a>(
    module: &'a ir::Module,
    info: &'a ModuleInfo,
) -> impl Iterator<Item = (String, FunctionAttributes)> + 'a {
    let functions = module.functions().zip(&info.functions);
    let kernels =
        functions.filter(|(function, _)| function.kind == FunctionKind::Entry && function.body.is_some());
    kernels.map(|(function, info)| (function.name.to_string(), FunctionAttributes::declared(function, info)))
}

impl FunctionAttributes {
    fn declared(function: &ir::Function, info: &FunctionInfo) -> Self {
        let variables = function.params.iter().filter_map(|param| match param {
            ir::Param::Variable(id) => Some(function.variable(*id)),
            ir::Param::Register(_) => None,
        });
        let params = variables.map(|variable| FunctionParam {
            name: variable.name.to_string(),
            bytes: variable.bytes().and_then(|bytes| bytes.try_into().ok()).unwrap_or(0),
            is_pointer: variable.pointee.is_some(),
            alignment: variable.pointee.and_then(|pointee| pointee.align),
        });
        let mut attributes = FunctionAttributes {
            params: params.collect(),
            static_shared: info.static_shared,
            max_threads_per_block: MAX_THREADS,
            required_block: None,
            registers: None,
            local_bytes: None,
            waits_for_grids: info.waits_for_grids,
            waits_first: info.waits_first,
        };
        for directive in &function.directives {
            match directive {
                FunctionDirective::ReqNtid(dims) => {
                    let dim = |axis: usize| dims.get(axis).copied().unwrap_or(1);
                    attributes.required_block = Some(std::array::from_fn(dim));
                    attributes.max_threads_per_block = product(dims).min(MAX_THREADS);
                }
                FunctionDirective::MaxNtid(dims) => {
                    attributes.max_threads_per_block = product(dims).min(MAX_THREADS);
                }
                _ => {}
            }
        }
        attributes
    }
}

fn product(dims: &[u32]) -> u32 {
    dims.iter().fold(1, |product, &n| product.saturating_mul(n))
}

/// A kernel of a loaded module without a handle of its device, so that the device can hold it.
pub(crate) struct Kernel {
    pub(crate) name: Arc<str>,
    pub(crate) module: Arc<backend::Module>,
    pub(crate) attributes: FunctionAttributes,
    /// Dynamic shared memory that launches may use; `u32::MAX` for the default.
    max_dynamic_shared: AtomicU32,
}

impl Kernel {
    pub(crate) fn new(name: &str, module: Arc<backend::Module>, attributes: FunctionAttributes) -> Self {
        Kernel { name: name.into(), module, attributes, max_dynamic_shared: AtomicU32::new(u32::MAX) }
    }

    /// A fully checked launch of it.
    pub(crate) fn launch<'a>(
        &self,
        (mut shape, access): (Shape, Access),
        params: impl Iterator<Item = Param>,
        buffers: impl Iterator<Item = &'a AnyBuffer>,
    ) -> Launch {
        // Without a wait nothing would order it behind anything; the blocks of a cooperative grid need the whole device.
        shape.dependent &= self.attributes.waits_for_grids && !shape.cooperative;
        let mut memory = Vec::with_capacity(buffers.size_hint().0);
        buffers.for_each(|buffer| buffer.reach(&mut memory));
        Launch {
            kernel: self.name.clone(),
            shape,
            access,
            waits_first: self.attributes.waits_first,
            code: self.module.code(&self.name, shape, params),
            _memory: memory,
        }
    }

    pub(crate) fn refuse(&self, violation: Violation) -> ContractError {
        ContractError::new(&self.name, violation)
    }
}

impl Function {
    pub(crate) fn new(device: Device, kernel: Arc<Kernel>) -> Self {
        Function { device, kernel }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.kernel.name
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Its attributes.
    pub fn attributes(&self) -> &FunctionAttributes {
        &self.kernel.attributes
    }

    pub(crate) fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    /// The dynamic shared memory that a launch may use, in bytes: by default, what 48 KiB leave beside the static
    /// shared memory; otherwise the value of [`set_max_dynamic_shared`](Self::set_max_dynamic_shared).
    pub fn max_dynamic_shared(&self) -> u32 {
        match self.kernel.max_dynamic_shared.load(Relaxed) {
            u32::MAX => {
                let max = self.device.properties().shared_per_block;
                u32::try_from(max.saturating_sub(self.kernel.attributes.static_shared)).unwrap_or(u32::MAX)
            }
            bytes => bytes,
        }
    }

    /// Allows launches that much dynamic shared memory. Kernels of the DSL do this by themselves.
    pub fn set_max_dynamic_shared(&self, bytes: u32) -> Result<()> {
        let given = self.kernel.attributes.static_shared + u64::from(bytes);
        let needed = self.device.properties().shared_per_block_optin;
        if given > needed {
            return Err(self.kernel.refuse(Violation::SharedMemory { given, needed }).into());
        }
        self.kernel.module.allow_dynamic_shared(&self.kernel.name, bytes)?;
        self.kernel.max_dynamic_shared.store(bytes, Relaxed);
        Ok(())
    }

    /// The number of blocks of that size, with that much dynamic shared memory, that are resident on a multiprocessor
    /// at once; 0 if no such block runs.
    pub fn occupancy(&self, block_threads: u32, dynamic_shared: u32) -> u32 {
        self.device.backend().occupancy(&self.kernel.module, &self.kernel.name, block_threads, dynamic_shared)
    }

    /// The number of blocks of that size, with that much dynamic shared memory, that are resident on the device at
    /// once: the largest grid of a cooperative launch.
    pub fn max_cooperative_grid(&self, block_threads: u32, dynamic_shared: u32) -> u64 {
        let per_multiprocessor = u64::from(self.occupancy(block_threads, dynamic_shared));
        per_multiprocessor * u64::from(self.device.properties().multiprocessors)
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("name", &self.name()).finish_non_exhaustive()
    }
}
