//! Libraries and their kernels.

use crate::*;
use std::ffi::{CStr, c_char};

fn library() -> CUlibrary {
    let ptx = text(PTX);
    let code = input(ptx.as_ptr().cast::<u8>());
    out(|library| call!(cuLibraryLoadData(library, code, null(), nowhere(), 0, null(), null(), 0))).unwrap()
}

fn kernel(library: CUlibrary, name: &str) -> Result<CUkernel> {
    let name = text(name);
    out(|kernel| call!(cuLibraryGetKernel(kernel, library, chars(&name))))
}

#[test]
fn a_kernel_is_launched_by_either_handle_in_every_context() {
    let _first = Ctx::new();
    let library = library();
    let add = kernel(library, "add").unwrap();
    assert_eq!(kernel(library, "subtract"), Err(Status::NOT_FOUND));
    let (first_word, function_of_first) = (words(1), out(|f| call!(cuKernelGetFunction(f, add))).unwrap());
    {
        let _second = Ctx::new();
        let word = words(1);
        assert_eq!(launch(CUfunction(add.0), CUstream::NULL, &[word, 8]), OK);
        let function: CUfunction = out(|f| call!(cuKernelGetFunction(f, add))).unwrap();
        assert_ne!(function, function_of_first);
        assert_eq!(launch(function, CUstream::NULL, &[word, 1]), OK);
        assert_eq!(read(word, 1), [9]);
    }
    assert_eq!(launch(CUfunction(add.0), CUstream::NULL, &[first_word, 2]), OK);
    assert_eq!(launch(function_of_first, CUstream::NULL, &[first_word, 3]), OK);
    assert_eq!(read(first_word, 1), [5]);

    let module: CUmodule = out(|module| call!(cuLibraryGetModule(module, library))).unwrap();
    assert_eq!(function(module, "add"), Ok(function_of_first));
    fails!(NOT_PERMITTED, cuModuleUnload(module));
    let (name, mut bytes) = (text("counter"), 0);
    let at = output(&mut bytes);
    let counter = out(|address| call!(cuLibraryGetGlobal(address, at, library, chars(&name)))).unwrap();
    assert_eq!((read(counter, 1), bytes), (vec![5], 4));

    ok!(cuLibraryUnload(library));
    fails!(INVALID_HANDLE, cuLibraryUnload(library));
    assert_eq!(launch(function_of_first, CUstream::NULL, &[first_word, 3]), Status::INVALID_HANDLE);
    assert_eq!(launch(CUfunction(add.0), CUstream::NULL, &[first_word, 3]), Status::INVALID_HANDLE);
    assert_eq!(function(module, "add"), Err(Status::INVALID_HANDLE));
}

#[test]
fn kernels_say_what_they_are() {
    let _context = Ctx::new();
    let library = library();
    let mixed = kernel(library, "mixed").unwrap();
    let count = out(|count| call!(cuLibraryGetKernelCount(count, library))).unwrap();
    let mut all = vec![CUkernel::NULL; count as usize];
    ok!(cuLibraryEnumerateKernels(output(all.as_mut_ptr()), count, library));
    assert_eq!(all[4], mixed);
    let mut name: *const c_char = std::ptr::null();
    ok!(cuKernelGetName(output(&mut name), mixed));
    // SAFETY: it is a text as long as the library is loaded.
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"mixed");
    assert_eq!(out(|of| call!(cuKernelGetLibrary(of, mixed))), Ok(library));
    assert_eq!(out(|count| call!(cuKernelGetParamCount(mixed, count))), Ok(4));
    let mut bytes = 0;
    let offset = out(|offset| call!(cuKernelGetParamInfo(mixed, 1, offset, output(&mut bytes)))).unwrap();
    assert_eq!((offset, bytes), (4, 12));
    fails!(INVALID_VALUE, cuKernelGetParamInfo(mixed, 4, output(&mut bytes), nowhere()));

    let attribute = CUfunction_attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES;
    ok!(cuKernelSetAttribute(attribute, 100 << 10, mixed, 0));
    assert_eq!(out(|value| call!(cuKernelGetAttribute(value, attribute, mixed, 0))), Ok(100 << 10));
    fails!(INVALID_DEVICE, cuKernelSetAttribute(attribute, 0, mixed, 1));
    ok!(cuLibraryUnload(library));
}

