//! Functions: attributes, parameters, occupancy.

use crate::*;
use std::ffi::{CStr, c_char, c_int};

fn attribute(function: CUfunction, attribute: CUfunction_attribute) -> Result<c_int> {
    out(|value| call!(cuFuncGetAttribute(value, attribute, function)))
}

#[test]
fn attributes_are_those_of_the_text_and_the_device() {
    let _context = Ctx::new();
    let module = load(PTX).unwrap();
    let (few, fixed, add) = (
        function(module, "few").unwrap(),
        function(module, "fixed").unwrap(),
        function(module, "add").unwrap(),
    );
    type Attribute = CUfunction_attribute;
    for (function, name, value) in [
        (add, Attribute::MAX_THREADS_PER_BLOCK, 1024),
        (fixed, Attribute::MAX_THREADS_PER_BLOCK, 64),
        (few, Attribute::MAX_THREADS_PER_BLOCK, 64),
        (add, Attribute::SHARED_SIZE_BYTES, 0),
        (few, Attribute::SHARED_SIZE_BYTES, 1024),
        (few, Attribute::CONST_SIZE_BYTES, 24),
        (few, Attribute::LOCAL_SIZE_BYTES, 20),
        (add, Attribute::LOCAL_SIZE_BYTES, 0),
        (add, Attribute::PTX_VERSION, 80),
        (add, Attribute::BINARY_VERSION, 90),
        (add, Attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES, 48 << 10),
        (few, Attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES, 47 << 10),
        (add, Attribute::PREFERRED_SHARED_MEMORY_CARVEOUT, -1),
        (add, Attribute::REQUIRED_CLUSTER_WIDTH, 0),
    ] {
        assert_eq!(attribute(function, name), Ok(value), "{name:?}");
    }
    // An address of two registers, and two words.
    assert_eq!(attribute(add, Attribute::NUM_REGS), Ok(4));
    assert_eq!(attribute(add, CUfunction_attribute(99)), Err(Status::INVALID_VALUE));
    assert_eq!(attribute(CUfunction::NULL, Attribute::NUM_REGS), Err(Status::INVALID_HANDLE));
    assert_eq!(attribute(CUfunction(module.0), Attribute::NUM_REGS), Err(Status::INVALID_HANDLE));
}

#[test]
fn attributes_are_set_within_what_the_device_has() {
    let _context = Ctx::new();
    let module = load(PTX).unwrap();
    let few = function(module, "few").unwrap();
    type Attribute = CUfunction_attribute;
    let max = (227 << 10) - 1024;
    for (name, value, status) in [
        (Attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES, max, OK),
        (Attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES, max + 1, Status::INVALID_VALUE),
        (Attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES, -1, Status::INVALID_VALUE),
        (Attribute::PREFERRED_SHARED_MEMORY_CARVEOUT, 50, OK),
        (Attribute::PREFERRED_SHARED_MEMORY_CARVEOUT, 101, Status::INVALID_VALUE),
        (Attribute::NUM_REGS, 4, Status::INVALID_VALUE),
        (Attribute::CLUSTER_SIZE_MUST_BE_SET, 1, Status::INVALID_VALUE),
        (Attribute::NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, OK),
        (Attribute::CLUSTER_SCHEDULING_POLICY_PREFERENCE, 2, OK),
        (Attribute::CLUSTER_SCHEDULING_POLICY_PREFERENCE, 3, Status::INVALID_VALUE),
        (Attribute::REQUIRED_CLUSTER_WIDTH, -1, Status::INVALID_VALUE),
        (CUfunction_attribute(99), 0, Status::INVALID_VALUE),
    ] {
        assert_eq!(call!(cuFuncSetAttribute(few, name, value)), status, "{name:?} {value}");
    }
    assert_eq!(attribute(few, Attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES), Ok(max));
    assert_eq!(attribute(few, Attribute::PREFERRED_SHARED_MEMORY_CARVEOUT), Ok(50));
    ok!(cuFuncSetCacheConfig(few, CUfunc_cache::PREFER_L1));
    fails!(INVALID_VALUE, cuFuncSetCacheConfig(few, CUfunc_cache(4)));
    let state = out(|state| call!(cuFuncIsLoaded(state, few)));
    assert_eq!(state, Ok(CUfunctionLoadingState::LOADED));
    assert_eq!(out(|of| call!(cuFuncGetModule(of, few))), Ok(module));
    let mut name: *const c_char = std::ptr::null();
    ok!(cuFuncGetName(output(&mut name), few));
    // SAFETY: it is a text as long as the module is loaded.
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"few");
}

