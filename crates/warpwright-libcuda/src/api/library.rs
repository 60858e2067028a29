//! Libraries, code that is not tied to a context, and their kernels.

use super::entries;
use super::module::read_file;
use crate::code::{self, Image, KERNELS, LIBRARIES, Library, MODULES, Options};
use crate::state::{current, state};
use crate::types::{
    CUdevice, CUdeviceptr, CUfunc_cache, CUfunction, CUfunction_attribute, CUjit_option, CUkernel, CUlibrary,
    CUlibraryOption, CUmodule, In, Out, Status, text,
};
use std::ffi::{c_char, c_int, c_uint};

entries! {
    /// Reads code. Options for the library say how long the client keeps it; it is copied here.
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
        library_options.get_all(library_count as usize)?;
        let _ = library_values;
        let mut options = Options::read(count, options, values)?;
        library.set(Library::load(Image::at(code)?, &mut options)?)
    }

    /// The same from a file.
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
        library_options.get_all(library_count as usize)?;
        let _ = library_values;
        let mut options = Options::read(count, options, values)?;
        library.set(Library::load(Image::of(&read_file(file)?)?, &mut options)?)
    }

    /// Unloads a library from all contexts.
    fn cuLibraryUnload(library: CUlibrary) {
        state()?;
        code::library::unload(library)
    }

    /// The kernel of that name.
    fn cuLibraryGetKernel(kernel: Out<CUkernel>, library: CUlibrary, name: In<c_char>) {
        kernel.required()?;
        let library = LIBRARIES.get(library.0)?;
        kernel.set(library.kernel(&text(name)?)?.handle())
    }

    /// How many kernels a library has.
    fn cuLibraryGetKernelCount(count: Out<c_uint>, library: CUlibrary) {
        count.required()?;
        count.set(LIBRARIES.get(library.0)?.kernels().len() as c_uint)
    }

    /// The first kernels of a library.
    fn cuLibraryEnumerateKernels(kernels: Out<CUkernel>, count: c_uint, library: CUlibrary) {
        let library = LIBRARIES.get(library.0)?;
        kernels.set_all(library.kernels().iter().map(|kernel| kernel.handle()).take(count as usize))
    }

    /// The library's module in the current context.
    fn cuLibraryGetModule(module: Out<CUmodule>, library: CUlibrary) {
        module.required()?;
        let library = LIBRARIES.get(library.0)?;
        module.set(library.module(&current()?)?)
    }

    /// Address and size, in the current context, of the variable of that name, each if the client wants it.
    fn cuLibraryGetGlobal(address: Out<CUdeviceptr>, bytes: Out<usize>, library: CUlibrary, name: In<c_char>) {
        let name = text(name)?;
        let module = LIBRARIES.get(library.0)?.module(&current()?)?;
        let (at, size) = MODULES.get(module.0)?.variable(&name)?;
        address.set_if(at);
        bytes.set_if(size);
        Ok(())
    }

    /// PTX that is executed here has no managed variables.
    fn cuLibraryGetManaged(address: Out<CUdeviceptr>, bytes: Out<usize>, library: CUlibrary, name: In<c_char>) {
        let _ = (address, bytes);
        LIBRARIES.get(library.0)?;
        text(name)?;
        Err(Status::NOT_FOUND)
    }

    /// The function that a kernel is in the current context.
    fn cuKernelGetFunction(function: Out<CUfunction>, kernel: CUkernel) {
        function.required()?;
        let context = current()?;
        function.set(KERNELS.get(kernel.0)?.function(&context)?.handle())
    }

    /// The library of a kernel.
    fn cuKernelGetLibrary(library: Out<CUlibrary>, kernel: CUkernel) {
        library.required()?;
        library.set(KERNELS.get(kernel.0)?.library()?.handle())
    }

    /// The name of a kernel, good until its library is unloaded.
    fn cuKernelGetName(name: Out<*const c_char>, kernel: CUkernel) {
        name.required()?;
        name.set(KERNELS.get(kernel.0)?.c_name().as_ptr())
    }

    /// An attribute of a kernel on a device.
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

    /// What it prefers makes no difference here.
    fn cuKernelSetCacheConfig(kernel: CUkernel, config: CUfunc_cache, device: CUdevice) {
        let device = state()?.device(device)?;
        KERNELS.get(kernel.0)?.function_on(device)?;
        config.check()
    }

    /// Place and size of a parameter, in bytes.
    fn cuKernelGetParamInfo(kernel: CUkernel, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        offset.required()?;
        let function = KERNELS.get(kernel.0)?.function(&current()?)?;
        let param = function.param(index)?;
        bytes.set_if(param.bytes as usize);
        offset.set(param.offset as usize)
    }

    /// How many parameters a kernel has.
    fn cuKernelGetParamCount(kernel: CUkernel, count: Out<usize>) {
        count.required()?;
        count.set(KERNELS.get(kernel.0)?.function(&current()?)?.kernel().params.len())
    }
}
