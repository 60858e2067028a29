//! Registers: the handle, its operators, and how host values can be used in place of registers.

use super::K;
use super::carry::{self, Carry, registers, same_shape};
use super::emit;
use super::form::FormId;
use super::handle::handle;
use super::state::{Def, Loc, POISON, State};
use super::types::*;
use std::marker::PhantomData;
use std::ops;
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{self, Cmp, Imm, MulHalf, Src, Type};
use warpwright_ptx::op::Op;

/// A value of the kernel under construction: a handle, free to copy.
///
/// The lifetime is the kernel's: a register of one kernel does not fit another.
///
/// ```compile_fail,E0277
/// use warpwright_dsl::*;
/// fn mixed<'k>(x: Reg<'k, f32>, i: Reg<'k, u32>) -> Reg<'k, f32> {
///     x + i // f32 + u32
/// }
/// ```
///
/// ```compile_fail,E0521
/// use warpwright_dsl::*;
/// use warpwright_ptx::ir::Arch;
/// let mut leaked = None;
/// build("first", &LaunchRule::new(32), Arch::sm(80), |k| leaked = Some(k.tid()));
/// ```
pub struct Reg<'k, T> {
    pub(super) k: K<'k>,
    pub(super) id: ir::Reg,
    element: PhantomData<T>,
}

handle!(Reg<T>);

impl<T: Element> std::fmt::Debug for Reg<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reg<{}>({})", T::TYPE.name(), self.id.0)
    }
}

/// A value that can be used as a register: a register, or a host value, which becomes a constant.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not stand for a register of `{T}`",
    label = "neither a `Reg<{T}>` nor a literal of its type",
    note = "element types do not mix: `.to()` converts a register, `.f32()` one to `f32`",
    note = "a literal has the type of the element: `1.0` for floats, `1` for integers, `true` for predicates"
)]
pub trait IntoReg<'k, T: Element> {
    /// The register.
    #[doc(hidden)]
    fn into_reg(self, k: K<'k>, loc: &'static Location<'static>) -> Reg<'k, T>;
}

/// The host, which runs the body while the kernel is built.
#[derive(Clone, Copy, Debug)]
pub struct Host;

/// Types that the host can compare a register with by `<` and `==`: there are none, since the host does not know the
/// register's value.
///
/// ```compile_fail,E0277
/// use warpwright_dsl::*;
/// fn wrong<'k>(k: K<'k>, i: Reg<'k, u32>, n: Reg<'k, u32>) {
///     if i < n {} // `k.when(i.lt(n), || ..)`
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the host cannot compare what the device holds",
    label = "use `a.lt(b)`, `le`, `gt`, `ge`, `eq` or `ne`: predicates of the device",
    note = "branch on one by `k.when(i.lt(n), || ..)` or `k.if_(i.lt(n), || a).else_(|| b)`; choose by `i.lt(n).select(a, b)`"
)]
pub trait Compares<R> {}

// So that the compiler says the above: it looks at what is compared where there is a choice, of which none is in reach.
impl Compares<Host> for Host {}
impl Compares<&Host> for Host {}

impl<T, R> PartialEq<R> for Reg<'_, T>
where
    Host: Compares<R>,
{
    fn eq(&self, _: &R) -> bool {
        false
    }
}

impl<T, R> PartialOrd<R> for Reg<'_, T>
where
    Host: Compares<R>,
{
    fn partial_cmp(&self, _: &R) -> Option<std::cmp::Ordering> {
        None
    }
}

