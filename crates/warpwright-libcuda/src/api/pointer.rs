//! Attributes of addresses.

use super::entries;
use crate::engine::{BlockKind, HostKind, engines, hosts, permitted, reservations};
use crate::state::{Context, stack, state};
use crate::types::{
    CUcontext, CUdeviceptr, CUmemAccess_flags, CUmemoryPool, CUmemorytype, CUpointer_attribute as Attribute,
    In, Out, Result, Status,
};
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Known properties of the memory at an address.
#[derive(Default)]
struct Known {
    base: u64,
    bytes: u64,
    context: CUcontext,
    device: c_int,
    id: u64,
    sync_operations: bool,
    host: Option<HostKind>,
    /// It is read-only for devices.
    is_read_only: bool,
    pool: CUmemoryPool,
    /// Reserved addresses without memory.
    is_unmapped: bool,
    /// Beginning and size of the mapping, where that is not the whole range.
    mapping: Option<(u64, u64)>,
    /// The kinds of handles that it has for other processes.
    handle_types: u64,
    /// The access that the client has given the memory's device.
    given: Option<CUmemAccess_flags>,
}

impl Known {
    /// The access of a device. Memory of another device is inaccessible, since there is no peer access.
    fn access(&self, device: c_int) -> CUmemAccess_flags {
        match self.host {
            Some(_) if self.is_read_only => CUmemAccess_flags::READ,
            None if self.device != device => CUmemAccess_flags::NONE,
            _ => self.given.unwrap_or(CUmemAccess_flags::READWRITE),
        }
    }
}

/// The flag of registered memory that is read-only for devices.
const READ_ONLY: c_uint = 8;

fn find(address: u64) -> Result<Option<Known>> {
    permitted()?;
    state()?;
    if let Some(host) = hosts().find(address) {
        return Ok(Some(Known {
            base: host.base,
            bytes: host.bytes,
            context: host.context_handle,
            device: host.device,
            id: host.id,
            sync_operations: host.sync_operations.load(Relaxed),
            host: Some(host.kind),
            is_read_only: host.kind == HostKind::Registered && host.flags & READ_ONLY != 0,
            ..Known::default()
        }));
    }
    if let Some(reservation) = reservations().find(address) {
        let range = Known { base: reservation.base, bytes: reservation.bytes, ..Known::default() };
        let Some(mapped) = reservation.mapped(address) else {
            return Ok(Some(Known { is_unmapped: true, device: NO_DEVICE, ..range }));
        };
        return Ok(Some(Known {
            device: mapped.ordinal,
            id: mapped.memory.id(),
            mapping: Some((mapped.base, mapped.bytes)),
            handle_types: mapped.memory.is_shareable().into(),
            given: Some(mapped.access),
            ..range
        }));
    }
    for engine in engines()? {
        if let Some(block) = engine.memory.find(address) {
            let (context, pool) = match &block.kind {
                BlockKind::Plain | BlockKind::OfGraph => (block.context_handle, CUmemoryPool::NULL),
                // It belongs to no context.
                BlockKind::Pooled(pool) => (CUcontext::NULL, pool.handle),
            };
            return Ok(Some(Known {
                base: block.base(),
                bytes: block.bytes(),
                context,
                device: engine.ordinal,
                id: block.id,
                sync_operations: block.sync_operations.load(Relaxed),
                pool,
                ..Known::default()
            }));
        }
        // A variable of a module.
        if let Some((base, bytes)) = engine.vm().extent(address) {
            return Ok(Some(Known { base, bytes, device: engine.ordinal, ..Known::default() }));
        }
    }
    Ok(None)
}

/// The current context, even after a failure in it.
fn here() -> Result<Arc<Context>> {
    stack::top().filter(|context| context.is_alive()).ok_or(Status::INVALID_CONTEXT)
}

/// The answer for memory that no device knows.
const NO_DEVICE: c_int = -2;

