//! Modules: PTX loaded on a device.

use crate::backend;
use crate::device::Device;
use crate::error::{Result, RuntimeError};
use crate::function::{self, Function, Kernel};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use warpwright_ptx::ir;
use warpwright_ptx::verify::ModuleInfo;

/// PTX loaded on a device. A cheap handle: its clones are one module, which lives as long as one of them, one of its
/// [`Function`]s or a launch.
#[derive(Clone)]
pub struct Module {
    device: Device,
    /// By name.
    kernels: Arc<BTreeMap<String, Arc<Kernel>>>,
    loaded: Arc<backend::Module>,
}

impl Device {
    /// Parses, verifies and loads a PTX text.
    pub fn load_ptx(&self, text: &str) -> Result<Module> {
        let module = warpwright_ptx::parse(text).map_err(RuntimeError::Invalid)?;
        let info = warpwright_ptx::verify(&module).map_err(RuntimeError::Invalid)?;
        self.load_text(&module, &info, Some(text))
    }

    /// Loads a module that the verifier has accepted: `info` is the verifier's result for this very module.
    pub fn load(&self, module: &ir::Module, info: &ModuleInfo) -> Result<Module> {
        self.load_text(module, info, None)
    }

    fn load_text(&self, module: &ir::Module, info: &ModuleInfo, text: Option<&str>) -> Result<Module> {
        let loaded = Arc::new(self.backend().load(module, info, text)?);
        let kernels = function::declared(module, info).map(|(name, declared)| {
            let attributes = loaded.attributes(&name, declared);
            let kernel = Kernel::new(&name, loaded.clone(), attributes);
            (name, Arc::new(kernel))
        });
        let kernels = Arc::new(kernels.collect());
        Ok(Module { device: self.clone(), kernels, loaded })
    }
}

impl Module {
    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The names of its kernels, sorted.
    pub fn function_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.kernels.keys().map(String::as_str)
    }

    /// What the driver's compiler said when it compiled the module: registers, stack and spills of its kernels. Empty
    /// for modules that came from the cache, and on virtual GPUs, which do not compile.
    pub fn compiler_log(&self) -> &str {
        self.loaded.compiler_log()
    }

    /// The kernel of that name.
    pub fn load_function(&self, name: &str) -> Result<Function> {
        Ok(Function::new(self.device.clone(), self.kernel(name)?))
    }

    /// The kernel of that name, without a handle of the device.
    pub(crate) fn kernel(&self, name: &str) -> Result<Arc<Kernel>> {
        self.kernels.get(name).cloned().ok_or_else(|| RuntimeError::UnknownFunction {
            name: name.to_owned(),
            known: self.kernels.keys().cloned().collect(),
        })
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.function_names().collect();
        f.debug_struct("Module").field("functions", &names).finish_non_exhaustive()
    }
}
