//! The library as a loader sees it: every name of the driver API is there, and found by name and version.
#![cfg(target_os = "linux")]

use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use warpwright_cuda::types::Status;

/// What `cargo` has built beside this test.
fn library() -> Library {
    let test = std::env::current_exe().unwrap();
    let deps = test.parent().unwrap();
    // SAFETY: what the library does when it is loaded is to be there.
    unsafe { Library::new(deps.join("libwarpwright_cuda.so")) }.unwrap()
}

type GetProcAddress = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int) -> Status;

/// The address of a symbol.
fn symbol(library: &Library, name: &str) -> Option<*mut c_void> {
    // SAFETY: the symbol is looked at, not called, and the library stays: nothing unloads it.
    unsafe { library.get::<*mut c_void>(name.as_bytes()).ok().and_then(|symbol| symbol.try_as_raw_ptr()) }
}

#[test]
fn every_name_is_exported() {
    let library = library();
    let missing: Vec<&str> =
        warpwright_cuda::api::names().filter(|name| symbol(&library, name).is_none()).collect();
    assert_eq!(missing, [""; 0]);
    assert_eq!(symbol(&library, "cuNothing"), None);
    for own in
        ["warpwrightVersion", "warpwrightHostThreads", "warpwrightCalls", "warpwrightAlive", "warpwrightTake"]
    {
        assert!(symbol(&library, own).is_some(), "{own}");
    }
}

#[test]
fn a_client_that_looks_names_up_can_work() {
    let library = library();
    // SAFETY: the functions have these types; texts have their ends.
    unsafe {
        let find = *library.get::<GetProcAddress>(b"cuGetProcAddress_v2").unwrap();
        let lookup = |name: &str, version, flags| {
            let name = CString::new(name).unwrap();
            let (mut function, mut status) = (std::ptr::dangling_mut(), 99);
            let result = find(name.as_ptr(), &raw mut function, version, flags, &raw mut status);
            (result, function, status)
        };
        let exported = |name: &str| symbol(&library, name).unwrap();
        for (name, version, flags, expected) in [
            ("cuInit", 2000, 0, "cuInit"),
            ("cuMemAlloc", 12000, 0, "cuMemAlloc_v2"),
            ("cuMemAlloc", 2000, 0, "cuMemAlloc"),
            ("cuMemcpyHtoD", 12000, 1, "cuMemcpyHtoD_v2"),
            ("cuMemcpyHtoD", 12000, 2, "cuMemcpyHtoD_v2_ptds"),
            ("cuLaunchKernel", 12000, 2, "cuLaunchKernel_ptsz"),
            ("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"),
        ] {
            assert_eq!(lookup(name, version, flags), (Status::SUCCESS, exported(expected), 0), "{name}");
        }
        let null = std::ptr::null_mut();
        assert_eq!(lookup("cuNothing", 12000, 0), (Status::SUCCESS, null, 1));
        assert_eq!(lookup("cuGraphCreate", 9000, 0), (Status::SUCCESS, null, 2));
        assert_eq!(lookup("cuInit", 12000, 4), (Status::INVALID_VALUE, null, 99));
        assert_eq!(lookup("cuInit", 99000, 0), (Status::INVALID_VALUE, null, 99), "newer than the driver");

        type Init = unsafe extern "C" fn(c_uint) -> Status;
        type GetCount = unsafe extern "C" fn(*mut c_int) -> Status;
        let count: GetCount = std::mem::transmute(lookup("cuDeviceGetCount", 2000, 0).1);
        let init: Init = std::mem::transmute(lookup("cuInit", 2000, 0).1);
        let mut devices = 99;
        assert_eq!(count(&raw mut devices), Status::NOT_INITIALIZED);
        assert_eq!((init(1), init(0), init(0)), (Status::INVALID_VALUE, Status::SUCCESS, Status::SUCCESS));
        assert_eq!((count(&raw mut devices), devices), (Status::SUCCESS, 1));

        // One that is missing says so, whatever it is given.
        type Missing = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize, usize) -> Status;
        let missing = *library.get::<Missing>(b"cuGraphicsMapResources").unwrap();
        assert_eq!(missing(1, 2, 3, 4, 5, 6, 7, 8), Status::NOT_SUPPORTED);

        type Calls = unsafe extern "C" fn(*const c_char) -> u64;
        let calls = *library.get::<Calls>(b"warpwrightCalls").unwrap();
        assert_eq!(calls(c"cuInit".as_ptr()), 3);
        assert_eq!(calls(c"cuGraphicsMapResources".as_ptr()), 1);
        assert_eq!(calls(c"cuNothing".as_ptr()), 0);
        type Version = unsafe extern "C" fn() -> *const c_char;
        let version = library.get::<Version>(b"warpwrightVersion").unwrap()();
        assert_eq!(CStr::from_ptr(version).to_str(), Ok(env!("CARGO_PKG_VERSION")));
    }
}
