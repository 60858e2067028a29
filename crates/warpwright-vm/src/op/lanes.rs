//! Helpers of the arithmetic families: rows of operands, and operations that contain their modifiers.
//!
//! Common operations are a [`lane_op!`](crate::simd::lane_op), one function for each combination of modifiers. The
//! rest are closures over one lane that hold their modifiers; they too are compiled for each level of vector
//! instructions.

use crate::decode::{Decoder, Rows};
use crate::machine::{Cell, Inst, LANES, Machine, Step, map1, map2, map3};
use crate::num::{Direction, half};
use crate::simd::Lanes;
use warpwright_ptx::ir::{Dst, Rounding, Src, Type};

impl Decoder<'_, '_> {
    /// The row of a source of type `ty`, in the file of its width.
    pub(super) fn source(&mut self, src: &Src, ty: Type) -> u32 {
        if ty.bits() == 64 { self.src64(src, ty) } else { self.src32(src, ty) }
    }

    /// Emits an operation on sources of type `ty`.
    pub(super) fn emit_on<const N: usize>(&mut self, lanes: Lanes, ty: Type, d: Dst, sources: [&Src; N]) {
        let rows = self.rows(ty, d, sources);
        self.emit(lanes, rows);
    }

    /// The rows of a destination and of up to three sources of type `ty`.
    pub(super) fn rows<const N: usize>(&mut self, ty: Type, d: Dst, sources: [&Src; N]) -> Rows {
        let mut rows = Rows { d: self.dst(d), ..Rows::default() };
        for (row, src) in [&mut rows.a, &mut rows.b, &mut rows.c].into_iter().zip(sources) {
            *row = self.source(src, ty);
        }
        rows
    }

    /// Emits a closure with rows; their `x` is taken.
    pub(crate) fn emit_carrying(
        &mut self,
        rows: Rows,
        run: impl for<'a> Fn(&mut Machine<'a>, &Inst) -> Step + Send + Sync + 'static,
    ) {
        let x = self.code.boxed.len() as u32;
        self.code.boxed.push(Box::new(run));
        self.emit_handler(|m, i| (m.launch.code.boxed[i.x as usize])(m, i), Rows { x, ..rows });
    }

    /// Emits `d = f(a)`.
    pub(super) fn each1<A: Cell, R: Cell>(&mut self, rows: Rows, f: impl Fn(A) -> R + Send + Sync + 'static) {
        let level = self.level;
        self.emit_carrying(rows, move |m, i| {
            level.run(
                #[inline(always)]
                || map1(m, i, &f),
            );
            Step::Next
        });
    }

    /// Emits `d = f(a, b)`.
    pub(super) fn each2<A: Cell, B: Cell, R: Cell>(
        &mut self,
        rows: Rows,
        f: impl Fn(A, B) -> R + Send + Sync + 'static,
    ) {
        let level = self.level;
        self.emit_carrying(rows, move |m, i| {
            level.run(
                #[inline(always)]
                || map2(m, i, &f),
            );
            Step::Next
        });
    }

    /// Emits `d = f(a, b, c)`.
    pub(super) fn each3<A: Cell, B: Cell, C: Cell, R: Cell>(
        &mut self,
        rows: Rows,
        f: impl Fn(A, B, C) -> R + Send + Sync + 'static,
    ) {
        let level = self.level;
        self.emit_carrying(rows, move |m, i| {
            level.run(
                #[inline(always)]
                || map3(m, i, &f),
            );
            Step::Next
        });
    }

    /// Emits `d, flag = f(a, b, c, flag)`: the carry flag is read where `reads`, written where `writes`.
    pub(super) fn each_with_carry<T: Cell>(
        &mut self,
        rows: Rows,
        (reads, writes): (bool, bool),
        f: impl Fn(T, T, T, bool) -> (T, bool) + Send + Sync + 'static,
    ) {
        let flag = self.carry();
        self.emit_carrying(rows, move |m, i| {
            let carry = if reads { m.registers.predicate(flag << 1) } else { 0 };
            let (a, b) = (T::row(&m.registers, i.a), T::row(&m.registers, i.b));
            let c = T::row(&m.registers, i.c);
            let (mut out, mut carries) = (T::out(), 0);
            for lane in 0..LANES {
                let carry = carry >> lane & 1 != 0;
                let (value, carry) = f(T::get(&a, lane), T::get(&b, lane), T::get(&c, lane), carry);
                T::put(&mut out, lane, value);
                carries |= u32::from(carry) << lane;
            }
            T::write(&mut m.registers, i.d, &out, m.mask);
            if writes {
                m.registers.set_predicate(flag, carries, m.mask);
            }
            Step::Next
        });
    }
}

