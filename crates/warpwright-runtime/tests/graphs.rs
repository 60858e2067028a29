//! Graphs: what was recorded is what is replayed, bit for bit, as one operation.

mod small;

use small::*;
use warpwright_runtime::{
    AnyBuffer, Buffer, CompiledKernel, Device, Graph, GraphNode, PreparedLaunch, Result, RuntimeError, Stream,
};

const N: usize = 150;

fn affine(kernel: &CompiledKernel, x: &Buffer<f32>, y: &Buffer<f32>, a: f32, y0: f32) -> PreparedLaunch {
    let bound = kernel.bind().buffer("x", x).buffer("y", y).scalar("a", a).scalar("y0", y0);
    bound.dim("n", x.len() as u64).prepare().expect("a launch")
}

/// A step that changes its state: `scratch = 0.5 · state + 1; old = state; state = 3 · scratch`, with a copy, a
/// memset and a launch that is bound on the spot.
fn step(stream: &Stream, kernel: &CompiledKernel, state: &Buffer<f32>, old: &Buffer<f32>) -> Result<()> {
    // The scratch is another one every time, but where the stream captures.
    let scratch = if stream.is_capturing() { old.clone() } else { stream.alloc::<f32>(N)? };
    stream.memset_zeros(&scratch)?;
    stream.launch(&affine(kernel, state, &scratch, 0.5, 1.0))?;
    let bound =
        kernel.bind().buffer("x", &scratch).buffer("y", state).scalar("a", 3.0f32).scalar("y0", 0.1f32);
    bound.dim("n", N as u64).launch(stream)?;
    stream.memcpy_dtod(state, old)
}