#[test]
fn a_limit_of_registers_is_kept() {
    let _context = Ctx::new();
    let ptx = text(PTX);
    let (name, mut value) = (CUjit_option::MAX_REGISTERS, 3usize);
    let code = input(ptx.as_ptr().cast::<u8>());
    let (name, value) = (input(&name), output(&mut value));
    let module = out(|module| call!(cuModuleLoadDataEx(module, code, 1, name, value))).unwrap();
    assert_eq!(attribute(function(module, "add").unwrap(), CUfunction_attribute::NUM_REGS), Ok(3));
}

#[test]
fn parameters_are_where_the_kernel_has_them() {
    let _context = Ctx::new();
    let mixed = function(load(PTX).unwrap(), "mixed").unwrap();
    assert_eq!(out(|count| call!(cuFuncGetParamCount(mixed, count))), Ok(4));
    let param = |index| {
        let mut bytes = 0;
        let offset = out(|offset| call!(cuFuncGetParamInfo(mixed, index, offset, output(&mut bytes))));
        offset.map(|offset| (offset, bytes))
    };
    let all: Vec<_> = (0..5).map(param).collect();
    assert_eq!(all, [Ok((0, 1)), Ok((4, 12)), Ok((16, 2)), Ok((24, 8)), Err(Status::INVALID_VALUE)]);
}

unsafe extern "C" fn four_per_thread(threads: c_int) -> usize {
    4 * threads as usize
}

unsafe extern "C" fn much_for_many(threads: c_int) -> usize {
    if threads > 256 { 200 << 10 } else { 0 }
}

