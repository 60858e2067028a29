//! Tests of PTX that other compilers have made.

use crate::TestError;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use warpwright_ptx::diag::render;
use warpwright_ptx::ir::{Arch, Module};
use warpwright_ptx::verify::ModuleInfo;
use warpwright_ptx::{parse, verify};
use warpwright_vm::{
    Arg, Buffer, Device, DeviceConfig, Element, KernelInfo, KernelParam, LaunchConfig, Options, PageAccess,
    Report, Reserved, Schedule,
};

/// The name of the text in messages, as in findings.
const NAME: &str = "PTX";

/// Where inputs begin in the device's address space, and how far the end of one is from the next: an access beyond an
/// input's end must not be one to another input.
const INPUTS: u64 = 1 << 40;
const GAP: u64 = 1 << 30;

/// Blocks of a grid, or threads of a block: one number, two or three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dims(u32, u32, u32);

impl From<u32> for Dims {
    fn from(x: u32) -> Dims {
        Dims(x, 1, 1)
    }
}

impl From<(u32, u32)> for Dims {
    fn from((x, y): (u32, u32)) -> Dims {
        Dims(x, y, 1)
    }
}

impl From<(u32, u32, u32)> for Dims {
    fn from((x, y, z): (u32, u32, u32)) -> Dims {
        Dims(x, y, z)
    }
}

/// A test of a kernel in PTX of any compiler: the kernel, its launch and its arguments, in the order of its parameters.
///
/// ```
/// use warpwright_test::{PtxTest, TestError};
///
/// // `include_str!("axpy.ptx")`, or what a build script or NVRTC has made.
/// const PTX: &str = r#"
/// .version 8.0
/// .target sm_80
/// .address_size 64
/// .visible .entry twice(.param .u64 x, .param .u64 y, .param .u32 n) {
///     .reg .pred %p<2>;
///     .reg .b32 %r<5>;
///     .reg .f32 %f<2>;
///     .reg .b64 %rd<5>;
///     mov.u32 %r1, %ctaid.x;
///     mov.u32 %r2, %ntid.x;
///     mov.u32 %r3, %tid.x;
///     mad.lo.u32 %r1, %r1, %r2, %r3;
///     ld.param.u32 %r4, [n];
///     setp.ge.u32 %p1, %r1, %r4;
///     @%p1 ret;
///     ld.param.u64 %rd1, [x];
///     ld.param.u64 %rd2, [y];
///     mul.wide.u32 %rd3, %r1, 4;
///     add.u64 %rd4, %rd1, %rd3;
///     ld.global.f32 %f1, [%rd4];
///     add.f32 %f1, %f1, %f1;
///     add.u64 %rd4, %rd2, %rd3;
///     st.global.f32 [%rd4], %f1;
///     ret;
/// }"#;
///
/// fn twice() -> Result<(), TestError> {
///     let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
///     let test = PtxTest::new(PTX)?.grid(4).block(256);
///     let run = test.input(&x).output::<f32>(x.len()).scalar(x.len() as u32).run()?;
///     assert!(run.output::<f32>(0).iter().zip(&x).all(|(y, x)| *y == x + x));
///     Ok(())
/// }
/// # twice().unwrap();
/// ```
///
/// A slice of Rust is two parameters, its address and its length: `.input(&x).scalar(x.len() as u64)`.
#[derive(Clone)]
pub struct PtxTest {
    text: String,
    module: Module,
    info: ModuleInfo,
    kernel: Option<String>,
    arch: Arch,
    grid: Dims,
    block: Option<Dims>,
    shared: u32,
    cooperative: bool,
    cluster: Option<Dims>,
    options: Options,
    args: Vec<Given>,
    variables: Vec<(String, Vec<u8>)>,
}

/// An argument.
#[derive(Clone)]
enum Given {
    /// Memory that the kernel may only read.
    Input(Vec<u8>),
    /// Memory that it may read and write.
    InOut(Vec<u8>),
    /// Memory without contents, in bytes. If it must be written in full, the bytes of its elements.
    Output(usize, Option<u64>),
    /// A number or a structure.
    Value(Vec<u8>),
}

