//! The context of a device, and which thread it is current on.
//!
//! It is the device's primary context, which every library of the process shares. **Bind it before calling the driver**
//! ([`Context::bind`]): another library may have made its own context current on the thread.

use super::error::{CallError, CudaError, check};
use super::info::device;
use super::sys::{self, CUcontext, CUdevice, CUdevice_attribute, CaptureMode as Mode, Status};
use cudarc::driver::CudaContext;
use cudarc::driver::result::DriverError;
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::Arc;

/// The context of a device, as everything that lives in it holds it: modules, memory, streams, events.
pub(crate) struct Context {
    pub(crate) cuda: Arc<CudaContext>,
}

impl Context {
    pub(crate) fn new(cuda: Arc<CudaContext>) -> Self {
        Context { cuda }
    }

    /// Makes it current on this thread.
    #[inline]
    pub(crate) fn bind(&self) -> Result<(), CallError> {
        let (mut current, own): (CUcontext, _) = (null_mut(), self.cuda.cu_ctx());
        // SAFETY: writes the handle.
        check("cuCtxGetCurrent", unsafe { sys::cuCtxGetCurrent(&mut current) })?;
        if current == own {
            return Ok(());
        }
        // SAFETY: the context lives as long as `self.cuda` does.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(own) })
    }

    /// The device's handle.
    pub(crate) fn device(&self) -> CUdevice {
        self.cuda.cu_device()
    }

    /// An attribute of the device.
    pub(crate) fn attribute(&self, which: CUdevice_attribute) -> Result<i32, CallError> {
        attribute(self.device(), which)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.bind().is_err() {
            // The bindings would ask the driver again, and may not know what it answers. It has nothing left to give back.
            std::mem::forget(self.cuda.clone());
        }
    }
}

/// The primary context of a device, as cudarc has it. The driver is called here first, because a result code that
/// cudarc does not know is undefined behaviour there: it only retains what exists already.
pub(crate) fn retain(ordinal: u32) -> Result<Arc<CudaContext>, CudaError> {
    /// One more use of a primary context.
    struct Retained(CUdevice);

    impl Drop for Retained {
        fn drop(&mut self) {
            // SAFETY: it was retained. An error cannot be reported.
            let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.0) };
        }
    }

    let (mut context, device) = (null_mut(), device(ordinal)?);
    // SAFETY: writes the handle.
    check("cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&mut context, device) })?;
    let _retained = Retained(device);
    // SAFETY: the context is there.
    check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(context) })?;
    let bound = CudaContext::new(ordinal as usize);
    Ok(bound
        .map_err(|DriverError(result)| CallError::new("cuDevicePrimaryCtxRetain", Status(result as u32)))?)
}

/// While this lives, captures of other libraries do not forbid the thread calls that may wait for a device. Otherwise
/// such a call fails and invalidates the capture, although it has nothing to do with the captured operations.
pub(crate) struct Unbound {
    /// What the thread's mode was.
    before: Mode,
    /// It is of this thread.
    _thread: PhantomData<*const ()>,
}

impl Unbound {
    pub(crate) fn new() -> Self {
        Unbound { before: exchange(Mode::RELAXED), _thread: PhantomData }
    }
}

impl Drop for Unbound {
    fn drop(&mut self) {
        exchange(self.before);
    }
}

/// Exchanges the thread's capture mode.
fn exchange(mut mode: Mode) -> Mode {
    // SAFETY: reads and writes the mode. Where the call fails nothing has changed, and the mode is what it was.
    let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) };
    mode
}

/// An attribute of a device.
pub(crate) fn attribute(device: CUdevice, which: CUdevice_attribute) -> Result<i32, CallError> {
    let mut value = 0;
    // SAFETY: writes the value; a device that is none is an error.
    check("cuDeviceGetAttribute", unsafe { sys::cuDeviceGetAttribute(&mut value, which, device) })?;
    Ok(value)
}
