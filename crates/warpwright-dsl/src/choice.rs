//! Choices between pointers.

use super::form::FormId;
use super::pointer::INVALID;
use super::reg::Reg;
use super::state::{Base, POISON, Pointer};
use super::types::*;
use super::{K, Ptr};
use std::panic::Location;
use warpwright_ptx::diag::Code;

impl<'k> Reg<'k, Pred> {
    /// The pointer `yes` where the predicate holds, else `no`. Both are parameters, moved by constants at most.
    #[track_caller]
    pub fn select_ptr<T: Data>(self, yes: Ptr<'k, Global, T>, no: Ptr<'k, Global, T>) -> Ptr<'k, Global, T> {
        let (k, loc) = (self.kernel(), Location::caller());
        if yes.id == INVALID || no.id == INVALID {
            return Ptr::poison(k);
        }
        let [a, b] = [yes, no].map(|ptr| k.state().pointers[ptr.id as usize]);
        let fixed = [a, b].iter().all(|pointer| k.state().forms.terms(pointer.form).is_empty());
        let (Base::Reg(x), Base::Reg(y), true) = (a.base, b.base, fixed) else {
            let message = "a choice between pointers that are moved by what is not a constant";
            k.state().mistake(Code::Parameter, loc, message);
            return Ptr::poison(k);
        };
        let base = self.select(Reg::<u64>::new(k, x), Reg::<u64>::new(k, y)).id;
        let [p, q] = [a, b].map(|pointer| k.state().forms.constant(pointer.form));
        let form = if p == q { a.form } else { self.offset(k, p, q) };
        if base == POISON {
            return Ptr::poison(k);
        }
        let mut chosen = Ptr::new(
            k,
            Pointer {
                base: Base::Reg(base),
                form,
                mutable: a.mutable && b.mutable,
                shifting: a.shifting || b.shifting,
                ..a
            },
        );
        chosen.access = yes.access;
        chosen
    }

    /// One offset in bytes or the other.
    #[track_caller]
    fn offset(self, k: K<'k>, yes: i64, no: i64) -> FormId {
        let offset = self.select(k.value::<i64>(yes), k.value::<i64>(no)).id;
        k.state().forms.register(offset)
    }
}
