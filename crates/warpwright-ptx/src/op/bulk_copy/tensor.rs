//! Copies and reductions of tiles of a tensor, addressed by a tensor map and coordinates.

use super::{BulkLevel, BulkReduction, Completion, DATACENTER_BLACKWELL, Multicast};
use super::{completion_is, cta_mask, multicast_needs};
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;
use crate::op::async_copy::{cache_policy, space_among};
use crate::op::operand::either;
use crate::op::tcgen05::CtaGroup;
use crate::op::{Rule, instruction, modifiers};

modifiers! {
    /// Dimensions of a tensor.
    pub enum TensorDim {
        /// One.
        D1 = "1d",
        /// Two.
        D2 = "2d",
        /// Three.
        D3 = "3d",
        /// Four.
        D4 = "4d",
        /// Five.
        D5 = "5d",
    }

    /// The layout of a tensor's elements in shared memory.
    pub enum LoadMode {
        /// As in the tensor.
        Tile = "tile",
        /// Four rows of a matrix, gathered.
        Gather4 = "tile::gather4",
        /// Four rows of a matrix, scattered.
        Scatter4 = "tile::scatter4",
        /// The columns of a convolution, with offsets.
        Im2col = "im2col",
        /// The columns of a convolution along the width.
        Im2colW = "im2col::w",
        /// The columns of a convolution along the width, 128 of them.
        Im2colW128 = "im2col::w::128",
        /// The columns of a convolution, without offsets.
        Im2colNoOffs = "im2col_no_offs",
    }
}

impl TensorDim {
    /// The number of coordinates.
    pub const fn count(self) -> usize {
        match self {
            TensorDim::D1 => 1,
            TensorDim::D2 => 2,
            TensorDim::D3 => 3,
            TensorDim::D4 => 4,
            TensorDim::D5 => 5,
        }
    }
}

impl LoadMode {
    /// How many offsets a copy of `dim` dimensions takes besides the coordinates.
    const fn offsets(self, dim: TensorDim) -> Option<usize> {
        match self {
            LoadMode::Im2col => Some(dim.count().saturating_sub(2)),
            LoadMode::Im2colW | LoadMode::Im2colW128 => Some(2),
            _ => None,
        }
    }

    /// Whether offsets stand in the text.
    const fn has_offsets(self) -> bool {
        self.offsets(TensorDim::D5).is_some()
    }
}

instruction! {
    /// Copies a tile of a tensor to or from shared memory. The other end, in global memory, is a tensor map with
    /// coordinates.
    pub struct CpAsyncBulkTensor("cp.async.bulk.tensor") {
        dim: TensorDim,
        space: Space,
        source: Space,
        load_mode: Option<LoadMode>,
        completion: Completion,
        multicast: Option<Multicast>,
        cta_group: Option<CtaGroup>,
        cache_hint: bool = "L2::cache_hint",
    }(
        to: TensorEnd,
        from: TensorEnd,
        mbar: Option<Address> = (completion == Completion::Mbarrier),
        offsets: Option<Srcs> = load_mode.is_some_and(LoadMode::has_offsets),
        cta_mask: Option<Src> = multicast.is_some(),
        policy: Option<Src> = cache_hint,
    ) -> nothing,
        needs: |op, needs| {
            needs.both("`cp.async.bulk.tensor`", (8, 0), 90);
            needs.version_if(op.space == Space::SharedCta, "`.shared::cta` as destination", 8, 6);
            load_mode_needs(needs, op.load_mode, op.space == Space::SharedCta);
            if op.cta_group.is_some() {
                needs.targets("`.cta_group`", (8, 6), DATACENTER_BLACKWELL);
            }
            multicast_needs(needs, op.multicast);
        };

    /// Reduces a tile in shared memory into a tensor, element by element.
    pub struct CpReduceAsyncBulkTensor("cp.reduce.async.bulk.tensor") {
        dim: TensorDim,
        space: Space,
        source: Space,
        reduction: BulkReduction,
        load_mode: Option<LoadMode>,
        completion: Completion,
        cache_hint: bool = "L2::cache_hint",
    }(to: TensorAddress, from: Address, policy: Option<Src> = cache_hint) -> nothing,
        needs: |_, needs| needs.both("`cp.reduce.async.bulk.tensor`", (8, 0), 90),
        check: |op, check| {
            space_among(check, "destination", op.space, &[Space::Global]);
            space_among(check, "source", op.source, &[Space::SharedCta]);
            tensor(check, "to", &op.to, op.dim, op.load_mode);
            check.address("from", &op.from, Some(Space::Shared));
            load_mode(check, op.dim, op.load_mode, &[LoadMode::Tile, LoadMode::Im2colNoOffs]);
            completion_is(check, op.completion, Completion::BulkGroup);
            cache_policy(check, op.cache_hint, op.policy.as_ref());
        };

    /// Prefetches a tile of a tensor into the cache.
    pub struct CpAsyncBulkPrefetchTensor("cp.async.bulk.prefetch.tensor") {
        dim: TensorDim,
        level: BulkLevel,
        space: Space,
        load_mode: Option<LoadMode>,
        cache_hint: bool = "L2::cache_hint",
    }(
        from: TensorAddress,
        offsets: Option<Srcs> = load_mode.is_some_and(LoadMode::has_offsets),
        policy: Option<Src> = cache_hint,
    ) -> nothing,
        needs: |op, needs| {
            needs.both("`cp.async.bulk.prefetch.tensor`", (8, 0), 90);
            load_mode_needs(needs, op.load_mode, false);
        },
        check: |op, check| {
            use LoadMode::*;
            space_among(check, "source", op.space, &[Space::Global]);
            tensor(check, "from", &op.from, op.dim, op.load_mode);
            load_mode(check, op.dim, op.load_mode, &[Tile, Gather4, Im2col, Im2colW, Im2colW128]);
            im2col_offsets(check, op.dim, op.load_mode, op.offsets.as_ref());
            cache_policy(check, op.cache_hint, op.policy.as_ref());
        };
}

