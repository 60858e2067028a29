//! Modules: code on a device, its functions and variables. A library becomes a module in each context that uses it.
//!
//! **Unloaded code is not run**: launches that were issued before hold the code and go on, and every path to a later
//! one checks that the module is still loaded, graphs too.

use super::{Facts, Function, Image, Managed, Options, compile};
use crate::graph::guard;
use crate::report::log;
use crate::state::{Context, Handles, Kind};
use crate::types::{CUdeviceptr, CUfunction, CUmodule, Result, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// All modules, including those of libraries.
pub(crate) static MODULES: Handles<Module> = Handles::new(Kind::Module);

/// The functions of all modules.
pub(crate) static FUNCTIONS: Handles<Function> = Handles::new(Kind::Function);

/// The code of a module, which its functions keep alive.
pub(crate) struct Code {
    pub(crate) context: Arc<Context>,
    vm: warpwright_vm::Module,
    pub(crate) facts: Facts,
    pub(super) managed: Managed,
    pub(crate) max_registers: Option<u32>,
    is_loaded: AtomicBool,
}

impl Code {
    /// The virtual GPU's module.
    pub(crate) fn vm(&self) -> &warpwright_vm::Module {
        &self.vm
    }

    /// Whether it may be launched.
    pub(crate) fn is_loaded(&self) -> bool {
        self.is_loaded.load(Relaxed)
    }
}

/// A module.
pub(crate) struct Module {
    pub(crate) code: Arc<Code>,
    pub(crate) functions: Vec<Arc<Function>>,
    /// Whether it belongs to a library, and is unloaded with it.
    pub(crate) is_librarys: bool,
}

impl Module {
    /// Compiles code for a context, and loads it there; for a library, with the managed variables that it has.
    pub(crate) fn load(
        context: &Arc<Context>,
        image: &Image,
        options: &mut Options,
        librarys: Option<&Managed>,
    ) -> Result<CUmodule> {
        context.check()?;
        guard::may_wait()?;
        let text = image.loadable(context.device.arch())?;
        let none = Managed::default();
        let (vm, facts, managed) = compile(&text, context, options, librarys.unwrap_or(&none))?;
        let code = Arc::new(Code {
            context: context.clone(),
            vm,
            facts,
            managed,
            max_registers: options.max_registers,
            is_loaded: AtomicBool::new(true),
        });
        let (handle, _) = MODULES.insert_with(|handle| {
            let functions = Function::all(&code, CUmodule(handle));
            Arc::new(Module { code: code.clone(), functions, is_librarys: librarys.is_some() })
        })?;
        Ok(CUmodule(handle))
    }

    /// The function of that name.
    pub(crate) fn function(&self, name: &str) -> Result<&Arc<Function>> {
        let found = self.functions.iter().find(|function| function.name() == name);
        found.ok_or_else(|| {
            let known: Vec<&str> = self.functions.iter().map(|function| function.name()).collect();
            match known.as_slice() {
                [] => log::misuse(&format_args!("the module has no kernels, and so no `{name}`")),
                known => log::misuse(&format_args!(
                    "the module has no kernel `{name}`: it has {}",
                    known.join(", ")
                )),
            }
            Status::NOT_FOUND
        })
    }

    /// Address and size of the variable of that name.
    pub(crate) fn variable(&self, name: &str) -> Result<(CUdeviceptr, usize)> {
        let (address, bytes) = self.code.vm.variable(name).ok_or_else(|| {
            log::misuse(&format_args!("the module has no global or constant variable `{name}`"));
            Status::NOT_FOUND
        })?;
        Ok((address, usize::try_from(bytes).map_err(|_| Status::OUT_OF_MEMORY)?))
    }

    /// Address and size of the managed variable of that name.
    pub(crate) fn managed(&self, name: &str) -> Result<(CUdeviceptr, usize)> {
        let (address, bytes) = self.code.managed.get(name).ok_or(Status::NOT_FOUND)?;
        Ok((address, usize::try_from(bytes).map_err(|_| Status::OUT_OF_MEMORY)?))
    }

    fn unload(&self) {
        self.code.is_loaded.store(false, Relaxed);
        for function in &self.functions {
            // It exists, since only this code removes handles of functions.
            let _ = FUNCTIONS.remove(function.handle.0);
        }
    }
}

/// The module of a handle, which must be loaded in the current context.
pub(crate) fn module(handle: CUmodule) -> Result<Arc<Module>> {
    let context = crate::state::current()?;
    let module = MODULES.get(handle.0)?;
    if module.code.context.id != context.id {
        log::misuse(&format_args!("the module {:#x} is loaded in another context", handle.0));
        return Err(Status::INVALID_HANDLE);
    }
    Ok(module)
}

/// Unloads a client's module.
pub(crate) fn unload(handle: CUmodule) -> Result<()> {
    if module(handle)?.is_librarys {
        log::misuse(&"the module belongs to a library: unload that");
        return Err(Status::NOT_PERMITTED);
    }
    MODULES.remove(handle.0)?.unload();
    Ok(())
}

/// Unloads a library's module.
pub(super) fn unload_librarys(handle: CUmodule) {
    // It may have been unloaded with its context.
    if let Some(module) = MODULES.find(handle.0).is_ok().then(|| MODULES.remove(handle.0).ok()).flatten() {
        module.unload();
    }
}

/// Unloads the modules of a destroyed context.
pub(crate) fn forget(context: &Context) {
    for handle in MODULES.handles(|module| module.code.context.id == context.id) {
        if let Ok(module) = MODULES.remove(handle) {
            module.unload();
        }
    }
    super::library::forget(context);
}

/// The function of a handle, or of a kernel's handle in the current context: the interface takes both.
pub(crate) fn function(handle: CUfunction) -> Result<Arc<Function>> {
    crate::state::state()?;
    let function = match FUNCTIONS.find(handle.0) {
        Ok(function) => function,
        Err(_) => match super::library::KERNELS.find(handle.0) {
            Ok(kernel) => kernel.function(&crate::state::current()?)?,
            Err(_) => FUNCTIONS.get(handle.0)?,
        },
    };
    function.code.context.check()?;
    Ok(function)
}
