//! Common parts of the commands that run a model: options, loading, and messages.
//!
//! Standard output is for the result only; all messages go to standard error.

mod findings;
pub(crate) mod interrupt;
mod progress;
pub(crate) mod sampling;
mod screen;
mod tokens;

pub(crate) use findings::{failure, findings_json, show_findings};
pub(crate) use screen::Screen;
pub(crate) use tokens::encode;

use super::Failure;
use super::json::object;
use super::model::{ModelArguments, ModelFile};
use super::tuning::TuningArguments;
use super::virtual_gpu::{self, Check, NativeArgument};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use std::io::{self, Write};
use std::time::Duration;
use warpwright_graph::Arithmetic;
use warpwright_kernels::CacheDtype;
use warpwright_llm::engine::{
    Context, Engine, EngineError, EngineOptions, Executor, PersistentStatistics, SamplerOptions,
};
use warpwright_runtime::{Device, DeviceSpec, Order, VmConfig};

/// The model, and how it runs
#[derive(clap::Args)]
pub(crate) struct EngineArguments {
    #[command(flatten)]
    pub(crate) model: ModelArguments,
    /// The device: auto, vm (the virtual GPU) or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "auto", help_heading = "Engine")]
    device: DeviceSpec,
    /// How launches are issued: `graph` replays a whole step at once, `persistent` decodes many tokens in one launch
    #[arg(long, value_name = "EXECUTOR", default_value = "graph", value_parser = executor(), help_heading = "Engine")]
    executor: Executor,
    /// With `--executor persistent`: maximum number of tokens of a launch [default: 128]
    #[arg(long, value_name = "N", help_heading = "Engine")]
    tokens_per_launch: Option<u32>,
    /// With `--executor persistent`: blocks of a launch [default: as many as can be resident at once]
    #[arg(long, value_name = "N", help_heading = "Engine")]
    blocks: Option<u32>,
    /// With `--executor persistent`: fail if it is not supported, instead of using graphs
    #[arg(long, help_heading = "Engine")]
    no_fallback: bool,
    /// How activations are multiplied: `exact`, or `int8` with quantised weights
    #[arg(long = "act", value_name = "ARITHMETIC", default_value = "exact", value_parser = arithmetic(),
        help_heading = "Engine")]
    arithmetic: Arithmetic,
    /// The element type of the KV cache
    #[arg(long = "kv", value_name = "TYPE", default_value = "f16", value_parser = cache(), help_heading = "Engine")]
    cache: CacheDtype,
    /// Checks of the virtual GPU besides the bounds of every access: all, none, or some of memcheck, racecheck,
    /// initcheck and synccheck [default: memcheck]
    #[arg(
        long,
        value_name = "CHECKS",
        value_delimiter = ',',
        hide_possible_values = true,
        help_heading = "Engine"
    )]
    check: Vec<Check>,
    /// The order in which the virtual GPU runs the work of different streams: `issue`, `reverse`, `random:SEED`. The
    /// results are the same unless a wait is missing [default: issue]
    #[arg(long, value_name = "ORDER", help_heading = "Engine")]
    order: Option<Order>,
    #[command(flatten, next_help_heading = "Engine")]
    native: NativeArgument,
    #[command(flatten)]
    tuning: TuningArguments,
}

/// One of these values, by its name.
fn by_name<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.map(name)).try_map(move |given| {
        let found = all.into_iter().find(|&value| name(value) == given);
        found.ok_or("it is none of the possible values")
    })
}

fn executor() -> impl TypedValueParser<Value = Executor> {
    by_name([Executor::Graph, Executor::Eager, Executor::Persistent], Executor::name)
}

/// The ways to multiply.
pub(crate) fn arithmetic() -> impl TypedValueParser<Value = Arithmetic> {
    by_name([Arithmetic::Exact, Arithmetic::Int8], Arithmetic::name)
}

/// What caches may hold.
pub(crate) fn cache() -> impl TypedValueParser<Value = CacheDtype> {
    by_name(CacheDtype::ALL, CacheDtype::name)
}

/// A model that is ready.
pub(crate) struct Loaded {
    pub(crate) file: ModelFile,
    pub(crate) engine: Engine,
    /// From opening the file to the first step that could be taken.
    pub(crate) loading: Duration,
    /// Whether it was said that another executor is used than was asked for.
    noted: bool,
}