/// Memory of a launch.
enum Memory {
    ReadOnly { _reserved: Reserved },
    Own(Buffer<u8>),
}

fn bytes<T: Element>(data: &[T]) -> Vec<u8> {
    let mut bytes = vec![0; T::BYTES * data.len()];
    for (chunk, &value) in bytes.chunks_exact_mut(T::BYTES).zip(data) {
        value.put(chunk);
    }
    bytes
}

impl PtxTest {
    /// A test of PTX, on a device of the architecture that it was compiled for, with all checks.
    ///
    /// # Errors
    ///
    /// [`TestError::Ptx`] if the text is not PTX, or PTX that is wrong.
    pub fn new(ptx: &str) -> Result<PtxTest, TestError> {
        let shown = |diagnostics| TestError::Ptx(render(&diagnostics, NAME, ptx, false));
        let module = parse(ptx).map_err(shown)?;
        let info = verify(&module).map_err(shown)?;
        Ok(PtxTest {
            text: ptx.to_owned(),
            arch: module.target.arch,
            module,
            info,
            kernel: None,
            grid: Dims(1, 1, 1),
            block: None,
            shared: 0,
            cooperative: false,
            cluster: None,
            options: Options::checked(),
            args: Vec::new(),
            variables: Vec::new(),
        })
    }

    /// The kernel, by its name in the PTX: needed if there are several.
    pub fn kernel(mut self, name: &str) -> PtxTest {
        self.kernel = Some(name.to_owned());
        self
    }

    /// Blocks of the grid; otherwise one.
    pub fn grid(mut self, blocks: impl Into<Dims>) -> PtxTest {
        self.grid = blocks.into();
        self
    }

    /// Threads of a block; otherwise those that the kernel requires (`.reqntid`).
    pub fn block(mut self, threads: impl Into<Dims>) -> PtxTest {
        self.block = Some(threads.into());
        self
    }

    /// Bytes of dynamic shared memory.
    pub fn shared(mut self, bytes: u32) -> PtxTest {
        self.shared = bytes;
        self
    }

    /// Keeps all blocks resident, so that they may wait for each other.
    pub fn cooperative(mut self) -> PtxTest {
        self.cooperative = true;
        self
    }

    /// Blocks of a cluster; otherwise those that the kernel requires (`.reqnctapercluster`), or none.
    pub fn cluster(mut self, blocks: impl Into<Dims>) -> PtxTest {
        self.cluster = Some(blocks.into());
        self
    }

    /// Sets the architecture of the device.
    pub fn arch(mut self, arch: Arch) -> PtxTest {
        self.arch = arch;
        self
    }

    /// Sets other options than [`Options::checked`].
    pub fn options(mut self, options: Options) -> PtxTest {
        self.options = options;
        self
    }

    /// An array that the kernel may only read: a write is a finding.
    pub fn input<T: Element>(mut self, data: &[T]) -> PtxTest {
        self.args.push(Given::Input(bytes(data)));
        self
    }

    /// An array that the kernel may read and write. The results have it as an output.
    pub fn inout<T: Element>(mut self, data: &[T]) -> PtxTest {
        self.args.push(Given::InOut(bytes(data)));
        self
    }

    /// An array without contents, of `len` elements. The kernel must write all of it before it reads any, and what it
    /// leaves out is a finding.
    pub fn output<T: Element>(mut self, len: usize) -> PtxTest {
        self.args.push(Given::Output(T::BYTES * len, Some(T::BYTES as u64)));
        self
    }

    /// The same, of which the kernel may leave out elements.
    pub fn partial_output<T: Element>(mut self, len: usize) -> PtxTest {
        self.args.push(Given::Output(T::BYTES * len, None));
        self
    }

    /// A number, of the parameter's type. `u16` also has the bits of a half-precision number.
    pub fn scalar<T: Element>(mut self, value: T) -> PtxTest {
        self.args.push(Given::Value(bytes(&[value])));
        self
    }

    /// A structure by value: its bytes, with those between its fields.
    pub fn structure(mut self, bytes: &[u8]) -> PtxTest {
        self.args.push(Given::Value(bytes.to_owned()));
        self
    }

