//! Pointers to the client's memory.
//!
//! They are parameters of exported functions, or values in memory that such a parameter points to. The `unsafe` code
//! here relies on what the interface says of them: null, or valid for one value, or for several where there is a count.
//! **Any other pointer to follow is made by an `unsafe` function of this file.**

use super::{Result, Status};
use std::ffi::{CStr, c_char};

/// The address to which the client wants a value written.
///
/// ```compile_fail,E0277
/// # use warpwright_cuda::types::Out;
/// let forged = Out::<u32>::from(0x1000 as *mut u32);
/// ```
/// ```compile_fail,E0133
/// # use warpwright_cuda::types::Out;
/// let forged = Out::<u32>::new(0x1000 as *mut u32);
/// ```
#[repr(transparent)]
#[derive(Debug)]
pub struct Out<T>(*mut T);

/// The address of a value of the client.
///
/// ```compile_fail,E0277
/// # use warpwright_cuda::types::In;
/// let forged = In::<u32>::from(&1);
/// ```
/// ```compile_fail,E0133
/// # use warpwright_cuda::types::In;
/// let forged = In::<u32>::new(0x1000 as *const u32);
/// ```
/// ```compile_fail,E0423
/// # use warpwright_cuda::types::In;
/// let forged = In(0x1000 as *const u32);
/// ```
#[repr(transparent)]
#[derive(Debug)]
pub struct In<T>(*const T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T> Out<T> {
    /// # Safety
    ///
    /// As long as this or a copy of it is used, the pointer must be null, or valid for what the interface says is
    /// written and read there: one value, or as many as the count beside it.
    pub const unsafe fn new(pointer: *mut T) -> Self {
        Out(pointer)
    }

    /// The null pointer.
    pub const fn null() -> Self {
        Out(std::ptr::null_mut())
    }

    /// The same address, for a value of another type.
    ///
    /// # Safety
    ///
    /// The interface must say that the address is valid for that type.
    pub(crate) unsafe fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }

    /// The address of one of several values.
    ///
    /// # Safety
    ///
    /// The client must have declared more than `index` values.
    pub(crate) unsafe fn at(self, index: usize) -> Self {
        Out(self.0.wrapping_add(index))
    }

    /// The client's value before the call, for a parameter that is both input and output.
    pub(crate) fn given(self) -> In<T> {
        In(self.0)
    }

    /// Whether it is null.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Checks that it is not null.
    pub(crate) fn required(self) -> Result<Self> {
        if self.is_null() { Err(Status::INVALID_VALUE) } else { Ok(self) }
    }

    /// Writes the value; the pointer must not be null.
    pub(crate) fn set(self, value: T) -> Result<()> {
        self.required()?.set_if(value);
        Ok(())
    }

    /// Writes the value, unless the pointer is null.
    pub(crate) fn set_if(self, value: T) {
        if !self.is_null() {
            // SAFETY: the client's pointer, which the interface says is good for one value. C aligns its values;
            // a client in another language may not.
            unsafe { self.0.write_unaligned(value) }
        }
    }

    /// Writes several values, one after the other.
    pub(crate) fn set_all(self, values: impl IntoIterator<Item = T>) -> Result<()> {
        self.required()?;
        for (i, value) in values.into_iter().enumerate() {
            // SAFETY: as above, for as many values as the client has said that there is room for: callers bound
            // `values` by that.
            unsafe { self.0.add(i).write_unaligned(value) }
        }
        Ok(())
    }
}

impl Out<c_char> {
    /// Writes a text and its terminating zero, cut to `room` bytes.
    pub(crate) fn set_text(self, text: &str, room: usize) -> Result<()> {
        if room == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let kept = text.bytes().take(room - 1).map(|byte| byte as c_char);
        self.set_all(kept.chain([0]))
    }
}

impl<T> In<T> {
    /// # Safety
    ///
    /// As long as this or a copy of it is used, the pointer must be null, or valid for what the interface says is read
    /// there: one value, or as many as the count beside it.
    pub const unsafe fn new(pointer: *const T) -> Self {
        In(pointer)
    }

    /// The null pointer.
    pub const fn null() -> Self {
        In(std::ptr::null())
    }

    /// The same address, with a value of another type.
    ///
    /// # Safety
    ///
    /// The interface must say that the address has a value of that type.
    pub(crate) unsafe fn cast<U>(self) -> In<U> {
        In(self.0.cast())
    }

    /// The address of one of several values.
    ///
    /// # Safety
    ///
    /// The client must have declared more than `index` values.
    pub(crate) unsafe fn at(self, index: usize) -> Self {
        In(self.0.wrapping_add(index))
    }

    /// Whether it is null.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The pointer itself.
    pub(crate) fn as_ptr(self) -> *const T {
        self.0
    }
}

impl<T: Copy> In<T> {
    /// The value; the pointer must not be null.
    pub(crate) fn get(self) -> Result<T> {
        self.get_if().ok_or(Status::INVALID_VALUE)
    }

    /// The value, unless the pointer is null.
    pub(crate) fn get_if(self) -> Option<T> {
        // SAFETY: the client's pointer, which the interface says holds a value of this type. Types of the interface
        // are integers, pointers and structs of them, which may have any bits.
        (!self.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }

    /// Several values. The pointer may be null if there are none.
    pub(crate) fn get_all(self, count: usize) -> Result<Vec<T>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        if self.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let mut values = Vec::new();
        // The count is larger than any allocation.
        values.try_reserve_exact(count).map_err(|_| Status::INVALID_VALUE)?;
        // SAFETY: as above, for as many values as the client says that there are.
        values.extend((0..count).map(|i| unsafe { self.0.add(i).read_unaligned() }));
        Ok(values)
    }
}

impl In<u8> {
    /// Fills a buffer with the client's bytes. The pointer may be null if the buffer is empty.
    pub(crate) fn copy_to(self, bytes: &mut [u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: as above, for as many bytes as the client says that there are. They are copied by a pointer and not
        // lent, since others may change them meanwhile.
        unsafe { self.0.copy_to(bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }
}

/// A text of the client, which must be UTF-8 and end with a zero byte.
pub(crate) fn text(pointer: In<c_char>) -> Result<String> {
    if pointer.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the client's pointer, which the interface says leads to a text with its end.
    let text = unsafe { CStr::from_ptr(pointer.0) };
    text.to_str().map(str::to_owned).map_err(|_| Status::INVALID_VALUE)
}
