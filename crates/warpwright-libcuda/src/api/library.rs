//! Libraries, which are code without a context, and their kernels.

use super::entries;
use super::module::{one_wanted, read_file};
use crate::code::{self, Image, KERNELS, LIBRARIES, Library, MODULES, Options};
use crate::state::{current, state};
use crate::types::{
    CUdevice, CUdeviceptr, CUfunc_cache, CUfunction, CUfunction_attribute, CUjit_option, CUkernel, CUlibrary,
    CUlibraryOption, CUmodule, In, Out, Result, Status, text,
};
use std::ffi::{c_char, c_int, c_uint};

/// The options of a library: a table for the runtime, and that the client keeps the code.
const FUNCTION_AND_DATA_TABLE: CUlibraryOption = 0;
const BINARY_IS_PRESERVED: CUlibraryOption = 1;

/// Checks the options of a library, which have no effect.
fn check_options(
    options: In<CUlibraryOption>,
    values: In<usize>,
    count: c_uint,
    is_in_memory: bool,
) -> Result<()> {
    let options = options.get_all(count as usize)?;
    if count > 0 && values.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    let is_known = |option: &CUlibraryOption| match *option {
        FUNCTION_AND_DATA_TABLE => true,
        // The client cannot keep the contents of a file.
        BINARY_IS_PRESERVED => is_in_memory,
        _ => false,
    };
    if options.iter().all(is_known) { Ok(()) } else { Err(Status::INVALID_VALUE) }
}

/// For functions in which a null handle is an invalid value.
fn not_null(kernel: CUkernel) -> Result<CUkernel> {
    if kernel == CUkernel::NULL { Err(Status::INVALID_VALUE) } else { Ok(kernel) }
}

entries! {
    /// Loads a library from code. Options say how long the client keeps the code, which is copied here.
    fn cuLibraryLoadData(
        library: Out<CUlibrary>,
        code: In<u8>,
        options: In<CUjit_option>,
        values: Out<usize>,
        count: c_uint,
        library_options: In<CUlibraryOption>,
        library_values: In<usize>,
        library_count: c_uint,
    ) {
        library.required()?;
        check_options(library_options, library_values, library_count, true)?;
        let mut options = Options::read(count, options, values)?;
        library.set(Library::load(Image::at(code)?, &mut options)?)
    }

    /// Loads a library from a file.
    fn cuLibraryLoadFromFile(
        library: Out<CUlibrary>,
        file: In<c_char>,
        options: In<CUjit_option>,
        values: Out<usize>,
        count: c_uint,
        library_options: In<CUlibraryOption>,
        library_values: In<usize>,
        library_count: c_uint,
    ) {
        library.required()?;
        check_options(library_options, library_values, library_count, false)?;
        let mut options = Options::read(count, options, values)?;
        library.set(Library::load(Image::of(&read_file(file)?, &text(file)?)?, &mut options)?)
    }

    /// Unloads a library from all contexts.
    fn cuLibraryUnload(library: CUlibrary) {
        state()?;
        code::library::unload(library)
    }

    /// Returns the kernel of that name.
    fn cuLibraryGetKernel(kernel: Out<CUkernel>, library: CUlibrary, name: In<c_char>) {
        kernel.required()?;
        let library = LIBRARIES.get(library.0)?;
        kernel.set(library.kernel(&text(name)?)?.handle)
    }

    /// Returns the number of kernels of a library.
    fn cuLibraryGetKernelCount(count: Out<c_uint>, library: CUlibrary) {
        count.required()?;
        count.set(LIBRARIES.get(library.0)?.kernels.len() as c_uint)
    }

    /// Returns the first kernels of a library.
    fn cuLibraryEnumerateKernels(kernels: Out<CUkernel>, count: c_uint, library: CUlibrary) {
        let library = LIBRARIES.get(library.0)?;
        kernels.set_all(library.kernels.iter().map(|kernel| kernel.handle).take(count as usize))
    }

    /// Returns the library's module in the current context.
    fn cuLibraryGetModule(module: Out<CUmodule>, library: CUlibrary) {
        module.required()?;
        let library = LIBRARIES.get(library.0)?;
        module.set(library.module(&current()?)?)
    }

    /// Returns address and size of the variable of that name in the current context, each if the client wants it.
    fn cuLibraryGetGlobal(address: Out<CUdeviceptr>, bytes: Out<usize>, library: CUlibrary, name: In<c_char>) {
        one_wanted(address, bytes)?;
        let name = text(name)?;
        let module = LIBRARIES.get(library.0)?.module(&current()?)?;
        let (at, size) = MODULES.get(module.0)?.variable(&name)?;
        address.set_if(at);
        bytes.set_if(size);
        Ok(())
    }

    /// Returns address and size of the managed variable of that name, each if the client wants it.
    fn cuLibraryGetManaged(address: Out<CUdeviceptr>, bytes: Out<usize>, library: CUlibrary, name: In<c_char>) {
        one_wanted(address, bytes)?;
        let name = text(name)?;
        let module = LIBRARIES.get(library.0)?.module(&current()?)?;
        let (at, size) = MODULES.get(module.0)?.managed(&name)?;
        address.set_if(at);
        bytes.set_if(size);
        Ok(())
    }

    /// Returns the function of a kernel in the current context.
    fn cuKernelGetFunction(function: Out<CUfunction>, kernel: CUkernel) {
        function.required()?;
        let context = current()?;
        function.set(KERNELS.get(kernel.0)?.function(&context)?.handle)
    }

    /// Returns the library of a kernel.
    fn cuKernelGetLibrary(library: Out<CUlibrary>, kernel: CUkernel) {
        library.required()?;
        library.set(KERNELS.get(kernel.0)?.library()?.handle)
    }

    /// Returns the name of a kernel, valid until its library is unloaded.
    fn cuKernelGetName(name: Out<*const c_char>, kernel: CUkernel) {
        name.required()?;
        name.set(KERNELS.get(not_null(kernel)?.0)?.c_name.as_ptr())
    }

    /// Returns an attribute of a kernel on a device.
    fn cuKernelGetAttribute(value: Out<c_int>, attribute: CUfunction_attribute, kernel: CUkernel, device: CUdevice) {
        value.required()?;
        let device = state()?.device(device)?;
        value.set(KERNELS.get(kernel.0)?.function_on(device)?.attribute(attribute)?)
    }

    /// Sets an attribute of a kernel on a device.
    fn cuKernelSetAttribute(attribute: CUfunction_attribute, value: c_int, kernel: CUkernel, device: CUdevice) {
        let device = state()?.device(device)?;
        KERNELS.get(kernel.0)?.function_on(device)?.set_attribute(attribute, value)
    }

    /// Sets the preferred cache configuration, which has no effect.
    fn cuKernelSetCacheConfig(kernel: CUkernel, config: CUfunc_cache, device: CUdevice) {
        let device = state()?.device(device)?;
        KERNELS.get(kernel.0)?.function_on(device)?;
        config.check()
    }

    /// Returns offset and size of a parameter, in bytes.
    fn cuKernelGetParamInfo(kernel: CUkernel, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        offset.required()?;
        let function = KERNELS.get(not_null(kernel)?.0)?.function(&current()?)?;
        let param = function.param(index)?;
        bytes.set_if(param.bytes as usize);
        offset.set(param.offset as usize)
    }

    /// Returns the number of parameters of a kernel.
    fn cuKernelGetParamCount(kernel: CUkernel, count: Out<usize>) {
        count.required()?;
        count.set(KERNELS.get(kernel.0)?.function(&current()?)?.kernel.params.len())
    }
}
