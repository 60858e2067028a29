//! Tensors: their elements, shapes and roles.

use std::fmt;
use warpwright_kernels::{CacheDtype, Dtype, WeightFormat};

/// A tensor of a graph: a handle, free to copy. It belongs to the graph that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tensor {
    pub(crate) graph: u32,
    pub(crate) index: u32,
}

impl Tensor {
    /// Its index in the graph's list of tensors.
    pub fn index(self) -> usize {
        self.index as usize
    }
}

/// The elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Element {
    /// Floats: activations, biases, the weights of norms.
    Float(Dtype),
    /// Unsigned integers: token ids, positions, lengths, step counters.
    U32,
    /// Unsigned integers of 64 bits: seeds.
    U64,
    /// A weight matrix, `n × k`.
    Weights(WeightFormat),
    /// One half, keys or values, of a layer's KV cache: `batch × kv_heads × max_seq_len × head_dim`.
    Cache(CacheDtype),
    /// Rows of `f32` as signed bytes with a scale for each 32. Only steps have such tensors.
    Int8,
    /// Rows of `f32` as split terms: `terms` halves for each number, with a scale for each row. Only steps have such
    /// tensors.
    Scaled {
        /// The halves: `f16` or `bf16`.
        half: Dtype,
        /// Halves for each number: 1 or 2.
        terms: u32,
    },
}

impl Element {
    /// Single precision.
    pub const F32: Element = Element::Float(Dtype::F32);
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Float(dtype) => dtype.fmt(f),
            Element::U32 => f.write_str("u32"),
            Element::U64 => f.write_str("u64"),
            Element::Weights(format) => write!(f, "weights {format}"),
            Element::Cache(dtype) => write!(f, "cache {dtype}"),
            Element::Int8 => f.write_str("int8"),
            Element::Scaled { half, terms } => write!(f, "scaled {half}x{terms}"),
        }
    }
}

/// Up to four dimensions, the last one contiguous.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: [u32; 4],
    rank: u8,
}

impl Shape {
    /// The dimensions; `None` for more than four.
    pub fn new(dims: &[u32]) -> Option<Self> {
        let mut all = [1; 4];
        all.get_mut(..dims.len())?.copy_from_slice(dims);
        Some(Shape { dims: all, rank: dims.len() as u8 })
    }

    /// The dimensions.
    pub fn dims(&self) -> &[u32] {
        &self.dims[..usize::from(self.rank)]
    }

    /// Number of elements; saturates at the maximum of `u64`.
    pub fn elements(&self) -> u64 {
        self.dims().iter().fold(1, |product: u64, &dim| product.saturating_mul(dim.into()))
    }

    /// The last dimension; 1 for a scalar.
    pub fn columns(&self) -> u32 {
        self.dims().last().copied().unwrap_or(1)
    }

    /// The product of all dimensions but the last.
    pub fn rows(&self) -> u64 {
        let (_, rest) = self.dims().split_last().unwrap_or((&1, &[]));
        rest.iter().fold(1, |product: u64, &dim| product.saturating_mul(dim.into()))
    }
}

impl<const N: usize> From<[u32; N]> for Shape {
    fn from(dims: [u32; N]) -> Self {
        const { assert!(N <= 4, "a shape has up to four dimensions") };
        let mut all = [1; 4];
        all[..N].copy_from_slice(&dims);
        Shape { dims: all, rank: N as u8 }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self.dims().iter().map(u32::to_string).collect();
        write!(f, "[{}]", dims.join(" × "))
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Elements and shape of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Its elements.
    pub element: Element,
    /// Its shape.
    pub shape: Shape,
}

impl TensorType {
    /// A tensor with these elements and this shape.
    pub fn new(element: Element, shape: impl Into<Shape>) -> Self {
        TensorType { element, shape: shape.into() }
    }

    /// A tensor of `f32`.
    pub fn f32(shape: impl Into<Shape>) -> Self {
        TensorType::new(Element::F32, shape)
    }

    /// What every tensor must be and this one is not: not empty, not beyond counting, and rows that elements in
    /// blocks fill.
    pub(crate) fn broken_rule(&self) -> Option<String> {
        let (rank, columns, elements) =
            (self.shape.dims().len(), self.shape.columns(), self.shape.elements());
        let blocks = |block: u32| {
            (!columns.is_multiple_of(block)).then(|| format!("in rows of a multiple of {block}, its block"))
        };
        match self.element {
            _ if elements == 0 => Some("not empty".into()),
            _ if elements > MAX_ELEMENTS => Some("of no more than 2^40 elements".into()),
            Element::Weights(_) if rank != 2 => Some("of 2 dimensions".into()),
            Element::Weights(format) => blocks(format.block()),
            Element::Cache(_) if rank != 4 => Some("of 4 dimensions".into()),
            Element::Cache(CacheDtype::Q8_0) => blocks(CacheDtype::Q8_0.granule()),
            _ => None,
        }
    }
}

/// So many that bytes, and sums of them, are far from the largest number.
const MAX_ELEMENTS: u64 = 1 << 40;

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.element, self.shape)
    }
}

/// The origin of a tensor, and the lifetime of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Written by the host before each execution.
    Input,
    /// The same in every execution, and in every plan of a model.
    Weight,
    /// Kept from one execution to the next, and changed in place: caches, positions.
    State,
    /// Computed, and read by the host after each execution.
    Output,
    /// Computed, and freed after its last use.
    Intermediate,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Input => "input",
            Role::Weight => "weight",
            Role::State => "state",
            Role::Output => "output",
            Role::Intermediate => "intermediate",
        })
    }
}
