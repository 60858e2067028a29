//! Pointers to the memory of clients of an interface in C.
//!
//! They are parameters of exported functions, or values in memory that such a parameter points to. The `unsafe` code
//! here relies on what the interface says of them: null, or valid for one value, or for several where there is a count.
//! **Any other pointer to follow is made by an `unsafe` function of this crate.**
//!
//! What is null and must not be, or is no valid number of values, is an error of the interface
//! ([`InterfaceError::INVALID_VALUE`]).

use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::marker::PhantomData;

/// The errors of an interface, one of which says that a pointer or a number is not valid.
pub trait InterfaceError {
    /// That error.
    const INVALID_VALUE: Self;
}

/// The address to which the client wants a value written; `E` are the errors of the interface.
///
/// ```compile_fail,E0277
/// # use warpwright_ffi::Out;
/// let forged = Out::<u32, ()>::from(0x1000 as *mut u32);
/// ```
/// ```compile_fail,E0133
/// # use warpwright_ffi::Out;
/// let forged = Out::<u32, ()>::new(0x1000 as *mut u32);
/// ```
#[repr(transparent)]
pub struct Out<T, E>(*mut T, PhantomData<fn() -> E>);

/// The address of a value of the client; `E` are the errors of the interface.
///
/// ```compile_fail,E0277
/// # use warpwright_ffi::In;
/// let forged = In::<u32, ()>::from(&1);
/// ```
/// ```compile_fail,E0133
/// # use warpwright_ffi::In;
/// let forged = In::<u32, ()>::new(0x1000 as *const u32);
/// ```
/// ```compile_fail,E0423
/// # use warpwright_ffi::In;
/// let forged: In<u32, ()> = In(0x1000 as *const u32);
/// ```
#[repr(transparent)]
pub struct In<T, E>(*const T, PhantomData<fn() -> E>);

impl<T, E> fmt::Debug for Out<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Out({:?})", self.0)
    }
}

impl<T, E> fmt::Debug for In<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "In({:?})", self.0)
    }
}

impl<T, E> Clone for Out<T, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, E> Copy for Out<T, E> {}

impl<T, E> Clone for In<T, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, E> Copy for In<T, E> {}

impl<T, E: InterfaceError> Out<T, E> {
    /// # Safety
    ///
    /// As long as this or a copy of it is used, the pointer must be null, or valid for what the interface says is
    /// written and read there: one value, or as many as the count beside it.
    pub const unsafe fn new(pointer: *mut T) -> Self {
        Out(pointer, PhantomData)
    }

    /// The null pointer.
    pub const fn null() -> Self {
        Out(std::ptr::null_mut(), PhantomData)
    }

    /// The same address, for a value of another type.
    ///
    /// # Safety
    ///
    /// The interface must say that the address is valid for that type.
    pub unsafe fn cast<U>(self) -> Out<U, E> {
        Out(self.0.cast(), PhantomData)
    }

    /// The address of one of several values.
    ///
    /// # Safety
    ///
    /// The client must have declared more than `index` values.
    pub unsafe fn at(self, index: usize) -> Self {
        Out(self.0.wrapping_add(index), PhantomData)
    }

    /// The client's value before the call, for a parameter that is both input and output.
    pub fn given(self) -> In<T, E> {
        In(self.0, PhantomData)
    }

    /// Whether it is null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The pointer itself.
    pub fn as_ptr(self) -> *mut T {
        self.0
    }

    /// Checks that it is not null.
    pub fn required(self) -> Result<Self, E> {
        if self.is_null() { Err(E::INVALID_VALUE) } else { Ok(self) }
    }

    /// Writes the value; the pointer must not be null.
    pub fn set(self, value: T) -> Result<(), E> {
        self.required()?.set_if(value);
        Ok(())
    }

    /// Writes the value, unless the pointer is null.
    pub fn set_if(self, value: T) {
        if !self.is_null() {
            // SAFETY: the client's pointer, which the interface says is good for one value. C aligns its values;
            // a client in another language may not.
            unsafe { self.0.write_unaligned(value) }
        }
    }

