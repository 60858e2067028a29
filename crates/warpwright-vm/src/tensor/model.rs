//! Models of tensor cores, and their arithmetic for each element type.
//!
//! What is known of each:
//!
//! | factors | followed | known from |
//! |---|---|---|
//! | integers, single bits | exact | the ISA |
//! | f64 | multiply-adds along k | measured on H200 |
//! | f16, bf16, tf32 | blocks ([`Accumulation`]) | measured on V100, A100, Ada, H100, H200, B200 |
//! | e4m3, e5m2 of `mma.sync` | blocks | measured on Ada, H200 |
//! | | as on Hopper | *assumed* on B200 |
//! | | one rounding | *assumed* on sm_120 |
//! | e4m3, e5m2 of `tcgen05.mma` | one rounding | *assumed*: B200 was measured to be close to it |
//! | e3m2, e2m3, e2m1 | one rounding | *assumed* on all |
//! | any with block scales | one rounding | *assumed* on all |
//! | f16, bf16, tf32 on sm_120 | as on B200 | *assumed* |
//!
//! [`TensorCore::evidence`] is this table as data.
//!
//! One rounding: the sum of `c` and of all products, multiplied by their scales, is exact and rounded once, to nearest
//! even, to the type of the result. The fp8 of B200's other instructions was measured to be close to that. Infinities
//! and NaNs propagate as in IEEE 754; a scale that is NaN makes all of its block NaN.

use super::FloatElement;
use std::fmt;
use std::str::FromStr;
use warpwright_ptx::ir::Arch;

/// A tensor core whose additions are followed bit for bit, or the ideal one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TensorCore {
    /// Volta: blocks of four products. Also stands for Turing, which was not measured.
    V100,
    /// Ampere, A100 and A2 alike.
    A100,
    /// Ada and L40S: like [`TensorCore::A100`], with fp8.
    Ada,
    /// Hopper, H100 and H200 alike.
    H100,
    /// Blackwell of the data centre.
    B200,
    /// Blackwell of graphics cards (`sm_120`), which was not measured: like [`TensorCore::B200`], with one rounding of
    /// fp8.
    Rtx50,
    /// One correctly rounded result of the exact sum of `c` and all products. No hardware does this: use it to tell a
    /// kernel's error from the tensor core's.
    Exact,
}

impl TensorCore {
    /// Every model, oldest first.
    pub const ALL: &'static [TensorCore] = &[
        TensorCore::V100,
        TensorCore::A100,
        TensorCore::Ada,
        TensorCore::H100,
        TensorCore::B200,
        TensorCore::Rtx50,
        TensorCore::Exact,
    ];

    /// Its name on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            TensorCore::V100 => "v100",
            TensorCore::A100 => "a100",
            TensorCore::Ada => "ada",
            TensorCore::H100 => "h100",
            TensorCore::B200 => "b200",
            TensorCore::Rtx50 => "rtx50",
            TensorCore::Exact => "exact",
        }
    }

    /// The tensor core of an architecture. Turing (`sm_75`) gets Volta's, the nearest one that was measured;
    /// architectures from Hopper to `sm_120` get that of B200.
    pub const fn for_arch(arch: Arch) -> TensorCore {
        match arch.sm {
            0..80 => TensorCore::V100,
            80..88 => TensorCore::A100,
            88..90 => TensorCore::Ada,
            90..100 => TensorCore::H100,
            100..120 => TensorCore::B200,
            _ => TensorCore::Rtx50,
        }
    }

    /// The way in which `mma.sync` and `wmma` add products of such factors; `None`: one correct rounding.
    ///
    /// If a tensor core does not support a type (bf16 and tf32 on V100, fp8 before Ada), the next newer one that does
    /// is followed.
    pub const fn accumulation(self, element: FloatElement) -> Option<Accumulation> {
        use FloatElement::*;
        let (block, extra_bits, step, halved) = match (self, element) {
            (TensorCore::Exact, _) | (_, E3M2 | E2M3 | E2M1) | (TensorCore::Rtx50, E4M3 | E5M2) => {
                return None;
            }
            (TensorCore::V100, F16) => (4, 0, 4, false),
            (TensorCore::V100 | TensorCore::A100 | TensorCore::Ada, F16 | BF16) => (8, 1, 16, false),
            (TensorCore::V100 | TensorCore::A100 | TensorCore::Ada, TF32) => (4, 1, 8, false),
            (TensorCore::V100 | TensorCore::A100 | TensorCore::Ada, E4M3 | E5M2) => (16, -10, 32, false),
            (TensorCore::H100 | TensorCore::B200 | TensorCore::Rtx50, F16 | BF16) => (16, 2, 16, false),
            (TensorCore::H100 | TensorCore::B200 | TensorCore::Rtx50, TF32) => (8, 2, 8, false),
            (TensorCore::H100 | TensorCore::B200, E4M3 | E5M2) => (16, 2, 16, true),
        };
        Some(Accumulation { block, extra_bits, step, halved })
    }

    /// The way in which `wgmma` adds products; `None`: one correct rounding. It differs from
    /// [`accumulation`](Self::accumulation) in fp8, for which `wgmma` has a tensor core of its own. Other cores than
    /// Hopper's have no `wgmma`, and get the same.
    pub const fn warpgroup_accumulation(self, element: FloatElement) -> Option<Accumulation> {
        match (self, element) {
            (TensorCore::Exact, _) => None,
            (_, FloatElement::E4M3 | FloatElement::E5M2) => {
                Some(Accumulation { block: 32, extra_bits: -10, step: 32, halved: false })
            }
            _ => TensorCore::H100.accumulation(element),
        }
    }

    /// The way in which `tcgen05.mma` adds products: as that of B200, whose fp8 was measured to be close to one correct
    /// rounding (`None`). Other cores have no such instruction, and get the same.
    pub const fn tensor_memory_accumulation(self, element: FloatElement) -> Option<Accumulation> {
        use FloatElement::*;
        match (self, element) {
            (TensorCore::Exact, _) | (_, E4M3 | E5M2 | E3M2 | E2M3 | E2M1) => None,
            (_, F16 | BF16 | TF32) => TensorCore::B200.accumulation(element),
        }
    }

    /// `mma.m8n8k4` with f16 factors is multiply-adds of the lanes, without a tensor core: [`fused`](super::fused).
    /// So the assembler translates it from Ampere on.
    pub const fn fuses_quads(self) -> bool {
        match self {
            TensorCore::V100 | TensorCore::Exact => false,
            TensorCore::A100 | TensorCore::Ada | TensorCore::H100 | TensorCore::B200 | TensorCore::Rtx50 => {
                true
            }
        }
    }
}

