//! Virtual memory management: reserved addresses, and physical memory that is mapped there.
//!
//! Reserved addresses are the process's, so that they differ from those of everything else, and the host cannot access
//! them, as it cannot access a device's. Behind them stands a **window**: as many bytes elsewhere in the process, which
//! the virtual GPUs read and write. Physical memory is a file in memory. Mapping it puts it into the window, and several
//! windows, also of several processes, may have the same file.
//!
//! ```text
//! addresses of kernels   │ reserved, no access for the host         │
//!                          ┆ the same offsets
//! window                 │ file A │ nothing │ file B   │ nothing    │
//! ```

use super::multicast::{self, Multicast, Piece};
use super::pages::Pages;
use super::{Engine, engines, memory, status};
use crate::lock;
use crate::report::calls::{self, Call};
use crate::report::log;
use crate::state::{Handles, Kind};
use crate::types::{CUmemAccess_flags, Result, Status};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};
use warpwright_vm::{Claim, PageAccess, Reserved};

/// What sizes, offsets and addresses of physical memory are multiples of, in bytes.
pub(crate) const GRANULARITY: u64 = 2 << 20;

unsafe extern "C" {
    fn memfd_create(name: *const c_char, flags: c_uint) -> c_int;
}

/// The name of the files, before the number of the device.
const FILE_NAME: &str = "warpwright-device-";

/// Physical memory.
pub(crate) struct Physical {
    pub(crate) bytes: u64,
    /// Its device.
    pub(crate) ordinal: i32,
    /// Whether other processes may get it.
    pub(crate) is_shareable: bool,
    /// A number that no other allocation of the process ever has.
    pub(crate) id: u64,
    file: File,
    /// Memory that another process has made is that process's part of the device.
    _claim: Option<Claim>,
}

/// A new file in memory, of a name that ends with a zero.
pub(super) fn memory_file(name: &str) -> Result<File> {
    let name = CStr::from_bytes_until_nul(name.as_bytes()).map_err(|_| Status::UNKNOWN)?;
    const CLOSE_ON_EXEC: c_uint = 1;
    // SAFETY: a text with its end.
    let file = unsafe { memfd_create(name.as_ptr(), CLOSE_ON_EXEC) };
    if file < 0 {
        log::note(&std::io::Error::last_os_error());
        return Err(Status::OPERATING_SYSTEM);
    }
    // SAFETY: it was just opened, for nobody else.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(file) }))
}

/// What is mapped by the handle that a file descriptor stands for. Returns a new handle.
pub(crate) fn import(file: c_int) -> Result<usize> {
    // Its name says what it is, and of which device or object.
    let link = std::fs::read_link(format!("/proc/self/fd/{file}"));
    let name = link.ok().and_then(|name| name.to_str().map(str::to_owned)).unwrap_or_default();
    let number = |before: &str| {
        let (_, rest) = name.split_once(before)?;
        rest.split(' ').next()?.parse::<u64>().ok()
    };
    let memory = match (number(FILE_NAME), number(&multicast::file_name())) {
        (Some(ordinal), _) => {
            let ordinal = i32::try_from(ordinal).map_err(|_| Status::INVALID_VALUE)?;
            Mappable::Physical(Arc::new(Physical::import(file, ordinal)?))
        }
        (_, Some(id)) => Mappable::Multicast(Multicast::find(id)?),
        (None, None) => {
            log::misuse(
                &"the file descriptor stands for no memory, and for no multicast object of this process",
            );
            return Err(Status::INVALID_VALUE);
        }
    };
    memory.hand_out()
}

/// What can be mapped at reserved addresses.
#[derive(Clone)]
pub(crate) enum Mappable {
    Physical(Arc<Physical>),
    Multicast(Arc<Multicast>),
}

