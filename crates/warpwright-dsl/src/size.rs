//! Sizes of a configuration, as a body asks for them by name: constants where the kernel is launched, and perhaps
//! registers where another kernel [calls](super::Call) the body.
//!
//! What is known while the kernel is built stays so through the arithmetic here, so that a body that asks for its
//! sizes is printed as one that has them in its text.

use super::form::FormId;
use super::reg::Reg;
use super::types::*;
use super::{K, Ptr};
use std::ops::{Add, Mul};
use warpwright_ptx::ir::{Imm, Type};

/// A number of a kernel's configuration that its body asks for by name: see [`Kernel::sizes`](super::Kernel::sizes).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SizeValue {
    /// What [`K::size`] asks for.
    U32(u32),
    /// What [`K::wide_size`] asks for.
    U64(u64),
    /// What [`K::factor`] asks for.
    F32(f32),
}

impl SizeValue {
    /// Its bits, in the low ones of 64.
    pub fn bits(self) -> u64 {
        match self {
            SizeValue::U32(value) => value.into(),
            SizeValue::U64(value) => value,
            SizeValue::F32(value) => value.to_bits().into(),
        }
    }
}

/// A size of the configuration, in a body: known while the kernel is built, or only when it runs.
#[derive(Clone, Copy, Debug)]
pub struct Size<'k> {
    reg: Reg<'k, u32>,
    known: Option<u32>,
}

impl<'k> Size<'k> {
    /// Its value, where it is known while the kernel is built.
    pub fn known(self) -> Option<u32> {
        self.known
    }

    /// Its value on the device.
    pub fn reg(self) -> Reg<'k, u32> {
        self.reg
    }

    /// Its value on the device, in 64 bits.
    #[track_caller]
    pub fn wide(self) -> Reg<'k, u64> {
        match self.known {
            Some(known) => self.reg.kernel().u64(known.into()),
            None => self.reg.to(),
        }
    }

    /// How many times `part` makes it up, the last time perhaps not in full. It is no more than `u32::MAX - part`.
    #[track_caller]
    pub fn div_ceil(self, part: u32) -> Self {
        match self.known {
            Some(known) if part > 0 => constant(self.reg.kernel(), known.div_ceil(part)),
            _ => computed((self.reg + part.saturating_sub(1)) / part),
        }
    }
}

fn constant(k: K<'_>, value: u32) -> Size<'_> {
    Size { reg: k.u32(value), known: Some(value) }
}

/// A size that is computed when the kernel runs. All threads have the same: it counts as one in addresses, which are
/// not to compute it again.
fn computed(reg: Reg<'_, u32>) -> Size<'_> {
    let mut state = reg.kernel().state();
    if let Some(value) = state.values.get_mut(reg.id.0 as usize) {
        value.form = FormId::OPAQUE;
    }
    drop(state);
    Size { reg, known: None }
}

impl<'k> Add for Size<'k> {
    type Output = Self;

    /// The sum, modulo 2³².
    #[track_caller]
    fn add(self, other: Self) -> Self {
        match (self.known, other.known) {
            (Some(a), Some(b)) => constant(self.reg.kernel(), a.wrapping_add(b)),
            _ => computed(self.reg + other.reg),
        }
    }
}

impl<'k> Mul<u32> for Size<'k> {
    type Output = Self;

    /// The product, modulo 2³².
    #[track_caller]
    fn mul(self, factor: u32) -> Self {
        match self.known {
            Some(known) => constant(self.reg.kernel(), known.wrapping_mul(factor)),
            None => computed(self.reg * factor),
        }
    }
}

impl<'k> Reg<'k, f32> {
    /// Its value, where it is known while the kernel is built: as [`Size::known`], of a [factor](K::factor).
    pub fn known(self) -> Option<f32> {
        match self.kernel().state().constant_of(self.id) {
            Some(Imm::F32(bits)) => Some(f32::from_bits(bits)),
            _ => None,
        }
    }
}

impl<'k, S: PointerSpace, T: Data> Ptr<'k, S, T> {
    /// The pointer to row `row` of rows of `length` elements.
    #[track_caller]
    pub fn row(self, row: Reg<'k, u32>, length: Size<'k>) -> Self {
        match length.known {
            Some(length) => self.at(row * length),
            None => self.at(row.to::<u64>() * length.reg.to::<u64>()),
        }
    }
}

impl<'k> K<'k> {
    /// A size of the configuration, `value`, under the name that [`Kernel::sizes`](super::Kernel::sizes) gives it.
    #[track_caller]
    pub fn size(self, name: &str, value: u32) -> Size<'k> {
        let given = self.state().framed_size(name, Type::U32);
        match given {
            Some(id) => Size { reg: Reg::new(self, id), known: None },
            None => constant(self, value),
        }
    }

    /// The same of 64 bits.
    #[track_caller]
    pub fn wide_size(self, name: &str, value: u64) -> Reg<'k, u64> {
        let given = self.state().framed_size(name, Type::U64);
        given.map_or_else(|| self.u64(value), |id| Reg::new(self, id))
    }

    /// The same of a factor.
    #[track_caller]
    pub fn factor(self, name: &str, value: f32) -> Reg<'k, f32> {
        let given = self.state().framed_size(name, Type::F32);
        given.map_or_else(|| self.f32(value), |id| Reg::new(self, id))
    }

    /// A table of the configuration, `values` of 64 bits each, under the name that
    /// [`Kernel::tables`](super::Kernel::tables) gives it: part of the module where the kernel is launched, and for
    /// lanes that read different elements.
    #[track_caller]
    pub fn configured_table<T: Number>(self, name: &str, values: &[T::Literal]) -> Ptr<'k, Global, T> {
        const { assert!(matches!(T::TYPE, Type::U64 | Type::S64 | Type::F64), "an element has 64 bits") }
        let given = self.state().framed_table(name);
        match given {
            Some(words) => Ptr::with_id(self, words).nc(),
            None => self.global_table::<T>(values),
        }
    }
}
