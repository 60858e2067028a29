//! Devices as a client finds them: architectures, attributes, names and places.
#![cfg(target_os = "linux")]

mod common;

use common::{get, input, ok, output};
use cudarc::driver::sys;
use std::collections::HashSet;
use std::ffi::{CStr, CString, c_char, c_int};
use warpwright_cuda::api::*;
use warpwright_cuda::types::*;

const DEVICES: [(CUdevice, u16); 7] = [(0, 75), (1, 80), (2, 86), (3, 90), (4, 120), (5, 89), (6, 100)];

fn begin() {
    common::begin(&[
        ("WARPWRIGHT_DEVICES", "75,80,86,90a,120,89,100"),
        ("WARPWRIGHT_MEMORY", "3G"),
        ("WARPWRIGHT_WORKERS", "3"),
        ("WARPWRIGHT_LOG", "off"),
    ]);
}

fn attribute(which: sys::CUdevice_attribute, device: CUdevice) -> c_int {
    // SAFETY: the place is good for a number.
    get(|value| unsafe { cuDeviceGetAttribute(value, CUdevice_attribute(which as c_int), device) }).unwrap()
}

fn text(call: impl FnOnce(Out<c_char>, c_int) -> Status, room: usize) -> String {
    let mut text = vec![0x55 as c_char; room + 1];
    ok(call(output(text.as_mut_ptr()), room as c_int));
    assert_eq!(text[room], 0x55, "nothing is written past the room");
    // SAFETY: the function ends what it writes.
    unsafe { CStr::from_ptr(text.as_ptr()) }.to_str().unwrap().to_owned()
}

#[test]
fn every_architecture_has_its_limits() {
    use sys::CUdevice_attribute::*;
    begin();
    // By NVIDIA's table: threads and blocks of a multiprocessor, its shared memory and that of a block in KiB.
    let table = [
        (1024, 16, 64, 64),
        (2048, 32, 164, 163),
        (1536, 16, 100, 99),
        (2048, 32, 228, 227),
        (1536, 24, 100, 99),
        (1536, 24, 100, 99),
        (2048, 32, 228, 227),
    ];
    for ((device, sm), (threads, blocks, shared, of_block)) in DEVICES.into_iter().zip(table) {
        let get = |which| attribute(which, device);
        assert_eq!(get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), c_int::from(sm / 10));
        assert_eq!(get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), c_int::from(sm % 10));
        assert_eq!(get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR), threads);
        assert_eq!(get(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR), blocks);
        assert_eq!(get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR), shared << 10);
        assert_eq!(get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), of_block << 10);
        assert_eq!(get(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK), (shared - of_block) << 10);
        assert_eq!(get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK), 48 << 10);
        assert_eq!(get(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH), c_int::from(sm >= 90));
        assert_eq!(get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
        assert_eq!(get(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
        assert_eq!(get(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING), 1);
        assert!(
            get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) > 0 && get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) > 0
        );
        // SAFETY: places for numbers.
        unsafe {
            let (mut major, mut minor) = (0, 0);
            ok(cuDeviceComputeCapability(output(&mut major), output(&mut minor), device));
            assert_eq!((major, minor), (c_int::from(sm / 10), c_int::from(sm % 10)));
            assert_eq!(common::get(|bytes| cuDeviceTotalMem_v2(bytes, device)), Ok(3 << 30));
        }
        assert_eq!(warpwrightHostThreads(device), 3);
    }
}

