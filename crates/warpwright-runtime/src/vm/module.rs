//! Modules of the virtual GPU, and launches of their kernels.

use super::launch::Launches;
use super::{Code, Worker};
use crate::backend;
use crate::contract::{Number, Param};
use crate::error::Result;
use crate::function::FunctionAttributes;
use crate::op::Shape;
use std::sync::Arc;
use warpwright_ptx::ir;
use warpwright_ptx::verify::ModuleInfo;
use warpwright_vm::{Arg, LaunchConfig};

/// A module that a virtual GPU has loaded.
pub(crate) struct Module {
    module: warpwright_vm::Module,
    launches: Arc<Launches>,
}

impl Worker {
    pub(crate) fn load(
        &self,
        module: &ir::Module,
        info: &ModuleInfo,
        text: Option<&str>,
    ) -> Result<backend::Module> {
        let loaded = self.device().load(module, info)?;
        let module = match text {
            Some(text) => loaded.with_text(text),
            None => loaded,
        };
        Ok(backend::Module::Vm(Module { module, launches: self.launches().clone() }))
    }

    pub(crate) fn occupancy(
        &self,
        module: &backend::Module,
        kernel: &str,
        threads: u32,
        dynamic_shared: u32,
    ) -> u32 {
        let kernel = module.vm().module.kernel(kernel);
        kernel.map_or(0, |kernel| self.device().occupancy(kernel, threads, dynamic_shared))
    }
}

impl Module {
    /// The attributes of a kernel, given those that the module declares.
    pub(crate) fn attributes(&self, kernel: &str, declared: FunctionAttributes) -> FunctionAttributes {
        let local_bytes = self.module.kernel(kernel).ok().map(|kernel| kernel.local_bytes);
        FunctionAttributes { local_bytes, ..declared }
    }

    pub(crate) fn code(&self, kernel: &Arc<str>, shape: Shape, params: impl Iterator<Item = Param>) -> Code {
        let Shape { grid, block, dynamic_shared, cooperative, cluster, dependent: _ } = shape;
        Code {
            module: self.module.clone(),
            launches: self.launches.clone(),
            kernel: kernel.clone(),
            config: LaunchConfig {
                grid_dim: grid.into(),
                block_dim: block.into(),
                shared_mem_bytes: dynamic_shared,
                cooperative,
                cluster_dim: cluster.map(Into::into),
            },
            args: params.map(arg).collect(),
        }
    }
}

/// The virtual GPU asks for the size of an argument alone.
fn arg(param: Param) -> Arg {
    match param {
        Param::Address(address) => Arg::Pointer(address),
        Param::Number(Number { ty, bytes }) => {
            let wide = u64::from_le_bytes(bytes);
            match ty.bytes() {
                1 => Arg::U8(wide as u8),
                2 => Arg::U16(wide as u16),
                4 => Arg::U32(wide as u32),
                _ => Arg::U64(wide),
            }
        }
        Param::Bytes(bytes) => Arg::Bytes(bytes.into()),
    }
}
