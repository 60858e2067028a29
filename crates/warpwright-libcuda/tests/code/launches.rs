//! Launches: shapes, parameters, attributes, and what a failed one leaves.

use crate::*;
use std::ffi::c_uint;

/// Launches without parameters.
fn shape(function: CUfunction, grid: [c_uint; 3], block: [c_uint; 3], shared: c_uint) -> Status {
    let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
    call!(cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, CUstream::NULL, null(), null()))
}

#[test]
fn every_thread_runs() {
    let _context = Ctx::new();
    let number = function(load(PTX).unwrap(), "number").unwrap();
    let to = words(200);
    let given = Params::of(&[to]);
    ok!(cuLaunchKernel(number, 4, 1, 1, 50, 1, 1, 0, stream(), given.get(), null()));
    assert_eq!(read(to, 200), (1..=200).collect::<Vec<u32>>());
}

#[test]
fn shapes_are_held_against_the_kernel_and_the_device() {
    let _context = Ctx::new();
    let module = load(PTX).unwrap();
    let of = |name| function(module, name).unwrap();
    let one = [1, 1, 1];
    for (name, grid, block, shared, status) in [
        ("few", one, one, 0, OK),
        ("few", [0, 1, 1], one, 0, Status::INVALID_VALUE),
        ("few", one, [1, 0, 1], 0, Status::INVALID_VALUE),
        ("few", [1, 65536, 1], one, 0, Status::INVALID_VALUE),
        ("few", [1, 1, 65536], one, 0, Status::INVALID_VALUE),
        ("few", [1 << 31, 1, 1], one, 0, Status::INVALID_VALUE),
        ("few", one, [64, 1, 1], 0, OK),
        ("few", one, [65, 1, 1], 0, Status::INVALID_VALUE),
        ("few", one, [1, 1, 65], 0, Status::INVALID_VALUE),
        ("few", one, [32, 32, 2], 0, Status::INVALID_VALUE),
        ("few", one, [1 << 31, 1 << 31, 4], 0, Status::INVALID_VALUE),
        ("few", one, one, 47 << 10, OK),
        ("few", one, one, (47 << 10) + 1, Status::INVALID_VALUE),
        ("fixed", one, [32, 2, 1], 0, OK),
        ("fixed", one, [64, 1, 1], 0, Status::INVALID_VALUE),
    ] {
        assert_eq!(shape(of(name), grid, block, shared), status, "{name} {grid:?} {block:?} {shared}");
    }
    // What was refused has done no harm.
    ok!(cuCtxSynchronize());
    for bad in [CUfunction::NULL, CUfunction(module.0), CUfunction(0x40), CUfunction(of("few").0 ^ 1 << 40)] {
        assert_eq!(shape(bad, one, one, 0), Status::INVALID_HANDLE);
    }
    fails!(INVALID_HANDLE, cuLaunchKernel(of("few"), 1, 1, 1, 1, 1, 1, 0, CUstream(77), null(), null()));
}

#[test]
fn more_shared_memory_must_be_asked_for() {
    let _context = Ctx::new();
    let shared = function(load(PTX).unwrap(), "shared").unwrap();
    let (to, max) = (words(1), 227 << 10);
    let params = Params::of(&[to]);
    let launch =
        |bytes| call!(cuLaunchKernel(shared, 1, 1, 1, 1, 1, 1, bytes, CUstream::NULL, params.get(), null()));
    assert_eq!(launch(48 << 10), OK);
    assert_eq!(launch((48 << 10) + 1), Status::INVALID_VALUE);
    ok!(cuFuncSetAttribute(shared, CUfunction_attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES, max as i32));
    assert_eq!(launch(max + 1), Status::INVALID_VALUE);
    assert_eq!(launch(max), OK);
    assert_eq!(read(to, 1), [max]);
}

