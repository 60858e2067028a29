//! Conversions between elements.

use super::emit;
use super::reg::Reg;
use super::state::{Loc, POISON, State};
use super::types::*;
use std::panic::Location;
use warpwright_ptx::ir::{self, Cmp, Imm, Rounding, Src, Type};
use warpwright_ptx::op::convert::Cvt;

/// Elements that a `U` converts to by value.
pub trait ConvertFrom<U: Data>: Data {}

/// Elements that convert to `f32` by value.
pub trait ToF32: Data {}

macro_rules! convert {
    ($($from:ty => $($to:ty)*;)*) => {
        $($(impl ConvertFrom<$from> for $to {})*
        impl ToF32 for $from {})*
    };
}

convert! {
    u8 => u16 i16 u32 i32 u64 i64 F16 Bf16 f32 f64;
    i8 => u16 i16 u32 i32 u64 i64 F16 Bf16 f32 f64;
    u16 => u8 i8 u16 i16 u32 i32 u64 i64 F16 Bf16 f32 f64;
    i16 => u8 i8 u16 i16 u32 i32 u64 i64 F16 Bf16 f32 f64;
    u32 => u8 i8 u16 i16 u32 i32 u64 i64 F16 Bf16 f32 f64;
    i32 => u8 i8 u16 i16 u32 i32 u64 i64 F16 Bf16 f32 f64;
    u64 => u8 i8 u16 i16 u32 i32 u64 i64 F16 Bf16 f32 f64;
    i64 => u8 i8 u16 i16 u32 i32 u64 i64 F16 Bf16 f32 f64;
    F16 => u16 i16 u32 i32 u64 i64 F16 Bf16 f32 f64;
    Bf16 => u16 i16 u32 i32 u64 i64 F16 Bf16 f32 f64;
    f32 => u16 i16 u32 i32 u64 i64 F16 Bf16 f32 f64;
    f64 => u16 i16 u32 i32 u64 i64 F16 Bf16 f32 f64;
}

impl<'k, T: Data> Reg<'k, T> {
    /// The value as another element type. Conversions to a float round to nearest, those from a float to an integer
    /// round toward zero, and those between integers keep the low bits or extend the sign.
    #[track_caller]
    pub fn to<U: ConvertFrom<T>>(self) -> Reg<'k, U> {
        let id = self.k.state().convert(self.id, T::TYPE, U::TYPE, Location::caller());
        Reg::new(self.k, id)
    }

    /// The value as `f32`.
    #[track_caller]
    pub fn f32(self) -> Reg<'k, f32>
    where
        T: ToF32,
    {
        let id = self.k.state().convert(self.id, T::TYPE, Type::F32, Location::caller());
        Reg::new(self.k, id)
    }
}

impl<'k> Reg<'k, F16x2> {
    /// Both halves, the low one first.
    #[track_caller]
    pub fn unpack(self) -> [Reg<'k, F16>; 2] {
        self.k.state().unpack(self.id, Type::F16, Location::caller()).map(|id| Reg::new(self.k, id))
    }

    /// Both halves as `f32`, the low one first.
    #[track_caller]
    pub fn f32x2(self) -> [Reg<'k, f32>; 2] {
        self.unpack().map(|half| half.f32())
    }
}

impl<'k> Reg<'k, Bf16x2> {
    /// Both halves, the low one first.
    #[track_caller]
    pub fn unpack(self) -> [Reg<'k, Bf16>; 2] {
        self.k.state().unpack(self.id, Type::BF16, Location::caller()).map(|id| Reg::new(self.k, id))
    }

    /// Both halves as `f32`, the low one first.
    #[track_caller]
    pub fn f32x2(self) -> [Reg<'k, f32>; 2] {
        let loc = Location::caller();
        let mut state = self.k.state();
        if !state.usable(self.id, loc) {
            return [Reg::new(self.k, POISON); 2];
        }
        let bits = state.operand(self.id, loc);
        let low = state.pure(Type::U32, loc, |d| emit::shl(Type::B32, d, bits.clone(), Imm::Int(16).into()));
        let high =
            state.pure(Type::U32, loc, |d| emit::and(Type::B32, d, bits, Imm::Int(0xffff_0000).into()));
        let halves =
            [low, high].map(|half| state.pure(Type::F32, loc, |d| emit::mov(Type::B32, d, Src::Reg(half))));
        drop(state);
        halves.map(|id| Reg::new(self.k, id))
    }
}

