//! Device memory: allocation, release, lookup.

use super::entries;
use crate::engine::{self, Asker, BlockKind, Engine, HostKind, hosts, reservations};
use crate::graph::guard;
use crate::state::{Context, current};
use crate::types::{
    CUdevice, CUdeviceptr, CUmem_advise, CUmemLocation, CUmemLocationType, CUstream, Out, Result, Status,
};
use std::ffi::c_uint;
use std::sync::Arc;
use warpwright_device::{Release, StreamKind};

/// The alignment of rows in pitched memory, in bytes.
const PITCH: u64 = 512;

/// The context of the calling thread, and its engine.
pub(super) fn here() -> Result<(Arc<Context>, Arc<Engine>)> {
    engine::permitted()?;
    let context = current()?;
    let engine = engine::of(&context)?;
    Ok((context, engine))
}

/// The owner of an allocation of host memory.
pub(super) fn asker() -> Result<Asker> {
    let (context, engine) = here()?;
    Ok(Asker { context: context.id, context_handle: context.handle, device: engine.ordinal })
}

fn allocate(bytes: u64) -> Result<CUdeviceptr> {
    let (context, engine) = here()?;
    guard::may_wait()?;
    allocate_from(&engine, &context, bytes, || Ok(BlockKind::Plain))
}

/// Allocates device memory of that kind.
pub(super) fn allocate_from(
    engine: &Engine,
    context: &Context,
    bytes: u64,
    kind: impl Fn() -> Result<BlockKind>,
) -> Result<CUdeviceptr> {
    let allocate = || engine.memory.allocate(engine.vm(), bytes, kind()?, (context.id, context.handle));
    let block = match allocate() {
        // What streams give back may not have come to its turn.
        Err(Status::OUT_OF_MEMORY) if engine.memory.may_have_room(engine.vm(), bytes) => {
            engine.drain();
            context.check()?;
            allocate()
        }
        block => block,
    };
    Ok(block?.base())
}

fn free(address: CUdeviceptr) -> Result<()> {
    if address == 0 {
        return engine::permitted().and_then(|()| current().map(drop));
    }
    let (context, _) = here()?;
    guard::may_wait()?;
    if hosts().find(address).is_some() {
        return hosts().free(address, HostKind::Managed).inspect_err(|_| engine::explain_free(address));
    }
    let owner = engine::owner(address)?;
    let block = owner.memory.take(address)?;
    owner.drain();
    block.release();
    context.check()
}

/// The start and size of the allocation that contains an address.
fn range(address: CUdeviceptr) -> Result<(u64, u64)> {
    here()?;
    if let Some(host) = hosts().find(address) {
        return Ok((host.base, host.bytes));
    }
    if let Some(reservation) = reservations().find(address) {
        let mapped = reservation.mapped(address).ok_or(Status::NOT_FOUND)?;
        return Ok((mapped.base, mapped.bytes));
    }
    let engines = engine::engines()?;
    let extent = |engine: &Arc<Engine>| match engine.memory.find(address) {
        Some(block) => Some((block.base(), block.bytes())),
        None => engine.vm().extent(address),
    };
    engines.iter().find_map(extent).ok_or(Status::NOT_FOUND)
}

