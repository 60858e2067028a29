//! The virtual GPU in Python: the native part of the package `warpwright`.
//!
//! ```text
//! Device ─┬─ load ── Module ── Kernel ─┐
//!         ├─ lend ── Memory            ├─ launch ── Launched
//!         └────────────────────────────┘
//! ```
//!
//! It knows addresses and bytes; arrays, tensors and what arguments mean are the business of the package's Python.
//! Its interface is described in `_warpwright.pyi`, beside that.
#![deny(unsafe_code)]

mod device;
mod documents;
mod error;
mod launch;
mod memory;
mod module;
mod tensor_map;

use pyo3::prelude::*;

/// The module.
#[pymodule]
fn _warpwright(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<device::Device>()?;
    module.add_class::<module::Module>()?;
    module.add_class::<module::Kernel>()?;
    module.add_class::<module::Param>()?;
    module.add_class::<memory::Memory>()?;
    module.add_class::<launch::Launched>()?;
    module.add_function(wrap_pyfunction!(documents::sarif, module)?)?;
    module.add_function(wrap_pyfunction!(documents::junit, module)?)?;
    module.add_function(wrap_pyfunction!(tensor_map::tensor_map, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
