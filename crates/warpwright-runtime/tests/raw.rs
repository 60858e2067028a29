//! Launches of PTX without a contract: what the signature and the device say is checked, and nothing else is.

#![allow(unsafe_code, reason = "raw launches are unsafe")]

mod small;

use small::*;
use warpwright_dsl::{Arch, Built, Extent, LaunchRule, build};
use warpwright_runtime::{
    Device, Function, GraphNode, LaunchAttributes, LaunchConfig, Module, RawArg, Result, RuntimeError,
    Stream, TensorElement, TensorLayout, TensorMap, TensorSwizzle, Violation,
};

/// `y[i] = x[i] · scale + offset` for a block of up to 128 threads; a structure of two floats, and a byte that is
/// added. And a kernel with 1024 bytes of static shared memory, one that runs with blocks of 64 only, and one that
/// counts the blocks that wait for each other.
const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64

.extern .shared .align 16 .b8 room[];

.visible .entry axpy(.param .u64 x, .param .u64 y, .param .align 4 .b8 both[8], .param .u8 more)
.maxntid 128, 1, 1
{
    .reg .b16 %rs<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<6>;
    .reg .f32 %f<7>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.f32 %f1, [both];
    ld.param.f32 %f2, [both+4];
    ld.param.u8 %rs1, [more];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.f32 %f3, [%rd4];
    cvt.rn.f32.u16 %f4, %rs1;
    fma.rn.f32 %f5, %f3, %f1, %f2;
    add.f32 %f6, %f5, %f4;
    st.global.f32 [%rd5], %f6;
    ret;
}

.visible .entry fixed()
.reqntid 64, 1, 1
{
    .shared .align 4 .b8 own[1024];
    .reg .b32 %r<2>;
    mov.u32 %r1, 1;
    st.shared.u32 [own], %r1;
    ret;
}

.visible .entry last_word(.param .u64 y, .param .u32 n)
{
    .reg .b32 %r<5>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [y];
    ld.param.u32 %r1, [n];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r2, room;
    add.u32 %r3, %r2, %r1;
    mov.u32 %r4, 4711;
    st.shared.u32 [%r3+-4], %r4;
    ld.shared.u32 %r4, [%r3+-4];
    st.global.u32 [%rd1], %r4;
    ret;
}

.visible .entry meet(.param .u64 arrived)
{
    .reg .pred %p<3>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [arrived];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra $over;
    mov.u32 %r2, %nctaid.x;
    red.release.gpu.global.add.u32 [%rd1], 1;
$wait:
    ld.acquire.gpu.global.u32 %r3, [%rd1];
    setp.lt.u32 %p2, %r3, %r2;
    @%p2 bra $wait;
$over:
    ret;
}
";

fn loaded(device: &Device) -> Module {
    device.load_ptx(PTX).expect("a module")
}

fn function(device: &Device, name: &str) -> Function {
    loaded(device).load_function(name).expect("a function")
}

fn shape(blocks: u32, threads: u32, shared_mem_bytes: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes }
}

/// The structure: scale and offset.
const BOTH: [f32; 2] = [2.0, 0.5];

/// The launches here stay inside of the buffers that they are given.
fn launch(stream: &Stream, function: &Function, args: Vec<RawArg>, config: LaunchConfig) -> Result<()> {
    let builder = args.into_iter().fold(stream.launch_builder(function), |builder, arg| builder.arg(arg));
    // SAFETY: see above; the device is a virtual GPU.
    unsafe { builder.launch(config) }
}

#[test]
fn parameters_are_passed_as_they_stand_in_the_signature() {
    let device = device();
    let stream = device.new_stream().unwrap();
    let axpy = function(&device, "axpy");
    let x: Vec<f32> = (0..100).map(|i| i as f32).collect();
    let (given, y) = (stream.clone_htod(&x).unwrap(), stream.alloc::<f32>(100).unwrap());
    let builder = stream.launch_builder(&axpy).arg(&given).arg(&y).arg(RawArg::structure(&BOTH)).arg(3u8);
    // SAFETY: 100 threads, 100 elements.
    unsafe { builder.launch(shape(1, 100, 0)) }.unwrap();
    let expected: Vec<f32> = x.iter().map(|x| x * 2.0 + 3.5).collect();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
    assert_eq!(device.statistics().launches, 1);
}

