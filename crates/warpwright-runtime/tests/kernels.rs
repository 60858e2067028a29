//! Kernels of the DSL, launched under contract: what is accepted runs and is right, what is refused names the rule.

mod small;

use small::*;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;
use warpwright_runtime::{CompiledKernel, Device, Kind, Measure, RuntimeError, Stream, Violation};

const N: usize = 200;

fn numbers() -> Vec<f32> {
    (0..N).map(|i| i as f32 - 70.0).collect()
}

fn affine() -> (Device, Stream, CompiledKernel) {
    let device = device();
    let kernel = device.kernel(&Affine).expect("a kernel");
    (device.clone(), device.default_stream(), kernel.into())
}

#[test]
fn a_kernel_runs_with_what_it_is_given() {
    let (_, stream, kernel) = affine();
    let x = stream.clone_htod(&numbers()).unwrap();
    let y = stream.alloc::<f32>(N).unwrap();
    let bound = kernel.bind().buffer("y", &y).scalar("a", 2.0f32).scalar("y0", 0.5f32).buffer("x", &x);
    bound.scalar("n", N as u32).launch(&stream).unwrap();
    let expected: Vec<f32> = numbers().iter().map(|x| 2.0 * x + 0.5).collect();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
}

#[test]
fn a_dimension_is_a_scalar_argument_of_its_name_too() {
    let (_, stream, kernel) = affine();
    let x = stream.clone_htod(&numbers()).unwrap();
    let y = stream.alloc::<f32>(N).unwrap();
    let bound = || kernel.bind().buffer("x", &x).buffer("y", &y).scalar("a", 1.0f32).scalar("y0", 0.0f32);
    bound().dim("n", N as u64).launch(&stream).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), numbers());
    let twice = refused(bound().dim("n", N as u64).scalar("n", N as u32).prepare());
    assert_eq!(twice.2, Violation::Twice { argument: "n" });
    let large = refused(bound().dim("n", 1 << 32).prepare());
    assert_eq!(
        large.2,
        Violation::Count { argument: "n", given: (1u64 << 32).to_string(), needed: Type::U32 }
    );
    let buffer = refused(bound().dim("x", 1).prepare());
    assert!(matches!(buffer.2, Violation::Kind { argument: "x", .. }), "{:?}", buffer.2);
}

#[test]
fn a_prepared_launch_runs_as_often_as_wanted_and_keeps_its_buffers() {
    let device = device();
    let stream = device.default_stream();
    let kernel = device.kernel(&Count).unwrap();
    let counters = stream.alloc_zeros::<u32>(64).unwrap();
    let second_row = counters.slice(32..).unwrap();
    let both = kernel.bind().buffer("counters", &counters).dim("rows", 2).prepare().unwrap();
    let one = kernel.bind().buffer("counters", second_row).dim("rows", 1).prepare().unwrap();
    let before = device.statistics().launches;
    for _ in 0..5 {
        stream.launch(&both).unwrap();
    }
    stream.launch(&one).unwrap();
    assert_eq!((both.kernel(), both.grid(), both.block()), ("count", [2, 1, 1], [32, 1, 1]));
    let found = stream.clone_dtoh(&counters).unwrap();
    assert_eq!(found, [[5; 32], [6; 32]].concat());
    assert_eq!(device.statistics().launches - before, 6);
    // Nothing but the launch holds the memory now, and nobody else gets it.
    drop(counters);
    let other = stream.clone_htod(&[7u32; 64]).unwrap();
    stream.launch(&both).unwrap();
    assert_eq!(stream.clone_dtoh(&other).unwrap(), [7; 64]);
}

