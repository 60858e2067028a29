//! Starting launches: a launch is checked against the kernel and the device, then started.

use super::argument::params;
use super::{Arg, Device, DeviceError, Module};
use crate::launch::{
    ClusterRule, Edges, Launch, LaunchConfig, LaunchError, Options, Progress, Report, Schedule, Settings,
    Shape,
};
use crate::memory::{AllocationKind, GlobalMap};
use crate::module::KernelInfo;
use crate::random::Random;
use crate::tensor::TensorCore;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use warpwright_ptx::ir::Arch;

/// Threads that a block has at most.
const MAX_THREADS: u32 = 1024;

impl Device {
    /// Launches a kernel, after earlier launches. The launch runs in the background.
    pub fn launch(
        &self,
        module: &Module,
        kernel: &str,
        config: &LaunchConfig,
        args: &[Arg],
        options: &Options,
    ) -> Result<Running, DeviceError> {
        self.launch_between(module, kernel, config, args, options, &Edges::default())
    }

    /// The same with programmatic edges to the launches before and behind it: it may begin before the earlier one has
    /// been launched, and stands still at `griddepcontrol.wait` until that one is over.
    ///
    /// The race check compares launches of a chain when their reports are made, which must be in their order.
    pub fn launch_between(
        &self,
        module: &Module,
        kernel: &str,
        config: &LaunchConfig,
        args: &[Arg],
        options: &Options,
        edges: &Edges,
    ) -> Result<Running, DeviceError> {
        let info = module.kernel(kernel)?;
        let shape = self.shape(module, info, config, args)?;
        let mut settings = self.settings(info, config, options, &shape)?;
        let memory = self.inner.memory().map.clone();
        let memory = if config.cooperative { with_workspace(memory, &mut settings)? } else { memory };
        let number = self.inner.launches.fetch_add(1, Relaxed);
        let launch = Launch::new(
            number,
            module.loaded.clone(),
            info.function,
            memory,
            shape,
            settings,
            self.inner.workers,
            edges,
        );
        let launch = Arc::new(launch);
        self.inner.executor.submit(launch.clone());
        Ok(Running { launch, device: self.clone() })
    }

    /// The number of blocks with these many threads and bytes of dynamic shared memory that are resident on a
    /// multiprocessor at once (the occupancy); 0 if the kernel does not run with such blocks.
    pub fn occupancy(&self, kernel: &KernelInfo, block_threads: u32, dynamic_shared: u32) -> u32 {
        let arch = self.inner.config.arch;
        let shared = kernel.static_shared + u64::from(dynamic_shared);
        let max = kernel.max_threads.unwrap_or(MAX_THREADS).min(MAX_THREADS);
        let required = kernel.required_block.map(|block| block.iter().product::<u32>());
        let fits = (1..=max).contains(&block_threads)
            && required.is_none_or(|required| required == block_threads)
            && shared <= arch.limits().shared_per_block;
        if fits { residency(block_threads, shared, arch) } else { 0 }
    }

    fn settings(
        &self,
        kernel: &KernelInfo,
        config: &LaunchConfig,
        options: &Options,
        shape: &Shape,
    ) -> Result<Settings, LaunchError> {
        let device = &self.inner.config;
        let shared = shape.static_shared + u64::from(shape.dynamic_shared);
        let per_multiprocessor = residency(shape.threads(), shared, device.arch).max(1);
        let residency = u64::from(per_multiprocessor) * u64::from(device.multiprocessors);
        if config.cooperative && shape.blocks() > residency {
            return Err(LaunchError::NotResident {
                kernel: kernel.name.clone(),
                blocks: shape.blocks(),
                per_multiprocessor,
                multiprocessors: device.multiprocessors,
            });
        }
        let (mut begin, mut residency) = ((0, 1), residency);
        let order = match options.schedule {
            Schedule::Scattered(seed) => {
                let mut random = Random::new(seed);
                Some((random.below(shape.clusters()), random.coprime(shape.clusters())))
            }
            Schedule::Reversed => Some((shape.clusters() - 1, shape.clusters() - 1)),
            Schedule::Parallel | Schedule::Seeded(_) => None,
        };
        if let (Some(order), false) = (order, config.cooperative) {
            begin = order;
            residency = residency.min(FEW_BLOCKS);
        }
        Ok(Settings {
            checks: options.checks,
            race: options.race,
            seed: match options.schedule {
                Schedule::Parallel => None,
                Schedule::Seeded(seed) | Schedule::Scattered(seed) => Some(seed),
                Schedule::Reversed => Some(0),
            },
            begin,
            counters: options.counters | options.fetches,
            fetches: options.fetches,
            blocks: match options.sample {
                Some(sample) if !config.cooperative => {
                    shape.blocks().min(sample.max(1).next_multiple_of(shape.cluster_blocks().into()))
                }
                _ => shape.blocks(),
            },
            max_instructions: options.max_instructions,
            cooperative: config.cooperative,
            multiprocessors: device.multiprocessors,
            residency,
            workspace: 0,
            tensor_core: device.tensor_core.unwrap_or_else(|| TensorCore::for_arch(device.arch)),
            native: device.native,
            arch: device.arch,
            tensor_sm: match device.tensor_core.and_then(TensorCore::hardware) {
                Some((_, measured)) => measured[0],
                None => device.arch.sm,
            },
        })
    }

