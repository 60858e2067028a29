//! Multicast objects: what `multimem` instructions access.
//!
//! A multicast object has a device, memory that is bound to its parts, and addresses where it is mapped. These are
//! multimem addresses: they lead to where the bound memory is mapped itself, so that the checks know it as one memory.
//! Memory that is not mapped, or that its device may not write there, has a mapping of the object's own, its **home**.
//! On hardware an object joins the memory of several devices; virtual GPUs do not access one another's, so that each object
//! has one.

use super::virtual_memory::{GRANULARITY, Mappable, Physical, Reservation, memory_file};
use super::{engines, memory, reservations};
use crate::lock;
use crate::report::log;
use crate::state::state;
use crate::types::{CUmemAccess_flags, Result, Status};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fs::File;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// The objects that there are, by their numbers.
static ALL: Mutex<BTreeMap<u64, Weak<Multicast>>> = Mutex::new(BTreeMap::new());

/// The name of the file that stands for an object of this process, before the object's number. Other processes have none
/// of its objects, since an object has one device, which is theirs.
pub(super) fn file_name() -> String {
    format!("warpwright-multicast-{}-", std::process::id())
}

/// Held while mappings of objects are shown to the devices.
static SHOWING: Mutex<()> = Mutex::new(());

/// A multicast object.
pub(crate) struct Multicast {
    pub(crate) bytes: u64,
    /// Whether it was asked for as one that other processes may get, which takes memory alone that they may get, too.
    is_shareable: bool,
    /// A number that no other memory of the process ever has.
    pub(crate) id: u64,
    device: OnceLock<i32>,
    /// What stands for it where it is exported.
    file: OnceLock<File>,
    /// What is bound, by its place in the object.
    bound: Mutex<BTreeMap<u64, Bound>>,
}

/// Bound memory: some bytes from an offset on.
struct Bound {
    bytes: u64,
    physical: Arc<Physical>,
    offset: u64,
    home: Option<Reservation>,
}

/// A part of an object, and the address of the memory that is bound there.
pub(super) struct Piece {
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) target: u64,
}

impl Multicast {
    /// A new object, of no device yet. Returns its handle.
    pub(crate) fn create(bytes: u64, is_shareable: bool) -> Result<usize> {
        let id = memory::next_id();
        let (device, file, bound) = (OnceLock::new(), OnceLock::new(), Mutex::default());
        let object = Arc::new(Multicast { bytes, is_shareable, id, device, file, bound });
        lock(&ALL).insert(id, Arc::downgrade(&object));
        Mappable::Multicast(object).hand_out()
    }

    /// The object of that number.
    pub(super) fn find(id: u64) -> Result<Arc<Multicast>> {
        lock(&ALL).get(&id).and_then(Weak::upgrade).ok_or_else(|| {
            log::misuse(&"the file descriptor stands for a multicast object that is gone");
            Status::INVALID_VALUE
        })
    }

    /// A new file descriptor, which is the client's.
    pub(crate) fn export(&self) -> Result<c_int> {
        if !self.is_shareable {
            log::misuse(&"the object was not created with a handle type, so it cannot be exported");
            return Err(Status::INVALID_VALUE);
        }
        let file = match self.file.get() {
            Some(file) => file,
            None => {
                let new = memory_file(&format!("{}{}\0", file_name(), self.id))?;
                self.file.get_or_init(|| new)
            }
        };
        let copy = file.try_clone().map_err(|_| Status::OPERATING_SYSTEM)?;
        Ok(OwnedFd::from(copy).into_raw_fd())
    }

    /// The device, which must have been added.
    pub(crate) fn device(&self) -> Result<i32> {
        self.device.get().copied().ok_or_else(|| {
            log::misuse(&"the multicast object has no device yet, for which this call would wait forever: add it first");
            Status::ILLEGAL_STATE
        })
    }

    /// Adds the device.
    pub(crate) fn add(&self, ordinal: i32) -> Result<()> {
        self.device.set(ordinal).map_err(|_| {
            log::misuse(&"the multicast object has its device already");
            Status::INVALID_VALUE
        })
    }

