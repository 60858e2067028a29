//! Launches a kernel of the library with cudarc alone, without the runtime.
//!
//! The program reads the output of `warpwright emit --json`: the PTX, and everything that a launch needs. So an engine
//! that has its own buffers and streams can launch any kernel of the library:
//!
//! ```text
//! warpwright emit rms_norm --set d=1024 --set epsilon=1e-5 --json -o rms_norm.json
//! cargo run -p warpwright-runtime --example plain_cudarc -- rms_norm.json
//! ```
//!
//! It needs a CUDA device, or `warpwright exec` in front of it, which provides a virtual one.

use cudarc::driver::sys::{self, CUfunction_attribute_enum as Attribute};
use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use serde::Deserialize;
use std::error::Error;

/// Rows that are normalised.
const ROWS: u64 = 37;
/// What the kernel adds to the mean square.
const EPSILON: f64 = 1e-5;

/// What `warpwright emit --json` says of a kernel.
#[derive(Deserialize)]
struct Emitted {
    version: u32,
    kernel: String,
    entry: String,
    minimum_target: String,
    /// In the order in which the kernel takes them.
    arguments: Vec<Argument>,
    /// Blocks.
    grid: [Count; 3],
    /// Threads.
    block: [u32; 3],
    /// Bytes.
    static_shared: u32,
    dynamic_shared: u32,
    cluster: Option<[u32; 3]>,
    cooperative: bool,
    ptx: String,
}

#[derive(Deserialize)]
struct Argument {
    name: String,
    dtype: String,
    /// Elements.
    length: Count,
    /// What its address is a multiple of; `null` for a scalar.
    alignment: Option<u64>,
}

/// A number, or a formula in sizes that the caller chooses: `1024*rows`, `2*rows/128`. Quotients are rounded up.
#[derive(Deserialize)]
#[serde(untagged)]
enum Count {
    Number(u64),
    Formula(String),
}

impl Count {
    fn with_rows(&self, rows: u64) -> Result<u64, Box<dyn Error>> {
        let formula = match self {
            Count::Number(number) => return Ok(*number),
            Count::Formula(formula) => formula,
        };
        let (product, divisor) = formula.split_once('/').unwrap_or((formula, "1"));
        let mut value = 1u64;
        for factor in product.split('*') {
            let factor = if factor == "rows" { rows } else { factor.parse()? };
            value = value.checked_mul(factor).ok_or("a length is more than 64 bits hold")?;
        }
        Ok(value.div_ceil(divisor.parse()?))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path =
        std::env::args().nth(1).ok_or("give the file that `warpwright emit rms_norm --json` has written")?;
    let emitted: Emitted = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    if emitted.version != 1 || emitted.kernel != "rms_norm" {
        return Err(format!("this program launches rms_norm, and not {}", emitted.kernel).into());
    }
    if emitted.cluster.is_some() || emitted.cooperative {
        return Err("this program launches neither clusters nor cooperative grids".into());
    }

    // SAFETY: loading a library runs its initialisers, which for the driver's do nothing that another one could
    // disturb.
    if !unsafe { sys::is_culib_present() } {
        return Err("there is no CUDA driver here: put `warpwright exec --` before the command".into());
    }
    let context = CudaContext::new(0)?;
    let (major, minor) = context.compute_capability()?;
    let needed: i32 = emitted.minimum_target.trim_start_matches("sm_").parse()?;
    if 10 * major + minor < needed {
        return Err(format!("the device is sm_{major}{minor}; the kernel needs sm_{needed}").into());
    }
    let stream = context.default_stream();
    let function = context.load_module(Ptx::from_src(&emitted.ptx))?.load_function(&emitted.entry)?;
    if emitted.static_shared + emitted.dynamic_shared > 48 << 10 {
        let bytes = i32::try_from(emitted.dynamic_shared)?;
        function.set_attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes)?;
    }

    // A buffer for each argument, as long as the kernel says.
    let mut buffers = Vec::new();
    let mut host = Vec::new();
    for argument in &emitted.arguments {
        let Argument { name, dtype, length, alignment } = argument;
        if dtype != "f32" || alignment.is_none() {
            return Err(
                format!("this program has buffers of f32 for arguments, and `{name}` is {dtype}").into()
            );
        }
        let length = usize::try_from(length.with_rows(ROWS)?)?;
        let data: Vec<f32> = match name.as_str() {
            "x" => (0..length).map(|i| ((i * 7 + 3) % 1013) as f32 / 256.0 - 2.0).collect(),
            "w" => (0..length).map(|i| 0.5 + (i % 61) as f32 / 64.0).collect(),
            "y" => vec![f32::NAN; length],
            _ => return Err(format!("this program has nothing for the argument `{name}`").into()),
        };
        buffers.push(stream.clone_htod(&data)?);
        host.push(data);
    }
    let at = |name| emitted.arguments.iter().position(|argument| argument.name == name).ok_or(name);
    let (x, w, y) = (at("x")?, at("w")?, at("y")?);

    let mut grid = [0; 3];
    for (blocks, count) in grid.iter_mut().zip(&emitted.grid) {
        *blocks = u32::try_from(count.with_rows(ROWS)?)?;
    }
    let config = LaunchConfig {
        grid_dim: grid.into(),
        block_dim: emitted.block.into(),
        shared_mem_bytes: emitted.dynamic_shared,
    };
    let mut launch = stream.launch_builder(&function);
    for buffer in &mut buffers {
        launch.arg(buffer);
    }
    // SAFETY: these are the arguments that the kernel declares, in its order, as long and aligned as it declares them
    // (allocations are aligned to 256 bytes), and nothing else uses them.
    unsafe { launch.launch(config)? };
    let result = stream.clone_dtoh(&buffers[y])?;

    // What the kernel's documentation promises, with a rounding more for the weight.
    let d = host[w].len();
    let partial = d.div_ceil(emitted.block.iter().product::<u32>() as usize);
    let bound = (partial as f64 / 2.0 + 12.0) * (-24f64).exp2();
    let mut worst = 0.0f64;
    for (row, got) in host[x].chunks(d).zip(result.chunks(d)) {
        let square: f64 = row.iter().map(|&v| f64::from(v) * f64::from(v)).sum();
        let scale = 1.0 / (square / d as f64 + EPSILON).sqrt();
        for ((&v, &weight), &got) in row.iter().zip(&host[w]).zip(got) {
            let want = f64::from(v) * scale * f64::from(weight);
            let error = (f64::from(got) - want).abs();
            // A NaN is in no bound.
            if error.is_nan() || error > bound * want.abs() {
                return Err(format!("{got} is not within {bound:.2e} of {want}").into());
            }
            worst = worst.max(if want == 0.0 { 0.0 } else { error / want.abs() });
        }
    }
    println!(
        "{}: {ROWS} rows of {d} on {}, relative error {worst:.1e} of {bound:.1e}",
        emitted.entry,
        context.name()?
    );
    Ok(())
}
