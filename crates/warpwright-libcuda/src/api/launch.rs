//! Launches.

use super::entries;
use crate::code::{self, Launch, Shape};
use crate::engine::{EVENTS, Stream};
use crate::graph;
use crate::report::log;
use crate::types::{
    CUevent, CUfunction, CUlaunchAttribute, CUlaunchAttributeID as Attribute, CUlaunchConfig, CUstream,
    Extra, In, KernelParams, Result, Status,
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
        let shape = Shape { grid, block, shared, cooperative: false, cluster: None };
        launch(function, shape, default.resolve(stream), params, extra, Attributes::default())
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
        let shape = Shape { grid, block, shared, cooperative: true, cluster: None };
        launch(function, shape, default.resolve(stream), params, In::null(), Attributes::default())
    }

    /// Launches a kernel with attributes.
    fn cuLaunchKernelEx, cuLaunchKernelEx_ptsz |default| (
        config: In<CUlaunchConfig>,
        function: CUfunction,
        params: KernelParams,
        extra: Extra,
    ) {
        let config = config.get()?;
        let attributes = Attributes::read(&config.attrs.get_all(config.numAttrs as usize)?)?;
        let shape = attributes.shape(&config);
        launch(function, shape, default.resolve(config.hStream), params, extra, attributes)
    }
}

fn launch(
    function: CUfunction,
    shape: Shape,
    stream: CUstream,
    params: KernelParams,
    extra: Extra,
    attributes: Attributes,
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
    let events = attributes.events.into_iter().map(|event| EVENTS.get(event.0));
    let events = events.collect::<std::result::Result<Vec<_>, _>>()?;
    let launch = Launch::new(function, shape, params, extra)?.overlapping(attributes.dependent);
    graph::launch(&stream, launch)?;
    events.into_iter().try_for_each(|event| super::event::record(event, stream.clone()))
}

/// The attributes of a launch that have an effect.
#[derive(Default)]
struct Attributes {
    cooperative: bool,
    cluster: Option<[u32; 3]>,
    /// It may begin before the launch in front of it is complete.
    dependent: bool,
    /// The events that are recorded when its blocks have begun, or have released dependent launches. Here that is when
    /// it is complete, which is never too early.
    events: Vec<CUevent>,
}

/// The shape of a launch, with its attributes.
pub(super) fn shape(config: &CUlaunchConfig) -> Result<Shape> {
    let attributes = Attributes::read(&config.attrs.get_all(config.numAttrs as usize)?)?;
    Ok(attributes.shape(config))
}

impl Attributes {
    fn shape(&self, config: &CUlaunchConfig) -> Shape {
        Shape {
            grid: [config.gridDimX, config.gridDimY, config.gridDimZ],
            block: [config.blockDimX, config.blockDimY, config.blockDimZ],
            shared: config.sharedMemBytes,
            cooperative: self.cooperative,
            cluster: self.cluster,
        }
    }

    /// Checks the attributes of a launch. Those that only affect its speed have no effect.
    fn read(attributes: &[CUlaunchAttribute]) -> Result<Attributes> {
        let mut read = Attributes::default();
        for attribute in attributes {
            match attribute.id {
                Attribute::COOPERATIVE => read.cooperative = attribute.value.number() != 0,
                Attribute::PROGRAMMATIC_STREAM_SERIALIZATION => {
                    read.dependent = attribute.value.number() != 0
                }
                Attribute::PROGRAMMATIC_EVENT | Attribute::LAUNCH_COMPLETION_EVENT => {
                    // SAFETY: the interface says that the value of these begins with an event.
                    read.events.push(unsafe { attribute.value.event });
                }
                Attribute::CLUSTER_DIMENSION => {
                    read.cluster = Some(attribute.value.first().map(|blocks| blocks as u32));
                }
                // Clusters of the other size are as good.
                Attribute::PREFERRED_CLUSTER_DIMENSION
                | Attribute::IGNORE
                | Attribute::ACCESS_POLICY_WINDOW
                | Attribute::CLUSTER_SCHEDULING_POLICY_PREFERENCE
                | Attribute::PRIORITY
                | Attribute::MEM_SYNC_DOMAIN_MAP
                | Attribute::MEM_SYNC_DOMAIN
                | Attribute::PREFERRED_SHARED_MEMORY_CARVEOUT
                | Attribute::NVLINK_UTIL_CENTRIC_SCHEDULING => {}
                Attribute::DEVICE_UPDATABLE_KERNEL_NODE => {
                    log::misuse(&format_args!("launch attribute {} is not supported", attribute.id.0));
                    return Err(Status::NOT_SUPPORTED);
                }
                _ => {
                    log::misuse(&format_args!("{} is no launch attribute", attribute.id.0));
                    return Err(Status::INVALID_VALUE);
                }
            }
        }
        Ok(read)
    }
}
