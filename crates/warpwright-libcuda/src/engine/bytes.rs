//! Finds memory by its address: memory of devices, host memory that devices know, and the client's own.

use super::{BlockKind, Engine, HostKind, engines, hosts, reservations};
use crate::report::log;
use crate::types::{Result, Status};
use std::sync::Arc;
use warpwright_device::{Bytes, HostBytes, Memory};
use warpwright_vm::AllocationRef;

/// The kind of memory at an address. A node of an executable graph keeps that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mapping {
    /// A device, and the context of the allocation; memory of pools and variables of modules count as in none.
    Device { ordinal: i32, context: Option<u64> },
    /// Host memory that devices know.
    Host(HostKind),
    /// The client's own host memory.
    Client,
}

impl Mapping {
    /// Whether memory of that kind can replace memory of this one.
    pub(crate) fn takes(self, other: Mapping) -> bool {
        match (self, other) {
            (
                Mapping::Device { ordinal, context: Some(own) },
                Mapping::Device { ordinal: on, context: Some(others) },
            ) => ordinal == on && own == others,
            (Mapping::Device { ordinal, .. }, Mapping::Device { ordinal: on, .. }) => ordinal == on,
            (own, other) => own == other,
        }
    }

    /// The kind of bytes that devices know.
    pub(crate) fn of(bytes: &Bytes) -> Mapping {
        let address = bytes.address();
        if let Some(host) = hosts().find(address) {
            return Mapping::Host(host.kind);
        }
        if let Some(array) = super::array::array_at(address) {
            return Mapping::Device { ordinal: array.ordinal, context: Some(array.context) };
        }
        let physical = reservations().find(address).and_then(|reservation| reservation.mapped(address));
        if let Some(mapped) = physical {
            return Mapping::Device { ordinal: mapped.ordinal, context: None };
        }
        let on = |engine: &Arc<Engine>| {
            let block = engine.memory.find(address);
            if block.is_none() {
                engine.vm().extent(address)?;
            }
            let plain = block.filter(|block| matches!(block.kind, BlockKind::Plain));
            Some(Mapping::Device { ordinal: engine.ordinal, context: plain.map(|block| block.context) })
        };
        engines().unwrap_or_default().iter().find_map(on).unwrap_or(Mapping::Client)
    }

    /// The kind of any memory.
    pub(crate) fn of_memory(memory: &Memory) -> Mapping {
        match memory {
            Memory::Known(bytes) => Mapping::of(bytes),
            Memory::Host(_) | Memory::Staged(_) => Mapping::Client,
        }
    }
}

/// The bytes at an address of any device; they must be in one allocation, or in one variable. The log says why they are
/// not.
pub(crate) fn bytes_at(address: u64, bytes: u64) -> Result<Bytes> {
    find_bytes(address, bytes).inspect_err(|_| explain_absence(address, bytes))
}

/// What has an address of a device, or had it until it was freed.
fn located(address: u64) -> Option<AllocationRef> {
    let engines = engines().unwrap_or_default();
    let located = |engine: &Arc<Engine>| {
        let mut at = engine.vm().locate(address)?;
        // Streams may not have come to the free.
        at.freed |= engine.memory.find(address).is_some_and(|block| !block.is_allocated());
        Some(at)
    };
    // Addresses of the host come back: what is there comes before what was.
    engines.iter().filter_map(located).min_by_key(|at| at.freed)
}

/// Logs why no memory of a device has these bytes.
fn explain_absence(address: u64, bytes: u64) {
    match located(address) {
        Some(at) if at.freed => {
            log::misuse(&format_args!(
                "{bytes} bytes at {address:#x} were those of {at}, which was freed already"
            ));
        }
        Some(at) if bytes <= at.bytes.saturating_sub(at.offset as u64) => {
            log::misuse(&format_args!(
                "{bytes} bytes at {address:#x} of {at} are mapped to no memory that can be accessed"
            ));
        }
        Some(at) => log::misuse(&format_args!(
            "{bytes} bytes from byte {} of {at} on: it has {}",
            at.offset, at.bytes
        )),
        None if address == 0 => log::misuse(&format_args!("{bytes} bytes at an address that is null")),
        None => log::misuse(&format_args!("{bytes} bytes at {address:#x} are in no memory of a device")),
    }
}

/// Logs why a function frees nothing at an address.
pub(crate) fn explain_free(address: u64) {
    match located(address) {
        Some(at) if at.freed => log::misuse(&format_args!("{at} was freed already")),
        Some(at) if at.offset > 0 => log::misuse(&format_args!(
            "{address:#x} is byte {} of {at}, which is freed at its beginning",
            at.offset
        )),
        Some(at) => log::misuse(&format_args!("{at} is freed by another function, or with its module")),
        None => log::misuse(&format_args!("no memory was allocated at {address:#x}")),
    }
}

