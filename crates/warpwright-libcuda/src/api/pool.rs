//! Stream-ordered memory and its pools.

use super::entries;
use super::memory::allocate_from;
use crate::engine::{BlockKind, POOLS, Pool, Stream, owner, permitted};
use crate::graph::capture;
use crate::report::log;
use crate::state::state;
use crate::types::{
    CUdevice, CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemLocation, CUmemLocationType,
    CUmemPool_attribute, CUmemPoolProps, CUmemoryPool, CUstream, In, Out, Result, Status,
};
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use warpwright_device::Op;

fn pool(handle: CUmemoryPool) -> Result<Arc<Pool>> {
    state()?;
    POOLS.get(handle.0).map_err(|_| Status::INVALID_VALUE)
}

fn allocate(
    address: Out<CUdeviceptr>,
    bytes: usize,
    pool: Option<CUmemoryPool>,
    stream: CUstream,
) -> Result<()> {
    let stream = Stream::get(stream)?;
    let pool = match pool {
        Some(handle) => self::pool(handle)?,
        None => stream.engine.pools.current(stream.engine.ordinal)?,
    };
    // A pool may be of another device than the stream.
    let engine = state()?.device(pool.device)?.engine()?;
    let address = address.required()?;
    let bytes = bytes as u64;
    if stream.is_capturing() {
        return address.set(capture::alloc(&stream, engine, bytes)?);
    }
    let kind = || match pool.has_room(bytes) {
        true => Ok(BlockKind::Pooled(pool.clone())),
        false => Err(Status::OUT_OF_MEMORY),
    };
    address.set(allocate_from(engine, &stream.context, bytes, kind)?)
}

fn free(address: CUdeviceptr, stream: CUstream) -> Result<()> {
    let stream = Stream::get(stream)?;
    if stream.is_capturing() {
        return capture::free(&stream, address);
    }
    stream.submit(Op::Release(owner(address)?.memory.take(address)?))
}

/// The device of a pool, by its location.
pub(super) fn device_of_pool(location: CUmemLocation) -> Result<CUdevice> {
    if location.kind == CUmemLocationType::HOST_NUMA {
        log::misuse(&"pools of the host's memory are not supported");
        return Err(Status::NOT_SUPPORTED);
    }
    device(location)
}

/// The device of a location.
fn device(location: CUmemLocation) -> Result<CUdevice> {
    if location.kind != CUmemLocationType::DEVICE {
        return Err(Status::INVALID_VALUE);
    }
    Ok(state()?.device(location.id)?.ordinal)
}

fn create(properties: &CUmemPoolProps) -> Result<Arc<Pool>> {
    const PINNED: u32 = 1;
    let device = device_of_pool(properties.location)?;
    if properties.allocation_type != PINNED {
        return Err(Status::INVALID_VALUE);
    }
    if properties.handle_types != 0 {
        log::misuse(&"pools that are shared between processes are not supported");
        return Err(Status::NOT_SUPPORTED);
    }
    Pool::create(device, properties.max_size as u64)
}

/// Which of the reuse policies an attribute is.
fn reuse(attribute: CUmemPool_attribute) -> Option<usize> {
    match attribute {
        CUmemPool_attribute::REUSE_FOLLOW_EVENT_DEPENDENCIES => Some(0),
        CUmemPool_attribute::REUSE_ALLOW_OPPORTUNISTIC => Some(1),
        CUmemPool_attribute::REUSE_ALLOW_INTERNAL_DEPENDENCIES => Some(2),
        _ => None,
    }
}

fn get(pool: &Pool, attribute: CUmemPool_attribute, value: Out<c_void>) -> Result<()> {
    value.required()?;
    if let Some(wish) = reuse(attribute) {
        // SAFETY: the interface says that the value of these attributes is an `int`.
        return unsafe { value.cast::<c_int>() }.set(pool.reuse[wish].load(Relaxed).into());
    }
    let [used_high, reserved_high] = pool.usage.high();
    let number = match attribute {
        CUmemPool_attribute::RELEASE_THRESHOLD => pool.release_threshold.load(Relaxed),
        CUmemPool_attribute::RESERVED_MEM_CURRENT | CUmemPool_attribute::USED_MEM_CURRENT => {
            pool.usage.used()
        }
        CUmemPool_attribute::RESERVED_MEM_HIGH => reserved_high.load(Relaxed),
        CUmemPool_attribute::USED_MEM_HIGH => used_high.load(Relaxed),
        _ => return Err(Status::INVALID_VALUE),
    };
    // SAFETY: the interface says that the value of these attributes is a `cuuint64_t`.
    unsafe { value.cast::<u64>() }.set(number)
}

