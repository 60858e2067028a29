//! Special registers: the position of a thread, its block and its grid.

use super::K;
use super::reg::Reg;
use super::state::Loc;
use super::types::*;
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{Component, Imm, Special, SpecialRegister, Src};

macro_rules! specials {
    ($($(#[$doc:meta])* $name:ident: $ty:ty = $register:ident $($component:ident)?;)*) => {
        impl<'k> K<'k> {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(self) -> Reg<'k, $ty> {
                let component = None$(.or(Some(Component::$component)))?;
                let special = Special { register: SpecialRegister::$register, component };
                let id = self.state().special(special, <$ty as Element>::TYPE, Location::caller());
                Reg::new(self, id)
            })*
        }
    };
}

specials! {
    /// Thread in the block, x.
    tid: u32 = Tid X;
    /// Thread in the block, y.
    tid_y: u32 = Tid Y;
    /// Thread in the block, z.
    tid_z: u32 = Tid Z;
    /// Block in the grid, x.
    ctaid: u32 = CtaId X;
    /// Block in the grid, y.
    ctaid_y: u32 = CtaId Y;
    /// Block in the grid, z.
    ctaid_z: u32 = CtaId Z;
    /// Blocks of the grid, x.
    nctaid: u32 = NCtaId X;
    /// Blocks of the grid, y.
    nctaid_y: u32 = NCtaId Y;
    /// Blocks of the grid, z.
    nctaid_z: u32 = NCtaId Z;
    /// Lane in the warp, 0 to 31.
    lane: u32 = LaneId;
    /// Identifier of the grid.
    grid_id: u64 = GridId;
    /// The bit of this lane.
    lane_mask_eq: u32 = LaneMaskEq;
    /// The bits of the lanes below this one.
    lane_mask_lt: u32 = LaneMaskLt;
    /// The bits of the lanes up to this one.
    lane_mask_le: u32 = LaneMaskLe;
    /// The bits of the lanes above this one.
    lane_mask_gt: u32 = LaneMaskGt;
    /// The bits of the lanes from this one on.
    lane_mask_ge: u32 = LaneMaskGe;
    /// Size of the dynamic shared memory, in bytes.
    dynamic_smem_size: u32 = DynamicSmemSize;
    /// Size of all shared memory of the block, in bytes.
    total_smem_size: u32 = TotalSmemSize;
    /// Cluster in the grid, x.
    clusterid: u32 = ClusterId X;
    /// Clusters of the grid, x.
    nclusterid: u32 = NClusterId X;
    /// Cluster in the grid, y.
    clusterid_y: u32 = ClusterId Y;
    /// Cluster in the grid, z.
    clusterid_z: u32 = ClusterId Z;
    /// Clusters of the grid, y.
    nclusterid_y: u32 = NClusterId Y;
    /// Clusters of the grid, z.
    nclusterid_z: u32 = NClusterId Z;
    /// Block in the cluster, x.
    cluster_ctaid: u32 = ClusterCtaId X;
    /// Block in the cluster, y.
    cluster_ctaid_y: u32 = ClusterCtaId Y;
    /// Block in the cluster, z.
    cluster_ctaid_z: u32 = ClusterCtaId Z;
    /// Blocks of the cluster, x.
    cluster_nctaid: u32 = ClusterNCtaId X;
    /// Blocks of the cluster, y.
    cluster_nctaid_y: u32 = ClusterNCtaId Y;
    /// Blocks of the cluster, z.
    cluster_nctaid_z: u32 = ClusterNCtaId Z;
    /// Whether the launch specified a cluster.
    is_explicit_cluster: Pred = IsExplicitCluster;
    /// Size of the shared memory of the block, the reserved part included, in bytes.
    aggregate_smem_size: u32 = AggrSmemSize;
    /// The executable graph that is running, or 0.
    graph_exec: u64 = CurrentGraphExec;
    /// Offset at which the reserved shared memory begins.
    reserved_smem_begin: u32 = ReservedSmemOffsetBegin;
    /// Offset at which the reserved shared memory ends.
    reserved_smem_end: u32 = ReservedSmemOffsetEnd;
    /// Size of the reserved shared memory, in bytes.
    reserved_smem_size: u32 = ReservedSmemOffsetCap;
    /// First offset into the reserved shared memory.
    reserved_smem_offset_0: u32 = ReservedSmemOffset0;
    /// Second offset into the reserved shared memory.
    reserved_smem_offset_1: u32 = ReservedSmemOffset1;
    /// Rank of the block in the cluster.
    cluster_rank: u32 = ClusterCtaRank;
    /// Number of blocks of the cluster.
    cluster_size: u32 = ClusterNCtaRank;
}

macro_rules! volatile_specials {
    ($($(#[$doc:meta])* $name:ident: $ty:ty = $register:ident;)*) => {
        impl<'k> K<'k> {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(self) -> Reg<'k, $ty> {
                self.read_here(SpecialRegister::$register, Location::caller())
            })*
        }
    };
}

