//! Figures of hot kernels, each with its goal: from the machine code, and from the virtual GPU's counters.

use super::emit;
use crate::counted::{Counted, Launched, count};
use std::cell::OnceCell;
use std::collections::HashMap;
use warpwright_dsl::any::AnyKernel;
use warpwright_estimate::machine::{Code, Disassembler, Ptxas, first_error};
use warpwright_ptx::ir::{Arch, Module, Origin, StatementKind};
use warpwright_ptx::op::Op;
use warpwright_vm::{Options, Report, Traffic};

/// The targets that figures are taken for.
pub(super) const TARGETS: [&str; 2] = ["sm_80", "sm_90"];

/// A figure of a kernel.
pub(super) struct Figure {
    /// What is counted.
    pub(super) what: &'static str,
    pub(super) kernel: &'static str,
    pub(super) assignments: &'static str,
    /// Sizes and scalars of the launch; buffers of `u32` of that name hold the number in every element.
    pub(super) launch: &'static [(&'static str, u64)],
    measure: fn(&Measured) -> Result<f64, String>,
    /// Its goal.
    pub(super) goal: Goal,
}

/// The goal of a figure.
#[derive(Clone, Copy)]
pub(super) enum Goal {
    /// A maximum.
    AtMost(f64),
    /// The minimum that cannot be avoided.
    Floor(f64),
}

/// All figures, the decisive ones first.
pub(super) const FIGURES: &[Figure] = &[
    per_weight("n=4096 k=14336", Goal::AtMost(3.4)),
    per_weight("n=14336 k=4096 warps=2", Goal::AtMost(3.4)),
    Figure {
        what: "LOP3, SHF, PRMT and I2F per weight",
        measure: |measured| {
            Ok(measured.executed(measured.run()?, Some(HALF_RATE))? * 32.0 / measured.weights())
        },
        goal: Goal::AtMost(1.9),
        ..per_weight("n=4096 k=14336", Goal::Floor(0.0))
    },
    per_weight("n=4096 k=14336 activations=int8", Goal::AtMost(1.25)),
    per_weight("n=14336 k=4096 activations=int8 warps=2", Goal::AtMost(1.25)),
    activations("n=4096 k=14336"),
    activations("n=4096 k=4096"),
    activations("n=4096 k=14336 activations=int8"),
    weights_once("n=4096 k=14336"),
    weights_once("n=4096 k=14336 format=q6_k residual=true"),
    conflicts("n=4096 k=14336"),
    conflicts("n=4096 k=14336 activations=int8"),
    per_product("flash_attention", "head_dim=128", Goal::AtMost(4.3)),
    per_weight("n=4096 k=4096 format=q5_k", Goal::Floor(2.5)),
    per_weight("n=4096 k=4096 format=q5_k activations=int8", Goal::AtMost(1.6)),
    per_weight("n=4096 k=14336 format=q6_k residual=true", Goal::Floor(2.5)),
    per_weight("n=4096 k=14336 format=q6_k activations=int8", Goal::AtMost(1.6)),
    per_weight("n=4096 k=4096 format=q4_0", Goal::Floor(2.0)),
    per_weight("n=4096 k=4096 format=q4_0 activations=int8", Goal::Floor(0.625)),
    per_weight("n=4096 k=4096 format=q8_0", Goal::AtMost(3.5)),
    per_weight("n=4096 k=4096 format=q8_0 activations=int8", Goal::Floor(0.3125)),
    per_weight("n=4096 k=4096 format=q4_1", Goal::Floor(2.0)),
    per_weight("n=4096 k=4096 format=q4_1 activations=int8", Goal::Floor(0.5)),
    per_weight("n=4096 k=4096 format=q5_0", Goal::Floor(2.0)),
    per_weight("n=4096 k=4096 format=q5_0 activations=int8", Goal::Floor(0.75)),
    per_weight("n=4096 k=4096 format=q5_1", Goal::Floor(2.0)),
    per_weight("n=4096 k=4096 format=q5_1 activations=int8", Goal::Floor(0.75)),
    per_weight("n=4096 k=4096 format=q2_k", Goal::Floor(2.0)),
    per_weight("n=4096 k=4096 format=q2_k activations=int8", Goal::Floor(0.5)),
    per_weight("n=4096 k=4096 format=q3_k", Goal::Floor(2.0)),
    per_weight("n=4096 k=4096 format=q3_k activations=int8", Goal::Floor(0.75)),
    per_weight("n=4096 k=4096 format=iq4_nl", Goal::Floor(3.75)),
    per_weight("n=4096 k=4096 format=iq4_nl activations=int8", Goal::Floor(2.0)),
    per_weight("n=4096 k=4096 format=iq4_xs", Goal::Floor(3.75)),
    per_weight("n=4096 k=4096 format=iq4_xs activations=int8", Goal::Floor(2.0)),
    per_weight("n=4096 k=4096 format=mxfp4", Goal::Floor(3.75)),
    per_weight("n=4096 k=4096 format=mxfp4 activations=int8", Goal::Floor(2.0)),
    per_weight("n=4096 k=4096 format=nvfp4", Goal::Floor(3.75)),
    per_weight("n=4096 k=4096 format=nvfp4 activations=int8", Goal::Floor(2.0)),
    per_weight("n=4096 k=4096 format=f32", Goal::Floor(1.25)),
    per_weight("n=4096 k=4096 format=f16", Goal::Floor(2.125)),
    per_weight("n=4096 k=4096 format=bf16", Goal::Floor(2.125)),
    per_byte("heads=32 kv_heads=8 head_dim=128", 2, Goal::Floor(0.19)),
    per_byte("heads=32 kv_heads=8 head_dim=128 tensor_cores=false", 2, Goal::Floor(2.0)),
    per_byte("heads=32 kv_heads=8 head_dim=128 cache=q8_0", 1, Goal::Floor(1.9)),
    Figure {
        what: "bytes of sectors per byte of K and V",
        measure: |measured| {
            let counted = measured.run()?;
            let sectors = loads(counted, "k")?.transactions + loads(counted, "v")?.transactions;
            Ok((sectors * SECTOR) as f64 / (2.0 * cached()))
        },
        goal: Goal::Floor(1.0),
        ..per_byte("heads=32 kv_heads=8 head_dim=128", 2, Goal::Floor(0.0))
    },
    per_product("gemm", "dtype=f16 n=14336", Goal::Floor(1.5)),
    per_product("quant_gemm", "format=q4_k n=14336", Goal::Floor(1.5)),
    per_product("quant_gemm", "format=q6_k k=14336 residual=true", Goal::Floor(1.5)),
    per_product("quant_gemm", "format=q4_k n=14336 rows=256", Goal::AtMost(2.6)),
    per_product("quant_gemm", "format=q6_k k=14336 rows=256 residual=true", Goal::AtMost(2.6)),
];