/// One end of a tensor copy.
#[derive(Clone, Debug, PartialEq)]
pub enum TensorEnd {
    /// Shared memory.
    Memory(Address),
    /// A tensor map, with coordinates.
    Tensor(TensorAddress),
}

either!(TensorEnd: Operand::Tensor => Tensor(TensorAddress), else Memory(Address));

/// A tensor map and as many coordinates as the form has.
fn tensor(check: &mut Check<'_>, name: &str, end: &TensorAddress, dim: TensorDim, mode: Option<LoadMode>) {
    check.address(name, &end.base, Some(Space::Global));
    if end.base.offset != 0 {
        check.report(Code::OperandForm, format!("the tensor map `{name}` takes no offset"));
    }
    let count = match mode {
        Some(LoadMode::Gather4 | LoadMode::Scatter4) => 5,
        _ => dim.count(),
    };
    match end.coordinates.as_slice() {
        [Srcs::Many(coordinates)] if coordinates.len() == count => {
            for coordinate in coordinates {
                check.src("coordinates", coordinate, Type::S32);
            }
        }
        _ => check.report(
            Code::VectorShape,
            format!("`{name}` needs one vector of {count} coordinates in this form"),
        ),
    }
}

/// The load mode must be `offered`, and fit the number of dimensions.
fn load_mode(check: &mut Check<'_>, dim: TensorDim, mode: Option<LoadMode>, offered: &[LoadMode]) {
    let Some(mode) = mode else { return };
    if !offered.contains(&mode) {
        let names: Vec<_> = offered.iter().map(|mode| format!("`{mode}`")).collect();
        let message = format!("`{mode}` is not offered in this direction; it takes {}", names.join(", "));
        check.report(Code::ModifierCombination, message);
    }
    match mode {
        LoadMode::Tile => {}
        LoadMode::Gather4 | LoadMode::Scatter4 => {
            check.combination(dim == TensorDim::D2, "rows are gathered and scattered in `.2d` only");
        }
        _ => check.combination(dim >= TensorDim::D3, "`.im2col` modes need `.3d` or more"),
    }
}

/// The offsets of an `.im2col` mode: 16 bits each.
fn im2col_offsets(check: &mut Check<'_>, dim: TensorDim, mode: Option<LoadMode>, offsets: Option<&Srcs>) {
    let (Some(offsets), Some(count)) = (offsets, mode.and_then(|mode| mode.offsets(dim))) else { return };
    match offsets {
        Srcs::Many(offsets) if offsets.len() == count => {
            for offset in offsets {
                check.src("offsets", offset, Type::U16);
            }
        }
        _ => check.report(Code::VectorShape, format!("the offsets must be a vector of {count}")),
    }
}

/// What a load mode needs; gathering into the block's own memory is offered more widely.
fn load_mode_needs(needs: &mut Needs, mode: Option<LoadMode>, own_memory: bool) {
    let feature = match mode {
        Some(LoadMode::Gather4) => "`.tile::gather4`",
        Some(LoadMode::Scatter4) => "`.tile::scatter4`",
        Some(LoadMode::Im2colW) => "`.im2col::w`",
        Some(LoadMode::Im2colW128) => "`.im2col::w::128`",
        _ => return,
    };
    needs.version(feature, 8, 6);
    if own_memory && matches!(mode, Some(LoadMode::Gather4 | LoadMode::Im2colW)) {
        needs.sm(feature, 100);
    } else {
        needs.add(feature, DATACENTER_BLACKWELL);
    }
}

impl Rule for CpAsyncBulkTensor {
    fn check(&self, check: &mut Check<'_>) {
        match (&self.to, &self.from) {
            (TensorEnd::Memory(to), TensorEnd::Tensor(from)) => {
                space_among(check, "destination", self.space, &[Space::SharedCluster, Space::SharedCta]);
                space_among(check, "source", self.source, &[Space::Global]);
                check.address("to", to, Some(Space::Shared));
                tensor(check, "from", from, self.dim, self.load_mode);
                use LoadMode::*;
                load_mode(check, self.dim, self.load_mode, &[Tile, Gather4, Im2col, Im2colW, Im2colW128]);
                completion_is(check, self.completion, Completion::Mbarrier);
                check.combination(
                    self.multicast.is_none() || self.space == Space::SharedCluster,
                    "`.multicast` goes to `.shared::cluster` only",
                );
            }
            (TensorEnd::Tensor(to), TensorEnd::Memory(from)) => {
                space_among(check, "destination", self.space, &[Space::Global]);
                space_among(check, "source", self.source, &[Space::SharedCta]);
                tensor(check, "to", to, self.dim, self.load_mode);
                check.address("from", from, Some(Space::Shared));
                use LoadMode::*;
                load_mode(check, self.dim, self.load_mode, &[Tile, Scatter4, Im2colNoOffs]);
                completion_is(check, self.completion, Completion::BulkGroup);
                check.combination(
                    self.multicast.is_none() && self.cta_group.is_none(),
                    "`.multicast` and `.cta_group` go with copies to shared memory",
                );
            }
            _ => check.report(
                Code::OperandForm,
                "exactly one of the two ends must be a tensor map with coordinates, `[map, {…}]`",
            ),
        }
        check.address("mbar", &self.mbar, Some(Space::Shared));
        im2col_offsets(check, self.dim, self.load_mode, self.offsets.as_ref());
        cta_mask(check, self.cta_mask.as_ref());
        cache_policy(check, self.cache_hint, self.policy.as_ref());
    }
}
