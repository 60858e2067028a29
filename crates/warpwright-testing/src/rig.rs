//! Launches single kernels, with any parameters, on the device of the test.

use crate::compare::{comparable, compare};
use crate::test_device::device;
use std::fmt;
use std::sync::{Arc, OnceLock};
use warpwright_ptx::verify;
use warpwright_runtime::{
    Buffer, Device, Function, LaunchAttributes, LaunchConfig, RawArg, RuntimeError, Stream, VmConfig,
};
use warpwright_test::{KernelTest, TestArg, TestError, TestLaunch};
use warpwright_vm::{Arg, Element, Options, Report};

/// Why a kernel did not run, or ran with errors.
pub enum RunError {
    /// The test's arguments do not match the kernel.
    Test(TestError),
    /// The device refused it, or it failed on the device.
    Runtime(RuntimeError),
    /// Findings of a virtual GPU.
    Findings(Arc<Report>),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Test(error) => error.fmt(f),
            RunError::Runtime(error) => error.fmt(f),
            RunError::Findings(report) => report.fmt(f),
        }
    }
}

/// The same text as `Display`: a test that expects a result prints it.
impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for RunError {}

impl From<TestError> for RunError {
    fn from(error: TestError) -> Self {
        RunError::Test(error)
    }
}

impl From<RuntimeError> for RunError {
    fn from(error: RuntimeError) -> Self {
        RunError::Runtime(error)
    }
}

type Observer = Box<dyn Fn(&str) + Send + Sync>;

static OBSERVER: OnceLock<Observer> = OnceLock::new();

/// Calls a function with the name of each kernel that a [`Rig`] of this process launches, before it does, and with those
/// that are [announced](announce_launch). Only the first call has an effect.
pub fn observe_launches(observer: impl Fn(&str) + Send + Sync + 'static) {
    let _ = OBSERVER.set(Box::new(observer));
}

/// Tells the function of [`observe_launches`] which kernel is launched next.
pub fn announce_launch(kernel: &str) {
    if let Some(observer) = OBSERVER.get() {
        observer(kernel);
    }
}

/// A kernel on the device of the test, with its buffers.
pub struct Rig {
    pub(crate) stream: Stream,
    function: Function,
    config: LaunchConfig,
    attributes: LaunchAttributes,
    args: Vec<RawArg>,
    pub(crate) buffers: Vec<(&'static str, Buffer<u8>)>,
    /// The launch itself, where it is compared.
    compared: Option<TestLaunch>,
}

impl Rig {
    /// Loads the module and allocates the buffers. A virtual GPU launches the kernel with the options.
    pub fn new(launch: &TestLaunch, options: Options) -> Result<Self, RunError> {
        let mut config = VmConfig { options, ..VmConfig::default() };
        config.device.arch = launch.arch;
        let device = device(config);
        match comparable(&device, launch) {
            None => Rig::on(&device, launch),
            Some(launch) => Ok(Rig { compared: Some(launch.clone()), ..Rig::on(&device, &launch)? }),
        }
    }