#[test]
fn a_library_needs_no_context() {
    init();
    std::thread::spawn(|| {
        let library = library();
        let add = kernel(library, "add").unwrap();
        assert_eq!(
            out(|f: Out<CUfunction>| call!(cuKernelGetFunction(f, add))),
            Err(Status::INVALID_CONTEXT)
        );
        let context = Ctx::new();
        let word = words(1);
        assert_eq!(launch(CUfunction(add.0), CUstream::NULL, &[word, 6]), OK);
        assert_eq!(read(word, 1), [6]);
        drop(context);
        ok!(cuLibraryUnload(library));
    })
    .join()
    .unwrap();
}

/// By `CUlibraryOption` of `cuda.h`, and the documentation of `cuLibraryGetGlobal`, `cuModuleGetGlobal` and
/// `cuKernelGetName`.
#[test]
fn libraries_are_loaded_with_what_they_may_be() {
    let _context = Ctx::new();
    let ptx = text(PTX);
    let code = input(ptx.as_ptr().cast::<u8>());
    let nothing = text("/nothing/is/here.ptx");
    let load = |is_file: bool, option: CUlibraryOption, value: In<usize>| {
        let option = input(&option);
        out(|library: Out<CUlibrary>| match is_file {
            true => {
                call!(cuLibraryLoadFromFile(library, chars(&nothing), null(), nowhere(), 0, option, value, 1))
            }
            false => call!(cuLibraryLoadData(library, code, null(), nowhere(), 0, option, value, 1)),
        })
    };
    let one = 1usize;
    for (is_file, option, value, status) in [
        (false, 1, input(&one), OK),
        (false, 2, input(&one), Status::INVALID_VALUE),
        (false, 1, null(), Status::INVALID_VALUE),
        (true, 1, input(&one), Status::INVALID_VALUE),
        (true, 0, input(&one), Status::FILE_NOT_FOUND),
    ] {
        let loaded = load(is_file, option, value);
        assert_eq!(loaded.err().unwrap_or(OK), status, "option {option}, file {is_file}");
    }
    let library = library();
    let module: CUmodule = out(|module| call!(cuLibraryGetModule(module, library))).unwrap();
    let (counter, mut bytes) = (text("counter"), 0usize);
    let at = output(&mut bytes);
    let managed = |bytes| call!(cuLibraryGetManaged(nowhere(), bytes, library, chars(&counter)));
    for (what, found, expected) in [
        ("the size", call!(cuLibraryGetGlobal(nowhere(), at, library, chars(&counter))), OK),
        (
            "neither",
            call!(cuLibraryGetGlobal(nowhere(), nowhere(), library, chars(&counter))),
            Status::INVALID_VALUE,
        ),
        ("the size of a module's", call!(cuModuleGetGlobal_v2(nowhere(), at, module, chars(&counter))), OK),
        (
            "neither of a module's",
            call!(cuModuleGetGlobal_v2(nowhere(), nowhere(), module, chars(&counter))),
            Status::INVALID_VALUE,
        ),
        ("none that is managed", managed(at), Status::NOT_FOUND),
        ("neither of one that is managed", managed(nowhere()), Status::INVALID_VALUE),
        (
            "null",
            call!(cuKernelGetName(output(&mut std::ptr::null()), CUkernel::NULL)),
            Status::INVALID_VALUE,
        ),
        ("none", call!(cuKernelGetName(output(&mut std::ptr::null()), CUkernel(77))), Status::INVALID_HANDLE),
        (
            "parameters of null",
            call!(cuKernelGetParamInfo(CUkernel::NULL, 0, at, nowhere())),
            Status::INVALID_VALUE,
        ),
    ] {
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(bytes, 4);
    ok!(cuLibraryUnload(library));
}

/// `bump` adds a value to `shared`, and `past` writes behind `small`.
const MANAGED: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 own = 3;
.visible .global .attribute(.managed) .align 4 .u32 shared = 7;
.global .attribute(.managed) .align 8 .u64 pointer = generic(shared)+0;
.global .attribute(.managed) .align 1 .b8 small[5] = {1, 2, 3, 4, 5};
.visible .entry bump(.param .u32 value)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u32 %r1, [value];
    ld.global.u64 %rd1, [pointer];
    ld.u32 %r2, [%rd1];
    add.u32 %r2, %r2, %r1;
    st.global.u32 [shared], %r2;
    ret;
}
.visible .entry past() { .reg .b16 %h; mov.u16 %h, 1; st.global.u8 [small+5], %h; ret; }
";