/// Writes an attribute; for unknown memory, the answer that says so.
fn answer(known: Option<&Known>, address: u64, what: Attribute, value: Out<c_void>) -> Result<()> {
    fn put<T>(value: Out<c_void>, answer: T) -> Result<()> {
        // SAFETY: each attribute is answered below with the type that the interface says its value has.
        unsafe { value.cast::<T>() }.set(answer)
    }
    let is_managed = known.is_some_and(|known| known.host == Some(HostKind::Managed));
    let is_host = known.is_some_and(|known| known.host.is_some());
    let number = |of: fn(&Known) -> u64| known.map_or(0, of);
    match what {
        Attribute::CONTEXT => put(value, known.map_or(CUcontext::NULL, |known| known.context)),
        Attribute::MEMORY_TYPE => put(
            value,
            match known {
                None => CUmemorytype(0),
                // Managed memory counts as the device's.
                Some(_) if is_host && !is_managed => CUmemorytype::HOST,
                Some(_) => CUmemorytype::DEVICE,
            },
        ),
        Attribute::DEVICE_POINTER => match known {
            Some(known) if known.access(here()?.device.ordinal) == CUmemAccess_flags::NONE => {
                Err(Status::INVALID_VALUE)
            }
            known => put::<u64>(value, known.map_or(0, |_| address)),
        },
        Attribute::HOST_POINTER => match known {
            Some(_) if !is_host => Err(Status::INVALID_VALUE),
            known => put::<u64>(value, known.map_or(0, |_| address)),
        },
        Attribute::SYNC_MEMOPS => {
            put::<c_int>(value, known.is_some_and(|known| known.sync_operations).into())
        }
        Attribute::BUFFER_ID | Attribute::MEMORY_BLOCK_ID => put(value, number(|known| known.id)),
        Attribute::IS_MANAGED => put::<c_int>(value, is_managed.into()),
        Attribute::DEVICE_ORDINAL => put(value, known.map_or(NO_DEVICE, |known| known.device)),
        Attribute::IS_LEGACY_CUDA_IPC_CAPABLE
        | Attribute::IS_GPU_DIRECT_RDMA_CAPABLE
        | Attribute::IS_HW_DECOMPRESS_CAPABLE => put::<c_int>(value, 0),
        Attribute::RANGE_START_ADDR => put(value, number(|known| known.base)),
        Attribute::RANGE_SIZE => put(value, number(|known| known.bytes)),
        Attribute::MAPPING_BASE_ADDR => {
            put(value, number(|known| known.mapping.map_or(known.base, |(base, _)| base)))
        }
        Attribute::MAPPING_SIZE => {
            put(value, number(|known| known.mapping.map_or(known.bytes, |(_, bytes)| bytes)))
        }
        Attribute::MAPPED => put::<c_int>(value, known.is_some_and(|known| !known.is_unmapped).into()),
        Attribute::ALLOWED_HANDLE_TYPES => put::<u64>(value, number(|known| known.handle_types)),
        Attribute::ACCESS_FLAGS => match known {
            Some(known) => put(value, known.access(here()?.device.ordinal)),
            None => put(value, CUmemAccess_flags::NONE),
        },
        Attribute::MEMPOOL_HANDLE => put(value, known.map_or(CUmemoryPool::NULL, |known| known.pool)),
        Attribute::P2P_TOKENS => Err(Status::NOT_SUPPORTED),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// An address for a query of several attributes, of any memory.
fn several(count: c_uint, which: In<Attribute>, values: In<Out<c_void>>, address: u64) -> Result<()> {
    let known = find(address)?;
    let which = which.get_all(count as usize)?;
    for (what, value) in which.into_iter().zip(values.get_all(count as usize)?) {
        match answer(known.as_ref(), address, what, value) {
            // The host or the device has no pointer to it: null.
            Err(Status::INVALID_VALUE)
                if matches!(what, Attribute::HOST_POINTER | Attribute::DEVICE_POINTER) =>
            {
                // SAFETY: the interface says that the value of these two is a pointer.
                unsafe { value.cast::<u64>() }.set(0)?;
            }
            answered => answered?,
        }
    }
    Ok(())
}

entries! {
    /// Returns an attribute of an address that the driver knows.
    fn cuPointerGetAttribute(value: Out<c_void>, what: Attribute, address: CUdeviceptr) {
        let value = value.required()?;
        let known = find(address)?.ok_or(Status::INVALID_VALUE)?;
        answer(Some(&known), address, what, value)
    }

    /// Returns several attributes of an address, which the driver need not know.
    fn cuPointerGetAttributes(count: c_uint, which: In<Attribute>, values: In<Out<c_void>>, address: CUdeviceptr) {
        several(count, which, values, address)
    }

    /// Sets whether operations on memory are always synchronous, the only attribute that can be set.
    fn cuPointerSetAttribute(value: In<c_void>, what: Attribute, address: CUdeviceptr) {
        if what != Attribute::SYNC_MEMOPS {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the interface says that the value of this attribute is an `unsigned int`.
        let wish = unsafe { value.cast::<c_uint>() }.get()? != 0;
        permitted()?;
        if let Some(host) = hosts().find(address) {
            host.sync_operations.store(wish, Relaxed);
            return Ok(());
        }
        let engines = engines()?;
        let block = engines.iter().find_map(|engine| engine.memory.find(address)).ok_or(Status::INVALID_VALUE)?;
        block.sync_operations.store(wish, Relaxed);
        Ok(())
    }
}