/// As the cards of these architectures describe themselves: T4, A100, RTX 3090, H100, RTX 5090, RTX 4090, B200
/// (outputs of the CUDA samples' `deviceQuery`). The parts in which memory is ordered are those of the CUDA programming
/// guide, memory synchronisation domains; registers those of its table of compute capabilities.
#[test]
fn every_architecture_is_the_card_that_people_have() {
    use sys::CUdevice_attribute::*;
    begin();
    // Multiprocessors, bus in bits, cache in KiB, copy engines, clock in MHz, parts.
    let table = [
        (40, 256, 4096, 3, 1590, 1),
        (108, 5120, 40 << 10, 3, 1410, 1),
        (82, 384, 6144, 2, 1695, 1),
        (132, 5120, 50 << 10, 3, 1980, 4),
        (170, 512, 96 << 10, 2, 2407, 4),
        (128, 384, 72 << 10, 2, 2520, 1),
        (148, 8192, 129_536, 3, 1965, 4),
    ];
    for ((device, sm), (multiprocessors, bus, cache, copies, clock, parts)) in DEVICES.into_iter().zip(table)
    {
        for (which, expected) in [
            (CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, multiprocessors),
            (CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, bus),
            (CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, cache << 10),
            (CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, copies),
            (CU_DEVICE_ATTRIBUTE_CLOCK_RATE, clock * 1000),
            (CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, parts),
            (CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536),
            (CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536),
            (CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, c_int::MAX),
            (CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535),
            (CU_DEVICE_ATTRIBUTE_MAX_PITCH, c_int::MAX),
            (CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536),
            // What the interface says of functions that there are not.
            (CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, 0),
            (CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, 1),
            // An object joins one device, and these are several.
            (CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0),
        ] {
            assert_eq!(attribute(which, device), expected, "{which:?} of sm_{sm}");
        }
    }
}

/// Those that an NVSwitch joins.
#[test]
fn some_architectures_have_multicast_objects() {
    begin();
    for (device, sm) in DEVICES {
        let prop = CUmulticastObjectProp { numDevices: 1, size: 2 << 20, handleTypes: 0, flags: 0 };
        // SAFETY: the places are good for a handle and for properties.
        let added = unsafe {
            let object = get(|handle| cuMulticastCreate(handle, input(&raw const prop))).unwrap();
            let added = cuMulticastAddDevice(object, device);
            ok(cuMemRelease(object));
            added
        };
        let expected = if matches!(sm, 90 | 100) { Status::SUCCESS } else { Status::NOT_SUPPORTED };
        assert_eq!(added, expected, "sm_{sm}");
    }
}

/// The numbers of `CUdevice_attribute` in `cuda.h` of CUDA 12.8.
#[test]
fn attributes_that_are_none_are_refused() {
    begin();
    // SAFETY: places for numbers, or null.
    unsafe {
        let mut value = 77;
        for which in [c_int::MIN, -1, 0, 138, 141, 142, 144, 1000, c_int::MAX] {
            let status = cuDeviceGetAttribute(output(&mut value), CUdevice_attribute(which), 0);
            assert_eq!(status, Status::INVALID_VALUE, "attribute {which}");
        }
        assert_eq!(value, 77, "nothing is written");
        for which in (1..=143).filter(|which| ![138, 141, 142].contains(which)) {
            ok(cuDeviceGetAttribute(output(&mut value), CUdevice_attribute(which), 0));
        }
        for device in [-1, 7, c_int::MAX] {
            let status = cuDeviceGetAttribute(output(&mut value), CUdevice_attribute(1), device);
            assert_eq!(status, Status::INVALID_DEVICE, "device {device}");
            assert_eq!(cuDeviceGet(output(&mut value), device), Status::INVALID_DEVICE);
        }

        assert_eq!(cuDeviceGetAttribute(Out::null(), CUdevice_attribute(1), 0), Status::INVALID_VALUE);
        assert_eq!(cuDeviceGetCount(Out::null()), Status::INVALID_VALUE);
        assert_eq!(cuDeviceGet(Out::null(), 0), Status::INVALID_VALUE);
    }
}

