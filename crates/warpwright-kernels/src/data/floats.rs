//! Floats of a type that is configuration: kernels whose buffers may be `f32`, `f16` or `bf16` and that
//! compute in `f32`.

use warpwright_dsl::{
    AnyPtr, Bf16, Bf16x2, Dim, Domain, F16, F16x2, Global, Guard, Index, Number, Pred, Ptr, Reg,
};
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

    /// As PTX names it.
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

    /// Loads through the read-only cache: nothing may write the memory while the kernel runs.
    pub(crate) fn nc(self) -> Self {
        match self {
            Floats::F32(ptr) => Floats::F32(ptr.nc()),
            Floats::F16(ptr) => Floats::F16(ptr.nc()),
            Floats::Bf16(ptr) => Floats::Bf16(ptr.nc()),
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

    /// The most elements that an access takes of `count`.
    fn vector(self, count: u32) -> u32 {
        let most = 16 / self.dtype().bytes();
        (1 << count.max(1).trailing_zeros()).min(most)
    }

    /// [`ld_vec`](Self::ld_vec), or [`ld_vec_if`](Self::ld_vec_if) where there is a predicate.
    #[track_caller]
    pub(crate) fn load(
        self,
        condition: impl Guard<'k>,
        index: impl Index<'k>,
        count: u32,
    ) -> Vec<Reg<'k, f32>> {
        let (from, condition) = (self.at(index), condition.predicate());
        let vector = self.vector(count);
        let mut values = Vec::with_capacity(count as usize);
        for first in (0..count).step_by(vector as usize) {
            match from.at(first) {
                Floats::F16(ptr) if vector > 1 => {
                    let pairs = words::<F16x2>(ptr.cast(), condition, vector / 2);
                    values.extend(pairs.into_iter().flat_map(Reg::<F16x2>::f32x2));
                }
                Floats::Bf16(ptr) if vector > 1 => {
                    let pairs = words::<Bf16x2>(ptr.cast(), condition, vector / 2);
                    values.extend(pairs.into_iter().flat_map(Reg::<Bf16x2>::f32x2));
                }
                Floats::F32(ptr) => values.extend(words(ptr, condition, vector)),
                half => values.push(match condition {
                    Some(condition) => half.ld_if(condition, 0),
                    None => half.ld(0),
                }),
            }
        }
        values
    }

    /// Stores `value`, rounded, as element `index`.
    #[track_caller]
    pub(crate) fn st(self, index: impl Index<'k>, value: Reg<'k, f32>) {
        match self {
            Floats::F32(ptr) => ptr.st(index, value),
            Floats::F16(ptr) => ptr.st(index, value.to_f16_saturating()),
            Floats::Bf16(ptr) => ptr.st(index, value.to::<Bf16>()),
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
        let (to, condition) = (self.at(index), condition.predicate());
        let vector = self.vector(values.len() as u32);
        for (chunk, values) in (0..).step_by(vector as usize).zip(values.chunks_exact(vector as usize)) {
            // Halves travel in pairs.
            let words: Vec<Reg<'k, u32>> = match to {
                Floats::F32(_) => values.iter().map(|value| value.bits()).collect(),
                Floats::F16(_) => {
                    pairs(values).map(|[low, high]| low.pack_f16_saturating(high).bits()).collect()
                }
                Floats::Bf16(_) => pairs(values).map(|[low, high]| low.pack_bf16(high).bits()).collect(),
            };
            let ptr: Ptr<'k, Global, u32> = each!(to.at(chunk), ptr => ptr.cast());
            match (&words[..], condition) {
                (&[a, b, c, d], None) => ptr.st_vec(0, [a, b, c, d]),
                (&[a, b, c, d], Some(condition)) => ptr.st_vec_if(condition, 0, [a, b, c, d]),
                (&[a, b], None) => ptr.st_vec(0, [a, b]),
                (&[a, b], Some(condition)) => ptr.st_vec_if(condition, 0, [a, b]),
                (&[a], None) => ptr.st(0, a),
                (&[a], Some(condition)) => ptr.st_if(condition, 0, a),
                // One half.
                _ => match condition {
                    Some(condition) => to.st_if(condition, chunk, values[0]),
                    None => to.st(chunk, values[0]),
                },
            }
        }
    }
}

fn pairs<'a, 'k>(values: &'a [Reg<'k, f32>]) -> impl Iterator<Item = [Reg<'k, f32>; 2]> + 'a {
    values.chunks_exact(2).map(|pair| [pair[0], pair[1]])
}

/// 1, 2 or 4 words in one access, zeros where the condition does not hold.
#[track_caller]
fn words<'k, W: Number<Literal = f32>>(
    ptr: Ptr<'k, Global, W>,
    condition: Option<Reg<'k, Pred>>,
    count: u32,
) -> Vec<Reg<'k, W>> {
    #[track_caller]
    fn vector<'k, W: Number<Literal = f32>, const N: usize>(
        ptr: Ptr<'k, Global, W>,
        condition: Option<Reg<'k, Pred>>,
    ) -> Vec<Reg<'k, W>> {
        let words: [Reg<'k, W>; N] = match condition {
            Some(condition) => ptr.ld_vec_if(condition, 0, condition.kernel().value::<W>(0.0)),
            None => ptr.ld_vec(0),
        };
        words.to_vec()
    }
    match count {
        4 => vector::<W, 4>(ptr, condition),
        2 => vector::<W, 2>(ptr, condition),
        _ => vector::<W, 1>(ptr, condition),
    }
}
