//! Modules, and the linker.

use super::entries;
use crate::code::{self, Image, LINKS, Link, Module, Options};
use crate::state::current;
use crate::types::{
    CUdeviceptr, CUfunction, CUjit_option, CUjitInputType, CUlinkState, CUmodule, CUmoduleLoadingMode, In,
    Out, Result, Status, text,
};
use std::ffi::{c_char, c_uint};

entries! {
    /// Compiles the code in a file, and loads it into the current context.
    fn cuModuleLoad(module: Out<CUmodule>, file: In<c_char>) {
        module.required()?;
        let context = current()?;
        let image = Image::of(&read_file(file)?, &text(file)?)?;
        module.set(Module::load(&context, &image, &mut Options::default(), None)?)
    }

    /// Compiles code, and loads it into the current context. Of a fat binary that is the best PTX.
    fn cuModuleLoadData = cuModuleLoadFatBinary(module: Out<CUmodule>, code: In<u8>) {
        module.required()?;
        let context = current()?;
        module.set(Module::load(&context, &Image::at(code)?, &mut Options::default(), None)?)
    }

    /// The same with options for the compiler.
    fn cuModuleLoadDataEx(
        module: Out<CUmodule>,
        code: In<u8>,
        count: c_uint,
        options: In<CUjit_option>,
        values: Out<usize>,
    ) {
        module.required()?;
        let context = current()?;
        let mut options = Options::read(count, options, values)?;
        module.set(Module::load(&context, &Image::at(code)?, &mut options, None)?)
    }

    /// Unloads a module. Launches that were issued go on.
    fn cuModuleUnload(module: CUmodule) {
        code::unload(module)
    }

    /// Returns the loading mode: code is compiled when it is loaded.
    fn cuModuleGetLoadingMode(mode: Out<CUmoduleLoadingMode>) {
        crate::state::state()?;
        mode.set(CUmoduleLoadingMode::EAGER)
    }

    /// Returns the kernel of that name.
    fn cuModuleGetFunction(function: Out<CUfunction>, module: CUmodule, name: In<c_char>) {
        function.required()?;
        let module = code::module(module)?;
        function.set(module.function(&text(name)?)?.handle)
    }

    /// Returns the number of kernels of a module.
    fn cuModuleGetFunctionCount(count: Out<c_uint>, module: CUmodule) {
        count.required()?;
        count.set(code::module(module)?.functions.len() as c_uint)
    }

    /// Returns the first kernels of a module.
    fn cuModuleEnumerateFunctions(functions: Out<CUfunction>, count: c_uint, module: CUmodule) {
        let module = code::module(module)?;
        functions.set_all(module.functions.iter().map(|function| function.handle).take(count as usize))
    }

    /// Returns address and size of the variable of that name, each if the client wants it.
    fn cuModuleGetGlobal_v2(address: Out<CUdeviceptr>, bytes: Out<usize>, module: CUmodule, name: In<c_char>) {
        one_wanted(address, bytes)?;
        let (at, size) = code::module(module)?.variable(&text(name)?)?;
        address.set_if(at);
        bytes.set_if(size);
        Ok(())
    }

    /// Creates a linker. It uses the buffers and values of the options until it is destroyed.
    fn cuLinkCreate_v2 = cuLinkCreate(count: c_uint, options: In<CUjit_option>, values: Out<usize>, link: Out<CUlinkState>) {
        link.required()?;
        link.set(Link::create(Options::of_linker(count, options, values)?)?)
    }

    /// Adds code to a linker.
    fn cuLinkAddData_v2 = cuLinkAddData(
        link: CUlinkState,
        kind: CUjitInputType,
        data: In<u8>,
        bytes: usize,
        name: In<c_char>,
        count: c_uint,
        options: In<CUjit_option>,
        values: Out<usize>,
    ) {
        let link = LINKS.get(link.0)?;
        // They say how this input is compiled, which nothing here depends on.
        Options::check_input(count, options, values)?;
        let name = if name.is_null() { String::new() } else { text(name)? };
        let mut copy = vec![0; bytes];
        data.copy_to(&mut copy)?;
        link.add(kind, &copy, &name)
    }

    /// Adds the code of a file to a linker.
    fn cuLinkAddFile_v2 = cuLinkAddFile(
        link: CUlinkState,
        kind: CUjitInputType,
        file: In<c_char>,
        count: c_uint,
        options: In<CUjit_option>,
        values: Out<usize>,
    ) {
        let link = LINKS.get(link.0)?;
        Options::check_input(count, options, values)?;
        link.add(kind, &read_file(file)?, &text(file)?)
    }

    /// Links, and returns the image, valid until the linker is destroyed.
    fn cuLinkComplete(link: CUlinkState, image: Out<*const u8>, bytes: Out<usize>) {
        image.required()?;
        let linked = LINKS.get(link.0)?.complete()?;
        bytes.set_if(linked.len());
        image.set(linked.as_ptr())
    }

    /// Destroys a linker and its image.
    fn cuLinkDestroy(link: CUlinkState) {
        LINKS.remove(link.0)?;
        Ok(())
    }
}

/// Checks that the client wants the address or the size of a variable.
pub(super) fn one_wanted(address: Out<CUdeviceptr>, bytes: Out<usize>) -> Result<()> {
    if address.is_null() && bytes.is_null() { Err(Status::INVALID_VALUE) } else { Ok(()) }
}

/// The bytes of a client's file.
pub(crate) fn read_file(name: In<c_char>) -> Result<Vec<u8>> {
    let name = text(name)?;
    std::fs::read(&name).map_err(|error| {
        crate::report::log::misuse(&format_args!("{name}: {error}"));
        Status::FILE_NOT_FOUND
    })
}
