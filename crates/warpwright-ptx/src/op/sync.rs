//! Barriers and fences.

use super::{Convergence, Presence, instruction, modifiers};
use crate::diag::Code;
use crate::ir::*;
use crate::op::{Check, Level, Operands};

modifiers! {
    /// Whom a `membar` orders accesses for.
    pub enum MembarLevel {
        /// The block.
        Cta = "cta",
        /// The device.
        Gl = "gl",
        /// The system.
        Sys = "sys",
    }

    /// What a barrier computes of the predicates of its threads.
    pub enum BarrierReduction {
        /// Whether all hold.
        And = "and",
        /// Whether one holds.
        Or = "or",
        /// How many hold.
        Popc = "popc",
    }

    /// The operations that a fence is restricted to.
    pub enum SyncRestrict {
        /// Those on shared memory of the block.
        SharedCta = "sync_restrict::shared::cta",
        /// Those on shared memory of the cluster.
        SharedCluster = "sync_restrict::shared::cluster",
        /// Reads of shared memory of the cluster.
        SharedClusterRead = "sync_restrict::shared::cluster::read",
    }

    /// The paths to memory that a proxy fence orders.
    pub enum ProxyKind {
        /// Other addresses of the same memory.
        Alias = "alias",
        /// Asynchronous copies.
        Async = "async",
        /// Generic accesses after those through the fabric.
        GenericAfterFabric = "generic::fabric",
        /// Accesses through the fabric after generic ones.
        FabricAfterGeneric = "fabric::generic",
        /// Accesses through the fabric.
        FabricAfterFabric = "fabric::fabric",
    }
}

impl ProxyKind {
    /// Whether one side is the fabric.
    pub const fn is_fabric(self) -> bool {
        !matches!(self, ProxyKind::Alias | ProxyKind::Async)
    }
}

