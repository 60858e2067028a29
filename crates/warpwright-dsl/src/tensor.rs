//! Tiles of tensors, copied by tensor map (TMA), and barriers that count their bytes. From sm_90 on.

use super::handle::handle;
use super::reg::{IntoReg, Reg};
use super::state::{Base, Pointer};
use super::types::*;
use super::{K, Ptr};
use std::marker::PhantomData;
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{
    self, Address, Dst, DstOrSink, DstPair, Imm, Space, Src, Srcs, TensorAddress, Type, Variable,
};
use warpwright_ptx::op::bulk_copy::*;
use warpwright_ptx::op::convert::Cvta;
use warpwright_ptx::op::mbarrier::{MbarrierArrive, MbarrierInit, MbarrierTryWait};
use warpwright_ptx::op::sync::{FenceProxy, ProxyKind};

/// The first architecture with tensor maps, as `sm_N`.
const TENSORS: u16 = 90;

/// What shared memory of a tile is aligned to: what every swizzling repeats after.
const TILE_ALIGN: u32 = 1024;

/// Bytes of a tensor map, and what its address is a multiple of.
const MAP_BYTES: u64 = 128;
const MAP_ALIGN: u32 = 64;

fn number(value: u32) -> Src {
    Src::Imm(Imm::Int(value.into()))
}

/// A parameter: the map of a tensor, which says how large its tiles are. A handle, free to copy.
#[derive(Debug)]
pub struct TensorMap<'k, T> {
    map: Ptr<'k, Global, u8>,
    element: PhantomData<T>,
}

handle!(TensorMap<T>);

/// A barrier in shared memory that threads arrive at and that counts bytes of copies. A phase of it is over when all that
/// it expects has come; then the next begins. A handle, free to copy.
#[derive(Clone, Copy, Debug)]
pub struct TileBarrier<'k> {
    word: Ptr<'k, Shared, u64>,
}

impl<'k> K<'k> {
    /// A parameter: the map of a tensor, by which one thread copies tiles of it to shared memory and back. The host makes
    /// it of a buffer, a shape and the size of a tile.
    ///
    /// ```
    /// use warpwright_dsl::*;
    ///
    /// // Each block doubles a tile of 32 rows and 64 columns.
    /// let built = build("double", &LaunchRule::new(128), "sm_90".parse()?, |k| {
    ///     let (x, y) = (k.tensor_map::<f32>("x"), k.tensor_map::<f32>("y"));
    ///     let (tile, arrived) = (k.tile::<f32>(32 * 64), k.tile_barrier(1));
    ///     let at = [k.ctaid() * 64, k.u32(0)].map(|at| at.bits::<i32>());
    ///     let is_first = k.tid().eq(0);
    ///     k.when(is_first, || {
    ///         arrived.expect(4 * 32 * 64);
    ///         x.load(at, tile, arrived);
    ///     });
    ///     arrived.wait(0u32);
    ///     k.each(k.strided(32 * 64), |i| tile.st(i, tile.ld(i) * 2.0));
    ///     k.fence_async();
    ///     k.sync();
    ///     k.when(is_first, || {
    ///         y.store(at, tile);
    ///         k.bulk_commit();
    ///         k.bulk_wait(0);
    ///     });
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn tensor_map<T: Data>(self, name: &'static str) -> TensorMap<'k, T> {
        let loc = Location::caller();
        let map = match self.has_tensors("a tensor map", loc) {
            true => self.map_parameter(name, loc),
            false => Ptr::poison(self),
        };
        TensorMap { map, element: PhantomData }
    }

    fn map_parameter(self, name: &'static str, loc: super::state::Loc) -> Ptr<'k, Global, u8> {
        self.state().check_declared(name, None, None, loc);
        let mut variable = Variable::new(Space::Param, Type::B8, name);
        (variable.align, variable.dims) = (Some(MAP_ALIGN), vec![Some(MAP_BYTES)]);
        let Some(symbol) = self.declare(variable, loc) else { return Ptr::poison(self) };
        let mut state = self.state();
        let ty = Type::U64;
        let address = state.pure_in(super::state::ENTRY, ty, loc, |d| super::emit::mov(ty, d, symbol.into()));
        let address = state.pure_in(super::state::ENTRY, ty, loc, |d| {
            Cvta { to: false, space: Space::Param, ty, d: Dst(d), a: address.into() }.into()
        });
        drop(state);
        let (base, form) = (Base::Reg(address), super::form::FormId::ZERO);
        Ptr::new(self, Pointer { base, form, narrow: false, mutable: true, shifting: true })
    }

    /// Shared memory for a tile of `count` elements, aligned as every swizzling needs it.
    #[track_caller]
    pub fn tile<T: Data>(self, count: u32) -> Ptr<'k, Shared, T> {
        self.shared_aligned(count, TILE_ALIGN, Location::caller())
    }

    /// A barrier that expects so many [arrivals](TileBarrier::expect) in each phase. All threads of the block make it
    /// together, and wait for each other.
    #[track_caller]
    pub fn tile_barrier(self, arrivals: u32) -> TileBarrier<'k> {
        let loc = Location::caller();
        if !self.has_tensors("a barrier of tiles", loc) {
            return TileBarrier { word: Ptr::poison(self) };
        }
        let word = self.shared_aligned::<u64>(1, 16, loc);
        self.when(self.tid().eq(0), || {
            let address = word.address();
            let space = Some(Space::Shared);
            let count = number(arrivals);
            self.append(MbarrierInit { layout: None, space, ty: Type::B64, address, count });
        });
        self.sync();
        TileBarrier { word }
    }

