//! Pointers: symbolic addresses, loads and stores.
//!
//! A pointer is a base and an affine offset in bytes. Moving it ([`Ptr::at`]) costs nothing. The address of an access
//! is computed when the kernel is complete: see [`address`](super::address).

use super::K;
use super::emit;
use super::form::{FormId, NO_FACTOR};
use super::guard::Guard;
use super::handle::handle;
use super::reg::{IntoReg, Reg};
use super::state::{Base, Loc, POISON, Pointer, State};
use super::types::*;
use std::marker::PhantomData;
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{
    self, Address, Dsts, Scope, Semantics, Space, Src, Srcs, Type, Unified, VectorWidth,
};
use warpwright_ptx::op::memory::{
    L1Eviction, L2Eviction, Ld, LoadCache, Prefetch, PrefetchLevel, PrefetchSize, St, StoreCache,
};

/// A pointer into `Space` to elements of type `T`: a handle, free to copy.
///
/// A shared pointer is not a global one:
///
/// ```compile_fail,E0308
/// use warpwright_dsl::*;
/// fn first<'k>(x: Ptr<'k, Global, f32>) -> Reg<'k, f32> {
///     x.ld(0)
/// }
/// fn wrong<'k>(k: K<'k>) -> Reg<'k, f32> {
///     first(k.shared::<f32>(32))
/// }
/// ```
pub struct Ptr<'k, S, T> {
    pub(super) k: K<'k>,
    pub(super) id: u32,
    pub(super) access: Access,
    target: PhantomData<(S, T)>,
}

handle!(Ptr<S, T>);

impl<S: PointerSpace, T: Element> std::fmt::Debug for Ptr<'_, S, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ptr<{:?}, {}>({})", S::SPACE, T::TYPE.name(), self.id)
    }
}

/// How a pointer's accesses are cached and ordered. The default is a plain access.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Access {
    semantics: Option<Semantics>,
    scope: Option<Scope>,
    load_cache: Option<LoadCache>,
    store_cache: Option<StoreCache>,
    non_coherent: bool,
    l1: Option<L1Eviction>,
    l2: Option<L2Eviction>,
    prefetch: Option<PrefetchSize>,
}

/// The pointer of a mistake.
pub(super) const INVALID: u32 = u32::MAX;

/// Types that can index a pointer: integer registers of 32 or 64 bits, and host numbers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not index a pointer",
    label = "neither a `Reg` of `u32`, `i32`, `u64` or `i64`, nor a `u32` of the host",
    note = "`.to::<u32>()` converts a register; a host number is `n as u32`"
)]
pub trait Index<'k> {
    /// The register, or constant.
    #[doc(hidden)]
    fn into_index(self, k: K<'k>) -> ir::Reg;
}

macro_rules! indices {
    ($($ty:ty)*) => {
        $(impl<'k> Index<'k> for Reg<'k, $ty> {
            fn into_index(self, _: K<'k>) -> ir::Reg {
                self.id
            }
        })*
    };
}
indices!(u32 i32 u64 i64);

impl<'k> Index<'k> for u32 {
    fn into_index(self, k: K<'k>) -> ir::Reg {
        k.u32(self).id
    }
}

impl<'k, S: PointerSpace, T: Data> Ptr<'k, S, T> {
    pub(super) fn new(k: K<'k>, pointer: Pointer) -> Self {
        let mut state = k.state();
        let id = state.pointers.len() as u32;
        state.pointers.push(pointer);
        drop(state);
        Ptr { k, id, access: Access::default(), target: PhantomData }
    }

    pub(super) fn poison(k: K<'k>) -> Self {
        Self::with_id(k, INVALID)
    }

    pub(super) fn with_id(k: K<'k>, id: u32) -> Self {
        Ptr { k, id, access: Access::default(), target: PhantomData }
    }

    /// The pointer to element `index`, which becomes element 0.
    #[track_caller]
    pub fn at(self, index: impl Index<'k>) -> Self {
        self.at_loc(index, Location::caller())
    }

    pub(super) fn at_loc(self, index: impl Index<'k>, loc: Loc) -> Self {
        let index = index.into_index(self.k);
        let id = self.k.state().offset(self.id, index, T::TYPE.bytes(), loc);
        Ptr { id, ..self }
    }

    pub(super) fn ordering(self) -> (Option<Semantics>, Option<Scope>) {
        (self.access.semantics, self.access.scope)
    }

