//! Graphs of the driver.

use crate::*;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_kernels::Softmax;
use warpwright_runtime::cudarc::driver::CudaContext;

const D: usize = 64;

/// A launch of softmax over rows.
fn softmax(kernel: &CompiledKernel, x: &Buffer<f32>, y: &Buffer<f32>, rows: u64) -> PreparedLaunch {
    kernel.bind().buffer("x", x).buffer("y", y).dim("rows", rows).prepare().expect("a launch")
}

#[test]
fn a_replay_is_what_was_recorded_with_replays_in_it() {
    let gpu = Gpu::open();
    let stream = gpu.device.new_stream().unwrap();
    let x = stream.clone_htod(&[1u32, 10]).unwrap();
    let y = stream.alloc_zeros::<u32>(2).unwrap();
    stream.begin_capture().unwrap();
    gpu.launch(&stream, "add", 2, &x, &x, 3);
    stream.memcpy_dtod(&x, &y).unwrap();
    let inner = stream.end_capture().unwrap().instantiate().unwrap();
    stream.begin_capture().unwrap();
    inner.launch(&stream).unwrap();
    stream.memset_any(x.slice(1..).unwrap().as_any(), 0).unwrap();
    inner.launch(&stream).unwrap();
    gpu.add(&stream, &y, 100);
    let outer = stream.end_capture().unwrap().instantiate().unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [0, 0], "nothing has run");
    outer.launch(&stream).unwrap();
    inner.launch(&stream).unwrap();
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [10, 6]);
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [10, 6]);
    outer.launch(&stream).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [116, 3]);
    let statistics = gpu.device.statistics();
    // The four that are in the two replays of the outer one count too.
    assert_eq!((statistics.graph_launches, statistics.launches), (7, 7));
}

#[test]
fn an_update_is_for_replays_that_come_later() {
    let gpu = Gpu::open();
    let stream = gpu.device.new_stream().unwrap();
    let kernel = gpu.device.kernel(&Softmax::new(D as u32)).unwrap();
    let data: Vec<f32> = (0..4 * D).map(|i| ((i * 7) % 31) as f32 / 8.0).collect();
    let x = stream.clone_htod(&data).unwrap();
    let y = [(); 2].map(|()| stream.alloc_zeros::<f32>(4 * D).unwrap());
    let part = |buffer: &Buffer<f32>, rows: usize| buffer.slice(..rows * D).unwrap();
    let flag = stream.clone_htod(&[0u32]).unwrap();
    stream.begin_capture().unwrap();
    stream.memset_zeros(&y[1]).unwrap();
    stream.launch(&softmax(&kernel, &part(&x, 1), &part(&y[0], 1), 1)).unwrap();
    let mut exec = stream.end_capture().unwrap().instantiate().unwrap();
    let node = exec.nodes().map(|(id, _)| id).last().unwrap();
    // A replay that has not begun has the arguments of its time.
    let hold = gpu.hold(&stream, &flag, 1);
    exec.launch(&stream).unwrap();
    exec.update(node, &softmax(&kernel, &x, &y[1], 4)).unwrap();
    hold.release();
    let one = stream.clone_dtoh(&y[0]).unwrap();
    assert!(one[..D].iter().sum::<f32>() > 0.99 && one[D..].iter().all(|&v| v == 0.0));
    assert!(stream.clone_dtoh(&y[1]).unwrap().iter().all(|&v| v == 0.0));
    exec.launch(&stream).unwrap();
    let all = stream.clone_dtoh(&y[1]).unwrap();
    assert!(all.chunks(D).all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-5) && all[..D] == one[..D]);
    // What is no launch does not become one.
    let first = exec.nodes().map(|(id, _)| id).next().unwrap();
    let refused = exec.update(first, &softmax(&kernel, &x, &y[1], 4));
    assert!(matches!(refused, Err(RuntimeError::GraphUpdate { node: 0, .. })), "{refused:?}");
}

