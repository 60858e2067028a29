//! The context of a device, and which thread it is current on.
//!
//! It is the device's primary context, which every library in the process shares. **Whoever calls the driver binds it
//! first** ([`Context::bind`]): what is current on a thread may be anybody's.

use super::error::{CallError, check};
use cudarc::driver::CudaContext;
use cudarc::driver::sys::{self, CUcontext, CUdevice, CUdevice_attribute};
use std::ptr::null_mut;
use std::sync::Arc;

/// The context of a device, as everything that lives in it holds it: modules, memory, streams, events.
pub(crate) struct Context {
    cuda: Arc<CudaContext>,
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

    /// The same as the bindings have it.
    pub(crate) fn cuda(&self) -> &Arc<CudaContext> {
        &self.cuda
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

/// An attribute of a device.
pub(crate) fn attribute(device: CUdevice, which: CUdevice_attribute) -> Result<i32, CallError> {
    let mut value = 0;
    // SAFETY: writes the value; a device that is none is an error.
    check("cuDeviceGetAttribute", unsafe { sys::cuDeviceGetAttribute(&mut value, which, device) })?;
    Ok(value)
}