/// Checks that it is managed memory.
fn managed(address: CUdeviceptr, bytes: usize) -> Result<()> {
    here()?;
    let end = address.checked_add(bytes as u64).ok_or(Status::INVALID_VALUE)?;
    match hosts().find(address) {
        Some(host) if host.kind == HostKind::Managed && bytes > 0 && end <= host.base + host.bytes => Ok(()),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// The host's number, in place of a device's.
const CPU: CUdevice = -1;

fn device_or_host(device: CUdevice) -> Result<()> {
    if device == CPU { Ok(()) } else { crate::state::state()?.device(device).map(drop) }
}

fn location(location: CUmemLocation) -> Result<()> {
    match location.kind {
        CUmemLocationType::DEVICE => crate::state::state()?.device(location.id).map(drop),
        CUmemLocationType::HOST | CUmemLocationType::HOST_NUMA_CURRENT => Ok(()),
        CUmemLocationType::HOST_NUMA if location.id >= 0 => Ok(()),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// Whether advice has no location: about read-mostly memory, or removing a preferred location.
fn has_no_place(advice: CUmem_advise) -> Result<bool> {
    advice.check()?;
    let about_none = [
        CUmem_advise::SET_READ_MOSTLY,
        CUmem_advise::UNSET_READ_MOSTLY,
        CUmem_advise::UNSET_PREFERRED_LOCATION,
    ];
    Ok(about_none.contains(&advice))
}

/// Checks that a location for access is a device or the host as a whole.
fn accessor(advice: CUmem_advise, place: CUmemLocation) -> Result<()> {
    let is_about_access = matches!(advice, CUmem_advise::SET_ACCESSED_BY | CUmem_advise::UNSET_ACCESSED_BY);
    match place.kind {
        CUmemLocationType::DEVICE | CUmemLocationType::HOST => Ok(()),
        _ if is_about_access => Err(Status::INVALID_VALUE),
        _ => Ok(()),
    }
}

entries! {
    /// Allocates uninitialised memory.
    fn cuMemAlloc_v2(address: Out<CUdeviceptr>, bytes: usize) {
        address.required()?.set(allocate(bytes as u64)?)
    }

    /// Allocates rows with the alignment that the device prefers, and returns their pitch.
    fn cuMemAllocPitch_v2(
        address: Out<CUdeviceptr>,
        pitch: Out<usize>,
        width: usize,
        height: usize,
        element_bytes: c_uint,
    ) {
        if width == 0 || height == 0 || !matches!(element_bytes, 4 | 8 | 16) {
            return Err(Status::INVALID_VALUE);
        }
        address.required()?;
        pitch.required()?;
        let row = (width as u64).checked_next_multiple_of(PITCH).ok_or(Status::OUT_OF_MEMORY)?;
        let bytes = row.checked_mul(height as u64).ok_or(Status::OUT_OF_MEMORY)?;
        address.set(allocate(bytes)?)?;
        pitch.set(row as usize)
    }

    /// Allocates managed memory, which host and devices access at one address. Flags: 1, attached to all; 2, to the
    /// host.
    fn cuMemAllocManaged(address: Out<CUdeviceptr>, bytes: usize, flags: c_uint) {
        let asker = asker()?;
        if !matches!(flags, 1 | 2) {
            return Err(Status::INVALID_VALUE);
        }
        address.required()?.set(hosts().allocate(bytes as u64, HostKind::Managed, flags, asker)?)
    }

    /// Frees memory, after all operations are complete. Null is ignored.
    fn cuMemFree_v2(address: CUdeviceptr) {
        free(address)
    }

    /// Returns the free and the total bytes of the device, each if the client wants it.
    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        let (_, engine) = here()?;
        free.set_if(engine.vm().free_memory() as usize);
        total.set_if(engine.vm().config().memory as usize);
        Ok(())
    }

    /// Returns the start and size of the allocation of an address.
    fn cuMemGetAddressRange_v2(base: Out<CUdeviceptr>, bytes: Out<usize>, address: CUdeviceptr) {
        let (start, size) = range(address)?;
        base.set_if(start);
        bytes.set_if(size as usize);
        Ok(())
    }

    /// Advises how managed memory will be used, which has no effect.
    fn cuMemAdvise(address: CUdeviceptr, bytes: usize, what: CUmem_advise, device: CUdevice) {
        managed(address, bytes)?;
        if has_no_place(what)? { Ok(()) } else { device_or_host(device) }
    }

    /// Advises how managed memory will be used, which has no effect.
    fn cuMemAdvise_v2(address: CUdeviceptr, bytes: usize, what: CUmem_advise, place: CUmemLocation) {
        managed(address, bytes)?;
        if has_no_place(what)? {
            return Ok(());
        }
        accessor(what, place)?;
        location(place)
    }

    /// Prefetches managed memory, which has no effect.
    fn cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz |default| (
        address: CUdeviceptr,
        bytes: usize,
        device: CUdevice,
        stream: CUstream,
    ) {
        engine::Stream::get(default.resolve(stream))?;
        managed(address, bytes)?;
        device_or_host(device)
    }

    /// Prefetches managed memory, which has no effect.
    fn cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz |default| (
        address: CUdeviceptr,
        bytes: usize,
        place: CUmemLocation,
        flags: c_uint,
        stream: CUstream,
    ) {
        engine::Stream::get(default.resolve(stream))?;
        managed(address, bytes)?;
        if flags == 0 { location(place) } else { Err(Status::INVALID_VALUE) }
    }

    /// Attaches managed memory to a stream. The host may access it at any time here.
    fn cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz |default| (
        stream: CUstream,
        address: CUdeviceptr,
        bytes: usize,
        flags: c_uint,
    ) {
        const SINGLE: c_uint = 4;
        let stream = engine::Stream::get(default.resolve(stream))?;
        let host = hosts().find(address).ok_or(Status::INVALID_VALUE)?;
        let whole = address == host.base && (bytes == 0 || bytes as u64 == host.bytes);
        let allowed = match flags {
            1 | 2 => true,
            // The default stream is all of them.
            SINGLE => stream.kind() != StreamKind::Legacy,
            _ => false,
        };
        if host.kind == HostKind::Managed && whole && allowed { Ok(()) } else { Err(Status::INVALID_VALUE) }
    }
}