fn set(pool: &Pool, attribute: CUmemPool_attribute, value: In<c_void>) -> Result<()> {
    if let Some(wish) = reuse(attribute) {
        // SAFETY: as in `get`.
        let value = unsafe { value.cast::<c_int>() }.get()?;
        pool.reuse[wish].store(value != 0, Relaxed);
        return Ok(());
    }
    let [used_high, reserved_high] = pool.usage.high();
    let high = match attribute {
        CUmemPool_attribute::RELEASE_THRESHOLD => None,
        CUmemPool_attribute::RESERVED_MEM_HIGH => Some(reserved_high),
        CUmemPool_attribute::USED_MEM_HIGH => Some(used_high),
        _ => return Err(Status::INVALID_VALUE),
    };
    // SAFETY: as in `get`.
    let value = unsafe { value.cast::<u64>() }.get()?;
    match high {
        None => pool.release_threshold.store(value, Relaxed),
        // It can be set back, and to nothing else.
        Some(high) if value == 0 => high.store(pool.usage.used(), Relaxed),
        Some(_) => return Err(Status::INVALID_VALUE),
    }
    Ok(())
}

entries! {
    /// Allocates in the order of a stream, from the device's current pool.
    fn cuMemAllocAsync, cuMemAllocAsync_ptsz |default| (address: Out<CUdeviceptr>, bytes: usize, stream: CUstream) {
        allocate(address, bytes, None, default.resolve(stream))
    }

    /// Allocates in the order of a stream.
    fn cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz |default| (
        address: Out<CUdeviceptr>, bytes: usize, pool: CUmemoryPool, stream: CUstream,
    ) {
        allocate(address, bytes, Some(pool), default.resolve(stream))
    }

    /// Frees memory in the order of a stream.
    fn cuMemFreeAsync, cuMemFreeAsync_ptsz |default| (address: CUdeviceptr, stream: CUstream) {
        free(address, default.resolve(stream))
    }

    /// Creates a pool.
    fn cuMemPoolCreate(handle: Out<CUmemoryPool>, properties: In<CUmemPoolProps>) {
        state()?;
        let handle = handle.required()?;
        handle.set(create(&properties.get()?)?.handle)
    }

    /// Destroys a created pool. Its allocations remain.
    fn cuMemPoolDestroy(handle: CUmemoryPool) {
        permitted()?;
        let pool = pool(handle)?;
        let device = state()?.device(pool.device)?.engine()?;
        if Arc::ptr_eq(&device.pools.own(pool.device)?, &pool) {
            return Err(Status::INVALID_VALUE);
        }
        if Arc::ptr_eq(&device.pools.current(pool.device)?, &pool) {
            device.pools.set_current(None);
        }
        POOLS.remove(handle.0).map(drop).map_err(|_| Status::INVALID_VALUE)
    }

    /// Trims a pool, which has no effect: it keeps nothing.
    fn cuMemPoolTrimTo(handle: CUmemoryPool, _kept: usize) {
        pool(handle).map(drop)
    }

    /// Returns an attribute of a pool: an `int` for reuse policies, else 64 bits.
    fn cuMemPoolGetAttribute(handle: CUmemoryPool, attribute: CUmemPool_attribute, value: Out<c_void>) {
        get(&*pool(handle)?, attribute, value)
    }

    /// Sets an attribute of a pool.
    fn cuMemPoolSetAttribute(handle: CUmemoryPool, attribute: CUmemPool_attribute, value: In<c_void>) {
        set(&*pool(handle)?, attribute, value)
    }

    /// Sets which devices can access memory of a pool: always its own, and no other.
    fn cuMemPoolSetAccess(handle: CUmemoryPool, access: In<CUmemAccessDesc>, count: usize) {
        let pool = pool(handle)?;
        for access in access.get_all(count)? {
            let own = device(access.location)? == pool.device;
            match access.flags {
                CUmemAccess_flags::READWRITE if own => {}
                CUmemAccess_flags::READWRITE | CUmemAccess_flags::READ => return Err(Status::INVALID_DEVICE),
                CUmemAccess_flags::NONE if !own => {}
                _ => return Err(Status::INVALID_VALUE),
            }
        }
        Ok(())
    }

    /// Returns whether a device can access memory of a pool.
    fn cuMemPoolGetAccess(flags: Out<CUmemAccess_flags>, handle: CUmemoryPool, location: In<CUmemLocation>) {
        let own = device(location.get()?)? == pool(handle)?.device;
        flags.set(if own { CUmemAccess_flags::READWRITE } else { CUmemAccess_flags::NONE })
    }

    /// Returns the default pool of a device.
    fn cuDeviceGetDefaultMemPool(handle: Out<CUmemoryPool>, device: CUdevice) {
        let device = state()?.device(device)?;
        handle.required()?.set(device.engine()?.pools.own(device.ordinal)?.handle)
    }

    /// Returns the current pool of a device.
    fn cuDeviceGetMemPool(handle: Out<CUmemoryPool>, device: CUdevice) {
        let device = state()?.device(device)?;
        handle.required()?.set(device.engine()?.pools.current(device.ordinal)?.handle)
    }

    /// Sets the current pool of a device.
    fn cuDeviceSetMemPool(device: CUdevice, handle: CUmemoryPool) {
        let device = state()?.device(device)?;
        let pool = pool(handle)?;
        if pool.device != device.ordinal {
            return Err(Status::INVALID_VALUE);
        }
        device.engine()?.pools.set_current(Some(pool));
        Ok(())
    }
}
