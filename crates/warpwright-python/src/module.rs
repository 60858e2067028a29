//! Modules, their kernels, and the kernels' parameters.

use crate::device::Device;
use crate::error::refused;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use warpwright_vm as vm;

/// A module on a device.
#[pyclass(frozen, module = "warpwright._warpwright")]
pub(crate) struct Module {
    module: vm::Module,
    texts: Arc<Texts>,
    copies: Arc<Copies>,
}

/// A module and its copies, as far as no kernel uses them, each with what its variables held at first; none of a module
/// without variables.
type Copies = Mutex<Vec<(vm::Module, vm::SavedVariables)>>;

impl Module {
    pub(crate) fn new(module: vm::Module, texts: Texts) -> Module {
        let first = module.has_state().then(|| (module.clone(), module.save_variables()));
        Module { module, texts: Arc::new(texts), copies: Arc::new(Mutex::new(first.into_iter().collect())) }
    }
}

/// What reports show of a module.
pub(crate) struct Texts {
    /// What messages call its PTX.
    pub(crate) name: String,
    /// Sources that it was compiled from, by the names that it has for them, if they are in no files.
    pub(crate) sources: HashMap<String, String>,
}

/// A kernel of a module.
#[pyclass(frozen, module = "warpwright._warpwright")]
pub(crate) struct Kernel {
    pub(crate) module: vm::Module,
    pub(crate) info: vm::KernelInfo,
    pub(crate) texts: Arc<Texts>,
    copies: Arc<Copies>,
    /// What its variables held at first, if the module is this kernel's alone.
    first: Option<vm::SavedVariables>,
}

impl Drop for Kernel {
    fn drop(&mut self) {
        if let Some(first) = self.first.take() {
            self.copies.lock().unwrap_or_else(PoisonError::into_inner).push((self.module.clone(), first));
        }
    }
}

/// A parameter of a kernel.
#[pyclass(frozen, get_all, module = "warpwright._warpwright")]
pub(crate) struct Param {
    name: String,
    r#type: &'static str,
    bytes: u32,
    offset: u32,
    is_pointer: bool,
    is_array: bool,
}

#[pymethods]
impl Module {
    /// Names of its kernels, sorted.
    #[getter]
    fn kernels(&self) -> Vec<String> {
        let mut names: Vec<_> = self.module.kernels().map(|kernel| kernel.name.clone()).collect();
        names.sort_unstable();
        names
    }

    #[pyo3(signature = (name = None))]
    fn kernel(&self, py: Python<'_>, name: Option<&str>) -> PyResult<Kernel> {
        let names = self.kernels();
        let name = match (name, &names[..]) {
            (Some(name), _) => name,
            (None, [only]) => only,
            (None, []) => return Err(refused(py, format!("{} has no kernel", self.texts.name))),
            (None, _) => {
                let names = names.join(", ");
                return Err(refused(
                    py,
                    format!("{} has several kernels: say which, of {names}", self.texts.name),
                ));
            }
        };
        let info = self.module.kernel(name).map_err(|error| refused(py, error))?.clone();
        let (module, texts, copies) = (self.module.clone(), self.texts.clone(), self.copies.clone());
        Ok(Kernel { module, info, texts, copies, first: None })
    }
}

#[pymethods]
impl Kernel {
    #[getter]
    fn name(&self) -> &str {
        &self.info.name
    }

    /// The kernel in its module, or in a copy of it, with the first values of all variables. Nothing else uses the module
    /// for as long as the kernel is there. `None` if there are no variables that keep what launches leave in them.
    fn afresh(&self, py: Python<'_>, device: &Device) -> PyResult<Option<Kernel>> {
        if !self.module.has_state() {
            return Ok(None);
        }
        let spare = self.copies.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let (module, first) = match spare {
            Some((module, first)) => {
                first.restore();
                (module, first)
            }
            None => {
                let load = || device.device.load_again(&self.module);
                let module = py.detach(load).map_err(|error| refused(py, error))?;
                let first = module.save_variables();
                (module, first)
            }
        };
        let info = module.kernel(&self.info.name).map_err(|error| refused(py, error))?.clone();
        let (texts, copies) = (self.texts.clone(), self.copies.clone());
        Ok(Some(Kernel { module, info, texts, copies, first: Some(first) }))
    }

    #[getter]
    fn params(&self) -> Vec<Param> {
        let param = |param: &vm::KernelParam| Param {
            name: param.name.clone(),
            r#type: param.ty.name(),
            bytes: param.bytes,
            offset: param.offset,
            is_pointer: param.is_pointer,
            is_array: param.is_array,
        };
        self.info.params.iter().map(param).collect()
    }

    #[getter]
    fn static_shared(&self) -> u64 {
        self.info.static_shared
    }

    #[getter]
    fn required_block(&self) -> Option<(u32, u32, u32)> {
        self.info.required_block.map(Into::into)
    }

    #[getter]
    fn max_threads(&self) -> Option<u32> {
        self.info.max_threads
    }
}