volatile_specials! {
    /// The warp's slot on its multiprocessor; may change while the thread runs.
    warp_slot: u32 = WarpId;
    /// Number of warp slots of a multiprocessor.
    warp_slots: u32 = NWarpId;
    /// The multiprocessor; may change while the thread runs.
    smid: u32 = SmId;
    /// Number of multiprocessors; identifiers may have gaps.
    nsmid: u32 = NSmId;
    /// Cycle counter, read here.
    clock: u32 = Clock;
    /// Cycle counter, read here.
    clock64: u64 = Clock64;
    /// Upper half of the cycle counter, read here.
    clock_high: u32 = ClockHi;
    /// Lower half of the nanoseconds, read here.
    global_timer_low: u32 = GlobalTimerLo;
    /// Upper half of the nanoseconds, read here.
    global_timer_high: u32 = GlobalTimerHi;
    /// Nanoseconds, read here.
    global_timer: u64 = GlobalTimer;
}

impl<'k> K<'k> {
    /// Performance counter 0 to 7, read here.
    #[track_caller]
    pub fn perf_counter(self, number: u32) -> Reg<'k, u32> {
        self.numbered(&format!("%pm{number}"), "performance counters are numbered 0 to 7")
    }

    /// Performance counter 0 to 7 with 64 bits, read here.
    #[track_caller]
    pub fn perf_counter64(self, number: u32) -> Reg<'k, u64> {
        self.numbered(&format!("%pm{number}_64"), "performance counters are numbered 0 to 7")
    }

    /// Value 0 to 31 that the driver defines.
    #[track_caller]
    pub fn env(self, number: u32) -> Reg<'k, u32> {
        self.numbered(&format!("%envreg{number}"), "the driver's values are numbered 0 to 31")
    }

    #[track_caller]
    fn numbered<T: Element>(self, name: &str, rule: &str) -> Reg<'k, T> {
        let loc = Location::caller();
        let Some(register) = SpecialRegister::from_name(name) else {
            let message = format!("there is no `{name}`: {rule}");
            return Reg::new(self, self.state().mistake(Code::SpecialRegister, loc, message));
        };
        self.read_here(register, loc)
    }

    /// What the register holds at this point of the body.
    fn read_here<T: Element>(self, register: SpecialRegister, loc: Loc) -> Reg<'k, T> {
        let special = Src::Special(Special { register, component: None });
        self.written(loc, |d| super::emit::mov(register.ty(), d, special))
    }

    #[track_caller]
    fn block_dim(self, axis: usize) -> Reg<'k, u32> {
        let loc = Location::caller();
        let mut state = self.state();
        let id = match state.threads {
            Some(dims) => state.constant(u32::TYPE, Imm::Int(dims[axis].into())),
            None => {
                let component = Some([Component::X, Component::Y, Component::Z][axis]);
                state.special(Special { register: SpecialRegister::Ntid, component }, u32::TYPE, loc)
            }
        };
        drop(state);
        Reg::new(self, id)
    }

    /// Threads of the block, x: a constant where the launch rule fixes the block.
    #[track_caller]
    pub fn ntid(self) -> Reg<'k, u32> {
        self.block_dim(0)
    }

    /// Threads of the block, y.
    #[track_caller]
    pub fn ntid_y(self) -> Reg<'k, u32> {
        self.block_dim(1)
    }

    /// Threads of the block, z.
    #[track_caller]
    pub fn ntid_z(self) -> Reg<'k, u32> {
        self.block_dim(2)
    }

    /// The dimensions of the block, where the launch rule fixes them.
    pub fn block_dims(self) -> Option<[u32; 3]> {
        self.state().threads
    }

    /// Number of threads of the block, which the launch rule must fix; in a [called](super::Call) body, of the team
    /// that runs it. If no rule fixes it, it is a mistake.
    #[track_caller]
    pub fn threads(self) -> u32 {
        match self.block_dims() {
            Some(dims) => dims.iter().product(),
            None => {
                let message = "the number of threads is known where the launch rule fixes the block";
                self.state().mistake(Code::ModifierCombination, Location::caller(), message);
                32
            }
        }
    }

    /// The thread's number in the block, over all dimensions.
    #[track_caller]
    pub fn linear_tid(self) -> Reg<'k, u32> {
        match self.block_dims() {
            Some([_, 1, 1]) => self.tid(),
            _ => self.tid() + self.ntid() * (self.tid_y() + self.ntid_y() * self.tid_z()),
        }
    }

    /// The thread's number in a one-dimensional grid.
    #[track_caller]
    pub fn global_tid(self) -> Reg<'k, u32> {
        self.ctaid() * self.ntid() + self.tid()
    }

    /// The warp's number in the block.
    #[track_caller]
    pub fn warp(self) -> Reg<'k, u32> {
        match self.framed_warp() {
            Some(warp) => warp,
            None => self.linear_tid() >> 5,
        }
    }
}
