//! Loading of weights from a file to a store on a device.

use super::config::ModelConfig;
use super::error::ModelError;
use super::weights::scale_name;
use crate::gguf::{Gguf, TensorInfo};
use half::{bf16, f16};
use warpwright_graph::{Element, Store, StoreError, TensorType};
use warpwright_kernels::WeightFormat;

/// Progress of loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadProgress<'a> {
    /// The tensor that has just been loaded.
    pub tensor: &'a str,
    /// Bytes of the file loaded so far.
    pub loaded: u64,
    /// Bytes of the file to load in total.
    pub total: u64,
}

/// Why weights cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file is not the one that the configuration was made from.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Loads the weights of a model into a store, in the order of the file: matrices in their formats, everything else as
/// `f32`. `progress` is called for each tensor.
///
/// # Errors
///
/// [`LoadError::Store`] if the device has no room, or the store has a weight of that name; [`LoadError::Model`] if the
/// file is not that of `model`, or has invalid frequency factors.
pub fn load_weights(
    gguf: &Gguf,
    model: &ModelConfig,
    store: &mut Store,
    mut progress: impl FnMut(LoadProgress<'_>),
) -> Result<(), LoadError> {
    let tensors = gguf.tensors().iter();
    let weights = tensors.filter_map(|tensor| Some((tensor, model.weight_type(&tensor.name)?)));
    let weights: Vec<(&TensorInfo, TensorType)> = weights.collect();
    if weights.len() != model.weights().count() {
        let missing = model.weights().find(|(name, _)| gguf.tensor(name).is_none());
        let (tensor, shape) =
            missing.map_or_else(Default::default, |(name, ty)| (name.into(), ty.to_string()));
        return Err(ModelError::MissingTensor { tensor, shape }.into());
    }
    let total = weights.iter().map(|(tensor, _)| gguf.data(tensor).len() as u64).sum();
    let mut loaded = 0;
    for (tensor, ty) in weights {
        let bytes = gguf.data(tensor);
        match ty.element {
            Element::Weights(format) if format.has_tensor_scale() => {
                let scaled = [bytes, &tensor_scale(gguf, &tensor.name)?.to_le_bytes()].concat();
                store.add_weight(&tensor.name, ty, &scaled)?;
            }
            Element::Weights(_) => store.add_weight(&tensor.name, ty, bytes)?,
            _ => {
                let values = floats(tensor, bytes);
                if tensor.name == "rope_freqs.weight" {
                    check_factors(&values)?;
                }
                store.add_vector(&tensor.name, &values)?;
            }
        }
        loaded += bytes.len() as u64;
        progress(LoadProgress { tensor: &tensor.name, loaded, total });
    }
    Ok(())
}

/// The scale of a matrix that has one: what the tensor beside it says, or 1.
fn tensor_scale(gguf: &Gguf, matrix: &str) -> Result<f32, ModelError> {
    let name = scale_name(matrix);
    let Some(tensor) = gguf.tensor(&name) else { return Ok(1.0) };
    match floats(tensor, gguf.data(tensor))[..] {
        [scale] if scale.is_finite() => Ok(scale),
        ref other => {
            Err(ModelError::Scale { tensor: name, value: other.first().copied().unwrap_or(f32::NAN) })
        }
    }
}

/// The numbers of a vector; none of what is not floats, which no configuration takes for a vector.
fn floats(tensor: &TensorInfo, bytes: &[u8]) -> Vec<f32> {
    let halves = || bytes.as_chunks::<2>().0.iter();
    match tensor.ty.weight_format() {
        Some(WeightFormat::F32) => bytes.as_chunks::<4>().0.iter().map(|&x| f32::from_le_bytes(x)).collect(),
        Some(WeightFormat::F16) => halves().map(|&x| f16::from_le_bytes(x).to_f32()).collect(),
        Some(WeightFormat::Bf16) => halves().map(|&x| bf16::from_le_bytes(x).to_f32()).collect(),
        _ => Vec::new(),
    }
}

/// The least factor of frequencies that kernels take.
const LEAST_FACTOR: f32 = 1.0 / 64.0;

fn check_factors(factors: &[f32]) -> Result<(), ModelError> {
    let fits = |factor: f32| factor.is_finite() && factor >= LEAST_FACTOR;
    match factors.iter().enumerate().find(|&(_, &factor)| !fits(factor)) {
        None => Ok(()),
        Some((pair, &value)) => Err(ModelError::Factor { pair, value }),
    }
}
