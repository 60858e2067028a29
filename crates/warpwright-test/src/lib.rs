//! Unit tests for kernels: run a kernel on slices with all checks on, compare the results. [`KernelTest`] has kernels of
//! the DSL, [`PtxTest`] has PTX of any compiler.
//!
//! ```
//! use warpwright_dsl::any::AnyKernel;
//! use warpwright_dsl::*;
//! use warpwright_test::KernelTest;
//!
//! struct Double;
//!
//! impl AnyKernel for Double {
//!     fn entry(&self) -> String { "double".into() }
//!     fn args(&self) -> Vec<ArgDesc> {
//!         let n = Extent::dim("n");
//!         vec![ArgDesc::input::<f32>("x", n), ArgDesc::output::<f32>("y", n), ArgDesc::scalar::<u32>("n")]
//!     }
//!     fn launch(&self) -> LaunchRule { LaunchRule::new(64).grid(Extent::dim("n").per(64)) }
//!     fn body(&self, k: K<'_>) {
//!         let (x, y, n) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"), k.scalar::<u32>("n"));
//!         let i = k.global_tid();
//!         k.when(i.lt(n), || y.st(i, x.ld(i) + x.ld(i)));
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let x: Vec<f32> = (0..100).map(|i| i as f32).collect();
//! let run = KernelTest::new(&Double).dim("n", 100).input("x", &x).run()?;
//! assert!(run.output::<f32>("y").iter().zip(&x).all(|(y, x)| *y == 2.0 * x));
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod ptx;

pub use ptx::{Dims, PtxRun, PtxTest};

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::rc::Rc;
use warpwright_dsl::{ArgDesc, Block, BuildError, Extent, Role, any::AnyKernel};
use warpwright_ptx::ir::{Arch, Module, Type};
use warpwright_ptx::verify;
use warpwright_vm::{
    Arg, Buffer, Device, DeviceConfig, DeviceError, Element, LaunchConfig, Options, Report, Schedule,
};

/// Why a kernel test failed before it had results.
#[non_exhaustive]
pub enum TestError {
    /// The kernel does not build, or the verifier refuses it.
    Build(BuildError),
    /// The text is not PTX, or the verifier refuses it: the diagnostics.
    Ptx(String),
    /// An argument is missing, unknown, or of the wrong width or length.
    Argument(String),
    /// The device refused it.
    Device(DeviceError),
    /// The checks reported findings, or the kernel trapped.
    Findings(Box<Report>),
    /// The error of a run with blocks in another order than usual.
    Order(Schedule, Box<TestError>),
}

impl fmt::Display for TestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TestError::Build(error) => write!(f, "the kernel does not build:\n{error}"),
            TestError::Ptx(diagnostics) => write!(f, "the PTX is refused:\n{diagnostics}"),
            TestError::Argument(message) => f.write_str(message),
            TestError::Device(error) => error.fmt(f),
            TestError::Findings(report) => report.fmt(f),
            TestError::Order(Schedule::Parallel, error) => error.fmt(f),
            TestError::Order(Schedule::Reversed, error) => write!(f, "with blocks in reverse order: {error}"),
            TestError::Order(Schedule::Seeded(seed) | Schedule::Scattered(seed), error) => {
                write!(f, "in the random order of seed {seed}: {error}")
            }
        }
    }
}

/// The same text as `Display`: a test that returns the error prints it.
impl fmt::Debug for TestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for TestError {}

impl From<DeviceError> for TestError {
    fn from(error: DeviceError) -> Self {
        TestError::Device(error)
    }
}

/// A test of a kernel: the kernel and its arguments.
pub struct KernelTest<'a> {
    kernel: &'a dyn AnyKernel,
    arch: Arch,
    options: Options,
    dims: HashMap<String, u64>,
    scalars: HashMap<String, f64>,
    data: HashMap<String, (usize, Vec<u8>)>,
    /// The input whose buffer each output shares.
    shared: HashMap<String, String>,
    /// Outputs that the kernel writes only in part.
    partly: HashSet<String>,
}

impl<'a> KernelTest<'a> {
    /// A test on a device of `sm_80`, with all checks.
    pub fn new(kernel: &'a dyn AnyKernel) -> Self {
        KernelTest {
            kernel,
            arch: Arch::sm(80),
            options: Options::checked(),
            dims: HashMap::new(),
            scalars: HashMap::new(),
            data: HashMap::new(),
            shared: HashMap::new(),
            partly: HashSet::new(),
        }
    }

