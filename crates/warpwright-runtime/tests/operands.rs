//! Operands of kernels that others call: what is refused, what is kept alive and for how long, and that calls find what
//! they were given.

mod small;

use small::*;
use std::time::{Duration, Instant};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_ptx::ir::{Scope, Type};
use warpwright_runtime::{
    CompiledKernel, HostBuffer, Kind, Measure, OperandBinder, OperandList, OperandTable, Operands,
    RuntimeError, Stream, Violation,
};

const N: usize = 192;

/// Calls `Affine` from records of its five words, the grid's extent and the number of elements, and so two records.
struct CallsAffine;

impl AnyKernel for CallsAffine {
    fn entry(&self) -> String {
        "calls_affine".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        vec![
            ArgDesc::input::<u64>("operands", Extent::dim("calls").times(6)),
            ArgDesc::scalar::<u32>("calls"),
        ]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(64)
    }

    fn body(&self, k: K<'_>) {
        let (operands, calls) = (k.ptr::<u64>("operands"), k.scalar::<u32>("calls"));
        k.each(k.range(k.u32(0)..calls), |call| {
            let record = operands.at(call * 6);
            let call = Call::new(k.teams(2), operands, call * 6);
            k.each(k.range(k.u32(0)..record.ld(5).to::<u32>()), |block| {
                call.run(&Affine, [block, k.u32(0), k.u32(0)]);
                k.sync();
            });
        });
    }
}

/// Waits until the host says so.
struct Spin;

// SAFETY: no index is beyond the lengths that `args` says.
unsafe impl Bounded for Spin {}

impl AnyKernel for Spin {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn entry(&self) -> String {
        "spin".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        vec![ArgDesc::in_out::<u32>("flag", 1)]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }

    fn body(&self, k: K<'_>) {
        let flag = k.ptr_mut::<u32>("flag");
        k.while_(|| flag.acquire(Scope::Sys).ld(0).eq(0), || {});
    }
}

/// Keeps a stream busy until it is dropped.
struct Hold(HostBuffer<u32>);

impl Hold {
    fn new(stream: &Stream) -> Hold {
        let hold = Hold(stream.device().alloc_mapped(1).unwrap());
        let spin = stream.device().kernel(&Spin).unwrap();
        spin.bind().buffer("flag", &hold.0).launch(stream).unwrap();
        hold
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.set(0, 1).unwrap();
    }
}

fn numbers(from: f32) -> Vec<f32> {
    (0..N).map(|i| i as f32 + from).collect()
}

fn with_numbers(binder: OperandBinder, a: f32, y0: f32) -> OperandBinder {
    binder.scalar("a", a).scalar("y0", y0).scalar("n", N as u32)
}

/// `y = 2 x + 1`, then `z = -y`: what is between them, and the input, only the table keeps.
fn two_calls(stream: &Stream, z: &warpwright_runtime::Buffer<f32>) -> OperandTable {
    let device = stream.device();
    let x = stream.clone_htod(&numbers(5.0)).unwrap();
    let y = stream.alloc::<f32>(N).unwrap();
    let mut list = OperandList::new();
    let calls = [(&x, &y, 2.0, 1.0), (&y, z, -1.0, 0.0)];
    for (place, (from, to, a, y0)) in calls.into_iter().enumerate() {
        let binder = device.operands(&Affine).unwrap().buffer("y", to).buffer("x", from);
        let operands: Operands = with_numbers(binder, a, y0).resolve().unwrap();
        assert_eq!((operands.kernel(), operands.grid(), operands.len()), ("affine", [3, 1, 1], 5));
        assert_eq!(list.push(&operands), 6 * place);
        assert_eq!(list.push_words([operands.grid()[0].into()]), 6 * place + 5);
    }
    let table = list.upload(stream).unwrap();
    assert_eq!((table.len(), table.references().len()), (12, 3));
    table
}

/// Launches [`CallsAffine`] with a table of two records.
fn launch_two(caller: &CompiledKernel, table: &OperandTable, stream: &Stream) -> Result<(), RuntimeError> {
    let binder = caller.bind().buffer("operands", table).scalar("calls", 2u32);
    // SAFETY: the table has two records as `CallsAffine` reads them, of a kernel that is bounded. Nobody writes others.
    unsafe { binder.launch_unbounded(stream) }
}

fn expected() -> Vec<f32> {
    numbers(5.0).into_iter().map(|x| -(2.0 * x + 1.0)).collect()
}

