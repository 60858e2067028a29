//! Floats whose type is configuration: kernels whose buffers may be `f32`, `f16` or `bf16` and that compute in `f32`.

use warpwright_dsl::{AnyPtr, Bf16, Bf16x2, Dim, Domain, F16, F16x2, Global, Guard, Index, Pred, Ptr, Reg};
use warpwright_ptx::ir::Type;

/// The element type of a buffer of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, warpwright_dsl::Choice)]
pub enum Dtype {
    /// Single precision.
    F32,
    /// Half precision: 10 bits of fraction, up to 65504.
    F16,
    /// bfloat16: 7 bits of fraction, the range of `f32`.
    Bf16,
}

/// Those of two bytes.
pub(crate) const HALVES: Domain = Domain::OneOf(&["f16", "bf16"]);

impl Dtype {
    /// Bytes of an element.
    pub fn bytes(self) -> u32 {
        self.ty().bytes()
    }

    /// The value as a buffer of the type would hold it.
    #[track_caller]
    pub(crate) fn round(self, value: Reg<'_, f32>) -> Reg<'_, f32> {
        match self {
            Dtype::F32 => value,
            Dtype::F16 => value.to_f16_saturating().f32(),
            Dtype::Bf16 => value.to::<Bf16>().f32(),
        }
    }

    /// The PTX type.
    pub fn ty(self) -> Type {
        match self {
            Dtype::F32 => Type::F32,
            Dtype::F16 => Type::F16,
            Dtype::Bf16 => Type::BF16,
        }
    }
}

/// A pointer to floats in global memory: a handle, free to copy. Loads widen to `f32`, which is exact; stores
/// round to nearest, and what is beyond the largest half becomes the largest half.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Floats<'k> {
    F32(Ptr<'k, Global, f32>),
    F16(Ptr<'k, Global, F16>),
    Bf16(Ptr<'k, Global, Bf16>),
}

/// The floats of a buffer. Where its elements are none, which its kernel's `check` refuses, it is taken for `f32`.
impl<'k> From<AnyPtr<'k>> for Floats<'k> {
    #[track_caller]
    fn from(buffer: AnyPtr<'k>) -> Self {
        match buffer.dtype() {
            Type::F16 => Floats::F16(buffer.typed()),
            Type::BF16 => Floats::Bf16(buffer.typed()),
            _ => Floats::F32(buffer.typed()),
        }
    }
}

/// The same expression for each type of pointer.
macro_rules! each {
    ($self:expr, $ptr:ident => $result:expr) => {
        match $self {
            Floats::F32($ptr) => $result,
            Floats::F16($ptr) => $result,
            Floats::Bf16($ptr) => $result,
        }
    };
}

impl<'k> Floats<'k> {
    /// The type of the elements.
    pub(crate) fn dtype(self) -> Dtype {
        match self {
            Floats::F32(_) => Dtype::F32,
            Floats::F16(_) => Dtype::F16,
            Floats::Bf16(_) => Dtype::Bf16,
        }
    }

    /// The pointer to element `index`, which becomes element 0.
    #[track_caller]
    pub(crate) fn at(self, index: impl Index<'k>) -> Self {
        match self {
            Floats::F32(ptr) => Floats::F32(ptr.at(index)),
            Floats::F16(ptr) => Floats::F16(ptr.at(index)),
            Floats::Bf16(ptr) => Floats::Bf16(ptr.at(index)),
        }
    }

    /// The pointer to row `row` of rows of `length` elements: see [`Ptr::row`].
    #[track_caller]
    pub(crate) fn row(self, row: Reg<'k, u32>, length: Dim<'k>) -> Self {
        match self {
            Floats::F32(ptr) => Floats::F32(ptr.row(row, length)),
            Floats::F16(ptr) => Floats::F16(ptr.row(row, length)),
            Floats::Bf16(ptr) => Floats::Bf16(ptr.row(row, length)),
        }
    }

    /// Element `index`.
    #[track_caller]
    pub(crate) fn ld(self, index: impl Index<'k>) -> Reg<'k, f32> {
        each!(self, ptr => ptr.ld(index).f32())
    }

    /// Element `index` where the predicate holds, else zero; memory is not touched then.
    #[track_caller]
    pub(crate) fn ld_if(self, condition: Reg<'k, Pred>, index: impl Index<'k>) -> Reg<'k, f32> {
        each!(self, ptr => ptr.ld_if(condition, index, 0.0f32).f32())
    }

    /// `count` elements from `index` on, by accesses of as many bytes as `count` elements allow, up to 16;
    /// the address is a multiple of these.
    #[track_caller]
    pub(crate) fn ld_vec(self, index: impl Index<'k>, count: u32) -> Vec<Reg<'k, f32>> {
        self.load(None::<Reg<'k, Pred>>, index, count)
    }

    /// [`ld_vec`](Self::ld_vec) where the predicate holds, else zeros; memory is not touched then.
    #[track_caller]
    pub(crate) fn ld_vec_if(
        self,
        condition: Reg<'k, Pred>,
        index: impl Index<'k>,
        count: u32,
    ) -> Vec<Reg<'k, f32>> {
        self.load(Some(condition), index, count)
    }

    /// [`ld_vec`](Self::ld_vec), or [`ld_vec_if`](Self::ld_vec_if) where there is a predicate.
    #[track_caller]
    pub(crate) fn load(
        self,
        condition: impl Guard<'k>,
        index: impl Index<'k>,
        count: u32,
    ) -> Vec<Reg<'k, f32>> {
        let condition = condition.predicate();
        match self.at(index) {
            Floats::F32(ptr) => ptr.ld_many(condition, 0, count, 0.0),
            // Halves travel in pairs.
            Floats::F16(ptr) if count.is_multiple_of(2) => {
                let pairs = ptr.cast::<F16x2>().ld_many(condition, 0, count / 2, 0.0);
                pairs.into_iter().flat_map(Reg::<F16x2>::f32x2).collect()
            }
            Floats::Bf16(ptr) if count.is_multiple_of(2) => {
                let pairs = ptr.cast::<Bf16x2>().ld_many(condition, 0, count / 2, 0.0);
                pairs.into_iter().flat_map(Reg::<Bf16x2>::f32x2).collect()
            }
            Floats::F16(ptr) => ptr.ld_many(condition, 0, count, 0.0).into_iter().map(|x| x.f32()).collect(),
            Floats::Bf16(ptr) => ptr.ld_many(condition, 0, count, 0.0).into_iter().map(|x| x.f32()).collect(),
        }
    }

    /// Stores `value`, rounded, as element `index` where the predicate holds.
    #[track_caller]
    pub(crate) fn st_if(self, condition: Reg<'k, Pred>, index: impl Index<'k>, value: Reg<'k, f32>) {
        match self {
            Floats::F32(ptr) => ptr.st_if(condition, index, value),
            Floats::F16(ptr) => ptr.st_if(condition, index, value.to_f16_saturating()),
            Floats::Bf16(ptr) => ptr.st_if(condition, index, value.to::<Bf16>()),
        }
    }

    /// Stores values, rounded, as the elements from `index` on: see [`ld_vec`](Self::ld_vec).
    #[track_caller]
    pub(crate) fn st_vec(self, index: impl Index<'k>, values: &[Reg<'k, f32>]) {
        self.store(None::<Reg<'k, Pred>>, index, values)
    }

    /// [`st_vec`](Self::st_vec), where the predicate holds if there is one.
    #[track_caller]
    pub(crate) fn store(self, condition: impl Guard<'k>, index: impl Index<'k>, values: &[Reg<'k, f32>]) {
        let condition = condition.predicate();
        match self.at(index) {
            Floats::F32(ptr) => ptr.st_many(condition, 0, values),
            Floats::F16(ptr) if values.len().is_multiple_of(2) => {
                let pairs: Vec<_> = pairs(values).map(|[low, high]| low.pack_f16_saturating(high)).collect();
                ptr.cast::<F16x2>().st_many(condition, 0, &pairs);
            }
            Floats::Bf16(ptr) if values.len().is_multiple_of(2) => {
                let pairs: Vec<_> = pairs(values).map(|[low, high]| low.pack_bf16(high)).collect();
                ptr.cast::<Bf16x2>().st_many(condition, 0, &pairs);
            }
            Floats::F16(ptr) => {
                let values: Vec<_> = values.iter().map(|x| x.to_f16_saturating()).collect();
                ptr.st_many(condition, 0, &values);
            }
            Floats::Bf16(ptr) => {
                let values: Vec<_> = values.iter().map(|x| x.to::<Bf16>()).collect();
                ptr.st_many(condition, 0, &values);
            }
        }
    }
}

fn pairs<'a, 'k>(values: &'a [Reg<'k, f32>]) -> impl Iterator<Item = [Reg<'k, f32>; 2]> + 'a {
    values.chunks_exact(2).map(|pair| [pair[0], pair[1]])
}
