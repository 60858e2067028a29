//! The descriptors of a product: its shape and types, the rules for them (ISA 9.7.18.4.2, 9.7.18.2.1), and columns of zero.

use crate::op::matrix::Integer;
use crate::tensor::integer::Overflow;
use crate::tensor::{Accumulator, FloatElement};
use warpwright_ptx::ir::Arch;
use warpwright_ptx::op::tcgen05::ProductKind;

/// Why a product of a still longer k is not executed.
pub(super) const LATER_K: &str = "it asks for a k that `sm_107f` has first; use a shorter one";

/// The longer k of factors of four bits: 48 bytes.
pub(super) const LONG_K: usize = 96;

/// The size of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Rows, of both blocks of a pair.
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) sparse: bool,
}

/// How it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Types {
    Float { a: FloatElement, b: FloatElement, d: Accumulator },
    Integer { a: Integer, b: Integer, overflow: Overflow },
}

/// Scales of blocks along k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scaling {
    pub(super) blocks: usize,
    /// The first byte of a column that has them, of `a` and `b`.
    pub(super) ids: [usize; 2],
    /// `ue4m3`, not `ue8m0`.
    pub(super) fractions: bool,
}

/// What a descriptor says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) shape: Shape,
    pub(super) types: Types,
    pub(super) negated: [bool; 2],
    pub(super) transposed: [bool; 2],
    /// The column of the metadata, from its address on.
    pub(super) selector: u32,
    pub(super) scaling: Option<Scaling>,
}

/// What the instruction says itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) kind: ProductKind,
    pub(super) sparse: bool,
    pub(super) stationary: bool,
    /// Blocks that take part.
    pub(super) blocks: usize,
    /// Elements along k that share a scale, without zeros that a sparse factor leaves out, of a kind that has scales.
    pub(super) scaled: usize,
    /// The number of scales may be that of the longer k.
    pub(super) may_have_long_k: bool,
}