impl<'k, T: Element> IntoReg<'k, T> for Reg<'k, T> {
    fn into_reg(self, _: K<'k>, _: &'static Location<'static>) -> Reg<'k, T> {
        self
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    MulHi,
    Div,
    DivApprox,
    Rem,
    Min,
    Max,
    And,
    Or,
    Xor,
    Shl,
    Shr,
}

impl<'k, T> Reg<'k, T> {
    pub(super) fn new(k: K<'k>, id: ir::Reg) -> Self {
        Reg { k, id, element: PhantomData }
    }
}

impl<'k, T: Element> Reg<'k, T> {
    /// The IR register, for [`K::op`] while the kernel is built.
    #[track_caller]
    pub fn ir(self) -> ir::Reg {
        let loc = Location::caller();
        let state = &mut self.k.state();
        if state.usable(self.id, loc) { state.register(self.id, loc) } else { self.id }
    }

    /// The kernel that the register belongs to.
    pub fn kernel(self) -> K<'k> {
        self.k
    }

    pub(super) fn binary<U: Element>(self, op: Binary, other: Reg<'k, U>, loc: Loc) -> Self {
        let id = self.k.state().binary(op, T::TYPE, self.id, other.id, loc);
        Reg::new(self.k, id)
    }

    pub(super) fn unary<U: Element>(self, loc: Loc, op: impl FnOnce(ir::Reg, Src) -> Op) -> Reg<'k, U> {
        let mut state = self.k.state();
        if !state.usable(self.id, loc) {
            return Reg::new(self.k, POISON);
        }
        let a = state.operand(self.id, loc);
        let id = state.pure(U::TYPE, loc, |d| op(d, a));
        drop(state);
        Reg::new(self.k, id)
    }

    pub(super) fn ternary<U: Element>(
        self,
        b: ir::Reg,
        c: ir::Reg,
        loc: Loc,
        op: impl FnOnce(ir::Reg, Src, Src, Src) -> Op,
    ) -> Reg<'k, U> {
        let mut state = self.k.state();
        if !(state.usable(self.id, loc) && state.usable(b, loc) && state.usable(c, loc)) {
            return Reg::new(self.k, POISON);
        }
        let (a, b, c) = (state.operand(self.id, loc), state.operand(b, loc), state.operand(c, loc));
        let id = state.pure(U::TYPE, loc, |d| op(d, a, b, c));
        drop(state);
        Reg::new(self.k, id)
    }

    /// The same bits as another element type of the same size.
    #[track_caller]
    pub fn bits<U: Element>(self) -> Reg<'k, U> {
        let loc = Location::caller();
        if T::TYPE.bits() != U::TYPE.bits() {
            let message = format!("the bits of {} do not make a {}", T::TYPE.name(), U::TYPE.name());
            return Reg::new(self.k, self.k.state().mistake(Code::OperandType, loc, message));
        }
        if emit::register_type(T::TYPE) == emit::register_type(U::TYPE)
            && self.k.state().constant_of(self.id).is_none()
        {
            return self.unary(loc, |d, a| emit::mov(emit::register_type(U::TYPE), d, a));
        }
        self.unary(loc, |d, a| emit::mov(emit::bits_type(T::TYPE), d, a))
    }
}

impl State {
    /// The affine form of an integer.
    pub(super) fn form_of(&mut self, reg: ir::Reg) -> FormId {
        let value = *self.value(reg);
        if value.form != FormId::OPAQUE {
            return value.form;
        }
        let form = match value.def {
            Def::Const(Imm::Int(v)) => self.forms.literal(v),
            _ => self.forms.register(reg),
        };
        self.values[reg.0 as usize].form = form;
        form
    }

    /// The form of an integer sum, difference, product or shift; `None` where it is opaque.
    fn binary_form(&mut self, op: Binary, ty: Type, a: ir::Reg, b: ir::Reg) -> Option<FormId> {
        if !ty.is_integer() || ty.bits() < 32 {
            return None;
        }
        let shift = match op {
            Binary::Add | Binary::Sub | Binary::Mul => None,
            Binary::Shl => Some(self.int_of(b).filter(|n| (0..32).contains(n))?),
            _ => return None,
        };
        let x = self.form_of(a);
        if let Some(shift) = shift {
            return self.forms.add(FormId::ZERO, x, 1 << shift);
        }
        let y = self.form_of(b);
        match op {
            Binary::Add => self.forms.add(x, y, 1),
            Binary::Sub => self.forms.add(x, y, -1),
            _ => self.forms.multiply(x, y),
        }
    }

