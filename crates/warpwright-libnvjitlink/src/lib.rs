//! A stand-in for `libnvJitLink`: it links PTX and keeps it as PTX, by the linker of the driver over the virtual GPU.
//!
//! LTO-IR is code for NVIDIA's compiler. What a program gives of it is compiled to one text of PTX by NVIDIA's own
//! `libnvJitLink`, and linked with the rest.
//!
//! Programs in C call each function but `nvJitLinkVersion` by a name with the version of their header, so those of CUDA
//! 12.0 to 13.9 are here too.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]
#![allow(non_snake_case, reason = "the interface's names")]

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::ptr::with_exposed_provenance;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use warpwright_standin::{Library, note, open_real, passed_on};

/// Results: `nvJitLinkResult`.
const SUCCESS: usize = 0;
const INVALID_INPUT: usize = 3;
const NVVM_COMPILE: usize = 5;
const INTERNAL: usize = 6;

/// Kinds of inputs: `nvJitLinkInputType`.
const PTX: usize = 2;
const LTO_IR: usize = 3;
const ANY: usize = 10;

/// First bytes of LTO-IR.
const LTO_IR_MAGIC: [u8; 4] = [0xed, 0x43, 0x4e, 0x7f];

/// NVIDIA's files by version, the latest first.
const FILES: [&str; 3] = ["libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"];

/// What NVIDIA's linker gets of one linker of the program.
struct Lto {
    options: Vec<CString>,
    inputs: Vec<(Vec<u8>, CString)>,
}

/// By the handle of the driver's linker.
type Pending = HashMap<usize, Lto>;

fn pending() -> MutexGuard<'static, Pending> {
    static PENDING: OnceLock<Mutex<Pending>> = OnceLock::new();
    PENDING.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The driver's library, which is loaded already if the program uses it.
fn driver() -> Option<&'static Library> {
    static DRIVER: OnceLock<Option<Library>> = OnceLock::new();
    let open = || {
        note(&"libnvJitLink is a stand-in, which links PTX and keeps it as PTX");
        // SAFETY: what the library does when it is loaded is to be there.
        let library = unsafe { Library::new("libcuda.so.1") };
        library.map_err(|error| note(&error)).ok()
    };
    DRIVER.get_or_init(open).as_ref()
}

/// NVIDIA's library.
fn real() -> Option<&'static Library> {
    static REAL: OnceLock<Option<Library>> = OnceLock::new();
    let open = || {
        note(&"libnvJitLink has LTO-IR compiled to PTX by NVIDIA's");
        open_real(&FILES)
    };
    REAL.get_or_init(open).as_ref()
}

/// Calls a function of this interface; without it the result is an internal error. Handles, numbers and pointers are
/// passed in registers of one size.
macro_rules! call {
    ($library:expr, $name:literal($($arg:expr),*)) => {{
        type Function = unsafe extern "C" fn($(call!(@ $arg)),*) -> u32;
        let function = $library.and_then(|library| {
            // SAFETY: the interface, or the driver's copy of it, gives the function these arguments.
            unsafe { library.get::<Function>($name) }.ok()
        });
        // SAFETY: the arguments are the program's, or are there until the function returns.
        function.map_or(INTERNAL, |function| unsafe { function($($arg),*) } as usize)
    }};
    (@ $arg:expr) => { usize };
}

passed_on! {
    driver, INTERNAL,
    nvJitLinkGetLinkedCubinSize => "warpwrightJitLinkGetLinkedCubinSize"(a, b);
    nvJitLinkGetLinkedCubin => "warpwrightJitLinkGetLinkedCubin"(a, b);
    nvJitLinkGetLinkedPtxSize => "warpwrightJitLinkGetLinkedPtxSize"(a, b);
    nvJitLinkGetLinkedPtx => "warpwrightJitLinkGetLinkedPtx"(a, b);
    nvJitLinkGetLinkedLTOIRSize => "warpwrightJitLinkGetLinkedLTOIRSize"(a, b);
    nvJitLinkGetLinkedLTOIR => "warpwrightJitLinkGetLinkedLTOIR"(a, b);
    nvJitLinkGetErrorLogSize => "warpwrightJitLinkGetErrorLogSize"(a, b);
    nvJitLinkGetErrorLog => "warpwrightJitLinkGetErrorLog"(a, b);
    nvJitLinkGetInfoLogSize => "warpwrightJitLinkGetInfoLogSize"(a, b);
    nvJitLinkGetInfoLog => "warpwrightJitLinkGetInfoLog"(a, b);
    nvJitLinkVersion => "warpwrightJitLinkVersion"(a, b);
}

