//! State: values that go around loops, come out of branches and move between lanes as one unit.

use super::K;
use super::reg::Reg;
use super::state::{Loc, POISON};
use super::types::*;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir;

/// State that goes around a loop, comes out of a branch or moves between lanes: registers, and tuples, arrays and
/// structs of them.
///
/// ```
/// use warpwright_dsl::*;
///
/// /// Number, mean and sum of squared deviations of what a thread has seen.
/// #[derive(Clone, Copy, Carry)]
/// struct Moments<'k> {
///     count: Reg<'k, f32>,
///     mean: Reg<'k, f32>,
///     squares: Reg<'k, f32>,
/// }
///
/// fn seen<'k>(k: K<'k>, x: Ptr<'k, Global, f32>) -> Moments<'k> {
///     let none = Moments { count: k.f32(0.0), mean: k.f32(0.0), squares: k.f32(0.0) };
///     k.fold(k.upto(32), none, |i, Moments { count, mean, squares }| {
///         let (count, delta) = (count + 1.0, x.ld(i) - mean);
///         let mean = mean + delta / count;
///         Moments { count, mean, squares: delta.mul_add(x.ld(i) - mean, squares) }
///     })
/// }
/// ```
///
/// The derive takes structs with at most one lifetime, the kernel's. A field that cannot be carried is refused at
/// that field: a host number would be the same in every iteration.
///
/// ```compile_fail,E0277
/// use warpwright_dsl::*;
/// #[derive(Clone, Copy, Carry)]
/// struct Best<'k> {
///     row: u32, // wants to be a `Reg<'k, u32>`
///     column: Reg<'k, u32>,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be carried: it is not made of registers",
    label = "not a register, nor a tuple, an array or a `#[derive(Carry)]` struct of them",
    note = "a number of the host becomes a register by `k.u32(..)`, `k.f32(..)` or `k.value::<T>(..)`"
)]
pub trait Carry<'k>: Copy {
    /// Passes each register to the closure, in order.
    fn each(&self, see: &mut dyn FnMut(ir::Reg));

    /// A value of the same shape with other registers, in order.
    fn rebuild(&self, k: K<'k>, next: &mut dyn FnMut() -> ir::Reg) -> Self;

    /// A stand-in for such a state after a mistake.
    #[doc(hidden)]
    fn poison(k: K<'k>) -> Self;

    /// Passes the parts of the shape that the type leaves open, in order: the rows and columns of tiles. State keeps
    /// them.
    #[doc(hidden)]
    fn shape(&self, see: &mut dyn FnMut(u32, u32)) {
        let _ = see;
    }
}

impl<'k, T: Element> Carry<'k> for Reg<'k, T> {
    fn each(&self, see: &mut dyn FnMut(ir::Reg)) {
        see(self.id);
    }

    fn rebuild(&self, k: K<'k>, next: &mut dyn FnMut() -> ir::Reg) -> Self {
        Reg::new(k, next())
    }

    fn poison(k: K<'k>) -> Self {
        Reg::new(k, POISON)
    }
}

impl<'k, C: Carry<'k>, const N: usize> Carry<'k> for [C; N] {
    fn each(&self, see: &mut dyn FnMut(ir::Reg)) {
        self.iter().for_each(|item| item.each(see));
    }

    fn rebuild(&self, k: K<'k>, next: &mut dyn FnMut() -> ir::Reg) -> Self {
        self.map(|item| item.rebuild(k, next))
    }

    fn poison(k: K<'k>) -> Self {
        [(); N].map(|()| C::poison(k))
    }

    fn shape(&self, see: &mut dyn FnMut(u32, u32)) {
        self.iter().for_each(|item| item.shape(see));
    }
}