/// What a command wants beyond its options.
#[derive(Default)]
pub(crate) struct Wanted {
    pub(crate) context: Option<u32>,
    pub(crate) chunk: Option<u32>,
    pub(crate) sampler: SamplerOptions,
}

impl EngineArguments {
    /// Opens the device.
    fn open_device(&self) -> Result<Device, Failure> {
        let message =
            |error: &dyn std::fmt::Display| Failure::Message(format!("--device {}: {error}", self.device));
        let checks = virtual_gpu::checks(&self.check)?;
        if self.device != DeviceSpec::Vm {
            let selected = self.device.select().map_err(|error| message(&error))?;
            if !virtual_gpu::is_ours(&selected.device) {
                if self.check.iter().any(|&check| check != Check::None) {
                    return Err(message(
                        &"`--check` needs the virtual GPU: `--device vm`, or `warpwright exec --check all --` before \
                          this command",
                    ));
                }
                if self.order.is_some() {
                    return Err(message(
                        &"`--order` needs the virtual GPU: `--device vm`, or `warpwright exec --order`",
                    ));
                }
                if self.native.when.is_some() {
                    return Err(message(
                        &"`--native` needs the virtual GPU: `--device vm`, or `warpwright exec --native`",
                    ));
                }
                return Ok(selected.device);
            }
        }
        let order = self.order.unwrap_or_default();
        let options = warpwright_vm::Options { checks, ..Default::default() };
        let mut device = virtual_gpu::config(warpwright_ptx::ir::Arch::sm(90));
        self.native.apply(&mut device);
        Device::vm(VmConfig { device, options, order }).map_err(|error| message(&error))
    }

    /// Loads the model of a file.
    pub(crate) fn load(&self, file: ModelFile, wanted: Wanted) -> Result<Loaded, Failure> {
        self.check_executor()?;
        let mut options = EngineOptions::new(self.open_device()?);
        self.tuning.apply(&mut options.tuning)?;
        options.executor = self.executor;
        options.tokens_per_launch = self.tokens_per_launch.unwrap_or(options.tokens_per_launch);
        options.blocks = self.blocks;
        options.fall_back = !self.no_fallback;
        options.arithmetic = self.arithmetic;
        options.cache = self.cache;
        options.context = wanted.context;
        options.chunk = wanted.chunk;
        options.sampler = wanted.sampler;
        let bar = progress::Bar::new("loading", "{bytes}/{total_bytes}");
        let engine = Engine::load(&file.gguf, options, |loading| bar.show(loading.loaded, loading.total));
        bar.finish();
        let engine = engine.map_err(|error| match error {
            EngineError::Option { .. } | EngineError::Executor { .. } => Failure::Message(error.to_string()),
            EngineError::Model(error) => file.model_failure(&error),
            error => file.failure(error),
        })?;
        let loading = file.opened.elapsed();
        let mut loaded = Loaded { file, engine, loading, noted: false };
        loaded.note()?;
        Ok(loaded)
    }

