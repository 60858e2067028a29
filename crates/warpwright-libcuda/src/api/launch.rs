//! Launches.

use super::entries;
use super::function::no_clusters;
use crate::code::{self, Launch, Shape};
use crate::engine::Stream;
use crate::graph;
use crate::report::log;
use crate::types::{
    CUfunction, CUlaunchAttribute, CUlaunchAttributeID as Attribute, CUlaunchConfig, CUstream, Extra, In,
    KernelParams, Result, Status,
};
use std::ffi::c_uint;

entries! {
    /// Launches a kernel.
    fn cuLaunchKernel, cuLaunchKernel_ptsz |default| (
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: CUstream,
        params: KernelParams,
        extra: Extra,
    ) {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let shape = Shape { grid, block, shared, cooperative: false };
        launch(function, shape, default.resolve(stream), params, extra)
    }

    /// Launches a cooperative kernel: all of its blocks are resident at once.
    fn cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz |default| (
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: CUstream,
        params: KernelParams,
    ) {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let shape = Shape { grid, block, shared, cooperative: true };
        launch(function, shape, default.resolve(stream), params, In::null())
    }

    /// Launches a kernel with attributes.
    fn cuLaunchKernelEx, cuLaunchKernelEx_ptsz |default| (
        config: In<CUlaunchConfig>,
        function: CUfunction,
        params: KernelParams,
        extra: Extra,
    ) {
        let config = config.get()?;
        let attributes = config.attrs.get_all(config.numAttrs as usize)?;
        let shape = Shape {
            grid: [config.gridDimX, config.gridDimY, config.gridDimZ],
            block: [config.blockDimX, config.blockDimY, config.blockDimZ],
            shared: config.sharedMemBytes,
            cooperative: is_cooperative(&attributes)?,
        };
        launch(function, shape, default.resolve(config.hStream), params, extra)
    }
}

fn launch(
    function: CUfunction,
    shape: Shape,
    stream: CUstream,
    params: KernelParams,
    extra: Extra,
) -> Result<()> {
    let function = code::function(function)?;
    let stream = Stream::get(stream)?;
    if function.code.context.id != stream.context.id {
        log::misuse(&format_args!(
            "kernel `{}` is loaded in another context than the stream's",
            function.name()
        ));
        return Err(Status::INVALID_HANDLE);
    }
    graph::launch(&stream, Launch::new(function, shape, params, extra)?)
}

/// Checks the attributes of a launch; returns whether it is cooperative. Attributes that only affect its speed, or how
/// early it may begin, have no effect.
fn is_cooperative(attributes: &[CUlaunchAttribute]) -> Result<bool> {
    let mut cooperative = false;
    for attribute in attributes {
        match attribute.id {
            Attribute::COOPERATIVE => cooperative = attribute.value.number() != 0,
            Attribute::CLUSTER_DIMENSION | Attribute::PREFERRED_CLUSTER_DIMENSION => {
                // A cluster of one block is a block.
                if attribute.value.first::<3>().iter().any(|blocks| *blocks > 1) {
                    no_clusters()?;
                }
            }
            Attribute::IGNORE
            | Attribute::ACCESS_POLICY_WINDOW
            | Attribute::CLUSTER_SCHEDULING_POLICY_PREFERENCE
            | Attribute::PROGRAMMATIC_STREAM_SERIALIZATION
            | Attribute::PRIORITY
            | Attribute::MEM_SYNC_DOMAIN_MAP
            | Attribute::MEM_SYNC_DOMAIN
            | Attribute::PREFERRED_SHARED_MEMORY_CARVEOUT
            | Attribute::NVLINK_UTIL_CENTRIC_SCHEDULING => {}
            Attribute::PROGRAMMATIC_EVENT
            | Attribute::LAUNCH_COMPLETION_EVENT
            | Attribute::DEVICE_UPDATABLE_KERNEL_NODE => {
                log::misuse(&format_args!("launch attribute {} is not supported", attribute.id.0));
                return Err(Status::NOT_SUPPORTED);
            }
            _ => {
                log::misuse(&format_args!("{} is no launch attribute", attribute.id.0));
                return Err(Status::INVALID_VALUE);
            }
        }
    }
    Ok(cooperative)
}