/// Address and size of a managed variable.
fn managed(library: CUlibrary, name: &str) -> Result<(CUdeviceptr, usize)> {
    let (name, mut bytes) = (text(name), 0);
    let at = output(&mut bytes);
    let address = out(|address| call!(cuLibraryGetManaged(address, at, library, chars(&name))))?;
    Ok((address, bytes))
}

fn host_word(address: CUdeviceptr) -> *mut u32 {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

#[test]
fn managed_variables_are_the_hosts_and_every_contexts() {
    let _first = Ctx::new();
    let ptx = text(MANAGED);
    let code = input(ptx.as_ptr().cast::<u8>());
    let library =
        out(|library| call!(cuLibraryLoadData(library, code, null(), nowhere(), 0, null(), null(), 0)));
    let library = library.unwrap();
    let bump = CUfunction(kernel(library, "bump").unwrap().0);
    let (shared, bytes) = managed(library, "shared").unwrap();
    assert_eq!(bytes, 4);
    assert_eq!(managed(library, "own"), Err(Status::NOT_FOUND), "which is the device's");
    assert_eq!(managed(library, "other"), Err(Status::NOT_FOUND));
    // SAFETY: the variable's memory, as long as the library is loaded; kernels are waited for.
    let get = || unsafe { host_word(shared).read_volatile() };
    assert_eq!(get(), 7);
    assert_eq!(launch(bump, CUstream::NULL, &[10]), OK);
    ok!(cuCtxSynchronize());
    assert_eq!(get(), 17);
    {
        // Another context has the same variable, with its value.
        let _second = Ctx::new();
        assert_eq!(launch(bump, CUstream::NULL, &[1]), OK);
        ok!(cuCtxSynchronize());
        assert_eq!((get(), managed(library, "shared")), (18, Ok((shared, 4))));
        let name = text("shared");
        let by_name = out(|at| call!(cuLibraryGetGlobal(at, nowhere(), library, chars(&name))));
        assert_eq!(by_name, Ok(shared));
    }
    assert_eq!(get(), 18, "the end of that context is not its end");
    let mut is_managed = 0u32;
    let value = output((&raw mut is_managed).cast::<std::ffi::c_void>());
    ok!(cuPointerGetAttribute(value, CUpointer_attribute::IS_MANAGED, shared));
    assert_eq!(is_managed, 1);
    fails!(INVALID_VALUE, cuMemFree_v2(shared));
    // SAFETY: as above.
    unsafe { host_word(shared).write_volatile(100) };
    ok!(cuMemcpyDtoD_v2(managed(library, "small").unwrap().0, shared, 4));
    assert_eq!(read(shared, 1), [100]);
    // A module of the same code has variables of its own, as long as it is loaded.
    let module = load(MANAGED).unwrap();
    let name = text("shared");
    let own: CUdeviceptr =
        out(|at| call!(cuModuleGetGlobal_v2(at, nowhere(), module, chars(&name)))).unwrap();
    assert_ne!(own, shared);
    assert_eq!(read(own, 1), [7]);
    ok!(cuModuleUnload(module));
    let mut size = 0usize;
    fails!(NOT_FOUND, cuMemGetAddressRange_v2(nowhere(), output(&mut size), own));
    ok!(cuMemGetAddressRange_v2(nowhere(), output(&mut size), shared));
    ok!(cuLibraryUnload(library));
    fails!(NOT_FOUND, cuMemGetAddressRange_v2(nowhere(), output(&mut size), shared));
}

#[test]
fn a_managed_variable_ends_at_its_last_byte() {
    let _context = Ctx::new();
    let module = load(MANAGED).unwrap();
    assert_eq!(launch(function(module, "past").unwrap(), CUstream::NULL, &[]), OK);
    fails!(ILLEGAL_ADDRESS, cuCtxSynchronize());
}
