//! Programmatic dependent launches: what overlaps and what does not, in streams and in graphs.

#![allow(unsafe_code, reason = "raw launches are unsafe")]

use warpwright_runtime::{
    Buffer, Device, Function, LaunchAttributes, LaunchConfig, Result, Stream, VmConfig,
};

/// `add` adds 1 to each element behind its wait. `copy` does so with what it copies; `late` reads before the wait;
/// `careless` has no wait.
const PTX: &str = "
.version 7.8
.target sm_90
.address_size 64

.visible .entry add(.param .u64 x, .param .u64 y)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    griddepcontrol.launch_dependents;
    ld.param.u64 %rd1, [x];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    griddepcontrol.wait;
    ld.global.u32 %r2, [%rd2];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%rd2], %r2;
    ret;
}

.visible .entry copy(.param .u64 x, .param .u64 y)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<6>;
    griddepcontrol.launch_dependents;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd3, %r1, 4, %rd1;
    mad.wide.u32 %rd4, %r1, 4, %rd2;
    griddepcontrol.wait;
    ld.global.u32 %r2, [%rd3];
    st.global.u32 [%rd4], %r2;
    ret;
}

.visible .entry late(.param .u64 x, .param .u64 y)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<6>;
    griddepcontrol.launch_dependents;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd3, %r1, 4, %rd1;
    mad.wide.u32 %rd4, %r1, 4, %rd2;
    ld.global.u32 %r2, [%rd3];
    griddepcontrol.wait;
    st.global.u32 [%rd4], %r2;
    ret;
}

.visible .entry careless(.param .u64 x, .param .u64 y)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd3, %r1, 4, %rd1;
    mad.wide.u32 %rd4, %r1, 4, %rd2;
    ld.global.u32 %r2, [%rd3];
    st.global.u32 [%rd4], %r2;
    ret;
}
";

const N: u32 = 64;

struct Program {
    stream: Stream,
    functions: [Function; 4],
    x: Buffer<u32>,
    y: Buffer<u32>,
}

const ADD: usize = 0;
const COPY: usize = 1;
const LATE: usize = 2;
const CARELESS: usize = 3;

/// What a program does in its stream.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Launches a kernel that may overlap with what is in front of it.
    Dependent(usize),
    /// Launches a kernel behind everything.
    Plain(usize),
    /// Fills a buffer that no kernel uses.
    Fill,
    /// Copies within it.
    Copy,
    /// Waits for an event of another stream.
    Event,
}

use Step::*;

impl Program {
    fn new(device: &Device) -> Program {
        let stream = device.default_stream();
        let module = device.load_ptx(PTX).unwrap();
        let functions = ["add", "copy", "late", "careless"].map(|name| module.load_function(name).unwrap());
        let x = stream.alloc_zeros(N as usize).unwrap();
        let y = stream.alloc_zeros(N as usize).unwrap();
        Program { stream, functions, x, y }
    }

    fn step(&self, step: Step, aside: &Buffer<u32>) -> Result<()> {
        let (kernel, attributes) = match step {
            Dependent(kernel) => (kernel, LaunchAttributes::default().dependent()),
            Plain(kernel) => (kernel, LaunchAttributes::default()),
            Fill => return self.stream.memset_zeros(aside),
            Copy => {
                let half = N as usize / 2;
                return self.stream.memcpy_dtod(&aside.slice(..half)?, &aside.slice(half..)?);
            }
            Event => {
                let other = self.stream.device().new_stream()?;
                return self.stream.wait_event(&other.record_event()?);
            }
        };
        let config = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (N, 1, 1), shared_mem_bytes: 0 };
        let launch = self.stream.launch_builder(&self.functions[kernel]).arg(&self.x).arg(&self.y);
        // SAFETY: as many threads as the buffers have elements access one each.
        unsafe { launch.attributes(attributes).launch(config) }
    }

    /// Does the steps, which give `y` its value, or that many replays of them.
    fn run(&self, steps: &[Step], replays: Option<usize>) -> Result<Vec<u32>> {
        let aside = self.stream.alloc_zeros(N as usize)?;
        if replays.is_some() {
            self.stream.begin_capture()?;
        }
        steps.iter().try_for_each(|step| self.step(*step, &aside))?;
        if let Some(replays) = replays {
            let exec = self.stream.end_capture()?.instantiate()?;
            (0..replays).try_for_each(|_| exec.launch(&self.stream))?;
        }
        self.stream.clone_dtoh(&self.y)
    }
}