/// The way in which a tensor core adds. The products of a row and a column are taken in blocks along k, and each
/// block includes the running value as one more term:
///
/// 1. products are exact; let E be the largest exponent among those of the terms, where a product's
///    is the sum of its factors' exponents (it is not normalised) and zeros have none;
/// 2. every term is aligned to E and truncated toward zero to 23 + `extra_bits` fraction bits;
/// 3. the sum of that is rounded toward zero to 24 + min(`extra_bits`, 0) significant bits. A sum that is `f16`
///    is at the end of a step rounded to nearest even instead, once: from what was added, not from those bits. As a
///    term, its exponent is at least that of the smallest normal `f16`.
///
/// A sum that is or becomes zero is +0. Infinities and NaNs propagate as in IEEE 754, a NaN is canonical, a sum beyond
/// the largest number is infinite.
///
/// Published measurements cover `f32` sums of finite numbers. Ours of an H200 (`tests/data/tensor-core/h200.txt`,
/// `tests/data/wgmma`) confirm them and cover the rest; what they say of `f16` sums and zeros is taken for every core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accumulation {
    /// Products in a block.
    pub block: usize,
    /// Bits kept beyond the 23 of a fraction of `f32`; negative: fewer are kept.
    pub extra_bits: i32,
    /// Number of products after which the running value is written to a register.
    pub step: usize,
    /// The factors are converted to f16 and multiplied by two instructions for f16: the first takes the lower two of
    /// each four factors along k, the second the upper two, as they stand in the halves of words. So a step and a
    /// block are at most half of the factors. The sum begins with zero, not `c`; an addition of IEEE 754, in the type
    /// of the sums, then adds `c`. This is `mma.sync` with fp8 on Hopper and on B200.
    pub halved: bool,
}

impl Accumulation {
    /// Exponent of the smallest normal factor of a type; smaller factors have it as well.
    pub const fn least_exponent(self, element: FloatElement) -> i32 {
        match element {
            // In f16 those values are normal.
            FloatElement::E4M3 if self.halved => FloatElement::F16.least_exponent(),
            _ => element.least_exponent(),
        }
    }
}

impl fmt::Display for TensorCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that does not name a tensor core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTensorCore(String);

impl fmt::Display for UnknownTensorCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no tensor core; there are ", self.0)?;
        for (i, core) in TensorCore::ALL.iter().enumerate() {
            let separator = match i {
                0 => "",
                _ if i + 1 == TensorCore::ALL.len() => " and ",
                _ => ", ",
            };
            write!(f, "{separator}`{core}`")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownTensorCore {}

impl FromStr for TensorCore {
    type Err = UnknownTensorCore;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = TensorCore::ALL.iter().copied().find(|core| core.name() == text);
        found.ok_or_else(|| UnknownTensorCore(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_is_read_by_its_name_and_no_other() {
        for &core in TensorCore::ALL {
            assert_eq!(core.name().parse(), Ok(core));
        }
        let refused = "h200".parse::<TensorCore>().unwrap_err();
        assert_eq!(
            refused.to_string(),
            "`h200` is no tensor core; there are `v100`, `a100`, `ada`, `h100`, `b200`, `rtx50` and `exact`"
        );
    }

    #[test]
    fn a_device_has_the_tensor_core_of_its_generation() {
        let of = |sm| TensorCore::for_arch(Arch::sm(sm));
        let found = [70, 75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121].map(of);
        use TensorCore::*;
        assert_eq!(found, [V100, V100, A100, A100, A100, Ada, Ada, H100, B200, B200, B200, Rtx50, Rtx50]);
        assert_eq!(TensorCore::for_arch(Arch::specific(90)), H100);
    }
}