#[test]
fn parameters_of_the_wrong_number_or_size_are_refused() {
    let device = device();
    let stream = device.default_stream();
    let axpy = function(&device, "axpy");
    let x = stream.alloc_zeros::<f32>(8).unwrap();
    let right = || vec![RawArg::from(&x), RawArg::from(&x), RawArg::structure(&BOTH), RawArg::from(1u8)];
    let violation = |args| {
        let (kernel, argument, violation) = refused(launch(&stream, &axpy, args, shape(1, 1, 0)));
        assert_eq!(kernel, "axpy");
        (argument, violation)
    };
    let mut fewer = right();
    fewer.pop();
    assert_eq!(violation(fewer), (None, Violation::ParameterCount { given: 3, needed: 4 }));
    let mut more = right();
    more.push(RawArg::from(1u8));
    assert_eq!(violation(more).1, Violation::ParameterCount { given: 5, needed: 4 });
    for (index, name, wrong, given, needed) in [
        (0, "x", RawArg::from(1u32), 4, 8),
        (2, "both", RawArg::from(1.0f32), 4, 8),
        (3, "more", RawArg::from(1u16), 2, 1),
        (3, "more", RawArg::from(&x), 8, 1),
    ] {
        let mut args = right();
        args[index] = wrong;
        let size = Violation::ParameterSize { index, argument: name.to_owned(), given, needed };
        assert_eq!(violation(args), (Some(name.to_owned()), size));
    }
    // An address is eight bytes, whatever they are.
    let mut address = right();
    address[0] = RawArg::from(x.as_any().device_ptr());
    launch(&stream, &axpy, address, shape(1, 8, 0)).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(device.statistics().launches, 1);
}

#[test]
fn buffers_are_aligned_as_the_parameter_says() {
    let device = device();
    let stream = device.default_stream();
    // The DSL says 16 of every pointer.
    let function = device.kernel(&Count).unwrap().function();
    assert_eq!(function.attributes().params[0].alignment, Some(16));
    let counters = stream.alloc_zeros::<u32>(64).unwrap();
    for (start, aligned) in [(0, true), (1, false), (2, false), (4, true), (31, false), (32, true)] {
        let counters = counters.slice(start..start + 32).unwrap();
        let result = launch(&stream, &function, vec![RawArg::from(&counters)], shape(1, 32, 0));
        if aligned {
            result.unwrap();
            continue;
        }
        let given = counters.as_any().device_ptr();
        let argument = "counters".to_owned();
        assert_eq!(
            refused(result).2,
            Violation::ParameterAlignment { index: 0, argument, given, needed: 16 }
        );
    }
    assert_eq!(function_alignment(&device), None, "PTX that says nothing takes any address");
    stream.synchronize().unwrap();
}

fn function_alignment(device: &Device) -> Option<u32> {
    function(device, "axpy").attributes().params[0].alignment
}

#[test]
fn dimensions_that_the_device_or_the_function_does_not_take_are_refused() {
    let device = device();
    let stream = device.default_stream();
    let module = loaded(&device);
    let [fixed, meet] = ["fixed", "meet"].map(|name| module.load_function(name).unwrap());
    let arrived = stream.alloc_zeros::<u32>(1).unwrap();
    let given = |grid_dim, block_dim| {
        let config = LaunchConfig { grid_dim, block_dim, shared_mem_bytes: 0 };
        refused(launch(&stream, &meet, vec![RawArg::from(&arrived)], config)).2
    };
    for grid in [(0, 1, 1), (1, 1, 0), (0x8000_0000, 1, 1), (1, 0x1_0000, 1)] {
        assert!(matches!(given(grid, (1, 1, 1)), Violation::Grid { .. }), "{grid:?}");
    }
    for block in [(0, 1, 1), (1025, 1, 1), (1, 1, 65), (32, 33, 1), (u32::MAX, u32::MAX, 1)] {
        assert!(matches!(given((1, 1, 1), block), Violation::Block { max: 1024, .. }), "{block:?}");
    }
    let block = refused(launch(&stream, &fixed, vec![], shape(1, 32, 0))).2;
    // A driver counts what the kernel requires as the most that it takes.
    let is_max = |max| max == 1024 || max == 64;
    assert!(
        matches!(block, Violation::Block { given: [32, 1, 1], needed: [64, 1, 1], exactly: true, max } if is_max(max)),
        "{block:?}"
    );
    launch(&stream, &fixed, vec![], shape(2, 64, 0)).unwrap();
    let axpy = module.load_function("axpy").unwrap();
    let x = stream.alloc_zeros::<f32>(8).unwrap();
    let args = vec![RawArg::from(&x), RawArg::from(&x), RawArg::structure(&BOTH), RawArg::from(1u8)];
    let block = refused(launch(&stream, &axpy, args, shape(1, 129, 0))).2;
    assert!(matches!(block, Violation::Block { max: 128, .. }), "{block:?}");
    stream.synchronize().unwrap();
    assert_eq!(device.statistics().launches, 1);
}