/// Instructions of the main loop for each product of the tensor cores.
const fn per_product(kernel: &'static str, assignments: &'static str, goal: Goal) -> Figure {
    Figure {
        what: "instructions per HMMA, main loop",
        kernel,
        assignments,
        launch: &[],
        measure: |measured| measured.per_product(),
        goal,
    }
}

/// Machine instructions for unpacking weights that run at half of the rate or less.
const HALF_RATE: &[&str] = &["LOP3", "SHF", "PRMT", "I2F", "I2FP"];
/// Bytes of a sector.
const SECTOR: u64 = 32;

/// Instructions of all lanes for each weight of a product with one matrix.
const fn per_weight(assignments: &'static str, goal: Goal) -> Figure {
    Figure {
        what: "instructions per weight",
        kernel: "quant_gemv",
        assignments,
        launch: &[],
        measure: |measured| measured.per_unit(measured.weights()),
        goal,
    }
}

/// Bytes of activations that are requested, per byte of weights.
const fn activations(assignments: &'static str) -> Figure {
    Figure {
        what: "activation bytes requested per byte of weights",
        measure: |measured| {
            let counted = measured.run()?;
            let weights = loads(counted, "w0")?.bytes as f64;
            let all = counted.buffers.iter().filter(|(name, _)| name.starts_with('x'));
            Ok(all.map(|(_, (_, traffic))| traffic.loads.bytes).sum::<u64>() as f64 / weights)
        },
        goal: Goal::AtMost(0.5),
        ..per_weight(assignments, Goal::Floor(0.0))
    }
}