fn numbers() -> Vec<f32> {
    (0..N).map(|i| (i as f32 - 77.7) * 1.1).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Records what `record` asks for.
fn capture(stream: &Stream, record: impl FnOnce() -> Result<()>) -> Graph {
    stream.begin_capture().expect("a capture");
    record().expect("nothing that cannot be captured");
    stream.end_capture().expect("a graph")
}

#[test]
fn replays_are_bit_identical_to_what_they_were_recorded_from() {
    let device = device();
    let stream = device.new_stream().unwrap();
    let kernel = device.kernel(&Affine).unwrap();
    let [eager, replayed] = [(); 2].map(|()| stream.clone_htod(&numbers()).unwrap());
    let [eager_old, replayed_old] = [(); 2].map(|()| stream.alloc::<f32>(N).unwrap());
    let graph = capture(&stream, || step(&stream, &kernel, &replayed, &replayed_old));
    stream.synchronize().unwrap();
    assert_eq!(device.statistics().launches, 0, "nothing runs while it is recorded");
    let exec = graph.instantiate().unwrap();
    for round in 1..=5 {
        step(&stream, &kernel, &eager, &eager_old).unwrap();
        exec.launch(&stream).unwrap();
        let [a, b, c, d] =
            [&eager, &replayed, &eager_old, &replayed_old].map(|of| stream.clone_dtoh(of).unwrap());
        assert_eq!(bits(&a), bits(&b), "after {round} rounds");
        assert_eq!(bits(&c), bits(&d), "after {round} rounds");
        let statistics = device.statistics();
        assert_eq!((statistics.graph_launches, statistics.launches), (round, 4 * round));
    }
}

#[test]
fn the_nodes_are_what_was_recorded() {
    let device = device();
    let stream = device.default_stream();
    let kernel = device.kernel(&Affine).unwrap();
    let [state, old] = [(); 2].map(|()| stream.alloc_zeros::<f32>(N).unwrap());
    let graph = capture(&stream, || step(&stream, &kernel, &state, &old));
    let bytes = 4 * N as u64;
    let launch = GraphNode::Kernel {
        kernel: "affine".to_owned(),
        grid: [3, 1, 1],
        block: [64, 1, 1],
        dynamic_shared: 0,
    };
    let expected =
        [GraphNode::Memset { bytes, word: 1, value: 0 }, launch.clone(), launch, GraphNode::Copy { bytes }];
    let nodes: Vec<_> = graph.nodes().collect();
    assert!(nodes.iter().map(|(_, node)| node).eq(&expected), "{graph:?}");
    assert!(nodes.iter().map(|(id, _)| id.index()).eq(0..4));
    assert!(graph.instantiate().unwrap().nodes().eq(nodes));
    assert_eq!((graph.len(), graph.is_empty()), (4, false));
    assert!(capture(&stream, || Ok(())).is_empty());
}

#[test]
fn a_graph_keeps_its_buffers() {
    let device = device();
    let stream = device.default_stream();
    let count = device.kernel(&Count).unwrap();
    let counters = stream.alloc_zeros::<u32>(64).unwrap();
    let kept = counters.slice(32..).unwrap();
    let result = stream.alloc_zeros::<u32>(32).unwrap();
    let exec = {
        let graph = capture(&stream, || {
            count.bind().buffer("counters", &counters).dim("rows", 2).launch(&stream)?;
            stream.memcpy_dtod(&kept, &result)
        });
        graph.instantiate().unwrap()
    };
    drop((counters, kept));
    // Nobody gets that memory while the graph may be replayed.
    let others: Vec<_> = (0..4).map(|_| stream.clone_htod(&[7u32; 64]).unwrap()).collect();
    for round in 1..4 {
        exec.launch(&stream).unwrap();
        assert_eq!(stream.clone_dtoh(&result).unwrap(), [round; 32]);
    }
    assert!(others.iter().all(|other| stream.clone_dtoh(other).unwrap() == [7; 64]));
    let live = device.pool_statistics().live;
    drop(exec);
    assert_eq!(device.pool_statistics().live, live - 1, "and it is given back with the graph");
}

#[test]
fn a_node_can_be_given_other_arguments() {
    let device = device();
    let stream = device.default_stream();
    let kernel = device.kernel(&Affine).unwrap();
    let count = device.kernel(&Count).unwrap();
    let x = stream.clone_htod(&numbers()).unwrap();
    let [first, second] = [(); 2].map(|()| stream.alloc_zeros::<f32>(N).unwrap());
    let counters = stream.alloc_zeros::<u32>(32).unwrap();
    let counts = count.bind().buffer("counters", &counters).dim("rows", 1).prepare().unwrap();
    let graph = capture(&stream, || {
        stream.memset_zeros(&first)?;
        stream.launch(&affine(&kernel, &x, &first, 1.0, 0.0))?;
        stream.launch(&counts)
    });
    let nodes: Vec<_> = graph.nodes().map(|(id, _)| id).collect();
    let mut exec = graph.instantiate().unwrap();
    exec.launch(&stream).unwrap();
    let other = affine(&kernel, &x.slice(..100).unwrap(), &second, -1.0, 5.0);
    exec.update(nodes[1], &other).unwrap();
    // The replay that was issued before has the old ones, and the one after it the new ones.
    exec.launch(&stream).unwrap();
    assert_eq!(stream.clone_dtoh(&first).unwrap(), [0.0; N]);
    let expected = |i: usize, x: f32| if i < 100 { 5.0 - x } else { 0.0 };
    let expected: Vec<_> = numbers().into_iter().enumerate().map(|(i, x)| expected(i, x)).collect();
    assert_eq!(stream.clone_dtoh(&second).unwrap(), expected);
    assert_eq!(stream.clone_dtoh(&counters).unwrap(), [2; 32]);
    let grids: Vec<_> = exec.nodes().map(|(_, node)| node).collect();
    assert!(matches!(grids[1], GraphNode::Kernel { grid: [2, 1, 1], .. }), "{grids:?}");
    // The graph itself is as it was recorded.
    graph.instantiate().unwrap().launch(&stream).unwrap();
    assert_eq!(stream.clone_dtoh(&first).unwrap(), numbers());

    // What is no launch of that kernel stays what it is.
    for (node, prepared) in [(nodes[0], &other), (nodes[2], &other), (nodes[1], &counts)] {
        match exec.update(node, prepared) {
            Err(RuntimeError::GraphUpdate { node: found, .. }) => assert_eq!(found, node.index()),
            other => panic!("{other:?}"),
        }
    }
    let empty = capture(&stream, || Ok(()));
    assert!(matches!(
        empty.instantiate().unwrap().update(nodes[1], &other),
        Err(RuntimeError::GraphUpdate { .. })
    ));
}

#[test]
fn what_is_updated_is_kept_and_what_it_replaces_is_given_back() {
    let device = device();
    let stream = device.default_stream();
    let count = device.kernel(&Count).unwrap();
    let prepare =
        |counters: &Buffer<u32>| count.bind().buffer("counters", counters).dim("rows", 1).prepare().unwrap();
    let [old, new] = [(); 2].map(|()| stream.alloc_zeros::<u32>(32).unwrap());
    let graph = capture(&stream, || stream.launch(&prepare(&old)));
    let mut exec = graph.instantiate().unwrap();
    let (node, _) = graph.nodes().next().unwrap();
    drop(graph);
    exec.update(node, &prepare(&new)).unwrap();
    let watched = new.clone();
    drop((old, new));
    assert_eq!(device.pool_statistics().live, 1);
    let other = stream.clone_htod(&[9u32; 32]).unwrap();
    exec.launch(&stream).unwrap();
    assert_eq!(stream.clone_dtoh(&watched).unwrap(), [1; 32]);
    assert_eq!(stream.clone_dtoh(&other).unwrap(), [9; 32]);
}

#[test]
fn what_waits_or_allocates_is_refused_while_a_stream_captures() {
    let device = device();
    let stream = device.new_stream().unwrap();
    let buffer = stream.alloc_zeros::<u32>(4).unwrap();
    let event = stream.record_event().unwrap();
    type Call<'a> = (&'a str, Box<dyn Fn() -> Result<()> + 'a>);
    let calls: Vec<Call<'_>> = vec![
        ("alloc", Box::new(|| stream.alloc::<u32>(4).map(drop))),
        ("alloc", Box::new(|| stream.alloc_zeros::<u32>(4).map(drop))),
        ("alloc", Box::new(|| stream.clone_htod(&[1u32]).map(drop))),
        ("memcpy_htod", Box::new(|| stream.memcpy_htod(&[1u32; 4], &buffer))),
        ("memcpy_dtoh", Box::new(|| stream.memcpy_dtoh(&buffer, &mut [0; 4]))),
        ("memcpy_dtoh", Box::new(|| stream.clone_dtoh(&buffer).map(drop))),
        ("synchronize", Box::new(|| stream.synchronize())),
        ("record_event", Box::new(|| stream.record_event().map(drop))),
        ("wait_event", Box::new(|| stream.wait_event(&event))),
        ("begin_capture", Box::new(|| stream.begin_capture())),
    ];
    stream.begin_capture().unwrap();
    for (name, call) in &calls {
        match call() {
            Err(RuntimeError::Capturing { operation }) => assert_eq!(operation, *name),
            other => panic!("{name}: {other:?}"),
        }
    }
    // Refused calls leave the recording as it is.
    stream.memset_zeros(&buffer).unwrap();
    assert_eq!(stream.end_capture().unwrap().len(), 1);
    for (name, call) in calls.iter().filter(|(name, _)| *name != "begin_capture") {
        call().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert!(matches!(stream.end_capture(), Err(RuntimeError::NotCapturing)));
}

#[test]
fn other_streams_go_on_while_one_captures() {
    let device = device();
    let [capturing, other] = [(); 2].map(|()| device.new_stream().unwrap());
    let buffer = other.alloc::<u32>(8).unwrap();
    let graph = capture(&capturing, || {
        other.memcpy_htod(&[3; 8], &buffer)?;
        capturing.memset_zeros(&buffer)?;
        assert_eq!(other.clone_dtoh(&buffer)?, [3; 8]);
        Ok(())
    });
    assert_eq!(other.clone_dtoh(&buffer).unwrap(), [3; 8]);
    graph.instantiate().unwrap().launch(&other).unwrap();
    assert_eq!(other.clone_dtoh(&buffer).unwrap(), [0; 8]);
}

#[test]
fn a_graph_can_be_a_node_of_another() {
    let device = device();
    let stream = device.default_stream();
    let count = device.kernel(&Count).unwrap();
    let counters = stream.alloc_zeros::<u32>(32).unwrap();
    let one = || count.bind().buffer("counters", &counters).dim("rows", 1).launch(&stream);
    let inner = capture(&stream, one).instantiate().unwrap();
    let outer = capture(&stream, || {
        one()?;
        inner.launch(&stream)?;
        inner.launch(&stream)
    });
    let nodes: Vec<_> = outer.nodes().map(|(_, node)| node).collect();
    assert_eq!(nodes[1..], [GraphNode::Graph { nodes: 1 }, GraphNode::Graph { nodes: 1 }]);
    let exec = outer.instantiate().unwrap();
    drop((inner, outer));
    exec.launch(&stream).unwrap();
    assert_eq!(stream.clone_dtoh(&counters).unwrap(), [3; 32]);
}

#[test]
fn a_graph_runs_on_its_device() {
    let (device, other) = (device(), device());
    let stream = device.default_stream();
    let buffer = stream.alloc_zeros::<u32>(1).unwrap();
    let exec = capture(&stream, || stream.memset_zeros(&buffer)).instantiate().unwrap();
    assert!(matches!(
        exec.launch(&other.default_stream()),
        Err(RuntimeError::OtherDevice { what: "graph", .. })
    ));
    exec.launch(&device.new_stream().unwrap()).unwrap();
    device.synchronize().unwrap();
}

#[test]
fn handles_go_to_other_threads() {
    fn sent<T: Send + Sync>() {}
    sent::<CompiledKernel>();
    sent::<PreparedLaunch>();
    sent::<Graph>();
    sent::<warpwright_runtime::GraphExec>();
    sent::<warpwright_runtime::Module>();
    sent::<warpwright_runtime::Function>();
    sent::<warpwright_runtime::ContractError>();
    sent::<AnyBuffer>();
    let device: Device = device();
    let kernel = device.kernel(&Count).unwrap();
    let buffers: Vec<_> = std::thread::scope(|scope| {
        let run = |_| {
            scope.spawn(|| {
                let stream = device.new_stream().unwrap();
                let counters = stream.alloc_zeros::<u32>(32)?;
                let exec = capture(&stream, || {
                    kernel.bind().buffer("counters", &counters).dim("rows", 1).launch(&stream)
                });
                let exec = exec.instantiate()?;
                (0..20).try_for_each(|_| exec.launch(&stream))?;
                stream.clone_dtoh(&counters)
            })
        };
        let threads: Vec<_> = (0..4).map(run).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic").expect("no error")).collect()
    });
    assert!(buffers.iter().all(|counters| *counters == [20; 32]));
}

/// However nodes are updated, the graph keeps what they have now and nothing else, and replays work on that.
#[test]
fn any_updates_leave_the_graph_with_the_memory_of_its_nodes() {
    const NODES: usize = 4;
    const BUFFERS: usize = 5;
    let device = device();
    let stream = device.default_stream();
    let count = device.kernel(&Count).unwrap();
    let mut state = 1u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    for _ in 0..50 {
        let buffers: Vec<_> = (0..BUFFERS).map(|_| stream.alloc_zeros::<u32>(32).unwrap()).collect();
        let prepare = |buffer: usize| {
            count.bind().buffer("counters", &buffers[buffer]).dim("rows", 1).prepare().unwrap()
        };
        let mut nodes = [0; NODES];
        let graph = capture(&stream, || nodes.iter().try_for_each(|&buffer| stream.launch(&prepare(buffer))));
        let mut exec = graph.instantiate().unwrap();
        let ids: Vec<_> = graph.nodes().map(|(id, _)| id).collect();
        drop(graph);
        for _ in 0..below(12) {
            let (node, buffer) = (below(NODES), below(BUFFERS));
            nodes[node] = buffer;
            exec.update(ids[node], &prepare(buffer)).unwrap();
        }
        exec.launch(&stream).unwrap();
        for (i, buffer) in buffers.iter().enumerate() {
            let uses = nodes.iter().filter(|&&node| node == i).count() as u32;
            assert_eq!(stream.clone_dtoh(buffer).unwrap(), [uses; 32], "{nodes:?}");
        }
        drop(buffers);
        let kept = (0..BUFFERS).filter(|buffer| nodes.contains(buffer)).count() as u64;
        assert_eq!(device.pool_statistics().live, kept, "{nodes:?}");
        drop(exec);
        assert_eq!(device.pool_statistics().live, 0);
    }
}

/// Devices that go on after a failure.
mod on_the_vm {
    use super::*;

    #[test]
    fn a_replay_that_fails_names_the_kernel_and_leaves_the_graph_usable() {
        let device = device();
        let stream = device.default_stream();
        let count = device.kernel(&Count).unwrap();
        let trap = device.kernel(&TrapIf).unwrap();
        let counters = stream.alloc_zeros::<u32>(32).unwrap();
        let flag = stream.alloc_zeros::<u32>(1).unwrap();
        let exec = capture(&stream, || {
            count.bind().buffer("counters", &counters).dim("rows", 1).launch(&stream)?;
            trap.bind().buffer("flag", &flag).launch(&stream)?;
            count.bind().buffer("counters", &counters).dim("rows", 1).launch(&stream)
        });
        let exec = exec.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        stream.memcpy_htod(&[1], &flag).unwrap();
        exec.launch(&stream).unwrap();
        match stream.synchronize() {
            Err(RuntimeError::Failed(failure)) => {
                assert_eq!(failure.kernel, "trap_if");
                // The launches of the second replay begin in an order that the device's order decides.
                assert!(matches!(failure.launch, Some(3..6)), "{:?}", failure.launch);
            }
            other => panic!("{other:?}"),
        }
        stream.memset_zeros(&flag).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(stream.clone_dtoh(&counters).unwrap(), [2 + 1 + 2; 32]);
    }
}
