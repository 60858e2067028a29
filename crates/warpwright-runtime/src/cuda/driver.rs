//! A CUDA device as a backend.

use super::context::Context;
use super::error::CudaError;
use super::library::{self, Library};
use crate::error::Result;
use cudarc::driver::CudaContext;
use cudarc::driver::result::DriverError;
use std::sync::Arc;

/// A CUDA device with what it needs to run.
pub(crate) struct Driver {
    context: Arc<Context>,
    library: Library,
}

impl Driver {
    /// The device of that ordinal, in its primary context.
    pub(crate) fn open(ordinal: u32) -> Result<Self> {
        let library = library::open().map_err(Box::new)?;
        let count =
            CudaContext::device_count().map_err(|DriverError(result)| called("cuDeviceGetCount", result))?;
        let found = u32::try_from(count).unwrap_or(0);
        if ordinal >= found {
            return Err(Box::new(CudaError::NoDevice { ordinal, found }).into());
        }
        let context = CudaContext::new(ordinal as usize);
        let context = context.map_err(|DriverError(result)| called("cuDevicePrimaryCtxRetain", result))?;
        Ok(Driver { context: Arc::new(Context::new(context)), library })
    }

    /// The context, which everything that lives in it holds.
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The driver's library.
    pub(crate) fn library(&self) -> Library {
        self.library
    }
}

fn called(call: &'static str, result: cudarc::driver::sys::CUresult) -> Box<CudaError> {
    Box::new(CudaError::Call(super::error::CallError::new(call, result)))
}
