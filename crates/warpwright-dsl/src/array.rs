//! Memory that a kernel has besides its arguments: arrays of a block or a thread, tables of constants, addresses.

use super::K;
use super::form::FormId;
use super::pointer::Ptr;
use super::reg::Reg;
use super::state::{Base, Loc, Pointer, State};
use super::types::*;
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{self, Space, Type, Variable};

/// Elements of 64 bits of the scratch of collectives: one for each warp of a block.
const COLLECTIVE: u32 = 32;

impl State {
    pub(super) fn array(&mut self, space: Space, ty: Type, count: u32, loc: Loc) -> Option<u32> {
        self.array_aligned(space, ty, count, 16, loc)
    }

    fn array_aligned(&mut self, space: Space, ty: Type, count: u32, align: u32, loc: Loc) -> Option<u32> {
        if count == 0 {
            self.mistake(Code::SharedMemory, loc, "an array of no elements");
            return None;
        }
        let id = self.arrays.len() as u32;
        let name = format!("{}_{id}", if space == Space::Shared { "tile" } else { "stack" });
        let mut variable = Variable::new(space, Type::B8, name);
        variable.origin = ir::Origin::Rust(loc);
        variable.align = Some(align);
        variable.dims = vec![Some(u64::from(ty.bytes()) * u64::from(count))];
        self.arrays.push(variable);
        Some(id)
    }

    /// The scratch memory of the block-wide collectives, for register `which` of a state.
    pub(super) fn collective_scratch(&mut self, which: usize, loc: Loc) -> Pointer {
        while self.scratch.len() <= which {
            let id = self.array(Space::Shared, Type::B64, COLLECTIVE, loc).unwrap_or(0);
            self.arrays[id as usize].name = match self.scratch.len() {
                0 => "collective".into(),
                more => format!("collective_{more}").into(),
            };
            self.scratch.push(id);
        }
        let base = Base::Variable(self.scratch[which]);
        Pointer { base, form: FormId::ZERO, narrow: true, mutable: true, shifting: false }
    }
}

impl<'k> K<'k> {
    /// The scratch memory of the block-wide collectives, of the block or of the team: 8 bytes for each warp, for
    /// register `which` of a state.
    pub(super) fn collective_scratch<T: Data>(self, which: usize, loc: Loc) -> Ptr<'k, Shared, T> {
        let framed = self.framed_scratch(which, COLLECTIVE, loc);
        Ptr::new(self, framed.unwrap_or_else(|| self.state().collective_scratch(which, loc)))
    }

    /// An array of `count` elements that the block shares, aligned to 16 bytes. If all shared arrays exceed 48 KiB,
    /// they become dynamic shared memory, and the launch rule requests it.
    #[track_caller]
    pub fn shared<T: Data>(self, count: u32) -> Ptr<'k, Shared, T> {
        self.shared_at(count, Location::caller())
    }

    /// The same, aligned to more.
    pub(super) fn shared_aligned<T: Data>(self, count: u32, align: u32, loc: Loc) -> Ptr<'k, Shared, T> {
        let array = self.state().array_aligned(Space::Shared, T::TYPE, count, align, loc);
        self.array_pointer(array, true)
    }

    pub(super) fn shared_at<T: Data>(self, count: u32, loc: Loc) -> Ptr<'k, Shared, T> {
        if let Some(framed) = self.framed_shared(count, loc) {
            return framed;
        }
        let array = self.state().array(Space::Shared, T::TYPE, count, loc);
        self.array_pointer(array, true)
    }

    /// The dynamic shared memory, whose size the launch rule states. Every call returns the same memory.
    #[track_caller]
    pub fn dyn_shared<T: Data>(self) -> Ptr<'k, Shared, T> {
        let loc = Location::caller();
        self.not_called("dynamic shared memory", loc);
        self.state().dynamic.get_or_insert(loc);
        let pointer =
            Pointer { base: Base::Dynamic, form: FormId::ZERO, narrow: true, mutable: true, shifting: false };
        Ptr::new(self, pointer)
    }

    /// An array of `count` elements for each thread. If it is indexed by constants only, it lives in registers.
    #[track_caller]
    pub fn local<T: Data>(self, count: u32) -> Ptr<'k, Local, T> {
        let array = self.state().array(Space::Local, T::TYPE, count, Location::caller());
        self.array_pointer(array, false)
    }

    fn array_pointer<S: PointerSpace, T: Data>(self, array: Option<u32>, narrow: bool) -> Ptr<'k, S, T> {
        match array {
            Some(id) => {
                let base = Base::Variable(id);
                Ptr::new(self, Pointer { base, form: FormId::ZERO, narrow, mutable: true, shifting: false })
            }
            None => Ptr::poison(self),
        }
    }

    /// A table of constants, part of the module.
    #[track_caller]
    pub fn table<T: Number>(self, values: &[T::Literal]) -> Ptr<'k, Const, T> {
        self.constants(values)
    }

    /// A table of constants in global memory, for lanes that read different elements; a [`table`](Self::table) would
    /// serve them one after the other.
    #[track_caller]
    pub fn global_table<T: Number>(self, values: &[T::Literal]) -> Ptr<'k, Global, T> {
        self.constants(values).nc()
    }

    #[track_caller]
    fn constants<S: PointerSpace, T: Number>(self, values: &[T::Literal]) -> Ptr<'k, S, T> {
        let mut state = self.state();
        let id = state.constants.len() as u32;
        let ty = super::kernel::param_type(T::TYPE);
        let mut variable = Variable::new(S::SPACE, ty, format!("table_{id}"));
        variable.origin = ir::Origin::Rust(Location::caller());
        variable.align = Some(16);
        variable.dims = vec![Some(values.len() as u64)];
        let list = values.iter().map(|&value| ir::Init::Value(T::immediate(value))).collect();
        variable.init = Some(ir::Init::List(list));
        state.constants.push(variable);
        drop(state);
        let base = Base::Constant(id);
        Ptr::new(self, Pointer { base, form: FormId::ZERO, narrow: false, mutable: false, shifting: false })
    }

    /// A pointer from an address in global memory.
    #[track_caller]
    pub fn global_at<T: Data>(self, address: Reg<'k, u64>) -> Ptr<'k, Global, T> {
        let loc = Location::caller();
        if !self.state().usable(address.id, loc) {
            return Ptr::poison(self);
        }
        let base = Base::Reg(self.state().register(address.id, loc));
        Ptr::new(self, Pointer { base, form: FormId::ZERO, narrow: false, mutable: true, shifting: false })
    }
}