#[test]
fn parameters_are_given_one_by_one_or_as_a_buffer() {
    let _context = Ctx::new();
    let module = load(PTX).unwrap();
    let mixed = function(module, "mixed").unwrap();
    let to = words(1);
    let launch = |params: KernelParams, extra: Extra| {
        call!(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, CUstream::NULL, params, extra))
    };
    let (a, s, b) = (200u8, [1000u32, 7, 20_000], 40_000u16);
    fn at<T>(value: &T) -> In<u8> {
        input(std::ptr::from_ref(value).cast::<u8>())
    }
    let pointers = [at(&a), at(&s), at(&b), at(&to)];
    assert_eq!(launch(input(pointers.as_ptr()), null()), OK);
    assert_eq!(read(to, 1), [200 + 1000 + 20_000 + 40_000]);

    let mut buffer = [0xeeu8; 40];
    buffer[0] = 1;
    buffer[4..8].copy_from_slice(&2u32.to_le_bytes());
    buffer[12..16].copy_from_slice(&3u32.to_le_bytes());
    buffer[16..18].copy_from_slice(&4u16.to_le_bytes());
    buffer[24..32].copy_from_slice(&to.to_le_bytes());
    let address = buffer.as_ptr().expose_provenance();
    for (bytes, status) in [(32usize, OK), (40, OK), (31, Status::INVALID_VALUE), (0, Status::INVALID_VALUE)]
    {
        let extra = [1, address, 2, std::ptr::from_ref(&bytes).expose_provenance(), 0];
        assert_eq!(launch(null(), input(extra.as_ptr())), status, "{bytes} bytes");
    }
    assert_eq!(read(to, 1), [10]);
    let bytes = 32usize;
    let size = std::ptr::from_ref(&bytes).expose_provenance();
    // In the other order, without its size, without the buffer, with what there is not, and both ways at once.
    let other = [2, size, 1, address, 0];
    assert_eq!(launch(null(), input(other.as_ptr())), OK);
    for bad in [&[1, address, 0][..], &[2, size, 0], &[0], &[3, size, 1, address, 2, size, 0]] {
        assert_eq!(launch(null(), input(bad.as_ptr())), Status::INVALID_VALUE);
    }
    assert_eq!(launch(input(pointers.as_ptr()), input(other.as_ptr())), Status::INVALID_VALUE);
    assert_eq!(launch(null(), null()), Status::INVALID_VALUE, "it has parameters");
    let missing = [at(&a), null(), at(&b), at(&to)];
    assert_eq!(launch(input(missing.as_ptr()), null()), Status::INVALID_VALUE);
}

#[test]
fn cooperative_launches_are_resident() {
    let _context = Ctx::new();
    let few = function(load(PTX).unwrap(), "few").unwrap();
    let launch =
        |blocks| call!(cuLaunchCooperativeKernel(few, blocks, 1, 1, 64, 1, 1, 0, CUstream::NULL, null()));
    // 32 blocks on each of 132 multiprocessors.
    assert_eq!(launch(1), OK);
    assert_eq!(launch(32 * 132), OK);
    assert_eq!(launch(32 * 132 + 1), Status::COOPERATIVE_LAUNCH_TOO_LARGE);
    ok!(cuCtxSynchronize());
}

