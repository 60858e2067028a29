//! `libnvrtc`: NVIDIA's compiler from CUDA C++, asked for PTX where a program asks for machine code.
//!
//! Every function is passed on to the library that the program would have opened. Two things are changed: options name
//! the virtual architecture (`compute_80` for `sm_80`), and what a program gets as a cubin is the PTX.

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::OnceLock;
use warpwright_standin::{Library, note, open_real, passed_on};

/// The library's files by version, the latest first.
const FILES: [&str; 4] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"];

/// `NVRTC_ERROR_INTERNAL_ERROR`.
const INTERNAL_ERROR: usize = 11;

/// NVIDIA's library.
fn real() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    let open = || {
        note(&"libnvrtc is a stand-in, which asks NVIDIA's for PTX where the program asks for machine code");
        open_real(&FILES)
    };
    LIBRARY.get_or_init(open).as_ref()
}

passed_on! {
    real, INTERNAL_ERROR,
    nvrtcGetErrorString => "nvrtcGetErrorString"(result);
    nvrtcVersion => "nvrtcVersion"(major, minor);
    nvrtcGetNumSupportedArchs => "nvrtcGetNumSupportedArchs"(count);
    nvrtcGetSupportedArchs => "nvrtcGetSupportedArchs"(arches);
    nvrtcCreateProgram => "nvrtcCreateProgram"(program, source, name, count, headers, names);
    nvrtcDestroyProgram => "nvrtcDestroyProgram"(program);
    nvrtcGetPTXSize => "nvrtcGetPTXSize"(program, size);
    nvrtcGetPTX => "nvrtcGetPTX"(program, ptx);
    nvrtcGetCUBINSize => "nvrtcGetPTXSize"(program, size);
    nvrtcGetCUBIN => "nvrtcGetPTX"(program, ptx);
    nvrtcGetNVVMSize => "nvrtcGetNVVMSize"(program, size);
    nvrtcGetNVVM => "nvrtcGetNVVM"(program, code);
    nvrtcGetLTOIRSize => "nvrtcGetLTOIRSize"(program, size);
    nvrtcGetLTOIR => "nvrtcGetLTOIR"(program, code);
    nvrtcGetOptiXIRSize => "nvrtcGetOptiXIRSize"(program, size);
    nvrtcGetOptiXIR => "nvrtcGetOptiXIR"(program, code);
    nvrtcGetTileIRSize => "nvrtcGetTileIRSize"(program, size);
    nvrtcGetTileIR => "nvrtcGetTileIR"(program, code);
    nvrtcGetProgramLogSize => "nvrtcGetProgramLogSize"(program, size);
    nvrtcGetProgramLog => "nvrtcGetProgramLog"(program, log);
    nvrtcAddNameExpression => "nvrtcAddNameExpression"(program, expression);
    nvrtcGetLoweredName => "nvrtcGetLoweredName"(program, expression, name);
    nvrtcGetPCHHeapSize => "nvrtcGetPCHHeapSize"(size);
    nvrtcSetPCHHeapSize => "nvrtcSetPCHHeapSize"(size);
    nvrtcGetPCHCreateStatus => "nvrtcGetPCHCreateStatus"(program);
    nvrtcGetPCHHeapSizeRequired => "nvrtcGetPCHHeapSizeRequired"(program, size);
    nvrtcSetFlowCallback => "nvrtcSetFlowCallback"(program, callback, payload);
    nvrtcInstallBundledHeaders => "nvrtcInstallBundledHeaders"(folder, flags, errors);
    nvrtcGetBundledHeadersInfo => "nvrtcGetBundledHeadersInfo"(info, errors);
    nvrtcRemoveBundledHeaders => "nvrtcRemoveBundledHeaders"(folder, errors);
}

/// Compiles a program for the virtual architecture of the one that the options name.
///
/// # Safety
///
/// As NVIDIA's function says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCompileProgram(
    program: usize,
    count: c_int,
    options: *const *const c_char,
) -> usize {
    type Function = unsafe extern "C" fn(usize, c_int, *const *const c_char) -> usize;
    let Some(library) = real() else { return INTERNAL_ERROR };
    let count = if options.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
    // SAFETY: the interface says that there are that many options, each a text.
    let given =
        (0..count).map(|i| unsafe { CStr::from_ptr(options.add(i).read()) }.to_string_lossy().into_owned());
    let given: Vec<String> = given.collect();
    let changed: Vec<CString> =
        virtual_architecture(given).into_iter().filter_map(|o| CString::new(o).ok()).collect();
    let pointers: Vec<*const c_char> = changed.iter().map(|option| option.as_ptr()).collect();
    // SAFETY: NVIDIA's function, with the program's handle and options that are there until it returns.
    match unsafe { library.get::<Function>("nvrtcCompileProgram") } {
        // SAFETY: as above.
        Ok(compile) => unsafe { compile(program, pointers.len() as c_int, pointers.as_ptr()) },
        Err(_) => INTERNAL_ERROR,
    }
}

/// The options with `compute_N` for `sm_N` where they name the architecture, in one option or in two.
fn virtual_architecture(mut options: Vec<String>) -> Vec<String> {
    let names = ["--gpu-architecture", "-arch"];
    let mut is_value = false;
    for option in &mut options {
        let value = match option.split_once('=') {
            _ if is_value => Some(("", option.as_str())),
            Some((name, value)) if names.contains(&name) => Some((name, value)),
            _ => None,
        };
        let separate = names.contains(&option.as_str());
        if let Some((name, value)) = value
            && let Some(number) = value.strip_prefix("sm_")
        {
            let equals = if name.is_empty() { "" } else { "=" };
            *option = format!("{name}{equals}compute_{number}");
        }
        is_value = separate;
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_become_virtual() {
        for (given, expected) in [
            (&["-arch=sm_80", "-I/sm_80"][..], &["-arch=compute_80", "-I/sm_80"][..]),
            (&["--gpu-architecture=sm_90a"], &["--gpu-architecture=compute_90a"]),
            (&["-arch", "sm_75", "-DX=sm_75"], &["-arch", "compute_75", "-DX=sm_75"]),
            (&["-arch=compute_80", "-arch"], &["-arch=compute_80", "-arch"]),
            (&[], &[]),
        ] {
            let given = given.iter().map(|option| option.to_string()).collect();
            assert_eq!(virtual_architecture(given), expected);
        }
    }
}
