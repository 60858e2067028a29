//! How weights lie on the device: as the plans that are bound ask, and no other way.

mod common;

use common::run::{device, store};
use common::{Choice, Formats, ModelConfig, random_bytes};
use std::sync::Mutex;
use warpwright_graph::{
    ComputeGraph, Element, ExecuteError, Family, KernelDispatch, KernelLibrary, Plan, PlanOptions, StepOp,
    StepRun, Store, TensorType, WeightLayout, execute_graph,
};
use warpwright_kernels::WeightFormat;
use warpwright_runtime::Device;

/// Keeps the bytes of the weights of a product, and writes zeros.
struct Looks {
    layout: WeightLayout,
    seen: Mutex<Vec<u8>>,
}

impl KernelDispatch for Looks {
    fn overrides(&self, family: Family) -> bool {
        family == Family::MatMul
    }

    fn weight_layout(&self, _: Family) -> WeightLayout {
        self.layout
    }

    fn mat_mul(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        let StepOp::Products(products) = step.op() else { return step.run_library() };
        let matrix = products.matrices[0];
        let bytes = step.stream().clone_dtoh(&step.weights(matrix.weight, self.layout)?)?;
        *self.seen.lock().expect("a lock") = bytes;
        let out = matrix.out.ok_or_else(|| ExecuteError::dispatch("no result"))?;
        Ok(step.stream().memset_zeros(&step.buffer::<f32>(out)?)?)
    }
}

fn product(format: WeightFormat, n: u32, k: u32) -> ComputeGraph {
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", TensorType::f32([1, k]));
    let w = graph.weight("w", TensorType::new(Element::Weights(format), [n, k]));
    let y = graph.mat_mul("y", x, w, None).expect("a product");
    graph.output(y).expect("an output");
    graph
}

/// What a dispatcher sees of the weights in a layout.
fn seen(device: &Device, store: &mut Store, graph: &ComputeGraph, layout: WeightLayout) -> Vec<u8> {
    let looks = Looks { layout, seen: Mutex::default() };
    let plan = Plan::new(graph, &PlanOptions::for_device(device), &looks).expect("a plan");
    let mut executable = plan.bind(store).expect("bound");
    let k = executable.inputs().map(|(_, ty)| ty.shape.columns()).sum::<u32>();
    executable.write_input("x", &vec![0f32; k as usize]).expect("written");
    execute_graph(&mut executable, &looks).expect("executed");
    looks.seen.into_inner().expect("a lock")
}

#[test]
fn rows_come_back_as_they_were() {
    // Without the check of what was never written: gaps between planes are not, and are copied here.
    let device = device(false);
    for format in WeightFormat::ALL {
        let (n, k) = (5, 512);
        let graph = product(format, n, k);
        let rows = random_bytes("w", TensorType::new(Element::Weights(format), [n, k]), 3);
        let (row_bytes, plane_bytes) =
            (WeightLayout::Rows.bytes(format, n, k), WeightLayout::Planes.bytes(format, n, k));
        let mut store = Store::new(&device.default_stream());
        store.add_matrix("w", format, n, k, &rows).expect("weights");
        let bytes = |store: &Store| (store.statistics().row_bytes, store.statistics().plane_bytes);
        assert_eq!(bytes(&store), (row_bytes, 0));

        // Planes are made, and rows that nothing has asked for go.
        seen(&device, &mut store, &graph, WeightLayout::Planes);
        assert_eq!(bytes(&store), (0, plane_bytes), "{format}");
        // Rows are made of planes, bit for bit, and both stay: both are in use.
        assert!(seen(&device, &mut store, &graph, WeightLayout::Rows) == rows, "{format}: other rows");
        assert_eq!(bytes(&store), (row_bytes, plane_bytes));
    }
}

#[test]
fn plans_share_what_they_ask_for() {
    let device = device(false);
    for tied in [false, true] {
        let config = ModelConfig { tied, formats: Formats::q4_k_m(), ..ModelConfig::small() };
        let graph = config.decode(1, Choice::ArgMax);
        let mut store = store(&device, &graph, 1);
        let options = PlanOptions::for_device(&device);
        let mut bind = |graph: &ComputeGraph| {
            let plan = Plan::new(graph, &options, &KernelLibrary).expect("a plan");
            drop(plan.bind(&mut store).expect("bound"));
            store.statistics()
        };
        let first = bind(&graph);
        // The table is in rows for the lookup, and in planes too where it is the matrix of the logits.
        assert_eq!(first.row_bytes, WeightLayout::Rows.bytes(WeightFormat::Q4K, config.vocab, config.hidden));
        let matrices =
            graph.tensors().iter().filter_map(|info| match (info.ty.element, info.ty.shape.dims()) {
                (Element::Weights(format), &[n, k]) if tied || info.name != "token_embd.weight" => {
                    Some(WeightLayout::Planes.bytes(format, n, k))
                }
                _ => None,
            });
        assert_eq!(first.plane_bytes, matrices.sum::<u64>());
        // Prompts of the same model need nothing that is not there.
        assert_eq!(bind(&config.prefill(1, 12, Choice::ArgMax)), first);
    }
    // A device that goes while it is busy may outlive the tests.
    device.synchronize().expect("an idle device");
}