    fn shape(
        &self,
        module: &Module,
        kernel: &KernelInfo,
        config: &LaunchConfig,
        args: &[Arg],
    ) -> Result<Shape, LaunchError> {
        let name = || kernel.name.clone();
        let block = <[u32; 3]>::from(config.block_dim);
        let mut grid = <[u32; 3]>::from(config.grid_dim);
        let cluster = self.cluster_of(kernel, config)?;
        if kernel.blocks_are_clusters {
            grid = std::array::from_fn(|axis| grid[axis].saturating_mul(cluster[axis]));
        }
        let threads = block.iter().fold(1u64, |product, &n| product.saturating_mul(n.into()));
        if grid.contains(&0) || block.contains(&0) {
            return Err(LaunchError::Empty { grid, block });
        }
        if threads > u64::from(MAX_THREADS) || block[0] > 1024 || block[1] > 1024 || block[2] > 64 {
            return Err(LaunchError::BlockTooLarge { block });
        }
        if grid[0] > 0x7fff_ffff || grid[1] > 65535 || grid[2] > 65535 {
            return Err(LaunchError::GridTooLarge { grid });
        }
        if let Some(required) = kernel.required_block
            && required != block
        {
            return Err(LaunchError::RequiredBlock { kernel: name(), required, block });
        }
        if let Some(max) = kernel.max_threads
            && threads > max.into()
        {
            return Err(LaunchError::MaxThreads { kernel: name(), max, threads });
        }
        let bytes = kernel.static_shared + u64::from(config.shared_mem_bytes);
        let arch = self.inner.config.arch;
        let max = arch.limits().shared_per_block;
        if bytes > max {
            return Err(LaunchError::SharedMemory { kernel: name(), bytes, max, arch });
        }
        let loaded = &module.loaded;
        let mut shared_regions = kernel.shared_regions.clone();
        let dynamic = u64::from(config.shared_mem_bytes);
        let mut end = shared_regions.last().map_or(0, |&(start, bytes)| start + bytes);
        if dynamic != 0 {
            shared_regions.push((loaded.dynamic_shared, dynamic));
            end = loaded.dynamic_shared + dynamic;
        }
        let mut shared_names = kernel.shared_names.clone();
        let mut reserved_shared = 0;
        if loaded.reserved_shared {
            // Behind a gap: what goes beyond the kernel's own memory does not end up there.
            reserved_shared = (end + RESERVED_SHARED).next_multiple_of(RESERVED_SHARED);
            let names = shared_names.iter().take(shared_regions.len()).cloned();
            shared_names = names.chain(["reserved shared memory".to_owned()]).collect();
            shared_regions.push((reserved_shared, RESERVED_SHARED_USED));
            end = reserved_shared + RESERVED_SHARED;
        }
        if cluster != [1; 3] {
            end = end.next_multiple_of(SHARED_OF_PEERS);
        }
        let params = params(kernel, args)?;
        Ok(Shape {
            grid,
            block,
            cluster,
            explicit_cluster: config.cluster_dim.is_some() || kernel.required_cluster.is_some(),
            static_shared: kernel.static_shared,
            dynamic_shared: config.shared_mem_bytes,
            shared_words: end.div_ceil(4) as usize,
            reserved_shared,
            shared_regions,
            shared_names,
            params,
            param_regions: kernel.params.iter().map(|p| (p.offset.into(), p.bytes.into())).collect(),
        })
    }
}

impl Device {
    /// The blocks of a cluster along x, y and z in a launch: those that it says, or those that the kernel requires.
    /// Without either, each block is alone in one. The error says what they must be.
    pub fn cluster_of(&self, kernel: &KernelInfo, config: &LaunchConfig) -> Result<[u32; 3], LaunchError> {
        let grid = <[u32; 3]>::from(config.grid_dim);
        let said = config.cluster_dim.map(<[u32; 3]>::from);
        let cluster = said.or(kernel.required_cluster).unwrap_or([1; 3]);
        let arch = self.inner.config.arch;
        let most = kernel.max_cluster.unwrap_or(MAX_CLUSTER).min(MAX_CLUSTER);
        let blocks = cluster.iter().fold(1, |product: u32, &n| product.saturating_mul(n));
        let rule = match kernel.required_cluster {
            Some([0, 0, 0]) if said.is_none() => ClusterRule::Said,
            Some(required) if required != [0; 3] && required != cluster => ClusterRule::Required(required),
            _ if !(1..=most).contains(&blocks) => ClusterRule::AtMost(most),
            _ if blocks > 1 && arch.sm < 90 => ClusterRule::NotOn(arch),
            _ if !kernel.blocks_are_clusters && (0..3).any(|axis| grid[axis] % cluster[axis] != 0) => {
                ClusterRule::Whole { grid }
            }
            _ => return Ok(cluster),
        };
        let cluster = if cluster == [0; 3] { [1; 3] } else { cluster };
        Err(LaunchError::Clusters { kernel: kernel.name.clone(), cluster, rule })
    }
}

