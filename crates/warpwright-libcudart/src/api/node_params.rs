//! The parameters of nodes: the runtime's structures, and the driver's.

use super::copy::Direction;
use super::copy_rows::{slices, slices_of};
use crate::abi::{DriverKernelNodeParams, DriverMemcpy3D, Handle, In, KernelNodeParams, Memcpy3DParms, Out};
use crate::code;
use crate::driver::driver;
use crate::error::Result;
use std::ffi::{c_int, c_uint};
use std::ptr::null_mut;

/// The context in which the thread's nodes run.
pub(super) fn context() -> Result<Handle> {
    let mut context: Handle = null_mut();
    driver!(cuCtxGetCurrent(&raw mut context))?;
    Ok(context)
}

/// A kernel node.
pub(super) fn kernel(params: In<KernelNodeParams>) -> Result<DriverKernelNodeParams> {
    let params = params.get()?;
    Ok(DriverKernelNodeParams {
        function: null_mut(),
        grid: params.grid,
        block: params.block,
        shared: params.shared,
        params: params.params,
        extra: params.extra,
        kernel: code::kernel(params.function)?,
        context: null_mut(),
    })
}

/// The runtime's description of a kernel node.
pub(super) fn kernel_of(params: &DriverKernelNodeParams) -> Result<KernelNodeParams> {
    Ok(KernelNodeParams {
        function: code::host(params.kernel, params.function)?,
        grid: params.grid,
        block: params.block,
        shared: params.shared,
        params: params.params,
        extra: params.extra,
    })
}

/// A node that copies bytes.
pub(super) fn bytes(to: Handle, from: Handle, bytes: usize, kind: c_int) -> Result<DriverMemcpy3D> {
    let (from_kind, to_kind) = Direction::new(kind)?.kinds();
    let mut copy = DriverMemcpy3D::zeroed();
    (copy.src_type, copy.src_host, copy.src_device, copy.src_pitch, copy.src_height) =
        (from_kind, from, from, bytes, 1);
    (copy.dst_type, copy.dst_host, copy.dst_device, copy.dst_pitch, copy.dst_height) =
        (to_kind, to, to, bytes, 1);
    (copy.width, copy.height, copy.depth) = (bytes, 1, 1);
    Ok(copy)
}

/// The number of bytes of the parameters of any node: `cudaGraphNodeParams`, and `CUgraphNodeParams`.
const BYTES: usize = 256;
/// The place behind the kind, and padding, where the parameters of a kind begin.
const BODY: usize = 16;

/// The kinds of nodes whose parameters differ, or have results: `cudaGraphNodeType`.
const KERNEL: c_uint = 0;
const MEMCPY: c_uint = 1;
const MEMSET: c_uint = 2;
const ALLOC: c_uint = 10;
const CONDITIONAL: c_uint = 13;

/// The parameters of a node of any kind.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct NodeParams([u8; BYTES]);

/// `cudaMemcpyNodeParams`: flags, a context, and the copy.
#[repr(C)]
#[derive(Clone, Copy)]
struct MemcpyNode {
    flags: c_int,
    reserved: c_int,
    context: Handle,
    copy: Memcpy3DParms,
}

/// `CUDA_MEMCPY_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DriverMemcpyNode {
    flags: c_int,
    reserved: c_int,
    context: Handle,
    copy: DriverMemcpy3D,
}

impl NodeParams {
    fn body<T: Copy>(&self) -> T {
        const { assert!(BODY + size_of::<T>() <= BYTES) };
        // SAFETY: the bytes are there, and the types of the interface may have any bits.
        unsafe { self.0.as_ptr().add(BODY).cast::<T>().read_unaligned() }
    }

    fn set_body<T: Copy>(&mut self, body: T) {
        const { assert!(BODY + size_of::<T>() <= BYTES) };
        self.0[BODY..].fill(0);
        // SAFETY: the bytes are there.
        unsafe { self.0.as_mut_ptr().add(BODY).cast::<T>().write_unaligned(body) }
    }

    /// Writes what the driver has returned in the parameters of memory and conditional nodes, and nothing for other kinds.
    pub(super) fn return_results(self, params: Out<NodeParams>) -> Result<()> {
        match self.kind() {
            ALLOC | CONDITIONAL => params.set(self),
            _ => Ok(()),
        }
    }

    /// All bytes zero.
    pub(super) fn zeroed() -> NodeParams {
        NodeParams([0; BYTES])
    }

    fn kind(&self) -> c_uint {
        c_uint::from_ne_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }

    /// Sets the context of a node whose structures are alike but for it.
    fn set_context_at(&mut self, at: usize) -> Result<()> {
        let context = context()?.addr().to_ne_bytes();
        self.0[BODY + at..BODY + at + 8].copy_from_slice(&context);
        Ok(())
    }
}

/// A node of any kind as the driver has it. Kinds whose parameters are alike are passed on.
pub(super) fn any(params: In<NodeParams>) -> Result<NodeParams> {
    let mut node = params.get()?;
    match node.kind() {
        KERNEL => {
            let params = node.body::<KernelNodeParams>();
            // SAFETY: it is there until the call returns.
            node.set_body(kernel(unsafe { In::new(&raw const params) })?);
        }
        MEMCPY => {
            let MemcpyNode { flags, reserved, context: wanted, copy } = node.body();
            let context = if wanted.is_null() { context()? } else { wanted };
            node.set_body(DriverMemcpyNode { flags, reserved, context, copy: slices(&copy)? });
        }
        // The address, three sizes and two numbers are before the context.
        MEMSET => node.set_context_at(40)?,
        _ => {}
    }
    Ok(node)
}

/// A node of any kind as the runtime has it.
pub(super) fn any_of(mut node: NodeParams) -> Result<NodeParams> {
    match node.kind() {
        KERNEL => node.set_body(kernel_of(&node.body())?),
        MEMCPY => {
            let DriverMemcpyNode { flags, reserved, context, copy } = node.body();
            node.set_body(MemcpyNode { flags, reserved, context, copy: slices_of(&copy)? });
        }
        _ => {}
    }
    Ok(node)
}