#[test]
fn an_output_may_be_exactly_the_input_that_it_may_share() {
    let (device, stream, kernel) = affine();
    let x = stream.clone_htod(&numbers()).unwrap();
    let bind = || kernel.bind().scalar("a", 3.0f32).scalar("y0", 1.0f32).scalar("n", 100u32);
    // Longer than needed: the kernel touches the first hundred.
    bind().buffer("x", &x).buffer("y", &x).launch(&stream).unwrap();
    let expected = |i: usize, x: f32| if i < 100 { 3.0 * x + 1.0 } else { x };
    let expected: Vec<f32> = numbers().iter().enumerate().map(|(i, &x)| expected(i, x)).collect();
    assert_eq!(stream.clone_dtoh(&x).unwrap(), expected);
    let launches = device.statistics().launches;
    for shift in [4, 96] {
        let (input, output) = (x.slice(..100).unwrap(), x.slice(shift..shift + 100).unwrap());
        let (kernel, argument, violation) =
            refused(bind().buffer("x", &input).buffer("y", &output).launch(&stream));
        assert_eq!((kernel.as_str(), argument.as_deref()), ("affine", Some("y")));
        let bytes = 4 * (100 - shift as u64);
        assert_eq!(violation, Violation::Overlap { argument: "y", other: "x", bytes, shareable: true });
    }
    let apart = x.slice(100..).unwrap();
    bind().buffer("x", &x).buffer("y", apart).launch(&stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(device.statistics().launches, launches + 1);
}

/// Kernels of one entry, one argument list and one launch rule whose bodies differ.
struct Stores {
    value: u32,
}

// SAFETY: it writes the one element that `args` says.
unsafe impl Bounded for Stores {}

impl AnyKernel for Stores {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn entry(&self) -> String {
        "stores".into()
    }
    fn args(&self) -> Vec<ArgDesc> {
        vec![ArgDesc::output::<u32>("y", 1)]
    }
    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }
    fn body(&self, k: K<'_>) {
        let y = k.ptr_mut::<u32>("y");
        k.when(k.tid().eq(0), || y.st(0, self.value));
    }
}

#[test]
fn kernels_of_one_entry_and_different_bodies_run_each_their_own() {
    let device = device();
    let stream = device.default_stream();
    let kernels: Vec<_> =
        [7, 8, 7].into_iter().map(|value| (value, device.kernel(&Stores { value }).unwrap())).collect();
    let y = stream.alloc::<u32>(1).unwrap();
    for (value, kernel) in &kernels {
        assert_eq!(kernel.entry(), "stores");
        kernel.bind().buffer("y", &y).launch(&stream).unwrap();
        assert_eq!(stream.clone_dtoh(&y).unwrap(), [*value]);
    }
    // What is built to the same module is loaded once.
    let [seven, eight, again] = &kernels[..] else { panic!() };
    assert!(*seven.1 == *again.1 && *seven.1 != *eight.1);
}

/// A derived key is a short cut, with all fields in it.
#[test]
fn a_configuration_with_a_key_is_built_once() {
    use std::cell::Cell;
    thread_local!(static BUILT: Cell<u32> = const { Cell::new(0) });

    #[derive(warpwright_dsl::Config)]
    struct Adds {
        a: u32,
        b: Option<u32>,
    }
    #[derive(warpwright_dsl::Args)]
    #[args(of = Adds)]
    struct AddsArgs<M: Mode> {
        #[arg(len = 1)]
        y: M::Out<u32>,
    }
    // SAFETY: it writes the one element that its arguments say.
    unsafe impl Bounded for Adds {}

    impl Kernel for Adds {
        type Args<M: Mode> = AddsArgs<M>;
        fn bounded(&self) -> Option<&dyn Bounded> {
            Some(self)
        }
        fn launch(&self) -> LaunchRule {
            LaunchRule::new(1)
        }
        fn body<'k>(&self, _: K<'k>, AddsArgs { y }: AddsArgs<Body<'k>>) {
            BUILT.set(BUILT.get() + 1);
            y.st(0, self.a + self.b.unwrap_or(100));
        }
    }

    let device = device();
    let stream = device.default_stream();
    let y = stream.alloc::<u32>(1).unwrap();
    let rows =
        [(1, None, 101, 1), (1, Some(2), 3, 2), (2, None, 102, 3), (1, None, 101, 3), (1, Some(2), 3, 3)];
    for (a, b, sum, built) in rows {
        let kernel = device.kernel(&Adds { a, b }).unwrap();
        kernel.with(AddsArgs { y: &y }).launch(&stream).unwrap();
        assert_eq!((stream.clone_dtoh(&y).unwrap(), BUILT.get()), (vec![sum], built), "{a} and {b:?}");
    }
}