    /// Sets the architecture of the device.
    pub fn arch(mut self, arch: Arch) -> Self {
        self.arch = arch;
        self
    }

    /// Sets other options than [`Options::checked`].
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets the seed of the execution order.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.schedule = Schedule::Seeded(seed);
        self
    }

    /// Starts blocks in a random order by a seed, few at a time: waiting for a block that has not begun is then a
    /// deadlock.
    pub fn scattered(mut self, seed: u64) -> Self {
        self.options.schedule = Schedule::Scattered(seed);
        self
    }

    /// Sets a number that lengths and the grid depend on, and the scalar argument of that name if there is one.
    pub fn dim(mut self, name: &str, value: u64) -> Self {
        self.dims.insert(name.into(), value);
        self
    }

    /// Sets a scalar argument.
    pub fn scalar(mut self, name: &str, value: f64) -> Self {
        self.scalars.insert(name.into(), value);
        self
    }

    /// Sets the contents of a buffer before the launch. The elements must be as wide as the argument's: `u16` holds the
    /// bits of an `f16`.
    pub fn input<T: Element>(mut self, name: &str, data: &[T]) -> Self {
        let mut bytes = vec![0; T::BYTES * data.len()];
        for (chunk, &value) in bytes.chunks_exact_mut(T::BYTES).zip(data) {
            value.put(chunk);
        }
        self.data.insert(name.into(), (T::BYTES, bytes));
        self
    }

    /// Makes an output share the buffer of an input, as [`ArgDesc::may_share`] allows.
    pub fn in_place(mut self, output: &str, input: &str) -> Self {
        self.shared.insert(output.into(), input.into());
        self
    }

    /// Declares that the kernel writes only a part of this output, and must not touch the rest. Otherwise the kernel
    /// must write every element of an output without initial contents.
    pub fn partly(mut self, output: &str) -> Self {
        self.partly.insert(output.into());
        self
    }

    /// Builds the kernel, launches it by its launch rule and waits. Findings are errors.
    pub fn run(self) -> Result<TestRun, TestError> {
        let (run, report) = self.run_unjudged()?;
        if report.is_clean() { Ok(run) } else { Err(TestError::Findings(Box::new(report))) }
    }

    /// Like [`run`](Self::run), but returns the report with all findings instead of an error.
    pub fn run_unjudged(self) -> Result<(TestRun, Report), TestError> {
        self.launch()?.run(&self.options)
    }

    /// The launch of the test, for other kinds of devices than that of [`run`](Self::run).
    pub fn launch(&self) -> Result<TestLaunch, TestError> {
        let built = self.kernel.build(self.arch).map_err(TestError::Build)?;
        let descriptions = self.kernel.args();
        self.known(&descriptions)?;
        let mut args = Vec::new();
        for description in &descriptions {
            args.push(match description.role {
                Role::Scalar => TestArg::Number(self.scalar_arg(description)?),
                _ => self.buffer(description)?,
            });
        }
        let rule = &built.launch;
        let grid = rule.grid.map(|extent| self.extent(extent));
        let grid_dim = match grid {
            [Ok(x), Ok(y), Ok(z)] => (x as u32, y as u32, z as u32),
            [Err(error), ..] | [_, Err(error), _] | [_, _, Err(error)] => return Err(error),
        };
        let (Block::Exactly(block) | Block::AtMost(block)) = rule.block;
        let config = LaunchConfig {
            grid_dim,
            block_dim: block.into(),
            shared_mem_bytes: rule.dynamic_shared,
            cooperative: rule.cooperative,
            cluster_dim: None,
        };
        let is_whole = |description: &&ArgDesc| {
            let name = description.name;
            let is_given = self.data.contains_key(name) || self.shared.contains_key(name);
            description.role == Role::Out && !is_given && !self.partly.contains(name)
        };
        let outputs = descriptions.iter().filter(is_whole).map(|output| (output.name, output.dtype.bytes()));
        let (entry, outputs) = (self.kernel.entry(), outputs.collect());
        Ok(TestLaunch { arch: self.arch, module: built.module, entry, config, args, outputs })
    }

    /// The options of its launch on a virtual GPU.
    pub fn vm_options(&self) -> Options {
        self.options
    }

    /// Checks that every name is one of the kernel's.
    fn known(&self, descriptions: &[ArgDesc]) -> Result<(), TestError> {
        let is_argument = |name: &String| descriptions.iter().any(|description| description.name == *name);
        let given = self.data.keys().chain(self.scalars.keys()).chain(&self.partly);
        let unknown = given.into_iter().find(|name| !is_argument(name));
        match unknown {
            Some(name) => {
                let names: Vec<_> = descriptions.iter().map(|description| description.name).collect();
                Err(TestError::Argument(format!(
                    "there is no argument `{name}`: there are {}",
                    names.join(", ")
                )))
            }
            None => self.shares(descriptions),
        }
    }

    /// Checks that every output that shares an input's buffer may do so, and has no contents of its own.
    fn shares(&self, descriptions: &[ArgDesc]) -> Result<(), TestError> {
        for (output, input) in &self.shared {
            let mut before = descriptions.iter().take_while(|description| description.name != *output);
            let allowed = descriptions.iter().any(|description| {
                description.name == *output && description.shares.contains(&input.as_str())
            });
            if !allowed || self.data.contains_key(output) || !before.any(|earlier| earlier.name == *input) {
                return Err(TestError::Argument(format!("`{output}` cannot be the buffer of `{input}`")));
            }
        }
        Ok(())
    }

    fn extent(&self, extent: Extent) -> Result<u64, TestError> {
        extent.evaluate(|name| self.dims.get(name).copied()).ok_or_else(|| {
            let unknown = extent.depends_on().find(|name| !self.dims.contains_key(*name));
            let name = unknown.unwrap_or_default();
            TestError::Argument(format!("`{extent}` is not known: give `{name}` with `dim`"))
        })
    }

    fn buffer(&self, description: &ArgDesc) -> Result<TestArg, TestError> {
        let ArgDesc { name, dtype, len, role, .. } = *description;
        if let Some(input) = self.shared.get(name) {
            return Ok(TestArg::Same { name, input: input.clone() });
        }
        let bytes = self.extent(len)? * u64::from(dtype.bytes());
        let Some((element, data)) = self.data.get(name) else {
            if role == Role::In || role == Role::InOut {
                return Err(TestError::Argument(format!("`{name}` is read and was not given: use `input`")));
            }
            return Ok(TestArg::Memory { name, bytes: bytes as usize });
        };
        if *element != dtype.bytes() as usize || data.len() as u64 != bytes {
            return Err(TestError::Argument(format!(
                "`{name}` holds {len} elements of {} ({bytes} bytes), and {} elements of {element} bytes are given",
                dtype.name(),
                data.len() / element
            )));
        }
        Ok(TestArg::Data { name, bytes: data.clone() })
    }

    fn scalar_arg(&self, description: &ArgDesc) -> Result<Arg, TestError> {
        let ArgDesc { name, dtype, .. } = *description;
        let dim = self.dims.get(name).copied();
        let value = match (dim, self.scalars.get(name)) {
            (_, Some(&value)) => value,
            (Some(value), None) => value as f64,
            (None, None) => {
                return Err(TestError::Argument(format!("`{name}` was not given: use `dim` or `scalar`")));
            }
        };
        let bits = dtype.bits().min(64) as i32;
        let range = match dtype.is_signed() {
            true => -(2f64.powi(bits - 1))..2f64.powi(bits - 1),
            false => 0.0..2f64.powi(bits),
        };
        if !dtype.is_float() && (value.fract() != 0.0 || !range.contains(&value)) {
            return Err(TestError::Argument(format!("`{name}` is {}, and cannot be {value}", dtype.name())));
        }
        Ok(match dtype {
            Type::F32 => Arg::F32(value as f32),
            Type::F64 => Arg::F64(value),
            Type::U64 | Type::B64 => Arg::U64(dim.unwrap_or(value as u64)),
            Type::S64 => Arg::I64(value as i64),
            Type::U32 | Type::B32 => Arg::U32(value as u32),
            Type::S32 => Arg::I32(value as i32),
            Type::U16 | Type::B16 => Arg::U16(value as u16),
            Type::S16 => Arg::I16(value as i16),
            Type::U8 | Type::B8 => Arg::U8(value as u8),
            Type::S8 => Arg::I8(value as i8),
            other => {
                let message = format!("scalar `{name}` is {}: a test cannot give one", other.name());
                return Err(TestError::Argument(message));
            }
        })
    }
}

