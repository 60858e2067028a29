//! The command line of `run` and `profile`.

use crate::cli::reports::ReportFiles;
use crate::cli::virtual_gpu::{Check, NativeArgument, Race, compute_capability};
use std::str::FromStr;
use warpwright_ptx::ir::Arch;
use warpwright_runtime::DeviceSpec;
use warpwright_vm::tensor::TensorCore;

/// The part of `--help` on arguments.
pub(super) const ARGUMENTS_HELP: &str = "\
Arguments of the kernel, in the order of its parameters:
  u8:1 s32:-1 u32:5 u64:9 b32:0xff      integers and bits
  f16:1 bf16:1 f32:1.5 f64:2            floating-point numbers
  null                                  a null pointer
  raw:HEX  raw:@FILE                    bytes, for structs and other types
  in:FILE.npy                           a buffer with the array of a NumPy file
  inout:FILE.npy                        the same; the file is overwritten with the result
  out:f32:64x128:FILE.npy               an output buffer, which is written to the file
  zeros:f32:1024  poison:f32:1024       a buffer of zeros, an uninitialised buffer

Exit status: 0 success, 1 errors found, a trap of the kernel or no estimate, 2 nothing was run.";

/// The kernel, where it runs, and how.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// PTX file; `-` is standard input
    pub(super) file: String,
    /// Arguments of the kernel: see below
    #[arg(value_name = "ARG")]
    pub(super) arguments: Vec<String>,
    /// The kernel, if the file has several
    #[arg(long, value_name = "NAME")]
    pub(super) entry: Option<String>,
    /// Grid size in blocks
    #[arg(long, value_name = "X[,Y[,Z]]")]
    pub(super) grid: Dims,
    /// Block size in threads [default: the kernel's required size]
    #[arg(long, value_name = "X[,Y[,Z]]")]
    pub(super) block: Option<Dims>,
    /// Dynamic shared memory per block, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(super) shared: u32,
    /// Blocks of a cluster [default: what the kernel requires, or none]
    #[arg(long, value_name = "X[,Y[,Z]]")]
    pub(super) cluster: Option<Dims>,
    /// Keep all blocks resident, so that they may wait for each other
    #[arg(long)]
    pub(super) cooperative: bool,
    /// Compute capability of the virtual GPU, such as 90 or 90a [default: the file's target]
    #[arg(long, value_name = "SM", value_parser = compute_capability)]
    pub(super) sm: Option<Arch>,
    /// The device: vm (the virtual GPU), cuda:N, or auto
    #[arg(long, value_name = "DEVICE", default_value = "vm")]
    pub(super) device: DeviceSpec,
    /// Checks besides the bounds of every access: all, none, or some of memcheck, racecheck, initcheck, synccheck and
    /// synccheck=strict [default: memcheck]
    #[arg(long, value_name = "CHECKS", value_delimiter = ',', hide_possible_values = true)]
    pub(super) check: Vec<Check>,
    /// Definition of a race: `strict` follows the letter of the memory model
    #[arg(long, value_name = "RULE", default_value = "normal")]
    pub(super) race: Race,
    #[command(flatten)]
    pub(super) native: NativeArgument,
    /// Order warps and blocks by the schedule's seed, so that runs are repeatable
    #[arg(long)]
    pub(super) deterministic: bool,
    /// Seed of the schedule's order [default: 0]
    #[arg(long, value_name = "N")]
    pub(super) schedule_seed: Option<u64>,
    /// Start the blocks of the grid in an order given by the schedule's seed, four at a time: CUDA promises no order,
    /// and a block that waits for one that has not started is a deadlock
    #[arg(long)]
    pub(super) scatter: bool,
    /// The tensor cores to match bit by bit: v100, a100, ada, h100, b200, rtx50 or exact [default: the device's]
    #[arg(long, value_name = "MODEL", value_parser = tensor_core)]
    pub(super) tensor_core: Option<TensorCore>,
    /// Stop a kernel that executes more instructions than this; each counts once per thread
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) max_instructions: Option<u64>,
    /// Set a module's variable before the launch, with the syntax of an argument; `inout:FILE.npy` and `out:FILE.npy`
    /// write its value afterwards
    #[arg(long = "global", value_name = "NAME=ARG")]
    pub(super) globals: Vec<String>,
    /// Host threads that run blocks [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(super) workers: Option<u32>,
    /// Print the report as JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) reports: ReportFiles,
}

/// Up to three extents, x first; those that are left out are 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dims(pub(super) [u32; 3]);

impl FromStr for Dims {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut dims = [1; 3];
        let parts: Vec<&str> = text.split(',').collect();
        if parts.len() > 3 {
            return Err(format!("{} extents, and there are three at most: X,Y,Z", parts.len()));
        }
        for (dim, part) in dims.iter_mut().zip(parts) {
            *dim =
                part.parse().ok().filter(|&extent| extent > 0 && !part.starts_with('+')).ok_or_else(
                    || format!("`{part}` is not an extent: a whole number from 1 to {}", u32::MAX),
                )?;
        }
        Ok(Dims(dims))
    }
}

fn tensor_core(text: &str) -> Result<TensorCore, String> {
    TensorCore::ALL.iter().copied().find(|model| model.name() == text).ok_or_else(|| {
        let names: Vec<_> = TensorCore::ALL.iter().map(|model| model.name()).collect();
        format!("there are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents() {
        let dims = |text: &str| text.parse::<Dims>().ok().map(|dims| dims.0);
        assert_eq!(dims("4"), Some([4, 1, 1]));
        assert_eq!(dims("4,5"), Some([4, 5, 1]));
        assert_eq!(dims("4,5,6"), Some([4, 5, 6]));
        for text in ["", "0", "4,", "4,0", "4,5,6,7", "-1", "+1", "x", "4 ,5", "4294967296"] {
            assert_eq!(dims(text), None, "{text:?}");
        }
    }
}
