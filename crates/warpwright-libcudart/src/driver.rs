//! The driver: `libcuda.so.1`, as the loader finds it, and its functions by their exported names.

use crate::error::{Error, Result};
use crate::state::major;
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The driver's library; `None` if there is none.
fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    // SAFETY: loading a driver has no conditions; it stays loaded.
    LIBRARY.get_or_init(|| unsafe { Library::new("libcuda.so.1") }.ok()).as_ref()
}

/// A function of the driver.
pub(crate) struct Function {
    name: &'static str,
    address: AtomicPtr<c_void>,
}

impl Function {
    pub(crate) const fn new(name: &'static str) -> Self {
        Function { name, address: AtomicPtr::new(null_mut()) }
    }

    /// Its address, which is not null.
    pub(crate) fn address(&self) -> Result<*mut c_void> {
        let known = self.address.load(Relaxed);
        if !known.is_null() {
            return Ok(known);
        }
        let library = library().ok_or(Error::INSUFFICIENT_DRIVER)?;
        // SAFETY: the symbol is looked at and not used here, and its library stays.
        let address =
            unsafe { library.get::<*mut c_void>(self.name).ok().and_then(|symbol| symbol.try_as_raw_ptr()) };
        let address =
            address.filter(|address| !address.is_null()).ok_or(Error::CALL_REQUIRES_NEWER_DRIVER)?;
        self.address.store(address, Relaxed);
        Ok(address)
    }
}

/// Calls a function of the driver: `driver!(cuMemFree_v2(address))` is a `Result<()>`. The arguments must have the types
/// that the driver's interface declares.
macro_rules! driver {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        static FUNCTION: $crate::driver::Function = $crate::driver::Function::new(stringify!($name));
        FUNCTION.address().and_then(|address| {
            // SAFETY: the driver declares the function with these parameters.
            let function: unsafe extern "C-unwind" fn($($crate::driver::any!($arg)),*) -> ::std::ffi::c_int =
                unsafe { ::std::mem::transmute(address) };
            // SAFETY: pointers among the arguments are the client's, who promises what both interfaces ask of them
            // alike, or lead to values of the caller.
            $crate::error::Error::check(unsafe { function($($arg),*) })
        })
    }};
}

/// The functions by which our own driver learns which calls are the program's.
struct Announced {
    begin: unsafe extern "C" fn(),
    end: unsafe extern "C" fn(*const c_char, c_int, *const c_char),
}

fn announced() -> Option<&'static Announced> {
    static ANNOUNCED: OnceLock<Option<Announced>> = OnceLock::new();
    let find = || {
        let library = library()?;
        // SAFETY: the functions have these types.
        unsafe {
            let begin = *library.get("warpwrightApiBegin").ok()?;
            Some(Announced { begin, end: *library.get("warpwrightApiEnd").ok()? })
        }
    };
    ANNOUNCED.get_or_init(find).as_ref()
}

/// Runs the body of a function of the runtime. Our own driver is told that what it calls is not the program's, and what
/// the program's call comes to.
pub(crate) fn announce(function: &CStr, body: impl FnOnce() -> c_int) -> c_int {
    let Some(announced) = announced() else { return body() };
    // SAFETY: it takes nothing.
    unsafe { (announced.begin)() };
    let code = body();
    // SAFETY: the texts have their ends.
    unsafe { (announced.end)(function.as_ptr(), code, crate::error::name(code).as_ptr()) };
    code
}

/// A type to be inferred, for each argument.
macro_rules! any {
    ($arg:expr) => {
        _
    };
}

/// Calls the variant of a function of the driver for the legacy default stream, or for the thread's.
macro_rules! driver_by {
    ($default:expr, $legacy:ident, $per_thread:ident, ($($arg:expr),* $(,)?)) => {
        match $default {
            $crate::state::DefaultStream::Legacy => $crate::driver::driver!($legacy($($arg),*)),
            $crate::state::DefaultStream::PerThread => $crate::driver::driver!($per_thread($($arg),*)),
        }
    };
}

pub(crate) use {any, driver, driver_by};

/// The driver's version, 1000 · major + 10 · minor; 0 if there is no driver.
pub(crate) fn version() -> Result<c_int> {
    let mut version: c_int = 0;
    match driver!(cuDriverGetVersion(&raw mut version)) {
        Err(Error::INSUFFICIENT_DRIVER) => Ok(0),
        result => result.map(|()| version),
    }
}

/// Initialises the driver, and checks that it is no older than the interface of this library.
pub(crate) fn initialized() -> Result<()> {
    static INITIALIZED: OnceLock<Result<()>> = OnceLock::new();
    *INITIALIZED.get_or_init(|| {
        let version = version()?;
        if version / 1000 < major() {
            if version > 0 {
                crate::log::note(&format_args!(
                    "the program uses CUDA {}, and the driver says that it is {}.{}: `warpwright exec --driver` sets it",
                    major(),
                    version / 1000,
                    version % 1000 / 10
                ));
            }
            return Err(Error::INSUFFICIENT_DRIVER);
        }
        driver!(cuInit(0u32))
    })
}