#[test]
fn dynamic_shared_memory_beyond_48_kib_must_be_allowed() {
    let device = device_of(80);
    let stream = device.default_stream();
    let module = loaded(&device);
    let function = module.load_function("last_word").unwrap();
    let y = stream.alloc_zeros::<u32>(1).unwrap();
    let run = |bytes: u32| {
        launch(&stream, &function, vec![RawArg::from(&y), RawArg::from(bytes)], shape(1, 1, bytes))?;
        let [word] = stream.clone_dtoh(&y)?[..] else { panic!("one word") };
        stream.memset_zeros(&y)?;
        Ok(word)
    };
    let max = 163 << 10;
    assert_eq!(run(48 << 10).unwrap(), 4711);
    let (given, needed) = ((48 << 10) + 4, 48 << 10);
    assert_eq!(refused(run(given)).2, Violation::DynamicShared { given, needed, max });
    function.set_max_dynamic_shared(100 << 10).unwrap();
    assert_eq!(run(100 << 10).unwrap(), 4711);
    let (given, needed) = ((100 << 10) + 4, 100 << 10);
    assert_eq!(refused(run(given)).2, Violation::DynamicShared { given, needed, max });
    // A function is the same however one comes by it.
    let [function, again] = [(); 2].map(|()| module.load_function("last_word").unwrap());
    function.set_max_dynamic_shared(163 << 10).unwrap();
    assert_eq!(again.max_dynamic_shared(), 163 << 10);
    assert_eq!(run(163 << 10).unwrap(), 4711);
    let violation = refused(function.set_max_dynamic_shared((163 << 10) + 1)).2;
    assert_eq!(violation, Violation::SharedMemory { given: (163 << 10) + 1, needed: 163 << 10 });
}

#[test]
fn buffers_and_functions_are_of_the_streams_device() {
    let (device, other) = (device(), device());
    let meet = function(&device, "meet");
    let [here, there] =
        [&device, &other].map(|device| device.default_stream().alloc_zeros::<u32>(1).unwrap());
    let config = shape(1, 1, 0);
    for (stream, arg, what) in
        [(other.default_stream(), &there, "function"), (device.default_stream(), &there, "buffer")]
    {
        match launch(&stream, &meet, vec![RawArg::from(arg)], config) {
            Err(RuntimeError::OtherDevice { what: found, .. }) => assert_eq!(found, what),
            other => panic!("{other:?}"),
        }
    }
    launch(&device.default_stream(), &meet, vec![RawArg::from(&here)], config).unwrap();
    device.synchronize().unwrap();
}

#[test]
fn raw_launches_are_captured_too() {
    let device = device();
    let stream = device.new_stream().unwrap();
    let meet = function(&device, "meet");
    let arrived = stream.alloc_zeros::<u32>(1).unwrap();
    stream.begin_capture().unwrap();
    launch(&stream, &meet, vec![RawArg::from(&arrived)], shape(1, 32, 16)).unwrap();
    refused(launch(&stream, &meet, vec![], shape(1, 32, 0)));
    let graph = stream.end_capture().unwrap();
    let nodes: Vec<_> = graph.nodes().map(|(_, node)| node).collect();
    let (grid, block) = ([1, 1, 1], [32, 1, 1]);
    assert_eq!(nodes, [GraphNode::Kernel { kernel: "meet".into(), grid, block, dynamic_shared: 16 }]);
    let exec = graph.instantiate().unwrap();
    drop(graph);
    for _ in 0..3 {
        exec.launch(&stream).unwrap();
    }
    assert_eq!(stream.clone_dtoh(&arrived).unwrap(), [3]);
    assert_eq!((device.statistics().launches, device.statistics().graph_launches), (3, 3));
}