/// The direction that a rounding modifier names; to the nearest where there is none.
pub(super) fn direction(rounding: Option<Rounding>) -> Direction {
    match rounding {
        Some(Rounding::Rz | Rounding::Rzi) => Direction::Zero,
        Some(Rounding::Rm | Rounding::Rmi) => Direction::Down,
        Some(Rounding::Rp | Rounding::Rpi) => Direction::Up,
        Some(Rounding::Rna) => Direction::NearestAway,
        _ => Direction::Nearest,
    }
}

/// Whether a rounding modifier is that to the nearest, or there is none.
pub(super) fn to_nearest(rounding: Option<Rounding>) -> bool {
    direction(rounding) == Direction::Nearest
}

/// The limit of a result of half precision.
pub(super) fn limit(sat: bool, relu: bool) -> u8 {
    match (sat, relu) {
        (true, _) => half::SAT,
        (_, true) => half::RELU,
        _ => half::PLAIN,
    }
}

/// The handlers of an operation with up to three flags.
macro_rules! flagged {
    ($op:ident, $a:expr) => {
        if $a { $crate::simd::lanes::<$op<true>>() } else { $crate::simd::lanes::<$op<false>>() }
    };
    ($op:ident, $a:expr, $b:expr) => {
        match ($a, $b) {
            (false, false) => $crate::simd::lanes::<$op<false, false>>(),
            (false, true) => $crate::simd::lanes::<$op<false, true>>(),
            (true, false) => $crate::simd::lanes::<$op<true, false>>(),
            (true, true) => $crate::simd::lanes::<$op<true, true>>(),
        }
    };
    ($op:ident, $a:expr, $b:expr, $c:expr) => {
        match ($a, $b, $c) {
            (false, false, false) => $crate::simd::lanes::<$op<false, false, false>>(),
            (false, false, true) => $crate::simd::lanes::<$op<false, false, true>>(),
            (false, true, false) => $crate::simd::lanes::<$op<false, true, false>>(),
            (false, true, true) => $crate::simd::lanes::<$op<false, true, true>>(),
            (true, false, false) => $crate::simd::lanes::<$op<true, false, false>>(),
            (true, false, true) => $crate::simd::lanes::<$op<true, false, true>>(),
            (true, true, false) => $crate::simd::lanes::<$op<true, true, false>>(),
            (true, true, true) => $crate::simd::lanes::<$op<true, true, true>>(),
        }
    };
}
pub(super) use flagged;

/// The handlers of an operation on integers of a type.
macro_rules! integers {
    ($op:ident, $ty:expr, else $other:expr) => {
        match $ty {
            Type::U16 => $crate::simd::lanes::<$op<u16>>(),
            Type::S16 => $crate::simd::lanes::<$op<i16>>(),
            Type::U32 => $crate::simd::lanes::<$op<u32>>(),
            Type::S32 => $crate::simd::lanes::<$op<i32>>(),
            Type::U64 => $crate::simd::lanes::<$op<u64>>(),
            Type::S64 => $crate::simd::lanes::<$op<i64>>(),
            _ => $other,
        }
    };
}
pub(super) use integers;

/// The handlers of an operation on untyped bits, of the width of a type.
macro_rules! sized {
    ($op:ident, $ty:expr) => {
        match $ty.bits() {
            16 => $crate::simd::lanes::<$op<u16>>(),
            64 => $crate::simd::lanes::<$op<u64>>(),
            _ => $crate::simd::lanes::<$op<u32>>(),
        }
    };
}
pub(super) use sized;

/// The handlers of a half-precision operation with a flag and a limit, or with a limit only.
macro_rules! limited {
    ($op:ident, $ftz:expr, $limit:expr) => {
        match ($ftz, $limit) {
            (false, $crate::num::half::SAT) => {
                $crate::simd::lanes::<$op<false, { $crate::num::half::SAT }>>()
            }
            (false, $crate::num::half::RELU) => {
                $crate::simd::lanes::<$op<false, { $crate::num::half::RELU }>>()
            }
            (false, _) => $crate::simd::lanes::<$op<false, { $crate::num::half::PLAIN }>>(),
            (true, $crate::num::half::SAT) => $crate::simd::lanes::<$op<true, { $crate::num::half::SAT }>>(),
            (true, $crate::num::half::RELU) => {
                $crate::simd::lanes::<$op<true, { $crate::num::half::RELU }>>()
            }
            (true, _) => $crate::simd::lanes::<$op<true, { $crate::num::half::PLAIN }>>(),
        }
    };
    ($op:ident, $limit:expr) => {
        match $limit {
            $crate::num::half::SAT => $crate::simd::lanes::<$op<{ $crate::num::half::SAT }>>(),
            $crate::num::half::RELU => $crate::simd::lanes::<$op<{ $crate::num::half::RELU }>>(),
            _ => $crate::simd::lanes::<$op<{ $crate::num::half::PLAIN }>>(),
        }
    };
}
pub(super) use limited;
