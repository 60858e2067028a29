//! Schedules that are wrong on purpose, and that only the kernel checks: the host gets the fault, and later launches
//! are not affected.

use super::{Persistent, PersistentFault, PersistentOptions};
use crate::dispatch::KernelLibrary;
use crate::graph::{ComputeGraph, Element, TensorType};
use crate::options::PlanOptions;
use crate::persistent::Assigned;
use crate::plan::Plan;
use crate::run::{ExecuteError, Store};
use std::sync::Arc;
use warpwright_kernels::WeightFormat;
use warpwright_kernels::persistent::format::Awaited;
use warpwright_ptx::ir::Type;
use warpwright_runtime::{Device, VmConfig};
use warpwright_vm::Options;

const K: u32 = 64;

/// A token says which comes next: the row of `w` that is most like its row of the table, which is that of the token after
/// it. There are so many.
fn store(device: &Device, rows: u32) -> (Arc<Plan>, Store) {
    let mut graph = ComputeGraph::new();
    let ids = graph.state("ids", TensorType::new(Element::U32, [1]));
    let matrix = TensorType::new(Element::Weights(WeightFormat::F32), [rows, K]);
    let (table, w) = (graph.weight("table", matrix), graph.weight("w", matrix));
    let x = graph.embedding("embedding", table, ids).expect("a row");
    let logits = graph.mat_mul("logits", x, w, None).expect("logits");
    let tokens = graph.argmax("tokens", logits).expect("a token");
    graph.output(tokens).expect("an output");
    graph.assign("next", ids, tokens).expect("a state");
    let plan = Plan::new(&graph, &PlanOptions::for_device(device), &KernelLibrary).expect("a plan");
    let mut store = Store::new(&device.default_stream());
    let unit = |row: u32, column: u32| if row == column { 1f32 } else { 0.0 };
    for (name, shift) in [("table", 0), ("w", rows - 1)] {
        let row = |row| (0..K).map(move |column| unit((row + shift) % rows, column));
        let bytes: Vec<u8> = (0..rows).flat_map(row).flat_map(f32::to_le_bytes).collect();
        store.add_matrix(name, WeightFormat::F32, rows, K, &bytes).expect("a weight");
    }
    (Arc::new(plan), store)
}

/// Binds the plan with a schedule that was changed.
fn bind(plan: &Arc<Plan>, store: &mut Store, budget: u32, change: impl FnOnce(&mut Assigned)) -> Persistent {
    let options = PersistentOptions { blocks: Some(2), budget: Some(budget), ..PersistentOptions::default() };
    let schedule = Persistent::schedule_of(plan, &options).expect("a schedule");
    let kernel = store.device().kernel(&schedule.decoder(options.assignment)).expect("a kernel");
    let mut assigned = schedule.assign(2, options.assignment).expect("items");
    change(&mut assigned);
    Persistent::with(plan.clone(), store, &options, kernel.into(), schedule, assigned, |binder| {
        binder.prepare()
    })
    .expect("bound")
}

fn device() -> Device {
    Device::vm(VmConfig { options: Options::checked(), ..VmConfig::default() }).expect("a device")
}

fn tokens(persistent: &mut Persistent, count: u32) -> Vec<u32> {
    let mut launch = persistent.launch(count, &[]).expect("launched");
    let tokens = std::iter::from_fn(|| launch.next_token().expect("made")).collect();
    launch.finish().expect("an end");
    tokens
}

/// What a launch gives up with, without having made a token.
fn fault(persistent: &mut Persistent) -> PersistentFault {
    let mut launch = persistent.launch(5, &[]).expect("launched");
    let Err(ExecuteError::Persistent(fault)) = launch.next_token() else { panic!("it has not given up") };
    // It is told as often as it is asked for.
    let Err(ExecuteError::Persistent(again)) = launch.finish() else { panic!("it has not given up") };
    assert_eq!(fault, again);
    *fault
}

#[test]
fn a_wait_that_never_ends_says_what_it_was_for() {
    let device = device();
    let (plan, mut store) = store(&device, 48);
    let mut good = bind(&plan, &mut store, 1 << 24, |_| {});
    assert_eq!(tokens(&mut good, 5), [1, 2, 3, 4, 5]);

    // An item more than there are is waited for, by all that wait for those.
    let mut waited = None;
    let mut wrong = bind(&plan, &mut store, 200, |assigned| {
        let first = assigned.items.iter().find_map(|item| item.wait).expect("an item that waits");
        let waits = assigned.items.iter_mut().filter_map(|item| item.wait.as_mut());
        waits.filter(|wait| **wait == first).for_each(|wait| wait.value += 1);
        waited = Some((first.counter, first.value + 1));
    });
    let (counter, value) = waited.expect("a wait");
    for _ in 0..2 {
        let fault = fault(&mut wrong);
        assert_eq!((fault.awaited, fault.token, fault.phase), (Awaited::Counter(counter), 0, 0));
        assert_eq!((fault.wanted, fault.budget), (value, 200));
        assert!(fault.seen < value);
        assert!(fault.nodes.contains(&"logits".to_owned()), "{fault}");
        assert_eq!(fault.awaited_nodes, ["embedding"]);
        assert!(fault.block < 2);
    }
    // Nobody reads this one: the next says what became of it.
    drop(wrong.launch(5, &[]).expect("launched"));
    assert!(matches!(wrong.launch(5, &[]), Err(ExecuteError::Persistent(_))));
    drop(wrong);

    // The token that was not made has changed nothing here.
    assert_eq!(tokens(&mut good, 3), [6, 7, 8]);
    assert!(device.take_findings().is_empty());
}

/// What kernels leave zero is zero again after a launch that gave up, and so are the words that blocks wait by.
#[test]
fn what_a_launch_that_gave_up_has_left_is_cleared() {
    let device = device();
    // So many that blocks merge what they have found, and count one another for that.
    let (plan, mut store) = store(&device, 1 << 16);
    let mut wrong = bind(&plan, &mut store, 200, |assigned| {
        let items = assigned.items.iter_mut().filter_map(|item| item.wait.as_mut());
        items.for_each(|wait| wait.value += 1);
    });
    fault(&mut wrong);
    let words = wrong.words.clone();
    let left = wrong.stream().clone_dtoh(&words).expect("read");
    assert!(left.iter().any(|&word| word != 0), "a launch that has left nothing behind");
    // Whatever it has left: the words of the next launch are its own.
    let scratch = wrong.placed.zeroed().cloned().expect("scratch of blocks that merge");
    for memory in [words.as_any(), &scratch] {
        wrong.stream().memset_any(memory, 0xff).expect("set");
    }
    fault(&mut wrong);
    let scratch = scratch.cast(Type::U32).and_then(|scratch| scratch.typed::<u32>()).expect("words");
    assert!(wrong.stream().clone_dtoh(&scratch).expect("read").iter().all(|&word| word == 0));
}
