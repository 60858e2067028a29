//! Launches: checks a kernel, the shape of its grid and its parameters against each other and the device before
//! anything runs, as the driver does, and runs it.

use super::Function;
use super::function::PORTABLE_CLUSTER;
use crate::engine;
use crate::report::calls::{self, Call};
use crate::report::{findings, log};
use crate::state::{Settings, settings};
use crate::types::{Extra, In, KernelParams, Result, Status};
use std::ffi::{c_int, c_void};
use std::sync::{Arc, OnceLock};
use warpwright_device::Failure;
use warpwright_vm::{Arg, Device, Edges, LaunchConfig, Options, Report, Running};

/// The entries of `extra`: a name, its value, and at last the end.
const END: usize = 0;
const BUFFER: usize = 1;
const BUFFER_SIZE: usize = 2;

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Blocks along x, y and z.
    pub(crate) grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub(crate) block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub(crate) shared: u32,
    /// Whether it is cooperative.
    pub(crate) cooperative: bool,
    /// Blocks of a cluster along x, y and z, if the launch says them.
    pub(crate) cluster: Option<[u32; 3]>,
}

impl Shape {
    pub(crate) fn config(&self) -> LaunchConfig {
        LaunchConfig {
            grid_dim: self.grid.into(),
            block_dim: self.block.into(),
            shared_mem_bytes: self.shared,
            cooperative: self.cooperative,
            cluster_dim: self.cluster.map(Into::into),
        }
    }
}

/// A checked launch.
#[derive(Clone)]
pub(crate) struct Launch {
    pub(crate) function: Arc<Function>,
    pub(crate) shape: Shape,
    /// The parameters in the kernel's layout, one after the other.
    params: Arc<[u8]>,
    /// Where each of them is, once a client has asked.
    places: Arc<OnceLock<Box<[usize]>>>,
    /// Whether it may begin before the launch in front of it in its stream is complete.
    pub(crate) dependent: bool,
    /// The call that issued it, or put it into a graph.
    made_by: Call,
}

impl Launch {
    /// A launch with the client's parameters.
    pub(crate) fn new(
        function: Arc<Function>,
        shape: Shape,
        params: KernelParams,
        extra: Extra,
    ) -> Result<Launch> {
        let shape = validate(&function, &shape)?;
        if shape.cooperative && !extra.is_null() {
            log::misuse(&"a cooperative launch takes its parameters one by one, not as a buffer");
            return Err(Status::INVALID_VALUE);
        }
        let params = read_params(&function, params, extra)?;
        let (params, places, made_by) = (params.into(), Arc::default(), calls::current());
        Ok(Launch { function, shape, params, places, dependent: false, made_by })
    }

    /// The same launch in another shape.
    pub(crate) fn reshaped(&self, shape: Shape) -> Result<Launch> {
        let shape = validate(&self.function, &shape)?;
        Ok(Launch { shape, ..self.clone() })
    }

    /// The same launch, that may overlap with the one in front of it or not.
    pub(crate) fn overlapping(&self, dependent: bool) -> Launch {
        Launch { dependent, ..self.clone() }
    }

    /// The parameters, for a client to read as long as this or a clone exists.
    pub(crate) fn params(&self) -> KernelParams {
        let first = self.params.as_ptr().expose_provenance();
        let places =
            || self.function.kernel.params.iter().map(|param| first + param.offset as usize).collect();
        let places = self.places.get_or_init(places);
        // SAFETY: addresses of values, in a list that stays where it is as long as the promise holds.
        unsafe { KernelParams::new(places.as_ptr().cast()) }
    }

    /// Checks that the kernel is still loaded; otherwise the client has made a mistake.
    pub(crate) fn check_loaded(&self) -> Result<()> {
        if self.function.code.is_loaded() {
            return Ok(());
        }
        log::misuse(&format_args!("the module of kernel `{}` was unloaded", self.function.name()));
        Err(Status::INVALID_HANDLE)
    }

