//! Pools of stream-ordered memory.
//!
//! A pool keeps nothing: what is given back is the device's again, so that its addresses stay unknown and its bounds
//! are checked to the byte. So what is reserved is what is used.

use crate::lock;
use crate::state::{Handles, Kind};
use crate::types::{CUdevice, CUmemoryPool, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// All pools.
pub(crate) static POOLS: Handles<Pool> = Handles::new(Kind::Pool);

/// A pool.
pub(crate) struct Pool {
    pub(crate) handle: CUmemoryPool,
    pub(crate) device: CUdevice,
    /// Most bytes at once; 0 for what the device has.
    max: u64,
    used: AtomicU64,
    used_high: AtomicU64,
    reserved_high: AtomicU64,
    /// Wishes of the client's about what is kept and shared, which it reads again.
    pub(crate) release_threshold: AtomicU64,
    pub(crate) reuse: [AtomicBool; 3],
}

impl Pool {
    /// A pool of a device with its handle.
    pub(crate) fn create(device: CUdevice, max: u64) -> Result<Arc<Pool>> {
        let make = |handle| {
            Arc::new(Pool {
                handle: CUmemoryPool(handle),
                device,
                max,
                used: AtomicU64::new(0),
                used_high: AtomicU64::new(0),
                reserved_high: AtomicU64::new(0),
                release_threshold: AtomicU64::new(0),
                reuse: [true; 3].map(AtomicBool::new),
            })
        };
        Ok(POOLS.insert_with(make)?.1)
    }

    /// Whether it has room for so many bytes more.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.max == 0 || self.used().saturating_add(bytes) <= self.max
    }

    /// Bytes that are allocated.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// Most bytes that were allocated at once since it was set back, and most that were reserved.
    pub(crate) fn high(&self) -> [&AtomicU64; 2] {
        [&self.used_high, &self.reserved_high]
    }

    pub(super) fn take(&self, bytes: u64) {
        let used = self.used.fetch_add(bytes, Relaxed) + bytes;
        for high in self.high() {
            high.fetch_max(used, Relaxed);
        }
    }

    pub(super) fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Relaxed);
    }
}

/// The pools of a device that clients find without making them.
#[derive(Default)]
pub(crate) struct Pools {
    default: Mutex<Option<Arc<Pool>>>,
    current: Mutex<Option<Arc<Pool>>>,
}

impl Pools {
    /// The one that the device has by itself.
    pub(crate) fn own(&self, device: CUdevice) -> Result<Arc<Pool>> {
        let mut slot = lock(&self.default);
        if let Some(pool) = &*slot {
            return Ok(pool.clone());
        }
        Ok(slot.insert(Pool::create(device, 0)?).clone())
    }

    /// Whether a pool is the one that the device has by itself.
    pub(crate) fn is_own(&self, pool: &Pool) -> bool {
        let slot = lock(&self.default);
        slot.as_ref().is_some_and(|own| own.handle == pool.handle)
    }

    /// The one that allocations come from.
    pub(crate) fn current(&self, device: CUdevice) -> Result<Arc<Pool>> {
        let current = lock(&self.current).clone();
        current.map_or_else(|| self.own(device), Ok)
    }

    /// From now on allocations come from that one.
    pub(crate) fn set_current(&self, pool: Option<Arc<Pool>>) {
        *lock(&self.current) = pool;
    }
}
