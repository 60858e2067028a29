//! A process as a whole: its environment, its forks, its end, and what the user is told of it.
//!
//! This is a program of its own and not a list of `#[test]`s, since it is also its own client: called with `--play`,
//! it plays the part of one.

#[cfg(target_os = "linux")]
mod common;

#[cfg(target_os = "linux")]
mod suite {
    mod fidelity;
    mod taken;

    use crate::common::{Findings, add_setter, client, context, get, input, kernel, ok, output};
    use std::ffi::{c_char, c_int};
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use warpwright_cuda::api::*;
    use warpwright_cuda::types::*;

    /// `write` stores its thread's number, of as many threads as it is launched with, and `spin` never ends.
    const PTX: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry write(.param .u64 x)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r1;
    ret;
}
.visible .entry spin(.param .u64 x)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    .reg .pred %p;
    ld.param.u64 %rd1, [x];
again:
    atom.global.add.u32 %r1, [%rd1], 1;
    setp.ne.u32 %p, %r1, 4294967295;
    @%p bra again;
    ret;
}
.visible .entry read(.param .u64 x)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [x];
    ld.global.u32 %r1, [%rd1];
    st.global.u32 [%rd1+4], %r1;
    ret;
}
.visible .entry stop()
{
    trap;
}
.extern .func (.param .b32 done) vprintf (.param .b64 format, .param .b64 values);
.global .align 1 .b8 text[8] = {107, 101, 114, 110, 101, 108, 10, 0};
.visible .entry print()
{
    .reg .b64 %rd<3>;
    mov.u64 %rd1, text;
    cvta.global.u64 %rd1, %rd1;
    mov.u64 %rd2, 0;
    .param .b64 format;
    .param .b64 values;
    .param .b32 done;
    st.param.b64 [format], %rd1;
    st.param.b64 [values], %rd2;
    call.uni (done), vprintf, (format, values);
    ret;
}
";

    /// Of a client that gives it back at its end.
    static MEMORY: AtomicU64 = AtomicU64::new(0);

    unsafe extern "C" {
        fn atexit(function: extern "C" fn()) -> c_int;
        fn fork() -> c_int;
        fn puts(text: *const c_char) -> c_int;
        fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
        fn _exit(status: c_int) -> !;
    }

    fn init() -> Status {
        // SAFETY: it takes no pointers.
        unsafe { cuInit(0) }
    }

    fn allocate(bytes: usize) -> CUdeviceptr {
        // SAFETY: a place for an address.
        get(|address| unsafe { cuMemAlloc_v2(address, bytes) }).unwrap()
    }

    fn launch(function: CUfunction, threads: u32, argument: Option<CUdeviceptr>) {
        let mut argument = argument.unwrap_or(0);
        let params = [input((&raw mut argument).cast::<u8>().cast_const())];
        // SAFETY: the kernels take an address at most, or nothing.
        unsafe {
            ok(cuLaunchKernel(
                function,
                1,
                1,
                1,
                threads,
                1,
                1,
                0,
                CUstream::NULL,
                input(params.as_ptr()),
                In::null(),
            ));
        }
    }

    fn synchronize() -> Status {
        // SAFETY: it takes no pointers.
        unsafe { cuCtxSynchronize() }
    }

    /// Sixteen bytes, and a kernel that writes so many words into them.
    fn write(words: u32) -> Status {
        ok(init());
        let made = context(0);
        let x = allocate(16);
        launch(kernel(PTX, "write"), words, Some(x));
        let status = synchronize();
        // SAFETY: handles and addresses are any values.
        unsafe {
            let _ = cuMemFree_v2(x);
            ok(cuCtxDestroy_v2(made));
        }
        status
    }

    /// What a client does. Its exit status is what it returns.
    pub(crate) fn play(part: &str) -> i32 {
        match part {
            "init" => println!("{}", init().0),
            "count" => {
                let status = init();
                // SAFETY: a place for a number.
                let count = get(|count: Out<c_int>| unsafe { cuDeviceGetCount(count) });
                println!("{} {}", status.0, count.unwrap_or(-1));
            }
            "clean" => ok(write(4)),
            "beyond" => assert_eq!(write(6), Status::ILLEGAL_ADDRESS),
            "beyond, and fails by itself" => {
                assert_eq!(write(6), Status::ILLEGAL_ADDRESS);
                return 3;
            }
            "sticky" => {
                ok(init());
                let made = context(0);
                launch(kernel(PTX, "stop"), 1, None);
                let first = synchronize();
                // SAFETY: a place for an address; handles are any values.
                let second = get(|x: Out<CUdeviceptr>| unsafe { cuMemAlloc_v2(x, 4) }).err();
                ok(unsafe { cuCtxDestroy_v2(made) });
                // Another context of the device knows nothing of it.
                context(0);
                println!("{} {} {}", first.0, second.map_or(0, |status| status.0), synchronize().0);
            }
            "goes on" => {
                ok(init());
                context(0);
                let (write, stop, x) = (kernel(PTX, "write"), kernel(PTX, "stop"), allocate(16));
                let mut results = vec![];
                let launches =
                    [(stop, 1, None), (write, 4, Some(x)), (write, 6, Some(x)), (write, 4, Some(x))];
                for (kernel, threads, argument) in launches.into_iter().chain([launches[2], launches[3]]) {
                    if results.len() == 5 {
                        // SAFETY: it is allocated.
                        unsafe { ok(cuMemFree_v2(x)) };
                    }
                    launch(kernel, threads, argument);
                    // Only a call that waits takes the error.
                    allocate(4);
                    results.push(synchronize().0);
                }
                println!("{results:?}");
            }
            "misuses" => {
                ok(init());
                let made = context(0);
                // SAFETY: places for addresses and handles; addresses and handles are any values.
                unsafe {
                    for _ in 0..2 {
                        assert_eq!(cuMemFree_v2(0x1234), Status::INVALID_VALUE);
                    }
                    let mut stream = CUstream::NULL;
                    ok(cuStreamCreate(output(&mut stream), 0));
                    ok(cuStreamDestroy_v2(stream));
                    assert_eq!(cuStreamSynchronize(stream), Status::INVALID_HANDLE);
                    // What is asked, and what a kernel has caused.
                    let mut context = CUcontext::NULL;
                    let at = output((&raw mut context).cast());
                    assert_eq!(
                        cuPointerGetAttribute(at, CUpointer_attribute::CONTEXT, 1),
                        Status::INVALID_VALUE
                    );
                    // The runtime calls for itself, and says what became of the program's call.
                    warpwrightApiBegin();
                    assert_eq!(cuMemFree_v2(0x5678), Status::INVALID_VALUE);
                    warpwrightApiEnd(input(c"cudaFree".as_ptr()), 0, In::null());
                    warpwrightApiBegin();
                    warpwrightApiEnd(
                        input(c"cudaFree".as_ptr()),
                        17,
                        input(c"cudaErrorInvalidDevicePointer".as_ptr()),
                    );
                }
                launch(kernel(PTX, "stop"), 1, None);
                assert_eq!(synchronize(), Status::LAUNCH_FAILED);
                // SAFETY: handles are any values.
                ok(unsafe { cuCtxDestroy_v2(made) });
            }
            "again and again" => {
                ok(init());
                context(0);
                let (kernel, x) = (kernel(PTX, "read"), allocate(16));
                (0..100).for_each(|_| launch(kernel, 1, Some(x)));
                ok(synchronize());
            }
            "graphs" => {
                ok(init());
                context(0);
                let kernel = kernel(PTX, "read");
                // SAFETY: places for handles and addresses, and structures of integers and null pointers.
                unsafe {
                    let graph: CUgraph = get(|graph| cuGraphCreate(graph, 0)).unwrap();
                    let mut params: CUDA_MEM_ALLOC_NODE_PARAMS = std::mem::zeroed();
                    params.poolProps.allocation_type = 1;
                    params.poolProps.location.kind = CUmemLocationType::DEVICE;
                    params.bytesize = 16;
                    let place = output(&mut params);
                    get(|node| cuGraphAddMemAllocNode(node, graph, In::null(), 0, place)).unwrap();
                    let exec = get(|exec| cuGraphInstantiateWithFlags(exec, graph, 1)).unwrap();
                    for _ in 0..2 {
                        // Each launch gives back what the one before has left, and allocates anew.
                        ok(cuGraphLaunch(exec, CUstream::NULL));
                        ok(cuMemsetD8_v2(params.dptr, 1, 16));
                        launch(kernel, 1, Some(params.dptr));
                    }
                    ok(cuGraphLaunch(exec, CUstream::NULL));
                    launch(kernel, 1, Some(params.dptr));
                    ok(synchronize());
                    ok(cuGraphExecDestroy(exec));
                    ok(cuGraphDestroy(graph));
                    // The first launch sets the value, the second one does not.
                    let graph: CUgraph = get(|graph| cuGraphCreate(graph, 0)).unwrap();
                    let none = CUcontext::NULL;
                    let handle: u64 =
                        get(|handle| cuGraphConditionalHandleCreate(handle, graph, none, 0, 0)).unwrap();
                    let mut body = [0; 29];
                    (body[0], body[1]) = (handle, 1 << 32);
                    let (kind, reserved) = (CUgraphNodeType::CONDITIONAL, [0; 3]);
                    let mut params = CUgraphNodeParams { kind, reserved, body, reserved2: 0 };
                    let setter = add_setter(graph, handle);
                    let (place, behind) = (output(&mut params), input(&setter));
                    get(|node| cuGraphAddNode(node, graph, behind, 1, place)).unwrap();
                    let exec = get(|exec| cuGraphInstantiateWithFlags(exec, graph, 0)).unwrap();
                    ok(cuGraphLaunch(exec, CUstream::NULL));
                    ok(synchronize());
                    ok(cuGraphNodeSetEnabled(exec, setter, 0));
                    ok(cuGraphLaunch(exec, CUstream::NULL));
                    println!("{}", synchronize().0);
                    ok(cuGraphExecDestroy(exec));
                    ok(cuGraphDestroy(graph));
                }
            }
            "does not wait" => {
                ok(init());
                context(0);
                launch(kernel(PTX, "write"), 6, Some(allocate(16)));
            }
            "is told what it takes" => taken::play(),
            "assumes" | "assumes and is refused" => fidelity::play(part != "assumes"),
            "never ends" => {
                ok(init());
                context(0);
                launch(kernel(PTX, "spin"), 1, Some(allocate(16)));
                println!("ended");
            }
            "dies" => {
                ok(init());
                context(0);
                let x = allocate(16);
                launch(kernel(PTX, "write"), 6, Some(x));
                synchronize();
                // SAFETY: a place for a handle.
                let retained = get(|context| unsafe { cuDevicePrimaryCtxRetain(context, 0) }).unwrap();
                // SAFETY: handles are any values.
                ok(unsafe { cuCtxSetCurrent(retained) });
                launch(kernel(PTX, "spin"), 1, Some(allocate(16)));
                std::process::abort();
            }
            "leaks" => {
                ok(init());
                let made = context(0);
                allocate(1000);
                // SAFETY: places for handles; handles are any values.
                unsafe {
                    get(|stream: Out<CUstream>| cuStreamCreate(stream, 0)).unwrap();
                    let given_back: CUevent = get(|event| cuEventCreate(event, 0)).unwrap();
                    ok(cuEventDestroy_v2(given_back));
                    let descriptor = CUDA_ARRAY3D_DESCRIPTOR {
                        Width: 4,
                        Height: 0,
                        Depth: 0,
                        Format: CUarray_format::FLOAT,
                        NumChannels: 1,
                        Flags: 2,
                    };
                    let array: CUarray = get(|array| cuArray3DCreate_v2(array, input(&descriptor))).unwrap();
                    let mut resource = CUDA_RESOURCE_DESC::default();
                    resource.res[0] = array.0 as u64;
                    get(|surface: Out<CUsurfObject>| cuSurfObjectCreate(surface, input(&resource))).unwrap();
                    ok(cuCtxDestroy_v2(made));
                    get(|context| cuDevicePrimaryCtxRetain(context, 0)).unwrap();
                }
            }
            "gives back at its end" => {
                extern "C" fn give_back() {
                    // SAFETY: handles and addresses are any values.
                    unsafe {
                        ok(cuMemFreeAsync(MEMORY.load(SeqCst), CUstream::PER_THREAD));
                        ok(cuStreamSynchronize(CUstream::PER_THREAD));
                        ok(cuDevicePrimaryCtxRelease_v2(0));
                    }
                }
                ok(init());
                // SAFETY: places for handles and addresses; the function may be called at the end.
                unsafe {
                    let retained = get(|context| cuDevicePrimaryCtxRetain(context, 0)).unwrap();
                    ok(cuCtxSetCurrent(retained));
                    MEMORY.store(allocate(16), SeqCst);
                    assert_eq!(atexit(give_back), 0);
                }
            }
            "is giving back at its end" => {
                ok(init());
                // SAFETY: places for handles and addresses; handles are any values, and the memory is not used.
                unsafe {
                    let retained = get(|context| cuDevicePrimaryCtxRetain(context, 0)).unwrap();
                    ok(cuCtxSetCurrent(retained));
                    let mut pinned = std::ptr::null_mut();
                    ok(cuMemAllocHost_v2(output(&mut pinned), 16));
                    launch(kernel(PTX, "spin"), 1, Some(allocate(16)));
                    let calls = || warpwrightCalls(In::null());
                    let (before, address) = (calls(), pinned.expose_provenance());
                    std::thread::spawn(move || {
                        ok(cuCtxSetCurrent(retained));
                        ok(cuMemFreeHost(std::ptr::with_exposed_provenance_mut(address)));
                    });
                    while calls() < before + 2 {
                        std::thread::yield_now();
                    }
                }
            }
            "gives back late" => {
                ok(init());
                let made = context(0);
                std::thread::spawn(move || {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    // SAFETY: handles are any values.
                    ok(unsafe { cuCtxDestroy_v2(made) });
                });
            }
            "prints" => {
                ok(init());
                let made = context(0);
                // SAFETY: a text with its end; handles are any values.
                unsafe {
                    puts(c"before".as_ptr());
                    launch(kernel(PTX, "print"), 1, None);
                    ok(cuCtxSynchronize());
                    puts(c"behind".as_ptr());
                    ok(cuCtxDestroy_v2(made));
                }
            }
            "forks" => {
                ok(init());
                context(0);
                // SAFETY: the child calls the driver and ends; places for numbers.
                unsafe {
                    let child = fork();
                    if child == 0 {
                        let mut count = 0;
                        let status = [cuInit(0), cuDeviceGetCount(output(&mut count)), cuCtxSynchronize()];
                        _exit(status.iter().all(|status| *status == Status::NOT_INITIALIZED).into());
                    }
                    let mut status = 0;
                    assert_eq!(waitpid(child, &raw mut status, 0), child);
                    // The parent is as it was.
                    println!("{} {}", status >> 8, synchronize().0);
                }
            }
            "loads the library" => {
                let deps = std::env::current_exe().unwrap();
                let path = deps.with_file_name("libwarpwright_cuda.so");
                // SAFETY: the functions have these types; the places are good for a handle.
                unsafe {
                    let library = libloading::Library::new(path).unwrap();
                    type Init = unsafe extern "C" fn(std::ffi::c_uint) -> Status;
                    type Create = unsafe extern "C" fn(Out<CUcontext>, std::ffi::c_uint, CUdevice) -> Status;
                    ok(library.get::<Init>(b"cuInit").unwrap()(0));
                    let create = *library.get::<Create>(b"cuCtxCreate_v2").unwrap();
                    get(|context| create(context, 0, 0)).unwrap();
                    // It is there nevertheless, until the process ends.
                    library.close().unwrap();
                }
            }
            other => panic!("no part is called {other}"),
        }
        0
    }

    pub(crate) const TESTS: &[(&str, fn())] = &[
        ("the_environment_says_what_devices_there_are", the_environment_says_what_devices_there_are),
        ("the_exit_status_tells_of_errors_if_asked", the_exit_status_tells_of_errors_if_asked),
        ("findings_are_lines_of_json", findings_are_lines_of_json),
        ("findings_are_shown_with_their_lines", findings_are_shown_with_their_lines),
        (
            "memory_and_values_of_graphs_are_uninitialised_in_each_launch",
            memory_and_values_of_graphs_are_uninitialised_in_each_launch,
        ),
        ("the_same_finding_is_told_once", the_same_finding_is_told_once),
        ("what_is_found_is_taken_by_a_client", taken::test),
        ("an_error_stays_with_its_context", an_error_stays_with_its_context),
        ("an_error_is_told_once_if_programs_are_to_go_on", an_error_is_told_once_if_programs_are_to_go_on),
        ("calls_that_fail_are_findings_if_asked", calls_that_fail_are_findings_if_asked),
        ("what_was_launched_last_is_checked_too", what_was_launched_last_is_checked_too),
        (
            "a_kernel_that_never_ends_does_not_keep_the_process",
            a_kernel_that_never_ends_does_not_keep_the_process,
        ),
        ("a_process_that_dies_has_told_what_it_had_found", a_process_that_dies_has_told_what_it_had_found),
        ("leaks_are_told_with_the_calls_that_made_them", leaks_are_told_with_the_calls_that_made_them),
        ("what_is_given_back_at_the_end_is_no_leak", what_is_given_back_at_the_end_is_no_leak),
        ("a_library_that_is_closed_tells_at_the_end_too", a_library_that_is_closed_tells_at_the_end_too),
        ("a_child_has_no_driver", a_child_has_no_driver),
        ("kernels_print_behind_the_program", kernels_print_behind_the_program),
        ("a_process_tells_of_fidelity_at_its_end", fidelity::test),
    ];

    fn the_environment_says_what_devices_there_are() {
        let count = |variables: &[(&str, &str)]| client("count", variables).text();
        assert_eq!(count(&[]), "0 1");
        assert_eq!(count(&[("WARPWRIGHT_DEVICES", "75,80,90")]), "0 3");
        assert_eq!(count(&[("WARPWRIGHT_DEVICES", "75,80,90"), ("CUDA_VISIBLE_DEVICES", "2,1,7,0")]), "0 2");
        assert_eq!(count(&[("WARPWRIGHT_DEVICES", "")]), format!("{} -1", Status::NO_DEVICE.0));
        assert_eq!(count(&[("CUDA_VISIBLE_DEVICES", "")]), format!("{} -1", Status::NO_DEVICE.0));
        let wrong = client("init", &[("WARPWRIGHT_DEVICES", "81")]);
        assert_eq!(wrong.text(), Status::INVALID_VALUE.0.to_string());
        assert_eq!(wrong.errors(), ["warpwright: WARPWRIGHT_DEVICES=81: architectures such as 75,80,90"]);
    }

    fn the_exit_status_tells_of_errors_if_asked() {
        let asked = [("WARPWRIGHT_EXIT_STATUS", "9")];
        assert_eq!(client("clean", &asked).status(), Some(0));
        assert_eq!(client("beyond", &[]).status(), Some(0));
        assert_eq!(client("beyond", &asked).status(), Some(9));
        assert_eq!(client("beyond, and fails by itself", &asked).status(), Some(3));
        assert_eq!(client("leaks", &asked).status(), Some(0), "leaks are not asked for");
        assert_eq!(client("leaks", &[asked[0], ("WARPWRIGHT_LEAKS", "1")]).status(), Some(9));
        assert_eq!(client("clean", &[asked[0], ("WARPWRIGHT_LEAKS", "1")]).status(), Some(9), "its module");
        let mark = Findings::new("mark");
        for (part, leaks, is_left) in
            [("clean", "0", false), ("beyond", "0", true), ("dies", "0", true), ("leaks", "1", true)]
        {
            client(part, &[("WARPWRIGHT_FAILED", mark.path()), ("WARPWRIGHT_LEAKS", leaks)]);
            assert_eq!(std::fs::remove_file(mark.path()).is_ok(), is_left, "{part}");
        }
    }

    fn findings_are_lines_of_json() {
        let findings = Findings::new("json");
        let ended = client("beyond", &[("WARPWRIGHT_FINDINGS", findings.path())]);
        assert_eq!((ended.status(), ended.errors()), (Some(0), vec![]));
        let lines = findings.read();
        let [finding, end] = &lines[..] else { panic!("{lines:#?}") };
        assert_eq!((&finding["version"], &finding["event"]), (&1.into(), &"finding".into()));
        assert_eq!((&finding["tool"], &finding["kind"]), (&"memcheck".into(), &"out-of-bounds".into()));
        assert_eq!((&finding["severity"], &finding["kernel"]), (&"error".into(), &"write".into()));
        assert_eq!(finding["call"]["function"], "cuLaunchKernel");
        assert_eq!(finding["allocation"]["bytes"], 16);
        assert_eq!(finding["allocation"]["arguments"], serde_json::json!(["x"]));
        let access = &finding["accesses"][0];
        assert_eq!((&access["ptx_line"], &access["ptx"]), (&11.into(), &"st.global.u32 [%rd2], %r1;".into()));
        assert_eq!(
            (&access["action"], &access["space"], &access["bytes"]),
            (&"write".into(), &"global".into(), &4.into())
        );
        assert_eq!(access["thread"], serde_json::json!([4, 0, 0]));
        assert_eq!((&end["event"], &end["errors"], &end["launches"]), (&"end".into(), &1.into(), &1.into()));
    }

    fn findings_are_shown_with_their_lines() {
        assert_eq!(
            client("beyond", &[]).errors().join("\n"),
            "\
warpwright: error[memcheck]: a write of global memory is out of bounds
  --> PTX:11:5
   |
11 |     st.global.u32 [%rd2], %r1;
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^ thread (4,0,0) of block (0,0,0) writes 4 bytes at 0x700000000010
   |
   = note: the address is just past `x` (allocation 1 (call 3, cuMemAlloc_v2)), of 16 bytes
   = note: in kernel `write`, launched by call 6, cuLaunchKernel

warpwright: 1 launches: 1 errors, 0 warnings"
        );
    }

    fn the_same_finding_is_told_once() {
        let findings = Findings::new("once");
        let variables = [("WARPWRIGHT_FINDINGS", findings.path()), ("WARPWRIGHT_CHECK", "initcheck")];
        client("again and again", &variables);
        let lines = findings.read();
        let [finding, end] = &lines[..] else { panic!("{lines:#?}") };
        assert_eq!((&finding["tool"], &finding["kind"]), (&"initcheck".into(), &"uninitialized".into()));
        assert_eq!((&end["launches"], &end["errors"]), (&100.into(), &100.into()));
    }

    fn memory_and_values_of_graphs_are_uninitialised_in_each_launch() {
        let findings = Findings::new("graphs");
        let variables = [
            ("WARPWRIGHT_FINDINGS", findings.path()),
            ("WARPWRIGHT_CHECK", "initcheck"),
            ("WARPWRIGHT_LEAKS", "1"),
        ];
        let ended = client("graphs", &variables);
        let lines = findings.read();
        let [finding, undefined, leaks @ .., end] = &lines[..] else { panic!("{lines:#?}") };
        assert_eq!((&finding["kind"], &finding["kernel"]), (&"uninitialized".into(), &"read".into()));
        assert_eq!(
            (&end["launches"], &end["errors"]),
            (&4.into(), &2.into()),
            "the last launch of each graph"
        );
        let call = &undefined["call"]["function"];
        assert_eq!((&undefined["event"], call), (&"condition".into(), &"cuGraphLaunch".into()));
        // What the last launch has left is there still.
        let memory = leaks.iter().find(|leak| leak["what"] == "device memory").unwrap();
        assert_eq!(
            (&memory["bytes"], &memory["call"]["function"]),
            (&16.into(), &"cuGraphAddMemAllocNode".into())
        );
        assert_eq!(ended.text(), Status::LAUNCH_FAILED.0.to_string());
    }

    fn an_error_stays_with_its_context() {
        let ended = client("sticky", &[]);
        let failed = Status::LAUNCH_FAILED.0;
        assert_eq!((ended.status(), ended.text()), (Some(0), format!("{failed} {failed} 0")));
    }

    fn an_error_is_told_once_if_programs_are_to_go_on() {
        let findings = Findings::new("goes on");
        let run = client(
            "goes on",
            &[
                ("WARPWRIGHT_ON_ERROR", "continue"),
                ("WARPWRIGHT_EXIT_STATUS", "9"),
                ("WARPWRIGHT_FINDINGS", findings.path()),
            ],
        );
        let (trap, access) = (Status::LAUNCH_FAILED.0, Status::ILLEGAL_ADDRESS.0);
        assert_eq!(run.text(), format!("{:?}", [trap, 0, access, 0, access, access]));
        assert_eq!(run.status(), Some(9), "the findings count all the same");
        // What fails as before says so, and what fails otherwise at the same instruction says how.
        let told: Vec<_> = findings
            .read()
            .iter()
            .map(|line| {
                (line["event"].as_str().unwrap().to_owned(), line["kind"].as_str().map(str::to_owned))
            })
            .collect();
        let expected = [
            ("trap", Some("instruction")),
            ("finding", Some("out-of-bounds")),
            ("repeated", None),
            ("finding", Some("use-after-free")),
            ("end", None),
        ];
        assert_eq!(told, expected.map(|(event, kind)| (event.to_owned(), kind.map(str::to_owned))));
    }

    fn calls_that_fail_are_findings_if_asked() {
        let findings = Findings::new("api");
        let run = |check| {
            let variables = [("WARPWRIGHT_FINDINGS", findings.path()), ("WARPWRIGHT_CHECK", check)];
            assert_eq!(client("misuses", &variables).status(), Some(0));
            let lines = findings.read();
            std::fs::remove_file(&findings.0).unwrap();
            let of_api = lines.iter().filter(|line| line["event"] == "api");
            let calls =
                of_api.map(|line| format!("{} {}", line["function"].as_str().unwrap(), line["error"]));
            (calls.collect::<Vec<_>>(), lines.last().unwrap()["errors"].clone())
        };
        let calls = ["cuMemFree_v2 1", "cuStreamSynchronize 400", "cudaFree 17"].map(String::from).to_vec();
        assert_eq!(
            run("api"),
            (calls, 5.into()),
            "the second one is counted, and the trap is a finding of its own"
        );
        assert_eq!(run("all"), (vec![], 1.into()));
    }

    fn what_was_launched_last_is_checked_too() {
        assert_eq!(client("does not wait", &[("WARPWRIGHT_EXIT_STATUS", "9")]).status(), Some(9));
    }

    fn a_kernel_that_never_ends_does_not_keep_the_process() {
        let ended = client("never ends", &[("WARPWRIGHT_EXIT_STATUS", "9")]);
        assert_eq!((ended.status(), ended.text()), (Some(0), "ended".into()), "to be cut off is no error");
    }

    fn a_process_that_dies_has_told_what_it_had_found() {
        let findings = Findings::new("dies");
        let ended = client("dies", &[("WARPWRIGHT_FINDINGS", findings.path())]);
        assert_eq!(ended.status(), None, "a signal");
        let lines = findings.read();
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["kind"], "out-of-bounds");
    }

    fn leaks_are_told_with_the_calls_that_made_them() {
        let findings = Findings::new("leaks");
        client("leaks", &[("WARPWRIGHT_FINDINGS", findings.path()), ("WARPWRIGHT_LEAKS", "1")]);
        let lines = findings.read();
        let (end, leaks) = lines.split_last().unwrap();
        let told = |leak: &serde_json::Value| {
            let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
            let call = &leak["call"];
            (text(&leak["what"]), leak["bytes"].as_u64(), call["number"].as_u64(), text(&call["function"]))
        };
        let told: Vec<_> = leaks.iter().map(told).collect();
        let expected = [
            ("device memory", 1000, 3, "cuMemAlloc_v2"),
            ("stream", 0, 4, "cuStreamCreate"),
            ("array", 16, 7, "cuArray3DCreate_v2"),
            ("surface", 0, 8, "cuSurfObjectCreate"),
        ];
        let expected = expected.map(|(what, bytes, call, function)| {
            (what.to_owned(), Some(bytes), Some(call), function.to_owned())
        });
        assert_eq!(told, expected);
        assert_eq!(end["leaks"], 4);
        let asked = [("WARPWRIGHT_EXIT_STATUS", "9"), ("WARPWRIGHT_LEAKS", "1")];
        assert_eq!(client("gives back late", &asked).status(), Some(0), "a thread was about to");
    }

    fn what_is_given_back_at_the_end_is_no_leak() {
        let asked = [("WARPWRIGHT_EXIT_STATUS", "9"), ("WARPWRIGHT_LEAKS", "1")];
        for check in ["memcheck", "api"] {
            let ended = client("gives back at its end", &[asked[0], asked[1], ("WARPWRIGHT_CHECK", check)]);
            assert_eq!((ended.status(), ended.errors()), (Some(0), vec![]), "{check}");
        }
        // The memory that a thread gives back when the kernel is cut off is not among them.
        let errors = [
            "warpwright: leak: module, made by call 5, cuModuleLoadData",
            "warpwright: leak: device memory of 16 bytes, made by call 7, cuMemAlloc_v2",
            "warpwright: 1 launches: 0 errors, 0 warnings, 2 leaks",
        ];
        assert_eq!(client("is giving back at its end", &asked).errors(), errors);
    }

    fn kernels_print_behind_the_program() {
        assert_eq!(client("prints", &[]).text(), "before\nkernel\nbehind");
    }

    fn a_library_that_is_closed_tells_at_the_end_too() {
        let asked = [("WARPWRIGHT_EXIT_STATUS", "9"), ("WARPWRIGHT_LEAKS", "1")];
        let ended = client("loads the library", &asked);
        assert_eq!(ended.status(), Some(9));
        let errors = [
            "warpwright: leak: context, made by call 2, cuCtxCreate_v2",
            "warpwright: 0 launches: 0 errors, 0 warnings, 1 leaks",
        ];
        assert_eq!(ended.errors(), errors);
    }

    fn a_child_has_no_driver() {
        let ended = client("forks", &[("WARPWRIGHT_LEAKS", "1")]);
        assert_eq!((ended.status(), ended.text()), (Some(0), "1 0".into()));
    }
}

#[cfg(target_os = "linux")]
fn main() {
    common::main(suite::TESTS, suite::play);
}

#[cfg(not(target_os = "linux"))]
fn main() {}
