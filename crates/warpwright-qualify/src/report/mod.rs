//! What a qualification came to: as data, as a page and as a drawing.

mod page;
mod roofline;

use crate::event::{Figure, Finding};
use crate::parent::StageReport;
use crate::stages::{Stage, bandwidth};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use warpwright_graph::device_model;
use warpwright_kernels::tune::{Table, TableError};
use warpwright_runtime::Device;

/// A qualification.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// When it began, in UTC.
    pub date: String,
    /// The version of this project.
    pub version: &'static str,
    /// What was qualified.
    pub device: Described,
    /// Whether each stage was short.
    pub quick: bool,
    /// Whether all stages have ended: not so in a report that is kept in case that they never do.
    pub finished: bool,
    /// What the stages came to.
    pub stages: Vec<StageReport>,
}

/// A device, as it says itself.
#[derive(Clone, Debug, Serialize)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// Its architecture.
    pub arch: String,
    /// The version of its driver, if it has one.
    pub driver: Option<String>,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Global memory, in bytes.
    pub memory: u64,
    /// The L2 cache, in bytes.
    pub l2: Option<u64>,
    /// Operations that the tensor cores of all multiprocessors do in a cycle with `mma` of halves, by the model of the
    /// architecture.
    pub operations_per_cycle: u64,
}

/// Operations of an `mma` of 16 × 8 × 16.
const MMA: u64 = 2 * 16 * 8 * 16;

impl Described {
    /// A device.
    pub fn new(device: &Device) -> Self {
        let properties = device.properties();
        let quarters = 4 * u64::from(properties.multiprocessors);
        Described {
            name: properties.name.clone(),
            arch: properties.arch.to_string(),
            driver: properties.driver.map(|version| version.to_string()),
            multiprocessors: properties.multiprocessors,
            memory: properties.memory,
            l2: properties.l2_cache,
            operations_per_cycle: quarters * MMA / u64::from(device_model(device).mma_cycles.max(1)),
        }
    }
}

impl Report {
    /// A qualification that begins now.
    pub fn new(device: Described, quick: bool) -> Self {
        let date = DateTime::<Utc>::from(std::time::SystemTime::now());
        let date = date.to_rfc3339_opts(SecondsFormat::Secs, true);
        Report {
            date,
            version: env!("CARGO_PKG_VERSION"),
            device,
            quick,
            finished: false,
            stages: Vec::new(),
        }
    }

    /// Whether all that was begun is right, and something was.
    pub fn is_right(&self) -> bool {
        let some = self.stages.iter().any(|stage| !stage.items.is_empty());
        some && self.stages.iter().all(StageReport::is_right)
    }

    /// A page about it, in Markdown.
    pub fn page(&self) -> String {
        page::page(self)
    }

    /// Rooflines of what was measured, as SVG; `None` if the roofs were not.
    pub fn roofline(&self) -> Option<String> {
        roofline::svg(self)
    }

    /// The best choices that were measured, as rows for the device.
    pub fn tuning(&self) -> Result<Table, TableError> {
        let rows = self.findings(Stage::Tune).filter_map(|finding| match finding {
            Finding::Tuned(tuned) => Some(tuned.row.as_str()),
            _ => None,
        });
        let heading = format!("[{}]", self.device.name);
        Table::parse(&std::iter::once(heading.as_str()).chain(rows).collect::<Vec<_>>().join("\n"))
    }

    /// The findings of a stage.
    fn findings(&self, stage: Stage) -> impl Iterator<Item = &Finding> {
        let of = self.stages.iter().filter(move |report| report.stage == stage);
        of.flat_map(|report| &report.items).flat_map(|item| &item.findings)
    }

    /// The figures of a stage.
    fn figures(&self, stage: Stage) -> impl Iterator<Item = &Figure> {
        self.findings(stage).filter_map(|finding| match finding {
            Finding::Figure(figure) => Some(figure),
            _ => None,
        })
    }

    /// Bytes a second of the fastest copy, those that are read and those that are written.
    fn copy_bandwidth(&self) -> Option<f64> {
        let copies =
            self.figures(Stage::Bandwidth).filter(|figure| bandwidth::COPIES.contains(&&*figure.name));
        copies.filter_map(Figure::bandwidth).max_by(f64::total_cmp)
    }

    /// Operations a second of the tensor cores, at the clock that was measured.
    fn tensor_rate(&self) -> Option<f64> {
        let clock = self.figures(Stage::Overhead).find(|figure| figure.unit == "Hz")?;
        Some(clock.median * self.device.operations_per_cycle as f64)
    }
}

impl Figure {
    /// Bytes a second.
    pub fn bandwidth(&self) -> Option<f64> {
        self.bytes.map(|bytes| bytes as f64 / self.median).filter(|rate| rate.is_finite())
    }

    /// Operations a second.
    pub fn rate(&self) -> Option<f64> {
        self.operations.map(|operations| operations as f64 / self.median).filter(|rate| rate.is_finite())
    }
}
