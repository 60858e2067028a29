//! The instructions, one file per family.
//!
//! An instruction is a struct: its modifiers are enums and flags, its operands are typed. The `instruction!` macro
//! takes both in the order of the canonical text and derives parsing, printing and the walk over operands; it also
//! takes the instruction's rules.
//!
//! ```text
//! instruction! {
//!     /// Reduction over the lanes.
//!     pub struct Redux("redux.sync") {     // opcode
//!         op: ReduxOp,                     // a modifier that must be there
//!         abs: bool = "abs",               // a flag
//!         ty: Type,
//!     }(d: Dst, a: Src, mask: Src)         // operands, in order
//!         -> |op, operands| operands.together(&[&op.mask]),
//!         needs: |_, needs| needs.both("`redux`", (7, 0), 80),
//!         convergence: |op| by_mask(&op.mask);
//! }
//! ```
//!
//! After the arrow, every instruction must declare the uniformity level of its results: by a function of
//! [`uniformity`] (`pointwise`, `found`, `unknown`; `nothing` without a result), or a closure. The following may come
//! next, in this order: `needs`, the PTX version and target of each feature that is used; `convergence`, the threads
//! that must execute it together; `carry`, its use of the carry flag; `apart`, a result whose level differs from that
//! of the others; `thread_index`, when the result is the index of the thread; `check`, combinations that it does not
//! allow. Write a long `check` as a [`Rule`] by hand. Instructions that differ only in their opcodes are declared
//! together: list their names, each with its doc. Rules identify their instruction by `Self::FEATURE`, the opcode in
//! backticks, and by constants of the type's own.
//!
//! An optional operand that a modifier requires names the condition: `policy: Option<Src> = cache_hint`. One that
//! other operands may follow also gives their number: `Presence::Before(true, 1)`.
//!
//! Modifiers may be in any order in the text, as in `ptxas`. If two fields take the same kind of modifier, the first
//! field takes the first in the text.

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
    /// Sums and differences.
    Sums of arith { Add, Sub, Addc, Subc, Sad }

    /// Products, alone and with a sum.
    Products of arith { Mul, Mul24, Mad, Mad24, Madc, Fma, Clmad, Dp4a, Dp2a }

    /// Quotients, roots and approximated functions.
    Functions of arith { Div, Rem, Rcp, Sqrt, Rsqrt, Sin, Cos, Lg2, Ex2, Tanh }

    /// Signs and classes of numbers.
    Signs of arith { Abs, Neg, Copysign, Testp }

    /// Minimum and maximum.
    Extrema of arith { Min, Max }

    /// Bitwise logic, shifts and bit fields.
    Logic of logic {
        And, Or, Xor, Not, Cnot, Lop3, Shl, Shr, Shf, Bfe, Bfi, Popc, Clz, Brev, Bfind, Fns, Szext, Bmsk, Prmt,
    }

    /// Comparisons and selections.
    Compare of compare { Setp, Set, Selp, Slct }

    /// Conversions between types and between address spaces.
    Convert of convert { Mov, Cvt, CvtRs, CvtScaledOne, CvtScaledTwo, CvtPack, Cvta, Isspacep }

    /// Loads, stores, prefetches and cache policies.
    Memory of memory {
        Ld, Ldu, St, StAsync, StBulk, MultimemLdReduce, MultimemSt, MultimemRed, MultimemStAsync, Prefetch,
        Prefetchu, ApplyPriority, Discard, CreatePolicyFractional, CreatePolicyRange,
        CreatePolicyRangeFabric in Box, CreatePolicyCvt,
    }

    /// Memory that a function allocates while it runs.
    Stack of memory { Alloca, StackSave, StackRestore }

    /// Atomic operations and reductions in memory.
    Atomic of atomic { Atom, AtomCas, Red, RedAsync, MultimemRedAsync }

    /// Control flow: branches, calls, returns.
    Control of control {
        Bra, BrxIdx, Call, Ret, Exit, Trap, Brkpt, Pmevent, PmeventMask, SetmaxnregInc, SetmaxnregDec,
        Griddepcontrol,
    }

    /// Barriers and fences.
    Sync of sync {
        BarSync, BarArrive, BarRed, BarrierSync, BarrierArrive, BarrierRed, BarWarpSync,
        BarrierClusterArrive, BarrierClusterWait, Membar, MembarProxy, Fence, FenceMbarrierInit,
        FenceProxy, FenceProxyAsync, FenceProxyTensormap, Nanosleep,
    }

    /// Exchanges between the lanes of a warp.
    Warp of warp { Shfl, ShflNoSync, Vote, VoteNoSync, ActiveMask, Match, Redux, Elect }

    /// Asynchronous copies: `cp.async` and its groups.
    AsyncCopy of async_copy {
        CpAsync in Box, CpAsyncCommitGroup, CpAsyncWaitGroup, CpAsyncWaitAll, CpAsyncMbarrierArrive,
    }

    /// Matrix products of a warp on registers: `mma` and its loads and stores.
    Matrix of matrix { Mma in Box, MmaSp in Box, MmaSpOrdered in Box, Ldmatrix, Stmatrix, Movmatrix }

    /// Matrix products of a warp with opaque fragments.
    Wmma of wmma { WmmaLoadA, WmmaLoadB, WmmaLoadC, WmmaStoreD, WmmaMma in Box }

    /// Matrix products of a warpgroup on shared memory.
    Wgmma of wgmma {
        WgmmaFence, WgmmaCommitGroup, WgmmaWaitGroup, WgmmaMmaAsync in Box, WgmmaMmaAsyncSp in Box,
    }

    /// Barriers in shared memory.
    Mbarrier of mbarrier {
        MbarrierInit, MbarrierInval, MbarrierArrive, MbarrierArriveDrop, MbarrierExpectTx, MbarrierCompleteTx,
        MbarrierTestWait, MbarrierTryWait in Box, MbarrierPendingCount, MbarrierCheckLayout,
    }

    /// Bulk copies by the tensor memory engine.
    BulkCopy of bulk_copy {
        CpAsyncBulk in Box, CpReduceAsyncBulk in Box, CpAsyncBulkPrefetch, MultimemCpAsyncBulk in Box,
        MultimemCpReduceAsyncBulk, CpAsyncBulkCommitGroup, CpAsyncBulkWaitGroup, CpAsyncBulkTensor in Box,
        CpReduceAsyncBulkTensor in Box, CpAsyncBulkPrefetchTensor in Box, TensormapReplace,
        TensormapCpFenceproxy,
    }

    /// Clusters: addresses of other blocks, cancelled launches.
    Cluster of cluster { Mapa, Getctarank, ClusterlaunchcontrolTryCancel, ClusterlaunchcontrolQueryCancel }

    /// Textures and surfaces.
    Texture of texture { Tex in Box, Tld4 in Box, Suld, Sust, Sured, Txq, Suq, Istypep }

    /// Tensor memory and the fifth generation of tensor cores.
    Tcgen05 of tcgen05 {
        Tcgen05Alloc, Tcgen05Dealloc, Tcgen05RelinquishAllocPermit, Tcgen05Ld, Tcgen05LdRed, Tcgen05St,
        Tcgen05WaitLd, Tcgen05WaitSt, Tcgen05Cp, Tcgen05Shift, Tcgen05Commit, Tcgen05FenceBefore,
        Tcgen05FenceAfter, Tcgen05Mma in Box, Tcgen05MmaWs in Box,
    }

    /// Video instructions.
    Video of video {
        Vadd in Box, Vsub in Box, Vabsdiff in Box, Vmin in Box, Vmax in Box, Vshl in Box, Vshr in Box,
        Vmad in Box, Vset in Box, Vadd2, Vsub2, Vavrg2, Vabsdiff2, Vmin2, Vmax2, Vset2, Vadd4, Vsub4, Vavrg4,
        Vabsdiff4, Vmin4, Vmax4, Vset4,
    }
}
