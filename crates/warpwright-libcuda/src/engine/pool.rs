//! Pools of stream-ordered memory.
//!
//! A pool caches nothing: freed memory returns to the device, so that its addresses become invalid and its bounds are
//! checked to the byte. Reserved memory therefore equals used memory.

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
    /// The maximum number of bytes; 0 for the device's memory.
    max: u64,
    pub(crate) usage: Usage,
    /// Attributes of the client about caching and sharing, which it may read again.
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
                usage: Usage::default(),
                release_threshold: AtomicU64::new(0),
                reuse: [true; 3].map(AtomicBool::new),
            })
        };
        Ok(POOLS.insert_with(make)?.1)
    }

    /// Whether it has room for that many more bytes.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.max == 0 || self.usage.used().saturating_add(bytes) <= self.max
    }
}

/// How much memory a pool or the graphs of a device have. Nothing is cached, so reserved memory equals used memory.
#[derive(Default)]
pub(crate) struct Usage {
    used: AtomicU64,
    used_high: AtomicU64,
    reserved_high: AtomicU64,
}

impl Usage {
    /// Bytes that are allocated.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// The maximum of allocated bytes since it was reset, and the maximum of reserved bytes.
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

/// The pools of a device that exist by default.
#[derive(Default)]
pub(crate) struct Pools {
    default: Mutex<Option<Arc<Pool>>>,
    current: Mutex<Option<Arc<Pool>>>,
}

impl Pools {
    /// The default pool.
    pub(crate) fn own(&self, device: CUdevice) -> Result<Arc<Pool>> {
        let mut slot = lock(&self.default);
        if let Some(pool) = &*slot {
            return Ok(pool.clone());
        }
        Ok(slot.insert(Pool::create(device, 0)?).clone())
    }

    /// Whether a pool is the default pool.
    pub(crate) fn is_own(&self, pool: &Pool) -> bool {
        let slot = lock(&self.default);
        slot.as_ref().is_some_and(|own| own.handle == pool.handle)
    }

    /// The current pool.
    pub(crate) fn current(&self, device: CUdevice) -> Result<Arc<Pool>> {
        let current = lock(&self.current).clone();
        current.map_or_else(|| self.own(device), Ok)
    }

    /// Sets the current pool.
    pub(crate) fn set_current(&self, pool: Option<Arc<Pool>>) {
        *lock(&self.current) = pool;
    }
}