#[test]
fn names_are_cut_to_their_room() {
    begin();
    // SAFETY: as many bytes as are said.
    unsafe {
        let whole = text(|name, len| cuDeviceGetName(name, len, 3), 100);
        assert_eq!(whole, "Warpwright virtual GPU (sm_90)");
        assert_eq!(text(|name, len| cuDeviceGetName(name, len, 3), 11), &whole[..10]);
        assert_eq!(text(|name, len| cuDeviceGetName(name, len, 3), 1), "");
        let mut byte = 0;
        assert_eq!(cuDeviceGetName(output(&mut byte), 0, 3), Status::INVALID_VALUE);
        assert_eq!(cuDeviceGetName(output(&mut byte), -1, 3), Status::INVALID_VALUE);
    }
}

#[test]
fn a_device_is_found_where_it_is() {
    begin();
    let mut seen = HashSet::new();
    for (device, _) in DEVICES {
        // SAFETY: as many bytes as are said; texts with their ends.
        unsafe {
            let place = text(|id, len| cuDeviceGetPCIBusId(id, len, device), 13);
            let bus = attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device);
            assert_eq!(place, format!("0000:{bus:02x}:00.0"));
            for id in [place.clone(), place[5..].to_owned(), place[..10].to_owned()] {
                let id = CString::new(id).unwrap();
                assert_eq!(get(|found| cuDeviceGetByPCIBusId(found, input(id.as_ptr()))), Ok(device));
            }
            let mut uuid = CUuuid { bytes: [0; 16] };
            ok(cuDeviceGetUuid_v2(output(&mut uuid), device));
            assert!(seen.insert(uuid.bytes), "no two devices have one name");
        }
    }
    let find = |id: &CStr| {
        // SAFETY: a text with its end, and a place for a number.
        get(|found: Out<CUdevice>| unsafe { cuDeviceGetByPCIBusId(found, input(id.as_ptr())) })
    };
    assert_eq!(find(c"0000:77:00.0"), Err(Status::INVALID_DEVICE));
    assert_eq!(find(c"somewhere"), Err(Status::INVALID_VALUE));
    assert_eq!(find(c"\xff"), Err(Status::INVALID_VALUE));
}

#[test]
fn what_lies_between_devices() {
    begin();
    // SAFETY: places for numbers.
    unsafe {
        let access = CUdevice_P2PAttribute::ACCESS_SUPPORTED;
        let can = get(|can| cuDeviceCanAccessPeer(can, 0, 1)).unwrap();
        assert_eq!(get(|value| cuDeviceGetP2PAttribute(value, access, 0, 1)), Ok(can));
        assert_eq!(get(|can| cuDeviceCanAccessPeer(can, 0, 0)), Ok(0), "a device is no peer of its own");
        assert_eq!(get(|value| cuDeviceGetP2PAttribute(value, access, 0, 0)), Err(Status::INVALID_DEVICE));
        assert_eq!(get(|value| cuDeviceGetP2PAttribute(value, access, 0, 9)), Err(Status::INVALID_DEVICE));
        let none = CUdevice_P2PAttribute(99);
        assert_eq!(get(|value| cuDeviceGetP2PAttribute(value, none, 0, 1)), Err(Status::INVALID_VALUE));
    }
}