impl Plan {
    /// Reads a descriptor, on a device of that architecture. The error says what is wrong with it.
    pub(super) fn new(descriptor: u32, said: Said, arch: Arch) -> Result<Plan, String> {
        use ProductKind::*;
        let field = |low: u32, bits: u32| descriptor >> low & ((1 << bits) - 1);
        let is_set = |bit: u32| field(bit, 1) != 0;
        let Said { kind, sparse, stationary, blocks, .. } = said;
        let scaled = matches!(kind, MxF8F6F4 | MxF4 | MxF4NvF4);
        let pairs = matches!(kind, MxF4 | MxF4NvF4);
        let n = 8 * field(17, 6) as usize;
        let m = if scaled { 128 * field(27, 2) as usize } else { 16 * field(24, 5) as usize };
        let is_long = pairs && is_set(31);
        let dense_k = match kind {
            Tf32 => 8,
            F16 => 16,
            F8F6F4 | MxF8F6F4 | I8 => 32,
            MxF4 | MxF4NvF4 if is_long => LONG_K,
            MxF4 | MxF4NvF4 => 64,
        };
        let k = if sparse { 2 * dense_k } else { dense_k };
        if is_set(2) != sparse {
            return Err(format!(
                "bit 2 says {}, and the instruction the opposite",
                ["dense", "sparse"][usize::from(is_set(2))]
            ));
        }
        let is_later = match kind {
            MxF4 | MxF4NvF4 => is_set(3) || is_long && sparse,
            MxF8F6F4 => is_set(31),
            _ => kind == F8F6F4 && is_set(29),
        };
        if is_later {
            return Err(LATER_K.into());
        }
        if is_long && arch.sm != 103 {
            return Err(format!("k is 96, which the virtual GPU executes as `sm_103a`, and this is {arch}"));
        }
        if is_long && !said.may_have_long_k {
            return Err("k is 96, which takes `.block16` or `.block32`, not a number of scales".into());
        }
        let reserved: u32 = match kind {
            I8 => 1 << 6 | 1 << 23 | 1 << 29 | 3 << 13,
            _ if !scaled => 1 << 3 | 1 << 6 | 1 << 23 | 1 << 29,
            MxF8F6F4 => 3 | 1 << 3 | 1 << 6 | 3 << 24 | 1 << 26,
            _ => 3 | 1 << 6 | 1 << 12 | 3 << 15 | 1 << 25 | 1 << 26,
        };
        if descriptor & reserved != 0 {
            return Err(format!("bits {:#x} of it must be 0", descriptor & reserved));
        }
        if sparse && matches!(kind, F8F6F4 | I8) && field(0, 2) != 0 {
            return Err(format!(
                "the selector of metadata is {}, and `{kind}` has no other than 0",
                field(0, 2)
            ));
        }
        let rows: &[usize] = match (blocks, stationary) {
            (1, true) => &[32, 64, 128],
            (1, false) if scaled => &[128],
            (1, false) => &[64, 128],
            _ if scaled && sparse || is_long => &[256],
            _ => &[128, 256],
        };
        if !rows.contains(&m) {
            return Err(format!("m is {m}, and may be {rows:?}"));
        }
        // Bytes along n come in sixteens.
        let wide_b = is_set(16) && matches!(kind, F8F6F4 | MxF8F6F4 | I8);
        let step = match (kind, blocks) {
            (I8, 1) if n <= 32 && !wide_b => 8,
            (I8, 2) => 32,
            (_, 2) if wide_b => 32,
            (_, 2) => 16,
            (I8, _) => 16,
            _ if wide_b => 16,
            _ => 8,
        };
        let fits = match stationary {
            true => n == 64 || n == 128 || n == 256 && !sparse,
            false => n.is_multiple_of(step) && (step..=256).contains(&n),
        };
        if !fits {
            let may = if stationary {
                "64, 128 or, dense, 256".into()
            } else {
                format!("a multiple of {step} up to 256")
            };
            return Err(format!("n is {n}, and may be {may}"));
        }
        let types = types(kind, &field)?;
        let transposed = [is_set(15), is_set(16)];
        let scaling = if scaled { Some(scaling(said, dense_k, &field)?) } else { None };
        Ok(Plan {
            shape: Shape { m, n, k, sparse },
            types,
            negated: [is_set(13), is_set(14)],
            transposed,
            selector: if sparse && !scaled { field(0, 2) } else { 0 },
            scaling,
        })
    }
}

fn types(kind: ProductKind, field: &impl Fn(u32, u32) -> u32) -> Result<Types, String> {
    use ProductKind::*;
    let float = |low: u32| match (kind, field(low, 3)) {
        (F16, 0) => Ok(FloatElement::F16),
        (F16, 1) => Ok(FloatElement::BF16),
        (Tf32, 2) => Ok(FloatElement::TF32),
        (F8F6F4 | MxF8F6F4, 0) => Ok(FloatElement::E4M3),
        (F8F6F4 | MxF8F6F4, 1) => Ok(FloatElement::E5M2),
        (F8F6F4 | MxF8F6F4, 3) => Ok(FloatElement::E2M3),
        (F8F6F4 | MxF8F6F4, 4) => Ok(FloatElement::E3M2),
        (F8F6F4 | MxF8F6F4, 5) => Ok(FloatElement::E2M1),
        (_, ty) => Err(format!("the type of a factor is {ty}, which `{kind}` does not have")),
    };
    let sums = || match (kind, field(4, 2)) {
        (F16 | F8F6F4, 0) => Ok(Accumulator::F16),
        (F16 | F8F6F4 | Tf32, 1) => Ok(Accumulator::F32),
        (_, ty) => Err(format!("the type of the sums is {ty}, which `{kind}` does not have")),
    };
    match kind {
        F16 | Tf32 | F8F6F4 => {
            let (a, b, d) = (float(7)?, float(10)?, sums()?);
            if d == Accumulator::F16 && (a == FloatElement::BF16 || b == FloatElement::BF16) {
                return Err("sums are `f16`, and the factors `bf16`".into());
            }
            Ok(Types::Float { a, b, d })
        }
        MxF8F6F4 => Ok(Types::Float { a: float(7)?, b: float(10)?, d: Accumulator::F32 }),
        MxF4 | MxF4NvF4 => match (field(7, 3), field(10, 2)) {
            (1, 1) => Ok(Types::Float { a: FloatElement::E2M1, b: FloatElement::E2M1, d: Accumulator::F32 }),
            (a, b) => {
                Err(format!("the types of the factors are {a} and {b}: `{kind}` has `e2m1`, which is 1"))
            }
        },
        I8 => {
            let integer = |low: u32| match field(low, 3) {
                sign @ (0 | 1) => Ok(Integer { bits: 8, signed: sign == 1 }),
                ty => Err(format!("the type of a factor is {ty}, which `{kind}` does not have")),
            };
            if field(4, 2) != 2 {
                return Err(format!("the type of the sums is {}: it is `s32`, which is 2", field(4, 2)));
            }
            let overflow = if field(3, 1) != 0 { Overflow::Saturate } else { Overflow::Wrap };
            Ok(Types::Integer { a: integer(7)?, b: integer(10)?, overflow })
        }
    }
}