    /// The result of integer arithmetic on constants, or with a neutral element.
    fn fold(&mut self, op: Binary, ty: Type, a: ir::Reg, b: ir::Reg) -> Option<ir::Reg> {
        if !ty.is_integer() {
            return None;
        }
        let (x, y) = (self.int_of(a), self.int_of(b));
        match (op, x, y) {
            (Binary::Add, Some(0), _) | (Binary::Mul, Some(1), _) => return Some(b),
            (Binary::Add | Binary::Sub | Binary::Shl | Binary::Shr, _, Some(0))
            | (Binary::Mul | Binary::Div, _, Some(1)) => return Some(a),
            (Binary::Mul | Binary::And, Some(0), _) | (Binary::Mul | Binary::And, _, Some(0)) => {
                return Some(self.constant(ty, Imm::Int(0)));
            }
            _ => {}
        }
        let (x, y) = (x?, y?);
        let value = match op {
            Binary::Add => x.checked_add(y)?,
            Binary::Sub => x.checked_sub(y)?,
            Binary::Mul => x.checked_mul(y)?,
            Binary::Div => x.checked_div(y)?,
            Binary::Rem => x.checked_rem(y)?,
            Binary::Min => x.min(y),
            Binary::Max => x.max(y),
            Binary::And => x & y,
            _ => return None,
        };
        // A result that does not fit is left to the device, which wraps.
        let bits = ty.bits();
        let fits = match (ty.is_signed(), bits) {
            (true, 64) => true,
            (false, 64) => value >= 0,
            (true, _) => (-(1i64 << (bits - 1))..1i64 << (bits - 1)).contains(&value),
            (false, _) => (0..1i64 << bits).contains(&value),
        };
        fits.then(|| self.constant(ty, Imm::Int(value)))
    }

    /// Why an operation on integers with the constant `b` cannot be meant.
    fn meaningless(&self, op: Binary, ty: Type, b: ir::Reg) -> Option<String> {
        if !ty.is_integer() {
            return None;
        }
        let (b, name, bits) = (self.int_of(b)?, ty.name(), ty.bits());
        match op {
            Binary::Div => (b == 0).then(|| format!("a division of {name} by zero")),
            Binary::Rem => (b == 0).then(|| format!("the remainder of {name} divided by zero")),
            Binary::Shl | Binary::Shr => (!(0..i64::from(bits)).contains(&b))
                .then(|| format!("a shift of {name} by {b}; it can be by 0 to {}", bits - 1)),
            _ => None,
        }
    }

    pub(super) fn binary(&mut self, op: Binary, ty: Type, a: ir::Reg, b: ir::Reg, loc: Loc) -> ir::Reg {
        if !(self.usable(a, loc) && self.usable(b, loc)) {
            return POISON;
        }
        if let Some(message) = self.meaningless(op, ty, b) {
            return self.mistake(Code::ImmediateRange, loc, message);
        }
        if let Some(folded) = self.fold(op, ty, a, b) {
            return folded;
        }
        if let Some(value) = self.divided(op, ty, a, b, loc) {
            return value;
        }
        if self.lacks(op, ty) {
            let [x, y] = [a, b].map(|half| self.convert(half, ty, Type::F32, loc));
            let single = self.binary(op, Type::F32, x, y, loc);
            return self.convert(single, Type::F32, ty, loc);
        }
        if ty == Type::BF16
            && self.target.sm < 90
            && let Some(value) = self.bf16_by_fma(op, a, b, loc)
        {
            return value;
        }
        let form = self.binary_form(op, ty, a, b);
        let (x, y) = (self.operand(a, loc), self.operand(b, loc));
        let at = emit::arithmetic_type(ty);
        let bits = emit::bits_type(ty);
        let lo = ty.is_integer().then_some(MulHalf::Lo);
        let value = self.pure(ty, loc, |d| match op {
            Binary::Add => emit::add(at, d, x, y),
            Binary::Sub => emit::sub(at, d, x, y),
            Binary::Mul => emit::mul(lo, at, d, x, y),
            Binary::MulHi => emit::mul(Some(MulHalf::Hi), at, d, x, y),
            Binary::Div => emit::div(at, d, x, y, false),
            Binary::DivApprox => emit::div(at, d, x, y, true),
            Binary::Rem => emit::rem(at, d, x, y),
            Binary::Min => emit::min(at, d, x, y),
            Binary::Max => emit::max(at, d, x, y),
            Binary::And => emit::and(bits, d, x, y),
            Binary::Or => emit::or(bits, d, x, y),
            Binary::Xor => emit::xor(bits, d, x, y),
            Binary::Shl => emit::shl(bits, d, x, y),
            Binary::Shr => emit::shr(at, d, x, y),
        });
        if let Some(form) = form {
            self.values[value.0 as usize].form = form;
        }
        value
    }