    /// The same address as a pointer to elements of another type.
    pub fn cast<U: Data>(self) -> Ptr<'k, S, U> {
        Ptr { k: self.k, id: self.id, access: self.access, target: PhantomData }
    }

    /// The address for [`K::op`], `[base + offset]`, which costs as little as that of a load.
    #[track_caller]
    pub fn address(self) -> Address {
        let mut state = self.k.state();
        let loc = Location::caller();
        if self.id == INVALID || !state.reachable(self.id, loc) {
            Address::reg(POISON, 0)
        } else {
            state.address_of(self.id)
        }
    }

    /// Loads through the read-only cache: nothing may write the memory while the kernel runs or waits for the launches in
    /// front of it. Arguments declared
    /// [`constant`](super::ArgDesc::constant) are always loaded this way; arguments that the kernel writes never are.
    pub fn nc(mut self) -> Self {
        let state = self.k.state();
        self.access.non_coherent =
            state.pointers.get(self.id as usize).is_none_or(|pointer| !pointer.shifting);
        drop(state);
        self
    }

    /// What the pointer means.
    pub(super) fn pointer_in(self, state: &State) -> Option<Pointer> {
        state.pointers.get(self.id as usize).copied()
    }
}

/// Declares methods that set fields of a pointer's [`Access`].
macro_rules! accesses {
    ($($(#[$doc:meta])* $name:ident($($scope:ident)?) { $($part:ident: $value:expr),* })*) => {
        impl<'k, S: PointerSpace, T: Data> Ptr<'k, S, T> {
            $($(#[$doc])*
            pub fn $name(self $(, $scope: Scope)?) -> Self {
                Ptr { access: Access { $($part: $value,)* ..self.access }, ..self }
            })*
        }
    };
}

accesses! {
    /// Caches in L2 only.
    cg() { load_cache: Some(LoadCache::Cg), store_cache: Some(StoreCache::Cg) }
    /// Caches as data that is used once.
    streaming() { load_cache: Some(LoadCache::Cs), store_cache: Some(StoreCache::Cs) }
    /// First to be evicted from the L1 cache.
    evict_first() { l1: Some(L1Eviction::First) }
    /// Last to be evicted from the L1 cache.
    evict_last() { l1: Some(L1Eviction::Last) }
    /// Is not kept in L1.
    no_allocate() { l1: Some(L1Eviction::NoAllocate) }
    /// First to be evicted from the L2 cache.
    evict_l2_first() { l2: Some(L2Eviction::First) }
    /// Last to be evicted from the L2 cache.
    evict_l2_last() { l2: Some(L2Eviction::Last) }
    /// Prefetches 128 bytes into L2 with each load.
    prefetch_128() { prefetch: Some(PrefetchSize::B128) }
    /// Accesses memory exactly as written.
    volatile() { semantics: Some(Semantics::Volatile), scope: None }
    /// Makes accesses atomic with respect to those of the scope, without ordering others.
    relaxed(scope) { semantics: Some(Semantics::Relaxed), scope: Some(scope) }
    /// Loads that acquire: later accesses stay after them.
    acquire(scope) { semantics: Some(Semantics::Acquire), scope: Some(scope) }
    /// Atomic operations that acquire and release.
    acq_rel(scope) { semantics: Some(Semantics::AcqRel), scope: Some(scope) }
    /// Stores that release: earlier accesses stay before them.
    release(scope) { semantics: Some(Semantics::Release), scope: Some(scope) }
}

impl<'k, T: Data> Ptr<'k, Global, T> {
    /// Begins to bring the line of element `index`, of 128 bytes, into the L2 cache, where the predicate holds. It reads
    /// nothing, so that it may stand before [`wait_for_launches`](K::wait_for_launches) whoever writes the memory.
    #[track_caller]
    pub fn prefetch_if(self, condition: impl Guard<'k>, index: impl Index<'k>) {
        let (index, condition, loc) = (index.into_index(self.k), condition.predicate(), Location::caller());
        let mut state = self.k.state();
        let pointer = state.offset(self.id, index, T::TYPE.bytes(), loc);
        let Some(guard) = state.guard(condition, loc) else { return };
        let address = state.address_of(pointer);
        state.effect(Prefetch { space: Some(Space::Global), level: PrefetchLevel::L2, address }, guard, loc);
    }
}

impl<'k, S: PointerSpace, T: Data> Ptr<'k, S, T> {
    /// Element `index`.
    #[track_caller]
    pub fn ld(self, index: impl Index<'k>) -> Reg<'k, T> {
        let [value] = self.ld_vec(index);
        value
    }

    /// Element `index` where the predicate holds; elsewhere `default`, and memory is not accessed. Without a
    /// predicate it is [`ld`](Self::ld): see [`Guard`].
    #[track_caller]
    pub fn ld_if(
        self,
        condition: impl Guard<'k>,
        index: impl Index<'k>,
        default: impl IntoReg<'k, T>,
    ) -> Reg<'k, T> {
        let [value] = self.ld_vec_if(condition, index, default);
        value
    }

    /// `N` elements from `index` on, in one access. `N` elements take at most 16 bytes, and the address is a multiple
    /// of their size.
    #[track_caller]
    pub fn ld_vec<const N: usize>(self, index: impl Index<'k>) -> [Reg<'k, T>; N] {
        self.ld_vec_or(None, index, [Reg::new(self.k, POISON); N])
    }

    /// [`ld_vec`](Self::ld_vec) where the predicate holds, else `default` in every element.
    #[track_caller]
    pub fn ld_vec_if<const N: usize>(
        self,
        condition: impl Guard<'k>,
        index: impl Index<'k>,
        default: impl IntoReg<'k, T>,
    ) -> [Reg<'k, T>; N] {
        let default = default.into_reg(self.k, Location::caller());
        self.ld_vec_or(condition, index, [default; N])
    }

    /// `count` elements from `index` on where the predicate holds; elsewhere `default` in each. Each access takes up
    /// to 16 bytes and reads as many elements as the largest power of two that divides `count`. The address must be a
    /// multiple of the access size.
    #[track_caller]
    pub fn ld_many(
        self,
        condition: impl Guard<'k>,
        index: impl Index<'k>,
        count: u32,
        default: impl IntoReg<'k, T>,
    ) -> Vec<Reg<'k, T>> {
        let (from, condition) = (self.at(index), condition.predicate());
        let (width, default) = (width::<T>(count), default.into_reg(self.k, Location::caller()));
        let mut elements = Vec::with_capacity(count as usize);
        for first in (0..count).step_by(width as usize) {
            match width {
                8 => elements.extend(from.ld_vec_if::<8>(condition, first, default)),
                4 => elements.extend(from.ld_vec_if::<4>(condition, first, default)),
                2 => elements.extend(from.ld_vec_if::<2>(condition, first, default)),
                _ => elements.push(from.ld_if(condition, first, default)),
            }
        }
        elements
    }

    /// [`ld_vec`](Self::ld_vec) where the predicate holds; elsewhere the given registers, for instance those that a
    /// loop loaded ahead.
    #[track_caller]
    pub fn ld_vec_or<const N: usize>(
        self,
        condition: impl Guard<'k>,
        index: impl Index<'k>,
        others: [Reg<'k, T>; N],
    ) -> [Reg<'k, T>; N] {
        self.load(index.into_index(self.k), condition.predicate(), others, Location::caller())
    }

    fn load<const N: usize>(
        self,
        index: ir::Reg,
        condition: Option<Reg<'k, Pred>>,
        others: [Reg<'k, T>; N],
        loc: Loc,
    ) -> [Reg<'k, T>; N] {
        let k = self.k;
        let poison = [Reg::new(k, POISON); N];
        let mut state = k.state();
        let pointer = state.offset(self.id, index, T::TYPE.bytes(), loc);
        let Some((vector, lanes)) = state.vector_shape(T::TYPE, N, pointer, loc) else { return poison };
        // Wider than `v4`: pairs of elements travel in 32-bit registers.
        let packed = lanes < N;
        let ty = if packed { Type::B32 } else { memory_type(T::TYPE) };
        let element = if packed { Type::U32 } else { T::TYPE };
        let mut regs = [POISON; 8];
        for reg in &mut regs[..lanes] {
            *reg = state.written(element);
        }
        let Some(guard) = state.guard(condition, loc) else { return poison };
        if guard.is_some() {
            if !others.iter().all(|other| state.usable(other.id, loc)) {
                return poison;
            }
            for (i, &reg) in regs[..lanes].iter().enumerate() {
                let other = if packed {
                    let halves = [2 * i, 2 * i + 1].map(|i| state.register(others[i].id, loc));
                    Src::Reg(state.pure(Type::U32, loc, |d| emit::pack(Type::B32, d, halves)))
                } else {
                    state.operand(others[i].id, loc)
                };
                state.effect(emit::mov(emit::register_type(element), reg, other), None, loc);
            }
        }
        let address = state.address_of(pointer);
        let access = self.access;
        let d = if lanes == 1 {
            Dsts::One(regs[0])
        } else {
            Dsts::Many(regs[..lanes].iter().map(|&reg| Some(reg)).collect())
        };
        let ordered = access.semantics.is_some();
        let op = Ld {
            mmio: false,
            semantics: match access.semantics {
                Some(Semantics::Release) => Some(Semantics::Relaxed),
                Some(Semantics::AcqRel) => Some(Semantics::Acquire),
                other => other,
            },
            scope: access.scope,
            space: Some(S::SPACE),
            cache: if access.non_coherent || ordered { None } else { access.load_cache },
            nc: access.non_coherent && !ordered && S::SPACE == Space::Global,
            l1_eviction: access.l1,
            l2_eviction: access.l2,
            cache_hint: false,
            prefetch: access.prefetch,
            vector,
            ty,
            readonly: false,
            unified: Unified::default(),
            d,
            address,
            policy: None,
        };
        state.effect(op, guard, loc);
        if !packed {
            drop(state);
            return std::array::from_fn(|i| Reg::new(k, regs[i]));
        }
        let mut values = [POISON; 8];
        for i in 0..lanes {
            let (low, high) = (state.written(T::TYPE), state.written(T::TYPE));
            state.effect(emit::unpack(Type::B32, [Some(low), Some(high)], regs[i]), None, loc);
            (values[2 * i], values[2 * i + 1]) = (low, high);
        }
        drop(state);
        std::array::from_fn(|i| Reg::new(k, values[i]))
    }
}

/// The type of the memory access: untyped bits for elements without arithmetic of their own.
fn memory_type(ty: Type) -> Type {
    match ty {
        Type::F16 | Type::BF16 => Type::B16,
        Type::F16X2 | Type::BF16X2 => Type::B32,
        ty => ty,
    }
}

/// Elements of an access where there are so many.
fn width<T: Data>(count: u32) -> u32 {
    // A vector has eight elements at most of two bytes, and four of others.
    let max = if T::TYPE.bytes() == 2 { 8 } else { 4.min(16 / T::TYPE.bytes()) };
    (1 << count.max(1).trailing_zeros()).min(max)
}

impl<'k, S: Writable, T: Data> Ptr<'k, S, T> {
    /// Stores `value` as element `index`.
    #[track_caller]
    pub fn st(self, index: impl Index<'k>, value: impl IntoReg<'k, T>) {
        self.st_if(None, index, value);
    }

    /// Stores `value` as element `index` where the predicate holds: see [`Guard`].
    #[track_caller]
    pub fn st_if(self, condition: impl Guard<'k>, index: impl Index<'k>, value: impl IntoReg<'k, T>) {
        let value = value.into_reg(self.k, Location::caller());
        self.st_vec_if(condition, index, [value]);
    }

    /// Stores elements from `index` on, in one access: see [`ld_vec`](Self::ld_vec).
    #[track_caller]
    pub fn st_vec<const N: usize>(self, index: impl Index<'k>, values: [Reg<'k, T>; N]) {
        self.st_vec_if(None, index, values);
    }

    /// [`st_vec`](Self::st_vec) where the predicate holds.
    #[track_caller]
    pub fn st_vec_if<const N: usize>(
        self,
        condition: impl Guard<'k>,
        index: impl Index<'k>,
        values: [Reg<'k, T>; N],
    ) {
        self.store(index.into_index(self.k), &values, condition.predicate(), Location::caller());
    }

    /// Stores elements from `index` on where the predicate holds, with the accesses of [`ld_many`](Self::ld_many).
    #[track_caller]
    pub fn st_many(self, condition: impl Guard<'k>, index: impl Index<'k>, values: &[Reg<'k, T>]) {
        let (to, condition) = (self.at(index), condition.predicate());
        let width = width::<T>(values.len() as u32);
        for (first, values) in (0u32..).step_by(width as usize).zip(values.chunks_exact(width as usize)) {
            to.store(first.into_index(self.k), values, condition, Location::caller());
        }
    }

    fn store(self, index: ir::Reg, values: &[Reg<'k, T>], condition: Option<Reg<'k, Pred>>, loc: Loc) {
        let mut state = self.k.state();
        let pointer = state.offset(self.id, index, T::TYPE.bytes(), loc);
        let Some((vector, lanes)) = state.vector_shape(T::TYPE, values.len(), pointer, loc) else { return };
        for value in values {
            if !state.usable(value.id, loc) {
                return;
            }
        }
        let Some(guard) = state.guard(condition, loc) else { return };
        let packed = lanes < values.len();
        let ty = if packed { Type::B32 } else { memory_type(T::TYPE) };
        let mut srcs = Vec::with_capacity(lanes);
        if packed {
            for pair in values.chunks_exact(2) {
                let parts = [state.register(pair[0].id, loc), state.register(pair[1].id, loc)];
                srcs.push(Src::Reg(state.pure(Type::U32, loc, |d| emit::pack(Type::B32, d, parts))));
            }
        } else {
            for value in values {
                srcs.push(state.operand(value.id, loc));
            }
        }
        let address = state.address_of(pointer);
        let access = self.access;
        let op = St {
            mmio: false,
            semantics: match access.semantics {
                Some(Semantics::Acquire) => Some(Semantics::Relaxed),
                Some(Semantics::AcqRel) => Some(Semantics::Release),
                other => other,
            },
            scope: access.scope,
            space: Some(S::SPACE),
            cache: if access.semantics.is_some() { None } else { access.store_cache },
            l1_eviction: access.l1,
            l2_eviction: access.l2,
            cache_hint: false,
            vector,
            ty,
            address,
            a: match <[Src; 1]>::try_from(srcs) {
                Ok([src]) => Srcs::One(src),
                Err(srcs) => Srcs::Many(srcs.into()),
            },
            policy: None,
        };
        state.effect(op, guard, loc);
    }
}

impl State {
    /// `pointer + index · size`.
    fn offset(&mut self, pointer: u32, index: ir::Reg, size: u32, loc: Loc) -> u32 {
        if pointer == INVALID || !self.usable(index, loc) || !self.reachable(pointer, loc) {
            return INVALID;
        }
        let index_form = self.form_of(index);
        if index_form == FormId::ZERO {
            return pointer;
        }
        let before = self.pointers[pointer as usize];
        let form = self.forms.add(before.form, index_form, size.into()).or_else(|| {
            // Too many terms: the index counts as one.
            let opaque = self.forms.register(index);
            self.forms.add(before.form, opaque, size.into())
        });
        let Some(form) = form else {
            self.mistake(Code::TooLarge, loc, "the address has too many terms");
            return INVALID;
        };
        let id = self.pointers.len() as u32;
        self.pointers.push(Pointer { form, ..before });
        id
    }

    /// Whether all that a pointer is made of may be used here.
    fn reachable(&mut self, pointer: u32, loc: Loc) -> bool {
        let Pointer { base, form, .. } = self.pointers[pointer as usize];
        let closed = |reg: ir::Reg| !self.block(self.value(reg).block).open;
        let outside = match base {
            Base::Reg(reg) if closed(reg) => Some(reg),
            _ => (self.forms.terms(form).iter().flat_map(|term| [term.a, term.b]))
                .find(|&reg| reg != NO_FACTOR && closed(reg)),
        };
        outside.is_none_or(|reg| self.usable(reg, loc))
    }

    /// The vector modifier and the number of registers of an access to `count` elements.
    fn vector_shape(
        &mut self,
        ty: Type,
        count: usize,
        pointer: u32,
        loc: Loc,
    ) -> Option<(Option<VectorWidth>, usize)> {
        if pointer == INVALID {
            return None;
        }
        let bytes = ty.bytes() as usize * count;
        let lanes = if count == 8 && ty.bits() == 16 { 4 } else { count };
        let vector = match lanes {
            1 => None,
            2 => Some(VectorWidth::V2),
            4 => Some(VectorWidth::V4),
            _ => {
                let message =
                    format!("an access to {count} elements; 1, 2, 4 or eight of 16 bits are possible");
                self.mistake(Code::VectorShape, loc, message);
                return None;
            }
        };
        if bytes > 16 {
            let message = format!("an access of {bytes} bytes; 16 are the most");
            self.mistake(Code::VectorShape, loc, message);
            return None;
        }
        let form = self.pointers[pointer as usize].form;
        let size = bytes as i64;
        let regular = self.forms.terms(form).iter().all(|term| term.coefficient % size == 0);
        let constant = self.forms.constant(form);
        if regular && constant % size != 0 {
            let message = format!("an access of {bytes} bytes at an offset of {constant}: not aligned");
            self.mistake(Code::Alignment, loc, message);
            return None;
        }
        Some((vector, lanes))
    }
}
