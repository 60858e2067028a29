//! Modifiers that several families of instructions share, and the special registers.
//!
//! Modifiers of a single family are in the family's file under [`crate::op`].

use crate::op::modifiers;

modifiers! {
    /// Rounding of a floating-point result, or to an integral value.
    pub enum Rounding {
        /// To nearest, ties to even.
        Rn = "rn",
        /// Toward zero.
        Rz = "rz",
        /// Toward minus infinity.
        Rm = "rm",
        /// Toward plus infinity.
        Rp = "rp",
        /// To nearest, ties away from zero.
        Rna = "rna",
        /// Stochastic.
        Rs = "rs",
        /// To the nearest integer, ties to even.
        Rni = "rni",
        /// To an integer, toward zero.
        Rzi = "rzi",
        /// To an integer, toward minus infinity.
        Rmi = "rmi",
        /// To an integer, toward plus infinity.
        Rpi = "rpi",
    }

    /// State space of a memory access or variable.
    pub enum Space {
        /// Constant memory.
        Const = "const",
        /// Global memory.
        Global = "global",
        /// Per-thread memory.
        Local = "local",
        /// Parameters: of the kernel, or of a device function or call.
        Param = "param",
        /// Parameters of the kernel.
        ParamEntry = "param::entry",
        /// Parameters of a device function or call.
        ParamFunc = "param::func",
        /// Shared memory of the block.
        Shared = "shared",
        /// Shared memory of the block, specified explicitly.
        SharedCta = "shared::cta",
        /// Shared memory of any block of the cluster.
        SharedCluster = "shared::cluster",
        /// Global texture memory (deprecated).
        Tex = "tex",
    }

    /// Comparison.
    pub enum Cmp {
        /// Equal.
        Eq = "eq",
        /// Not equal.
        Ne = "ne",
        /// Less.
        Lt = "lt",
        /// Less or equal.
        Le = "le",
        /// Greater.
        Gt = "gt",
        /// Greater or equal.
        Ge = "ge",
        /// Lower (unsigned).
        Lo = "lo",
        /// Lower or same (unsigned).
        Ls = "ls",
        /// Higher (unsigned).
        Hi = "hi",
        /// Higher or same (unsigned).
        Hs = "hs",
        /// Equal, or unordered.
        Equ = "equ",
        /// Not equal, or unordered.
        Neu = "neu",
        /// Less, or unordered.
        Ltu = "ltu",
        /// Less or equal, or unordered.
        Leu = "leu",
        /// Greater, or unordered.
        Gtu = "gtu",
        /// Greater or equal, or unordered.
        Geu = "geu",
        /// Both are numbers.
        Num = "num",
        /// Either is NaN.
        Nan = "nan",
    }

    /// How a predicate source is combined with a comparison or a reduction over threads.
    pub enum BoolOp {
        /// Conjunction.
        And = "and",
        /// Disjunction.
        Or = "or",
        /// Exclusive or.
        Xor = "xor",
    }

    /// The scope of threads that a strong operation is ordered with.
    pub enum Scope {
        /// The block.
        Cta = "cta",
        /// The cluster.
        Cluster = "cluster",
        /// The device.
        Gpu = "gpu",
        /// The system: other devices and the host too.
        Sys = "sys",
    }

    /// Memory ordering of an operation.
    pub enum Semantics {
        /// Weak: no ordering, and not part of synchronisation.
        Weak = "weak",
        /// Volatile: relaxed at system scope.
        Volatile = "volatile",
        /// Relaxed.
        Relaxed = "relaxed",
        /// Acquire.
        Acquire = "acquire",
        /// Release.
        Release = "release",
        /// Acquire and release.
        AcqRel = "acq_rel",
        /// Sequentially consistent (fences).
        SeqCst = "sc",
        /// Memory-mapped input and output: performed exactly as written.
        Mmio = "mmio",
    }

    /// Number of elements of a vector access.
    pub enum VectorWidth {
        /// Two.
        V2 = "v2",
        /// Four.
        V4 = "v4",
        /// Eight.
        V8 = "v8",
    }

    /// Half of a product, or all of it.
    pub enum MulHalf {
        /// The low half.
        Lo = "lo",
        /// The high half.
        Hi = "hi",
        /// The whole product, twice as wide as the factors.
        Wide = "wide",
    }

    /// Layout of a matrix in a matrix instruction.
    pub enum Layout {
        /// Row-major.
        Row = "row",
        /// Column-major.
        Col = "col",
    }

    /// A property of a texture, sampler or surface, in its initial value.
    pub enum OpaqueProperty {
        /// Width in elements.
        Width = "width",
        /// Height in elements.
        Height = "height",
        /// Depth in elements.
        Depth = "depth",
        /// Type of a channel, as the source language numbers it.
        ChannelDataType = "channel_data_type",
        /// Order of the channels, as the source language numbers it.
        ChannelOrder = "channel_order",
        /// Whether coordinates run from 0 to 1.
        NormalizedCoords = "normalized_coords",
        /// Whether coordinates count as not normalised, regardless of the texture.
        ForceUnnormalizedCoords = "force_unnormalized_coords",
        /// Filtering of elements.
        FilterMode = "filter_mode",
        /// Treatment of coordinates out of range in the first dimension.
        AddrMode0 = "addr_mode_0",
        /// Treatment of coordinates out of range in the second dimension.
        AddrMode1 = "addr_mode_1",
        /// Treatment of coordinates out of range in the third dimension.
        AddrMode2 = "addr_mode_2",
        /// Number of layers.
        ArraySize = "array_size",
        /// Number of levels.
        NumMipmapLevels = "num_mipmap_levels",
        /// Number of samples.
        NumSamples = "num_samples",
        /// The memory layout.
        MemoryLayout = "memory_layout",
    }

    /// A word that is the value of a property of a texture, sampler or surface.
    pub enum OpaqueWord {
        /// Coordinates out of range wrap around.
        Wrap = "wrap",
        /// Coordinates out of range are mirrored.
        Mirror = "mirror",
        /// Coordinates out of range are clamped like OpenGL's.
        ClampOgl = "clamp_ogl",
        /// Coordinates out of range mean the edge.
        ClampToEdge = "clamp_to_edge",
        /// Coordinates out of range mean the border.
        ClampToBorder = "clamp_to_border",
        /// The nearest element.
        Nearest = "nearest",
        /// Linear interpolation.
        Linear = "linear",
    }

    /// Component of a vector special register.
    pub enum Component {
        /// First.
        X = "x",
        /// Second.
        Y = "y",
        /// Third.
        Z = "z",
        /// Fourth; reads as zero.
        W = "w",
    }
}