#[test]
fn configurations_for_a_number_of_elements_have_a_thread_for_each() {
    for (n, blocks) in [(1, 1), (1024, 1), (1025, 2), (u32::MAX, 1 << 22)] {
        let LaunchConfig { grid_dim, block_dim, shared_mem_bytes } = LaunchConfig::for_num_elems(n);
        assert_eq!((grid_dim, block_dim, shared_mem_bytes), ((blocks, 1, 1), (1024, 1, 1), 0));
    }
}

/// Devices of an architecture and a size, and of no other.
mod on_the_vm {
    use super::*;

    #[test]
    fn a_function_says_what_it_is_like() {
        let device = virtual_gpu(80, 10);
        let module = loaded(&device);
        assert!(module.function_names().eq(["axpy", "fixed", "last_word", "meet"]));
        let axpy = module.load_function("axpy").unwrap();
        let params: Vec<_> =
            axpy.attributes().params.iter().map(|param| (param.name.as_str(), param.bytes)).collect();
        assert_eq!(params, [("x", 8), ("y", 8), ("both", 8), ("more", 1)]);
        assert_eq!((axpy.attributes().max_threads_per_block, axpy.attributes().required_block), (128, None));
        let fixed = module.load_function("fixed").unwrap();
        assert_eq!(
            (fixed.attributes().static_shared, fixed.attributes().required_block),
            (1024, Some([64, 1, 1]))
        );
        match module.load_function("axqy") {
            Err(RuntimeError::UnknownFunction { name, known }) => {
                assert_eq!((name.as_str(), known.len()), ("axqy", 4));
            }
            other => panic!("{other:?}"),
        }
        match device.load_ptx(".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { bogus; }") {
            Err(RuntimeError::Invalid(diagnostics)) => assert_eq!(diagnostics.len(), 1),
            other => panic!("{other:?}"),
        }
        assert!(matches!(virtual_gpu(75, 10).load_ptx(PTX), Err(RuntimeError::Vm(_))));
    }

    /// By hand: `sm_80` holds 2048 threads, 32 blocks and 164 KiB of shared memory, of which a block takes 1 KiB beyond
    /// its own.
    #[test]
    fn occupancy_is_what_a_multiprocessor_holds() {
        let device = virtual_gpu(80, 10);
        let axpy = function(&device, "axpy");
        for (threads, dynamic, blocks) in [
            (128, 0, 16),
            (97, 0, 16),
            (96, 0, 21),
            (32, 0, 32),
            (1, 0, 32),
            (128, 40 << 10, 4),
            (128, 40 << 10 | 1, 3),
            (32, 163 << 10, 1),
            // No such blocks.
            (129, 0, 0),
            (0, 0, 0),
            (32, (163 << 10) + 1, 0),
        ] {
            assert_eq!(axpy.occupancy(threads, dynamic), blocks, "{threads} threads, {dynamic} bytes");
            assert_eq!(axpy.max_cooperative_grid(threads, dynamic), 10 * u64::from(blocks));
        }
        // Static shared memory counts too: 1 KiB, and 1 KiB beyond it, and 39 KiB of dynamic shared memory.
        let fixed = function(&device, "fixed");
        assert_eq!(fixed.occupancy(64, 0), 32);
        assert_eq!(fixed.occupancy(64, 39 << 10), 4);
        assert_eq!(fixed.occupancy(32, 0), 0, "it runs with 64 threads only");
    }

    /// By hand: `sm_75` holds 1024 threads, 16 blocks and 64 KiB, all of which a block may have.
    #[test]
    fn before_sm_80_a_block_takes_no_shared_memory_beyond_its_own() {
        let device = virtual_gpu(75, 2);
        let stream = device.default_stream();
        let kernel = device.kernel(&Reverse { n: 16 << 10 }).unwrap();
        for (dynamic, blocks) in [(0, 8), (8 << 10, 8), (16 << 10, 4), ((16 << 10) + 4, 3), (64 << 10, 1)] {
            assert_eq!(kernel.function().occupancy(128, dynamic), blocks, "{dynamic} bytes");
        }
        assert_eq!(device.kernel(&Count).unwrap().function().occupancy(32, 0), 16);
        // All blocks of a cooperative launch can have all of it.
        let rule = LaunchRule { cooperative: true, ..LaunchRule::new(32).dynamic_shared(64 << 10) };
        let kernel =
            device.kernel(&Nothing { entry: "all", rule: rule.grid(Extent::dim("blocks")) }).unwrap();
        kernel.bind().dim("blocks", 2).launch(&stream).unwrap();
        let violation = refused(kernel.bind().dim("blocks", 3).launch(&stream)).2;
        assert_eq!(violation, Violation::NotResident { given: 3, needed: 2 });
        stream.synchronize().unwrap();
    }