    /// Refuses options of another executor than the one that is asked for.
    fn check_executor(&self) -> Result<(), Failure> {
        let of_launches = [
            ("--tokens-per-launch", self.tokens_per_launch.is_some()),
            ("--blocks", self.blocks.is_some()),
            ("--no-fallback", self.no_fallback),
        ];
        match of_launches.into_iter().find(|(_, given)| *given) {
            Some((option, _)) if self.executor != Executor::Persistent => {
                Err(Failure::Message(format!("`{option}` goes with `--executor persistent`")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses an executor of many tokens for a command that chooses none.
    pub(crate) fn must_not_decode(&self, command: &str) -> Result<(), Failure> {
        self.check_executor()?;
        if self.executor == Executor::Persistent {
            return Err(Failure::Message(format!(
                "`--executor persistent` chooses tokens, and `{command}` computes logits of tokens that are given: \
                 use `graph` or `eager`"
            )));
        }
        Ok(())
    }
}

impl Loaded {
    /// Says once, on standard error, that another executor is used than was asked for, where that is so.
    pub(crate) fn note(&mut self) -> io::Result<()> {
        match self.engine.fallback() {
            Some(fallback) if !self.noted => {
                self.noted = true;
                writeln!(io::stderr(), "note: {fallback}")
            }
            _ => Ok(()),
        }
    }

    /// What persistent launches did since then; nothing where another executor is used.
    pub(crate) fn persistent(&self, before: &PersistentStatistics) -> Option<PersistentObject> {
        let now = self.engine.statistics().persistent;
        let used = self.engine.describe().executor == Executor::Persistent;
        used.then(|| PersistentObject::new(now.since(before), self.engine.describe().tokens_per_launch))
    }

    /// Says how long tokens will take, where they are computed on the virtual GPU.
    pub(crate) fn announce(&mut self) -> Result<(), Failure> {
        if !self.engine.device().is_virtual() {
            return Ok(());
        }
        let estimate = self.engine.estimate().map_err(|error| failure(&self.engine, &error))?;
        writeln!(
            io::stderr(),
            "on the virtual GPU a token of this model takes about {}, one of a long prompt {}",
            about(estimate.token),
            about(estimate.prompt_token)
        )?;
        Ok(())
    }

    /// What the virtual GPU has found so far.
    pub(crate) fn findings(&self) -> Vec<warpwright_vm::Finding> {
        self.engine.device().take_findings()
    }

    /// How the engine is set up, for `--json`.
    pub(crate) fn description(&self) -> impl Serialize + use<> {
        let description = self.engine.describe();
        object! {
            architecture: description.architecture,
            parameters: description.parameters,
            device: description.device,
            arithmetic: description.arithmetic.name(),
            cache: description.cache.to_string(),
            executor: description.executor.name(),
            // Why it is not the executor that was asked for.
            fallback: self.engine.fallback().map(|fallback| fallback.why.to_string()),
            context: description.context,
            chunk: description.chunk,
        }
    }
}

/// What persistent launches have done.
#[derive(Serialize)]
pub(crate) struct PersistentObject {
    pub(crate) launches: u64,
    pub(crate) tokens: u64,
    pub(crate) launches_per_token: Option<f64>,
    pub(crate) barriers_per_token: u32,
    pub(crate) blocks: u32,
    pub(crate) tokens_per_launch: u32,
}

impl PersistentObject {
    fn new(done: PersistentStatistics, tokens_per_launch: u32) -> Self {
        PersistentObject {
            launches: done.launches,
            tokens: done.tokens,
            launches_per_token: done.launches_per_token(),
            barriers_per_token: done.barriers_per_token,
            blocks: done.blocks,
            tokens_per_launch,
        }
    }
}

/// What a device has done.
#[derive(Serialize)]
pub(crate) struct Counters {
    launches: u64,
    graph_launches: u64,
    copies: u64,
    bytes_copied: u64,
}

impl Counters {
    /// Of this device so far.
    pub(crate) fn of(device: &Device) -> Counters {
        let statistics = device.statistics();
        Counters {
            launches: statistics.launches,
            graph_launches: statistics.graph_launches,
            copies: statistics.copies,
            bytes_copied: statistics.bytes_copied,
        }
    }

    /// What was done since then.
    pub(crate) fn since(&self, before: &Counters) -> Counters {
        Counters {
            launches: self.launches - before.launches,
            graph_launches: self.graph_launches - before.graph_launches,
            copies: self.copies - before.copies,
            bytes_copied: self.bytes_copied - before.bytes_copied,
        }
    }
}

/// What helps where a context is too short, with the option that asks for another.
pub(crate) fn context_help(context: &Context) -> String {
    let option = if context.tokens < context.max { " (`-c`)" } else { "" };
    format!("{}{option}", context.help())
}

/// A time for people: `33 ms`, `1.5 s`, `4 min`.
fn about(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        ..0.001 => format!("{:.0} µs", seconds * 1e6),
        ..1.0 => format!("{:.0} ms", seconds * 1e3),
        ..100.0 => format!("{seconds:.1} s"),
        _ => format!("{:.0} min", seconds / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_that_people_read() {
        let times = [0.000_012, 0.0333, 1.26, 250.0].map(|seconds| about(Duration::from_secs_f64(seconds)));
        assert_eq!(times, ["12 µs", "33 ms", "1.3 s", "4 min"]);
    }
}
