//! The device of a thread, and its context.
//!
//! A thread's device is 0 until it sets another. Its first call that needs a context retains the device's primary
//! context, once for the process, and makes it current. A context that the client has made current through the driver
//! is used as it is.

use crate::abi::{Handle, Stream};
use crate::driver::{driver, initialized};
use crate::error::{Error, Result};
use crate::lock;
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, OnceLock};

/// The meaning of stream 0 for a variant of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultStream {
    /// The legacy default stream.
    Legacy,
    /// The calling thread's default stream.
    PerThread,
}

impl DefaultStream {
    /// The actual stream, never null.
    pub(crate) fn resolve(self, stream: Stream) -> Stream {
        match self {
            _ if !stream.is_null() => stream,
            DefaultStream::Legacy => Stream::LEGACY,
            DefaultStream::PerThread => Stream::PER_THREAD,
        }
    }
}

#[repr(C)]
struct DlInfo {
    file: *const std::ffi::c_char,
    base: *mut c_void,
    symbol: *const std::ffi::c_char,
    address: *mut c_void,
}

unsafe extern "C" {
    fn dladdr(address: *const c_void, info: *mut DlInfo) -> c_int;
}

/// The major version of CUDA whose layouts and signatures the library follows: that of the name under which the
/// process has loaded it, and otherwise the latest.
pub(crate) fn major() -> c_int {
    static MAJOR: OnceLock<c_int> = OnceLock::new();
    *MAJOR.get_or_init(|| {
        let mut info = DlInfo {
            file: std::ptr::null(),
            base: std::ptr::null_mut(),
            symbol: std::ptr::null(),
            address: std::ptr::null_mut(),
        };
        let here: fn() -> c_int = major;
        // SAFETY: the address of a function of this library, and a place for what the loader knows of it.
        let found = unsafe { dladdr(here as *const c_void, &raw mut info) } != 0 && !info.file.is_null();
        // SAFETY: the loader keeps the name as long as the library is loaded.
        let file = found.then(|| unsafe { CStr::from_ptr(info.file) }.to_string_lossy());
        let name = file.as_deref().and_then(|file| Path::new(file).file_name()?.to_str());
        let is_12 = name.is_some_and(|name| name.starts_with("libcudart.so.12"));
        if is_12 { 12 } else { 13 }
    })
}

/// The version that the runtime reports.
pub(crate) fn version() -> c_int {
    if major() == 12 { 12090 } else { 13000 }
}

thread_local! {
    /// The thread's device, and the number of resets that it has seen.
    static DEVICE: Cell<c_int> = const { Cell::new(0) };
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

/// The number of resets of devices.
static RESETS: AtomicU64 = AtomicU64::new(0);

/// A primary context that was retained.
struct Primary {
    device: c_int,
    context: usize,
    /// Whether it still is: a reset ends it.
    is_retained: bool,
}

static PRIMARIES: Mutex<Vec<Primary>> = Mutex::new(Vec::new());

/// The context that is current to the thread; null if there is none.
fn current() -> Result<Handle> {
    let mut context: Handle = std::ptr::null_mut();
    driver!(cuCtxGetCurrent(&raw mut context))?;
    Ok(context)
}

/// Makes sure that a context is current to the thread.
pub(crate) fn context() -> Result<()> {
    initialized()?;
    let context = current()?;
    let resets = RESETS.load(SeqCst);
    if !context.is_null() && SEEN.get() == resets {
        return Ok(());
    }
    SEEN.set(resets);
    let ended = |primary: &Primary| primary.context == context.addr() && !primary.is_retained;
    if context.is_null() || lock(&PRIMARIES).iter().any(ended) {
        return enter(DEVICE.get());
    }
    Ok(())
}

/// The primary context of a device, which is retained once.
pub(crate) fn primary(device: c_int) -> Result<Handle> {
    initialized()?;
    let mut primaries = lock(&PRIMARIES);
    let known = primaries.iter().find(|primary| primary.device == device && primary.is_retained);
    if let Some(primary) = known {
        return Ok(std::ptr::with_exposed_provenance_mut(primary.context));
    }
    let mut context: Handle = std::ptr::null_mut();
    driver!(cuDevicePrimaryCtxRetain(&raw mut context, handle(device)?))?;
    primaries.retain(|primary| primary.device != device || primary.context != context.addr());
    primaries.push(Primary { device, context: context.expose_provenance(), is_retained: true });
    Ok(context)
}

/// Makes the primary context of a device current to the thread.
pub(crate) fn enter(device: c_int) -> Result<()> {
    driver!(cuCtxSetCurrent(primary(device)?))?;
    DEVICE.set(device);
    Ok(())
}

/// Resets the thread's device: its context ends, with everything in it, and the next call makes another.
pub(crate) fn reset() -> Result<()> {
    let device = device()?;
    driver!(cuDevicePrimaryCtxReset_v2(handle(device)?))?;
    lock(&PRIMARIES)
        .iter_mut()
        .filter(|primary| primary.device == device)
        .for_each(|primary| primary.is_retained = false);
    RESETS.fetch_add(1, SeqCst);
    Ok(())
}

/// The driver's handle of a device.
pub(crate) fn handle(device: c_int) -> Result<c_int> {
    initialized()?;
    let mut handle: c_int = 0;
    driver!(cuDeviceGet(&raw mut handle, device)).map_err(|error| match error {
        Error::INVALID_VALUE => Error::INVALID_DEVICE,
        error => error,
    })?;
    Ok(handle)
}

/// The thread's device: that of the current context, or the one that was set.
pub(crate) fn device() -> Result<c_int> {
    initialized()?;
    let mut device: c_int = DEVICE.get();
    if !current()?.is_null() && driver!(cuCtxGetDevice(&raw mut device)).is_err() {
        device = DEVICE.get();
    }
    Ok(device)
}
