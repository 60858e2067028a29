//! The library as compiled programs use it, on the driver over the virtual GPU.
//!
//! Each test has a process of its own, in which the loader finds that driver.

use crate::common::{Image, MACHINE_CODE, PTX, call, load};
use libloading::Library;
use std::cell::RefCell;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use warpwright_testing::Apart;

/// `add` adds a value to the words of a buffer, one for each thread of a block, and counts itself; `twice` doubles `both`; `stop`
/// traps.
const TEXT: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 launches = 40;
.visible .const .align 4 .b8 extra[8];
.global .attribute(.managed) .align 4 .u32 both = 6;
.visible .entry add(.param .u64 x, .param .u32 value)
{
    .reg .b32 %r<7>;
    .reg .b64 %rd<3>;
    .reg .pred %p;
    ld.param.u64 %rd1, [x];
    ld.param.u32 %r1, [value];
    mov.u32 %r2, %tid.x;
    mad.wide.u32 %rd2, %r2, 4, %rd1;
    ld.const.u32 %r3, [extra+4];
    ld.global.u32 %r4, [%rd2];
    add.u32 %r4, %r4, %r1;
    add.u32 %r4, %r4, %r3;
    st.global.u32 [%rd2], %r4;
    setp.ne.u32 %p, %r2, 0;
    @%p ret;
    atom.global.add.u32 %r5, [launches], 1;
    ret;
}
.visible .entry twice()
{
    .reg .b32 %r<2>;
    ld.global.u32 %r0, [both];
    add.u32 %r0, %r0, %r0;
    st.global.u32 [both], %r0;
    ret;
}
.visible .entry stop()
{
    trap;
}
";

/// What stands in host code for kernels and variables: their addresses alone count.
static ADD: u8 = 0;
static STOP: u8 = 1;
static LAUNCHES: u8 = 2;
static EXTRA: u8 = 3;
static NOTHING: u8 = 4;
static TWICE: u8 = 5;