    /// What this thread wrote to shared memory is seen by copies of tiles that a thread starts once it has waited for this
    /// one, as at [`sync`](Self::sync).
    #[track_caller]
    pub fn fence_async(self) {
        if self.has_tensors("a fence of copies", Location::caller()) {
            self.append(FenceProxy {
                kind: ProxyKind::Async,
                space: Some(Space::SharedCta),
                alias: false,
                semantics: None,
                scope: None,
            });
        }
    }

    /// Closes the group of [stores](TensorMap::store) that this thread has started since the last one.
    #[track_caller]
    pub fn bulk_commit(self) {
        self.append(CpAsyncBulkCommitGroup {});
    }

    /// Waits until at most `groups` groups of stores of this thread are in flight.
    #[track_caller]
    pub fn bulk_wait(self, groups: u32) {
        self.append(CpAsyncBulkWaitGroup { read: false, n: number(groups) });
    }

    /// Does the same for their tiles: they may be written again, and what was stored need not be there yet.
    #[track_caller]
    pub fn bulk_wait_read(self, groups: u32) {
        self.append(CpAsyncBulkWaitGroup { read: true, n: number(groups) });
    }

    /// Whether the kernel may have them.
    fn has_tensors(self, what: &str, loc: super::state::Loc) -> bool {
        if !self.not_called(what, loc) {
            return false;
        }
        let (target, is_checked) = (self.target(), self.state().bounds.is_some());
        let (code, message) = if target.sm < TENSORS {
            (Code::NeedsTarget, format!("{what} needs sm_{TENSORS} or later; the target is {target}"))
        } else if is_checked {
            (Code::Parameter, format!("{what}, which checked pointers do not know"))
        } else {
            return true;
        };
        self.state().mistake(code, loc, message);
        false
    }
}