impl Mappable {
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Mappable::Physical(physical) => physical.bytes,
            Mappable::Multicast(object) => object.bytes,
        }
    }

    /// The device, as soon as there is one.
    pub(crate) fn ordinal(&self) -> Result<i32> {
        match self {
            Mappable::Physical(physical) => Ok(physical.ordinal),
            Mappable::Multicast(object) => object.device(),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        match self {
            Mappable::Physical(physical) => physical.id,
            Mappable::Multicast(object) => object.id,
        }
    }

    pub(crate) fn is_shareable(&self) -> bool {
        matches!(self, Mappable::Physical(physical) if physical.is_shareable)
    }

    /// The physical memory, which it must be.
    pub(crate) fn physical(&self) -> Result<&Arc<Physical>> {
        match self {
            Mappable::Physical(physical) => Ok(physical),
            Mappable::Multicast(_) => Self::wrong("a multicast object: the function takes physical memory"),
        }
    }

    /// The multicast object, which it must be.
    pub(crate) fn multicast(&self) -> Result<&Arc<Multicast>> {
        match self {
            Mappable::Multicast(object) => Ok(object),
            Mappable::Physical(_) => Self::wrong("physical memory: the function takes a multicast object"),
        }
    }

    fn wrong<T>(what: &str) -> Result<T> {
        log::misuse(&format_args!("the handle is that of {what}"));
        Err(Status::INVALID_VALUE)
    }

    /// A new handle.
    pub(super) fn hand_out(self) -> Result<usize> {
        PHYSICAL.insert(Arc::new(MemoryHandle { memory: self, given: Mutex::new(1) }))
    }
}

/// A handle of what can be mapped. Each is released as often as it was given out.
pub(crate) struct MemoryHandle {
    pub(crate) memory: Mappable,
    given: Mutex<u32>,
}

/// All handles of what can be mapped.
pub(crate) static PHYSICAL: Handles<MemoryHandle> = Handles::new(Kind::Physical);

impl Physical {
    /// New memory of a device, zero. Returns its handle.
    pub(crate) fn create(engine: &Engine, bytes: u64, is_shareable: bool) -> Result<usize> {
        let claim = engine.vm().claim(bytes).map_err(|error| status(&error))?;
        let file = memory_file(&format!("{FILE_NAME}{}\0", engine.ordinal))?;
        file.set_len(bytes).map_err(|_| Status::OUT_OF_MEMORY)?;
        let (ordinal, id) = (engine.ordinal, memory::next_id());
        let physical = Physical { bytes, ordinal, is_shareable, id, file, _claim: Some(claim) };
        Mappable::Physical(Arc::new(physical)).hand_out()
    }

    /// The memory behind a file descriptor, which stays the client's.
    fn import(file: c_int, ordinal: i32) -> Result<Physical> {
        crate::state::state()?.device(ordinal).map_err(|_| Status::INVALID_VALUE)?;
        // SAFETY: a descriptor that was found to be open; the client keeps it meanwhile.
        let file = unsafe { BorrowedFd::borrow_raw(file) };
        let file = File::from(file.try_clone_to_owned().map_err(|_| Status::OPERATING_SYSTEM)?);
        let bytes = file.metadata().map_err(|_| Status::OPERATING_SYSTEM)?.len();
        Ok(Physical { bytes, ordinal, is_shareable: true, id: memory::next_id(), file, _claim: None })
    }

    /// A new file descriptor, which is the client's.
    pub(crate) fn export(&self) -> Result<c_int> {
        if !self.is_shareable {
            log::misuse(&"the memory was not created with a handle type, so it cannot be exported");
            return Err(Status::INVALID_VALUE);
        }
        let copy = self.file.try_clone().map_err(|_| Status::OPERATING_SYSTEM)?;
        Ok(OwnedFd::from(copy).into_raw_fd())
    }
}

/// Releases a handle, which ends with its last release; the memory stays where it is mapped.
pub(crate) fn release(handle: usize) -> Result<()> {
    let found = PHYSICAL.get(handle)?;
    let mut given = lock(&found.given);
    *given -= 1;
    if *given == 0 {
        PHYSICAL.remove(handle)?;
    }
    Ok(())
}

/// Bytes of the process that the virtual GPUs access.
struct Window(Pages, usize);

impl AsRef<[AtomicU32]> for Window {
    fn as_ref(&self) -> &[AtomicU32] {
        let first = std::ptr::with_exposed_provenance::<AtomicU32>(self.0.first());
        // SAFETY: whole pages of this process, which stay until this is dropped; what is mapped in their place later is
        // readable and writable memory too.
        unsafe { std::slice::from_raw_parts(first, self.1 / 4) }
    }
}

/// Memory that is mapped at reserved addresses.
#[derive(Clone)]
pub(crate) struct Mapped {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) memory: Mappable,
    /// The memory's device.
    pub(crate) ordinal: i32,
    /// Given by the client: to the memory's own device.
    pub(crate) access: CUmemAccess_flags,
}

impl Mapped {
    fn access_of(&self, ordinal: i32) -> PageAccess {
        match self.access {
            CUmemAccess_flags::READ if ordinal == self.ordinal => PageAccess::Read,
            CUmemAccess_flags::READWRITE if ordinal == self.ordinal => PageAccess::ReadWrite,
            _ => PageAccess::None,
        }
    }