fn scaling(said: Said, k: usize, field: &impl Fn(u32, u32) -> u32) -> Result<Scaling, String> {
    let (kind, blocks) = (said.kind, k / said.scaled);
    let ty = if kind == ProductKind::MxF8F6F4 { field(23, 1) } else { field(23, 2) };
    let fractions = match (kind, ty, blocks) {
        (_, 1, _) => false,
        (ProductKind::MxF4NvF4, 0, 4 | 6) => true,
        _ => {
            return Err(format!(
                "the type of the scales is {ty}, which `{kind}` does not have with {blocks} of them"
            ));
        }
    };
    let ids = [field(29, 2) as usize, field(4, 2) as usize];
    // Those of the longer k go on in another column.
    let step = if k == LONG_K { 32 / said.scaled } else { blocks };
    match ids.into_iter().find(|id| id % step != 0) {
        Some(id) => Err(format!("the scales begin at byte {id}, and there are {blocks} of them")),
        None => Ok(Scaling { blocks, ids, fractions }),
    }
}

/// Which columns of `b` count as zero, and by how many columns it begins later (ISA 9.7.18.4.3). Each part of the columns
/// has its own beginning.
pub(super) fn zero_columns(descriptor: u64, shape: Shape) -> (Vec<bool>, usize) {
    let Shape { m, n, .. } = shape;
    let field = |low: u32, bits: u32| (descriptor >> low & ((1 << bits) - 1)) as usize;
    let (ones, zeros) = (field(40, 8) + 1, field(48, 8) + 1);
    let parts = 128 / m;
    let mut mask = Vec::with_capacity(n);
    for part in 0..parts {
        let begins_with_ones = field(32 + part as u32, 1) != 0;
        let skipped = field(8 * part as u32, 8) + if begins_with_ones { 0 } else { ones };
        let bits = (skipped..).map(|at| at % (ones + zeros) < ones);
        mask.extend(bits.take(n / parts).map(|is_zero| is_zero && field(39, 1) != 0));
    }
    (mask, field(56, 6))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(m: usize, n: usize, fields: &[(u32, u64)]) -> (Vec<String>, usize) {
        let descriptor = fields.iter().fold(0, |all, (low, value)| all | value << low);
        let (mask, shift) = zero_columns(descriptor, Shape { m, n, k: 16, sparse: false });
        let words = mask.chunks(n * m / 128);
        let text = |part: &[bool]| part.iter().rev().map(|&bit| if bit { '1' } else { '0' }).collect();
        (words.map(text).collect(), shift)
    }

    /// The examples of the ISA.
    #[test]
    fn columns_that_are_zero_are_those_of_the_examples() {
        let (skip, use_, nonzero) = (40, 48, (39, 1));
        assert_eq!(mask(128, 8, &[(skip, 4), (use_, 3)]).0, ["00000000"]);
        assert_eq!(mask(128, 14, &[nonzero, (skip, 2), (use_, 3)]).0, ["11100001110000"]);
        let two = mask(64, 34, &[nonzero, (skip, 2), (use_, 3), (32, 1)]).0;
        assert_eq!(two, ["11100001110000111", "00011100001110000"]);
        let starts = [(0, 0), (8, 1), (16, 2), (24, 1)];
        let firsts = [(32, 1), (33, 1)];
        let fields = [&starts[..], &firsts[..], &[nonzero, (skip, 2), (use_, 3), (56, 2)]].concat();
        assert_eq!(mask(32, 48, &fields).1, 2);
        let four = mask(32, 48, &fields).0;
        assert!(four[0].ends_with("0000111") && four[1].ends_with("000011"));
        assert!(four[2].ends_with("11100") && four[3].ends_with("111000"));
    }

    /// 96 along k is for dense factors of four bits on `sm_103a`, for a pair of blocks with 256 rows.
    #[test]
    fn the_longer_k_is_where_it_may_be() {
        use ProductKind::{F8F6F4, MxF4, MxF4NvF4, MxF8F6F4};
        let said = |kind, scaled| Said {
            kind,
            sparse: false,
            stationary: false,
            blocks: 1,
            scaled,
            may_have_long_k: true,
        };
        let (sm_100, sm_103) = (Arch::sm(100), Arch::sm(103));
        // Columns, rows in units of 128, types `e2m1`, scales `ue8m0`, which are powers of two.
        let of = |m: u32| 2 << 17 | m << 27 | 1 << 7 | 1 << 10 | 1 << 23;
        let long = |m: u32| of(m) | 1 << 31;
        let pair = |said: Said| Said { blocks: 2, ..said };
        let cases = [
            (of(1), said(MxF4, 32), sm_103, Ok((64, 2))),
            (long(1), said(MxF4, 32), sm_103, Ok((96, 3))),
            (long(1), said(MxF4, 32), sm_100, Err(false)),
            (long(1), said(MxF4NvF4, 16), sm_103, Ok((96, 6))),
            (long(1), Said { may_have_long_k: false, ..said(MxF4NvF4, 16) }, sm_103, Err(false)),
            (long(1) & !(1 << 23), said(MxF4NvF4, 16), sm_103, Ok((96, 6))),
            (long(1) & !(1 << 23), said(MxF4NvF4, 32), sm_103, Err(false)),
            (of(1), pair(said(MxF4, 32)), sm_103, Ok((64, 2))),
            (long(1), pair(said(MxF4, 32)), sm_103, Err(false)),
            (long(2), pair(said(MxF4, 32)), sm_103, Ok((96, 3))),
            // Three scales begin at any byte, six at an even one.
            (long(1) | 1 << 4 | 3 << 29, said(MxF4, 32), sm_103, Ok((96, 3))),
            (long(1) | 2 << 4 | 2 << 29, said(MxF4NvF4, 16), sm_103, Ok((96, 6))),
            (long(1) | 1 << 4, said(MxF4NvF4, 16), sm_103, Err(false)),
            (of(1) | 1 << 29, said(MxF4NvF4, 32), sm_103, Err(false)),
            // Still longer ones.
            (long(1) | 4, Said { sparse: true, ..said(MxF4, 32) }, sm_103, Err(true)),
            (of(1) | 8, said(MxF4, 32), sm_103, Err(true)),
            (long(1), said(MxF8F6F4, 32), sm_103, Err(true)),
            (2 << 17 | 8 << 24 | 1 << 29 | 1 << 4, said(F8F6F4, 32), sm_103, Err(true)),
        ];
        for (descriptor, said, arch, expected) in cases {
            let found = Plan::new(descriptor, said, arch)
                .map(|plan| (plan.shape.k, plan.scaling.map_or(0, |scaling| scaling.blocks)))
                .map_err(|why| why == LATER_K);
            assert_eq!(found, expected, "{descriptor:#x} {said:?} {arch}");
        }
    }
}
