//! A kernel of a module that the driver has loaded.

use crate::cuda::CallError;
use crate::cuda::error::check;
use crate::cuda::sys::{self, CUfunction, CUfunction_attribute, CUmodule, Status};
use crate::function::FunctionAttributes;
use std::ffi::CString;
use std::ptr::null_mut;

/// A kernel, which lives as long as its module.
pub(crate) struct Kernel {
    pub(crate) function: CUfunction,
    pub(crate) attributes: FunctionAttributes,
}

impl Kernel {
    /// The kernel of that name, of which the PTX declares these attributes. The module's context is current.
    pub(super) fn of(module: CUmodule, name: &str, declared: &FunctionAttributes) -> Result<Self, CallError> {
        // A name of the PTX has no zero; one that had would be of no kernel.
        let name = CString::new(name).unwrap_or_default();
        let mut function = null_mut();
        // SAFETY: writes the handle; the name ends with a zero.
        check("cuModuleGetFunction", unsafe {
            sys::cuModuleGetFunction(&mut function, module, name.as_ptr())
        })?;
        let mut kernel = Kernel { function, attributes: declared.clone() };
        let registers = kernel.ask(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?;
        let local = kernel.ask(CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?;
        let shared = kernel.ask(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        let threads = kernel.ask(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        let attributes = &mut kernel.attributes;
        attributes.registers = Some(registers);
        attributes.local_bytes = Some(local.into());
        // The compiler may add to the one, and take of the other where a thread has many registers.
        attributes.static_shared = attributes.static_shared.max(shared.into());
        attributes.max_threads_per_block = attributes.max_threads_per_block.min(threads);
        Ok(kernel)
    }

    fn ask(&self, attribute: CUfunction_attribute) -> Result<u32, CallError> {
        let mut value = 0;
        // SAFETY: writes the value; the kernel's module is loaded, and its context current.
        check("cuFuncGetAttribute", unsafe {
            sys::cuFuncGetAttribute(&mut value, attribute, self.function)
        })?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// Blocks that a multiprocessor holds; 0 where it has no such blocks.
    pub(super) fn occupancy(&self, threads: u32, dynamic_shared: u32) -> Result<u32, CallError> {
        let Ok(threads) = i32::try_from(threads) else { return Ok(0) };
        if threads == 0 || threads.unsigned_abs() > self.attributes.max_threads_per_block {
            return Ok(0);
        }
        let mut blocks = 0;
        // SAFETY: writes the number; the kernel's module is loaded, and its context current.
        let result = unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                self.function,
                threads,
                dynamic_shared as usize,
            )
        };
        match result {
            Status::INVALID_VALUE => Ok(0),
            result => {
                check("cuOccupancyMaxActiveBlocksPerMultiprocessor", result)?;
                Ok(u32::try_from(blocks).unwrap_or(0))
            }
        }
    }

    /// Allows launches that much dynamic shared memory.
    pub(super) fn allow_dynamic_shared(&self, bytes: u32) -> Result<(), CallError> {
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        // SAFETY: the kernel's module is loaded, and its context current.
        check("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(self.function, attribute, bytes) })
    }
}