    #[test]
    fn cooperative_launches_are_resident_as_a_whole() {
        let device = virtual_gpu(80, 3);
        let stream = device.default_stream();
        let meet = function(&device, "meet");
        let run = |blocks, attributes| {
            let arrived = stream.alloc_zeros::<u32>(1).unwrap();
            let builder = stream.launch_builder(&meet).arg(&arrived).attributes(attributes);
            // SAFETY: one counter.
            unsafe { builder.launch(shape(blocks, 1024, 0)) }?;
            stream.clone_dtoh(&arrived)
        };
        let cooperative = LaunchAttributes::default().cooperative();
        assert_eq!(run(6, cooperative).unwrap(), [6]);
        assert_eq!(refused(run(7, cooperative)).2, Violation::NotResident { given: 7, needed: 6 });
        let cluster = LaunchAttributes::default().cluster((2, 1, 1));
        assert_eq!(refused(run(2, cluster)).2, Violation::Cluster { given: [2, 1, 1] });
        assert_eq!(device.statistics().launches, 1);
    }
}

const TILES: &str = include_str!("small/tile.ptx");

#[test]
fn tensors_in_buffers_are_arguments() {
    let device = device();
    let stream = device.default_stream();
    let function = device.load_ptx(TILES).unwrap().load_function("copy").unwrap();
    let moved = |from: &TensorMap, to: &TensorMap| {
        let args = vec![from.into(), to.into(), RawArg::from(4u32), RawArg::from(1u32)];
        launch(&stream, &function, args, shape(1, 1, 0)).unwrap();
    };
    // 6 rows of 10 numbers, 12 apart; the tile reaches beyond them on the right.
    let numbers: Vec<u32> = (0..6 * 12).collect();
    let source = stream.clone_htod(&numbers).unwrap();
    let target = stream.alloc_zeros::<u32>(6 * 12).unwrap();
    for swizzle in [TensorSwizzle::None, TensorSwizzle::B32] {
        let layout = TensorLayout::new([6, 10], [4, 8]).strides([12]).swizzle(swizzle);
        moved(&TensorMap::new(&source, &layout).unwrap(), &TensorMap::new(&target, &layout).unwrap());
        let is_in = |at: u32| (1..5).contains(&(at / 12)) && (4..10).contains(&(at % 12));
        let want: Vec<u32> = (0..72).map(|at| if is_in(at) { at } else { 0 }).collect();
        assert_eq!(stream.clone_dtoh(&target).unwrap(), want);
    }
    // What is outside is a NaN where a layout says so. The other tensor has all of the tile.
    let floats = stream.clone_htod(&[1.0f32; 72]).unwrap();
    let out = stream.alloc_zeros::<f32>(72).unwrap();
    let layout = TensorLayout::new([6, 10], [4, 8]).strides([12]).nan_outside();
    let whole = TensorLayout::new([6, 12], [4, 8]);
    moved(&TensorMap::new(&floats, &layout).unwrap(), &TensorMap::new(&out, &whole).unwrap());
    let row = &stream.clone_dtoh(&out).unwrap()[12..24];
    assert!(row[4..10].iter().all(|value| *value == 1.0) && row[10..].iter().all(|value| value.is_nan()));
}

