//! Launches on a virtual GPU, and the results that are kept of them.

use crate::lock;
use crate::op;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use warpwright_device::{Failure, Result};
use warpwright_vm::{
    Arg, Device, Edges, Finding, LaunchConfig, Module, Options, Report, Running, SpaceTraffic,
};

/// The maximum number of findings that are kept.
const MAX_FINDINGS: usize = 1024;

/// A kernel of the virtual GPU with everything that its launch needs.
pub(crate) struct Code {
    /// The module.
    pub(super) module: Module,
    /// How the launches of its device run.
    pub(super) launches: Arc<Launches>,
    /// The kernel in it.
    pub(super) kernel: Arc<str>,
    /// The shape.
    pub(super) config: LaunchConfig,
    /// The arguments.
    pub(super) args: Vec<Arg>,
}

/// The options of a device's launches, and their results.
#[derive(Default)]
pub(super) struct Launches {
    pub(super) options: Options,
    /// Bytes of global memory that kernels accessed.
    pub(super) bytes_accessed: AtomicU64,
    record: Mutex<LaunchRecord>,
}

#[derive(Default)]
struct LaunchRecord {
    report: Option<Arc<Report>>,
    findings: Vec<Finding>,
}

impl Launches {
    pub(super) fn new(options: Options) -> Self {
        Launches { options, ..Launches::default() }
    }

    pub(super) fn last_report(&self) -> Option<Arc<Report>> {
        lock(&self.record).report.clone()
    }

    pub(super) fn take_findings(&self) -> Vec<Finding> {
        std::mem::take(&mut lock(&self.record).findings)
    }
}

impl warpwright_device::Launch for op::Launch {
    fn start(&self, device: &Device, edges: &Edges) -> Result<Running> {
        let Code { module, launches, kernel, config, args } = self.code.vm();
        let running = device.launch_between(module, kernel, config, args, &launches.options, edges);
        running.map_err(|error| Failure::of_device(self.kernel.clone(), &error))
    }

    fn waits_first(&self) -> bool {
        self.waits_first
    }

    fn end(&self, number: u64, report: Report) -> Result<()> {
        let SpaceTraffic { loads, stores, atomics, .. } = report.counters.global;
        let launches = &self.code.vm().launches;
        launches.bytes_accessed.fetch_add(loads.bytes + stores.bytes + atomics.bytes, Relaxed);
        let report = Arc::new(report);
        let mut record = lock(&launches.record);
        let room = MAX_FINDINGS - record.findings.len();
        record.findings.extend(report.findings.iter().take(room).cloned());
        record.report = Some(report.clone());
        drop(record);
        Failure::of_launch(&self.kernel, number, &report, true)
    }
}