impl VectorWidth {
    /// The number of elements.
    pub const fn elements(self) -> usize {
        match self {
            VectorWidth::V2 => 2,
            VectorWidth::V4 => 4,
            VectorWidth::V8 => 8,
        }
    }
}

impl Space {
    /// The space without its `::` qualifier.
    pub const fn base(self) -> Space {
        match self {
            Space::ParamEntry | Space::ParamFunc => Space::Param,
            Space::SharedCta | Space::SharedCluster => Space::Shared,
            other => other,
        }
    }
}

/// One row per special register: name, type, whether it has components, first PTX version, first architecture, and
/// uniformity level.
macro_rules! special_registers {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $ty:ident, $vector:literal, ($major:literal, $minor:literal), $sm:literal, $level:ident;)*) => {
        /// A special register. Its text includes the `%`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum SpecialRegister { $($(#[$doc])* $variant),* }

        impl SpecialRegister {
            /// Every one.
            pub const ALL: &'static [SpecialRegister] = &[$(SpecialRegister::$variant),*];

            /// The name with its `%`.
            pub const fn name(self) -> &'static str {
                match self { $(SpecialRegister::$variant => $name),* }
            }

            /// Type of the register, or of each component.
            pub const fn ty(self) -> super::Type {
                match self { $(SpecialRegister::$variant => super::Type::$ty),* }
            }

            /// Whether it has components `.x`, `.y`, `.z` (and `.w`, which is zero).
            pub const fn is_vector(self) -> bool {
                match self { $(SpecialRegister::$variant => $vector),* }
            }

            /// First PTX version and first architecture that have it.
            pub const fn introduced(self) -> ((u8, u8), u16) {
                match self { $(SpecialRegister::$variant => (($major, $minor), $sm)),* }
            }

            /// Its uniformity level. For an index, this assumes that the block's dimension is not one.
            pub const fn level(self) -> crate::op::Level {
                match self { $(SpecialRegister::$variant => crate::op::Level::$level),* }
            }

            /// The register of that name (with its `%`).
            pub fn from_name(name: &str) -> Option<Self> {
                let hash = crate::op::word_hash(name);
                let found = $(if hash == const { crate::op::word_hash($name) } { SpecialRegister::$variant } else)*
                { return None };
                (found.name() == name).then_some(found)
            }
        }
    };
}