/// Drivers do not take a node for a launch whose arguments have more bytes than launches had for long.
#[test]
fn launches_with_many_arguments_are_replayed() {
    const BYTES: usize = 6000;
    let gpu = Gpu::open();
    let stream = gpu.device.new_stream().unwrap();
    // The last word of the structure is stored.
    let text = format!(
        ".version 8.1\n.target sm_75\n.address_size 64\n
        .visible .entry last(.param .u64 p, .param .align 4 .b8 s[{BYTES}])
        {{
            .reg .b32 %r<2>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [p];
            ld.param.u32 %r1, [s+{}];
            st.global.u32 [%rd1], %r1;
            ret;
        }}",
        BYTES - 4
    );
    let function = gpu.device.load_ptx(&text).unwrap().load_function("last").unwrap();
    let x = stream.alloc_zeros::<u32>(1).unwrap();
    let structure: Vec<u8> = (0..BYTES).map(|i| (i % 251) as u8).collect();
    let one = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
    stream.begin_capture().unwrap();
    gpu.add(&stream, &x, 1);
    let builder = stream.launch_builder(&function).arg(&x).arg(RawArg::from_bytes(&structure));
    // SAFETY: the kernel writes one element.
    unsafe { builder.launch(one) }.unwrap();
    gpu.add(&stream, &x, 1);
    let exec = stream.end_capture().unwrap().instantiate().unwrap();
    drop((function, structure));
    exec.launch(&stream).unwrap();
    let last: [u8; 4] = std::array::from_fn(|i| ((BYTES - 4 + i) % 251) as u8);
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [u32::from_le_bytes(last) + 1]);
}

/// Stores the last of many numbers.
struct Many;

impl Many {
    const NUMBERS: usize = 600;

    fn names() -> &'static [String] {
        static NAMES: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
        NAMES.get_or_init(|| (0..Many::NUMBERS).map(|i| format!("s{i}")).collect())
    }

    fn launch(kernel: &CompiledKernel, y: &Buffer<u32>, last: u32) -> PreparedLaunch {
        let (name, rest) = Many::names().split_last().expect("numbers");
        let binder = kernel.bind().buffer("y", y).scalar(name, last);
        rest.iter().fold(binder, |binder, name| binder.scalar(name, 0u32)).prepare().expect("a launch")
    }
}

impl AnyKernel for Many {
    fn entry(&self) -> String {
        "many".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        let numbers = Many::names().iter().map(|name| ArgDesc::scalar::<u32>(name));
        std::iter::once(ArgDesc::output::<u32>("y", 1)).chain(numbers).collect()
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(1)
    }

    fn body(&self, k: K<'_>) {
        let last = Many::names().iter().map(|name| k.scalar::<u32>(name)).last();
        k.ptr_mut::<u32>("y").st(0, last.expect("a number"));
    }
}

#[test]
fn launches_with_many_arguments_are_updated() {
    let gpu = Gpu::open();
    let stream = gpu.device.new_stream().unwrap();
    let kernel = gpu.device.kernel(&Many).unwrap();
    let [x, y] = [(); 2].map(|()| stream.alloc_zeros::<u32>(1).unwrap());
    stream.begin_capture().unwrap();
    stream.launch(&Many::launch(&kernel, &x, 5)).unwrap();
    let mut exec = stream.end_capture().unwrap().instantiate().unwrap();
    let node = exec.nodes().map(|(id, _)| id).next().unwrap();
    exec.launch(&stream).unwrap();
    exec.update(node, &Many::launch(&kernel, &y, 6)).unwrap();
    exec.launch(&stream).unwrap();
    assert_eq!([&x, &y].map(|buffer| stream.clone_dtoh(buffer).unwrap()), [[5], [6]]);
}