/// Creates a linker.
///
/// # Safety
///
/// As `nvJitLinkCreate` of NVIDIA's says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvJitLinkCreate(handle: usize, count: usize, options: usize) -> usize {
    let result = call!(driver(), "warpwrightJitLinkCreate"(handle, count, options));
    if result == SUCCESS {
        let options: *const *const c_char = with_exposed_provenance(options);
        // The count is a number of 32 bits.
        let read = |i| {
            // SAFETY: the driver has read that many options, each a text.
            unsafe { CStr::from_ptr(options.add(i).read()) }.to_owned()
        };
        let options = (0..count as u32 as usize).map(read).collect();
        // SAFETY: the driver has written the handle there.
        let handle = unsafe { with_exposed_provenance::<usize>(handle).read() };
        pending().insert(handle, Lto { options, inputs: Vec::new() });
    }
    result
}

/// Destroys a linker.
///
/// # Safety
///
/// As `nvJitLinkDestroy` of NVIDIA's says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvJitLinkDestroy(handle: usize) -> usize {
    if handle != 0 {
        // SAFETY: the interface says that the address has a handle.
        pending().remove(&unsafe { with_exposed_provenance::<usize>(handle).read() });
    }
    call!(driver(), "warpwrightJitLinkDestroy"(handle))
}

/// Adds an input. LTO-IR waits until all of it is there.
///
/// # Safety
///
/// As `nvJitLinkAddData` of NVIDIA's says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvJitLinkAddData(
    handle: usize,
    kind: usize,
    data: usize,
    size: usize,
    name: usize,
) -> usize {
    // The kind is a number of 32 bits.
    let kind = kind as u32 as usize;
    if [LTO_IR, ANY].contains(&kind) && data != 0 {
        // SAFETY: the interface says that there are that many bytes.
        let bytes = unsafe { std::slice::from_raw_parts(with_exposed_provenance::<u8>(data), size) };
        if kind == LTO_IR || bytes.starts_with(&LTO_IR_MAGIC) {
            let name: *const c_char = with_exposed_provenance(name);
            // SAFETY: null, or a text.
            let name =
                if name.is_null() { CString::default() } else { unsafe { CStr::from_ptr(name) }.to_owned() };
            return match pending().get_mut(&handle) {
                Some(lto) => {
                    lto.inputs.push((bytes.to_vec(), name));
                    SUCCESS
                }
                None => INVALID_INPUT,
            };
        }
    }
    call!(driver(), "warpwrightJitLinkAddData"(handle, kind, data, size, name))
}

/// Adds the contents of a file.
///
/// # Safety
///
/// As `nvJitLinkAddFile` of NVIDIA's says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvJitLinkAddFile(handle: usize, kind: usize, file: usize) -> usize {
    if file == 0 {
        return INVALID_INPUT;
    }
    // SAFETY: a text.
    let name = unsafe { CStr::from_ptr(with_exposed_provenance::<c_char>(file)) };
    let Ok(data) = std::fs::read(OsStr::from_bytes(name.to_bytes())) else { return INVALID_INPUT };
    // SAFETY: the bytes and the name are there until the function returns.
    unsafe { nvJitLinkAddData(handle, kind, data.as_ptr().expose_provenance(), data.len(), file) }
}

/// Compiles the LTO-IR, and links.
///
/// # Safety
///
/// As `nvJitLinkComplete` of NVIDIA's says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvJitLinkComplete(handle: usize) -> usize {
    let lto = pending().get_mut(&handle).map(|lto| (lto.options.clone(), std::mem::take(&mut lto.inputs)));
    if let Some((options, inputs)) = lto
        && !inputs.is_empty()
    {
        let added = compile(options, &inputs).map_or_else(
            |result| result,
            |ptx| {
                let data = ptx.as_ptr().expose_provenance();
                let name = c"LTO-IR".as_ptr().expose_provenance();
                call!(driver(), "warpwrightJitLinkAddData"(handle, PTX, data, ptx.len(), name))
            },
        );
        if added != SUCCESS {
            return added;
        }
    }
    call!(driver(), "warpwrightJitLinkComplete"(handle))
}