special_registers! {
    /// Thread index in the block.
    Tid = "%tid", U32, true, (1, 0), 10, Lane;
    /// Block dimensions, in threads.
    Ntid = "%ntid", U32, true, (1, 0), 10, Grid;
    /// Lane in the warp, 0 to 31.
    LaneId = "%laneid", U32, false, (1, 3), 10, Lane;
    /// Warp slot; volatile.
    WarpId = "%warpid", U32, false, (1, 3), 10, Warp;
    /// Maximum number of warp slots.
    NWarpId = "%nwarpid", U32, false, (2, 0), 20, Grid;
    /// Block index in the grid.
    CtaId = "%ctaid", U32, true, (1, 0), 10, Block;
    /// Grid dimensions, in blocks.
    NCtaId = "%nctaid", U32, true, (1, 0), 10, Grid;
    /// Multiprocessor; volatile.
    SmId = "%smid", U32, false, (1, 3), 10, Block;
    /// Maximum number of multiprocessor identifiers.
    NSmId = "%nsmid", U32, false, (2, 0), 20, Grid;
    /// Grid identifier.
    GridId = "%gridid", U64, false, (3, 0), 10, Grid;
    /// Whether the launch specified a cluster.
    IsExplicitCluster = "%is_explicit_cluster", Pred, false, (7, 8), 90, Grid;
    /// Cluster index in the grid.
    ClusterId = "%clusterid", U32, true, (7, 8), 90, Cluster;
    /// Grid dimensions, in clusters.
    NClusterId = "%nclusterid", U32, true, (7, 8), 90, Grid;
    /// Block index in the cluster.
    ClusterCtaId = "%cluster_ctaid", U32, true, (7, 8), 90, Block;
    /// Cluster dimensions, in blocks.
    ClusterNCtaId = "%cluster_nctaid", U32, true, (7, 8), 90, Grid;
    /// Block rank in the cluster.
    ClusterCtaRank = "%cluster_ctarank", U32, false, (7, 8), 90, Block;
    /// Number of blocks in the cluster.
    ClusterNCtaRank = "%cluster_nctarank", U32, false, (7, 8), 90, Grid;
    /// Mask with the bit of this lane.
    LaneMaskEq = "%lanemask_eq", U32, false, (2, 0), 20, Lane;
    /// Mask of the lanes up to this one.
    LaneMaskLe = "%lanemask_le", U32, false, (2, 0), 20, Lane;
    /// Mask of the lanes below this one.
    LaneMaskLt = "%lanemask_lt", U32, false, (2, 0), 20, Lane;
    /// Mask of the lanes from this one on.
    LaneMaskGe = "%lanemask_ge", U32, false, (2, 0), 20, Lane;
    /// Mask of the lanes above this one.
    LaneMaskGt = "%lanemask_gt", U32, false, (2, 0), 20, Lane;
    /// Cycle counter, low 32 bits.
    Clock = "%clock", U32, false, (1, 0), 10, Unknown;
    /// Cycle counter, high 32 bits.
    ClockHi = "%clock_hi", U32, false, (5, 0), 20, Unknown;
    /// Cycle counter.
    Clock64 = "%clock64", U64, false, (2, 0), 20, Unknown;
    /// Nanosecond counter.
    GlobalTimer = "%globaltimer", U64, false, (3, 1), 30, Unknown;
    /// Nanosecond counter, low 32 bits.
    GlobalTimerLo = "%globaltimer_lo", U32, false, (3, 1), 30, Unknown;
    /// Nanosecond counter, high 32 bits.
    GlobalTimerHi = "%globaltimer_hi", U32, false, (3, 1), 30, Unknown;
    /// Size of all shared memory of the block.
    TotalSmemSize = "%total_smem_size", U32, false, (4, 1), 20, Grid;
    /// Size of shared memory, reserved part included.
    AggrSmemSize = "%aggr_smem_size", U32, false, (8, 1), 90, Grid;
    /// Size of the dynamic shared memory.
    DynamicSmemSize = "%dynamic_smem_size", U32, false, (4, 1), 20, Grid;
    /// Start of the reserved shared memory.
    ReservedSmemOffsetBegin = "%reserved_smem_offset_begin", B32, false, (7, 6), 80, Grid;
    /// End of the reserved shared memory.
    ReservedSmemOffsetEnd = "%reserved_smem_offset_end", B32, false, (7, 6), 80, Grid;
    /// Size of the reserved shared memory.
    ReservedSmemOffsetCap = "%reserved_smem_offset_cap", B32, false, (7, 6), 80, Grid;
    /// Reserved shared memory offset 0.
    ReservedSmemOffset0 = "%reserved_smem_offset_0", B32, false, (7, 6), 80, Grid;
    /// Reserved shared memory offset 1.
    ReservedSmemOffset1 = "%reserved_smem_offset_1", B32, false, (7, 6), 80, Grid;
    /// Executable graph that is running, or 0.
    CurrentGraphExec = "%current_graph_exec", U64, false, (8, 0), 50, Grid;
    /// Performance counter 0.
    Pm0 = "%pm0", U32, false, (1, 3), 10, Unknown;
    /// Performance counter 1.
    Pm1 = "%pm1", U32, false, (1, 3), 10, Unknown;
    /// Performance counter 2.
    Pm2 = "%pm2", U32, false, (1, 3), 10, Unknown;
    /// Performance counter 3.
    Pm3 = "%pm3", U32, false, (1, 3), 10, Unknown;
    /// Performance counter 4.
    Pm4 = "%pm4", U32, false, (3, 0), 20, Unknown;
    /// Performance counter 5.
    Pm5 = "%pm5", U32, false, (3, 0), 20, Unknown;
    /// Performance counter 6.
    Pm6 = "%pm6", U32, false, (3, 0), 20, Unknown;
    /// Performance counter 7.
    Pm7 = "%pm7", U32, false, (3, 0), 20, Unknown;
    /// Performance counter 0, 64 bits.
    Pm0Wide = "%pm0_64", U64, false, (4, 0), 50, Unknown;
    /// Performance counter 1, 64 bits.
    Pm1Wide = "%pm1_64", U64, false, (4, 0), 50, Unknown;
    /// Performance counter 2, 64 bits.
    Pm2Wide = "%pm2_64", U64, false, (4, 0), 50, Unknown;
    /// Performance counter 3, 64 bits.
    Pm3Wide = "%pm3_64", U64, false, (4, 0), 50, Unknown;
    /// Performance counter 4, 64 bits.
    Pm4Wide = "%pm4_64", U64, false, (4, 0), 50, Unknown;
    /// Performance counter 5, 64 bits.
    Pm5Wide = "%pm5_64", U64, false, (4, 0), 50, Unknown;
    /// Performance counter 6, 64 bits.
    Pm6Wide = "%pm6_64", U64, false, (4, 0), 50, Unknown;
    /// Performance counter 7, 64 bits.
    Pm7Wide = "%pm7_64", U64, false, (4, 0), 50, Unknown;
    /// Driver-defined value 0.
    EnvReg0 = "%envreg0", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 1.
    EnvReg1 = "%envreg1", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 2.
    EnvReg2 = "%envreg2", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 3.
    EnvReg3 = "%envreg3", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 4.
    EnvReg4 = "%envreg4", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 5.
    EnvReg5 = "%envreg5", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 6.
    EnvReg6 = "%envreg6", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 7.
    EnvReg7 = "%envreg7", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 8.
    EnvReg8 = "%envreg8", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 9.
    EnvReg9 = "%envreg9", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 10.
    EnvReg10 = "%envreg10", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 11.
    EnvReg11 = "%envreg11", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 12.
    EnvReg12 = "%envreg12", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 13.
    EnvReg13 = "%envreg13", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 14.
    EnvReg14 = "%envreg14", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 15.
    EnvReg15 = "%envreg15", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 16.
    EnvReg16 = "%envreg16", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 17.
    EnvReg17 = "%envreg17", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 18.
    EnvReg18 = "%envreg18", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 19.
    EnvReg19 = "%envreg19", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 20.
    EnvReg20 = "%envreg20", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 21.
    EnvReg21 = "%envreg21", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 22.
    EnvReg22 = "%envreg22", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 23.
    EnvReg23 = "%envreg23", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 24.
    EnvReg24 = "%envreg24", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 25.
    EnvReg25 = "%envreg25", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 26.
    EnvReg26 = "%envreg26", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 27.
    EnvReg27 = "%envreg27", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 28.
    EnvReg28 = "%envreg28", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 29.
    EnvReg29 = "%envreg29", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 30.
    EnvReg30 = "%envreg30", B32, false, (2, 1), 10, Grid;
    /// Driver-defined value 31.
    EnvReg31 = "%envreg31", B32, false, (2, 1), 10, Grid;
}
