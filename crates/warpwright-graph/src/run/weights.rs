//! Weights of a store: from the bytes of a GGUF file to the layouts that plans ask for.
//!
//! A matrix is on the device in rows, in planes or in both. It is uploaded in rows, and [`Repack`] makes planes on the
//! device. Rows that no plan has asked for are freed when the planes exist; if a plan asks for them later, [`Unpack`]
//! restores them bit for bit.

use super::error::StoreError;
use super::store::Store;
use crate::graph::{Element, TensorType};
use crate::launch::{WeightLayout, planes};
use warpwright_dsl::any::AnyKernel;
use warpwright_kernels::WeightFormat;
use warpwright_kernels::weights::{Repack, Unpack};
use warpwright_ptx::ir::Type;
use warpwright_runtime::{AnyBuffer, RuntimeError};

/// A weight on the device.
#[derive(Debug)]
pub(super) struct Weight {
    pub(super) ty: TensorType,
    /// A matrix of weights as in a GGUF file, or the numbers of any other tensor.
    pub(super) rows: Option<AnyBuffer>,
    pub(super) planes: Option<AnyBuffer>,
    /// Whether a plan takes the rows.
    wanted_rows: bool,
}

impl Weight {
    /// A weight as it was added.
    fn of(ty: TensorType, rows: AnyBuffer) -> Self {
        Weight { ty, rows: Some(rows), planes: None, wanted_rows: false }
    }

    /// Format, rows and columns, where it is a matrix of weights.
    pub(super) fn matrix(&self) -> Option<(WeightFormat, u32, u32)> {
        match (self.ty.element, self.ty.shape.dims()) {
            (Element::Weights(format), &[n, k]) => Some((format, n, k)),
            _ => None,
        }
    }
}

impl Store {
    /// Adds a matrix of `n` rows of `k` weights from its bytes in a GGUF file.
    pub fn add_matrix(
        &mut self,
        name: &str,
        format: WeightFormat,
        n: u32,
        k: u32,
        rows: &[u8],
    ) -> Result<(), StoreError> {
        self.add_weight(name, TensorType::new(Element::Weights(format), [n, k]), rows)
    }

    /// Adds a vector of `f32`: norm weights, a bias, frequency factors.
    pub fn add_vector(&mut self, name: &str, values: &[f32]) -> Result<(), StoreError> {
        let len = u32::try_from(values.len()).unwrap_or(u32::MAX);
        self.add_weight(name, TensorType::f32([len]), bytemuck::cast_slice(values))
    }

    /// Adds a weight of any type: a weight matrix as its bytes in a GGUF file, anything else as its elements,
    /// little-endian.
    pub fn add_weight(&mut self, name: &str, ty: TensorType, bytes: &[u8]) -> Result<(), StoreError> {
        if self.weights.contains_key(name) {
            return Err(StoreError::Twice { name: name.into() });
        }
        let (needed, element) = size(name, ty)?;
        if bytes.len() as u64 != needed {
            let given = bytes.len() as u64;
            return Err(StoreError::Length { name: name.into(), ty, unit: "bytes", given, needed });
        }
        let buffer = self.stream.clone_htod(bytes).and_then(|buffer| buffer.as_any().cast(element));
        let rows = buffer.map_err(StoreError::device(name))?;
        self.weights.insert(name.into(), Weight::of(ty, rows));
        Ok(())
    }

    /// As [`add_weight`](Self::add_weight), with bytes that are on the device already. The store uses the buffer itself
    /// where a plan takes the weight as it is, so its contents must not change.
    pub fn add_weight_buffer(
        &mut self,
        name: &str,
        ty: TensorType,
        buffer: &AnyBuffer,
    ) -> Result<(), StoreError> {
        if self.weights.contains_key(name) {
            return Err(StoreError::Twice { name: name.into() });
        }
        let (needed, element) = size(name, ty)?;
        if buffer.num_bytes() != needed {
            let given = buffer.num_bytes();
            return Err(StoreError::Length { name: name.into(), ty, unit: "bytes", given, needed });
        }
        if buffer.device() != self.device() {
            let error = RuntimeError::OtherDevice { operation: "add_weight_buffer", what: "buffer" };
            return Err(StoreError::device(name)(error));
        }
        let rows = buffer.cast(element).map_err(StoreError::device(name))?;
        self.weights.insert(name.into(), Weight::of(ty, rows));
        Ok(())
    }

    /// Reads a weight: the bytes that were added, whatever its layout. `None` if there is no weight of that name.
    pub fn read_weight(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(weight) = self.weights.get(name) else { return Ok(None) };
        let rows = match (&weight.rows, &weight.planes) {
            (Some(rows), _) => rows.clone(),
            (None, Some(planes)) => self.convert(name, weight.ty, WeightLayout::Rows, planes)?,
            (None, None) => return Ok(None),
        };
        let bytes = rows.cast(Type::U8).and_then(|bytes| bytes.typed::<u8>());
        let bytes = bytes.and_then(|bytes| self.stream.clone_dtoh(&bytes));
        bytes.map(Some).map_err(StoreError::device(name))
    }

