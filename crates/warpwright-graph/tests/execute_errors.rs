//! What cannot be bound or executed: the error says which tensor it is about, what was given and what is needed.

mod common;

use common::run::device;
use warpwright_graph::{
    ComputeGraph, Element, Executable, ExecuteError, KernelDispatch, KernelLibrary, Plan, PlanOptions, Role,
    StepOp, StepRun, Store, StoreError, TensorType, execute_graph,
};
use warpwright_kernels::WeightFormat;
use warpwright_ptx::ir::{Arch, Type};
use warpwright_runtime::{Device, RuntimeError, VmConfig};
use warpwright_vm::DeviceConfig;

/// The type of the weights.
fn w() -> TensorType {
    TensorType::new(Element::Weights(WeightFormat::Q8_0), [8, 32])
}

/// `y = silu(x · Wᵀ)`, and a counter.
fn graph() -> ComputeGraph {
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", TensorType::f32([1, 32]));
    let w = graph.weight("w", w());
    let count = graph.state("count", TensorType::new(Element::U32, [1]));
    let y = graph.mat_mul("product", x, w, None).expect("a product");
    let y = graph.silu("y", y).expect("its silu");
    graph.output(y).expect("an output");
    graph.advance("advance", &[count]).expect("a counter");
    graph
}

fn store(device: &Device) -> Store {
    Store::new(&device.default_stream())
}

fn plan(device: &Device) -> Plan {
    Plan::new(&graph(), &PlanOptions::for_device(device), &KernelLibrary).expect("a plan")
}

fn bind(device: &Device, store: &mut Store) -> Result<Executable, ExecuteError> {
    plan(device).bind(store)
}

/// A store that has what the graph takes: all weights are 1.
fn whole(device: &Device) -> Store {
    let mut store = store(device);
    let row = [&half::f16::ONE.to_le_bytes()[..], &[1; 32]].concat();
    store.add_weight("w", w(), &row.repeat(8)).expect("weights");
    store
}

#[test]
fn missing_and_other_weights() {
    let device = device(false);
    let missing = bind(&device, &mut store(&device)).expect_err("no weights");
    assert!(
        matches!(&missing, ExecuteError::Store(StoreError::MissingWeight { name, ty }) if name == "w" && *ty == w()),
        "{missing}"
    );
    for (format, n, k) in
        [(WeightFormat::F16, 8, 32), (WeightFormat::Q8_0, 9, 32), (WeightFormat::Q8_0, 8, 64)]
    {
        let mut store = store(&device);
        let bytes = format.row_bytes(k) as usize * n as usize;
        store.add_matrix("w", format, n, k, &vec![0; bytes]).expect("weights");
        let other = bind(&device, &mut store).expect_err("other weights");
        let ExecuteError::Store(StoreError::Weight { name, given, needed }) = &other else {
            panic!("{other}")
        };
        assert_eq!((name.as_str(), *given), ("w", TensorType::new(Element::Weights(format), [n, k])));
        assert_eq!(*needed, w());
    }
}

#[test]
fn states_of_another_type() {
    let device = device(false);
    let mut store = whole(&device);
    store.add_state("count", TensorType::new(Element::U32, [1, 1])).expect("a state");
    let other = bind(&device, &mut store).expect_err("another state");
    let ExecuteError::Store(StoreError::State { name, given, needed, .. }) = &other else {
        panic!("{other}")
    };
    let types = [given, needed].map(|ty| ty.shape.dims().len());
    assert_eq!((name.as_str(), types), ("count", [2, 1]));
}

#[test]
fn plans_for_another_architecture() {
    let device = device(false);
    let other = PlanOptions::new(Arch::sm(80), 108);
    let plan = Plan::new(&graph(), &other, &KernelLibrary).expect("a plan");
    let refused = plan.bind(&mut whole(&device)).expect_err("another architecture");
    let ExecuteError::Arch { given, needed } = refused else { panic!("{refused}") };
    assert_eq!((given, needed), (Arch::sm(80), Arch::sm(90)));
}