#[test]
fn launch_attributes_are_taken_or_refused() {
    let _context = Ctx::new();
    let few = function(load(PTX).unwrap(), "few").unwrap();
    type Attribute = CUlaunchAttributeID;
    let numbers = |numbers: &[i32]| {
        let mut value = [0; 16];
        value[..numbers.len()].copy_from_slice(numbers);
        CUlaunchAttributeValue { numbers: value }
    };
    for (id, value, blocks, status) in [
        (Attribute::IGNORE, numbers(&[9]), 1, OK),
        (Attribute::PRIORITY, numbers(&[-1]), 1, OK),
        (Attribute::PROGRAMMATIC_STREAM_SERIALIZATION, numbers(&[1]), 1, OK),
        (Attribute::COOPERATIVE, numbers(&[1]), 32 * 132, OK),
        (Attribute::COOPERATIVE, numbers(&[1]), 32 * 132 + 1, Status::COOPERATIVE_LAUNCH_TOO_LARGE),
        (Attribute::COOPERATIVE, numbers(&[0]), 32 * 132 + 1, OK),
        (Attribute::CLUSTER_DIMENSION, numbers(&[1, 1, 1]), 2, OK),
        (Attribute::CLUSTER_DIMENSION, numbers(&[2, 1, 1]), 2, OK),
        (Attribute::CLUSTER_DIMENSION, numbers(&[2, 1, 1]), 3, Status::INVALID_CLUSTER_SIZE),
        (Attribute::CLUSTER_DIMENSION, numbers(&[1, 2, 1]), 2, Status::INVALID_CLUSTER_SIZE),
        (Attribute::CLUSTER_DIMENSION, numbers(&[0, 1, 1]), 2, Status::INVALID_CLUSTER_SIZE),
        (Attribute::CLUSTER_DIMENSION, numbers(&[-1, -1, 1]), 2, Status::INVALID_CLUSTER_SIZE),
        (Attribute::CLUSTER_DIMENSION, numbers(&[8, 1, 1]), 16, OK),
        // More than 8 need an attribute of the function.
        (Attribute::CLUSTER_DIMENSION, numbers(&[16, 1, 1]), 16, Status::INVALID_CLUSTER_SIZE),
        (Attribute::PREFERRED_CLUSTER_DIMENSION, numbers(&[4, 1, 1]), 4, OK),
        (Attribute::PROGRAMMATIC_EVENT, numbers(&[0]), 1, Status::INVALID_HANDLE),
        (Attribute::LAUNCH_COMPLETION_EVENT, numbers(&[0]), 1, Status::INVALID_HANDLE),
        (Attribute::DEVICE_UPDATABLE_KERNEL_NODE, numbers(&[1]), 1, Status::NOT_SUPPORTED),
        (CUlaunchAttributeID(200), numbers(&[0]), 1, Status::INVALID_VALUE),
    ] {
        let attribute = CUlaunchAttribute { id, pad: [0; 4], value };
        let config = CUlaunchConfig {
            gridDimX: blocks,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 64,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: CUstream::NULL,
            attrs: input(&attribute),
            numAttrs: 1,
        };
        assert_eq!(call!(cuLaunchKernelEx(input(&config), few, null(), null())), status, "{id:?} {blocks}");
    }
    fails!(INVALID_VALUE, cuLaunchKernelEx(null(), few, null(), null()));
    // By the documentation of `cuLaunchKernelEx` and `cuLaunchCooperativeKernel`: parameters one by one.
    let (bytes, buffer) = (0usize, 0u64);
    let at = |place: *const u8| place.expose_provenance();
    let extra = [1, at((&raw const buffer).cast()), 2, at((&raw const bytes).cast()), 0];
    for (id, status) in
        [(CUlaunchAttributeID::COOPERATIVE, Status::INVALID_VALUE), (CUlaunchAttributeID::IGNORE, OK)]
    {
        let attribute = CUlaunchAttribute { id, pad: [0; 4], value: CUlaunchAttributeValue::of(1) };
        let config = CUlaunchConfig {
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 64,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: CUstream::NULL,
            attrs: input(&attribute),
            numAttrs: 1,
        };
        let launched = call!(cuLaunchKernelEx(input(&config), few, null(), input(extra.as_ptr())));
        assert_eq!(launched, status, "{id:?}, parameters as a buffer");
    }
    ok!(cuCtxSynchronize());
}

#[test]
fn what_a_kernel_did_wrong_stays_with_its_context() {
    for (kernel, offset, threads, status) in [
        ("trap", None, 1, Status::LAUNCH_FAILED),
        ("store", Some(4), 1, Status::ILLEGAL_ADDRESS),
        ("store", Some(2), 1, Status::MISALIGNED_ADDRESS),
        ("hang", None, 64, Status::LAUNCH_TIMEOUT),
    ] {
        let _context = Ctx::new();
        let module = load(PTX).unwrap();
        let (bad, add, word) =
            (function(module, kernel).unwrap(), function(module, "add").unwrap(), words(1));
        let params = Params::of(&[word + offset.unwrap_or(0)]);
        ok!(cuLaunchKernel(bad, 1, 1, 1, threads, 1, 1, 0, CUstream::NULL, params.get(), null()));
        fails_with(status, call!(cuCtxSynchronize()), kernel);
        fails_with(status, launch(add, CUstream::NULL, &[word, 1]), kernel);
        fails_with(status, load(PTX).unwrap_err(), kernel);
        let mut value = 0;
        let attribute = CUfunction_attribute::NUM_REGS;
        fails_with(status, call!(cuFuncGetAttribute(output(&mut value), attribute, add)), kernel);
    }
    // Others go on.
    let _context = Ctx::new();
    let word = words(1);
    assert_eq!(launch(function(load(PTX).unwrap(), "add").unwrap(), CUstream::NULL, &[word, 1]), OK);
    assert_eq!(read(word, 1), [1]);
}

#[track_caller]
fn fails_with(expected: Status, status: Status, kernel: &str) {
    assert_eq!(status, expected, "{kernel}");
}

#[test]
fn threads_launch_at_once() {
    let context = Ctx::new();
    let module = load(PTX).unwrap();
    let add = function(module, "add").unwrap();
    let to = words(8);
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let context = context.0;
            scope.spawn(move || {
                ok!(cuCtxSetCurrent(context));
                let stream = stream();
                for value in 1..=50 {
                    assert_eq!(launch(add, stream, &[to + 4 * thread, value]), OK);
                }
                ok!(cuStreamSynchronize(stream));
                ok!(cuStreamDestroy_v2(stream));
            });
        }
    });
    assert_eq!(read(to, 8), [1275; 8]);
}
