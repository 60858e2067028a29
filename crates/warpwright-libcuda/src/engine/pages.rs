//! Pages of this process, as the system gives them.

use crate::types::{Result, Status};
use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd};

/// What pages begin and end with.
pub(super) const PAGE: usize = 4096;

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        length: usize,
        access: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, length: usize) -> c_int;
    fn msync(at: *mut c_void, length: usize, flags: c_int) -> c_int;
}

const NO_ACCESS: c_int = 0;
const READ_AND_WRITE: c_int = 3;
const SHARED: c_int = 1;
const PRIVATE: c_int = 2;
const FIXED: c_int = 0x10;
const ANONYMOUS: c_int = 0x20;
const NO_RESERVE: c_int = 0x4000;

/// Whole pages, which are unmapped on drop.
#[derive(Debug)]
pub(super) struct Pages {
    first: usize,
    bytes: usize,
}

impl Pages {
    /// New pages, wherever there is room. They are zero, and take memory when they are touched.
    pub(super) fn new(bytes: usize) -> Result<Pages> {
        Pages::map(0, bytes, READ_AND_WRITE, PRIVATE | ANONYMOUS)
    }

    /// The same, of which more may be asked for than there is memory.
    pub(super) fn sparse(bytes: usize) -> Result<Pages> {
        Pages::map(0, bytes, READ_AND_WRITE, PRIVATE | ANONYMOUS | NO_RESERVE)
    }

    /// Addresses that the process cannot access, at a multiple of `align`, which is a power of two: from `wish` on if that
    /// is free, and otherwise wherever there is room.
    pub(super) fn addresses(bytes: usize, align: usize, wish: usize) -> Result<Pages> {
        let reserve = |at, bytes| Pages::map(at, bytes, NO_ACCESS, PRIVATE | ANONYMOUS | NO_RESERVE);
        if wish != 0 && wish.is_multiple_of(align) {
            let pages = reserve(wish, bytes)?;
            if pages.first == wish {
                return Ok(pages);
            }
        }
        let room = reserve(0, bytes.checked_add(align).ok_or(Status::OUT_OF_MEMORY)?)?;
        Ok(room.part(align, bytes))
    }

    fn map(at: usize, bytes: usize, access: c_int, flags: c_int) -> Result<Pages> {
        let bytes = bytes.checked_next_multiple_of(PAGE).ok_or(Status::OUT_OF_MEMORY)?;
        // SAFETY: new pages: the address is a wish, and what is there already stays.
        let pointer = unsafe { mmap(std::ptr::without_provenance_mut(at), bytes, access, flags, -1, 0) };
        let failed = std::ptr::without_provenance_mut(usize::MAX);
        if pointer == failed || pointer.is_null() {
            return Err(Status::OUT_OF_MEMORY);
        }
        Ok(Pages { first: pointer.expose_provenance(), bytes })
    }

    /// The part from the first multiple of `align` on; the rest is unmapped.
    fn part(self, align: usize, bytes: usize) -> Pages {
        let bytes = bytes.next_multiple_of(PAGE);
        let first = self.first.next_multiple_of(align);
        let end = self.first + self.bytes;
        drop(Pages { first: self.first, bytes: first - self.first });
        drop(Pages { first: first + bytes, bytes: end - (first + bytes) });
        std::mem::forget(self);
        Pages { first, bytes }
    }

    /// The address of the first one.
    pub(super) fn first(&self) -> usize {
        self.first
    }

    /// Replaces pages by the beginning of a file, or by new ones. The range is inside.
    pub(super) fn replace(&self, offset: usize, bytes: usize, file: Option<BorrowedFd<'_>>) -> Result<()> {
        let end = offset.checked_add(bytes);
        assert!(end.is_some_and(|end| end <= self.bytes), "{bytes} bytes at {offset} of {}", self.bytes);
        let (flags, file) = match file {
            Some(file) => (SHARED | FIXED, file.as_raw_fd()),
            None => (PRIVATE | ANONYMOUS | NO_RESERVE | FIXED, -1),
        };
        let at = std::ptr::with_exposed_provenance_mut(self.first + offset);
        // SAFETY: the pages are this value's. Who reads and writes them meanwhile does so by atomic words, and finds
        // readable and writable memory before and after.
        let pointer = unsafe { mmap(at, bytes, READ_AND_WRITE, flags, file, 0) };
        if pointer == at { Ok(()) } else { Err(Status::OUT_OF_MEMORY) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: the pages are this value's, and whoever has a slice of them has borrowed it.
            unsafe { munmap(std::ptr::with_exposed_provenance_mut(self.first), self.bytes) };
        }
    }
}

/// Whether the process has memory at all of these addresses. Whether it may read or write there is not asked.
pub(super) fn is_there(address: u64, bytes: u64) -> bool {
    const ASYNC: c_int = 1;
    const NO_MEMORY: i32 = 12;
    let first = address as usize & !(PAGE - 1);
    let end =
        (address as usize).checked_add(bytes as usize).and_then(|end| end.checked_next_multiple_of(PAGE));
    let Some(end) = end else { return false };
    // SAFETY: nothing is changed that a program could see; it fails where there is nothing.
    let status = unsafe { msync(std::ptr::without_provenance_mut(first), end - first, ASYNC) };
    // Where the question is not allowed, the client is believed.
    status == 0 || std::io::Error::last_os_error().raw_os_error() != Some(NO_MEMORY)
}