instruction! {
    /// Waits for the threads of the block: all, or `b` of them. The whole warp takes part.
    pub struct BarSync("bar" [cta] "sync") {}(a: Src, b: Option<Src>) -> nothing,
        needs: |op, needs| cta(needs, op.cta),
        convergence: |op| block(true, op.b.is_some()),
        check: |op, check| {
            barrier_number(check, &op.a);
            if let Some(b) = &op.b {
                thread_count(check, b, true);
            }
        };

    /// Arrives at a barrier without waiting. The whole warp takes part.
    pub struct BarArrive("bar" [cta] "arrive") {}(a: Src, b: Src) -> nothing,
        needs: |op, needs| cta(needs, op.cta),
        convergence: |_| block(true, true),
        check: |op, check| {
            barrier_number(check, &op.a);
            thread_count(check, &op.b, false);
        };

    /// Waits, and combines a predicate of every thread. The whole warp takes part.
    pub struct BarRed("bar" [cta] "red") {
        op: BarrierReduction,
        ty: Type,
    }(d: Dst, a: Src, b: Option<Src> = Presence::Before(true, 1), c: Src) -> |op, operands| reduced(op.op, op.b.is_some(), true, operands),
        needs: |op, needs| cta(needs, op.cta),
        convergence: |op| block(true, op.b.is_some()),
        check: |op, check| reduction(check, op.op, op.ty, (op.d, &op.a, op.b.as_ref(), &op.c));

    /// Waits for the threads of the block: all, or `b` of them. Unless `aligned`, the threads of a warp may arrive at
    /// different times.
    pub struct BarrierSync("barrier" [cta] "sync") {
        aligned: bool = "aligned",
    }(a: Src, b: Option<Src>) -> nothing,
        needs: |op, needs| cta(needs, op.cta),
        convergence: |op| block(op.aligned, op.b.is_some()),
        check: |op, check| {
            barrier_number(check, &op.a);
            if let Some(b) = &op.b {
                thread_count(check, b, true);
            }
        };

    /// Arrives at a barrier without waiting.
    pub struct BarrierArrive("barrier" [cta] "arrive") {
        aligned: bool = "aligned",
    }(a: Src, b: Src) -> nothing,
        needs: |op, needs| cta(needs, op.cta),
        convergence: |op| block(op.aligned, true),
        check: |op, check| {
            barrier_number(check, &op.a);
            thread_count(check, &op.b, false);
        };

    /// Waits, and combines a predicate of every thread.
    pub struct BarrierRed("barrier" [cta] "red") {
        op: BarrierReduction,
        aligned: bool = "aligned",
        ty: Type,
    }(d: Dst, a: Src, b: Option<Src> = Presence::Before(true, 1), c: Src) -> |op, operands| reduced(op.op, op.b.is_some(), op.aligned, operands),
        needs: |op, needs| cta(needs, op.cta),
        convergence: |op| block(op.aligned, op.b.is_some()),
        check: |op, check| reduction(check, op.op, op.ty, (op.d, &op.a, op.b.as_ref(), &op.c));

    /// Waits for lanes of the warp, and orders memory among them.
    pub struct BarWarpSync("bar.warp.sync") {}(mask: Src) -> nothing,
        check: |op, check| check.word_src("mask", &op.mask);

    /// Arrives at the barrier of the cluster without waiting.
    pub struct BarrierClusterArrive("barrier.cluster.arrive") {
        semantics: Option<Semantics>,
        aligned: bool = "aligned",
    }() -> nothing,
        needs: |op, needs| {
            needs.both("`barrier.cluster`", (7, 8), 90);
            if op.semantics.is_some() {
                needs.version("`.release` or `.relaxed` on `barrier.cluster.arrive`", 8, 0);
            }
        },
        convergence: |op| if op.aligned { Convergence::Cluster } else { Convergence::None },
        check: |op, check| {
            check.combination(
                matches!(op.semantics, None | Some(Semantics::Release | Semantics::Relaxed)),
                "an arrival is `.release` or `.relaxed`",
            );
        };

    /// Waits until all threads of the cluster have arrived.
    pub struct BarrierClusterWait("barrier.cluster.wait") {
        semantics: Option<Semantics>,
        aligned: bool = "aligned",
    }() -> nothing,
        needs: |op, needs| {
            needs.both("`barrier.cluster`", (7, 8), 90);
            needs.version_if(op.semantics.is_some(), "`.acquire` on `barrier.cluster.wait`", 8, 0);
        },
        convergence: |op| if op.aligned { Convergence::Cluster } else { Convergence::None },
        check: |op, check| {
            check.combination(
                matches!(op.semantics, None | Some(Semantics::Acquire)),
                "waiting is `.acquire` or says nothing",
            );
        };

    /// Orders memory accesses.
    pub struct Membar("membar") {
        level: MembarLevel,
    }() -> nothing,
        check: |_, _| {};

    /// Orders accesses to memory through different paths.
    pub struct MembarProxy("membar.proxy") {
        kind: ProxyKind,
    }() -> nothing,
        needs: |op, needs| {
            needs.both("`membar.proxy`", (7, 5), 60);
            needs.both_if(op.kind == ProxyKind::Async, "`membar.proxy.async`", (8, 0), 90);
        },
        check: |op, check| check.combination(!op.kind.is_fabric(), "the proxy is `.alias` or `.async`");

    /// Orders memory accesses, in the memory model.
    pub struct Fence("fence") {
        semantics: Option<Semantics>,
        restrict: Option<SyncRestrict>,
        scope: Scope,
    }() -> nothing,
        needs: |op, needs| {
            needs.sm("`fence`", 70);
            scope(needs, op.scope);
            if matches!(op.semantics, Some(Semantics::Acquire | Semantics::Release)) {
                needs.both("`.acquire` or `.release` on `fence`", (8, 6), 90);
            }
            needs.both_if(op.restrict.is_some(), "`.sync_restrict`", (8, 6), 90);
        },
        check: |op, check| {
            use Semantics::*;
            check.combination(
                matches!(op.semantics, None | Some(SeqCst | AcqRel | Acquire | Release)),
                "a fence is `.sc`, `.acq_rel`, `.acquire` or `.release`",
            );
            let Some(restrict) = op.restrict else { return };
            let fits = match restrict {
                SyncRestrict::SharedCta => op.semantics == Some(Release),
                SyncRestrict::SharedCluster => op.semantics == Some(Acquire),
                SyncRestrict::SharedClusterRead => false,
            };
            check.combination(
                fits && op.scope == Scope::Cluster,
                "a restricted fence is `.acquire.sync_restrict::shared::cluster.cluster` or `.release.sync_restrict::shared::cta.cluster`",
            );
        };

    /// Makes the initialisation of barriers in shared memory visible to the cluster.
    pub struct FenceMbarrierInit("fence.mbarrier_init") {
        semantics: Semantics,
        scope: Scope,
    }() -> nothing,
        needs: |_, needs| needs.both("`fence.mbarrier_init`", (8, 0), 90),
        check: |op, check| {
            check.combination(
                op.semantics == Semantics::Release && op.scope == Scope::Cluster,
                "the only form is `.release.cluster`",
            );
        };

    /// Orders accesses to memory through different paths.
    pub struct FenceProxy("fence.proxy") {
        kind: ProxyKind,
        /// For `async`: the memory that it applies to.
        space: Option<Space>,
        /// Used with the fabric.
        alias: bool = "alias",
        semantics: Option<Semantics>,
        scope: Option<Scope>,
    }() -> nothing,
        needs: |op, needs| {
            needs.both("`fence.proxy`", (7, 5), 70);
            match op.kind {
                ProxyKind::Async => needs.both("`fence.proxy.async`", (8, 0), 90),
                ProxyKind::Alias if op.semantics.is_some() => {
                    needs.both("`fence.proxy.alias` with an order", (9, 4), 90);
                }
                ProxyKind::Alias => {}
                _ => needs.both("`fence.proxy` of the fabric", (9, 3), 100),
            }
        },
        check: |op, check| {
            use Semantics::*;
            let space_fits = match op.kind {
                ProxyKind::Async => {
                    matches!(op.space, None | Some(Space::Global | Space::SharedCta | Space::SharedCluster))
                }
                _ => op.space.is_none(),
            };
            check.combination(
                space_fits,
                "a space stands only after `.async`: `.global`, `.shared::cta` or `.shared::cluster`",
            );
            check.combination(
                op.alias == op.kind.is_fabric(),
                "`.alias` stands with the fabric and only there",
            );
            let order = (op.semantics, op.scope);
            let ordered = matches!(order, (Some(Acquire | Release), Some(Scope::Sys)));
            check.combination(
                match op.kind {
                    ProxyKind::Async => order == (None, None),
                    ProxyKind::Alias => order == (None, None) || ordered,
                    _ => ordered,
                },
                "`.acquire.sys` or `.release.sys` stands after `.alias` alone, and must with the fabric",
            );
        };

    /// Orders asynchronous accesses with generic ones, in one direction.
    pub struct FenceProxyAsync("fence.proxy.async::generic") {
        semantics: Semantics,
        restrict: SyncRestrict,
        scope: Scope,
    }() -> nothing,
        needs: |op, needs| {
            needs.both("`fence.proxy.async::generic`", (8, 6), 90);
            if op.restrict == SyncRestrict::SharedClusterRead {
                needs.version("`.sync_restrict::shared::cluster::read`", 9, 4);
            }
        },
        check: |op, check| {
            let fits = match op.restrict {
                SyncRestrict::SharedCluster => op.semantics == Semantics::Acquire,
                SyncRestrict::SharedCta | SyncRestrict::SharedClusterRead => {
                    op.semantics == Semantics::Release
                }
            };
            check.combination(fits, "an acquire is restricted to `shared::cluster`, a release to `shared::cta` or `shared::cluster::read`");
            check.combination(op.scope == Scope::Cluster, "the scope is `.cluster`");
        };

    /// Orders uses of a tensor map with generic writes to it, in one direction. An acquire names the map.
    pub struct FenceProxyTensormap("fence.proxy.tensormap::generic") {
        semantics: Semantics,
        scope: Scope,
    }(address: Option<Address>, size: Option<Src>) -> nothing,
        needs: |op, needs| {
            needs.both("`fence.proxy.tensormap::generic`", (8, 3), 90);
            scope(needs, op.scope);
        },
        check: |op, check| {
            let acquire = match op.semantics {
                Semantics::Acquire => true,
                Semantics::Release => false,
                _ => return check.combination(false, "the order is `.acquire` or `.release`"),
            };
            check.that(
                acquire == op.address.is_some() && acquire == op.size.is_some(),
                Code::OperandCount,
                "an acquire names the tensor map and its size, `[address], 128`; a release has no operands",
            );
            check.address("address", &op.address, None);
            if let Some(size) = &op.size {
                check.constant("size", size, 128..=128);
            }
        };

    /// Sleeps for about that many nanoseconds.
    pub struct Nanosleep("nanosleep") {
        ty: Type,
    }(t: Src) -> nothing,
        needs: |_, needs| needs.both("`nanosleep`", (6, 3), 70),
        check: |op, check| {
            check.type_among(op.ty, &[Type::U32]);
            check.word_src("t", &op.t);
        };
}

