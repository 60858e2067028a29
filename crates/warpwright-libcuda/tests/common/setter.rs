//! A kernel that sets the value of a conditional node.

use super::calls::{input, out as get, output};
use super::ok;
use std::ffi::CString;
use warpwright_cuda::api::*;
use warpwright_cuda::types::*;

const PTX: &str = ".version 8.0 .target sm_80 .address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry set(.param .u64 handle)
{
    .reg .b64 %h;
    ld.param.u64 %h, [handle];
    { .param .b64 h; .param .b32 v; st.param.b64 [h], %h; st.param.b32 [v], 1;
      call cudaGraphSetConditional, (h, v); }
    ret;
}";

/// Adds a node with a kernel that sets the value of a handle to 1.
pub(crate) fn add_setter(graph: CUgraph, handle: u64) -> CUgraphNode {
    let (ptx, name) = (CString::new(PTX).unwrap(), CString::new("set").unwrap());
    let (mut image, mut bytes, mut handle) = (std::ptr::null(), 0, handle);
    let params = [input((&raw mut handle).cast::<u8>().cast_const())];
    // SAFETY: texts with their ends, places for handles, and a structure of integers and null pointers. Calls copy the
    // parameters.
    unsafe {
        let link = get(|link| cuLinkCreate_v2(0, In::null(), Out::null(), link)).unwrap();
        let (data, size) = (input(ptx.as_ptr().cast::<u8>()), ptx.as_bytes_with_nul().len());
        let kind = CUjitInputType::PTX;
        ok(cuLinkAddData_v2(link, kind, data, size, In::null(), 0, In::null(), Out::null()));
        ok(cuLinkComplete(link, output(&mut image), output(&mut bytes)));
        let module = get(|module| cuModuleLoadData(module, input(image))).unwrap();
        ok(cuLinkDestroy(link));
        let mut node: CUDA_KERNEL_NODE_PARAMS_v1 = std::mem::zeroed();
        node.func = get(|function| cuModuleGetFunction(function, module, input(name.as_ptr()))).unwrap();
        node.kernelParams = input(params.as_ptr());
        (node.gridDimX, node.gridDimY, node.gridDimZ) = (1, 1, 1);
        (node.blockDimX, node.blockDimY, node.blockDimZ) = (1, 1, 1);
        get(|made| cuGraphAddKernelNode(made, graph, In::null(), 0, input(&node))).unwrap()
    }
}
