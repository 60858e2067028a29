//! `warpwright plan`: the launches of a model's step, or the schedule of the persistent decoder.

use super::engine::{arithmetic, cache};
use super::model::ModelArguments;
use super::tuning::TuningArguments;
use super::{Failure, Outcome};
use std::io::Write;
use warpwright_graph::persistent::render::ScheduleReport;
use warpwright_graph::persistent::{self, Appended, Schedule, ScheduleOptions};
use warpwright_graph::render::PlanReport;
use warpwright_graph::{Arithmetic, Fusions, KernelLibrary, Plan, PlanOptions, StepKind, StepShape};
use warpwright_kernels::persistent::Assignment;
use warpwright_kernels::tune::{DeviceModel, Tuning};
use warpwright_kernels::{CacheDtype, Publish};
use warpwright_llm::engine::Context;
use warpwright_llm::model::{Choice, GraphOptions, ModelConfig, Outcome as GraphOutcome};
use warpwright_ptx::ir::Arch;
use warpwright_runtime::{Device, DeviceSpec};

/// Show the launches of a model's step, before and after fusion, or the schedule of the persistent decoder, which makes
/// many tokens in one launch. Nothing is loaded or run
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    model: ModelArguments,
    /// Number of sequences
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    batch: u32,
    /// New tokens of each sequence: 1 decodes, more are a prompt
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65536))]
    tokens: u32,
    /// Capacity of the cache in tokens [default: the model's context, at most 4096]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    context: Option<u32>,
    /// How activations are multiplied
    #[arg(long, default_value = "exact", value_parser = arithmetic())]
    act: Arithmetic,
    /// The element type of the KV cache
    #[arg(long, default_value = "f16", value_parser = cache())]
    kv: CacheDtype,
    /// The device to plan for: auto, vm (the virtual GPU) or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: DeviceSpec,
    /// The architecture to plan for, such as sm_90 [default: the device's]
    #[arg(long, value_name = "TARGET")]
    target: Option<Arch>,
    /// Number of multiprocessors to plan for [default: the device's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    multiprocessors: Option<u32>,
    /// Show the schedule of the persistent decoder: the work of its blocks for each token
    #[arg(long, conflicts_with = "dot")]
    persistent: bool,
    /// Blocks of the persistent decoder [default: one for each multiprocessor]
    #[arg(long, value_name = "N", requires = "persistent", value_parser = clap::value_parser!(u32).range(1..=65535))]
    blocks: Option<u32>,
    /// Let the blocks of the persistent decoder take their work from a queue
    #[arg(long, requires = "persistent")]
    queue: bool,
    #[command(flatten)]
    tuning: TuningArguments,
    #[command(flatten)]
    form: Form,
}

/// The output format; a table by default.
#[derive(clap::Args)]
#[group(multiple = false)]
struct Form {
    /// Print a JSON document
    #[arg(long)]
    json: bool,
    /// Print a graph for Graphviz
    #[arg(long)]
    dot: bool,
    /// Print a picture of the schedule
    #[arg(long, requires = "persistent")]
    svg: bool,
    /// Print the choices made for the device, as a file for `--tuning`
    #[arg(long, conflicts_with = "persistent")]
    choices: bool,
}

/// Where a model has room for more, the cache is not planned for all of it unless that is asked for.
const USUAL_CONTEXT: u32 = 4096;

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    let message = |error: &dyn std::error::Error| Failure::Message(error.to_string());
    let file = arguments.model.open()?;
    let model = file.config()?;
    let graph = model
        .graph(&shape(arguments, &model)?, &graph_options(arguments))
        .map_err(|error| file.failure(error))?;
    let options = plan_options(arguments)?;
    let plan = Plan::new(&graph, &options, &KernelLibrary).map_err(|error| file.failure(error))?;
    if arguments.persistent {
        let report = schedule(arguments, &plan).map_err(|error| file.failure(error))?;
        let text = match &arguments.form {
            Form { json: true, .. } => report.to_json().map_err(|error| message(&error))? + "\n",
            Form { svg: true, .. } => report.to_svg(),
            _ => report.to_table(),
        };
        out.write_all(text.as_bytes())?;
        return Ok(Outcome::Fine);
    }
    let mut report = PlanReport::new(&graph, &plan);
    // What only has a kernel when it is fused has no plan without it.
    let mut unfused = options;
    unfused.fusions = Fusions::none();
    if let Ok(unfused) = Plan::new(&graph, &unfused, &KernelLibrary) {
        report = report.with_unfused(&unfused);
    }
    let text = match &arguments.form {
        Form { json: true, .. } => report.to_json().map_err(|error| message(&error))? + "\n",
        Form { dot: true, .. } => report.to_dot(),
        Form { choices: true, .. } => plan.choices().to_string(),
        _ => report.to_table(),
    };
    out.write_all(text.as_bytes())?;
    Ok(Outcome::Fine)
}

/// Tokens that the decoder's ring has room for, and ids that end a text: they change no form.
const RING: u32 = 1024;
const ENDS: u32 = 1;

/// The schedule of a plan, with the launch that tells the host of the token, as it is assigned to blocks.
fn schedule(arguments: &Arguments, plan: &Plan) -> Result<ScheduleReport, Box<dyn std::error::Error>> {
    let mut options = ScheduleOptions::default();
    options.appended.extend(Appended::publish(plan, Publish::new(RING, ENDS)));
    let schedule = Schedule::new(plan, &options)?;
    let blocks = arguments.blocks.unwrap_or(plan.options().tuning.device.multiprocessors);
    let assignment = if arguments.queue { Assignment::Queue } else { Assignment::Static };
    let assigned = schedule.assign(blocks, assignment)?;
    persistent::check(&schedule, plan, &assigned)?;
    Ok(ScheduleReport::new(&schedule, plan, &assigned))
}

fn shape(arguments: &Arguments, model: &ModelConfig) -> Result<StepShape, Failure> {
    let Arguments { batch, tokens, .. } = *arguments;
    let room = arguments.context.unwrap_or_else(|| model.max_context().min(USUAL_CONTEXT).max(tokens));
    if tokens > room {
        return Err(Failure::Message(format!("{tokens} tokens do not fit into a context of {room}")));
    }
    let longest = Context::of(model);
    if room > longest.tokens {
        return Err(Failure::Message(format!("`-c` is {room}: so many tokens do not fit into {longest}")));
    }
    let kind = match tokens {
        1 => StepKind::Decode,
        // A million: the limits of both.
        _ => StepKind::Prefill { tokens: batch * tokens },
    };
    Ok(StepShape { kind, batch, max_seq_len: room, variant: 0 })
}

fn graph_options(arguments: &Arguments) -> GraphOptions {
    GraphOptions {
        cache: arguments.kv,
        outcome: GraphOutcome::Token { choice: Choice::ArgMax, window: None },
    }
}

fn plan_options(arguments: &Arguments) -> Result<PlanOptions, Failure> {
    let device = Device::open(arguments.device);
    let device =
        device.map_err(|error| Failure::Message(format!("--device {}: {error}", arguments.device)))?;
    let mut options = PlanOptions::for_device(&device);
    if let Some(target) = arguments.target {
        options = PlanOptions::of(Tuning::new(DeviceModel::typical(target)));
    }
    let device = &mut options.tuning.device;
    device.multiprocessors = arguments.multiprocessors.unwrap_or(device.multiprocessors);
    options.arithmetic = arguments.act;
    arguments.tuning.apply(&mut options.tuning)?;
    Ok(options)
}
