//! Prefetches, eviction priorities and cache policies.

use super::{space_among, space_needs};
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;
use crate::op::{instruction, modifiers};

modifiers! {
    /// The cache that a prefetch fills.
    pub enum PrefetchLevel {
        /// The L1 cache.
        L1 = "L1",
        /// The L2 cache.
        L2 = "L2",
        /// The L2 cache, at normal priority.
        L2EvictNormal = "L2::evict_normal",
        /// The L2 cache, last to be evicted.
        L2EvictLast = "L2::evict_last",
        /// The cache of tensor maps.
        TensorMap = "tensormap",
    }

    /// The L2 eviction priority of a policy.
    pub enum PolicyPriority {
        /// Last to be evicted.
        Last = "L2::evict_last",
        /// Normal.
        Normal = "L2::evict_normal",
        /// First to be evicted.
        First = "L2::evict_first",
        /// Not changed.
        Unchanged = "L2::evict_unchanged",
    }
}

instruction! {
    /// Prefetches the line at an address into a cache.
    pub struct Prefetch("prefetch") {
        space: Option<Space>,
        level: PrefetchLevel,
    }(address: Address) -> nothing,
        needs: |op, needs| {
            match op.level {
                PrefetchLevel::L1 | PrefetchLevel::L2 => {}
                PrefetchLevel::L2EvictNormal | PrefetchLevel::L2EvictLast => {
                    needs.both("`prefetch` with a priority", (7, 4), 80);
                }
                PrefetchLevel::TensorMap => needs.both("`prefetch.tensormap`", (8, 0), 90),
            }
            space_needs(needs, op.space);
        },
        check: |op, check| {
            let spaces: &[_] = match op.level {
                PrefetchLevel::L1 | PrefetchLevel::L2 => &[None, Some(Space::Global), Some(Space::Local)],
                PrefetchLevel::L2EvictNormal | PrefetchLevel::L2EvictLast => &[None, Some(Space::Global)],
                PrefetchLevel::TensorMap => &[None, Some(Space::Const), Some(Space::Param)],
            };
            space_among(check, op.space, spaces);
            match op.level {
                PrefetchLevel::TensorMap => check.wide_data_address("address", &op.address, op.space),
                _ => check.data_address("address", &op.address, op.space),
            }
        };

    /// Prefetches the line at an address, the same for all threads, into the uniform cache.
    pub struct Prefetchu("prefetchu") {
        level: PrefetchLevel,
    }(address: Address) -> nothing,
        check: |op, check| {
            check.combination(op.level == PrefetchLevel::L1, "the level is `.L1`");
            check.data_address("address", &op.address, None);
        };

    /// Gives the 128 bytes at an address an eviction priority.
    pub struct ApplyPriority("applypriority") {
        space: Option<Space>,
        priority: PolicyPriority,
    }(address: Address, size: Src) -> nothing,
        needs: |_, needs| needs.both("`applypriority`", (7, 4), 80),
        check: |op, check| {
            check.combination(op.priority == PolicyPriority::Normal, "the priority is `.L2::evict_normal`");
            space_among(check, op.space, &[None, Some(Space::Global)]);
            check.data_address("address", &op.address, op.space);
            line_size(check, &op.size);
        };

    /// Drops the 128 bytes at an address from the cache without writing them back.
    pub struct Discard("discard") {
        space: Option<Space>,
        level: PrefetchLevel,
    }(address: Address, size: Src) -> nothing,
        needs: |_, needs| needs.both("`discard`", (7, 4), 80),
        check: |op, check| {
            check.combination(op.level == PrefetchLevel::L2, "the level is `.L2`");
            space_among(check, op.space, &[None, Some(Space::Global)]);
            check.data_address("address", &op.address, op.space);
            line_size(check, &op.size);
        };

    /// Creates a policy that gives a fraction of the accesses the first priority.
    pub struct CreatePolicyFractional("createpolicy.fractional") {
        primary: PolicyPriority,
        secondary: Option<PolicyPriority>,
        ty: Type,
    }(d: Dst, fraction: Option<Src>) -> pointwise,
        needs: |_, needs| needs.both("`createpolicy`", (7, 4), 80),
        check: |op, check| {
            policy_parts(check, op.secondary, op.ty, op.d);
            if let Some(fraction) = &op.fraction {
                check.src("fraction", fraction, Type::F32);
                let value = fraction.imm().and_then(Imm::float);
                if value.is_some_and(|value| !(value > 0.0 && value <= 1.0)) {
                    check
                        .report(Code::ImmediateRange, "operand `fraction` must be more than 0 and at most 1");
                }
            }
        };

    /// Creates a policy that gives the accesses to a range the first priority.
    pub struct CreatePolicyRange("createpolicy.range") {
        space: Option<Space>,
        primary: PolicyPriority,
        secondary: Option<PolicyPriority>,
        ty: Type,
    }(d: Dst, address: Address, primary_size: Src, total_size: Src) -> pointwise,
        needs: |_, needs| needs.both("`createpolicy`", (7, 4), 80),
        check: |op, check| {
            policy_parts(check, op.secondary, op.ty, op.d);
            space_among(check, op.space, &[None, Some(Space::Global)]);
            check.wide_address("address", &op.address, op.space);
            range_sizes(check, &op.primary_size, &op.total_size);
        };

    /// Creates a policy for a range of a fabric handle: `[handle, offset]`.
    pub struct CreatePolicyRangeFabric("createpolicy.range.fabric") {
        primary: PolicyPriority,
        secondary: Option<PolicyPriority>,
        ty: Type,
    }(d: Dst, address: TensorAddress, primary_size: Src, total_size: Src) -> pointwise,
        needs: |_, needs| needs.both("`createpolicy.range.fabric`", (9, 4), 100),
        check: |op, check| {
            policy_parts(check, op.secondary, op.ty, op.d);
            let handle = match &op.address.base {
                Address { base: AddressBase::Reg(reg), offset: 0 } => Some(*reg),
                _ => None,
            };
            match (handle, op.address.coordinates.as_slice()) {
                (Some(handle), [Srcs::One(Src::Reg(offset))]) => {
                    check.reg("address", handle, Type::U32);
                    check.reg("offset", *offset, Type::U64);
                }
                _ => check.report(
                    Code::OperandForm,
                    "the address is a fabric handle and an offset, `[handle, offset]`",
                ),
            }
            range_sizes(check, &op.primary_size, &op.total_size);
        };

    /// Creates a policy from an access property of the host's interface.
    pub struct CreatePolicyCvt("createpolicy.cvt.L2") {
        ty: Type,
    }(d: Dst, a: Src) -> pointwise,
        needs: |_, needs| needs.both("`createpolicy`", (7, 4), 80),
        check: |op, check| {
            policy_parts(check, None, op.ty, op.d);
            check.src("a", &op.a, Type::U64);
        };
}

/// The number of bytes is always written as 128.
fn line_size(check: &mut Check<'_>, size: &Src) {
    check.that(*size == Src::Imm(Imm::Int(128)), Code::ImmediateRange, "operand `size` must be 128");
}

/// What all policies have in common.
fn policy_parts(check: &mut Check<'_>, secondary: Option<PolicyPriority>, ty: Type, d: Dst) {
    check.type_among(ty, &[Type::B64]);
    check.combination(
        matches!(secondary, None | Some(PolicyPriority::First | PolicyPriority::Unchanged)),
        "the second priority is `.L2::evict_first` or `.L2::evict_unchanged`",
    );
    check.dst("d", d, Type::U64);
}

/// The sizes of the range that has the first priority, and of all that the policy speaks of.
fn range_sizes(check: &mut Check<'_>, primary: &Src, total: &Src) {
    check.word_src("primary_size", primary);
    check.word_src("total_size", total);
    if let (Some(Imm::Int(primary)), Some(Imm::Int(total))) = (primary.imm(), total.imm())
        && primary > total
    {
        check.report(Code::ImmediateRange, "operand `primary_size` must not exceed `total_size`");
    }
}
