//! Whole steps of decoding, of models with the shapes of well-known ones and random weights.

use super::Item;
use crate::event::Finding;
use crate::measure::{Bench, Failure, Size, numbers, weights};
use crate::models::{Choice, ModelConfig, random_bytes, run::begin};
use warpwright_graph::{
    Arithmetic, ComputeGraph, Element, KernelLibrary, PersistentOptions, Plan, PlanOptions, Role, Store,
};

/// Tokens in the cache before the first step that is measured.
const CONTEXT: u32 = 512;

/// How steps are executed.
#[derive(Clone, Copy, Debug)]
enum Executor {
    Eager,
    /// One launch after the other.
    Graph,
    /// With programmatic dependent launches; below sm_90 the same.
    Overlapping,
    Persistent,
}

impl Executor {
    const ALL: [Executor; 4] =
        [Executor::Overlapping, Executor::Graph, Executor::Eager, Executor::Persistent];

    fn name(self) -> &'static str {
        match self {
            Executor::Eager => "eager",
            Executor::Graph => "graph",
            Executor::Overlapping => "graph, overlapping launches",
            Executor::Persistent => "persistent",
        }
    }
}

pub(super) fn items(size: Size) -> Vec<Item> {
    let large = [
        ("Llama-3-8B", ModelConfig::llama_3_8b()),
        ("Llama-3.2-1B", ModelConfig::llama_3_2_1b()),
        ("Qwen3-4B", ModelConfig::qwen_3_4b()),
    ];
    let models: Vec<_> = large
        .into_iter()
        .map(|(name, config)| match size {
            Size::Tiny => (name, config.scaled_down(1)),
            Size::Quick | Size::Full => (name, ModelConfig { max_seq_len: 2048, ..config }),
        })
        .take(size.pick(2, 2, 3))
        .collect();
    let executors = Executor::ALL.into_iter().flat_map(move |executor| {
        let of = models.clone().into_iter();
        of.map(move |(name, config)| item(name, config, executor, Arithmetic::Exact, size))
    });
    executors.collect()
}

fn item(model: &str, config: ModelConfig, executor: Executor, arithmetic: Arithmetic, size: Size) -> Item {
    let name = format!("{model} Q4_K_M, a token, {}", executor.name());
    let title = name.clone();
    Item::measure(name, size, move |bench, found| step(bench, found, &title, &config, executor, arithmetic))
}

fn step(
    bench: &Bench<'_>,
    found: &mut dyn FnMut(Finding),
    name: &str,
    config: &ModelConfig,
    executor: Executor,
    arithmetic: Arithmetic,
) -> Result<(), Failure> {
    let graph = config.decode(1, Choice::ArgMax);
    let mut options = PlanOptions::for_device(bench.device);
    options.arithmetic = arithmetic;
    options.tuning.overlap = matches!(executor, Executor::Overlapping);
    let plan = Plan::new(&graph, &options, &KernelLibrary)?;
    let mut store = Store::new(&bench.stream);
    let bytes = add_weights(bench, &mut store, &graph)?;
    let context = bench.size.pick(8, CONTEXT, CONTEXT);
    let steps = bench.size.pick(2, 20, 50);
    let samples = match executor {
        Executor::Eager => {
            let mut executable = plan.bind(&mut store)?;
            fill_caches(bench, &store)?;
            bench.repeated(steps, || {
                begin(&mut store, &[7], &[context]);
                (0..steps).try_for_each(|_| Ok(executable.issue(&KernelLibrary)?))
            })?
        }
        Executor::Graph | Executor::Overlapping => {
            let captured = plan.bind(&mut store)?.capture(&KernelLibrary)?;
            fill_caches(bench, &store)?;
            bench.repeated(steps, || {
                begin(&mut store, &[7], &[context]);
                (0..steps).try_for_each(|_| Ok(captured.replay()?))
            })?
        }
        Executor::Persistent => {
            let mut persistent = plan.bind_persistent(&mut store, &PersistentOptions::default())?;
            fill_caches(bench, &store)?;
            bench.repeated(steps, || {
                begin(&mut store, &[7], &[context]);
                persistent.launch(u32::try_from(steps)?, &[])?.finish()?;
                Ok(())
            })?
        }
    };
    found(Finding::Figure(samples.figure(name, Some(bytes), None)));
    Ok(())
}

/// Random weights, made on the device. Yields the bytes of those that a step reads whole: all but the table of
/// embeddings, unless that has the logits' weights too.
fn add_weights(bench: &Bench<'_>, store: &mut Store, graph: &ComputeGraph) -> Result<u64, Failure> {
    let mut all = 0;
    let tied = graph.tensors().iter().all(|info| info.name != "output.weight");
    for (seed, info) in (1..).zip(graph.tensors().iter().filter(|info| info.role == Role::Weight)) {
        let bytes = match (info.ty.element, info.ty.shape.dims()) {
            (Element::Weights(format), &[n, k]) => {
                let rows = weights(&bench.stream, format, n, k, seed)?;
                let bytes = rows.num_bytes();
                store.add_weight_buffer(&info.name, info.ty, &rows.into_any())?;
                bytes
            }
            _ => {
                let values = random_bytes(&info.name, info.ty, seed);
                store.add_weight(&info.name, info.ty, &values)?;
                values.len() as u64
            }
        };
        if tied || info.name != "token_embd.weight" {
            all += bytes;
        }
    }
    Ok(all)
}

/// Keys and values of the tokens before.
fn fill_caches(bench: &Bench<'_>, store: &Store) -> Result<(), Failure> {
    let names: Vec<String> = store.states().map(|(name, _)| name.to_string()).collect();
    for (seed, name) in (1..).zip(names.iter().filter(|name| name.contains("cache"))) {
        for part in store.state_buffers(name)? {
            let values = numbers(&bench.stream, part.element(), part.len() as u64, seed)?;
            bench.stream.memcpy_dtod_any(&values, part)?;
        }
    }
    Ok(())
}
