//! The same on a device, held to the reference.

use crate::case::{Case, Step};
use crate::common::run::device;
use crate::trace::{Expected, Trace};
use half::{bf16, f16};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use warpwright_graph::{
    Arithmetic, Captured, ComputeGraph, Element, Executable, Fusions, KernelLibrary, Plan, PlanOptions,
    Store, StoreError, TensorType, execute_graph,
};
use warpwright_kernels::CacheDtype;
use warpwright_runtime::{Device, Order, VmConfig};
use warpwright_vm::Options;

/// How plans are made and run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mode {
    pub(crate) arithmetic: Arithmetic,
    pub(crate) fusions: Fusions,
    pub(crate) captured: bool,
    /// Whether launches may overlap, and the order of the device.
    pub(crate) overlap: bool,
    pub(crate) order: Option<Order>,
}

impl Default for Mode {
    fn default() -> Self {
        Mode {
            arithmetic: Arithmetic::Exact,
            fusions: Fusions::all(),
            captured: false,
            overlap: true,
            order: None,
        }
    }
}

/// A plan that can run.
enum Ready {
    Eager(Box<Executable>),
    Captured(Box<Captured>),
}

impl Ready {
    fn executable(&mut self) -> &mut Executable {
        match self {
            Ready::Eager(executable) => executable,
            Ready::Captured(captured) => captured.executable_mut(),
        }
    }

    fn run(&mut self) -> Result<(), String> {
        let execution = match self {
            Ready::Eager(executable) => execute_graph(executable, &KernelLibrary),
            Ready::Captured(captured) => captured.execute(),
        };
        let graphs = execution.map_err(|error| error.to_string())?.graph_launches;
        let expected = u64::from(matches!(self, Ready::Captured(_)));
        if graphs == expected { Ok(()) } else { Err(format!("{graphs} launches of graphs")) }
    }
}

/// What a step has made: the bits of logits, and tokens.
pub(crate) type Made = (Vec<u32>, Vec<u32>);

/// Runs the case, each graph changed as is asked, and holds every step to the reference. Where a token differs that could
/// not be compared, the sequence goes on with the reference's.
pub(crate) fn follow(
    case: &Case,
    trace: &Trace,
    mode: Mode,
    change: impl Fn(&ComputeGraph) -> ComputeGraph,
) -> Result<Vec<Made>, String> {
    let device = match mode.order {
        None => device(false),
        Some(order) => Device::vm(VmConfig { order, options: Options::checked(), ..VmConfig::default() })
            .expect("a device"),
    };
    let mut store = Store::new(&device.default_stream());
    let decode = case.graph(&Step::Decode);
    for (name, (ty, bytes)) in case.weights(&decode) {
        store.add_weight(&name, ty, &bytes).map_err(|error| error.to_string())?;
    }
    let numbers = TensorType::new(Element::U32, [case.batch()]);
    for (name, values) in case.states() {
        store.add_state(name, numbers).and_then(|()| store.write_state(name, &values)).expect("a state");
    }
    for (name, ty, values) in case.caches(&decode) {
        store
            .add_state(&name, ty)
            .and_then(|()| write_cache(&mut store, &name, ty, &values))
            .expect("a cache");
    }
    if let Some(seeds) = case.seeds() {
        let ty = TensorType::new(Element::U64, [case.batch()]);
        store.add_state("seeds", ty).and_then(|()| store.write_state("seeds", &seeds)).expect("seeds");
    }
    let mut plans: HashMap<Option<u32>, Ready> = HashMap::new();
    let mut all = Vec::new();
    for (number, (step, expected)) in case.list().iter().zip(&trace.steps).enumerate() {
        let tokens = match step {
            Step::Prefill(prompt) => Some(prompt.count()),
            Step::Decode => None,
        };
        let ready = match plans.entry(tokens) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(prepare(&change(&case.graph(step)), &mut store, mode)?),
        };
        if let Step::Prefill(prompt) = step {
            for (name, values) in prompt.inputs() {
                ready.executable().write_input(name, &values).map_err(|error| error.to_string())?;
            }
        }
        ready.run()?;
        let read = |error: warpwright_graph::ExecuteError| error.to_string();
        let logits = ready.executable().read_output::<f32>("logits").map_err(read)?;
        let tokens = ready.executable().read_output::<u32>("tokens").map_err(read)?;
        hold(case, expected, &logits, &tokens).map_err(|error| format!("step {number}: {error}"))?;
        if tokens != expected.tokens {
            store.write_state("ids", &expected.tokens).map_err(|error| error.to_string())?;
        }
        all.push((logits.into_iter().map(f32::to_bits).collect(), tokens));
    }
    Ok(all)
}

/// Writes a cache of floats.
fn write_cache(store: &mut Store, name: &str, ty: TensorType, values: &[f64]) -> Result<(), StoreError> {
    match ty.element {
        Element::Cache(CacheDtype::F32) => {
            store.write_state(name, &values.iter().map(|&x| x as f32).collect::<Vec<_>>())
        }
        Element::Cache(CacheDtype::F16) => {
            store.write_state(name, &values.iter().map(|&x| f16::from_f64(x)).collect::<Vec<_>>())
        }
        Element::Cache(CacheDtype::Bf16) => {
            store.write_state(name, &values.iter().map(|&x| bf16::from_f64(x)).collect::<Vec<_>>())
        }
        other => panic!("no floats: {other}"),
    }
}

fn prepare(graph: &ComputeGraph, store: &mut Store, mode: Mode) -> Result<Ready, String> {
    let mut options = PlanOptions::for_device(store.device());
    (options.arithmetic, options.fusions) = (mode.arithmetic, mode.fusions);
    options.tuning.overlap = mode.overlap;
    let plan = Plan::new(graph, &options, &KernelLibrary).map_err(|error| error.to_string())?;
    let executable = plan.bind(store).map_err(|error| error.to_string())?;
    if !mode.captured {
        return Ok(Ready::Eager(Box::new(executable)));
    }
    let captured = executable.capture(&KernelLibrary).map_err(|error| error.to_string())?;
    Ok(Ready::Captured(Box::new(captured)))
}

/// Whether that is what is expected.
fn hold(case: &Case, expected: &Expected, logits: &[f32], tokens: &[u32]) -> Result<(), String> {
    let vocab = case.model.vocab as usize;
    for (i, (&found, &exact)) in logits.iter().zip(&expected.logits).enumerate() {
        let (row, bound) = (i / vocab, expected.bounds[i / vocab]);
        // A bound that says nothing would hide what is wrong.
        let largest =
            expected.logits[row * vocab..][..vocab].iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        if bound > 0.25 * largest {
            return Err(format!("sequence {row}: a bound of {bound} for logits up to {largest}"));
        }
        let off = (f64::from(found) - exact).abs();
        if off.is_nan() || off > bound {
            return Err(format!("sequence {row}, logit {}: {found}, not {exact} ± {bound:e}", i % vocab));
        }
    }
    let rows = tokens.iter().zip(&expected.tokens).zip(&expected.comparable).enumerate();
    for (row, ((found, token), &comparable)) in rows {
        if comparable && found != token {
            return Err(format!("sequence {row}: token {found}, not {token}"));
        }
    }
    Ok(())
}