macro_rules! carry_tuples {
    ($(($($name:ident $index:tt),*))*) => {
        $(impl<'k, $($name: Carry<'k>),*> Carry<'k> for ($($name,)*) {
            fn each(&self, see: &mut dyn FnMut(ir::Reg)) {
                $(self.$index.each(see);)*
            }

            fn rebuild(&self, k: K<'k>, next: &mut dyn FnMut() -> ir::Reg) -> Self {
                ($(self.$index.rebuild(k, next),)*)
            }

            fn poison(k: K<'k>) -> Self {
                ($($name::poison(k),)*)
            }

            fn shape(&self, see: &mut dyn FnMut(u32, u32)) {
                $(self.$index.shape(see);)*
            }
        })*
    };
}

/// An optional value: the host knows whether it exists, and every iteration or branch must agree with the first.
impl<'k, C: Carry<'k>> Carry<'k> for Option<C> {
    fn each(&self, see: &mut dyn FnMut(ir::Reg)) {
        self.iter().for_each(|item| item.each(see));
    }

    fn rebuild(&self, k: K<'k>, next: &mut dyn FnMut() -> ir::Reg) -> Self {
        self.map(|item| item.rebuild(k, next))
    }

    fn poison(_: K<'k>) -> Self {
        None
    }

    fn shape(&self, see: &mut dyn FnMut(u32, u32)) {
        see(self.is_some().into(), 1);
        self.iter().for_each(|item| item.shape(see));
    }
}

impl<'k> Carry<'k> for () {
    fn each(&self, _: &mut dyn FnMut(ir::Reg)) {}

    fn rebuild(&self, _: K<'k>, _: &mut dyn FnMut() -> ir::Reg) -> Self {}

    fn poison(_: K<'k>) -> Self {}
}

carry_tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}

/// State with one carried field, plus values that only the host knows.
macro_rules! carry_field {
    ([$($param:tt)*] $ty:ty, $field:ident, |$k:ident| $poison:expr, |$state:ident, $see:ident| $shape:expr) => {
        impl<'k, $($param)*> $crate::Carry<'k> for $ty {
            fn each(&self, see: &mut dyn FnMut(::warpwright_ptx::ir::Reg)) {
                self.$field.each(see);
            }

            fn rebuild(&self, k: $crate::K<'k>, next: &mut dyn FnMut() -> ::warpwright_ptx::ir::Reg) -> Self {
                let mut state = *self;
                state.$field = self.$field.rebuild(k, next);
                state
            }

            fn poison($k: $crate::K<'k>) -> Self {
                $poison
            }

            fn shape(&self, $see: &mut dyn FnMut(u32, u32)) {
                let $state = self;
                $shape;
            }
        }
    };
}
pub(super) use carry_field;

pub(super) fn registers<'k>(carry: &impl Carry<'k>) -> Vec<ir::Reg> {
    let mut list = Vec::new();
    carry.each(&mut |reg| list.push(reg));
    list
}

/// Whether the tiles and lists of the two have the same shapes; a mistake otherwise.
pub(super) fn same_shape<'k, C: Carry<'k>>(k: K<'k>, (one, other): (&C, &C), what: &str, loc: Loc) -> bool {
    let shapes = |carry: &C| {
        let mut list = Vec::new();
        carry.shape(&mut |rows, columns| list.push((rows, columns)));
        list
    };
    let (one, other) = (shapes(one), shapes(other));
    let Some(((m, n), (o, p))) = one.iter().zip(&other).find(|(one, other)| one != other) else {
        return true;
    };
    let message = format!("{what}: {m}x{n} and {o}x{p}");
    k.state().mistake(Code::VectorShape, loc, message);
    false
}

/// The state with these registers, or poison where there are too few.
pub(super) fn with_registers<'k, C: Carry<'k>>(k: K<'k>, shape: &C, regs: &[ir::Reg]) -> C {
    let mut regs = regs.iter();
    shape.rebuild(k, &mut || regs.next().copied().unwrap_or(POISON))
}

/// The same shape, each register through the closure.
pub(super) fn map<'k, C: Carry<'k>>(k: K<'k>, state: &C, mut each: impl FnMut(ir::Reg) -> ir::Reg) -> C {
    let regs: Vec<_> = registers(state).into_iter().map(&mut each).collect();
    with_registers(k, state, &regs)
}