    /// Whether the target has to do this in `f32`: the result is the same, rounded once.
    fn lacks(&self, op: Binary, ty: Type) -> bool {
        match ty {
            Type::BF16 => self.target.sm < 80,
            Type::F16 => self.target.sm < 80 && matches!(op, Binary::Min | Binary::Max),
            _ => false,
        }
    }

    /// Sums and products of bfloat16 before `sm_90`, as products and sums that are rounded once: the
    /// same value.
    fn bf16_by_fma(&mut self, op: Binary, a: ir::Reg, b: ir::Reg, loc: Loc) -> Option<ir::Reg> {
        let (factor, addend) = match op {
            Binary::Add => (Some(1.0), None),
            Binary::Sub => (Some(-1.0), None),
            Binary::Mul => (None, Some(-0.0f32)),
            _ => return None,
        };
        let mut literal = |v: f32| self.constant(Type::BF16, Imm::Int(bf16_bits(v).into()));
        let (x, y, z) = match (factor, addend) {
            (Some(factor), _) => (b, literal(factor), a),
            (None, addend) => (a, b, literal(addend.unwrap_or(0.0))),
        };
        let (x, y, z) = (self.operand(x, loc), self.operand(y, loc), self.operand(z, loc));
        Some(self.pure(Type::BF16, loc, |d| emit::fma(Type::BF16, d, x, y, z)))
    }

    fn select(&mut self, condition: ir::Reg, yes: ir::Reg, no: ir::Reg, loc: Loc) -> ir::Reg {
        if !(self.usable(condition, loc) && self.usable(yes, loc) && self.usable(no, loc)) {
            return POISON;
        }
        let ty = self.value(yes).ty;
        if ty != Type::Pred {
            let (a, b, c) = (self.operand(yes, loc), self.operand(no, loc), self.register(condition, loc));
            return self.pure(ty, loc, |d| emit::selp(emit::register_type(ty), d, a, b, c));
        }
        // Predicates have no `selp`.
        let source = Src::Reg(self.register(condition, loc));
        let not =
            self.pure(ty, loc, |d| warpwright_ptx::op::logic::Not { ty, d: ir::Dst(d), a: source }.into());
        let [yes, no] = [(condition, yes), (not, no)]
            .map(|(holds, value)| self.binary(Binary::And, ty, holds, value, loc));
        self.binary(Binary::Or, ty, yes, no, loc)
    }

    pub(super) fn compare(&mut self, cmp: Cmp, ty: Type, a: ir::Reg, b: ir::Reg, loc: Loc) -> ir::Reg {
        if !(self.usable(a, loc) && self.usable(b, loc)) {
            return POISON;
        }
        if ty == Type::BF16 && self.target.sm < 90 {
            let [x, y] = [a, b].map(|half| self.convert(half, ty, Type::F32, loc));
            return self.compare(cmp, Type::F32, x, y, loc);
        }
        let (x, y) = (self.operand(a, loc), self.operand(b, loc));
        self.pure(Type::Pred, loc, |d| emit::setp(cmp, emit::arithmetic_type(ty), d, x, y))
    }
}

