//! What the tests have in the place of NVIDIA's libraries: a compiler whose PTX is its options, and a linker whose
//! LTO-IR is PTX behind the magic number.
#![allow(non_snake_case, reason = "the interfaces' names")]

use std::ffi::{CStr, c_char, c_int};
use std::sync::{Mutex, PoisonError};

static TEXT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn text() -> std::sync::MutexGuard<'static, Vec<u8>> {
    TEXT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Joins texts.
unsafe fn joined(count: usize, texts: *const *const c_char) -> Vec<u8> {
    // SAFETY: there are that many texts.
    let texts = (0..count).map(|i| unsafe { CStr::from_ptr(texts.add(i).read()) }.to_bytes());
    texts.collect::<Vec<_>>().join(&b' ')
}

/// Keeps the options.
///
/// # Safety
///
/// There are that many options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCompileProgram(_: usize, count: c_int, options: *const *const c_char) -> c_int {
    // SAFETY: the caller says so.
    *text() = unsafe { joined(count as usize, options) };
    0
}

/// The size of the PTX.
///
/// # Safety
///
/// There is room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetPTXSize(_: usize, size: *mut usize) -> c_int {
    // SAFETY: the caller says so.
    unsafe { size.write(text().len()) };
    0
}

/// The PTX.
///
/// # Safety
///
/// There is room for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetPTX(_: usize, ptx: *mut u8) -> c_int {
    let text = text();
    // SAFETY: the caller says so.
    unsafe { ptx.copy_from(text.as_ptr(), text.len()) };
    0
}

/// Begins with the options as a comment.
///
/// # Safety
///
/// There are that many options, and room for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvJitLinkCreate(
    handle: *mut usize,
    count: u32,
    options: *const *const c_char,
) -> c_int {
    // SAFETY: the caller says so.
    unsafe {
        *text() = [b"// ", &joined(count as usize, options)[..], b"\n"].concat();
        handle.write(7);
    }
    0
}

/// Adds what stands behind the magic number.
///
/// # Safety
///
/// There are that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvJitLinkAddData(
    handle: usize,
    kind: u32,
    data: *const u8,
    size: usize,
    _: *const c_char,
) -> c_int {
    if (handle, kind) != (7, 3) {
        return 3;
    }
    // SAFETY: the caller says so.
    text().extend(unsafe { std::slice::from_raw_parts(data, size) }[4..].iter());
    0
}

/// Does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn nvJitLinkComplete(_: usize) -> c_int {
    0
}

/// The size of the PTX.
///
/// # Safety
///
/// There is room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvJitLinkGetLinkedPtxSize(_: usize, size: *mut usize) -> c_int {
    // SAFETY: the caller says so.
    unsafe { nvrtcGetPTXSize(0, size) }
}

/// The PTX.
///
/// # Safety
///
/// There is room for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvJitLinkGetLinkedPtx(_: usize, ptx: *mut u8) -> c_int {
    // SAFETY: the caller says so.
    unsafe { nvrtcGetPTX(0, ptx) }
}

/// Does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn nvJitLinkDestroy(_: usize) -> c_int {
    0
}