    /// Removes a weight, and returns whether it existed. Bound plans keep it alive; its memory is freed with the last
    /// of them.
    pub fn remove_weight(&mut self, name: &str) -> bool {
        self.weights.remove(name).is_some()
    }

    /// A weight that is no matrix of weights.
    pub(super) fn vector(&self, name: &str, ty: TensorType) -> Result<AnyBuffer, StoreError> {
        let weight = self.weight(name, ty)?;
        let missing = || StoreError::MissingWeight { name: name.into(), ty };
        weight.rows.clone().ok_or_else(missing)
    }

    /// A matrix of weights in a layout. It is made if it is not there.
    pub(super) fn laid_out(
        &mut self,
        name: &str,
        ty: TensorType,
        layout: WeightLayout,
    ) -> Result<AnyBuffer, StoreError> {
        let Weight { rows, planes, .. } = self.weight(name, ty)?;
        let (source, target) = match layout {
            WeightLayout::Rows => (planes, rows),
            WeightLayout::Planes => (rows, planes),
        };
        let made = match (target, source) {
            (Some(target), _) => target.clone(),
            (None, Some(source)) => {
                let source = source.clone();
                self.convert(name, ty, layout, &source)?
            }
            (None, None) => return Err(StoreError::MissingWeight { name: name.into(), ty }),
        };
        if let Some(weight) = self.weights.get_mut(name) {
            match layout {
                WeightLayout::Rows => (weight.rows, weight.wanted_rows) = (Some(made.clone()), true),
                WeightLayout::Planes => weight.planes = Some(made.clone()),
            }
            if !weight.wanted_rows && weight.planes.is_some() {
                weight.rows = None;
            }
        }
        Ok(made)
    }

    fn weight(&self, name: &str, needed: TensorType) -> Result<&Weight, StoreError> {
        let missing = || StoreError::MissingWeight { name: name.into(), ty: needed };
        let weight = self.weights.get(name).ok_or_else(missing)?;
        if weight.ty != needed {
            return Err(StoreError::Weight { name: name.into(), given: weight.ty, needed });
        }
        Ok(weight)
    }

    /// The other layout of a matrix.
    fn convert(
        &self,
        name: &str,
        ty: TensorType,
        layout: WeightLayout,
        source: &AnyBuffer,
    ) -> Result<AnyBuffer, StoreError> {
        let (Element::Weights(format), &[n, k]) = (ty.element, ty.shape.dims()) else {
            return Err(StoreError::Layout { name: name.into(), ty, layout });
        };
        let target = self.allocate(name, layout.bytes(format, n, k), Type::U8)?;
        let moved = match layout {
            WeightLayout::Planes => {
                self.launch(&Repack::new(format, n, k), [("gguf", source), ("planes", &target)])
            }
            WeightLayout::Rows => {
                self.launch(&Unpack::new(format, n, k), [("planes", source), ("gguf", &target)])
            }
        };
        moved.map_err(StoreError::device(name))?;
        Ok(target)
    }

    fn launch(
        &self,
        kernel: &dyn AnyKernel,
        [from, to]: [(&str, &AnyBuffer); 2],
    ) -> Result<(), RuntimeError> {
        let kernel = self.device().kernel(kernel)?;
        kernel.bind().buffer(from.0, from.1).buffer(to.0, to.1).launch(&self.stream)
    }
}

/// Bytes of a weight as the host gives it, and the type of the elements.
fn size(name: &str, ty: TensorType) -> Result<(u64, Type), StoreError> {
    let refuse = |rule: String| Err(StoreError::Type { name: name.into(), ty, rule });
    match (ty.element, ty.shape.dims()) {
        _ if ty.shape.elements() == 0 => refuse("it must not be empty".into()),
        (Element::Weights(format), &[n, k]) if k.is_multiple_of(format.block()) => {
            Ok((WeightLayout::Rows.bytes(format, n, k), Type::U8))
        }
        (Element::Weights(format), &[_, _]) => {
            refuse(format!("{format} comes in rows of a multiple of {}, its block", format.block()))
        }
        (Element::Weights(_), _) => refuse("weights of a format are a matrix".into()),
        (Element::Float(_) | Element::U32 | Element::U64, _) => {
            let [plane] = planes(ty)[..] else { return refuse("it must be in one piece".into()) };
            Ok((plane.bytes(), plane.dtype))
        }
        (Element::Cache(_) | Element::Int8 | Element::Scaled { .. }, _) => {
            refuse("weights are floats, integers, or matrices of a format".into())
        }
    }
}