macro_rules! operators {
    ($($bound:ident by $by:ty: $($trait:ident $method:ident $op:ident),*;)*) => {
        $($(impl<'k, T: $bound, R: IntoReg<'k, $by>> ops::$trait<R> for Reg<'k, T> {
            type Output = Reg<'k, T>;
            #[track_caller]
            fn $method(self, other: R) -> Reg<'k, T> {
                let loc = Location::caller();
                self.binary(Binary::$op, other.into_reg(self.k, loc), loc)
            }
        })*)*
    };
}

operators! {
    Number by T: Add add Add, Sub sub Sub, Mul mul Mul;
    Integer by T: Rem rem Rem;
    Integer by u32: Shl shl Shl, Shr shr Shr;
    Bits by T: BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor;
}

macro_rules! literal_first {
    ($($literal:ty, $ty:ty: $($trait:ident $method:ident),*;)*) => {
        $($(impl<'k> ops::$trait<Reg<'k, $ty>> for $literal {
            type Output = Reg<'k, $ty>;
            #[track_caller]
            fn $method(self, other: Reg<'k, $ty>) -> Reg<'k, $ty> {
                let left: Reg<'k, $ty> = self.into_reg(other.k, Location::caller());
                ops::$trait::$method(left, other)
            }
        })*)*
    };
}

literal_first! {
    u16, u16: Add add, Sub sub, Mul mul, Div div, Rem rem;
    i16, i16: Add add, Sub sub, Mul mul, Div div, Rem rem;
    u32, u32: Add add, Sub sub, Mul mul, Div div, Rem rem;
    i32, i32: Add add, Sub sub, Mul mul, Div div, Rem rem;
    u64, u64: Add add, Sub sub, Mul mul, Div div, Rem rem;
    i64, i64: Add add, Sub sub, Mul mul, Div div, Rem rem;
    f32, f32: Add add, Sub sub, Mul mul, Div div;
    f64, f64: Add add, Sub sub, Mul mul, Div div;
    f32, F16: Add add, Sub sub, Mul mul;
    f32, Bf16: Add add, Sub sub, Mul mul;
}

impl<'k, T: Signed> ops::Neg for Reg<'k, T> {
    type Output = Reg<'k, T>;
    #[track_caller]
    fn neg(self) -> Reg<'k, T> {
        self.unary(Location::caller(), |d, a| {
            warpwright_ptx::op::arith::Neg { ftz: false, ty: T::TYPE, d: ir::Dst(d), a }.into()
        })
    }
}

impl<'k, T: Bits> ops::Not for Reg<'k, T> {
    type Output = Reg<'k, T>;
    #[track_caller]
    fn not(self) -> Reg<'k, T> {
        self.unary(Location::caller(), |d, a| {
            warpwright_ptx::op::logic::Not { ty: emit::bits_type(T::TYPE), d: ir::Dst(d), a }.into()
        })
    }
}