#[test]
fn kernels_that_cannot_be_built_say_why() {
    struct Wrong;
    // SAFETY: no index is beyond the lengths that `args` says.
    unsafe impl Bounded for Wrong {}

    impl AnyKernel for Wrong {
        fn bounded(&self) -> Option<&dyn Bounded> {
            Some(self)
        }

        fn entry(&self) -> String {
            "wrong".into()
        }
        fn args(&self) -> Vec<ArgDesc> {
            vec![]
        }
        fn launch(&self) -> LaunchRule {
            LaunchRule::new(32)
        }
        fn check(&self) -> Result<(), BuildError> {
            Err(BuildError::field("size", 3, "even"))
        }
        fn body(&self, _: K<'_>) {}
    }
    match device().kernel(&Wrong) {
        Err(RuntimeError::Build { kernel, source: BuildError::Field { field, .. } }) => {
            assert_eq!((kernel.as_str(), field), ("wrong", "size"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn grids_are_neither_empty_nor_larger_than_the_device_takes() {
    let device = device();
    let stream = device.default_stream();
    let extent = Extent::dim;
    let rule = LaunchRule::new(32).grid_3d([extent("x"), extent("y"), extent("z")]);
    let kernel = device.kernel(&Nothing { entry: "grid", rule }).unwrap();
    let launch = |[x, y, z]: [u64; 3]| kernel.bind().dim("x", x).dim("y", y).dim("z", z).prepare();
    assert_eq!(kernel.dims(), ["x", "y", "z"]);
    assert_eq!(launch([0x7fff_ffff, 0xffff, 0xffff]).unwrap().grid(), [0x7fff_ffff, 0xffff, 0xffff]);
    for grid in [[0, 1, 1], [1, 0, 1], [1, 1, 0], [0x8000_0000, 1, 1], [1, 0x1_0000, 1], [1, 1, 1 << 40]] {
        let (_, _, violation) = refused(launch(grid));
        assert_eq!(violation, Violation::Grid { given: grid, needed: [0x7fff_ffff, 0xffff, 0xffff] });
    }
    let missing = refused(kernel.bind().dim("x", 1).dim("z", 1).prepare());
    assert_eq!(missing.1.as_deref(), Some("y"));
    assert_eq!(missing.2, Violation::MissingDim { dim: "y", of: Measure::Grid });
    stream.launch(&launch([3, 2, 1]).unwrap()).unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn kernels_that_leave_the_block_open_take_any_up_to_theirs() {
    let device = device();
    let stream = device.default_stream();
    let rule = LaunchRule { block: Block::AtMost([64, 4, 1]), ..LaunchRule::new(32) };
    let kernel = device.kernel(&Nothing { entry: "open", rule }).unwrap();
    assert_eq!(kernel.bind().prepare().unwrap().block(), [64, 4, 1]);
    let chosen = kernel.bind().block([33, 2, 1]).prepare().unwrap();
    assert_eq!(chosen.block(), [33, 2, 1]);
    stream.launch(&chosen).unwrap();
    stream.synchronize().unwrap();
    for block in [[65, 1, 1], [1, 5, 1], [1, 1, 2], [0, 1, 1]] {
        let violation = refused(kernel.bind().block(block).prepare()).2;
        assert!(matches!(violation, Violation::Block { exactly: false, .. }), "{violation:?}");
    }
    let exact = device.kernel(&Count).unwrap();
    let counters = stream.alloc_zeros::<u32>(32).unwrap();
    let bound = exact.bind().buffer("counters", counters).dim("rows", 1).block([64, 1, 1]);
    let needed = [32, 1, 1];
    assert_eq!(
        refused(bound.prepare()).2,
        Violation::Block { given: [64, 1, 1], needed, exactly: true, max: 1024 }
    );
}

#[test]
fn a_kernel_has_the_dynamic_shared_memory_that_it_asks_for() {
    let device = device();
    let stream = device.default_stream();
    // 400 bytes, 48 KiB, more than that, and all that a block of sm_90 can have: 227 KiB.
    for n in [100, 48 << 8, (48 << 8) + 1, 227 << 8] {
        let kernel = device.kernel(&Reverse { n }).unwrap();
        let x: Vec<u32> = (0..n).map(|i| i * 3 + 1).collect();
        let given = stream.clone_htod(&x).unwrap();
        let y = stream.alloc::<u32>(n as usize).unwrap();
        kernel.bind().buffer("x", given).buffer("y", &y).launch(&stream).unwrap();
        let reversed: Vec<u32> = x.into_iter().rev().collect();
        assert!(stream.clone_dtoh(&y).unwrap() == reversed, "{n} words");
    }
    let n = (227 << 8) + 1;
    let violation = refused(device.kernel(&Reverse { n })).2;
    assert_eq!(violation, Violation::SharedMemory { given: u64::from(4 * n), needed: 227 << 10 });
}

#[test]
fn the_first_mistake_is_told() {
    let (_, stream, kernel) = affine();
    let x = stream.alloc::<f32>(N).unwrap();
    let (_, _, violation) = refused(kernel.bind().scalar("x", 1.0f32).buffer("z", &x).prepare());
    assert!(matches!(violation, Violation::Unknown { ref argument, .. } if argument == "z"), "{violation:?}");
    let (_, _, violation) = refused(kernel.bind().scalar("x", 1u32).prepare());
    let (given, needed) = (Kind::Number(Type::U32), Kind::Buffer(Type::F32));
    assert_eq!(violation, Violation::Kind { argument: "x", given, needed });
}

#[test]
fn a_launch_is_of_the_streams_device() {
    let (_, _, kernel) = affine();
    let other = device();
    let x = other.default_stream().alloc_zeros::<f32>(8).unwrap();
    let bound = || kernel.bind().scalar("a", 1.0f32).scalar("y0", 0.0f32).dim("n", 0);
    match bound().buffer("x", &x).buffer("y", &x).launch(&other.default_stream()) {
        Err(RuntimeError::OtherDevice { .. }) => {}
        other => panic!("{other:?}"),
    }
    let (_, argument, violation) = refused(bound().buffer("x", &x).buffer("y", &x).prepare());
    assert_eq!(argument.as_deref(), Some("x"));
    assert!(matches!(violation, Violation::OtherDevice { given, needed, .. } if given != needed));
}

#[test]
fn neighbours_do_not_overlap_and_a_byte_does() {
    /// `y` is 16 copies of the last byte of `x`.
    struct Last(u32);
    // SAFETY: no index is beyond the lengths that `args` says.
    unsafe impl Bounded for Last {}

    impl AnyKernel for Last {
        fn bounded(&self) -> Option<&dyn Bounded> {
            Some(self)
        }

        fn entry(&self) -> String {
            format!("last_{}", self.0)
        }
        fn args(&self) -> Vec<ArgDesc> {
            vec![ArgDesc::input::<u8>("x", self.0), ArgDesc::output::<u8>("y", 16)]
        }
        fn launch(&self) -> LaunchRule {
            LaunchRule::new(16)
        }
        fn body(&self, k: K<'_>) {
            let (x, y) = (k.ptr::<u8>("x"), k.ptr_mut::<u8>("y"));
            y.st(k.tid(), x.ld(self.0 - 1));
        }
    }
    let device = device();
    let stream = device.default_stream();
    let memory = stream.clone_htod(&(0..64).collect::<Vec<u8>>()).unwrap();
    let y = memory.slice(16..32).unwrap();
    let launch = |n: u32, start: usize| {
        let kernel = device.kernel(&Last(n)).unwrap();
        let x = memory.slice(start..start + n as usize).unwrap();
        kernel.bind().buffer("x", x).buffer("y", &y).launch(&stream)
    };
    launch(16, 0).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [15; 16]);
    launch(32, 32).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [63; 16]);
    for (n, start) in [(17, 0), (48, 0), (1, 16)] {
        let (_, _, violation) = refused(launch(n, start));
        let bytes = if n == 48 { 16 } else { 1 };
        assert_eq!(violation, Violation::Overlap { argument: "y", other: "x", bytes, shareable: false });
    }
}

/// Devices of an architecture and a size, and of no other.
mod on_the_vm {
    use super::*;

    #[test]
    fn what_a_device_cannot_run_is_refused_before_it_is_built() {
        let refuse = |arch: u16, entry, rule: LaunchRule| {
            refused(virtual_gpu(arch, 4).kernel(&Nothing { entry, rule }))
        };
        let (kernel, argument, violation) = refuse(75, "late", LaunchRule::new(32).min_sm(80));
        assert_eq!((kernel.as_str(), argument), ("late", None));
        assert!(matches!(violation, Violation::Architecture { needed: 80, .. }), "{violation:?}");
        assert!(
            virtual_gpu(80, 4)
                .kernel(&Nothing { entry: "late", rule: LaunchRule::new(32).min_sm(80) })
                .is_ok()
        );

        let shared = |bytes| LaunchRule::new(32).dynamic_shared(bytes);
        let (_, _, violation) = refuse(75, "large", shared(65 << 10));
        assert_eq!(violation, Violation::SharedMemory { given: 65 << 10, needed: 64 << 10 });
        assert!(virtual_gpu(75, 4).kernel(&Nothing { entry: "large", rule: shared(64 << 10) }).is_ok());

        let cluster = LaunchRule { cluster: Some([2, 1, 1]), ..LaunchRule::new(32) };
        assert_eq!(refuse(80, "cluster", cluster.clone()).2, Violation::Cluster { given: [2, 1, 1] });
        assert!(virtual_gpu(90, 4).kernel(&Nothing { entry: "cluster", rule: cluster }).is_ok());

        for block in [[1025, 1, 1], [32, 33, 1], [1, 1, 65], [0, 1, 1]] {
            let rule = LaunchRule::new(32).block_3d(block);
            let violation = refuse(90, "block", rule).2;
            assert!(matches!(violation, Violation::Block { given, .. } if given == block), "{violation:?}");
        }
    }

    #[test]
    fn a_cooperative_kernel_runs_at_the_largest_grid_and_not_beyond_it() {
        // On sm_80, 2048 threads of a multiprocessor: two blocks of 1024, four of 512.
        for (threads, per_multiprocessor) in [(1024, 2), (512, 4)] {
            let device = virtual_gpu(80, 3);
            let stream = device.default_stream();
            let kernel = device.kernel(&GridSum { threads }).unwrap();
            let max = kernel.function().max_cooperative_grid(threads, 0);
            assert_eq!(max, 3 * per_multiprocessor);
            let launch = |blocks: u64| {
                let arrived = stream.alloc_zeros::<u32>(1).unwrap();
                let [parts, sums] = [(); 2].map(|()| stream.alloc_zeros::<u32>(blocks as usize).unwrap());
                let bound = kernel.bind().buffer("arrived", arrived).buffer("parts", parts);
                bound.buffer("sums", &sums).dim("blocks", blocks).launch(&stream).map(|()| sums)
            };
            let sums = launch(max).unwrap();
            let sum = (max * (max + 1) / 2) as u32;
            assert_eq!(stream.clone_dtoh(&sums).unwrap(), vec![sum; max as usize]);
            let launches = device.statistics().launches;
            let (_, _, violation) = refused(launch(max + 1));
            assert_eq!(violation, Violation::NotResident { given: max + 1, needed: max });
            stream.synchronize().unwrap();
            assert_eq!(device.statistics().launches, launches);
        }
    }
}