fn virtual_gpu() -> VmConfig {
    let mut config = VmConfig::default();
    config.device.arch = warpwright_ptx::ir::Arch::sm(90);
    config
}

#[test]
fn overlapping_launches_have_the_results_of_launches_in_order() {
    let device = warpwright_testing::device(virtual_gpu());
    let chain: Vec<Step> = (0..20).map(|_| Dependent(ADD)).chain([Dependent(COPY)]).collect();
    let mixed = [
        Plain(ADD),
        Dependent(ADD),
        Fill,
        Dependent(ADD),
        Plain(CARELESS),
        Dependent(ADD),
        Copy,
        Dependent(COPY),
    ];
    for (steps, adds) in [(&chain[..], 20), (&mixed, 4)] {
        let program = Program::new(&device);
        assert_eq!(program.run(steps, None).unwrap(), [adds; N as usize], "{steps:?}");
        assert_eq!(program.run(steps, Some(3)).unwrap(), [4 * adds; N as usize], "{steps:?}, replayed");
    }
}

#[test]
fn only_code_with_a_wait_is_dependent() {
    let device = warpwright_testing::device(virtual_gpu());
    let program = Program::new(&device);
    let waits = program.functions.each_ref().map(|function| function.attributes().waits_for_grids);
    assert_eq!(waits, [true, true, true, false]);
    let steps = [Dependent(ADD), Dependent(CARELESS)];
    assert_eq!(program.run(&steps, None).unwrap(), [1; N as usize]);
}

/// What the checks find, and what becomes of early launches, is the virtual GPU's.
mod on_the_vm {
    use super::*;
    use warpwright_runtime::{Order, RuntimeError};
    use warpwright_vm::{Between, FindingKind, Options};

    const ORDERS: [Order; 5] =
        [Order::Issue, Order::Reverse, Order::Random(1), Order::Random(2), Order::Random(3)];

    fn device(order: Order, checked: bool) -> Device {
        let options = if checked { Options::checked() } else { Options::default() };
        Device::vm(VmConfig { order, options, ..virtual_gpu() }).unwrap()
    }