/// The result of a barrier is the same for all participating threads: those of the block, or the given number of
/// them, in whole warps if it is aligned.
fn reduced(op: BarrierReduction, counted: bool, aligned: bool, operands: &Operands<'_>) -> Level {
    match op {
        _ if counted && aligned => Level::WarpData,
        _ if counted => Level::Unknown,
        BarrierReduction::And | BarrierReduction::Or => operands.all.min(Level::BlockData),
        BarrierReduction::Popc => Level::BlockData,
    }
}

/// The number of a block's barrier.
fn barrier_number(check: &mut Check<'_>, a: &Src) {
    check.word_src("a", a);
    check.imm_range("a", a, 0..=15);
}

/// The number of threads that take part in a barrier.
fn thread_count(check: &mut Check<'_>, b: &Src, waits: bool) {
    check.word_src("b", b);
    let Src::Imm(Imm::Int(count)) = *b else { return };
    check.that(
        count % 32 == 0,
        Code::ImmediateRange,
        format_args!("{count} threads take part, which is not a multiple of the warp's 32"),
    );
    if count == 0 && !waits {
        check.report(Code::ImmediateRange, "the number of threads that take part must not be zero");
    }
}

fn reduction(
    check: &mut Check<'_>,
    op: BarrierReduction,
    ty: Type,
    (d, a, b, c): (Dst, &Src, Option<&Src>, &Src),
) {
    let result = if op == BarrierReduction::Popc { Type::U32 } else { Type::Pred };
    check.type_among(ty, &[result]);
    check.dst("d", d, result);
    barrier_number(check, a);
    if let Some(b) = b {
        thread_count(check, b, true);
    }
    check.src("c", c, Type::Pred);
}

fn cta(needs: &mut Needs, said: bool) {
    needs.version_if(said, "`.cta` of a barrier", 7, 8);
}

fn scope(needs: &mut Needs, scope: Scope) {
    needs.both_if(scope == Scope::Cluster, "`.cluster` scope", (7, 8), 90);
}

/// A barrier is for the block unless an operand gives a number of threads: then whole warps may stay away. Threads
/// may reach a barrier that is not aligned from different locations.
fn block(aligned: bool, counted: bool) -> Convergence {
    match (aligned, counted) {
        (true, false) => Convergence::Block,
        (true, true) => Convergence::Warp,
        (false, _) => Convergence::None,
    }
}