    /// Binds memory of the device, from an offset in it on, to a part that is free.
    pub(crate) fn bind(&self, at: u64, physical: Arc<Physical>, offset: u64, bytes: u64) -> Result<()> {
        let device = self.device()?;
        let is_inside = |from: u64, whole: u64| from.checked_add(bytes).is_some_and(|end| end <= whole);
        let is_whole = [at, offset, bytes].iter().all(|number| number.is_multiple_of(GRANULARITY));
        if !is_whole || bytes == 0 || !is_inside(at, self.bytes) || !is_inside(offset, physical.bytes) {
            log::misuse(&format_args!(
                "{bytes} bytes of memory from {offset} on are bound at {at}: these are multiples of {GRANULARITY}, inside of \
                 the memory's {} bytes and the object's {}",
                physical.bytes, self.bytes
            ));
            return Err(Status::INVALID_VALUE);
        }
        if self.is_shareable && !physical.is_shareable {
            log::misuse(&"the object was created with a handle type, and the memory was not");
            return Err(Status::INVALID_VALUE);
        }
        if physical.ordinal != device {
            log::misuse(&format_args!(
                "the memory is of device {}, and the multicast object of device {device}",
                physical.ordinal
            ));
            return Err(Status::INVALID_DEVICE);
        }
        let mut bound = lock(&self.bound);
        let before = bound.range(..at + bytes).next_back();
        if before.is_some_and(|(&other, piece)| other + piece.bytes > at) {
            log::misuse(&format_args!("memory is bound to some of {bytes} bytes from {at} on"));
            return Err(Status::INVALID_VALUE);
        }
        bound.insert(at, Bound { bytes, physical, offset, home: None });
        drop(bound);
        show_all()
    }

    /// Takes the memory from a part, where each binding is inside or outside, after all operations are complete.
    pub(crate) fn unbind(&self, at: u64, bytes: u64) -> Result<()> {
        let is_whole = [at, bytes].iter().all(|number| number.is_multiple_of(GRANULARITY)) && bytes > 0;
        let end = at.checked_add(bytes).filter(|&end| is_whole && end <= self.bytes);
        let Some(end) = end else {
            log::misuse(&format_args!(
                "{bytes} bytes from {at} on are unbound: these are multiples of {GRANULARITY}, inside of the object's {}",
                self.bytes
            ));
            return Err(Status::INVALID_VALUE);
        };
        engines()?.iter().for_each(|engine| engine.drain());
        let mut bound = lock(&self.bound);
        let reaches_out = |(&other, piece): (&u64, &Bound)| {
            other < end && other + piece.bytes > at && (other < at || other + piece.bytes > end)
        };
        if bound.iter().any(reaches_out) {
            log::misuse(&format_args!(
                "of {bytes} bytes from {at} on, some are a part of what was bound at once"
            ));
            return Err(Status::INVALID_VALUE);
        }
        let behind = bound.split_off(&end);
        let gone = bound.split_off(&at);
        bound.extend(behind);
        drop(bound);
        let shown = show_all();
        drop(gone);
        shown
    }

    /// Each part that has memory, with an address where that may be read and written.
    pub(super) fn pieces(&self) -> Result<Vec<Piece>> {
        let mut bound = lock(&self.bound);
        let piece = |(&offset, piece): (&u64, &mut Bound)| {
            let target = match reservations().address_of(&piece.physical, piece.offset, piece.bytes) {
                Some(address) => address,
                None => piece.home()?.base + piece.offset,
            };
            Ok(Piece { offset, bytes: piece.bytes, target })
        };
        bound.iter_mut().map(piece).collect()
    }
}

impl Bound {
    /// The memory's own mapping for the object.
    fn home(&mut self) -> Result<&Reservation> {
        if self.home.is_none() {
            let Physical { bytes, ordinal, .. } = *self.physical;
            let home = Reservation::new(bytes, GRANULARITY, 0)?;
            home.map_into(state()?.device(ordinal)?.engine()?)?;
            home.map(home.base, bytes, &Mappable::Physical(self.physical.clone()))?;
            home.set_access(home.base, bytes, ordinal, CUmemAccess_flags::READWRITE)?;
            self.home = Some(home);
        }
        self.home.as_ref().ok_or(Status::UNKNOWN)
    }
}

impl Drop for Multicast {
    fn drop(&mut self) {
        lock(&ALL).remove(&self.id);
    }
}

/// Shows the devices where multicast objects lead now. Called wherever that changes: where memory is unmapped, its access
/// is set, or it is bound or unbound.
pub(super) fn show_all() -> Result<()> {
    if lock(&ALL).is_empty() {
        return Ok(());
    }
    let _alone = lock(&SHOWING);
    reservations().alive().iter().try_for_each(|reservation| reservation.show_multicast())
}