    fn is_multicast(&self) -> bool {
        matches!(self.memory, Mappable::Multicast(_))
    }
}

/// Reserved addresses.
pub(crate) struct Reservation {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) made_by: Call,
    name: String,
    /// What is mapped, by its address, and the devices' views of it.
    state: Mutex<State>,
    window: Arc<Window>,
    _addresses: Pages,
}

#[derive(Default)]
struct State {
    mapped: BTreeMap<u64, Mapped>,
    devices: Vec<(i32, Reserved)>,
}

impl State {
    /// The mappings of a range, which they cover without a gap; none of them reaches out of it.
    fn whole(&self, address: u64, bytes: u64) -> Result<Vec<u64>> {
        let (mut at, end) = (address, address.checked_add(bytes).ok_or(Status::INVALID_VALUE)?);
        let mut found = Vec::new();
        while at < end {
            let mapped = self.mapped.get(&at).ok_or(Status::INVALID_VALUE)?;
            found.push(at);
            at += mapped.bytes;
        }
        if at == end && bytes > 0 { Ok(found) } else { Err(Status::INVALID_VALUE) }
    }
}

impl Reservation {
    /// Reserves addresses, from `wish` on if they are free, and otherwise anywhere. No device knows them yet.
    pub(super) fn new(bytes: u64, align: u64, wish: u64) -> Result<Reservation> {
        let size = usize::try_from(bytes).map_err(|_| Status::OUT_OF_MEMORY)?;
        let align = usize::try_from(align.max(GRANULARITY)).map_err(|_| Status::INVALID_VALUE)?;
        let addresses = Pages::addresses(size, align, usize::try_from(wish).unwrap_or(0))?;
        let window = Window(Pages::sparse(size)?, size);
        let (made_by, id) = (calls::current(), memory::next_id());
        Ok(Reservation {
            base: addresses.first() as u64,
            bytes,
            made_by,
            name: format!("reservation {id} ({made_by})"),
            state: Mutex::default(),
            window: Arc::new(window),
            _addresses: addresses,
        })
    }

    fn contains(&self, address: u64, bytes: u64) -> bool {
        address >= self.base && address.checked_add(bytes).is_some_and(|end| end <= self.base + self.bytes)
    }

    /// The memory that is mapped at an address.
    pub(crate) fn mapped(&self, address: u64) -> Option<Mapped> {
        let state = lock(&self.state);
        let (_, mapped) = state.mapped.range(..=address).next_back()?;
        (address - mapped.base < mapped.bytes).then(|| mapped.clone())
    }

    /// A device gets to know the addresses, and what is mapped there.
    pub(super) fn map_into(&self, engine: &Engine) -> Result<()> {
        let mut state = lock(&self.state);
        if state.devices.iter().any(|(ordinal, _)| *ordinal == engine.ordinal) {
            return Ok(());
        }
        let reserved = engine.vm().reserve(self.base, self.window.clone(), self.bytes, &self.name);
        let reserved = reserved.map_err(|error| status(&error))?;
        for mapped in state.mapped.values() {
            let access = mapped.access_of(engine.ordinal);
            reserved.set(mapped.base - self.base, mapped.bytes, access).map_err(|error| status(&error))?;
        }
        state.devices.push((engine.ordinal, reserved));
        Ok(())
    }

    /// Maps the beginning of memory.
    pub(super) fn map(&self, address: u64, bytes: u64, memory: &Mappable) -> Result<()> {
        let ordinal = memory.ordinal()?;
        let mut state = lock(&self.state);
        let before = state.mapped.range(..address + bytes).next_back();
        if before.is_some_and(|(_, mapped)| mapped.base + mapped.bytes > address) {
            log::misuse(&format_args!("memory is mapped at some of {bytes} bytes from {address:#x} on"));
            return Err(Status::INVALID_VALUE);
        }
        let offset = address - self.base;
        if let Mappable::Physical(physical) = memory {
            self.window.0.replace(offset as usize, bytes as usize, Some(physical.file.as_fd()))?;
        }
        let (memory, access) = (memory.clone(), CUmemAccess_flags::NONE);
        let mapped = Mapped { base: address, bytes, memory, ordinal, access };
        state.mapped.insert(address, mapped);
        state.show(self.base, address)
    }