    /// A null pointer.
    pub fn null(self) -> PtxTest {
        self.scalar(0u64)
    }

    /// Sets a variable of the module before the launch: `__constant__` or `__device__` in C++.
    pub fn variable<T: Element>(mut self, name: &str, data: &[T]) -> PtxTest {
        self.variables.push((name.to_owned(), bytes(data)));
        self
    }

    /// Launches the kernel on a new virtual GPU and waits.
    ///
    /// # Errors
    ///
    /// [`TestError::Findings`] if the checks find an error, or the kernel traps. [`TestError::Argument`] if the kernel is
    /// not there, or has other parameters. [`TestError::Device`] if the device refuses the launch.
    pub fn run(&self) -> Result<PtxRun, TestError> {
        let run = self.run_unjudged()?;
        match run.report.has_errors() {
            true => Err(TestError::Findings(Box::new(run.report))),
            false => Ok(run),
        }
    }

    /// Runs it with blocks in the usual order, in reverse order, and in a random order for each seed, with only a few at
    /// once: CUDA promises no order. A block that waits for one that has not begun is then a deadlock.
    ///
    /// # Errors
    ///
    /// [`TestError::Order`] with the first error of an order.
    pub fn run_orders(&self, seeds: &[u64]) -> Result<Vec<PtxRun>, TestError> {
        let seeds = seeds.iter().map(|&seed| Schedule::Scattered(seed));
        let orders = [Schedule::Parallel, Schedule::Reversed].into_iter().chain(seeds);
        let run = |schedule| {
            let test = self.clone().options(Options { schedule, ..self.options });
            test.run().map_err(|error| TestError::Order(schedule, Box::new(error)))
        };
        orders.map(run).collect()
    }

    /// Like [`run`](Self::run), but findings are in the report and no error.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), without [`TestError::Findings`].
    pub fn run_unjudged(&self) -> Result<PtxRun, TestError> {
        let device = Device::new(DeviceConfig::of(self.arch))?;
        let module = device.load(&self.module, &self.info)?.with_text(&self.text);
        let kernel = self.find(module.kernels())?;
        for (name, data) in &self.variables {
            device.write_variable(&module, name, data)?;
        }
        let mut args = Vec::new();
        let mut memory = Vec::new();
        let mut next = INPUTS;
        for (given, param) in self.args.iter().zip(&kernel.params) {
            let (address, kept) = match given {
                Given::Value(bytes) => {
                    args.push(Arg::Bytes(bytes.clone()));
                    continue;
                }
                Given::Input(data) if !data.is_empty() => {
                    let (address, size) = (next, data.len() as u64);
                    next = (next + size + GAP).next_multiple_of(GAP);
                    let word = |chunk: &[u8]| {
                        let mut word = [0; 4];
                        word[..chunk.len()].copy_from_slice(chunk);
                        AtomicU32::new(u32::from_le_bytes(word))
                    };
                    let words: Vec<AtomicU32> = data.chunks(4).map(word).collect();
                    let reserved = device.reserve(address, Arc::new(words), size, "")?;
                    reserved.set(0, size, PageAccess::Read)?;
                    (address, Memory::ReadOnly { _reserved: reserved })
                }
                Given::Input(data) | Given::InOut(data) => own(device.clone_htod(data)?),
                Given::Output(size, _) => own(device.alloc(*size)?),
            };
            args.push(Arg::Pointer(address));
            memory.push((kept, given, param));
        }
        let block = match (self.block, kernel.required_block) {
            (Some(Dims(x, y, z)), _) | (None, Some([x, y, z])) => (x, y, z),
            (None, None) => {
                let name = &kernel.name;
                return Err(TestError::Argument(format!(
                    "kernel `{name}` runs with blocks of any size: say how many threads, with `block`"
                )));
            }
        };
        let mut launch = LaunchConfig::new(1, 1);
        let Dims(x, y, z) = self.grid;
        (launch.grid_dim, launch.block_dim) = ((x, y, z), block);
        (launch.shared_mem_bytes, launch.cooperative) = (self.shared, self.cooperative);
        launch.cluster_dim = self.cluster.map(|Dims(x, y, z)| (x, y, z));
        let mut report = device.launch(&module, &kernel.name, &launch, &args, &self.options)?.wait();
        // What is written is noted for this check; a kernel that was ended may have been about to write.
        let is_judged = self.options.checks.init && report.trap.is_none();
        let mut outputs = Vec::new();
        for (memory, given, param) in memory {
            let Memory::Own(buffer) = memory else { continue };
            if let (Given::Output(_, Some(width)), true) = (given, is_judged) {
                report.findings.extend(buffer.unwritten_output(
                    &kernel.name,
                    &param.name,
                    *width,
                    &[(0, *width)],
                ));
            }
            if !matches!(given, Given::Input(_)) {
                outputs.push(buffer);
            }
        }
        Ok(PtxRun { outputs, report })
    }