/// The PTX that NVIDIA's linker makes of LTO-IR, or its result.
fn compile(mut options: Vec<CString>, inputs: &[(Vec<u8>, CString)]) -> Result<Vec<u8>, usize> {
    for needed in [c"-lto", c"-ptx"] {
        if !options.iter().any(|option| option.as_c_str() == needed) {
            options.push(needed.to_owned());
        }
    }
    let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    let mut handle = 0usize;
    let at = (&raw mut handle).expose_provenance();
    let check = |result| if result == SUCCESS { Ok(()) } else { Err(result) };
    check(call!(real(), "nvJitLinkCreate"(at, pointers.len(), pointers.as_ptr().expose_provenance())))?;
    let linked = inputs.iter().try_for_each(|(data, name)| {
        let (data, size, name) =
            (data.as_ptr().expose_provenance(), data.len(), name.as_ptr().expose_provenance());
        check(call!(real(), "nvJitLinkAddData"(handle, LTO_IR, data, size, name)))
    });
    let text = |size_of: &dyn Fn(usize) -> usize, get: &dyn Fn(usize) -> usize| {
        let mut size = 0usize;
        check(size_of((&raw mut size).expose_provenance()))?;
        let mut text = vec![0u8; size];
        check(get(text.as_mut_ptr().expose_provenance()))?;
        Ok::<_, usize>(text)
    };
    let linked = linked.and_then(|()| check(call!(real(), "nvJitLinkComplete"(handle))));
    let ptx = match linked {
        Ok(()) => text(&|size| call!(real(), "nvJitLinkGetLinkedPtxSize"(handle, size)), &|ptx| {
            call!(real(), "nvJitLinkGetLinkedPtx"(handle, ptx))
        }),
        Err(result) => {
            let errors = text(&|size| call!(real(), "nvJitLinkGetErrorLogSize"(handle, size)), &|log| {
                call!(real(), "nvJitLinkGetErrorLog"(handle, log))
            });
            let errors = errors.unwrap_or_default();
            note(&format_args!(
                "NVIDIA's libnvJitLink: {}",
                String::from_utf8_lossy(&errors).trim_end_matches('\0')
            ));
            Err(if result == INTERNAL { NVVM_COMPILE } else { result })
        }
    };
    let _ = call!(real(), "nvJitLinkDestroy"(at));
    ptx
}

/// Exports functions under the names of all versions.
macro_rules! versions {
    ($versions:tt $($name:ident $args:tt)*) => { $(versions! { @ $name $args $versions })* };
    (@ $name:ident $args:tt [$($version:literal)*]) => { $(versions! { @@ $name $args $version })* };
    (@@ $name:ident($($arg:ident),*) $version:literal) => {
        const _: () = {
            #[unsafe(export_name = concat!("__", stringify!($name), "_", $version))]
            unsafe extern "C" fn versioned($($arg: usize),*) -> usize {
                // SAFETY: the same function.
                unsafe { $name($($arg),*) }
            }
        };
    };
}

versions! {
    [
        "12_0" "12_1" "12_2" "12_3" "12_4" "12_5" "12_6" "12_7" "12_8" "12_9"
        "13_0" "13_1" "13_2" "13_3" "13_4" "13_5" "13_6" "13_7" "13_8" "13_9"
    ]
    nvJitLinkCreate(a, b, c)
    nvJitLinkDestroy(a)
    nvJitLinkAddData(a, b, c, d, e)
    nvJitLinkAddFile(a, b, c)
    nvJitLinkComplete(a)
    nvJitLinkGetLinkedCubinSize(a, b)
    nvJitLinkGetLinkedCubin(a, b)
    nvJitLinkGetLinkedPtxSize(a, b)
    nvJitLinkGetLinkedPtx(a, b)
    nvJitLinkGetLinkedLTOIRSize(a, b)
    nvJitLinkGetLinkedLTOIR(a, b)
    nvJitLinkGetErrorLogSize(a, b)
    nvJitLinkGetErrorLog(a, b)
    nvJitLinkGetInfoLogSize(a, b)
    nvJitLinkGetInfoLog(a, b)
}
