//! Devices.

use crate::error::{not_ptx, refused};
use crate::launch::{Asked, Launched};
use crate::memory::{self, Memory};
use crate::module::{Kernel, Module, Texts};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use warpwright_ptx::diag::{LineIndex, render};
use warpwright_ptx::ir::{Arch, Origin};
use warpwright_ptx::{parse, verify};
use warpwright_report::BufferArgument;
use warpwright_vm as vm;

/// How often a launch is interrupted to see whether Python was: Ctrl-C must end it.
const PATIENCE: Duration = Duration::from_millis(50);

/// Memory that must be written, the argument's name, the bytes of an element, and the parts of one that are data.
type Output<'py> = (PyRef<'py, Memory>, String, u64, Vec<(u64, u64)>);

/// A virtual GPU.
#[pyclass(frozen, module = "warpwright._warpwright")]
pub(crate) struct Device {
    pub(crate) device: vm::Device,
}

#[pymethods]
impl Device {
    #[new]
    #[pyo3(signature = (sm = "80", workers = 0, memory = None))]
    fn new(py: Python<'_>, sm: &str, workers: u32, memory: Option<u64>) -> PyResult<Device> {
        let name = if sm.starts_with("sm_") { sm.to_owned() } else { format!("sm_{sm}") };
        let arch = name.parse::<Arch>().map_err(|error| refused(py, format!("sm={sm:?}: {error}")))?;
        let mut config = vm::DeviceConfig::of(arch);
        config.workers = workers;
        config.memory = memory.unwrap_or(config.memory);
        let device = vm::Device::new(config).map_err(|error| refused(py, error))?;
        Ok(Device { device })
    }

    #[getter]
    fn sm(&self) -> String {
        self.device.config().arch.to_string().trim_start_matches("sm_").to_owned()
    }

    #[pyo3(signature = (ptx, name = "PTX", sources = HashMap::new()))]
    fn load(
        &self,
        py: Python<'_>,
        ptx: &str,
        name: &str,
        sources: HashMap<String, String>,
    ) -> PyResult<Module> {
        let loaded = py.detach(|| {
            let shown = |diagnostics| render(&diagnostics, name, ptx, false);
            let module = parse(ptx).map_err(shown)?;
            let info = verify(&module).map_err(shown)?;
            self.device.load(&module, &info).map_err(|error| match &error {
                vm::DeviceError::Load(vm::LoadError { origin: Origin::Text(span), .. }) => {
                    format!("{name}:{}: {error}", LineIndex::new(ptx).position(span.start).line)
                }
                _ => format!("{name}: {error}"),
            })
        });
        let texts = Texts { name: name.into(), sources };
        match loaded {
            Ok(module) => Ok(Module::new(module.with_text(ptx), texts)),
            Err(message) => Err(not_ptx(py, message)),
        }
    }

    #[pyo3(signature = (address, bytes, owner, name = "", *, written = true, writable = true))]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn lend(
        &self,
        py: Python<'_>,
        address: u64,
        bytes: u64,
        owner: Py<PyAny>,
        name: &str,
        written: bool,
        writable: bool,
    ) -> PyResult<Memory> {
        Memory::lend(py, &self.device, memory::Asked { address, bytes, owner, name, written, writable })
    }

    #[pyo3(signature = (
        kernel, grid, block, params, *, shared = 0, check = "memcheck", order = "issue", race = "normal",
        cooperative = false, cluster = None, counters = false, max_instructions = None, outputs = Vec::new()
    ))]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn launch(
        &self,
        py: Python<'_>,
        kernel: &Kernel,
        grid: Vec<u32>,
        block: Vec<u32>,
        params: &[u8],
        shared: u32,
        check: &str,
        order: &str,
        race: &str,
        cooperative: bool,
        cluster: Option<Vec<u32>>,
        counters: bool,
        max_instructions: Option<u64>,
        outputs: Vec<Output<'_>>,
    ) -> PyResult<Launched> {
        let asked = Asked {
            grid,
            block,
            params,
            shared,
            check,
            order,
            race,
            cooperative,
            cluster,
            counters,
            max_instructions,
        };
        let (config, options) = asked.read().map_err(|message| refused(py, message))?;
        let args = asked.args(&kernel.info).map_err(|message| refused(py, message))?;
        let arguments = if counters { self.arguments(&kernel.info, params) } else { Vec::new() };
        let begun = Instant::now();
        let running = self.device.launch(&kernel.module, &kernel.info.name, &config, &args, &options);
        let running = running.map_err(|error| refused(py, error))?;
        while !py.detach(|| running.wait_for(PATIENCE)) {
            if let Err(interrupt) = py.check_signals() {
                running.cancel();
                py.detach(|| running.wait());
                return Err(interrupt);
            }
        }
        let mut report = py.detach(|| running.wait());
        // A kernel that was ended may have been about to write.
        let ended = !options.checks.init || report.trap.is_some();
        for (memory, name, width, data) in outputs.iter().filter(|_| !ended) {
            report.findings.extend(memory.unwritten(py, &report.kernel, name, *width, data)?);
        }
        let launched = Launched {
            report,
            texts: kernel.texts.clone(),
            device: self.device.config().arch,
            grid: config.grid_dim.into(),
            block: config.block_dim.into(),
            took: begun.elapsed(),
            arguments,
        };
        Ok(launched)
    }
}

impl Device {
    /// The parameters that are addresses of memory.
    fn arguments(&self, kernel: &vm::KernelInfo, params: &[u8]) -> Vec<BufferArgument> {
        let address = |param: &vm::KernelParam| {
            let bytes = params.get(param.offset as usize..)?.first_chunk()?;
            let memory = self.device.locate(u64::from_le_bytes(*bytes)).filter(|memory| !memory.freed)?;
            Some(BufferArgument {
                parameter: param.name.clone(),
                argument: memory.name,
                address: memory.base,
            })
        };
        kernel.params.iter().filter(|param| param.bytes == 8 && !param.is_array).filter_map(address).collect()
    }
}
