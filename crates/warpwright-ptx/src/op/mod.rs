//! The instructions, one file per family.
//!
//! An instruction is a struct: its modifiers as enums and flags, its operands typed. The
//! `instruction!` macro takes both in the order of the canonical text and derives parsing,
//! printing and the walk over operands. What the instruction's parts may be together ([`Rule::check`]),
//! and what PTX version and target they need ([`Rule::needs`]), is written by hand beside it.
//!
//! ```text
//! instruction! {
//!     /// Sum.
//!     pub struct Add("add") {              // opcode
//!         rounding: Option<Rounding>,      // an optional modifier
//!         ftz: bool = "ftz",               // a flag
//!         ty: Type,                        // a modifier that must be there
//!     }(d: Dst, a: Src, b: Src)            // operands, in order
//! }
//! ```
//!
//! An optional operand that a modifier asks for names the condition: `policy: Option<Src> =
//! cache_hint`; one that others may follow, with how many do: `Presence::Before(true, 1)`.
//!
//! Modifiers may stand in any order in the text, as `ptxas` has it; where two fields take the same
//! kind of modifier, the first field takes the first in the text.

mod check;
mod framework;
mod operand;
mod read;
pub mod uniformity;
mod word;

pub mod arith;
pub mod async_copy;
pub mod atomic;
pub mod bulk_copy;
pub mod cluster;
pub mod compare;
pub mod control;
pub mod convert;
pub mod logic;
pub mod matrix;
pub mod mbarrier;
pub mod memory;
pub mod misc;
pub mod sync;
pub mod tcgen05;
pub mod texture;
pub mod video;
pub mod warp;
pub mod wgmma;
pub mod wmma;

pub use check::Check;
pub use framework::{Access, Carry, Convergence, Instr, Rule, Visitor, VisitorMut};
pub use operand::{Arg, Operand};
pub use read::{InstrReader, LabelResolver, Presence};
pub use uniformity::{Apart, Level, Operands};
pub use word::{Keyword, Modifier, ModifierField, Word, word_hash};

pub(crate) use framework::{instruction, ops};
pub(crate) use word::modifiers;

pub(crate) use framework::OpcodeRow;

ops! {
    // Integer and floating-point arithmetic.
    arith {
        Add, Sub, Addc, Subc, Sad, Mul, Mul24, Mad, Mad24, Madc, Fma, Clmad, Div, Rem, Abs, Neg, Copysign, Testp,
        Min, Max, Rcp, Sqrt, Rsqrt, Sin, Cos, Lg2, Ex2, Tanh, Dp4a, Dp2a,
    }

    // Bitwise logic, shifts and bit fields.
    logic { And, Or, Xor, Not, Cnot, Lop3, Shl, Shr, Shf, Bfe, Bfi, Popc, Clz, Brev, Bfind, Fns, Szext, Bmsk, Prmt }

    // Comparisons and selections.
    compare { Setp, Set, Selp, Slct }

    // Conversions between types and between address spaces.
    convert { Mov, Cvt, CvtRs, CvtScaledOne, CvtScaledTwo, CvtPack, Cvta, Isspacep }

    // Loads, stores, prefetches and address queries.
    memory {
        Ld, Ldu, St, StAsync, StBulk, MultimemLdReduce, MultimemSt, MultimemRed, MultimemStAsync, Prefetch, Prefetchu,
        ApplyPriority, Discard, CreatePolicyFractional, CreatePolicyRange, CreatePolicyRangeFabric in Box, CreatePolicyCvt,
        Alloca, StackSave, StackRestore,
    }

    // Atomic operations and reductions in memory.
    atomic { Atom, AtomCas, Red, RedAsync, MultimemRedAsync }

    // Control flow: branches, calls, returns.
    control {
        Bra, BrxIdx, Call, Ret, Exit, Trap, Brkpt, Pmevent, PmeventMask, SetmaxnregInc, SetmaxnregDec,
        Griddepcontrol,
    }

    // Barriers and fences.
    sync {
        BarSync, BarArrive, BarRed, BarrierSync, BarrierArrive, BarrierRed, BarWarpSync,
        BarrierClusterArrive, BarrierClusterWait, Membar, MembarProxy, Fence, FenceMbarrierInit,
        FenceProxy, FenceProxyAsync, FenceProxyTensormap, Nanosleep,
    }

    // Exchanges between the lanes of a warp.
    warp { Shfl, ShflNoSync, Vote, VoteNoSync, ActiveMask, Match, Redux, Elect }

    // Copies that run beside the thread: cp.async and its groups.
    async_copy { CpAsync in Box, CpAsyncCommitGroup, CpAsyncWaitGroup, CpAsyncWaitAll, CpAsyncMbarrierArrive }

    // Matrix products of a warp on registers: mma and its loads and stores.
    matrix { Mma in Box, MmaSp in Box, MmaSpOrdered in Box, Ldmatrix, Stmatrix, Movmatrix }

    // Matrix products of a warp with opaque fragments.
    wmma { WmmaLoadA, WmmaLoadB, WmmaLoadC, WmmaStoreD, WmmaMma in Box }

    // Matrix products of a warpgroup on shared memory.
    wgmma { WgmmaFence, WgmmaCommitGroup, WgmmaWaitGroup, WgmmaMmaAsync in Box, WgmmaMmaAsyncSp in Box }

    // Barriers in shared memory.
    mbarrier { MbarrierInit, MbarrierInval, MbarrierArrive, MbarrierArriveDrop, MbarrierExpectTx, MbarrierCompleteTx, MbarrierTestWait, MbarrierTryWait in Box, MbarrierPendingCount }

    // Bulk copies by the tensor memory engine.
    bulk_copy { CpAsyncBulk in Box, CpReduceAsyncBulk in Box, CpAsyncBulkPrefetch, MultimemCpAsyncBulk in Box, MultimemCpReduceAsyncBulk, CpAsyncBulkCommitGroup, CpAsyncBulkWaitGroup, CpAsyncBulkTensor in Box, CpReduceAsyncBulkTensor in Box, CpAsyncBulkPrefetchTensor in Box, TensormapReplace, TensormapCpFenceproxy }

    // Clusters: addresses of other blocks, cluster barriers.
    cluster { Mapa, Getctarank, ClusterlaunchcontrolTryCancel, ClusterlaunchcontrolQueryCancel }

    // Textures and surfaces.
    texture { Tex in Box, Tld4 in Box, Suld, Sust, Sured, Txq, Suq, Istypep }

    // Tensor memory and the fifth generation of tensor cores.
    tcgen05 { Tcgen05Alloc, Tcgen05Dealloc, Tcgen05RelinquishAllocPermit, Tcgen05Ld, Tcgen05LdRed, Tcgen05St, Tcgen05WaitLd, Tcgen05WaitSt, Tcgen05Cp, Tcgen05Shift, Tcgen05Commit, Tcgen05FenceBefore, Tcgen05FenceAfter, Tcgen05Mma in Box, Tcgen05MmaWs in Box }

    // Video instructions.
    video {
        Vadd in Box, Vsub in Box, Vabsdiff in Box, Vmin in Box, Vmax in Box, Vshl in Box, Vshr in Box, Vmad in Box, Vset in Box,
        Vadd2, Vsub2, Vavrg2, Vabsdiff2, Vmin2, Vmax2, Vset2,
        Vadd4, Vsub4, Vavrg4, Vabsdiff4, Vmin4, Vmax4, Vset4,
    }

    // Everything that fits no other family.
    misc {}
}