    pub(crate) fn on(device: &Device, launch: &TestLaunch) -> Result<Self, RunError> {
        let stream = device.default_stream();
        let info = verify(&launch.module).map_err(RuntimeError::Invalid)?;
        let function = device.load(&launch.module, &info)?.load_function(&launch.entry)?;
        let shared_mem_bytes = launch.config.shared_mem_bytes;
        if shared_mem_bytes > function.max_dynamic_shared() {
            function.set_max_dynamic_shared(shared_mem_bytes)?;
        }
        let mut buffers: Vec<(&'static str, Buffer<u8>)> = Vec::new();
        let mut args = Vec::new();
        for arg in &launch.args {
            let (name, buffer) = match arg {
                TestArg::Number(number) => {
                    args.push(raw(number)?);
                    continue;
                }
                TestArg::Data { name, bytes } => (name, stream.clone_htod(bytes)?),
                TestArg::Memory { name, bytes } => (name, stream.alloc::<u8>(*bytes)?),
                TestArg::Same { name, input } => match buffers.iter().find(|(known, _)| known == input) {
                    Some((_, buffer)) => (name, buffer.clone()),
                    None => return Err(mistake(format!("`{name}` is to be `{input}`, which comes later"))),
                },
            };
            args.push((&buffer).into());
            buffers.push((name, buffer));
        }
        let attributes = LaunchAttributes::default();
        let attributes = if launch.config.cooperative { attributes.cooperative() } else { attributes };
        let config = LaunchConfig {
            grid_dim: launch.config.grid_dim,
            block_dim: launch.config.block_dim,
            shared_mem_bytes,
        };
        Ok(Rig { stream, function, config, attributes, args, buffers, compared: None })
    }

    /// Launches it and waits. Findings of a virtual GPU are errors. Returns its report, if there is one.
    pub fn run(&self) -> Result<Option<Arc<Report>>, RunError> {
        match &self.compared {
            Some(launch) => compare(self, launch),
            None => self.run_once(),
        }
    }

    #[allow(unsafe_code, reason = "kernels of any parameters are launched raw")]
    pub(crate) fn run_once(&self) -> Result<Option<Arc<Report>>, RunError> {
        let mut launch = self.stream.launch_builder(&self.function).attributes(self.attributes);
        for arg in &self.args {
            launch = launch.arg(arg.clone());
        }
        announce_launch(self.function.name());
        // SAFETY: the buffers are of the lengths that the kernel says, and nothing else uses them. Where a kernel under
        // test is wrong, a driver that checks every access finds that before this runs on one that does not.
        unsafe { launch.launch(self.config) }?;
        let waited = self.stream.synchronize();
        match (self.stream.device().last_report(), waited) {
            (Some(report), _) if !report.is_clean() => Err(RunError::Findings(report)),
            (_, Err(error)) => Err(error.into()),
            (report, Ok(())) => Ok(report),
        }
    }

    /// Reads a buffer.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, RunError> {
        Ok(self.stream.clone_dtoh(self.buffer(name)?)?)
    }

    /// Writes a buffer.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), RunError> {
        Ok(self.stream.memcpy_htod(bytes, self.buffer(name)?)?)
    }

    fn buffer(&self, name: &str) -> Result<&Buffer<u8>, RunError> {
        match self.buffers.iter().find(|(known, _)| *known == name) {
            Some((_, buffer)) => Ok(buffer),
            None => Err(mistake(format!("the kernel has no buffer `{name}`"))),
        }
    }
}

fn mistake(message: String) -> RunError {
    TestError::Argument(message).into()
}

fn raw(number: &Arg) -> Result<RawArg, RunError> {
    Ok(match *number {
        Arg::U8(value) => value.into(),
        Arg::I8(value) => value.into(),
        Arg::U16(value) => value.into(),
        Arg::I16(value) => value.into(),
        Arg::U32(value) => value.into(),
        Arg::I32(value) => value.into(),
        Arg::U64(value) => value.into(),
        Arg::I64(value) => value.into(),
        Arg::F32(value) => value.into(),
        Arg::F64(value) => value.into(),
        ref other => return Err(mistake(format!("{other:?} is not a number"))),
    })
}

/// A kernel that has run on the device of the test.
pub struct Ran {
    rig: Rig,
    /// The report of a virtual GPU.
    pub report: Option<Arc<Report>>,
}

impl Ran {
    /// The contents of a buffer.
    ///
    /// # Panics
    /// If there is no buffer of that name, or it cannot be read.
    #[track_caller]
    pub fn output<T: Element>(&self, name: &str) -> Vec<T> {
        let bytes = self.rig.read(name).unwrap_or_else(|error| panic!("{error}"));
        bytes.chunks_exact(T::BYTES).map(T::get).collect()
    }
}

/// Runs a kernel test on the device of the test.
pub trait RunHere {
    /// As [`KernelTest::run`], on the device of the test.
    fn run_here(self) -> Result<Ran, RunError>;
}

impl RunHere for KernelTest<'_> {
    fn run_here(self) -> Result<Ran, RunError> {
        let rig = Rig::new(&self.launch()?, self.vm_options())?;
        let report = rig.run()?;
        Ok(Ran { rig, report })
    }
}
