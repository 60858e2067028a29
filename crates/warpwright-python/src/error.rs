//! Errors as Python's exceptions: those of `warpwright.errors`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The exception of that name, with a message.
fn exception(py: Python<'_>, class: &PyOnceLock<Py<PyType>>, name: &str, message: String) -> PyErr {
    match class.import(py, "warpwright.errors", name) {
        Ok(class) => PyErr::from_type(class.clone(), (message,)),
        Err(error) => error,
    }
}

/// A device refuses something.
pub(crate) fn refused(py: Python<'_>, error: impl ToString) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    exception(py, &CLASS, "WarpwrightError", error.to_string())
}

/// A text is not PTX that a device runs.
pub(crate) fn not_ptx(py: Python<'_>, message: String) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    exception(py, &CLASS, "PtxError", message)
}
