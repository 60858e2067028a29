//! Contexts, memory and kernels of tests.

#[path = "../common/calls.rs"]
mod calls;

pub(crate) use calls::*;

use crate::*;
use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

pub(crate) const INVALID: Status = Status::INVALID_VALUE;

/// Bytes of each device.
pub(crate) const MEMORY: usize = 1 << 30;

fn init() {
    begin(&[
        ("WARPWRIGHT_DEVICES", "90,80"),
        ("WARPWRIGHT_MEMORY", "1G"),
        ("WARPWRIGHT_LOG", "off"),
        ("WARPWRIGHT_WORKERS", "2"),
        ("WARPWRIGHT_CHECK", "none"),
    ]);
}

/// A context of a device, current on the thread that made it until it is dropped there.
pub(crate) struct Ctx(pub(crate) CUcontext);

impl Ctx {
    pub(crate) fn new(device: CUdevice) -> Self {
        init();
        Ctx(out(|context| call!(cuCtxCreate_v2(context, 0, device))).unwrap())
    }
}

thread_local! {
    /// The pinned memory of the thread's test.
    static PINNED: RefCell<Vec<&'static [AtomicU32]>> = const { RefCell::new(Vec::new()) };
}

impl Drop for Ctx {
    fn drop(&mut self) {
        // What a test that failed holds up goes on, so that the others do.
        if std::thread::panicking() {
            PINNED.take().iter().for_each(|words| set(&words[0]));
            crate::order::open_gates();
        }
        let status = call!(cuCtxDestroy_v2(self.0));
        assert!(std::thread::panicking() || status == OK, "{status:?}");
    }
}

pub(crate) fn alloc(bytes: usize) -> CUdeviceptr {
    out(|address| call!(cuMemAlloc_v2(address, bytes))).unwrap()
}

pub(crate) fn free(address: CUdeviceptr) {
    ok!(cuMemFree_v2(address));
}

pub(crate) fn stream(flags: u32) -> CUstream {
    out(|stream| call!(cuStreamCreate(stream, flags))).unwrap()
}

pub(crate) fn event() -> CUevent {
    out(|event| call!(cuEventCreate(event, 0))).unwrap()
}

/// Pinned memory as words.
pub(crate) fn pinned(words: usize) -> &'static [AtomicU32] {
    let mut pointer: *mut c_void = std::ptr::null_mut();
    ok!(cuMemAllocHost_v2(output(&mut pointer), 4 * words));
    // SAFETY: that many words were just allocated, zeroed; tests that free them do not touch them afterwards.
    let words = unsafe { std::slice::from_raw_parts(pointer.cast::<AtomicU32>(), words) };
    PINNED.with_borrow_mut(|pinned| pinned.push(words));
    words
}

pub(crate) fn free_pinned(words: &[AtomicU32]) {
    free_pinned_at(address(words));
}

pub(crate) fn free_pinned_at(at: u64) {
    forget_pinned(at);
    ok!(cuMemFreeHost(std::ptr::with_exposed_provenance_mut(at as usize)));
}

/// The test itself gives pinned memory back.
pub(crate) fn forget_pinned(at: u64) {
    PINNED.with_borrow_mut(|pinned| pinned.retain(|words| address(words) != at));
}

pub(crate) fn address<T>(values: &[T]) -> u64 {
    values.as_ptr().expose_provenance() as u64
}

pub(crate) fn pointer<T>(values: &[T]) -> *const c_void {
    values.as_ptr().cast::<c_void>()
}

pub(crate) fn pointer_mut<T>(values: &mut [T]) -> *mut c_void {
    values.as_mut_ptr().cast::<c_void>()
}

/// Sets bytes of a device.
pub(crate) fn upload(to: CUdeviceptr, data: &[u8]) {
    ok!(cuMemcpyHtoD_v2(to, pointer(data), data.len()));
}

/// Bytes of a device, when all is done that was asked for.
pub(crate) fn download(from: CUdeviceptr, bytes: usize) -> Vec<u8> {
    let mut data = vec![0; bytes];
    ok!(cuMemcpyDtoH_v2(pointer_mut(&mut data), from, bytes));
    data
}

const PTX: &str = "
.version 7.8
.target sm_80
.address_size 64
// Stores `value` at `to` when the word at `flag` is not zero.
.visible .entry store_after(.param .u64 flag, .param .u64 to, .param .u32 value)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [flag];
    ld.param.u64 %rd2, [to];
    ld.param.u32 %r1, [value];
$again:
    ld.volatile.u32 %r2, [%rd1];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra $again;
    st.u32 [%rd2], %r1;
    ret;
}
// Adds `value` to the word at `to`.
.visible .entry add(.param .u64 to, .param .u32 value)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [value];
    ld.u32 %r2, [%rd1];
    add.u32 %r2, %r2, %r1;
    st.u32 [%rd1], %r2;
    ret;
}
.visible .entry trap() { trap; ret; }
.visible .global .align 4 .b8 table[64];
\0";

/// The kernels of the tests, in the current context.
pub(crate) struct Kernels {
    pub(crate) module: CUmodule,
}

impl Kernels {
    pub(crate) fn load() -> Self {
        let module = out(|module| call!(cuModuleLoadData(module, input(PTX.as_ptr())))).unwrap();
        Kernels { module }
    }

    /// Launches one thread of a kernel with parameters of eight bytes, of which it takes what it needs.
    pub(crate) fn launch(&self, name: &std::ffi::CStr, params: &[u64], stream: CUstream) -> Status {
        let name = input(name.as_ptr());
        let function = match out(|function| call!(cuModuleGetFunction(function, self.module, name))) {
            Ok(function) => function,
            Err(status) => return status,
        };
        let pointers: Vec<In<u8>> =
            params.iter().map(|value| input(std::ptr::from_ref(value).cast::<u8>())).collect();
        let (params, extra) = (input(pointers.as_ptr()), In::null());
        call!(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, extra))
    }

    pub(crate) fn store_after(&self, flag: &AtomicU32, to: u64, value: u32, stream: CUstream) {
        let flag = std::ptr::from_ref(flag).expose_provenance() as u64;
        assert_eq!(self.launch(c"store_after", &[flag, to, value.into()], stream), OK);
    }

    pub(crate) fn add(&self, to: u64, value: u32, stream: CUstream) {
        assert_eq!(self.launch(c"add", &[to, value.into()], stream), OK);
    }

    pub(crate) fn table(&self) -> CUdeviceptr {
        let mut bytes = 0;
        let name = input(c"table".as_ptr());
        out(|address| call!(cuModuleGetGlobal_v2(address, output(&mut bytes), self.module, name))).unwrap()
    }
}

/// Lets a kernel that waits go on.
pub(crate) fn set(flag: &AtomicU32) {
    flag.store(1, SeqCst);
}

/// Waits for something that must come, but not for ever.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: it never comes");
        std::thread::yield_now();
    }
}