fn find_bytes(address: u64, bytes: u64) -> Result<Bytes> {
    if let Some(host) = hosts().find(address) {
        let span = host.span(address, bytes)?;
        return Ok(Bytes::new(span).kept_by(host));
    }
    let physical = reservations().find(address).and_then(|reservation| reservation.mapped(address));
    for engine in engines()? {
        if let Some(found) = engine.memory.of_graph(address, bytes) {
            return found.map(|(span, is_gone)| Bytes::new(span).until_released(Some(is_gone)));
        }
        // Every device knows reserved addresses; one has the memory.
        if physical.as_ref().is_some_and(|mapped| mapped.ordinal != engine.ordinal) {
            continue;
        }
        if let Ok(span) = engine.vm().span(address, bytes) {
            // Host memory that is being freed has no owner any more.
            if span.is_mapped() {
                return Err(Status::INVALID_VALUE);
            }
            return Ok(Bytes::new(span).until_released(engine.memory.is_gone(address)?));
        }
    }
    Err(Status::INVALID_VALUE)
}

/// Checks that bytes of a device are allocated still, as memory or as an array.
pub(crate) fn is_allocated(bytes: &Bytes) -> Result<()> {
    match super::array::array_at(bytes.address()) {
        Some(_) => Ok(()),
        None => find_bytes(bytes.address(), bytes.len()).map(drop),
    }
}

/// The memory at an address of a device or the host: memory that devices know, else the client's own.
pub(crate) fn memory_of_host(address: u64, bytes: u64) -> Result<Memory> {
    if address == 0 {
        log::misuse(&"the address of the host's memory is null");
        return Err(Status::INVALID_VALUE);
    }
    // Part of pinned memory and part not is nothing that can be copied.
    if hosts().touches(address, bytes) || reservations().find(address).is_some() {
        return memory_of_device(address, bytes);
    }
    // A freed address of a device may come here too.
    if !super::pages::is_there(address, bytes) {
        match located(address) {
            Some(at) if at.freed => explain_absence(address, bytes),
            Some(at) => log::misuse(&format_args!(
                "{bytes} bytes at {address:#x} are memory of a device, {at}, and the call takes memory of the host there"
            )),
            None => log::misuse(&format_args!(
                "{bytes} bytes at {address:#x} are neither in memory of a device nor of the host"
            )),
        }
        return Err(Status::INVALID_VALUE);
    }
    Ok(Memory::Host(Arc::new(ClientMemory::new(address, bytes))))
}

/// The memory at an address of a device, including pinned memory.
pub(crate) fn memory_of_device(address: u64, bytes: u64) -> Result<Memory> {
    bytes_at(address, bytes).map(Memory::Known)
}

/// The memory at any address.
pub(crate) fn memory_of_any(address: u64, bytes: u64) -> Result<Memory> {
    let is_known = || {
        let engines = engines().unwrap_or_default();
        engines
            .iter()
            .any(|engine| engine.memory.find(address).is_some() || engine.vm().extent(address).is_some())
    };
    match find_bytes(address, bytes) {
        Err(_) if !is_known() => memory_of_host(address, bytes),
        found => found.inspect_err(|_| explain_absence(address, bytes)).map(Memory::Known),
    }
}

/// Memory of the client that no device knows.
///
/// It is accessed while the client waits, or by a captured copy, for which the client has promised that it exists.
#[derive(Clone, Copy, Debug)]
struct ClientMemory {
    address: usize,
    bytes: u64,
}

impl ClientMemory {
    /// Memory that a client has declared valid for that many bytes.
    fn new(address: u64, bytes: u64) -> Self {
        let pointer: *mut u8 = std::ptr::without_provenance_mut(address as usize);
        ClientMemory { address: pointer.expose_provenance(), bytes }
    }

    /// A pointer to bytes within it; callers have checked that they are.
    fn pointer(&self, offset: u64, bytes: usize) -> *mut u8 {
        let end = offset.checked_add(bytes as u64);
        assert!(end.is_some_and(|end| end <= self.bytes), "{bytes} bytes at {offset} of {}", self.bytes);
        std::ptr::with_exposed_provenance_mut(self.address.wrapping_add(offset as usize))
    }
}

impl HostBytes for ClientMemory {
    fn address(&self) -> u64 {
        self.address as u64
    }

    fn read(&self, offset: u64, data: &mut [u8]) {
        let pointer = self.pointer(offset, data.len());
        // SAFETY: the client's memory, which the interface says can be read there. It is copied by a pointer and not
        // lent, since others may change it meanwhile.
        unsafe { pointer.copy_to(data.as_mut_ptr(), data.len()) };
    }

    fn write(&self, offset: u64, data: &[u8]) {
        let pointer = self.pointer(offset, data.len());
        // SAFETY: the client's memory, which the interface says can be written there, as above.
        unsafe { pointer.copy_from(data.as_ptr(), data.len()) };
    }
}