    /// Unmaps whole mappings. Returns what was mapped, which may go with that.
    fn unmap(&self, address: u64, bytes: u64) -> Result<Vec<Mapped>> {
        let mut state = lock(&self.state);
        let mut all = Vec::new();
        for at in state.whole(address, bytes)? {
            let Some(gone) = state.mapped.remove(&at) else { continue };
            let offset = at - self.base;
            for (_, reserved) in &state.devices {
                reserved.set(offset, gone.bytes, PageAccess::Unmapped).map_err(|error| status(&error))?;
            }
            if !gone.is_multicast() {
                self.window.0.replace(offset as usize, gone.bytes as usize, None)?;
            }
            all.push(gone);
        }
        Ok(all)
    }

    /// Sets the access of whole mappings for a device.
    pub(super) fn set_access(
        &self,
        address: u64,
        bytes: u64,
        ordinal: i32,
        access: CUmemAccess_flags,
    ) -> Result<()> {
        let mut state = lock(&self.state);
        let whole = state.whole(address, bytes)?;
        let is_of_another = |at: &u64| state.mapped.get(at).is_some_and(|m| m.ordinal != ordinal);
        if whole.iter().any(is_of_another) {
            if access == CUmemAccess_flags::NONE {
                return Ok(());
            }
            log::misuse(
                &"virtual GPUs do not access one another's memory: give access to the memory's device",
            );
            return Err(Status::INVALID_DEVICE);
        }
        let is_multicast = |at: &u64| state.mapped.get(at).is_some_and(Mapped::is_multicast);
        if access == CUmemAccess_flags::READ && whole.iter().any(is_multicast) {
            log::misuse(&"access to a multicast object for reading alone is not supported: give it for both");
            return Err(Status::NOT_SUPPORTED);
        }
        for at in whole {
            if let Some(mapped) = state.mapped.get_mut(&at) {
                mapped.access = access;
            }
            state.show(self.base, at)?;
        }
        Ok(())
    }

    /// Shows the devices where the multicast objects that are mapped here lead.
    pub(super) fn show_multicast(&self) -> Result<()> {
        let objects: Vec<(u64, Arc<Multicast>)> = lock(&self.state)
            .mapped
            .values()
            .filter_map(|mapped| match &mapped.memory {
                Mappable::Multicast(object) => Some((mapped.base, object.clone())),
                Mappable::Physical(_) => None,
            })
            .collect();
        for (base, object) in objects {
            let pieces = object.pieces()?;
            let state = lock(&self.state);
            let Some(mapped) = state.mapped.get(&base).filter(|mapped| mapped.memory.id() == object.id)
            else {
                continue;
            };
            if mapped.access != CUmemAccess_flags::READWRITE {
                continue;
            }
            let of_its_device = state.devices.iter().find(|(ordinal, _)| *ordinal == mapped.ordinal);
            let Some((_, reserved)) = of_its_device else { continue };
            let at = base - self.base;
            let set = |offset: u64, end: u64, access| {
                let (offset, end) = (offset.min(mapped.bytes), end.min(mapped.bytes));
                let set = reserved.set(at + offset, end - offset, access);
                if offset == end { Ok(()) } else { set.map_err(|error| status(&error)) }
            };
            let mut done = 0;
            for Piece { offset, bytes, target } in pieces {
                set(done, offset, PageAccess::Unmapped)?;
                done = offset + bytes;
                let distance = target.wrapping_sub(base + offset);
                set(offset, done, PageAccess::Multimem { distance })?;
            }
            set(done, mapped.bytes, PageAccess::Unmapped)?;
        }
        Ok(())
    }
}

impl State {
    /// Shows the devices a mapping as it is. Where a multicast object leads is shown apart.
    fn show(&self, base: u64, address: u64) -> Result<()> {
        let Some(mapped) = self.mapped.get(&address) else { return Ok(()) };
        if mapped.is_multicast() && mapped.access != CUmemAccess_flags::NONE {
            return Ok(());
        }
        self.devices.iter().try_for_each(|(ordinal, reserved)| {
            let access = mapped.access_of(*ordinal);
            reserved.set(address - base, mapped.bytes, access).map_err(|error| status(&error))
        })
    }
}

/// The reserved addresses of the process.
pub(crate) struct Reservations {
    all: Mutex<BTreeMap<u64, Arc<Reservation>>>,
}

/// Those of the process.
pub(crate) fn reservations() -> &'static Reservations {
    static ALL: Reservations = Reservations { all: Mutex::new(BTreeMap::new()) };
    &ALL
}