    fn args(&self) -> Vec<Arg> {
        let params = &self.function.kernel.params;
        let bytes = params.iter().map(|param| &self.params[param.offset as usize..][..param.bytes as usize]);
        let arg = |bytes: &[u8]| match *bytes {
            [a] => Arg::U8(a),
            [a, b] => Arg::U16(u16::from_le_bytes([a, b])),
            [a, b, c, d] => Arg::U32(u32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => Arg::U64(u64::from_le_bytes([a, b, c, d, e, f, g, h])),
            _ => Arg::Bytes(bytes.into()),
        };
        bytes.map(arg).collect()
    }
}

impl warpwright_device::Launch for Launch {
    fn start(&self, device: &Device, edges: &Edges) -> warpwright_device::Result<Running> {
        let Settings { checks, race, schedule, max_instructions, .. } =
            settings().map_err(engine::failure)?;
        let options = Options { checks, race, schedule, max_instructions, ..Options::default() };
        let (code, name) = (&self.function.code, self.function.name());
        let (config, args) = (self.shape.config(), self.args());
        let running = device.launch_between(code.vm(), name, &config, &args, &options, edges);
        running.map_err(|error| {
            log::note(&format_args!("kernel `{name}` could not be launched: {error}"));
            Failure::of_device(name, &error)
        })
    }

    fn waits_first(&self) -> bool {
        self.function.kernel.waits_first
    }