/// Declares methods of two operands: the condition on elements, the doc, the name and the operation.
macro_rules! binaries {
    ($($bound:ident { $($(#[$doc:meta])* $name:ident $op:ident;)* })*) => {
        $(impl<'k, T: $bound> Reg<'k, T> {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(self, other: impl IntoReg<'k, T>) -> Self {
                let loc = Location::caller();
                self.binary(Binary::$op, other.into_reg(self.k, loc), loc)
            })*
        })*
    };
}

binaries! {
    Ordered {
        /// The smaller. If one operand is NaN, the other.
        min Min;
        /// The larger. If one operand is NaN, the other.
        max Max;
    }
    Integer {
        /// The upper half of the product.
        mul_hi MulHi;
    }
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident $cmp:ident;)*) => {
        impl<'k, T: Ordered> Reg<'k, T> {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(self, other: impl IntoReg<'k, T>) -> Reg<'k, Pred> {
                let loc = Location::caller();
                let other = other.into_reg(self.k, loc);
                let id = self.k.state().compare(Cmp::$cmp, T::TYPE, self.id, other.id, loc);
                Reg::new(self.k, id)
            })*
        }
    };
}

comparisons! {
    /// Less. False if either is NaN.
    lt Lt;
    /// Less or equal. False if either is NaN.
    le Le;
    /// Greater. False if either is NaN.
    gt Gt;
    /// Greater or equal. False if either is NaN.
    ge Ge;
    /// Equal. False if either is NaN.
    eq Eq;
}

impl<'k, T: Ordered> Reg<'k, T> {
    /// Not equal. True if either is NaN, as in Rust.
    #[track_caller]
    pub fn ne(self, other: impl IntoReg<'k, T>) -> Reg<'k, Pred> {
        let loc = Location::caller();
        let other = other.into_reg(self.k, loc);
        let cmp = if T::TYPE.is_float() { Cmp::Neu } else { Cmp::Ne };
        let id = self.k.state().compare(cmp, T::TYPE, self.id, other.id, loc);
        Reg::new(self.k, id)
    }

    /// The value limited to the range `low` to `high`; `low` must not exceed `high`. For floats, NaN becomes `low`.
    #[track_caller]
    pub fn clamp(self, low: impl IntoReg<'k, T>, high: impl IntoReg<'k, T>) -> Self {
        self.max(low).min(high)
    }
}

impl<'k> Reg<'k, Pred> {
    /// `yes` where the predicate holds, else `no`.
    #[track_caller]
    pub fn select<T: Data>(self, yes: impl IntoReg<'k, T>, no: impl IntoReg<'k, T>) -> Reg<'k, T> {
        let loc = Location::caller();
        let (yes, no) = (yes.into_reg(self.k, loc), no.into_reg(self.k, loc));
        let id = self.k.state().select(self.id, yes.id, no.id, loc);
        Reg::new(self.k, id)
    }

    /// The state `yes` where the predicate holds, else `no`: [`select`](Self::select), register by register.
    #[track_caller]
    pub fn choose<C: Carry<'k>>(self, yes: C, no: C) -> C {
        let (k, loc) = (self.k, Location::caller());
        if !same_shape(k, (&yes, &no), "a choice between tiles of two shapes", loc) {
            return C::poison(k);
        }
        let mut others = registers(&no).into_iter();
        carry::map(k, &yes, |yes| match others.next() {
            Some(no) if no == yes => yes,
            no => k.state().select(self.id, yes, no.unwrap_or(POISON), loc),
        })
    }

    /// 1 where the predicate holds, else 0.
    #[track_caller]
    pub fn u32(self) -> Reg<'k, u32> {
        self.select(1, 0)
    }
}

impl<'k> K<'k> {
    pub(super) fn constant<T: Element>(self, imm: Imm) -> Reg<'k, T> {
        let id = self.state().constant(T::TYPE, imm);
        Reg::new(self, id)
    }

    /// The result of an instruction that has an effect, or whose result is not a function of its operands.
    pub(super) fn written<T: Element, O: Into<Op>>(
        self,
        loc: Loc,
        op: impl FnOnce(ir::Reg) -> O,
    ) -> Reg<'k, T> {
        let mut state = self.state();
        let d = state.written(T::TYPE);
        state.effect(op(d), None, loc);
        drop(state);
        Reg::new(self, d)
    }

    /// A constant.
    #[track_caller]
    pub fn value<T: Number>(self, value: T::Literal) -> Reg<'k, T> {
        self.constant(T::immediate(value))
    }

    /// A constant predicate.
    pub fn pred(self, value: bool) -> Reg<'k, Pred> {
        self.constant(Imm::Int(value.into()))
    }
}

macro_rules! constants {
    ($($(#[$doc:meta])* $ty:ident;)*) => {
        impl<'k> K<'k> {
            $($(#[$doc])*
            pub fn $ty(self, value: $ty) -> Reg<'k, $ty> {
                self.constant(<$ty as Number>::immediate(value))
            })*
        }
    };
}

constants! {
    /// An `f32` constant.
    f32;
    /// An `f64` constant.
    f64;
    /// A `u32` constant.
    u32;
    /// An `i32` constant.
    i32;
    /// A `u64` constant.
    u64;
}