fn of(host: &'static u8) -> *const c_void {
    std::ptr::from_ref(host).cast()
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Dim3(c_uint, c_uint, c_uint);

const ONE: Dim3 = Dim3(1, 1, 1);

/// A stream, as a number: 0 is the default stream.
type Stream = usize;

/// The runtime with a registered image.
struct Program {
    cudart: Library,
    image: *const c_void,
    /// The driver reads it when something of it is first used.
    _code: Box<Image>,
}

impl Program {
    fn new(kind: u16, payload: &[u8]) -> Program {
        Program::of(load(None), kind, payload)
    }

    /// Registers the image as generated code does before `main`.
    fn of(cudart: Library, kind: u16, payload: &[u8]) -> Program {
        let code = Image::new(kind, payload);
        let image = call!(*const c_void; cudart.__cudaRegisterFatBinary(code.wrapper()));
        for (host, name) in [(&ADD, c"add"), (&STOP, c"stop"), (&TWICE, c"twice")] {
            let (name, none) = (name.as_ptr(), null::<c_void>());
            call!((); cudart.__cudaRegisterFunction(
                image, of(host), name, name, -1 as c_int, none, none, none, none, none
            ));
        }
        for (host, name, bytes) in [(&LAUNCHES, c"launches", 4usize), (&EXTRA, c"extra", 8)] {
            let (name, no) = (name.as_ptr(), 0 as c_int);
            call!((); cudart.__cudaRegisterVar(image, of(host), name, name, no, bytes, no, no));
        }
        call!((); cudart.__cudaRegisterFatBinaryEnd(image));
        Program { cudart, image, _code: code }
    }

    fn text() -> Program {
        let text = [TEXT.as_bytes(), b"\0"].concat();
        Program::new(PTX, &text)
    }

    /// Words in memory of the device.
    fn words(&self, values: &[u32]) -> *mut c_void {
        let cudart = &self.cudart;
        let mut address = null_mut();
        assert_eq!(call!(cudart.cudaMalloc(&raw mut address, size_of_val(values))), 0);
        assert_eq!(call!(cudart.cudaMemcpy(address, values.as_ptr(), size_of_val(values), TO_DEVICE)), 0);
        address
    }

    fn read<const N: usize>(&self, address: *const c_void) -> [u32; N] {
        let cudart = &self.cudart;
        let mut values = [0; N];
        assert_eq!(call!(cudart.cudaMemcpy(values.as_mut_ptr(), address, 4 * N, FROM_DEVICE)), 0);
        values
    }

    /// `<<<grid, block>>>`, as generated code does it.
    fn launch(&self, host: &'static u8, grid: Dim3, block: Dim3, x: *mut c_void, value: u32) -> c_int {
        let cudart = &self.cudart;
        assert_eq!(call!(cudart.__cudaPushCallConfiguration(grid, block, 0usize, 0usize)), 0);
        let (mut kernel, mut to) = (null_mut::<c_void>(), (ONE, ONE, 7usize, 7usize));
        assert_eq!(call!(cudart.__cudaGetKernel(&raw mut kernel, of(host))), 0);
        let (grid, block, shared, stream) = (&raw mut to.0, &raw mut to.1, &raw mut to.2, &raw mut to.3);
        assert_eq!(call!(cudart.__cudaPopCallConfiguration(grid, block, shared, stream)), 0);
        let params = [(&raw const x).cast::<c_void>(), (&raw const value).cast()];
        call!(cudart.__cudaLaunchKernel(kernel, to.0, to.1, params.as_ptr(), to.2, to.3))
    }

    fn launches(&self) -> u32 {
        let (cudart, mut launches) = (&self.cudart, 0u32);
        let offset = 0usize;
        assert_eq!(
            call!(cudart.cudaMemcpyFromSymbol(&raw mut launches, of(&LAUNCHES), 4usize, offset, FROM_DEVICE)),
            0
        );
        launches
    }

    /// The last error, which is forgotten.
    fn last(&self) -> c_int {
        let cudart = &self.cudart;
        let (peeked, last) = (call!(cudart.cudaPeekAtLastError()), call!(cudart.cudaGetLastError()));
        assert_eq!(peeked, last);
        last
    }
}

/// The directions of copies.
const TO_DEVICE: c_int = 1;
const FROM_DEVICE: c_int = 2;
const IN_DEVICE: c_int = 3;
const BY_ADDRESSES: c_int = 4;

/// Runs a test in a process with a virtual GPU; `None` there.
fn apart(name: &str) -> Option<()> {
    let ended = Apart::new(&format!("programs::{name}"))?.driver("80").run();
    assert!(ended.status.success(), "{}{}", ended.stdout, ended.stderr);
    Some(())
}

#[test]
fn a_registered_kernel_runs() {
    if apart("a_registered_kernel_runs").is_some() {
        return;
    }
    let program = Program::text();
    let cudart = &program.cudart;
    let x = program.words(&[1, 2, 3, 4]);
    assert_eq!(program.launch(&ADD, ONE, Dim3(4, 1, 1), x, 10), 0);
    assert_eq!(program.read(x), [11, 12, 13, 14]);
    assert_eq!(program.launches(), 41);
    // A variable is written at an offset, and within its bounds.
    let (seven, offset) = (7u32, 4usize);
    let extra = of(&EXTRA);
    assert_eq!(call!(cudart.cudaMemcpyToSymbol(extra, &raw const seven, 4usize, offset, TO_DEVICE)), 0);
    assert_eq!(call!(cudart.cudaMemcpyToSymbol(extra, &raw const seven, 4usize, 5usize, TO_DEVICE)), 1);
    assert_eq!(program.last(), 1);
    let params = [(&raw const x).cast::<c_void>(), (&raw const seven).cast()];
    let block = Dim3(2, 1, 1);
    assert_eq!(call!(cudart.cudaLaunchKernel(of(&ADD), ONE, block, params.as_ptr(), 0usize, 0usize)), 0);
    assert_eq!(program.read(x), [25, 26, 13, 14]);
    // The image takes its kernels along.
    call!((); cudart.__cudaUnregisterFatBinary(program.image));
    assert_eq!(call!(cudart.cudaLaunchKernel(of(&ADD), ONE, block, params.as_ptr(), 0usize, 0usize)), 98);
}

/// What is told of calls that fail: the call, and behind it why and by which call of the driver. Addresses and the
/// numbers of calls are left out.
fn told(stderr: &str) -> Vec<Vec<String>> {
    let is_number = |word: &&str| word.starts_with("0x") || word.trim_end_matches(',').parse::<u64>().is_ok();
    let shown = |line: &str| {
        let line = line.trim_start_matches("   = note: ").replace("(call ", "( call ");
        let mut words: Vec<&str> = line.split(' ').collect();
        while let Some(at) = words.iter().position(|word| *word == "call" || word.starts_with("0x")) {
            let is_numbered = words[at] == "call" && words.get(at + 1).is_some_and(is_number);
            words.drain(at..=at + usize::from(is_numbered));
        }
        words.join(" ")
    };
    let mut told: Vec<Vec<String>> = Vec::new();
    for line in stderr.lines() {
        match (line.strip_prefix("warpwright: error[api]: "), told.last_mut()) {
            (Some(call), _) => told.push(vec![shown(call)]),
            (None, Some(last)) if line.starts_with("   = note: ") => last.push(shown(line)),
            _ => {}
        }
    }
    told
}

#[test]
fn a_call_that_fails_says_why_and_by_which_call_of_the_driver() {
    let name = "programs::a_call_that_fails_says_why_and_by_which_call_of_the_driver";
    if let Some(apart) = Apart::new(name) {
        let ended = apart
            .driver("80")
            .env("WARPWRIGHT_CHECK", "api")
            .env("WARPWRIGHT_REFUSE", "cuMemAllocManaged=2")
            .env("WARPWRIGHT_LOG", "off")
            .run();
        assert!(ended.status.success(), "{}{}", ended.stdout, ended.stderr);
        let hundred = "`allocation 1 ( cuMemAlloc_v2)`";
        let freed = "`allocation 2 ( cuMemAlloc_v2)`";
        let pinned = "`pinned memory 3 ( cuMemAllocHost_v2)`";
        let invalid = |function: &str| format!("{function} returned cudaErrorInvalidValue (1)");
        let expected = [
            ("cudaMemcpy", format!("1000 bytes from byte 0 of {hundred} on: it has 100"), "cuMemcpyDtoH_v2"),
            ("cudaMemcpy", format!("5 bytes from byte 96 of {hundred} on: it has 100"), "cuMemcpyHtoD_v2"),
            ("cudaMemset", format!("101 bytes from byte 0 of {hundred} on: it has 100"), "cuMemsetD8_v2"),
            (
                "cudaMemcpy",
                format!(
                    "100 bytes at are memory of a device, {hundred}, and the takes memory of the host there"
                ),
                "cuMemcpyDtoH_v2",
            ),
            ("cudaMemcpy", format!("4 bytes at were those of {freed}, which was freed already"), "cuMemcpy"),
            ("cudaMemset", "4 bytes at an address that is null".into(), "cuMemsetD8_v2"),
            ("cudaFree", format!("{freed} was freed already"), "cuMemFree_v2"),
            ("cudaFree", format!("is byte 4 of {hundred}, which is freed at its beginning"), "cuMemFree_v2"),
            (
                "cudaFree",
                format!("{pinned} is freed by another function, or with its module"),
                "cuMemFree_v2",
            ),
            ("cudaFreeHost", "no memory was allocated at".into(), "cuMemFreeHost"),
        ];
        let mut expected: Vec<Vec<String>> = expected
            .into_iter()
            .map(|(function, reason, by)| vec![invalid(function), reason, format!("by {by}")])
            .collect();
        // The runtime itself knows the directions.
        expected.push(vec![
            "cudaMemcpy returned cudaErrorInvalidMemcpyDirection (21)".into(),
            "the runtime itself refuses these arguments or this state: no of the driver has failed".into(),
        ]);
        assert_eq!(told(&ended.stderr), expected);
        return;
    }
    let cudart = load(None);
    let (mut at, mut freed, mut pinned) = (null_mut::<u8>(), null_mut::<u8>(), null_mut::<u8>());
    assert_eq!(call!(cudart.cudaMalloc(&raw mut at, 100usize)), 0);
    assert_eq!(call!(cudart.cudaMalloc(&raw mut freed, 100usize)), 0);
    assert_eq!(call!(cudart.cudaMallocHost(&raw mut pinned, 100usize)), 0);
    assert_eq!(call!(cudart.cudaFree(freed)), 0);
    let mut mine = [0u8; 1000];
    let host = mine.as_mut_ptr();
    let null = null_mut::<u8>();
    for (index, found) in [
        call!(cudart.cudaMemcpy(host, at, 1000usize, FROM_DEVICE)),
        call!(cudart.cudaMemcpy(at.wrapping_add(96), host, 5usize, TO_DEVICE)),
        call!(cudart.cudaMemset(at, 0 as c_int, 101usize)),
        call!(cudart.cudaMemcpy(at, at, 100usize, FROM_DEVICE)),
        call!(cudart.cudaMemcpy(at, freed, 4usize, BY_ADDRESSES)),
        call!(cudart.cudaMemset(null, 0 as c_int, 4usize)),
        call!(cudart.cudaFree(freed)),
        call!(cudart.cudaFree(at.wrapping_add(4))),
        call!(cudart.cudaFree(pinned)),
        call!(cudart.cudaFreeHost(host)),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(found, 1, "{index}");
    }
    assert_eq!(call!(cudart.cudaMemcpy(at, at, 4usize, 5 as c_int)), 21);
    // What the user has asked to fail is no mistake.
    assert_eq!(call!(cudart.cudaMallocManaged(&raw mut at, 4usize, 1 as c_uint)), 2);
}

/// A program that launches when the values of its thread go.
struct Late(Program, *mut c_void);

impl Drop for Late {
    fn drop(&mut self) {
        let Late(program, x) = self;
        assert_eq!(program.launch(&ADD, ONE, Dim3(2, 1, 1), *x, 10), 0);
        assert_eq!(program.read(*x), [21, 12]);
    }
}

#[test]
fn a_thread_launches_after_the_runtimes_own_values_are_gone() {
    thread_local! {
        static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
    }
    if apart("a_thread_launches_after_the_runtimes_own_values_are_gone").is_some() {
        return;
    }
    let thread = std::thread::spawn(|| {
        // What is used first goes last.
        LATE.set(None);
        let program = Program::text();
        let x = program.words(&[1, 2]);
        assert_eq!(program.launch(&ADD, ONE, Dim3(1, 1, 1), x, 10), 0);
        LATE.set(Some(Late(program, x)));
    });
    thread.join().expect("the thread ends");
}

#[test]
fn mistakes_have_the_runtimes_errors() {
    if apart("mistakes_have_the_runtimes_errors").is_some() {
        return;
    }
    let program = Program::text();
    let cudart = &program.cudart;
    let x = program.words(&[1, 2, 3, 4]);
    let (mut bytes, mut address) = (0usize, null_mut::<c_void>());
    let launch = |grid, block| program.launch(&ADD, grid, block, x, 1);
    let none = null_mut::<c_void>();
    let errors: [(c_int, c_int); 13] = [
        (program.launch(&NOTHING, ONE, ONE, x, 1), 98),
        (launch(Dim3(0, 1, 1), ONE), 9),
        (launch(ONE, Dim3(1025, 1, 1)), 9),
        (launch(ONE, Dim3(1, 1, 65)), 9),
        (launch(Dim3(1, 65536, 1), ONE), 9),
        (call!(cudart.cudaGetSymbolSize(&raw mut bytes, of(&NOTHING))), 13),
        (call!(cudart.cudaMemcpy(x, x, 4usize, 5 as c_int)), 21),
        (call!(cudart.cudaMemcpyToSymbol(of(&EXTRA), x, 4usize, 0usize, FROM_DEVICE)), 21),
        (call!(cudart.cudaMemcpy2D(x, 2usize, x, 4usize, 4usize, 1usize, IN_DEVICE)), 12),
        (call!(cudart.cudaSetDevice(1 as c_int)), 101),
        (call!(cudart.cudaMalloc(&raw mut address, 1usize << 50)), 2),
        (call!(cudart.cudaMalloc(null_mut::<*mut c_void>(), 4usize)), 1),
        (call!(cudart.__cudaPopCallConfiguration(none, none, none, none)), 52),
    ];
    for (index, (found, expected)) in errors.into_iter().enumerate() {
        assert_eq!(found, expected, "{index}");
    }
    // The last of them is kept until it is asked for; success does not hide it.
    assert_eq!(launch(ONE, ONE), 0);
    assert_eq!((program.last(), program.last()), (52, 0));
    assert_eq!(program.read(x), [2, 2, 3, 4], "none of the launches with mistakes has run");
    // What needs no memory gets none.
    assert_eq!((call!(cudart.cudaMalloc(&raw mut address, 0usize)), address), (0, null_mut()));
    assert_eq!(call!(cudart.cudaFree(null_mut::<c_void>())), 0);
}

#[test]
fn code_that_cannot_run_is_refused_at_its_launch() {
    if apart("code_that_cannot_run_is_refused_at_its_launch").is_some() {
        return;
    }
    for (kind, payload, expected) in
        [(MACHINE_CODE, &b"\x7fELF\x02\x01"[..], 209), (PTX, b".version 8.0\n.target sm_80\nnonsense\0", 218)]
    {
        let program = Program::new(kind, payload);
        let x = program.words(&[1]);
        for _ in 0..2 {
            assert_eq!(program.launch(&ADD, ONE, ONE, x, 1), expected);
            assert_eq!(program.last(), expected);
        }
        let cudart = &program.cudart;
        call!((); cudart.__cudaUnregisterFatBinary(program.image));
    }
}

#[test]
fn a_trap_stays_until_the_device_is_reset() {
    if apart("a_trap_stays_until_the_device_is_reset").is_some() {
        return;
    }
    let program = Program::text();
    let cudart = &program.cudart;
    let x = program.words(&[1]);
    assert_eq!(program.launch(&ADD, ONE, ONE, x, 1), 0);
    assert_eq!(program.launches(), 41);
    assert_eq!(program.launch(&STOP, ONE, ONE, null_mut(), 0), 0);
    let mut address = null_mut::<c_void>();
    for _ in 0..2 {
        assert_eq!(call!(cudart.cudaDeviceSynchronize()), 719);
        assert_eq!(call!(cudart.cudaMalloc(&raw mut address, 4usize)), 719);
        assert_eq!(program.last(), 719);
    }
    assert_eq!(call!(cudart.cudaDeviceReset()), 0);
    let x = program.words(&[5]);
    assert_eq!(program.launch(&ADD, ONE, ONE, x, 1), 0);
    assert_eq!((program.read(x), program.launches()), ([6], 41), "variables begin anew");
}

#[test]
fn stream_0_is_the_threads_own_in_the_variants_for_it() {
    if apart("stream_0_is_the_threads_own_in_the_variants_for_it").is_some() {
        return;
    }
    let program = Program::text();
    let cudart = &program.cudart;
    let x = program.words(&[1, 2]);
    let (null, mode) = (0 as Stream, 2 as c_int);
    assert_eq!(call!(cudart.cudaStreamBeginCapture(null, mode)), 900, "the legacy stream cannot be captured");
    assert_eq!(call!(cudart.cudaStreamBeginCapture_ptsz(null, mode)), 0);
    let value = 3u32;
    let params = [(&raw const x).cast::<c_void>(), (&raw const value).cast()];
    let block = Dim3(2, 1, 1);
    assert_eq!(call!(cudart.cudaLaunchKernel_ptsz(of(&ADD), ONE, block, params.as_ptr(), 0usize, null)), 0);
    let mut graph = null_mut::<c_void>();
    assert_eq!(call!(cudart.cudaStreamEndCapture_ptsz(null, &raw mut graph)), 0);
    assert_eq!(program.read(x), [1, 2], "it is captured, and has not run");
    // A node behind it takes the first word over to the second.
    let (mut nodes, mut count, mut node) = ([null_mut::<c_void>(); 1], 1usize, null_mut::<c_void>());
    assert_eq!(call!(cudart.cudaGraphGetNodes(graph, nodes.as_mut_ptr(), &raw mut count)), 0);
    let (second, from) = (x.wrapping_byte_add(4), x);
    let behind = nodes.as_ptr();
    assert_eq!(
        call!(cudart.cudaGraphAddMemcpyNode1D(
            &raw mut node,
            graph,
            behind,
            count,
            second,
            from,
            4usize,
            IN_DEVICE
        )),
        0
    );
    let mut exec = null_mut::<c_void>();
    assert_eq!(call!(cudart.cudaGraphInstantiate(&raw mut exec, graph, 0u64)), 0);
    for expected in [[4, 4], [7, 7]] {
        assert_eq!(call!(cudart.cudaGraphLaunch(exec, null)), 0);
        assert_eq!(program.read(x), expected);
    }
}

/// A number of a structure.
fn int(bytes: &[u8], at: usize) -> c_int {
    c_int::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[test]
fn properties_are_where_each_major_version_has_them() {
    if apart("properties_are_where_each_major_version_has_them").is_some() {
        return;
    }
    let cudart = load(None);
    let attribute = |number: c_int| {
        let mut value: c_int = -1;
        assert_eq!(call!(cudart.cudaDeviceGetAttribute(&raw mut value, number, 0 as c_int)), 0);
        value
    };
    // Capability, multiprocessors, cache, blocks of a multiprocessor, and the last one that both have.
    const NUMBERS: [c_int; 6] = [75, 76, 16, 38, 106, 120];
    let mut bytes = [0xa5u8; 1040];
    assert_eq!(call!(cudart.cudaGetDeviceProperties(bytes.as_mut_ptr(), 0 as c_int)), 0);
    let places = [360, 364, 384, 596, 688, 748];
    assert_eq!(places.map(|at| int(&bytes, at)), NUMBERS.map(attribute));
    assert_eq!((bytes[1007], bytes[1008]), (0, 0xa5), "its end");
    assert_eq!(call!(cudart.cudaGetDeviceProperties_v2(bytes.as_mut_ptr(), 0 as c_int)), 0);
    let places = [360, 364, 388, 616, 712, 772];
    assert_eq!(places.map(|at| int(&bytes, at)), NUMBERS.map(attribute));
    assert_eq!((bytes[1031], bytes[1032]), (0, 0xa5), "its end");
}

/// Where the major versions have other parameters, the name under which the library was loaded decides.
#[test]
fn parameters_are_those_of_the_name() {
    if apart("parameters_are_those_of_the_name").is_some() {
        return;
    }
    let program = Program::of(load(Some("libcudart.so.12")), PTX, &[TEXT.as_bytes(), b"\0"].concat());
    let cudart = &program.cudart;
    let mut version: c_int = 0;
    assert_eq!((call!(cudart.cudaRuntimeGetVersion(&raw mut version)), version / 1000), (0, 12));
    let (mut first, mut second) = (null_mut::<c_void>(), null_mut::<c_void>());
    let mut graph = null_mut::<c_void>();
    assert_eq!(call!(cudart.cudaGraphCreate(&raw mut graph, 0 as c_uint)), 0);
    for node in [&raw mut first, &raw mut second] {
        assert_eq!(call!(cudart.cudaGraphAddEmptyNode(node, graph, null::<c_void>(), 0usize)), 0);
    }
    let (from, to) = (&raw const first, &raw const second);
    assert_eq!(call!(cudart.cudaGraphAddDependencies(graph, from, to, 1usize)), 0);
    let mut edges = 0usize;
    let none = null_mut::<c_void>();
    assert_eq!(call!(cudart.cudaGraphGetEdges(graph, none, none, &raw mut edges)), 0);
    assert_eq!(edges, 1);
    let mut managed = null_mut::<c_void>();
    assert_eq!(call!(cudart.cudaMallocManaged(&raw mut managed, 64usize, 1 as c_uint)), 0);
    assert_eq!(call!(cudart.cudaMemPrefetchAsync(managed, 64usize, 0 as c_int, 0 as Stream)), 0);
    assert_eq!(call!(cudart.cudaMemPrefetchAsync(managed, 64usize, -1 as c_int, 0 as Stream)), 0);
    assert_eq!(call!(cudart.cudaMemPrefetchAsync(managed, 64usize, 9 as c_int, 0 as Stream)), 101);
}

/// The parameters of a node of any kind: what it is, and its structure from the third word on.
type NodeParams = [u64; 32];

/// Graphs allocate memory of their own, and run bodies by a value.
#[test]
fn graphs_have_memory_and_conditions() {
    if apart("graphs_have_memory_and_conditions").is_some() {
        return;
    }
    let program = Program::text();
    let (cudart, found) = (&program.cudart, program.words(&[0; 4]));
    let (mut stream, mut graph, mut exec) = (0usize, null_mut::<c_void>(), null_mut::<c_void>());
    assert_eq!(call!(cudart.cudaStreamCreateWithFlags(&raw mut stream, 1 as c_uint)), 0);
    // Captured: memory, a fill, a kernel, a copy, and the end of the memory.
    let mut own = null_mut::<c_void>();
    assert_eq!(call!(cudart.cudaStreamBeginCapture(stream, 1 as c_int)), 0);
    assert_eq!(call!(cudart.cudaMallocAsync(&raw mut own, 16usize, stream)), 0);
    assert_eq!(call!(cudart.cudaMemsetAsync(own, 0 as c_int, 16usize, stream)), 0);
    let value = 5u32;
    let params = [(&raw const own).cast::<c_void>(), (&raw const value).cast()];
    let block = Dim3(4, 1, 1);
    assert_eq!(call!(cudart.cudaLaunchKernel(of(&ADD), ONE, block, params.as_ptr(), 0usize, stream)), 0);
    assert_eq!(call!(cudart.cudaMemcpyAsync(found, own, 16usize, IN_DEVICE, stream)), 0);
    assert_eq!(call!(cudart.cudaFreeAsync(own, stream)), 0);
    assert_eq!(call!(cudart.cudaStreamEndCapture(stream, &raw mut graph)), 0);
    let mut count = 0usize;
    assert_eq!(call!(cudart.cudaGraphGetNodes(graph, null_mut::<c_void>(), &raw mut count)), 0);
    assert_eq!(count, 5);
    assert_eq!(call!(cudart.cudaGraphInstantiate(&raw mut exec, graph, 0u64)), 0);
    for _ in 0..2 {
        assert_eq!(call!(cudart.cudaMemset(found, 0 as c_int, 16usize)), 0);
        assert_eq!(call!(cudart.cudaGraphLaunch(exec, stream)), 0);
        assert_eq!(call!(cudart.cudaStreamSynchronize(stream)), 0);
        assert_eq!(program.read::<4>(found), [5; 4]);
    }
    assert_eq!(call!(cudart.cudaFree(own)), 1, "the graph has freed it");
    // By the structure for all kinds.
    let (mut other, mut node) = (null_mut::<c_void>(), null_mut::<c_void>());
    assert_eq!(call!(cudart.cudaGraphCreate(&raw mut other, 0 as c_uint)), 0);
    let add = |node: *mut *mut c_void, params: &mut NodeParams| {
        call!(cudart.cudaGraphAddNode(
            node,
            other,
            null::<c_void>(),
            null::<c_void>(),
            0usize,
            params.as_mut_ptr()
        ))
    };
    let mut allocation: NodeParams = [0; 32];
    (allocation[0], allocation[2], allocation[3], allocation[15]) = (10, 1, 1, 64);
    assert_eq!(add(&raw mut node, &mut allocation), 0);
    let mut told: NodeParams = [0; 32];
    assert_eq!(call!(cudart.cudaGraphNodeGetParams(node, told.as_mut_ptr())), 0);
    assert_eq!((told[0], told[15], told[16]), (10, 64, allocation[16]));
    let mut handle = 0u64;
    assert_eq!(
        call!(cudart.cudaGraphConditionalHandleCreate(&raw mut handle, other, 1 as c_uint, 1 as c_uint)),
        0
    );
    // A choice among two bodies, of which the second is empty.
    let mut conditional: NodeParams = [0; 32];
    (conditional[0], conditional[2], conditional[3]) = (13, handle, 2 << 32);
    assert_eq!(add(&raw mut node, &mut conditional), 0);
    let bodies = std::ptr::with_exposed_provenance::<*mut c_void>(conditional[4] as usize);
    // SAFETY: the call has returned the graphs of the bodies there.
    let body = unsafe { *bodies };
    let fill: [u64; 6] = [found.expose_provenance() as u64, 0, 7 | 4 << 32, 4, 1, 0];
    assert_eq!(
        call!(cudart.cudaGraphAddMemsetNode(&raw mut node, body, null::<c_void>(), 0usize, fill.as_ptr())),
        0
    );
    assert_eq!(call!(cudart.cudaGraphInstantiate(&raw mut exec, other, 0u64)), 0);
    assert_eq!(call!(cudart.cudaGraphLaunch(exec, stream)), 0);
    assert_eq!(call!(cudart.cudaStreamSynchronize(stream)), 0);
    assert_eq!(program.read::<4>(found), [7; 4]);
    assert_eq!(call!(cudart.cudaGraphLaunch(exec, stream)), 1, "its memory was not freed");
}

/// Host code has a pointer to a managed variable, and names the variable by its memory.
#[test]
fn a_managed_variable_is_there_before_its_first_use() {
    if apart("a_managed_variable_is_there_before_its_first_use").is_some() {
        return;
    }
    let program = Program::text();
    let cudart = &program.cudart;
    let mut slot = null_mut::<u32>();
    let (name, no) = (c"both".as_ptr(), 0 as c_int);
    call!((); cudart.__cudaRegisterManagedVar(
        program.image, (&raw mut slot).cast::<c_void>(), name, name, no, 4usize, no, no
    ));
    assert_eq!(call!(std::ffi::c_char; cudart.__cudaInitModule(program.image)), 1);
    assert!(!slot.is_null());
    // SAFETY: the variable's memory, as long as the image is registered; kernels are waited for.
    unsafe {
        assert_eq!(slot.read_volatile(), 6);
        slot.write_volatile(20);
    }
    assert_eq!(program.launch(&TWICE, ONE, ONE, null_mut(), 0), 0);
    assert_eq!(call!(cudart.cudaDeviceSynchronize()), 0);
    // SAFETY: as above.
    assert_eq!(unsafe { slot.read_volatile() }, 40);
    let (mut address, mut bytes) = (null_mut::<c_void>(), 0usize);
    assert_eq!(call!(cudart.cudaGetSymbolAddress(&raw mut address, slot)), 0);
    assert_eq!(call!(cudart.cudaGetSymbolSize(&raw mut bytes, slot)), 0);
    assert_eq!((address, bytes), (slot.cast(), 4));
    let (seven, offset) = (7u32, 0usize);
    assert_eq!(call!(cudart.cudaMemcpyToSymbol(slot, &raw const seven, 4usize, offset, TO_DEVICE)), 0);
    // SAFETY: as above.
    assert_eq!(unsafe { slot.read_volatile() }, 7);
    let mut attributes = [0u8; 128];
    assert_eq!(call!(cudart.cudaPointerGetAttributes(attributes.as_mut_ptr(), slot)), 0);
    const MANAGED: c_int = 3;
    assert_eq!(int(&attributes, 0), MANAGED);
    call!((); cudart.__cudaUnregisterFatBinary(program.image));
    assert_eq!(call!(cudart.cudaGetSymbolSize(&raw mut bytes, slot)), 13);
}
