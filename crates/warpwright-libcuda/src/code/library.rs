//! Libraries: code without a context. It is compiled for a context on its first use there.

use super::module::{Module, unload_librarys};
use super::{Function, Image, MODULES, Managed, Options};
use crate::lock;
use crate::report::log;
use crate::state::{Context, Device, Handles, Kind};
use crate::types::{CUkernel, CUlibrary, CUmodule, Result, Status};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, Weak};

/// All libraries.
pub(crate) static LIBRARIES: Handles<Library> = Handles::new(Kind::Library);

/// The kernels of all libraries.
pub(crate) static KERNELS: Handles<Kernel> = Handles::new(Kind::Kernel);

/// A library.
pub(crate) struct Library {
    pub(crate) handle: CUlibrary,
    image: Image,
    max_registers: Option<u32>,
    pub(crate) kernels: Vec<Arc<Kernel>>,
    modules: Mutex<Modules>,
}

/// The modules of a library.
#[derive(Default)]
struct Modules {
    /// That of each context, by the context's number.
    by_context: HashMap<u64, CUmodule>,
    /// The managed variables, which they share.
    managed: Managed,
}

impl Modules {
    /// Loads the module of a context.
    fn load(&mut self, context: &Arc<Context>, image: &Image, options: &mut Options) -> Result<Arc<Module>> {
        let handle = Module::load(context, image, options, Some(&self.managed))?;
        self.by_context.insert(context.id, handle);
        let module = MODULES.get(handle.0)?;
        self.managed = module.code.managed.clone();
        Ok(module)
    }
}

/// A kernel of a library.
pub(crate) struct Kernel {
    pub(crate) handle: CUkernel,
    library: Weak<Library>,
    pub(crate) c_name: CString,
}

impl Library {
    /// Loads code. It is compiled at once for the current context, if there is one, so that errors are known.
    pub(crate) fn load(image: Image, options: &mut Options) -> Result<CUlibrary> {
        let context = crate::state::stack::top().filter(|context| context.is_alive());
        let mut modules = Modules::default();
        let names = match &context {
            Some(context) => {
                let module = modules.load(context, &image, options)?;
                module.functions.iter().map(|function| function.c_name.clone()).collect()
            }
            None => kernels_of(&image, options)?,
        };
        let mut kernels = Vec::with_capacity(names.len());
        let (handle, _) = LIBRARIES.insert_with(|handle| {
            Arc::new_cyclic(|library: &Weak<Library>| {
                for c_name in names {
                    let kernel = |handle| {
                        Arc::new(Kernel { handle: CUkernel(handle), library: library.clone(), c_name })
                    };
                    kernels.extend(KERNELS.insert_with(kernel).ok().map(|(_, kernel)| kernel));
                }
                Library {
                    handle: CUlibrary(handle),
                    image,
                    max_registers: options.max_registers,
                    kernels,
                    modules: Mutex::new(modules),
                }
            })
        })?;
        Ok(CUlibrary(handle))
    }

    /// The kernel of that name.
    pub(crate) fn kernel(&self, name: &str) -> Result<&Arc<Kernel>> {
        let found = self.kernels.iter().find(|kernel| kernel.c_name.as_bytes() == name.as_bytes());
        found.ok_or_else(|| {
            log::misuse(&format_args!("the library has no kernel `{name}`"));
            Status::NOT_FOUND
        })
    }

    /// Its module in a context.
    pub(crate) fn module(&self, context: &Arc<Context>) -> Result<CUmodule> {
        let mut modules = lock(&self.modules);
        if let Some(module) = modules.by_context.get(&context.id) {
            return Ok(*module);
        }
        let mut options = Options::with_registers(self.max_registers);
        modules.load(context, &self.image, &mut options)?;
        modules.by_context.get(&context.id).copied().ok_or(Status::INVALID_HANDLE)
    }
}

impl Kernel {
    /// Its library.
    pub(crate) fn library(&self) -> Result<Arc<Library>> {
        self.library.upgrade().ok_or(Status::INVALID_HANDLE)
    }

    /// Its function in a context.
    pub(crate) fn function(&self, context: &Arc<Context>) -> Result<Arc<Function>> {
        let module = MODULES.get(self.library()?.module(context)?.0)?;
        let name = self.c_name.to_str().map_err(|_| Status::NOT_FOUND)?;
        module.function(name).cloned()
    }

    /// Its function on a device: in the primary context, or in the current one if that belongs to the device.
    pub(crate) fn function_on(&self, device: &Arc<Device>) -> Result<Arc<Function>> {
        let current = crate::state::current()?;
        if Arc::ptr_eq(&current.device, device) {
            return self.function(&current);
        }
        let library = self.library()?;
        let ids: Vec<u64> = lock(&library.modules).by_context.keys().copied().collect();
        let contexts = crate::state::CONTEXTS.alive();
        let contexts = contexts.iter().map(|alive| &alive.object);
        let mut there = contexts.filter(|context| Arc::ptr_eq(&context.device, device));
        let context = there.find(|context| ids.contains(&context.id) || context.is_primary);
        self.function(context.ok_or(Status::INVALID_CONTEXT)?)
    }
}

/// The kernels of code that no context uses yet: it is checked for the first device.
fn kernels_of(image: &Image, options: &mut Options) -> Result<Vec<CString>> {
    let state = crate::state::state()?;
    let device = state.device(0)?;
    let checked = super::check(&image.loadable(device.arch())?, device.arch(), options)?;
    Ok(checked.kernels().filter_map(|name| CString::new(name).ok()).collect())
}

/// Unloads a library from all contexts.
pub(crate) fn unload(handle: CUlibrary) -> Result<()> {
    let library = LIBRARIES.remove(handle.0)?;
    for kernel in &library.kernels {
        // It exists, since only this code removes handles of kernels.
        let _ = KERNELS.remove(kernel.handle.0);
    }
    let modules = std::mem::take(&mut *lock(&library.modules));
    modules.by_context.into_values().for_each(unload_librarys);
    Ok(())
}

/// Removes the modules of a destroyed context.
pub(super) fn forget(context: &Context) {
    for library in LIBRARIES.alive() {
        lock(&library.object.modules).by_context.remove(&context.id);
    }
}