    /// Writes several values, one after the other.
    pub fn set_all(self, values: impl IntoIterator<Item = T>) -> Result<(), E> {
        self.required()?;
        for (i, value) in values.into_iter().enumerate() {
            // SAFETY: as above, for as many values as the client has said that there is room for: callers bound
            // `values` by that.
            unsafe { self.0.add(i).write_unaligned(value) }
        }
        Ok(())
    }
}

impl<E: InterfaceError> Out<c_char, E> {
    /// Writes a text and its terminating zero, cut to `room` bytes.
    pub fn set_text(self, text: &str, room: usize) -> Result<(), E> {
        if room == 0 {
            return Err(E::INVALID_VALUE);
        }
        let kept = text.bytes().take(room - 1).map(|byte| byte as c_char);
        self.set_all(kept.chain([0]))
    }
}

impl<T, E: InterfaceError> In<T, E> {
    /// # Safety
    ///
    /// As long as this or a copy of it is used, the pointer must be null, or valid for what the interface says is read
    /// there: one value, or as many as the count beside it.
    pub const unsafe fn new(pointer: *const T) -> Self {
        In(pointer, PhantomData)
    }

    /// The null pointer.
    pub const fn null() -> Self {
        In(std::ptr::null(), PhantomData)
    }

    /// The same address, with a value of another type.
    ///
    /// # Safety
    ///
    /// The interface must say that the address has a value of that type.
    pub unsafe fn cast<U>(self) -> In<U, E> {
        In(self.0.cast(), PhantomData)
    }

    /// The address of one of several values.
    ///
    /// # Safety
    ///
    /// The client must have declared more than `index` values.
    pub unsafe fn at(self, index: usize) -> Self {
        In(self.0.wrapping_add(index), PhantomData)
    }

    /// Whether it is null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The pointer itself.
    pub fn as_ptr(self) -> *const T {
        self.0
    }
}

impl<T: Copy, E: InterfaceError> In<T, E> {
    /// The value; the pointer must not be null.
    pub fn get(self) -> Result<T, E> {
        self.get_if().ok_or(E::INVALID_VALUE)
    }

    /// The value, unless the pointer is null.
    pub fn get_if(self) -> Option<T> {
        // SAFETY: the client's pointer, which the interface says holds a value of this type. Types of the interface
        // are integers, pointers and structs of them, which may have any bits.
        (!self.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }

    /// Several values. The pointer may be null if there are none.
    pub fn get_all(self, count: usize) -> Result<Vec<T>, E> {
        if count == 0 {
            return Ok(Vec::new());
        }
        if self.is_null() {
            return Err(E::INVALID_VALUE);
        }
        let mut values = Vec::new();
        // The count is larger than any allocation.
        values.try_reserve_exact(count).map_err(|_| E::INVALID_VALUE)?;
        // SAFETY: as above, for as many values as the client says that there are.
        values.extend((0..count).map(|i| unsafe { self.0.add(i).read_unaligned() }));
        Ok(values)
    }
}

impl<E: InterfaceError> In<u8, E> {
    /// Fills a buffer with the client's bytes. The pointer may be null if the buffer is empty.
    pub fn copy_to(self, bytes: &mut [u8]) -> Result<(), E> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.is_null() {
            return Err(E::INVALID_VALUE);
        }
        // SAFETY: as above, for as many bytes as the client says that there are. They are copied by a pointer and not
        // lent, since others may change them meanwhile.
        unsafe { self.0.copy_to(bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }
}

impl<E: InterfaceError> In<c_char, E> {
    /// A copy of a text.
    pub fn text(self) -> Result<CString, E> {
        if self.is_null() {
            return Err(E::INVALID_VALUE);
        }
        // SAFETY: the client's pointer, which the interface says leads to a text with its end.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_owned())
    }
}
