//! Contexts, memory and kernels of tests of code and graphs: one device of `sm_90`.
#![allow(dead_code, reason = "each test program takes what it needs")]

#[path = "../common/calls.rs"]
mod calls;

pub(crate) use calls::*;

use std::ffi::{CString, c_char, c_void};
use warpwright_cuda::api::*;
use warpwright_cuda::types::*;

pub(crate) fn init() {
    begin(&[
        ("WARPWRIGHT_DEVICES", "90"),
        ("WARPWRIGHT_MEMORY", "1G"),
        ("WARPWRIGHT_LOG", "off"),
        ("WARPWRIGHT_WORKERS", "2"),
        ("WARPWRIGHT_DRIVER_VERSION", "12020"),
        ("WARPWRIGHT_FINDINGS", "/dev/null"),
    ]);
}

/// A context of its own, current on the thread that made it until it is dropped there.
pub(crate) struct Ctx(pub(crate) CUcontext);

impl Ctx {
    pub(crate) fn new() -> Self {
        init();
        Ctx(out(|context| call!(cuCtxCreate_v2(context, 0, 0))).unwrap())
    }
}

impl Drop for Ctx {
    fn drop(&mut self) {
        let status = call!(cuCtxDestroy_v2(self.0));
        assert!(std::thread::panicking() || status == OK, "{status:?}");
    }
}

/// Words of a device, which are zero.
pub(crate) fn words(count: usize) -> CUdeviceptr {
    let address = out(|address| call!(cuMemAlloc_v2(address, 4 * count))).unwrap();
    ok!(cuMemsetD32_v2(address, 0, count));
    // Streams of tests do not wait for the default stream.
    ok!(cuStreamSynchronize(CUstream::LEGACY));
    address
}

/// Words of a device, when all is done that was asked for.
pub(crate) fn read(from: CUdeviceptr, count: usize) -> Vec<u32> {
    let mut data = vec![0u32; count];
    ok!(cuCtxSynchronize());
    ok!(cuMemcpyDtoH_v2(data.as_mut_ptr().cast::<c_void>(), from, 4 * count));
    data
}

pub(crate) fn write(to: CUdeviceptr, data: &[u32]) {
    ok!(cuMemcpyHtoD_v2(to, data.as_ptr().cast::<c_void>(), 4 * data.len()));
    ok!(cuStreamSynchronize(CUstream::LEGACY));
}

/// A stream that the default stream does not wait for.
pub(crate) fn stream() -> CUstream {
    out(|stream| call!(cuStreamCreate(stream, 1))).unwrap()
}

pub(crate) fn event() -> CUevent {
    out(|event| call!(cuEventCreate(event, 0))).unwrap()
}

pub(crate) fn text(text: &str) -> CString {
    CString::new(text).unwrap()
}

pub(crate) fn chars(text: &CString) -> In<c_char> {
    input(text.as_ptr())
}

pub(crate) fn null<T>() -> In<T> {
    In::null()
}

pub(crate) fn nowhere<T>() -> Out<T> {
    Out::null()
}

pub(crate) fn load(ptx: &str) -> Result<CUmodule> {
    let ptx = text(ptx);
    out(|module| call!(cuModuleLoadData(module, input(ptx.as_ptr().cast::<u8>()))))
}

pub(crate) fn function(module: CUmodule, name: &str) -> Result<CUfunction> {
    let name = text(name);
    out(|function| call!(cuModuleGetFunction(function, module, chars(&name))))
}

/// Values of parameters, each of eight bytes, and pointers to them.
pub(crate) struct Params {
    _values: Vec<u64>,
    pointers: Vec<In<u8>>,
}

impl Params {
    pub(crate) fn of(values: &[u64]) -> Self {
        let values = values.to_vec();
        let pointers = values.iter().map(|value| input(std::ptr::from_ref(value).cast::<u8>())).collect();
        Params { _values: values, pointers }
    }

    pub(crate) fn get(&self) -> KernelParams {
        input(self.pointers.as_ptr())
    }
}

/// Launches one thread, with parameters of eight bytes of which the kernel takes what it needs.
pub(crate) fn launch(function: CUfunction, stream: CUstream, params: &[u64]) -> Status {
    let params = Params::of(params);
    call!(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params.get(), null()))
}

/// What the tests launch.
pub(crate) const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 counter = 5;
.const .align 4 .b8 table[24];
.extern .shared .align 4 .b8 dynamic[];

// Adds `value` to the word at `to`.
.visible .entry add(.param .u64 to, .param .u32 value)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [value];
    ld.global.u32 %r2, [%rd1];
    add.u32 %r2, %r2, %r1;
    st.global.u32 [%rd1], %r2;
    ret;
}

// Multiplies the word at `to` by `value`.
.visible .entry multiply(.param .u64 to, .param .u32 value)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [value];
    ld.global.u32 %r2, [%rd1];
    mul.lo.u32 %r2, %r2, %r1;
    st.global.u32 [%rd1], %r2;
    ret;
}

// Thread `i` of the grid stores i, counted from one, at word i of `to`.
.visible .entry number(.param .u64 to)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [to];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %ctaid.x;
    mad.lo.u32 %r1, %r3, %r2, %r1;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    add.u32 %r1, %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}

// Stores the dynamic shared memory that it has, in bytes.
.visible .entry shared(.param .u64 to)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [to];
    mov.u32 %r1, %dynamic_smem_size;
    mov.u32 %r2, dynamic;
    st.shared.u32 [%r2], %r1;
    ld.shared.u32 %r3, [%r2];
    st.global.u32 [%rd1], %r3;
    ret;
}

// Stores the sum of a structure of bytes, halves and words.
.visible .entry mixed(.param .u8 a, .param .align 4 .b8 s[12], .param .u16 b, .param .u64 to)
{
    .reg .b16 %rs<4>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u8 %rs1, [a];
    ld.param.u32 %r1, [s];
    ld.param.u32 %r2, [s+8];
    ld.param.u16 %rs2, [b];
    ld.param.u64 %rd1, [to];
    cvt.u32.u16 %r3, %rs1;
    cvt.u32.u16 %r4, %rs2;
    add.u32 %r1, %r1, %r2;
    add.u32 %r1, %r1, %r3;
    add.u32 %r1, %r1, %r4;
    st.global.u32 [%rd1], %r1;
    ret;
}

.visible .entry fixed() .reqntid 32, 2, 1 { ret; }
.visible .entry few() .maxntid 64, 1, 1 { .shared .align 4 .b8 room[1024]; .local .align 4 .b8 own[20]; ret; }
.visible .entry trap() { trap; ret; }
.visible .entry store(.param .u64 to)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [to];
    mov.u32 %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry hang()
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra $other;
    bar.sync 1, 64;
    ret;
$other:
    bar.sync 2, 64;
    ret;
}
";