#[test]
fn calls_find_what_they_were_given() {
    let device = device();
    let stream = device.default_stream();
    let z = stream.alloc::<f32>(N).unwrap();
    let table = two_calls(&stream, &z);
    let caller = device.kernel(&CallsAffine).unwrap();
    let launch = || launch_two(&caller, &table, &stream);
    launch().unwrap();
    assert_eq!(stream.clone_dtoh(&z).unwrap(), expected());
    // What the table refers to is nobody else's while it is there.
    let other = stream.clone_htod(&vec![0.5f32; N]).unwrap();
    launch().unwrap();
    assert_eq!(stream.clone_dtoh(&z).unwrap(), expected());
    assert_eq!(stream.clone_dtoh(&other).unwrap(), vec![0.5; N]);
    assert!(device.take_findings().is_empty());
}

#[test]
fn memory_is_free_when_the_table_is_gone() {
    let device = device();
    let stream = device.default_stream();
    let z = stream.alloc::<f32>(N).unwrap();
    let live = || device.pool_statistics().live;
    assert_eq!(live(), 1);
    let table = two_calls(&stream, &z);
    assert_eq!(live(), 4);
    let copy = table.clone();
    drop(table);
    assert_eq!(live(), 4);
    // Any handle of the memory will do.
    let slice = copy.buffer().cast::<u32>().unwrap().slice(2..4).unwrap();
    drop(copy);
    assert_eq!(live(), 4);
    drop(slice);
    assert_eq!(live(), 1);
    // A list that is never uploaded has its buffers too.
    let mut list = OperandList::new();
    let x = stream.clone_htod(&numbers(0.0)).unwrap();
    let binder = device.operands(&Affine).unwrap().buffer("x", &x).buffer("y", &z);
    list.push(&with_numbers(binder, 1.0, 0.0).resolve().unwrap());
    drop(x);
    assert_eq!(live(), 2);
    drop(list);
    assert_eq!(live(), 1);
}

#[test]
fn what_was_issued_has_what_the_table_refers_to() {
    let device = device();
    let stream = device.default_stream();
    let z = stream.alloc::<f32>(N).unwrap();
    let table = two_calls(&stream, &z);
    stream.synchronize().unwrap();
    let hold = Hold::new(&stream);
    let caller = device.kernel(&CallsAffine).unwrap();
    launch_two(&caller, &table, &stream).unwrap();
    drop(table);
    // Whatever the pool holds: the launch has its memory.
    device.trim_pool(0);
    drop(hold);
    assert_eq!(stream.clone_dtoh(&z).unwrap(), expected());
}

#[test]
fn what_was_captured_has_what_the_table_refers_to() {
    let device = device();
    let stream = device.default_stream();
    let z = stream.alloc::<f32>(N).unwrap();
    let table = two_calls(&stream, &z);
    let caller = device.kernel(&CallsAffine).unwrap();
    stream.begin_capture().unwrap();
    launch_two(&caller, &table, &stream).unwrap();
    let graph = stream.end_capture().unwrap().instantiate().unwrap();
    drop(table);
    assert_eq!(device.pool_statistics().live, 4);
    for _ in 0..2 {
        let other = stream.clone_htod(&vec![0.5f32; N]).unwrap();
        graph.launch(&stream).unwrap();
        assert_eq!(stream.clone_dtoh(&other).unwrap(), vec![0.5; N]);
        assert_eq!(stream.clone_dtoh(&z).unwrap(), expected());
        stream.memset_zeros(&z).unwrap();
    }
    drop(graph);
    assert_eq!(device.pool_statistics().live, 1);
}

/// A stream that uses the table uses what it refers to: that is nobody else's before the stream is done.
#[test]
fn another_stream_that_uses_the_table_uses_what_it_refers_to() {
    let device = device();
    let (home, other) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let z = home.alloc::<f32>(N).unwrap();
    let caller = device.kernel(&CallsAffine).unwrap();
    for used in [false, true] {
        let table = two_calls(&home, &z);
        home.synchronize().unwrap();
        let held: Vec<u64> = table.references().iter().map(|buffer| buffer.device_ptr()).collect();
        let hold = Hold::new(&other);
        if used {
            launch_two(&caller, &table, &other).unwrap();
        }
        drop(table);
        let new = [(); 2].map(|()| home.alloc::<f32>(N).unwrap());
        let taken = new.iter().filter(|new| held.contains(&new.device_ptr())).count();
        assert_eq!(taken, if used { 0 } else { 2 }, "used: {used}");
        drop(hold);
        let start = Instant::now();
        while !other.is_idle() {
            assert!(start.elapsed() < Duration::from_secs(60), "it never ends");
        }
        device.synchronize().unwrap();
    }
}

