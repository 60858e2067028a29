//! Functions: attributes, parameters, occupancy.

use super::entries;
use crate::code::{self, Shape, occupancy};
use crate::report::log;
use crate::types::{
    CUfunc_cache, CUfunction, CUfunction_attribute, CUfunctionLoadingState, CUlaunchConfig, CUmodule,
    CUoccupancyB2DSize, In, Out, Result, Status,
};
use std::ffi::{c_char, c_int, c_uint};

entries! {
    /// Returns an attribute.
    fn cuFuncGetAttribute(value: Out<c_int>, attribute: CUfunction_attribute, function: CUfunction) {
        value.required()?;
        value.set(code::function(function)?.attribute(attribute)?)
    }

    /// Sets an attribute, where it can be set.
    fn cuFuncSetAttribute(function: CUfunction, attribute: CUfunction_attribute, value: c_int) {
        code::function(function)?.set_attribute(attribute, value)
    }

    /// Sets the preferred cache configuration, which has no effect.
    fn cuFuncSetCacheConfig(function: CUfunction, config: CUfunc_cache) {
        code::function(function)?;
        config.check()
    }

    /// Returns its module.
    fn cuFuncGetModule(module: Out<CUmodule>, function: CUfunction) {
        module.required()?;
        module.set(code::function(function)?.module)
    }

    /// Returns its name, valid until the module is unloaded.
    fn cuFuncGetName(name: Out<*const c_char>, function: CUfunction) {
        name.required()?;
        name.set(code::function(not_null(function)?)?.c_name.as_ptr())
    }

    /// Returns offset and size of a parameter, in bytes.
    fn cuFuncGetParamInfo(function: CUfunction, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        offset.required()?;
        let function = code::function(not_null(function)?)?;
        let param = function.param(index)?;
        bytes.set_if(param.bytes as usize);
        offset.set(param.offset as usize)
    }

    /// Returns the number of parameters.
    fn cuFuncGetParamCount(function: CUfunction, count: Out<usize>) {
        count.required()?;
        count.set(code::function(function)?.kernel.params.len())
    }

    /// Returns whether a function is loaded: it is loaded with its module.
    fn cuFuncIsLoaded(state: Out<CUfunctionLoadingState>, function: CUfunction) {
        state.required()?;
        code::function(function)?;
        state.set(CUfunctionLoadingState::LOADED)
    }

    /// Loads a function, which is loaded already.
    fn cuFuncLoad(function: CUfunction) {
        code::function(function)?;
        Ok(())
    }

    /// Returns how many blocks are resident on a multiprocessor at once.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: Out<c_int>,
        function: CUfunction,
        threads: c_int,
        dynamic_shared: usize,
    ) {
        blocks.required()?;
        blocks.set(occupancy::blocks(&*code::function(function)?, threads, dynamic_shared)? as c_int)
    }

    /// The same with flags. The flag is about a cache that has no effect here.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<c_int>,
        function: CUfunction,
        threads: c_int,
        dynamic_shared: usize,
        flags: c_uint,
    ) {
        blocks.required()?;
        check_flags(flags)?;
        blocks.set(occupancy::blocks(&*code::function(function)?, threads, dynamic_shared)? as c_int)
    }

    /// Returns the block size that maximises the threads of a multiprocessor, and the smallest grid that fills the
    /// device.
    fn cuOccupancyMaxPotentialBlockSize(
        grid: Out<c_int>,
        block: Out<c_int>,
        function: CUfunction,
        shared_of_block: CUoccupancyB2DSize,
        dynamic_shared: usize,
        limit: c_int,
    ) {
        best_block(grid, block, function, shared_of_block, dynamic_shared, limit)
    }

    /// The same with flags. The flag is about a cache that has no effect here.
    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<c_int>,
        block: Out<c_int>,
        function: CUfunction,
        shared_of_block: CUoccupancyB2DSize,
        dynamic_shared: usize,
        limit: c_int,
        flags: c_uint,
    ) {
        check_flags(flags)?;
        best_block(grid, block, function, shared_of_block, dynamic_shared, limit)
    }

    /// Returns the maximum dynamic shared memory with which that many blocks are resident on a multiprocessor.
    fn cuOccupancyAvailableDynamicSMemPerBlock(
        bytes: Out<usize>,
        function: CUfunction,
        blocks: c_int,
        threads: c_int,
    ) {
        bytes.required()?;
        bytes.set(occupancy::dynamic_shared(&*code::function(function)?, blocks, threads)?)
    }

    /// Returns the largest cluster in which a kernel can be launched, in blocks.
    fn cuOccupancyMaxPotentialClusterSize(size: Out<c_int>, function: CUfunction, config: In<CUlaunchConfig>) {
        size.required()?;
        let function = code::function(function)?;
        occupancy::blocks_of(&function, &config.get()?)?;
        size.set(function.max_cluster() as c_int)
    }

    /// Returns the number of clusters of a launch that are resident on the device at once. Its multiprocessors may form
    /// any clusters.
    fn cuOccupancyMaxActiveClusters(count: Out<c_int>, function: CUfunction, config: In<CUlaunchConfig>) {
        count.required()?;
        let (function, config) = (code::function(function)?, config.get()?);
        let shape = super::launch::shape(&config)?;
        let shape = Shape { cluster: shape.cluster.or(function.cluster()), ..shape };
        let device = &function.code.context.device;
        let cluster = device.vm()?.cluster_of(&function.kernel, &shape.config()).map_err(|error| {
            log::misuse(&error);
            Status::INVALID_CLUSTER_SIZE
        })?;
        let blocks = occupancy::blocks_of(&function, &config)? * device.config.multiprocessors;
        count.set((blocks / cluster.iter().product::<u32>()) as c_int)
    }
}

/// For functions in which a null handle is an invalid value.
fn not_null(function: CUfunction) -> Result<CUfunction> {
    if function == CUfunction::NULL { Err(Status::INVALID_VALUE) } else { Ok(function) }
}

fn check_flags(flags: c_uint) -> Result<()> {
    if flags > 1 { Err(Status::INVALID_VALUE) } else { Ok(()) }
}

fn best_block(
    grid: Out<c_int>,
    block: Out<c_int>,
    function: CUfunction,
    shared_of_block: CUoccupancyB2DSize,
    dynamic_shared: usize,
    limit: c_int,
) -> Result<()> {
    let (grid, block) = (grid.required()?, block.required()?);
    let function = code::function(function)?;
    let (blocks, threads) = occupancy::best_block(&function, limit, |threads| match shared_of_block {
        // SAFETY: the client has given the function to be asked so.
        Some(ask) => unsafe { ask(threads) },
        None => dynamic_shared,
    })?;
    grid.set(blocks)?;
    block.set(threads)
}