impl<'k> Reg<'k, u32> {
    /// The four signed bytes as `f32`, the lowest first. Each byte is placed in the significand of 2²³, which is then
    /// subtracted, because conversion instructions run at a quarter of the rate.
    #[track_caller]
    pub fn signed_bytes_f32(self) -> [Reg<'k, f32>; 4] {
        const BASE: f32 = 8_388_608.0;
        let loc = Location::caller();
        let k = self.k;
        // With the sign's bit turned over, bytes count from -128.
        let unsigned = self.binary(super::reg::Binary::Xor, k.u32(0x8080_8080), loc);
        [0u32, 1, 2, 3].map(|byte| {
            let (base, selector) = (k.u32(BASE.to_bits()), k.u32(0x7540 + byte));
            let float: Reg<'k, f32> = unsigned.ternary(base.id, selector.id, loc, |d, a, b, c| {
                warpwright_ptx::op::logic::Prmt { ty: Type::B32, mode: None, d: ir::Dst(d), a, b, c }.into()
            });
            float.binary(super::reg::Binary::Sub, k.f32(BASE + 128.0), loc)
        })
    }
}

impl<'k> Reg<'k, f32> {
    /// The nearest half, ties to even. Values beyond the largest half, including infinities, become ±65504. NaN stays
    /// NaN.
    #[track_caller]
    pub fn to_f16_saturating(self) -> Reg<'k, F16> {
        let loc = Location::caller();
        if self.k.target().sm < 80 {
            return self.k.on_line(loc, || self.clamped_to_f16().to());
        }
        self.unary(loc, |d, a| {
            let rounded = emit::conversion(Some(Rounding::Rn), Type::F16, Type::F32, d, a);
            Cvt { satfinite: true, ..rounded }.into()
        })
    }

    /// [`pack_f16`](Self::pack_f16) of halves that saturate as
    /// [`to_f16_saturating`](Self::to_f16_saturating) does.
    #[track_caller]
    pub fn pack_f16_saturating(self, high: Reg<'k, f32>) -> Reg<'k, F16x2> {
        let loc = Location::caller();
        if self.k.target().sm < 80 {
            return self.k.on_line(loc, || self.clamped_to_f16().pack_f16(high.clamped_to_f16()));
        }
        let id = self.k.state().pack_pair(self.id, high.id, Type::F16X2, true, loc);
        Reg::new(self.k, id)
    }

    /// Where the conversion cannot saturate (`ptxas` takes the modifier for `sm_75`, and forgets the
    /// conversion).
    fn clamped_to_f16(self) -> Self {
        let clamped = self.min(65504.0).max(-65504.0);
        self.eq(self).select(clamped, self)
    }

    /// `self` as the low half and `high` as the high half.
    #[track_caller]
    pub fn pack_f16(self, high: Reg<'k, f32>) -> Reg<'k, F16x2> {
        let loc = Location::caller();
        let id = self.k.state().pack_halves(self.id, high.id, Type::F16, Type::F16X2, loc);
        Reg::new(self.k, id)
    }

    /// `self` as the low half and `high` as the high half.
    #[track_caller]
    pub fn pack_bf16(self, high: Reg<'k, f32>) -> Reg<'k, Bf16x2> {
        let loc = Location::caller();
        let id = self.k.state().pack_halves(self.id, high.id, Type::BF16, Type::BF16X2, loc);
        Reg::new(self.k, id)
    }

    /// The nearest integer, ties to even.
    #[track_caller]
    pub fn round_i32(self) -> Reg<'k, i32> {
        self.unary(Location::caller(), |d, a| emit::cvt(Some(Rounding::Rni), Type::S32, Type::F32, d, a))
    }
}

macro_rules! integral {
    ($($(#[$doc:meta])* $name:ident $rounding:ident;)*) => {
        impl<'k> Reg<'k, f32> {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(self) -> Self {
                self.unary(Location::caller(), |d, a| {
                    emit::cvt(Some(Rounding::$rounding), Type::F32, Type::F32, d, a)
                })
            })*
        }
    };
}

integral! {
    /// The nearest integral value, ties to even.
    round Rni;
    /// The integral part.
    trunc Rzi;
    /// The largest integral value that is not larger.
    floor Rmi;
    /// The smallest integral value that is not smaller.
    ceil Rpi;
}

impl State {
    pub(super) fn convert(&mut self, from: ir::Reg, a: Type, d: Type, loc: Loc) -> ir::Reg {
        if !self.usable(from, loc) || a == d {
            return from;
        }
        if a == Type::BF16 {
            let single = self.bf16_to_f32(from, loc);
            return self.convert(single, Type::F32, d, loc);
        }
        if d == Type::BF16 && a != Type::F32 {
            let single = self.convert(from, a, Type::F32, loc);
            return self.convert(single, Type::F32, d, loc);
        }
        if d == Type::BF16 && self.target.sm < 80 {
            return self.f32_to_bf16(from, loc);
        }
        if a.is_integer() && d.is_integer() && a.bits() >= 32 && d.bits() >= 32 {
            // As an index, the value stays what it is.
            let form = self.form_of(from);
            let src = self.operand(from, loc);
            let value = self.pure(d, loc, |r| {
                if a.bits() == d.bits() {
                    emit::mov(emit::register_type(d), r, src)
                } else {
                    emit::cvt(None, d, a, r, src)
                }
            });
            self.values[value.0 as usize].form = form;
            return value;
        }
        // A predicate of rounding: to a float unless every value fits, to an integer toward zero.
        let rounding = match (a.is_float(), d.is_float()) {
            (true, false) => Some(Rounding::Rzi),
            (false, true) => Some(Rounding::Rn),
            (true, true) if d.bits() < a.bits() => Some(Rounding::Rn),
            _ => None,
        };
        let reg = self.register(from, loc);
        self.pure(d, loc, |r| emit::cvt(rounding, d, a, r, Src::Reg(reg)))
    }

    /// A bfloat16 is the upper half of the `f32`.
    fn bf16_to_f32(&mut self, from: ir::Reg, loc: Loc) -> ir::Reg {
        let half = self.register(from, loc);
        let word = self.pure(Type::U32, loc, |d| emit::cvt(None, Type::U32, Type::U16, d, Src::Reg(half)));
        let bits =
            self.pure(Type::U32, loc, |d| emit::shl(Type::B32, d, Src::Reg(word), Imm::Int(16).into()));
        self.pure(Type::F32, loc, |d| emit::mov(Type::B32, d, Src::Reg(bits)))
    }

    /// Rounding to nearest in integers, where there is no instruction.
    fn f32_to_bf16(&mut self, from: ir::Reg, loc: Loc) -> ir::Reg {
        let x = self.operand(from, loc);
        let bits = self.pure(Type::U32, loc, |d| emit::mov(Type::B32, d, x.clone()));
        let high =
            self.pure(Type::U32, loc, |d| emit::shr(Type::U32, d, Src::Reg(bits), Imm::Int(16).into()));
        let odd = self.pure(Type::U32, loc, |d| emit::and(Type::B32, d, Src::Reg(high), Imm::Int(1).into()));
        let up = self.pure(Type::U32, loc, |d| emit::add(Type::U32, d, Src::Reg(bits), Src::Reg(odd)));
        let up =
            self.pure(Type::U32, loc, |d| emit::add(Type::U32, d, Src::Reg(up), Imm::Int(0x7fff).into()));
        let rounded =
            self.pure(Type::U32, loc, |d| emit::shr(Type::U32, d, Src::Reg(up), Imm::Int(16).into()));
        let nan = self.pure(Type::Pred, loc, |d| emit::setp(Cmp::Nan, Type::F32, d, x.clone(), x));
        let word = self.pure(Type::U32, loc, |d| {
            emit::selp(Type::B32, d, Imm::Int(0x7fff).into(), Src::Reg(rounded), nan)
        });
        self.pure(Type::BF16, loc, |d| emit::cvt(None, Type::U16, Type::U32, d, Src::Reg(word)))
    }

    fn unpack(&mut self, from: ir::Reg, half: Type, loc: Loc) -> [ir::Reg; 2] {
        if !self.usable(from, loc) {
            return [POISON; 2];
        }
        let word = self.register(from, loc);
        let halves = [self.written(half), self.written(half)];
        self.effect(emit::unpack(Type::B32, halves.map(Some), word), None, loc);
        halves
    }

    fn pack_halves(&mut self, low: ir::Reg, high: ir::Reg, half: Type, pair: Type, loc: Loc) -> ir::Reg {
        if !(self.usable(low, loc) && self.usable(high, loc)) {
            return POISON;
        }
        if self.target.sm < 80 {
            let parts = [low, high].map(|part| self.convert(part, Type::F32, half, loc));
            return self.pure(pair, loc, |d| emit::pack(Type::B32, d, parts));
        }
        self.pack_pair(low, high, pair, false, loc)
    }

    /// Two values rounded and packed by one instruction.
    fn pack_pair(&mut self, low: ir::Reg, high: ir::Reg, pair: Type, satfinite: bool, loc: Loc) -> ir::Reg {
        if !(self.usable(low, loc) && self.usable(high, loc)) {
            return POISON;
        }
        let (a, b) = (self.operand(high, loc), self.operand(low, loc));
        self.pure(pair, loc, |d| {
            let rounded = emit::conversion(Some(Rounding::Rn), pair, Type::F32, d, a);
            Cvt { satfinite, b: Some(b), ..rounded }.into()
        })
    }
}

impl<'k> super::K<'k> {
    /// Two halves in one register, the low one first.
    #[track_caller]
    pub fn pair(self, low: Reg<'k, F16>, high: Reg<'k, F16>) -> Reg<'k, F16x2> {
        let loc = Location::caller();
        let mut state = self.state();
        let id = if state.usable(low.id, loc) && state.usable(high.id, loc) {
            let parts = [state.register(low.id, loc), state.register(high.id, loc)];
            state.pure(Type::F16X2, loc, |d| emit::pack(Type::B32, d, parts))
        } else {
            POISON
        };
        drop(state);
        Reg::new(self, id)
    }
}