/// The launch of a test: a module, and the arguments of its kernel.
#[derive(Clone, Debug)]
pub struct TestLaunch {
    /// The architecture of the device.
    pub arch: Arch,
    /// The module.
    pub module: Module,
    /// The kernel's entry name.
    pub entry: String,
    /// Grid, block, dynamic shared memory.
    pub config: LaunchConfig,
    /// The arguments, in order.
    pub args: Vec<TestArg>,
    /// The buffers that the kernel must write in full: names, and bytes of an element.
    pub outputs: Vec<(&'static str, u32)>,
}

/// An argument of a test launch.
#[derive(Clone, Debug)]
pub enum TestArg {
    /// A buffer with initial contents.
    Data {
        /// The argument's name.
        name: &'static str,
        /// Its initial contents.
        bytes: Vec<u8>,
    },
    /// An uninitialised buffer.
    Memory {
        /// The argument's name.
        name: &'static str,
        /// Its size in bytes.
        bytes: usize,
    },
    /// The buffer of an earlier argument.
    Same {
        /// The argument's name.
        name: &'static str,
        /// The name of the other argument.
        input: String,
    },
    /// A number.
    Number(Arg),
}

impl TestLaunch {
    /// Launches it on a new virtual GPU and waits. Returns the report with all findings.
    pub fn run(&self, options: &Options) -> Result<(TestRun, Report), TestError> {
        let info = verify(&self.module).map_err(|mistakes| TestError::Build(mistakes.into()))?;
        let device = Device::new(DeviceConfig::of(self.arch))?;
        let module = device.load(&self.module, &info)?;
        let mut args = Vec::new();
        let mut buffers: Vec<(&'static str, Rc<Buffer<u8>>)> = Vec::new();
        for arg in &self.args {
            let (name, buffer) = match arg {
                TestArg::Number(number) => {
                    args.push(number.clone());
                    continue;
                }
                TestArg::Data { name, bytes } => (name, Rc::new(device.clone_htod(bytes)?)),
                TestArg::Memory { name, bytes } => (name, Rc::new(device.alloc(*bytes)?)),
                TestArg::Same { name, input } => match buffers.iter().find(|(known, _)| known == input) {
                    Some((_, buffer)) => (name, buffer.clone()),
                    None => {
                        let message =
                            format!("`{name}` cannot be the buffer of `{input}`, which comes later");
                        return Err(TestError::Argument(message));
                    }
                },
            };
            args.push(Arg::buffer(&buffer));
            buffers.push((name, buffer));
        }
        let mut report = device.launch(&module, &self.entry, &self.config, &args, options)?.wait();
        // What is written is noted for this check; a kernel that was ended may have been about to write.
        let judged = options.checks.init && report.trap.is_none();
        for &(name, width) in self.outputs.iter().filter(|_| judged) {
            let buffer = buffers.iter().find(|(known, _)| *known == name);
            let unwritten = buffer.and_then(|(_, buffer)| {
                buffer.unwritten_output(&self.entry, name, width.into(), &[(0, width.into())])
            });
            report.findings.extend(unwritten);
        }
        Ok((TestRun { buffers, report: report.clone() }, report))
    }
}

/// A kernel that has run.
pub struct TestRun {
    buffers: Vec<(&'static str, Rc<Buffer<u8>>)>,
    /// The report of the launch.
    pub report: Report,
}

impl TestRun {
    /// The contents of a buffer, as elements of any width.
    ///
    /// # Panics
    /// If there is no buffer of that name.
    #[track_caller]
    pub fn output<T: Element>(&self, name: &str) -> Vec<T> {
        match self.buffers.iter().find(|buffer| buffer.0 == name) {
            Some((_, buffer)) => buffer.read().chunks_exact(T::BYTES).map(T::get).collect(),
            None => panic!("the kernel has no buffer `{name}`"),
        }
    }
}

/// The example of the page that registries show.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The examples in Rust of the page on tests without a GPU.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/testing.md")]
struct Testing;