/// Bytes of the sectors that are fetched of the weights, beside what they have.
const fn weights_once(assignments: &'static str) -> Figure {
    Figure {
        what: "bytes of sectors per byte of weights",
        measure: |measured| {
            let counted = measured.run()?;
            Ok((loads(counted, "w0")?.transactions * SECTOR) as f64 / measured.bytes("w0")? as f64)
        },
        goal: Goal::Floor(1.0),
        ..per_weight(assignments, Goal::Floor(0.0))
    }
}

/// Passes to shared memory that conflicts of banks cost.
const fn conflicts(assignments: &'static str) -> Figure {
    Figure {
        what: "shared bank conflicts",
        measure: |measured| Ok(measured.run()?.report.counters.bank_conflicts as f64),
        goal: Goal::Floor(0.0),
        ..per_weight(assignments, Goal::Floor(0.0))
    }
}

/// Tokens of the decode figures.
const LENGTH: u64 = 2048;

/// Elements of K and V that decode attention with 8 heads of 128 in the cache reads.
fn cached() -> f64 {
    (2 * 8 * 128 * LENGTH) as f64
}

/// Instructions of all lanes for each byte of K and V, of elements of so many bytes.
const fn per_byte(assignments: &'static str, bytes: u32, goal: Goal) -> Figure {
    Figure {
        what: "instructions per byte of K and V",
        kernel: "incremental_attention",
        assignments,
        launch: DECODE,
        measure: match bytes {
            1 => |measured| measured.per_unit(cached()),
            _ => |measured| measured.per_unit(2.0 * cached()),
        },
        goal,
    }
}

const DECODE: &[(&str, u64)] = &[("batch", 1), ("length", LENGTH)];

/// A kernel as it was assembled and as it ran.
struct Measured {
    kernel: Box<dyn AnyKernel>,
    code: Code,
    module: Module,
    arch: Arch,
    assignments: &'static str,
    launch: &'static [(&'static str, u64)],
    counted: OnceCell<Result<Counted, String>>,
}

impl Measured {
    fn size(&self, name: &str) -> Option<u64> {
        self.launch.iter().find(|size| size.0 == name).map(|size| size.1)
    }

    /// What it counts with zeros in all buffers.
    fn run(&self) -> Result<&Counted, String> {
        self.counted.get_or_init(|| self.launch()).as_ref().map_err(String::clone)
    }

    fn launch(&self) -> Result<Counted, String> {
        let launched =
            Launched { kernel: &*self.kernel, module: &self.module, arch: self.arch, numbers: self.launch };
        count(&launched, &Options { counters: true, ..Options::default() })
    }

    /// Machine instructions that warps execute, at most: each loop as often as its last instruction was
    /// executed on the virtual GPU, everything else once by every warp. `opcodes` counts those alone.
    fn executed(&self, counted: &Counted, opcodes: Option<&[&str]>) -> Result<f64, String> {
        let trips = self.trips(&counted.report);
        let loops = self.code.loops();
        let warps = counted.blocks() * u64::from(counted.threads().div_ceil(32));
        if trips.len() != loops.len() {
            return Err(format!("{} loops became {}", trips.len(), loops.len()));
        }
        let count = |range: std::ops::Range<usize>| match opcodes {
            Some(opcodes) => self.code.count(range, opcodes),
            None => range.len(),
        };
        let innermost = |at: usize| {
            let around = loops.iter().zip(&trips).filter(|(body, _)| body.contains(&at));
            around.min_by_key(|(body, _)| body.len()).map_or(warps, |(_, &trips)| trips)
        };
        Ok((0..self.code.len()).map(|at| count(at..at + 1) as f64 * innermost(at) as f64).sum())
    }

