//! Numbers of a configuration that a body computes with.
//!
//! When a kernel is launched, these numbers are constants. When another kernel [calls](super::Call) its body, they
//! are registers, so that one piece of code serves every configuration that it is correct for. A body does not see
//! the difference: it computes with a [`Dim`] and asks it for *facts*, such as whether it is a multiple of a number.
//! The answers hold for the configuration that is being built, so the code serves all configurations with the same
//! answers. A kernel does not declare which configurations share code; they share it if they build to the same code.

use super::call::Asked;
use super::form::FormId;
use super::reg::{IntoReg, Reg};
use super::state::Loc;
use super::types::*;
use super::{Index, K, Ptr};
use std::ops::{Add, Div, Mul, Rem};
use std::panic::Location;
use warpwright_ptx::ir::{self, Imm, Type};

/// A number of the configuration, in a body: its value on the device, and facts about it.
#[derive(Clone, Copy, Debug)]
pub struct Dim<'k> {
    reg: Reg<'k, u32>,
    /// What it is in the configuration that is being built.
    value: u32,
    /// Whether the device reads it, so that the code must not have it.
    open: bool,
}

impl<'k> Dim<'k> {
    /// Its value on the device.
    pub fn reg(self) -> Reg<'k, u32> {
        self.reg
    }

    /// Its value on the device, in 64 bits.
    #[track_caller]
    pub fn wide(self) -> Reg<'k, u64> {
        if self.open { self.reg.to() } else { self.reg.kernel().u64(self.value.into()) }
    }

    /// Its value on the device, rounded to `f32`.
    #[track_caller]
    pub fn f32(self) -> Reg<'k, f32> {
        if self.open { self.reg.f32() } else { self.reg.kernel().f32(self.value as f32) }
    }

    /// Whether it is a multiple of `of`.
    pub fn is_multiple_of(self, of: u32) -> bool {
        self.value.is_multiple_of(of)
    }

    /// Whether it is `max` or less.
    pub fn is_at_most(self, max: u32) -> bool {
        self.value <= max
    }

    /// The number divided by `part`, rounded up. The number must be at most `u32::MAX - part`.
    #[track_caller]
    pub fn div_ceil(self, part: u32) -> Self {
        let part = part.max(1);
        self.then(self.value.div_ceil(part), || (self.reg + (part - 1)) / part)
    }

    /// The same number, from which later addresses are computed here instead of where it came from. It needs one
    /// register until here, instead of one for each such address. A constant is returned unchanged.
    #[track_caller]
    pub fn anew(self) -> Self {
        if !self.open {
            return self;
        }
        Dim { reg: self.reg.kernel().var(self.reg).get(), ..self }
    }

    /// The index at which row `row` begins, for rows of this many elements: one term of an address.
    #[track_caller]
    pub fn rows(self, row: Reg<'k, u32>) -> Reg<'k, u32> {
        let k = self.reg.kernel();
        if !self.open {
            return row * self.value;
        }
        let row = k.state().sealed(row.id, Location::caller());
        Reg::new(k, row) * self.reg
    }

    /// A value computed from the number. It is uniform over all threads, so addresses treat it as a single term and
    /// do not compute it again.
    fn then(self, value: u32, computed: impl FnOnce() -> Reg<'k, u32>) -> Self {
        let k = self.reg.kernel();
        if !self.open {
            return Dim { reg: k.u32(value), value, open: false };
        }
        let reg = computed();
        if let Some(value) = k.state().values.get_mut(reg.id.0 as usize) {
            value.form = FormId::OPAQUE;
        }
        Dim { reg, value, open: true }
    }
}

impl<'k> Add for Dim<'k> {
    type Output = Self;

    /// The sum, modulo 2³².
    #[track_caller]
    fn add(self, other: Self) -> Self {
        let open = self.open || other.open;
        Dim { open, ..self }.then(self.value.wrapping_add(other.value), || self.reg + other.reg)
    }
}

impl<'k> Mul<u32> for Dim<'k> {
    type Output = Self;

    /// The product, modulo 2³².
    #[track_caller]
    fn mul(self, factor: u32) -> Self {
        self.then(self.value.wrapping_mul(factor), || self.reg * factor)
    }
}

impl<'k> Div<u32> for Dim<'k> {
    type Output = Self;

    /// The quotient, rounded down; by zero, what the device makes of it.
    #[track_caller]
    fn div(self, by: u32) -> Self {
        self.then(self.value.checked_div(by).unwrap_or(u32::MAX), || self.reg / by)
    }
}

impl<'k> Rem<u32> for Dim<'k> {
    type Output = Self;

    /// The remainder; of a division by zero, what the device makes of it.
    #[track_caller]
    fn rem(self, by: u32) -> Self {
        self.then(self.value.checked_rem(by).unwrap_or(self.value), || self.reg % by)
    }
}

impl<'k> IntoReg<'k, u32> for Dim<'k> {
    fn into_reg(self, _: K<'k>, _: Loc) -> Reg<'k, u32> {
        self.reg
    }
}

impl<'k> Index<'k> for Dim<'k> {
    fn into_index(self, _: K<'k>) -> ir::Reg {
        self.reg.id
    }
}

impl<'k, S: PointerSpace, T: Data> Ptr<'k, S, T> {
    /// The pointer to row `row` of rows of `length` elements.
    #[track_caller]
    pub fn row(self, row: Reg<'k, u32>, length: Dim<'k>) -> Self {
        if length.open { self.at(row.to::<u64>() * length.wide()) } else { self.at(row * length.value) }
    }
}

impl<'k> K<'k> {
    /// A number of the configuration.
    #[track_caller]
    pub fn dim(self, value: u32) -> Dim<'k> {
        match self.open(value.into(), Type::U32, Location::caller()) {
            Some(id) => Dim { reg: Reg::new(self, id), value, open: true },
            None => Dim { reg: self.u32(value), value, open: false },
        }
    }

    /// A 64-bit number of the configuration.
    #[track_caller]
    pub fn wide_dim(self, value: u64) -> Reg<'k, u64> {
        let open = self.open(value, Type::U64, Location::caller());
        open.map_or_else(|| self.u64(value), |id| Reg::new(self, id))
    }

    /// A number of the configuration that values are multiplied by or added to.
    #[track_caller]
    pub fn factor(self, value: f32) -> Reg<'k, f32> {
        let open = self.open(value.to_bits().into(), Type::F32, Location::caller());
        open.map_or_else(|| self.f32(value), |id| Reg::new(self, id))
    }

    fn open(self, bits: u64, ty: Type, loc: Loc) -> Option<ir::Reg> {
        self.state().asked(Asked::Number(bits), ty, loc)
    }

    /// A table of `values` computed from the configuration, 64 bits each, for lanes that read different elements. If
    /// the kernel is launched, it is part of the module.
    #[track_caller]
    pub fn configured_table<T: Number>(self, values: &[T::Literal]) -> Ptr<'k, Global, T> {
        const { assert!(matches!(T::TYPE, Type::U64 | Type::S64 | Type::F64), "an element has 64 bits") }
        if !self.has_record() {
            return self.global_table::<T>(values);
        }
        let bits = |imm: Imm| match imm {
            Imm::Int(value) => value as u64,
            Imm::UInt(bits) | Imm::F64(bits) => bits,
            Imm::F32(bits) => bits.into(),
        };
        let words = values.iter().map(|&value| bits(T::immediate(value))).collect();
        self.asked_table(words, Location::caller())
    }
}