#[test]
fn how_a_node_is_launched_is_not_updated() {
    let gpu = Gpu::open();
    let stream = gpu.device.new_stream().unwrap();
    let kernel = gpu.device.kernel(&Softmax::new(D as u32)).unwrap();
    let (x, y) = (stream.alloc_zeros::<f32>(D).unwrap(), stream.alloc::<f32>(D).unwrap());
    let launch = softmax(&kernel, &x, &y, 1);
    // A kernel of its name that is launched in another way.
    let text = format!(
        ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry {}() {{ ret; }}",
        launch.kernel()
    );
    let other = gpu.device.load_ptx(&text).unwrap().load_function(launch.kernel()).unwrap();
    let one = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
    stream.begin_capture().unwrap();
    let builder = stream.launch_builder(&other).attributes(LaunchAttributes::default().cooperative());
    // SAFETY: the kernel accesses nothing.
    unsafe { builder.launch(one) }.unwrap();
    stream.launch(&launch).unwrap();
    let mut exec = stream.end_capture().unwrap().instantiate().unwrap();
    let nodes: Vec<_> = exec.nodes().map(|(id, _)| id).collect();
    let refused = exec.update(nodes[0], &launch);
    assert!(matches!(refused, Err(RuntimeError::GraphUpdate { node: 0, .. })), "{refused:?}");
    exec.update(nodes[1], &launch).unwrap();
}

#[test]
fn a_graph_that_goes_leaves_its_replays() {
    let gpu = Gpu::open();
    gpu.device.set_release_threshold(0);
    let (stream, other) = (gpu.device.new_stream().unwrap(), gpu.device.new_stream().unwrap());
    let flag = stream.clone_htod(&[0u32]).unwrap();
    let result = stream.clone_htod(&[5u32]).unwrap();
    let scratch = stream.clone_htod(&[30u32]).unwrap();
    stream.begin_capture().unwrap();
    gpu.add(&stream, &scratch, 1);
    stream.memcpy_dtod(&scratch, &result).unwrap();
    let exec = stream.end_capture().unwrap().instantiate().unwrap();
    let hold = gpu.hold(&stream, &flag, 1);
    exec.launch(&stream).unwrap();
    exec.launch(&stream).unwrap();
    // The graph, its memory and the kernels: the device has not come to them.
    let Gpu { device: _device, module } = gpu;
    drop((exec, scratch, module));
    for _ in 0..4 {
        other.memset_any(other.alloc::<u32>(1).unwrap().as_any(), 0xee).unwrap();
    }
    assert!(!stream.is_idle());
    hold.release();
    assert_eq!(stream.clone_dtoh(&result).unwrap(), [32]);
}

#[test]
fn a_graph_is_made_while_others_wait_for_the_whole_context() {
    let gpu = Gpu::open();
    let stream = gpu.device.default_stream();
    let context = CudaContext::new(0).unwrap();
    let x = stream.clone_htod(&[0u32]).unwrap();
    stream.begin_capture().unwrap();
    (0..40).for_each(|_| gpu.add(&stream, &x, 1));
    let graph = stream.end_capture().unwrap();
    let (made, waited) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !made.load(Relaxed) {
                // Whoever waits is not in the way, and nobody is in theirs.
                context.synchronize().unwrap();
                waited.store(true, Relaxed);
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        until(|| waited.load(Relaxed));
        let execs: Vec<_> = (0..50).map(|_| graph.instantiate()).collect();
        made.store(true, Relaxed);
        for exec in execs {
            exec.unwrap().launch(&stream).unwrap();
        }
    });
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [2000]);
}

#[test]
fn three_hundred_nodes_are_one_graph() {
    let gpu = Gpu::open();
    let stream = gpu.device.new_stream().unwrap();
    let x = stream.clone_htod(&[0u32]).unwrap();
    stream.begin_capture().unwrap();
    (0..300).for_each(|n| gpu.add(&stream, &x, n));
    let exec = stream.end_capture().unwrap().instantiate().unwrap();
    (0..3).for_each(|_| exec.launch(&stream).unwrap());
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [3 * 300 * 299 / 2]);
    let statistics = gpu.device.statistics();
    assert_eq!((statistics.graph_launches, statistics.launches), (3, 900));
}
