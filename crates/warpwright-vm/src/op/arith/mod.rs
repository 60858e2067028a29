//! Integer and floating-point arithmetic.

pub(crate) mod extremum;
pub(crate) mod function;
pub(crate) mod product;
pub(crate) mod sign;
pub(crate) mod sum;

use crate::decode::{Decoder, Rows};
use crate::native::{self, Arithmetic, Double};
use crate::num::float::Operation;
use crate::num::{Format, float, half, integer};
use warpwright_ptx::ir::Type::*;
use warpwright_ptx::ir::{Dst, Rounding, Src, Type};

/// A floating-point operation that is rounded in a direction, or in a way that is rare.
struct Rounded {
    operation: Operation,
    rounding: Option<Rounding>,
    ftz: bool,
    sat: bool,
    relu: bool,
    ty: Type,
}

impl Rounded {
    /// Emits the operation on one to three sources of its type. `false` where it has no such type.
    fn emit<const N: usize>(self, d: &mut Decoder<'_, '_>, dst: Dst, sources: [&Src; N]) -> bool {
        let Rounded { operation, rounding, ftz, sat, relu, ty } = self;
        let direction = super::lanes::direction(rounding);
        // A source that is not there is the row of the first one: what it holds is not looked at.
        let mut rows = d.rows(ty, dst, sources);
        if N < 2 {
            rows.b = rows.a;
        }
        if N < 3 {
            rows.c = rows.a;
        }
        let narrow = move |format: &Format, operands: [u32; 3]| {
            let flush = |bits: u16| if ftz { half::flush_f16(bits) } else { bits };
            let operands = operands.map(|bits| u64::from(flush(bits as u16)));
            let bits = flush(float::directed(operation, format, direction, operands) as u16);
            limit_half(format, bits, sat, relu)
        };
        let both = move |format: &Format, operands: [u32; 3]| {
            let high = narrow(format, operands.map(|bits| bits >> 16));
            u32::from(narrow(format, operands)) | u32::from(high) << 16
        };
        match ty {
            F32 => {
                d.each3::<f32, f32, f32, f32>(rows, move |a, b, c| {
                    float::directed_f32(operation, direction, ftz, sat, [a, b, c])
                });
                let arithmetic = match operation {
                    Operation::Add => Some(Arithmetic::Add),
                    Operation::Sub => Some(Arithmetic::Sub),
                    Operation::Mul => Some(Arithmetic::Mul),
                    Operation::Fma => Some(Arithmetic::MulAdd),
                    _ => None,
                };
                let native = arithmetic.and_then(|of| native::directed(of, direction, ftz, sat));
                native.into_iter().for_each(|native| d.is_native(native));
            }
            F64 => {
                d.each3::<f64, f64, f64, f64>(rows, move |a, b, c| {
                    float::directed_f64(operation, direction, [a, b, c])
                });
                let of = match operation {
                    Operation::Add => Double::Add,
                    Operation::Sub => Double::Sub,
                    Operation::Mul => Double::Mul,
                    Operation::Fma => Double::MulAdd,
                    Operation::Div => Double::Div,
                    Operation::Sqrt => Double::Root,
                    Operation::Rcp => Double::Reciprocal,
                };
                native::double(of, direction).into_iter().for_each(|native| d.is_native(native));
            }
            F32X2 => d.each3::<u64, u64, u64, u64>(rows, move |a, b, c| {
                let part = |shift: u32| {
                    let operands = [a, b, c].map(|bits| f32::from_bits((bits >> shift) as u32));
                    float::directed_f32(operation, direction, ftz, sat, operands).to_bits()
                };
                u64::from(part(0)) | u64::from(part(32)) << 32
            }),
            F16 => d.each3::<u32, u32, u32, u16>(rows, move |a, b, c| narrow(&Format::F16, [a, b, c])),
            BF16 => d.each3::<u32, u32, u32, u16>(rows, move |a, b, c| narrow(&Format::BF16, [a, b, c])),
            F16X2 => d.each3::<u32, u32, u32, u32>(rows, move |a, b, c| both(&Format::F16, [a, b, c])),
            BF16X2 => d.each3::<u32, u32, u32, u32>(rows, move |a, b, c| both(&Format::BF16, [a, b, c])),
            _ => return false,
        }
        true
    }
}

/// Emits `d = f(a, b)` of the parts of packed words: `BITS` bits each, extended as `SIGNED` says.
fn parts<const BITS: u32, const SIGNED: bool>(
    d: &mut Decoder<'_, '_>,
    rows: Rows,
    f: impl Fn([i32; 2]) -> i32 + Send + Sync + 'static,
) {
    d.each2::<u32, u32, u32>(rows, move |a, b| integer::packed::<BITS, SIGNED, 2>([a, b], &f));
}

/// What `.sat` and `.relu` make of a result of half precision.
fn limit_half(format: &Format, bits: u16, sat: bool, relu: bool) -> u16 {
    let (negative, magnitude) = (bits & 0x8000 != 0, u64::from(bits & 0x7fff));
    let nan = magnitude > format.infinity.unwrap_or(format.largest);
    // The bits of 1.0: those of the bias of the exponent.
    let one = ((1 - format.min_exponent) as u16) << (format.precision - 1);
    match (sat, relu) {
        (true, _) if nan || negative => 0,
        (true, _) => bits.min(one),
        (_, true) if negative && !nan => 0,
        _ => bits,
    }
}