#[test]
fn occupancy_follows_from_threads_and_shared_memory() {
    let _context = Ctx::new();
    let module = load(PTX).unwrap();
    let (add, few) = (function(module, "add").unwrap(), function(module, "few").unwrap());
    let blocks = |function, threads, shared| {
        out(|blocks| call!(cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared)))
    };
    // A multiprocessor of sm_90 holds 2048 threads, 32 blocks and 228 KiB, of which each block takes one more.
    for (function, threads, shared, expected) in [
        (add, 1024, 0, Ok(2)),
        (add, 32, 0, Ok(32)),
        (add, 33, 0, Ok(32)),
        (add, 1, 0, Ok(32)),
        (add, 32, 56 << 10, Ok(4)),
        (add, 32, (227 << 10) + 1, Ok(0)),
        (add, 1025, 0, Ok(0)),
        (few, 65, 0, Ok(0)),
        (few, 64, 226 << 10, Ok(1)),
        (add, 0, 0, Err(Status::INVALID_VALUE)),
        (add, -1, 0, Err(Status::INVALID_VALUE)),
    ] {
        assert_eq!(blocks(function, threads, shared), expected, "{threads} threads, {shared} bytes");
    }
    let with_flags = |flags| {
        out(|blocks| call!(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, add, 1024, 0, flags)))
    };
    assert_eq!((with_flags(1), with_flags(2)), (Ok(2), Err(Status::INVALID_VALUE)));

    let best = |function, ask: CUoccupancyB2DSize, shared, limit| {
        let mut grid = 0;
        let at = output(&mut grid);
        let block =
            out(|block| call!(cuOccupancyMaxPotentialBlockSize(at, block, function, ask, shared, limit)));
        block.map(|block| (grid, block))
    };
    assert_eq!(best(add, None, 0, 0), Ok((264, 1024)));
    // 16 blocks of 100 threads, 21 of 96, 32 of 64.
    assert_eq!(best(add, None, 0, 100), Ok((4224, 64)));
    assert_eq!(best(few, None, 0, 0), Ok((4224, 64)));
    assert_eq!(best(add, Some(four_per_thread), 0, 0), Ok((264, 1024)));
    assert_eq!(best(add, Some(much_for_many), 0, 0), Ok((1056, 256)));
    // One block of 200 KiB: the largest.
    assert_eq!(best(add, None, 200 << 10, 0), Ok((132, 1024)));
    assert_eq!(best(add, None, 300 << 10, 0), Err(Status::INVALID_VALUE));

    let left = |function, blocks, threads| {
        out(|bytes| call!(cuOccupancyAvailableDynamicSMemPerBlock(bytes, function, blocks, threads)))
    };
    assert_eq!(left(add, 1, 32), Ok(227 << 10));
    assert_eq!(left(add, 2, 1024), Ok(113 << 10));
    assert_eq!(left(few, 4, 32), Ok((57 << 10) - 2048));
    assert_eq!(left(add, 3, 1024), Err(Status::INVALID_VALUE));
    assert_eq!(left(add, 0, 32), Err(Status::INVALID_VALUE));

    let clusters = |function, cluster: [c_int; 3], grid| {
        let value = CUlaunchAttributeValue::of_all(&cluster);
        let attribute = CUlaunchAttribute { id: CUlaunchAttributeID::CLUSTER_DIMENSION, pad: [0; 4], value };
        let config =
            CUlaunchConfig { attrs: input(&attribute), numAttrs: 1, ..config_of(grid, 1024, CUstream::NULL) };
        out(|count| call!(cuOccupancyMaxActiveClusters(count, function, input(&config))))
    };
    // Two blocks on each of 132 multiprocessors.
    assert_eq!(clusters(add, [1, 1, 1], 7), Ok(264));
    assert_eq!(clusters(add, [8, 1, 1], 16), Ok(33));
    assert_eq!(clusters(add, [8, 1, 1], 15), Err(Status::INVALID_CLUSTER_SIZE));
    let config = config_of(8, 32, CUstream::NULL);
    let largest =
        |function| out(|size| call!(cuOccupancyMaxPotentialClusterSize(size, function, input(&config))));
    assert_eq!(largest(add), Ok(8));
    ok!(cuFuncSetAttribute(add, CUfunction_attribute::NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    assert_eq!(largest(add), Ok(16));
}

fn config_of(grid: u32, block: u32, stream: CUstream) -> CUlaunchConfig {
    CUlaunchConfig {
        gridDimX: grid,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: block,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: stream,
        attrs: null(),
        numAttrs: 0,
    }
}

/// By the documentation of `cuFuncGetName`, `cuFuncGetParamInfo`, `cuFuncSetAttribute` and `CUfunction_attribute`.
#[test]
fn clusters_are_asked_for_whole() {
    let _context = Ctx::new();
    let add = function(load(PTX).unwrap(), "add").unwrap();
    let word = words(1);
    type Attribute = CUfunction_attribute;
    let sizes = [
        Attribute::REQUIRED_CLUSTER_WIDTH,
        Attribute::REQUIRED_CLUSTER_HEIGHT,
        Attribute::REQUIRED_CLUSTER_DEPTH,
    ];
    for (cluster, status) in [
        ([0, 0, 0], OK),
        ([1, 1, 1], OK),
        ([1, 0, 0], Status::INVALID_VALUE),
        ([2, 1, 1], Status::INVALID_CLUSTER_SIZE),
    ] {
        for (name, blocks) in sizes.into_iter().zip(cluster) {
            ok!(cuFuncSetAttribute(add, name, blocks));
            assert_eq!(attribute(add, name), Ok(blocks));
        }
        assert_eq!(launch(add, CUstream::NULL, &[word, 1]), status, "{cluster:?}");
    }
    assert_eq!(read(word, 1), [2]);
    // What a kernel was compiled for is there to be read, and cannot be set.
    let text =
        |of: &str| format!(".version 7.8\n.target sm_90\n.address_size 64\n.entry k() {of} {{ ret; }}");
    let compiled = function(load(&text(".reqnctapercluster 2, 3")).unwrap(), "k").unwrap();
    assert_eq!(sizes.map(|size| attribute(compiled, size)), [Ok(2), Ok(3), Ok(1)]);
    assert_eq!(attribute(compiled, Attribute::CLUSTER_SIZE_MUST_BE_SET), Ok(0));
    assert_eq!(call!(cuFuncSetAttribute(compiled, sizes[0], 2)), Status::NOT_PERMITTED);
    assert_eq!(launch(compiled, CUstream::NULL, &[]), Status::INVALID_CLUSTER_SIZE, "a grid of one block");
    let open = function(load(&text(".explicitcluster")).unwrap(), "k").unwrap();
    assert_eq!(attribute(open, Attribute::CLUSTER_SIZE_MUST_BE_SET), Ok(1));
    assert_eq!(launch(open, CUstream::NULL, &[]), Status::INVALID_CLUSTER_SIZE);
    for size in sizes {
        ok!(cuFuncSetAttribute(open, size, 1));
    }
    assert_eq!(launch(open, CUstream::NULL, &[]), OK);
    let (mut name, mut bytes) = (std::ptr::null(), 0usize);
    fails!(INVALID_VALUE, cuFuncGetName(output(&mut name), CUfunction::NULL));
    fails!(INVALID_VALUE, cuFuncGetParamInfo(CUfunction::NULL, 0, output(&mut bytes), nowhere()));
    fails!(INVALID_HANDLE, cuFuncGetName(output(&mut name), CUfunction(77)));
}