    /// How often each loop of the PTX goes around, summed over warps, in the order in which they begin: as often
    /// as the instruction at its beginning is executed.
    fn trips(&self, report: &Report) -> Vec<u64> {
        let lines = &report.counters.lines;
        let executed: HashMap<_, _> =
            lines.iter().filter_map(|line| Some((position(line.origin)?, line.warps))).collect();
        let mut loops = Vec::new();
        for function in self.module.entries() {
            // The first instruction after each label, once it has come.
            let (mut labels, mut first) = (HashMap::new(), HashMap::new());
            for statement in function.statements() {
                match &statement.kind {
                    StatementKind::Label(label) => {
                        labels.insert(*label, None);
                    }
                    StatementKind::Instruction(instruction) => {
                        if let Op::Bra(branch) = &instruction.op
                            && let Some(Some(start)) = labels.get(&branch.target)
                        {
                            first.insert(*start, executed.get(start).copied().unwrap_or(0));
                        }
                        let start = position(statement.origin);
                        labels.values_mut().filter(|place| place.is_none()).for_each(|place| *place = start);
                    }
                    _ => {}
                }
            }
            loops.extend(first);
        }
        loops.sort_unstable();
        loops.into_iter().map(|(_, warps)| warps).collect()
    }
}

/// What was loaded of an argument.
fn loads(counted: &Counted, name: &str) -> Result<Traffic, String> {
    let (_, traffic) = counted.buffers.get(name).ok_or_else(|| format!("there is no buffer `{name}`"))?;
    Ok(traffic.loads)
}

impl Measured {
    /// Instructions of all lanes, for each of so many units of work.
    fn per_unit(&self, units: f64) -> Result<f64, String> {
        Ok(self.executed(self.run()?, None)? * 32.0 / units)
    }

    /// Weights of a matrix, by the configuration's `n` and `k`.
    fn weights(&self) -> f64 {
        let value = |name: &str| {
            let mut fields = self.assignments.split_whitespace().filter_map(|field| field.split_once('='));
            fields.find(|field| field.0 == name).and_then(|field| field.1.parse::<f64>().ok())
        };
        value("n").unwrap_or(0.0) * value("k").unwrap_or(0.0)
    }

    /// Bytes of a buffer.
    fn bytes(&self, name: &str) -> Result<u64, String> {
        let args = self.kernel.args();
        let arg = args.iter().find(|arg| arg.name == name).ok_or_else(|| format!("no argument `{name}`"))?;
        let elements = arg.len.evaluate(|name| self.size(name)).ok_or("a length that is not known")?;
        Ok(elements * u64::from(arg.dtype.bytes()))
    }

    /// Instructions of the main loop for each product of the tensor cores.
    fn per_product(&self) -> Result<f64, String> {
        const PRODUCTS: &[&str] = &["HMMA"];
        let body = self.code.main_loop(PRODUCTS).ok_or("no loop has products")?;
        Ok(body.len() as f64 / self.code.count(body, PRODUCTS) as f64)
    }
}

/// Where a statement stands in its text.
fn position(origin: Origin) -> Option<u32> {
    match origin {
        Origin::Text(span) => Some(span.start),
        _ => None,
    }
}

/// Takes figures of one kernel in one configuration for a target.
pub(super) fn take(
    figures: &[&Figure],
    target: &str,
    ptxas: &Ptxas,
    disassembler: &Disassembler,
) -> Vec<Result<f64, String>> {
    let Some(&&Figure { kernel, assignments, launch, .. }) = figures.first() else { return Vec::new() };
    let measured = || {
        let entry = warpwright_kernels::find(kernel).map_err(|error| error.to_string())?;
        let kernel = entry.configure_text(assignments).map_err(|error| error.to_string())?;
        let emitted = emit(entry, assignments, target)?;
        let assembled = ptxas.assemble_whole(&emitted.ptx, target).map_err(|log| first_error(&log))?;
        let code = disassembler.code(&assembled.cubin, None)?;
        // Read back, so that statements have places in the text, each its own.
        let module = warpwright_ptx::parse(&emitted.ptx).map_err(|errors| errors.to_string())?;
        let (arch, counted) = (emitted.arch, OnceCell::new());
        Ok(Measured { kernel, code, module, arch, assignments, launch, counted })
    };
    match measured() {
        Ok(measured) => figures.iter().map(|figure| (figure.measure)(&measured)).collect(),
        Err(why) => figures.iter().map(|_| Err::<f64, String>(String::clone(&why))).collect(),
    }
}
