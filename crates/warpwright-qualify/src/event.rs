//! What a stage says while it works: lines of JSON on the standard output of its process.

use serde::{Deserialize, Serialize};

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The stage has this many items.
    Items(usize),
    /// An item begins: its number, and its name.
    Begin(usize, String),
    /// A kernel is about to be launched.
    Launch(String),
    /// A result of the item that is under way.
    Result(Finding),
    /// The item that is under way has ended; `None` if it is as it should be, else what is wrong.
    End(Option<String>),
    /// The time of the stage is spent: the items from this number on were not begun.
    OutOfTime(usize),
}

/// A result of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// What loading a kernel gave.
    Loaded(Loaded),
    /// A measurement.
    Figure(Figure),
    /// Launches on the device and on the virtual GPU.
    Compared(Compared),
    /// The best choice of a shape.
    Tuned(Tuned),
}

/// The best choice of a shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    /// The row of a [`Table`](warpwright_kernels::tune::Table).
    pub row: String,
    /// Seconds of a launch with this choice.
    pub seconds: f64,
    /// Seconds of a launch with the choice that is estimated.
    pub estimated: f64,
    /// Choices that were measured.
    pub candidates: usize,
}

/// What launches left on the device and on the virtual GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Launches.
    pub launches: u64,
    /// Those of them for which every bit is defined, by PTX or by the model of the tensor cores.
    pub defined: u64,
    /// Words of four bytes in their buffers.
    pub words: u64,
    /// Those that differ.
    pub differ: u64,
    /// Launches with differing words: those of defined ones first, and not all if there are many.
    pub differences: Vec<Difference>,
}

/// A launch that left something else on the device than on the virtual GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The entry name of the kernel.
    pub kernel: String,
    /// The buffer with the most words that differ.
    pub buffer: String,
    /// Words of four bytes that it has.
    pub words: u64,
    /// Those that differ.
    pub differ: u64,
    /// Whether every bit is defined.
    pub defined: bool,
}

/// What a driver says of a kernel that it has loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loaded {
    /// Registers of a thread; `None` for virtual GPUs.
    pub registers: Option<u32>,
    /// Local memory of a thread, in bytes; `None` for virtual GPUs.
    pub local_bytes: Option<u64>,
    /// Static shared memory of a block, in bytes.
    pub shared_bytes: u64,
    /// Seconds that the driver took to compile it; 0 where it had compiled it before.
    pub compile_seconds: f64,
    /// What the compiler says about spilled registers, line by line.
    pub compiler: Vec<String>,
}

/// A measurement: the median of repetitions, and the range of their middle half.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// The unit: `s`, or `Hz`.
    pub unit: String,
    /// The median.
    pub median: f64,
    /// The lower and the upper quartile.
    pub quartiles: (f64, f64),
    /// The number of repetitions.
    pub repetitions: usize,
    /// The bytes that the work has to move, if they bound it.
    pub bytes: Option<u64>,
    /// The operations that the work has to do, if they bound it.
    pub operations: Option<u64>,
}