#[test]
fn what_a_launch_would_refuse_is_refused() {
    let (device, elsewhere) = (device(), device());
    let stream = device.default_stream();
    let [x, y] = [(); 2].map(|()| stream.alloc::<f32>(N).unwrap());
    let begin = || device.operands(&Affine).unwrap();
    let whole = || with_numbers(begin(), 1.0, 0.0);
    let halves = stream.alloc::<u16>(N).unwrap();
    let foreign = elsewhere.default_stream().alloc::<f32>(N).unwrap();
    let f32s = Kind::Buffer(Type::F32);
    let short =
        Violation::TooShort { argument: "x", given: 191, needed: 192, extent: Box::new(Extent::dim("n")) };
    let misaligned = x.slice(1..).unwrap();
    let cases = [
        (whole().buffer("y", &y), "x", Violation::Missing { argument: "x", needed: f32s }),
        (whole().buffer("y", &y).buffer("y", &x), "y", Violation::Twice { argument: "y" }),
        (
            whole().buffer("y", &y).buffer("x", &halves),
            "x",
            Violation::Type { argument: "x", given: Kind::Buffer(Type::U16), needed: f32s },
        ),
        (whole().buffer("y", &y).buffer("x", x.slice(..N - 1).unwrap()), "x", short),
        (
            begin()
                .scalar("a", 1.0f32)
                .scalar("y0", 0.0f32)
                .dim("n", 8)
                .buffer("x", &misaligned)
                .buffer("y", &y),
            "x",
            Violation::Misaligned { argument: "x", given: x.device_ptr() + 4, needed: 16 },
        ),
        (
            begin()
                .scalar("a", 1.0f32)
                .scalar("y0", 0.0f32)
                .dim("n", 64)
                .buffer("x", &x)
                .buffer("y", x.slice(32..).unwrap()),
            "y",
            Violation::Overlap { argument: "y", other: "x", bytes: 128, shareable: true },
        ),
    ];
    for (binder, argument, expected) in cases {
        assert_eq!(refused(binder.resolve()), ("affine".into(), Some(argument.into()), expected));
    }
    let given = refused(whole().buffer("y", &y).buffer("x", &foreign).resolve());
    assert!(matches!(given.2, Violation::OtherDevice { argument: "x", .. }), "{given:?}");
    let unknown = refused(whole().buffer("w", &y).resolve());
    assert!(matches!(unknown.2, Violation::Unknown { argument, .. } if argument == "w"));
    let counters = stream.alloc_zeros::<u32>(64).unwrap();
    let count = || device.operands(&Count).unwrap().buffer("counters", &counters);
    let missing = Violation::MissingDim { dim: "rows", of: Measure::Length { argument: "counters" } };
    assert_eq!(refused(count().resolve()).2, missing);
    assert_eq!(count().dim("rows", 2).resolve().unwrap().grid(), [2, 1, 1]);
    // In place, as a launch may be.
    assert!(whole().buffer("x", &x).buffer("y", &x).resolve().is_ok());
}

#[test]
fn kernels_that_nobody_can_call_have_no_operands() {
    let device = device_of(80);
    let operands = |kernel: &dyn AnyKernel| device.operands(kernel);
    assert_eq!(refused(operands(&GridSum { threads: 64 })).2, Violation::NotCallable);
    let rule = LaunchRule { cluster: Some([2, 1, 1]), ..LaunchRule::new(32) };
    assert_eq!(refused(operands(&Nothing { entry: "clusters", rule })).2, Violation::NotCallable);
    let late = Nothing { entry: "late", rule: LaunchRule::new(32).min_sm(90) };
    assert!(matches!(refused(operands(&late)).2, Violation::Architecture { needed: 90, .. }));
    let wide = Nothing { entry: "wide", rule: LaunchRule::new(2048) };
    assert!(matches!(refused(operands(&wide)).2, Violation::Block { given: [2048, 1, 1], .. }));
    // Nothing was built or loaded for all that.
    assert_eq!(device.statistics().launches, 0);
}

#[test]
fn a_table_is_of_the_device_of_its_buffers() {
    let (device, elsewhere) = (device(), device());
    let stream = device.default_stream();
    let x = stream.alloc::<f32>(N).unwrap();
    let mut list = OperandList::new();
    let binder = device.operands(&Affine).unwrap().buffer("x", &x).buffer("y", &x);
    list.push(&with_numbers(binder, 1.0, 0.0).resolve().unwrap());
    let uploaded = list.clone().upload(&elsewhere.default_stream());
    assert!(matches!(uploaded, Err(RuntimeError::OtherDevice { operation: "upload", .. })));
    // Nothing can be allocated while a stream captures.
    stream.begin_capture().unwrap();
    assert!(matches!(list.clone().upload(&stream), Err(RuntimeError::Capturing { .. })));
    stream.end_capture().unwrap();
    assert_eq!(list.upload(&stream).unwrap().len(), 5);
    // A list of numbers is of any device.
    let mut numbers = OperandList::new();
    assert!(numbers.is_empty());
    numbers.push_words(0..3);
    let table = numbers.upload(&elsewhere.default_stream()).unwrap();
    assert_eq!(elsewhere.default_stream().clone_dtoh(table.buffer()).unwrap(), [0, 1, 2]);
}