impl Reservations {
    /// Reserves addresses, from `wish` on if they are free, and otherwise anywhere.
    pub(crate) fn reserve(&self, bytes: u64, align: u64, wish: u64) -> Result<u64> {
        let reservation = Arc::new(Reservation::new(bytes, align, wish)?);
        // First the one and then the other, as for memory of the host.
        lock(&self.all).insert(reservation.base, reservation.clone());
        let known = engines().and_then(|all| all.iter().try_for_each(|engine| reservation.map_into(engine)));
        if let Err(status) = known {
            lock(&self.all).remove(&reservation.base);
            return Err(status);
        }
        Ok(reservation.base)
    }

    /// Frees reserved addresses, where nothing is mapped any more.
    pub(crate) fn free(&self, address: u64, bytes: u64) -> Result<()> {
        let mut all = lock(&self.all);
        let found = all.get(&address).filter(|found| found.bytes == bytes).ok_or(Status::INVALID_VALUE)?;
        if !lock(&found.state).mapped.is_empty() {
            log::misuse(&format_args!(
                "memory is mapped in the {bytes} bytes from {address:#x} on: unmap it first"
            ));
            return Err(Status::INVALID_VALUE);
        }
        all.remove(&address);
        Ok(())
    }

    /// The reservation of an address.
    pub(crate) fn find(&self, address: u64) -> Option<Arc<Reservation>> {
        let all = lock(&self.all);
        let (_, found) = all.range(..=address).next_back()?;
        found.contains(address, 1).then(|| found.clone())
    }

    /// The reservation that a range is in.
    fn of(&self, address: u64, bytes: u64) -> Result<Arc<Reservation>> {
        let found = self.find(address).filter(|found| found.contains(address, bytes));
        found.ok_or_else(|| {
            log::misuse(&format_args!("{bytes} bytes from {address:#x} on are not reserved"));
            Status::INVALID_VALUE
        })
    }

    /// Maps the beginning of memory at reserved addresses.
    pub(crate) fn map(&self, address: u64, bytes: u64, memory: &Mappable) -> Result<()> {
        let is_whole = address.is_multiple_of(GRANULARITY) && bytes.is_multiple_of(GRANULARITY) && bytes > 0;
        if !is_whole || bytes > memory.bytes() {
            return Err(Status::INVALID_VALUE);
        }
        self.of(address, bytes)?.map(address, bytes, memory)
    }

    /// Unmaps whole mappings, after waiting for the devices.
    pub(crate) fn unmap(&self, address: u64, bytes: u64) -> Result<()> {
        let reservation = self.of(address, bytes)?;
        lock(&reservation.state).whole(address, bytes)?;
        engines()?.iter().for_each(|engine| engine.drain());
        let gone = reservation.unmap(address, bytes)?;
        let shown = multicast::show_all();
        drop(gone);
        shown
    }

    /// Sets the access of whole mappings for a device.
    pub(crate) fn set_access(
        &self,
        address: u64,
        bytes: u64,
        ordinal: i32,
        access: CUmemAccess_flags,
    ) -> Result<()> {
        self.of(address, bytes)?.set_access(address, bytes, ordinal, access)?;
        multicast::show_all()
    }

    /// A handle of the memory that is mapped at an address: the one that it has, or a new one.
    pub(crate) fn retain(&self, address: u64) -> Result<usize> {
        let found = self.find(address).and_then(|found| found.mapped(address));
        let memory = found.ok_or(Status::INVALID_VALUE)?.memory;
        let known = PHYSICAL.handles(|handle| handle.memory.id() == memory.id());
        if let Some(handle) = known.first()
            && let Ok(found) = PHYSICAL.find(*handle)
        {
            *lock(&found.given) += 1;
            return Ok(*handle);
        }
        memory.hand_out()
    }

    /// Where some bytes of physical memory are mapped for reading and writing.
    pub(super) fn address_of(&self, physical: &Arc<Physical>, offset: u64, bytes: u64) -> Option<u64> {
        self.alive().iter().find_map(|reservation| {
            let state = lock(&reservation.state);
            let is_it = |mapped: &&Mapped| {
                mapped.memory.id() == physical.id
                    && mapped.access == CUmemAccess_flags::READWRITE
                    && offset + bytes <= mapped.bytes
            };
            state.mapped.values().find(is_it).map(|mapped| mapped.base + offset)
        })
    }

    /// A device that starts gets to know all of it.
    pub(crate) fn map_into(&self, engine: &Engine) -> Result<()> {
        self.alive().iter().try_for_each(|reservation| reservation.map_into(engine))
    }

    /// All that there are.
    pub(crate) fn alive(&self) -> Vec<Arc<Reservation>> {
        lock(&self.all).values().cloned().collect()
    }
}