/// Most blocks of a cluster.
const MAX_CLUSTER: u32 = 16;

/// What the shared memory of a block in a cluster is a multiple of, so that it has the same banks in each.
const SHARED_OF_PEERS: u64 = 128;

/// Bytes of shared memory that CUDA reserves for itself in each block; cooperative groups use them for groups of
/// several warps.
pub(crate) const RESERVED_SHARED: u64 = 1024;

/// How many of them programs may use, from the first on: 288 on an H200.
pub(crate) const RESERVED_SHARED_USED: u64 = 288;

/// Blocks that are resident at once where few are to be.
const FEW_BLOCKS: u64 = 4;

/// Bytes in which a cooperative grid keeps the state of its barrier.
const WORKSPACE: u64 = 64;

/// The memory that a cooperative launch sees: with room for the state of its grid's barrier, which CUDA's
/// cooperative groups find by `%envreg1` and `%envreg2`.
fn with_workspace(
    mut memory: Arc<GlobalMap>,
    settings: &mut Settings,
) -> Result<Arc<GlobalMap>, DeviceError> {
    let map = Arc::make_mut(&mut memory);
    let room = map.allocate(WORKSPACE, AllocationKind::Buffer, "the state of the grid's barrier");
    let Some(room) = room else { return Err(DeviceError::OutOfMemory { asked: WORKSPACE, free: 0 }) };
    room.write(0, &[0; WORKSPACE as usize]);
    room.written.set_all();
    settings.workspace = room.base;
    Ok(memory)
}

/// Blocks that a multiprocessor holds: by threads, blocks and shared memory, of which a block takes 1 KiB beyond its
/// own from `sm_80` on.
fn residency(threads: u32, shared: u64, arch: Arch) -> u32 {
    let limits = arch.limits();
    let by_threads = limits.threads / threads.next_multiple_of(32);
    let taken = shared + if arch.sm >= 80 { RESERVED_SHARED } else { 0 };
    let by_shared = limits.shared.checked_div(taken).and_then(|blocks| u32::try_from(blocks).ok());
    by_threads.min(limits.blocks).min(by_shared.unwrap_or(u32::MAX))
}

/// A launch that may be running.
pub struct Running {
    launch: Arc<Launch>,
    /// Its threads go on as long as the device is there.
    device: Device,
}

impl Running {
    /// Its number among the launches of the device, from 0.
    pub fn number(&self) -> u64 {
        self.launch.number
    }

    /// Runs it until it is over or stands still. A launch that stands still stays resident and lets others run; it
    /// continues only with the next call.
    ///
    /// Unlike [`wait`](Self::wait), this does not report a launch that waits for others as a deadlock: another launch
    /// or copy may still change memory.
    pub fn run(&self) -> Progress {
        self.launch.let_stand();
        self.go_on();
        self.device.inner.executor.help(&self.launch);
        self.launch.wait_for_progress()
    }

    /// Has it go on, if it stands still.
    fn go_on(&self) {
        if self.launch.resume() {
            self.device.inner.executor.submit(self.launch.clone());
        }
    }

    /// Ends a launch that stands still, because what it waits for will never happen.
    pub fn give_up(self) -> Report {
        self.launch.give_up();
        self.wait()
    }

    /// Waits until it is over. A launch that stands still for good is ended.
    pub fn wait(self) -> Report {
        loop {
            self.go_on();
            self.device.inner.executor.help(&self.launch);
            match self.launch.wait_for_progress() {
                Progress::Complete => return self.launch.report(),
                Progress::Standing { makes_way: false, polls_host: false, .. } => self.launch.give_up(),
                Progress::Standing { .. } => {}
            }
        }
    }

    /// Waits for at most that long until it is over, and returns whether it is. The calling thread does none of the work,
    /// unlike in [`wait`](Self::wait), so that it may do something else every now and then.
    pub fn wait_for(&self, time: Duration) -> bool {
        self.go_on();
        self.device.inner.executor.await_end(&self.launch);
        self.launch.wait_until(Instant::now() + time)
    }

    /// Whether it is over.
    pub fn is_complete(&self) -> bool {
        self.launch.is_complete()
    }

    /// Ends it wherever it is. Its report has what was executed and found until then, and does not say that it was cancelled.
    pub fn cancel(&self) {
        self.launch.stop();
    }
}