    /// The kernel, if the arguments are for its parameters.
    fn find<'a>(&self, kernels: impl Iterator<Item = &'a KernelInfo>) -> Result<&'a KernelInfo, TestError> {
        let mut kernels: Vec<_> = kernels.collect();
        kernels.sort_by(|a, b| a.name.cmp(&b.name));
        let names =
            || kernels.iter().map(|kernel| format!("`{}`", kernel.name)).collect::<Vec<_>>().join(", ");
        let found = match (&self.kernel, &kernels[..]) {
            (Some(name), _) => kernels.iter().find(|kernel| kernel.name == *name).copied(),
            (None, [only]) => Some(*only),
            (None, _) => None,
        };
        let Some(kernel) = found else {
            return Err(TestError::Argument(match (&self.kernel, kernels.len()) {
                (_, 0) => "the PTX has no kernel".to_owned(),
                (Some(name), _) => format!("there is no kernel `{name}`: there are {}", names()),
                (None, _) => format!("there are several kernels: choose one with `kernel`, of {}", names()),
            }));
        };
        let size = |given: &Given| match given {
            Given::Value(bytes) => bytes.len(),
            Given::Input(_) | Given::InOut(_) | Given::Output(..) => 8,
        };
        let does_fit = |(given, param): (&Given, &KernelParam)| size(given) == param.bytes as usize;
        if self.args.len() == kernel.params.len() && self.args.iter().zip(&kernel.params).all(does_fit) {
            return Ok(kernel);
        }
        let of_param = |param: &KernelParam| match param.is_array {
            true => format!("`{}`, a structure of {} bytes", param.name, param.bytes),
            false => format!("`{}`, {} of {} bytes", param.name, param.ty.name(), param.bytes),
        };
        let params: Vec<_> = kernel.params.iter().map(of_param).collect();
        let of_given = |given: &Given| match given {
            Given::Value(bytes) => format!("a value of {} bytes", bytes.len()),
            Given::Input(_) | Given::InOut(_) | Given::Output(..) => "the address of an array".to_owned(),
        };
        let given: Vec<_> = self.args.iter().map(of_given).collect();
        let list = |items: Vec<String>| if items.is_empty() { "none".to_owned() } else { items.join("; ") };
        Err(TestError::Argument(format!(
            "kernel `{}` has other parameters than the test has arguments\n  parameters: {}\n  arguments: {}",
            kernel.name,
            list(params),
            list(given)
        )))
    }
}

fn own(buffer: Buffer<u8>) -> (u64, Memory) {
    (buffer.address(), Memory::Own(buffer))
}

/// A kernel of a [`PtxTest`] that has run.
pub struct PtxRun {
    outputs: Vec<Buffer<u8>>,
    /// The report of the launch: warnings, counters, and what the kernel printed.
    pub report: Report,
}

impl PtxRun {
    /// The contents of an output, as elements of any width. Outputs are counted from 0 in the order of the arguments.
    ///
    /// # Panics
    /// If there are not as many outputs.
    #[track_caller]
    pub fn output<T: Element>(&self, index: usize) -> Vec<T> {
        match self.outputs.get(index) {
            Some(buffer) => buffer.read().chunks_exact(T::BYTES).map(T::get).collect(),
            None => panic!("there is no output {index}: the test has {}", self.outputs.len()),
        }
    }
}
