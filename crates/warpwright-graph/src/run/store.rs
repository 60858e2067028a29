//! Data that persists on a device from plan to plan: weights and states, by name.

use super::error::StoreError;
use super::states::State;
use super::weights::Weight;
use crate::graph::TensorType;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use warpwright_ptx::ir::Type;
use warpwright_runtime::{AnyBuffer, Device, Stream};

/// Weights and states of a model on a device, for all plans that are bound to it.
///
/// Add weights as they are in a GGUF file. The store lays them out on the device as bound plans ask: rows for lookups,
/// planes for products, or both. States (caches, positions, counters) are zero when the first plan asks for them, and
/// keep their values when another plan is bound.
///
/// All work is on one stream, in order, including reads and writes of states: they see the results of previous
/// executions. Plans that are bound to one store share its states. Executions from several host threads would
/// interleave step by step, so use one thread, or one store per thread.
///
/// ```
/// use warpwright_graph::{Element, Store, TensorType};
/// use warpwright_kernels::WeightFormat;
/// use warpwright_runtime::{Device, DeviceSpec};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::open(DeviceSpec::Vm)?;
/// let mut store = Store::new(&device.default_stream());
/// store.add_vector("norm", &[1.0; 64])?;
/// // Two rows of 64 weights: blocks of a scale, as f16, and 32 bytes.
/// store.add_matrix("w", WeightFormat::Q8_0, 2, 64, &[0; 2 * 68])?;
/// // A missing byte is refused, and so is a name that is taken.
/// assert!(store.add_matrix("w2", WeightFormat::Q8_0, 2, 64, &[0; 2 * 68 - 1]).is_err());
/// assert!(store.add_vector("norm", &[1.0; 64]).is_err());
///
/// store.add_state("position", TensorType::new(Element::U32, [1]))?;
/// store.write_state("position", &[7u32])?;
/// assert_eq!(store.read_state::<u32>("position")?, [7]);
/// assert_eq!(store.statistics().float_bytes, 4 * 64);
/// # Ok(())
/// # }
/// ```
pub struct Store {
    pub(super) stream: Stream,
    pub(super) weights: BTreeMap<String, Weight>,
    pub(super) states: BTreeMap<String, State>,
    /// Counts up when a state gets other memory: what was bound before has the old one.
    pub(super) moves: Arc<AtomicU64>,
}

/// The contents of a [`Store`] on its device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStatistics {
    /// Number of weights.
    pub weights: usize,
    /// Bytes of matrices in rows: those that plans look up, and those that no plan has asked for yet.
    pub row_bytes: u64,
    /// Bytes of matrices in planes.
    pub plane_bytes: u64,
    /// Bytes of weights that are not matrices: norms, biases.
    pub float_bytes: u64,
    /// Number of states.
    pub states: usize,
    /// Bytes of states.
    pub state_bytes: u64,
}

impl Store {
    /// An empty store that works on this stream.
    pub fn new(stream: &Stream) -> Self {
        Store {
            stream: stream.clone(),
            weights: BTreeMap::new(),
            states: BTreeMap::new(),
            moves: Arc::default(),
        }
    }

    /// The stream of all work.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.stream.device()
    }

    /// The weights, with their types, by name.
    pub fn weights(&self) -> impl Iterator<Item = (&str, TensorType)> {
        self.weights.iter().map(|(name, weight)| (name.as_str(), weight.ty))
    }

    /// The states, with their types, by name.
    pub fn states(&self) -> impl Iterator<Item = (&str, TensorType)> {
        self.states.iter().map(|(name, state)| (name.as_str(), state.ty))
    }

    /// The contents of the store.
    pub fn statistics(&self) -> StoreStatistics {
        let bytes = |buffer: &Option<AnyBuffer>| buffer.as_ref().map_or(0, AnyBuffer::num_bytes);
        let mut statistics = StoreStatistics {
            weights: self.weights.len(),
            states: self.states.len(),
            state_bytes: self.states.values().map(State::bytes).sum(),
            ..StoreStatistics::default()
        };
        for weight in self.weights.values() {
            match weight.matrix() {
                Some(_) => statistics.row_bytes += bytes(&weight.rows),
                None => statistics.float_bytes += bytes(&weight.rows),
            }
            statistics.plane_bytes += bytes(&weight.planes);
        }
        statistics
    }

    /// Memory for `bytes` bytes, as elements of a type.
    pub(super) fn allocate(&self, name: &str, bytes: u64, ty: Type) -> Result<AnyBuffer, StoreError> {
        let len = usize::try_from(bytes).unwrap_or(usize::MAX);
        let buffer = self.stream.alloc::<u8>(len).and_then(|buffer| buffer.as_any().cast(ty));
        buffer.map_err(StoreError::device(name))
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("statistics", &self.statistics()).finish_non_exhaustive()
    }
}
