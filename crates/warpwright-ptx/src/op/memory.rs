//! Loads, stores, prefetches and address queries.

use super::{Rule, instruction, modifiers};
use crate::ir::*;
use crate::verify::Check;

modifiers! {
    /// Where a load is cached.
    pub enum LoadCache {
        /// At all levels.
        Ca = "ca",
        /// At the global level (L2) only.
        Cg = "cg",
        /// Streaming: likely used once.
        Cs = "cs",
        /// Last use.
        Lu = "lu",
        /// Not at all: fetch again.
        Cv = "cv",
    }

    /// Where a store is cached.
    pub enum StoreCache {
        /// Write back, at all levels.
        Wb = "wb",
        /// At the global level (L2) only.
        Cg = "cg",
        /// Streaming: likely used once.
        Cs = "cs",
        /// Through to system memory.
        Wt = "wt",
    }

    /// Priority in the L1 cache.
    pub enum L1Eviction {
        /// Normal.
        Normal = "L1::evict_normal",
        /// Not changed.
        Unchanged = "L1::evict_unchanged",
        /// First to go.
        First = "L1::evict_first",
        /// Last to go.
        Last = "L1::evict_last",
        /// Not kept.
        NoAllocate = "L1::no_allocate",
    }

    /// Priority in the L2 cache.
    pub enum L2Eviction {
        /// Normal.
        Normal = "L2::evict_normal",
        /// First to go.
        First = "L2::evict_first",
        /// Last to go.
        Last = "L2::evict_last",
    }

    /// How much a load brings into L2.
    pub enum PrefetchSize {
        /// 64 bytes.
        B64 = "L2::64B",
        /// 128 bytes.
        B128 = "L2::128B",
        /// 256 bytes.
        B256 = "L2::256B",
    }
}

instruction! {
    /// Loads from memory.
    pub struct Ld("ld") {
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        cache: Option<LoadCache>,
        nc: bool = "nc",
        l1_eviction: Option<L1Eviction>,
        l2_eviction: Option<L2Eviction>,
        cache_hint: bool = "L2::cache_hint",
        prefetch: Option<PrefetchSize>,
        vector: Option<VectorWidth>,
        ty: Type,
    }(d: Dsts, address: Address, policy: Option<Src>)

    /// Stores to memory.
    pub struct St("st") {
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        cache: Option<StoreCache>,
        l1_eviction: Option<L1Eviction>,
        l2_eviction: Option<L2Eviction>,
        cache_hint: bool = "L2::cache_hint",
        vector: Option<VectorWidth>,
        ty: Type,
    }(address: Address, a: Srcs, policy: Option<Src>)
}

impl Rule for Ld {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for St {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}