impl<'k, T: Data> TensorMap<'k, T> {
    /// Starts a copy of a tile to shared memory; the barrier counts its bytes, of which one thread has told it
    /// ([`TileBarrier::expect`]). `at` is the tile's first element, **the dimension whose elements are beside each other
    /// first**: column, row. What is outside of the tensor is zero, or NaN if its map says so. One thread does it.
    #[track_caller]
    pub fn load<const N: usize>(
        self,
        at: [impl IntoReg<'k, i32>; N],
        to: Ptr<'k, Shared, T>,
        arrived: TileBarrier<'k>,
    ) {
        let loc = Location::caller();
        let Some((dim, from)) = self.place(at, loc) else { return };
        let (to, mbar) = (to.address(), arrived.word.address());
        self.copy(
            dim,
            Space::SharedCluster,
            Space::Global,
            TensorEnd::Memory(to),
            TensorEnd::Tensor(from),
            Some(mbar),
        );
    }

    /// Starts a copy of a tile from shared memory, which belongs to the thread's [group](K::bulk_commit). What is outside
    /// of the tensor is left out. One thread does it, behind a [fence](K::fence_async) of those that wrote the tile.
    #[track_caller]
    pub fn store<const N: usize>(self, at: [impl IntoReg<'k, i32>; N], from: Ptr<'k, Shared, T>) {
        let loc = Location::caller();
        let Some((dim, to)) = self.place(at, loc) else { return };
        let from = from.address();
        self.copy(dim, Space::Global, Space::SharedCta, TensorEnd::Tensor(to), TensorEnd::Memory(from), None);
    }

    /// The map with coordinates.
    fn place<const N: usize>(
        self,
        at: [impl IntoReg<'k, i32>; N],
        loc: super::state::Loc,
    ) -> Option<(TensorDim, TensorAddress)> {
        use TensorDim::{D1, D2, D3, D4, D5};
        let k = self.map.k;
        let at = at.map(|at| at.into_reg(k, loc).id);
        let Some(dim) = N.checked_sub(1).and_then(|at| [D1, D2, D3, D4, D5].get(at).copied()) else {
            let message = format!("{N} coordinates of a tile; a tensor has 1 to 5 dimensions");
            k.state().mistake(Code::VectorShape, loc, message);
            return None;
        };
        let base = self.map.address();
        let mut state = k.state();
        let mut coordinates = Vec::new();
        for at in at {
            if !state.usable(at, loc) {
                return None;
            }
            coordinates.push(Src::Reg(state.register(at, loc)));
        }
        Some((dim, TensorAddress { base, coordinates: vec![Srcs::Many(coordinates.into())] }))
    }

    #[track_caller]
    fn copy(
        self,
        dim: TensorDim,
        space: Space,
        source: Space,
        to: TensorEnd,
        from: TensorEnd,
        mbar: Option<Address>,
    ) {
        let completion = if mbar.is_some() { Completion::Mbarrier } else { Completion::BulkGroup };
        self.map.k.append(CpAsyncBulkTensor {
            dim,
            space,
            source,
            load_mode: None,
            completion,
            multicast: None,
            cta_group: None,
            cache_hint: false,
            to,
            from,
            mbar,
            offsets: None,
            cta_mask: None,
            policy: None,
        });
    }
}

impl<'k> TileBarrier<'k> {
    /// Arrives, and has the phase wait for so many bytes of copies.
    #[track_caller]
    pub fn expect(self, bytes: u32) {
        let k = self.word.k;
        let address = self.word.address();
        let state = k.state().written(Type::U64);
        k.append(MbarrierArrive {
            expect_tx: true,
            no_complete: false,
            semantics: None,
            scope: None,
            space: Some(Space::Shared),
            ty: Type::B64,
            state: DstOrSink(Some(state)),
            address,
            count: Some(number(bytes)),
        });
    }

    /// Waits until the phase of that parity is over: 0 of the first, 1 of the second, 0 of the third. What its copies
    /// brought is then visible to the thread.
    #[track_caller]
    pub fn wait(self, parity: impl IntoReg<'k, u32>) {
        let (k, loc) = (self.word.k, Location::caller());
        let parity = parity.into_reg(k, loc);
        let is_waiting = || -> Reg<'k, Pred> {
            let address = self.word.address();
            let mut state = k.state();
            if !state.usable(parity.id, loc) {
                drop(state);
                return k.u32(0).eq(1);
            }
            let parity = state.operand(parity.id, loc);
            let complete: ir::Reg = state.written(Type::Pred);
            drop(state);
            k.append(MbarrierTryWait {
                parity: true,
                phase_type: None,
                semantics: None,
                scope: None,
                space: Some(Space::Shared),
                ty: Type::B64,
                complete: DstPair { first: Some(complete), second: None },
                report: None,
                address,
                state: parity,
                time_hint: None,
            });
            !Reg::<Pred>::new(k, complete)
        };
        k.while_(is_waiting, || {});
    }
}