    fn end(&self, number: u64, report: Report) -> warpwright_device::Result<()> {
        print(&report.output);
        let ended = Failure::of_launch(&self.function.name().into(), number, &report, false);
        let lacks_shared = self.shape.shared == 0 && self.function.code.facts.has_dynamic_shared;
        findings::launched(&report, self.made_by, lacks_shared, ended.is_err());
        ended
    }
}

unsafe extern "C" {
    // C.
    static stdout: *mut c_void;
    fn fwrite(from: *const c_void, bytes: usize, count: usize, file: *mut c_void) -> usize;
    fn fflush(file: *mut c_void) -> c_int;
}

/// Prints what a kernel has printed, behind what the program has printed before: through the buffer of C's stdio, which
/// holds back the program's lines where the output is no terminal. If the output is closed, it is lost.
fn print(text: &str) {
    if !text.is_empty() {
        // SAFETY: C opens the file before the library is loaded, and the text is there.
        unsafe {
            fwrite(text.as_ptr().cast(), 1, text.len(), stdout);
            fflush(stdout);
        }
    }
}

/// Checks a shape against the kernel and the device. Returns it with the cluster that the function was given.
fn validate(function: &Function, shape: &Shape) -> Result<Shape> {
    let kernel = &function.kernel;
    let name = function.name();
    let refuse = |status, why: &dyn std::fmt::Display| {
        log::misuse(&format_args!("kernel `{name}`: {why}"));
        Err(status)
    };
    let Shape { grid, block, shared, cooperative, cluster } = *shape;
    if grid.contains(&0) || block.contains(&0) {
        let why = format_args!("grid {grid:?} and block {block:?}: every dimension must be at least 1");
        return refuse(Status::INVALID_VALUE, &why);
    }
    if grid[0] > i32::MAX as u32 || grid[1] > 65535 || grid[2] > 65535 {
        let why = format_args!("a grid of {grid:?}: at most 2147483647, 65535, 65535");
        return refuse(Status::INVALID_VALUE, &why);
    }
    let threads = block.iter().fold(1u64, |product, &n| product.saturating_mul(n.into()));
    if threads > 1024 || block[2] > 64 {
        let why = format_args!("a block of {block:?} has {threads} threads: at most 1024 (64 along z)");
        return refuse(Status::INVALID_VALUE, &why);
    }
    if let Some(required) = kernel.required_block.filter(|required| *required != block) {
        let why = format_args!("it runs with blocks of {required:?} (`.reqntid`), not {block:?}");
        return refuse(Status::INVALID_VALUE, &why);
    }
    if threads > function.max_threads().into() {
        let why = format_args!("at most {} threads (`.maxntid`), not {threads}", function.max_threads());
        return refuse(Status::INVALID_VALUE, &why);
    }
    let own = function.cluster();
    if let Some(own) = own.filter(|own| own.contains(&0)) {
        let why = format_args!("clusters of {own:?} blocks: set all three of their sizes");
        return refuse(Status::INVALID_VALUE, &why);
    }
    if let (Some(own), Some(said)) = (own, cluster)
        && own != said
    {
        let why =
            format_args!("its attributes ask for clusters of {own:?} blocks, and the launch for {said:?}");
        return refuse(Status::INVALID_CLUSTER_SIZE, &why);
    }
    let shape = Shape { cluster: cluster.or(own), ..*shape };
    let device = &function.code.context.device;
    let cluster = match device.vm()?.cluster_of(kernel, &shape.config()) {
        Ok(cluster) => cluster,
        Err(error) => {
            log::misuse(&error);
            return Err(Status::INVALID_CLUSTER_SIZE);
        }
    };
    let in_cluster: u32 = cluster.iter().product();
    if in_cluster > function.max_cluster() {
        let why = format_args!(
            "clusters of {in_cluster} blocks: more than {PORTABLE_CLUSTER} need \
             CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED"
        );
        return refuse(Status::INVALID_CLUSTER_SIZE, &why);
    }
    let max = function.max_dynamic_shared();
    if u64::from(shared) > max {
        let why = format_args!(
            "{shared} bytes of dynamic shared memory: it has {max}, and more where \
             CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES is set"
        );
        return refuse(Status::INVALID_VALUE, &why);
    }
    if cooperative {
        let held = device.vm()?.occupancy(kernel, threads as u32, shared);
        let resident = u64::from(held) * u64::from(device.config.multiprocessors);
        let of_grid = if kernel.blocks_are_clusters { u64::from(in_cluster) } else { 1 };
        let blocks: u64 = grid.iter().map(|n| u64::from(*n)).fold(of_grid, u64::saturating_mul);
        if blocks > resident {
            let why = format_args!("{blocks} blocks must be resident at once, and {resident} can be");
            return refuse(Status::COOPERATIVE_LAUNCH_TOO_LARGE, &why);
        }
    }
    Ok(shape)
}

/// Reads the parameters, which a client passes one by one or as a buffer.
fn read_params(function: &Function, params: KernelParams, extra: Extra) -> Result<Vec<u8>> {
    let wanted = &function.kernel.params;
    let total = wanted.last().map_or(0, |last| (last.offset + last.bytes) as usize);
    match (params.is_null(), extra.is_null()) {
        (false, false) => {
            log::misuse(&"parameters are given one by one and as a buffer: give one of them");
            Err(Status::INVALID_VALUE)
        }
        (false, true) => {
            let mut bytes = vec![0; total];
            for (param, value) in wanted.iter().zip(params.get_all(wanted.len())?) {
                value.copy_to(&mut bytes[param.offset as usize..][..param.bytes as usize])?;
            }
            Ok(bytes)
        }
        (true, false) => {
            let (buffer, size) = find_buffer(extra)?;
            if size < total {
                log::misuse(&format_args!(
                    "kernel `{}` has {total} bytes of parameters, and the buffer {size}",
                    function.name()
                ));
                return Err(Status::INVALID_VALUE);
            }
            let mut bytes = vec![0; total];
            buffer.copy_to(&mut bytes)?;
            Ok(bytes)
        }
        (true, true) if wanted.is_empty() => Ok(Vec::new()),
        (true, true) => {
            log::misuse(&format_args!(
                "kernel `{}` has {} parameters, and none are given",
                function.name(),
                wanted.len()
            ));
            Err(Status::INVALID_VALUE)
        }
    }
}

/// The buffer in a list of names and values, and its size in bytes.
fn find_buffer(extra: Extra) -> Result<(In<u8>, usize)> {
    // SAFETY: the interface says that the list goes on until its end is read.
    let word = |at: usize| unsafe { extra.at(at) }.get();
    let (mut buffer, mut size) = (None, None);
    let mut at = 0;
    loop {
        match word(at)? {
            END => break,
            BUFFER => {
                let pointer = std::ptr::with_exposed_provenance::<u8>(word(at + 1)?);
                // SAFETY: the interface says that behind this name stands a pointer to the parameters.
                buffer = Some(unsafe { In::new(pointer) });
            }
            BUFFER_SIZE => {
                let pointer = std::ptr::with_exposed_provenance::<usize>(word(at + 1)?);
                // SAFETY: the interface says that behind this name stands a pointer to a size.
                size = Some(unsafe { In::new(pointer) }.get()?);
            }
            _ => return Err(Status::INVALID_VALUE),
        }
        at += 2;
    }
    buffer.zip(size).ok_or(Status::INVALID_VALUE)
}