#[test]
fn layouts_that_are_none_are_refused() {
    let device = device();
    let stream = device.default_stream();
    let buffer = stream.alloc_zeros::<f32>(64).unwrap();
    let made = |layout: TensorLayout| TensorMap::new(&buffer, &layout);
    let layout = || TensorLayout::new([8, 8], [8, 8]);
    assert!(made(layout()).is_ok());
    assert!(made(layout().element(TensorElement::TF32).steps([2, 1])).is_ok());
    for layout in [
        TensorLayout::new([8, 8], [8]),
        TensorLayout::new([8, 7], [8, 8]),
        TensorLayout::new([8, 8], [8, 6]),
        TensorLayout::new([8, 0], [8, 8]),
        layout().strides([9]),
        layout().steps([1, 2]),
        layout().element(TensorElement::U32).nan_outside(),
        TensorLayout::new([4, 16], [4, 16]).swizzle(TensorSwizzle::B32),
    ] {
        assert!(matches!(made(layout.clone()), Err(RuntimeError::TensorMap(_))), "{layout:?}");
    }
    let longer = made(TensorLayout::new([9, 8], [8, 8]));
    assert!(matches!(longer, Err(RuntimeError::TensorLength { needed: 288, given: 256 })));
    // The last row needs no gap behind it.
    assert!(made(TensorLayout::new([4, 4], [4, 4]).strides([20])).is_ok());
    let function = device.load_ptx(TILES).unwrap().load_function("copy").unwrap();
    let map = made(layout()).unwrap();
    let args = vec![(&map).into(), (&buffer).into(), RawArg::from(4u32), RawArg::from(1u32)];
    let (_, _, violation) = refused(launch(&stream, &function, args, shape(1, 1, 0)));
    assert!(matches!(violation, Violation::ParameterSize { index: 1, given: 8, needed: 128, .. }));
}

/// A kernel of the DSL: each block doubles 16 rows, 32 columns at a time. `before` numbers of shared memory stand before
/// the tile.
fn doubling(before: u32) -> Built {
    let built = build("double", &LaunchRule::new(128), Arch::sm(90), |k| {
        let (x, y) = (k.tensor_map::<f32>("x"), k.tensor_map::<f32>("y"));
        let steps = k.scalar::<u32>("steps");
        let own = k.shared::<f32>(before);
        own.st(k.tid(), k.f32(2.0));
        let (tile, arrived) = (k.tile::<f32>(16 * 32), k.tile_barrier(1));
        let (is_first, factor) = (k.tid().eq(0), own.ld(k.tid()));
        k.each(k.range(k.u32(0)..steps), |step| {
            let at = [(step * 32).bits::<i32>(), (k.ctaid() * 16).bits::<i32>()];
            k.when(is_first, || {
                arrived.expect(4 * 16 * 32);
                x.load(at, tile, arrived);
            });
            arrived.wait(step & 1);
            k.each(k.strided(16 * 32), |i| tile.st(i, tile.ld(i) * factor));
            k.fence_async();
            k.sync();
            k.when(is_first, || {
                y.store(at, tile);
                k.bulk_commit();
                k.bulk_wait_read(0);
            });
        });
        k.when(is_first, || k.bulk_wait(0));
    });
    built.unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

#[test]
fn kernels_of_the_dsl_copy_tiles() {
    let device = device();
    let stream = device.default_stream();
    // More shared memory than a kernel may have without asking for it, so that tiles are behind what is asked for.
    for before in [132, 13 << 10] {
        let built = doubling(before);
        let info = warpwright_ptx::verify(&built.module).unwrap();
        let function = device.load(&built.module, &info).unwrap().load_function("double").unwrap();
        function.set_max_dynamic_shared(built.launch.dynamic_shared).unwrap();
        let numbers: Vec<f32> = (0..40 * 68).map(|at| at as f32).collect();
        let (x, y) = (stream.clone_htod(&numbers).unwrap(), stream.alloc_zeros::<f32>(40 * 68).unwrap());
        let layout = TensorLayout::new([40, 65], [16, 32]).strides([68]).swizzle(TensorSwizzle::B128);
        let [x, from] = [&x; 2].map(|x| TensorMap::new(x, &layout).unwrap());
        assert_eq!(x.as_bytes(), from.as_bytes());
        let args = vec![(&x).into(), (&TensorMap::new(&y, &layout).unwrap()).into(), RawArg::from(3u32)];
        launch(&stream, &function, args, shape(3, 128, built.launch.dynamic_shared)).unwrap();
        let is_in = |at: usize| at % 68 < 65;
        let want: Vec<f32> = (0..40 * 68).map(|at| if is_in(at) { 2.0 * at as f32 } else { 0.0 }).collect();
        assert_eq!(stream.clone_dtoh(&y).unwrap(), want);
    }
}
