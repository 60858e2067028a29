//! Kernels of modules: what they are like, and how many of their blocks fit on the device.

use crate::backend;
use crate::buffer::AnyBuffer;
use crate::contract::{ContractError, Param, Violation};
use crate::device::Device;
use crate::error::Result;
use crate::op::{Launch, Shape};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use warpwright_ptx::ir::{self, FunctionDirective, FunctionKind};
use warpwright_ptx::verify::{FunctionInfo, ModuleInfo};

/// The most threads that a block has on any GPU.
const MAX_THREADS: u32 = 1024;

/// A kernel of a module. A cheap handle: its clones are one function, and so is what a module yields again for its
/// name.
#[derive(Clone)]
pub struct Function {
    device: Device,
    kernel: Arc<Kernel>,
}

/// What a kernel is like.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionAttributes {
    /// Its parameters, in order.
    pub params: Vec<FunctionParam>,
    /// Shared memory that every block has, in bytes.
    pub static_shared: u64,
    /// The most threads of a block: what the PTX says (`.maxntid`, or the product of `.reqntid`), and fewer where a
    /// compiler has given each thread many registers.
    pub max_threads_per_block: u32,
    /// The only block that it runs with (`.reqntid`), in threads along x, y and z.
    pub required_block: Option<[u32; 3]>,
    /// Registers of a thread. A virtual GPU does not assign registers as a GPU has them.
    pub registers: Option<u32>,
    /// Local memory of a thread, in bytes: its variables, and where a compiler has assigned registers, those that had to
    /// go there.
    pub local_bytes: Option<u64>,
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionParam {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u32,
    /// Whether the PTX says that it is a pointer.
    pub is_pointer: bool,
    /// What the PTX says that an address given for it is a multiple of, in bytes.
    pub alignment: Option<u32>,
}

/// The kernels of a module, and what the module itself says of them.
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

/// A kernel of a loaded module, without a handle of its device: what the device itself may hold.
pub(crate) struct Kernel {
    pub(crate) name: Arc<str>,
    pub(crate) module: Arc<backend::Module>,
    pub(crate) attributes: FunctionAttributes,
    /// Dynamic shared memory that launches may have; `u32::MAX` for what they have without being allowed more.
    max_dynamic_shared: AtomicU32,
}

impl Kernel {
    pub(crate) fn new(name: &str, module: Arc<backend::Module>, attributes: FunctionAttributes) -> Self {
        Kernel { name: name.into(), module, attributes, max_dynamic_shared: AtomicU32::new(u32::MAX) }
    }

    /// A launch of it with all checks done.
    pub(crate) fn launch<'a>(
        &self,
        shape: Shape,
        params: impl Iterator<Item = Param>,
        buffers: impl Iterator<Item = &'a AnyBuffer>,
    ) -> Launch {
        let mut memory = Vec::with_capacity(buffers.size_hint().0);
        buffers.for_each(|buffer| buffer.reach(&mut memory));
        Launch {
            kernel: self.name.clone(),
            shape,
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

    /// What it is like.
    pub fn attributes(&self) -> &FunctionAttributes {
        &self.kernel.attributes
    }

    pub(crate) fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    /// Dynamic shared memory that a launch may have, in bytes: what 48 KiB leave beside the static shared memory,
    /// until [`set_max_dynamic_shared`](Self::set_max_dynamic_shared) says otherwise.
    pub fn max_dynamic_shared(&self) -> u32 {
        match self.kernel.max_dynamic_shared.load(Relaxed) {
            u32::MAX => {
                let max = self.device.properties().shared_per_block;
                u32::try_from(max.saturating_sub(self.kernel.attributes.static_shared)).unwrap_or(u32::MAX)
            }
            bytes => bytes,
        }
    }

    /// Allows launches that much dynamic shared memory. Kernels of the DSL allow themselves what they need.
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

    /// How many blocks of so many threads and bytes of dynamic shared memory are resident on a multiprocessor at
    /// once; 0 where no such block runs.
    pub fn occupancy(&self, block_threads: u32, dynamic_shared: u32) -> u32 {
        self.device.backend().occupancy(&self.kernel.module, &self.kernel.name, block_threads, dynamic_shared)
    }

    /// How many blocks of so many threads and bytes of dynamic shared memory are resident on the device at once: the
    /// largest grid of a cooperative launch.
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
