//! Tensor maps.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use warpwright_vm::{TensorElement, TensorInterleave, TensorMap, TensorSwizzle};

/// The 128 bytes of the map of a tensor at an address, its innermost dimension first.
#[pyfunction]
#[pyo3(signature = (address, element, dims, strides, tile, swizzle, *, nan))]
#[expect(clippy::too_many_arguments, reason = "what a map is made of")]
pub(crate) fn tensor_map<'py>(
    python: Python<'py>,
    address: u64,
    element: u8,
    dims: Vec<u64>,
    strides: Vec<u64>,
    tile: Vec<u32>,
    swizzle: u8,
    nan: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let missing = |what: &str, number: u8| {
        PyValueError::new_err(format!("tensor maps of {what} {number} are not supported"))
    };
    let map = TensorMap {
        address,
        element: TensorElement::from_ptx(element).ok_or_else(|| missing("elements of type", element))?,
        steps: vec![1; dims.len()],
        dims,
        strides,
        tile,
        swizzle: TensorSwizzle::from_driver(swizzle).ok_or_else(|| missing("swizzling", swizzle))?,
        interleave: TensorInterleave::None,
        im2col: None,
        nan_fill: nan,
    };
    let bytes = map.to_bytes().map_err(|wrong| PyValueError::new_err(format!("a tensor map: {wrong}")))?;
    Ok(PyBytes::new(python, &bytes))
}