    #[test]
    fn a_late_wait_is_found_where_launches_overlap() {
        let broken: &[&[Step]] = &[
            &[Plain(ADD), Dependent(LATE)],
            &[Dependent(ADD), Dependent(ADD), Dependent(LATE)],
            &[Fill, Plain(ADD), Dependent(LATE), Dependent(ADD)],
            &[Plain(CARELESS), Plain(ADD), Dependent(LATE)],
        ];
        let correct: &[&[Step]] = &[
            &[Plain(ADD), Plain(LATE)],
            &[Plain(ADD), Fill, Dependent(LATE)],
            &[Plain(ADD), Copy, Dependent(LATE)],
            &[Dependent(LATE), Dependent(ADD)],
            // A launch without a wait begins behind everything, and so does what comes behind it.
            &[Plain(ADD), Dependent(CARELESS), Dependent(LATE)],
            &[Dependent(ADD), Dependent(ADD), Dependent(COPY), Plain(LATE)],
        ];
        for order in ORDERS {
            for (cases, are_broken) in [(broken, true), (correct, false)] {
                for steps in cases {
                    for replays in [None, Some(2)] {
                        let device = device(order, true);
                        let result = Program::new(&device).run(steps, replays);
                        let findings = device.take_findings();
                        let races = findings.iter().all(|finding| {
                            matches!(finding.kind, FindingKind::Race { between: Between::Launches, .. })
                        });
                        assert!(races, "{order}, {steps:?}: {findings:?}");
                        let failed = matches!(result, Err(RuntimeError::Failed(_)));
                        let found = (failed, findings.is_empty());
                        assert_eq!(found, (are_broken, !are_broken), "{order}, {steps:?}, {replays:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_event_of_another_stream_ends_a_chain() {
        for order in ORDERS {
            let device = device(order, true);
            let steps = [Plain(ADD), Event, Dependent(LATE)];
            assert_eq!(Program::new(&device).run(&steps, None).unwrap(), [1; N as usize], "{order}");
        }
    }

    #[test]
    fn dependent_launches_begin_early_in_other_orders() {
        for (order, early) in [(Order::Issue, false), (Order::Reverse, true)] {
            for replays in [None, Some(1)] {
                let program = Program::new(&device(order, false));
                let y = program.run(&[Plain(ADD), Dependent(LATE)], replays).unwrap();
                assert_eq!(y, [u32::from(!early); N as usize], "{order}, {replays:?}");
            }
        }
    }
}

/// Launches by contract: whether they overlap is not the caller's concern.
mod by_contract {
    use super::*;
    use warpwright_dsl::*;
    use warpwright_runtime::{Order, PreparedLaunch, RuntimeError};
    use warpwright_vm::Options;

    /// When a kernel releases what is behind it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Choice)]
    enum Release {
        /// Behind its wait, as the DSL has it.
        Default,
        /// Before it.
        Early,
    }

    /// `y = x + 1`.
    #[derive(Clone, Debug, PartialEq, Config)]
    struct Add {
        release: Release,
        bounded: bool,
    }

    #[derive(Args)]
    #[args(of = Add)]
    struct AddArgs<M: Mode> {
        #[arg(len = N)]
        x: M::In<u32>,
        #[arg(len = N)]
        y: M::Out<u32>,
    }

    // SAFETY: there are as many threads as elements, and each accesses its own.
    unsafe impl Bounded for Add {}

    impl Kernel for Add {
        type Args<M: Mode> = AddArgs<M>;

        fn launch(&self) -> LaunchRule {
            LaunchRule::new(N)
        }

        fn bounded(&self) -> Option<&dyn Bounded> {
            self.bounded.then_some(self)
        }

        fn body<'k>(&self, k: K<'k>, AddArgs { x, y }: AddArgs<Body<'k>>) {
            if self.release == Release::Early {
                k.release_launches();
                k.wait_for_launches();
            }
            y.st(k.tid(), x.ld(k.tid()) + 1);
        }
    }

    /// `y = x + w`, both read before the wait: the constant `w` as it should, and `x` so that results tell whether it has
    /// begun early.
    #[derive(Clone, Debug, PartialEq, Config)]
    struct Peek;

    #[derive(Args)]
    #[args(of = Peek)]
    struct PeekArgs<M: Mode> {
        #[arg(len = N)]
        x: M::In<u32>,
        #[arg(len = N, constant)]
        w: M::In<u32>,
        #[arg(len = N)]
        y: M::Out<u32>,
    }

    // SAFETY: as above.
    unsafe impl Bounded for Peek {}

    impl Kernel for Peek {
        type Args<M: Mode> = PeekArgs<M>;

        fn launch(&self) -> LaunchRule {
            LaunchRule::new(N)
        }

        fn bounded(&self) -> Option<&dyn Bounded> {
            Some(self)
        }

        fn body<'k>(&self, k: K<'k>, PeekArgs { x, w, y }: PeekArgs<Body<'k>>) {
            let sum = x.ld(k.tid()) + w.ld(k.tid());
            k.wait_for_launches();
            y.st(k.tid(), sum);
        }
    }

    /// The kernels with their buffers, which are zeros.
    struct Rig {
        device: Device,
        stream: Stream,
        x: Buffer<u32>,
        w: Buffer<u32>,
        y: Buffer<u32>,
    }

    /// A launch: to which buffer `Add` writes, or `Peek`.
    #[derive(Clone, Copy, Debug)]
    enum Call {
        AddToX,
        AddToW,
        AddToXEarly,
        AddToXUnbounded,
        Peek,
    }

    impl Rig {
        fn new(order: Order, checked: bool) -> Rig {
            let options = if checked { Options::checked() } else { Options::default() };
            let device = Device::vm(VmConfig { order, options, ..virtual_gpu() }).unwrap();
            let stream = device.default_stream();
            let [x, w, y] = [(); 3].map(|()| stream.alloc_zeros(N as usize).unwrap());
            Rig { device, stream, x, w, y }
        }

        fn add(&self, release: Release, bounded: bool, to: &Buffer<u32>) -> PreparedLaunch {
            let kernel = self.device.kernel(&Add { release, bounded }).unwrap();
            let x = self.stream.alloc_zeros::<u32>(N as usize).unwrap();
            kernel.with(AddArgs { x: &x, y: to }).prepare().unwrap()
        }

        fn peek(&self, w: &Buffer<u32>) -> PreparedLaunch {
            let kernel = self.device.kernel(&Peek).unwrap();
            kernel.with(PeekArgs { x: &self.x, w, y: &self.y }).prepare().unwrap()
        }

        fn prepare(&self, call: Call) -> PreparedLaunch {
            match call {
                Call::AddToX => self.add(Release::Default, true, &self.x),
                Call::AddToW => self.add(Release::Default, true, &self.w),
                Call::AddToXEarly => self.add(Release::Early, true, &self.x),
                Call::AddToXUnbounded => self.add(Release::Default, false, &self.x),
                Call::Peek => self.peek(&self.w),
            }
        }

        /// What `y` is after these launches, in a stream or in a graph.
        fn run(&self, calls: &[Call], in_graph: bool) -> Result<u32> {
            let launches: Vec<_> = calls.iter().map(|call| self.prepare(*call)).collect();
            assert!(launches.iter().all(PreparedLaunch::is_dependent));
            // What is in front must not be complete before the others are issued.
            self.stream.memset_zeros(&self.y)?;
            let all = || launches.iter().try_for_each(|launch| self.stream.launch(launch));
            if in_graph {
                self.stream.begin_capture()?;
                all()?;
                self.stream.end_capture()?.instantiate()?.launch(&self.stream)?;
            } else {
                all()?;
            }
            let y = self.stream.clone_dtoh(&self.y)?;
            assert!(y.iter().all(|value| *value == y[0]), "{y:?}");
            Ok(y[0])
        }
    }

    /// The launches, what they give if a launch does not overlap with one that may write its constants and with others
    /// does, and whether an overlap is to be found.
    const CASES: [(&[Call], u32, bool); 6] = [
        (&[Call::AddToX, Call::Peek], 0, true),
        (&[Call::AddToW, Call::Peek], 1, false),
        (&[Call::AddToW, Call::AddToX, Call::Peek], 1, true),
        (&[Call::AddToW, Call::AddToXEarly, Call::Peek], 2, false),
        (&[Call::AddToXUnbounded, Call::Peek], 1, false),
        (&[Call::AddToX, Call::AddToW, Call::Peek], 2, false),
    ];

    #[test]
    fn a_launch_begins_behind_one_that_may_write_its_constants() {
        for (calls, early, races) in CASES {
            for in_graph in [false, true] {
                let result = Rig::new(Order::Reverse, false).run(calls, in_graph).unwrap();
                assert_eq!(result, early, "{calls:?}, graph: {in_graph}");
                for order in [Order::Issue, Order::Reverse, Order::Random(1), Order::Random(2)] {
                    let rig = Rig::new(order, true);
                    let failed = rig.run(calls, in_graph).is_err();
                    assert_eq!(failed, races, "{calls:?}, {order}, graph: {in_graph}");
                }
            }
        }
    }

    #[test]
    fn a_node_is_not_updated_to_overlap_with_one_that_writes_its_constants() {
        let rig = Rig::new(Order::Issue, false);
        let [add, peek] = [Call::AddToX, Call::Peek].map(|call| rig.prepare(call));
        rig.stream.begin_capture().unwrap();
        [&add, &peek].iter().try_for_each(|launch| rig.stream.launch(launch)).unwrap();
        let mut exec = rig.stream.end_capture().unwrap().instantiate().unwrap();
        let nodes: Vec<_> = exec.nodes().map(|(id, _)| id).collect();
        let mut update = |node: usize, launch: &PreparedLaunch| match exec.update(nodes[node], launch) {
            Ok(()) => None,
            Err(RuntimeError::GraphOverlap { node, constant_of }) => Some((node, constant_of)),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(update(0, &rig.prepare(Call::AddToW)), Some((0, 1)));
        assert_eq!(update(1, &rig.peek(&rig.x)), Some((1, 1)));
        let other = rig.stream.alloc_zeros(N as usize).unwrap();
        assert_eq!(update(0, &rig.add(Release::Default, true, &other)), None);
        assert_eq!(update(1, &rig.peek(&rig.w)), None);
    }
}