#[test]
fn errors_have_names_and_texts() {
    let ask = |function: unsafe extern "C" fn(Status, Out<*const c_char>) -> Status, status| {
        let mut text = std::ptr::null();
        // SAFETY: a place for a pointer; what it leads to stays.
        unsafe {
            function(status, output(&mut text)).into_result().map(|()| CStr::from_ptr(text).to_str().unwrap())
        }
    };
    let mut names = HashSet::new();
    for status in Status::ALL {
        assert!(names.insert(ask(cuGetErrorName, *status).unwrap()), "{status:?}");
        assert!(!ask(cuGetErrorString, *status).unwrap().is_empty());
    }
    for (status, error) in [
        (Status::SUCCESS, sys::CUresult::CUDA_SUCCESS),
        (Status::OUT_OF_MEMORY, sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY),
        (Status::CONTEXT_IS_DESTROYED, sys::CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED),
        (Status::ILLEGAL_ADDRESS, sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS),
        (Status::LAUNCH_FAILED, sys::CUresult::CUDA_ERROR_LAUNCH_FAILED),
        (Status::STREAM_CAPTURE_INVALIDATED, sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED),
        (Status::UNKNOWN, sys::CUresult::CUDA_ERROR_UNKNOWN),
    ] {
        assert_eq!(status.0, error as c_int);
        assert_eq!(ask(cuGetErrorName, status).unwrap(), format!("{error:?}"));
    }
    // As the runtime's `cudaGetErrorString`, with its spelling.
    for (status, text) in [
        (Status::INVALID_VALUE, "invalid argument"),
        (Status::CONTAINED, "Invalid access of peer GPU memory over nvlink or a hardware error"),
        (Status::NOT_READY, "device not ready"),
        (Status::LAUNCH_FAILED, "unspecified launch failure"),
        (
            Status::CDP_NOT_SUPPORTED,
            "is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not support it",
        ),
        (
            Status::CDP_VERSION_MISMATCH,
            "unsupported interaction between different versions of CUDA Dynamic Parallelism",
        ),
        (Status::EXTERNAL_DEVICE, "an async error has occured in external entity outside of CUDA"),
    ] {
        assert_eq!(ask(cuGetErrorString, status).unwrap(), text);
    }
    assert_eq!(ask(cuGetErrorName, Status(12345)), Err(Status::INVALID_VALUE));
    assert_eq!(ask(cuGetErrorString, Status(-1)), Err(Status::INVALID_VALUE));
}

#[test]
fn types_are_laid_out_as_in_c() {
    fn same<A, B>() {
        assert_eq!((size_of::<A>(), align_of::<A>()), (size_of::<B>(), align_of::<B>()));
    }
    same::<Status, sys::CUresult>();
    same::<CUcontext, sys::CUcontext>();
    same::<CUdevice, sys::CUdevice>();
    same::<CUuuid, sys::CUuuid>();
    same::<CUexecAffinityParam, sys::CUexecAffinityParam>();
    same::<CUctxCreateParams, [usize; 3]>();
    same::<CUlimit, sys::CUlimit>();
    same::<CUDA_MEMCPY2D, sys::CUDA_MEMCPY2D>();
    same::<CUDA_MEMCPY3D, sys::CUDA_MEMCPY3D>();
    same::<CUDA_MEMCPY3D, sys::CUDA_MEMCPY3D_PEER>();
    same::<CUmemPoolProps, sys::CUmemPoolProps>();
    same::<CUmemLocation, sys::CUmemLocation>();
    same::<CUmemAccessDesc, sys::CUmemAccessDesc>();
    same::<CUstreamBatchMemOpParams, sys::CUstreamBatchMemOpParams>();
    same::<Out<c_int>, *mut c_int>();
    // Younger than the interface that the workspace takes from cudarc.
    assert_eq!(std::mem::offset_of!(CUctxCreateParams, cigParams), 16);
    macro_rules! same_places {
        ($ours:ident, $theirs:ident: $($field:ident)*) => {
            $(assert_eq!(std::mem::offset_of!($ours, $field), std::mem::offset_of!(sys::$theirs, $field));)*
        };
    }
    same_places!(CUDA_MEMCPY2D, CUDA_MEMCPY2D: srcY srcMemoryType srcHost srcDevice srcPitch dstXInBytes dstMemoryType
        dstHost dstDevice dstPitch WidthInBytes Height);
    same_places!(CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER: srcZ srcLOD srcMemoryType srcHost srcDevice srcContext srcPitch
        srcHeight dstXInBytes dstLOD dstMemoryType dstHost dstDevice dstContext dstPitch dstHeight WidthInBytes Depth);
    same_places!(CUDA_MEMCPY3D, CUDA_MEMCPY3D: srcPitch srcHeight dstPitch dstHeight WidthInBytes Height Depth);
}