#[test]
fn inputs_and_outputs() {
    let device = device(true);
    let mut store = whole(&device);
    let mut executable = bind(&device, &mut store).expect("bound");

    let unwritten = execute_graph(&mut executable, &KernelLibrary).expect_err("x was not written");
    assert!(matches!(&unwritten, ExecuteError::InputNotWritten { name, .. } if name == "x"), "{unwritten}");
    let unknown = executable.write_input("z", &[0f32; 32]).expect_err("no such input");
    let ExecuteError::Unknown { role: Role::Input, name, known } = &unknown else { panic!("{unknown}") };
    assert_eq!((name.as_str(), &known[..]), ("z", &["x".to_owned()][..]));
    let unknown = executable.read_output::<f32>("x").expect_err("x is no output");
    let ExecuteError::Unknown { role: Role::Output, name, known } = &unknown else { panic!("{unknown}") };
    assert_eq!((name.as_str(), &known[..]), ("x", &["y".to_owned()][..]));

    let element = executable.write_input("x", &[0u32; 32]).expect_err("other elements");
    let ExecuteError::Element { name, given: Type::U32, needed: Type::F32 } = &element else {
        panic!("{element}")
    };
    assert_eq!(name, "x");
    for (short, given) in [
        (executable.write_input("x", &[0f32; 31]), 31),
        (executable.write_input("x", &[0f32; 33]), 33),
        (executable.read_output_to("y", &mut [0f32; 31]), 31),
    ] {
        let short = short.expect_err("another length");
        assert!(matches!(short, ExecuteError::Length { given: g, .. } if g == given), "{short}");
    }
    let other = common::run::device(false);
    let foreign = other.default_stream().clone_htod(&[1f32; 32]).expect("a buffer elsewhere");
    let foreign = executable.copy_input("x", &foreign).expect_err("of another device");
    let ExecuteError::Runtime(cause) = &foreign else { panic!("{foreign}") };
    assert!(matches!(**cause, RuntimeError::OtherDevice { .. }), "{foreign}");

    // Nothing of this has counted as written; a captured plan wants its inputs too.
    let unwritten = execute_graph(&mut executable, &KernelLibrary).expect_err("x was not written");
    assert!(matches!(unwritten, ExecuteError::InputNotWritten { .. }), "{unwritten}");
    let mut captured = executable.capture(&KernelLibrary).expect("captured");
    let unwritten = captured.replay().expect_err("x was not written");
    assert!(matches!(unwritten, ExecuteError::InputNotWritten { .. }), "{unwritten}");
    let source = store.stream().clone_htod(&[0.25f32; 32]).expect("a buffer");
    captured.executable_mut().copy_input("x", &source).expect("copied");
    captured.replay().expect("replayed");
    let silu = |x: f32| x / (1.0 + (-x).exp());
    let y = captured.executable().read_output::<f32>("y").expect("y");
    assert!(y.iter().all(|y| (y - silu(8.0)).abs() < 1e-5), "{y:?}");
}

#[test]
fn states_that_moved() {
    let device = device(false);
    let mut store = whole(&device);
    let mut executable = bind(&device, &mut store).expect("bound");
    executable.write_input("x", &[0f32; 32]).expect("written");
    execute_graph(&mut executable, &KernelLibrary).expect("executed");
    store.resize_state("count", TensorType::new(Element::U32, [2])).expect("resized");
    let moved = execute_graph(&mut executable, &KernelLibrary).expect_err("the counter is elsewhere");
    assert!(matches!(moved, ExecuteError::Moved), "{moved}");
    let mut executable = bind(&device, &mut store).expect("bound");
    executable.write_input("x", &[0f32; 32]).expect("written");
    execute_graph(&mut executable, &KernelLibrary).expect("executed");
    assert_eq!(store.read_state::<u32>("count").expect("the counter"), [2, 0]);
}

/// Devices of little memory, and devices that go on after a failure.
mod on_the_vm {
    use super::*;

    #[test]
    fn memory_that_is_not_there() {
        let mut config = DeviceConfig::default();
        config.memory = 1 << 20;
        let device = Device::vm(VmConfig { device: config, ..VmConfig::default() }).expect("a device");
        let mut graph = ComputeGraph::new();
        let x = graph.input("x", TensorType::f32([1024, 1024]));
        let y = graph.silu("y", x).expect("its silu");
        graph.output(y).expect("an output");
        let plan = Plan::new(&graph, &PlanOptions::for_device(&device), &KernelLibrary).expect("a plan");
        let refused = plan.bind(&mut store(&device)).expect_err("8 MiB of one");
        let ExecuteError::Memory { bytes, error, .. } = &refused else { panic!("{refused}") };
        assert!(*bytes >= 2 * (4 << 20) && matches!(**error, RuntimeError::OutOfMemory { .. }), "{refused}");

        let state =
            store(&device).add_state("cache", TensorType::f32([1024, 1024])).expect_err("4 MiB of one");
        assert!(matches!(&state, StoreError::Device { name, .. } if name == "cache"), "{state}");
    }

    /// A dispatcher whose kernel for `silu` fails on the device, once.
    struct Fails(warpwright_runtime::Function, std::sync::atomic::AtomicBool);

    impl KernelDispatch for Fails {
        #[allow(unsafe_code, reason = "raw launches are unsafe")]
        fn elementwise(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
            assert!(matches!(step.op(), StepOp::Elementwise { .. }));
            if self.1.swap(false, std::sync::atomic::Ordering::Relaxed) {
                let config = warpwright_runtime::LaunchConfig::for_num_elems(1);
                // SAFETY: the kernel touches no memory.
                unsafe { step.stream().launch_builder(&self.0).launch(config) }?;
            }
            step.run_library()
        }
    }

    #[test]
    fn kernels_that_fail_are_named_and_the_next_execution_is_right() {
        let device = device(true);
        let text =
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry fails()\n{\n    trap;\n}\n";
        let fails = device.load_ptx(text).and_then(|module| module.load_function("fails")).expect("a kernel");
        let dispatch = Fails(fails, true.into());
        let mut store = whole(&device);
        let mut executable = bind(&device, &mut store).expect("bound");
        executable.write_input("x", &[0f32; 32]).expect("written");
        let failed = execute_graph(&mut executable, &dispatch).expect_err("a trap");
        let ExecuteError::Runtime(cause) = &failed else { panic!("{failed}") };
        let RuntimeError::Failed(failure) = &**cause else { panic!("{failed}") };
        assert_eq!(failure.kernel, "fails");

        executable.write_input("x", &[1f32; 32]).expect("written");
        execute_graph(&mut executable, &dispatch).expect("executed");
        let y = executable.read_output::<f32>("y").expect("y");
        assert!(y.iter().all(|y| (y - 32.0).abs() < 1e-4), "{y:?}");
        // The step that was skipped has counted nothing.
        assert_eq!(store.read_state::<u32>("count").expect("the counter"), [1]);
    }
}
