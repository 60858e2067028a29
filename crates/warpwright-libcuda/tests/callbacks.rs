//! Functions of a client's that streams call, and that end otherwise than by returning: their thread, the process, or
//! with a copy of it.
//!
//! A program of its own for the same reason as `process.rs`: each part is a process.

#[cfg(target_os = "linux")]
mod common;

#[cfg(target_os = "linux")]
mod suite {
    use crate::common::{client, context, get, input, kernel, ok};
    use std::ffi::{c_int, c_ulong, c_void};
    use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::SeqCst};
    use std::thread::yield_now;
    use warpwright_cuda::api::*;
    use warpwright_cuda::types::*;

    /// Each of its threads adds 1 to a word of its own.
    const PTX: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 x)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    ld.global.u32 %r2, [%rd2];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%rd2], %r2;
    ret;
}
";

    const NON_BLOCKING: u32 = 1;

    /// An exception as the platform's unwinder has it.
    #[repr(C, align(16))]
    struct Exception {
        class: u64,
        cleanup: usize,
        private: [usize; 6],
    }

    unsafe extern "C-unwind" {
        fn pthread_exit(value: *mut c_void) -> !;
        fn pthread_testcancel();
        fn pause() -> c_int;
        fn _Unwind_RaiseException(exception: *mut Exception) -> c_int;
    }

    unsafe extern "C" {
        fn pthread_self() -> c_ulong;
        fn pthread_cancel(thread: c_ulong) -> c_int;
        fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
        fn exit(status: c_int) -> !;
        fn fork() -> c_int;
        fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    }

    /// What the functions tell each other. One part runs in a process.
    static CALLS: AtomicU32 = AtomicU32::new(0);
    static THREAD: AtomicU64 = AtomicU64::new(0);
    static GO: AtomicU32 = AtomicU32::new(0);
    static FOUND: AtomicI32 = AtomicI32::new(-1);

    fn wait_for(what: &AtomicU32, value: u32) {
        while what.load(SeqCst) < value {
            yield_now();
        }
    }

    type Function = unsafe extern "C-unwind" fn(*mut c_void);

    unsafe extern "C-unwind" fn count(_: *mut c_void) {
        CALLS.fetch_add(1, SeqCst);
    }

    unsafe extern "C-unwind" fn end_thread(_: *mut c_void) {
        CALLS.fetch_add(1, SeqCst);
        // SAFETY: a thread may end itself; there is nothing to drop here.
        unsafe { pthread_exit(std::ptr::null_mut()) }
    }

    /// The others are behind it.
    unsafe extern "C-unwind" fn end_thread_later(_: *mut c_void) {
        wait_for(&GO, 1);
        // SAFETY: a thread may end itself; there is nothing to drop here.
        unsafe { pthread_exit(std::ptr::null_mut()) }
    }

    unsafe extern "C-unwind" fn end_thread_after_status(_: CUstream, status: Status, _: *mut c_void) {
        FOUND.store(status.0, SeqCst);
        // SAFETY: a thread may end itself; there is nothing to drop here.
        unsafe { pthread_exit(std::ptr::null_mut()) }
    }

    unsafe extern "C-unwind" fn cancel_itself(_: *mut c_void) {
        CALLS.fetch_add(1, SeqCst);
        // SAFETY: a thread may cancel itself; there is nothing to drop here.
        unsafe {
            pthread_cancel(pthread_self());
            pthread_testcancel();
        }
        std::process::abort();
    }

    /// Somebody else cancels it.
    unsafe extern "C-unwind" fn sleep(_: *mut c_void) {
        // SAFETY: there is nothing to drop here.
        unsafe {
            THREAD.store(pthread_self(), SeqCst);
            loop {
                pause();
            }
        }
    }

    /// The same, and it returns before it could notice.
    unsafe extern "C-unwind" fn return_cancelled(_: *mut c_void) {
        // SAFETY: a thread may cancel itself.
        unsafe { pthread_cancel(pthread_self()) };
    }

    /// It would notice that somebody else was to be cancelled.
    unsafe extern "C-unwind" fn look_for_cancellation(_: *mut c_void) {
        // SAFETY: there is nothing to drop here.
        unsafe { pthread_testcancel() };
        CALLS.fetch_add(1, SeqCst);
    }

    /// Nobody catches it, and so it is not thrown.
    unsafe extern "C-unwind" fn throw(_: *mut c_void) {
        let mut exception =
            Exception { class: u64::from_be_bytes(*b"WARPTEST"), cleanup: 0, private: [0; 6] };
        // SAFETY: an exception that lives until somebody has caught it, and there is nothing to drop here.
        FOUND.store(unsafe { _Unwind_RaiseException(&raw mut exception) }, SeqCst);
    }

    unsafe extern "C-unwind" fn panic(_: *mut c_void) {
        panic!("by a function of the client's");
    }

    unsafe extern "C-unwind" fn end_process(status: *mut c_void) {
        // SAFETY: no other thread ends the process.
        unsafe { exit(status.addr() as c_int) }
    }

    unsafe extern "C-unwind" fn end_process_later(_: *mut c_void) {
        wait_for(&GO, 1);
        // SAFETY: no other thread ends the process.
        unsafe { exit(0) }
    }

    unsafe extern "C-unwind" fn never_return(_: *mut c_void) {
        GO.store(1, SeqCst);
        loop {
            std::thread::park();
        }
    }

    unsafe extern "C-unwind" fn speak_later(_: *mut c_void) {
        GO.store(1, SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(50));
        println!("spoken");
    }

    /// The child goes back to where the function was called.
    unsafe extern "C-unwind" fn divide(_: *mut c_void) {
        // SAFETY: a place for a number.
        unsafe {
            let child = fork();
            if child != 0 {
                let mut status = -1;
                assert_eq!(waitpid(child, &raw mut status, 0), child);
                FOUND.store(status, SeqCst);
            }
        }
    }

    /// A client, with a context and words that a kernel adds to.
    struct Client {
        kernel: CUfunction,
        words: CUdeviceptr,
    }

    impl Client {
        fn new() -> Client {
            // SAFETY: it takes no pointers.
            ok(unsafe { cuInit(0) });
            context(0);
            // SAFETY: a place for an address.
            let words = get(|address| unsafe { cuMemAlloc_v2(address, 16) }).unwrap();
            // SAFETY: memory that was just allocated.
            ok(unsafe { cuMemsetD8_v2(words, 0, 16) });
            Client { kernel: kernel(PTX, "add"), words }
        }

        fn add(&self, threads: u32, stream: CUstream) {
            let mut argument = self.words;
            let params = [input((&raw mut argument).cast::<u8>().cast_const())];
            let (params, extra) = (input(params.as_ptr()), In::null());
            // SAFETY: the kernel takes an address.
            ok(unsafe { cuLaunchKernel(self.kernel, 1, 1, 1, threads, 1, 1, 0, stream, params, extra) });
        }

        /// What the first word has become.
        fn first(&self) -> u32 {
            let mut word = 0u32;
            // SAFETY: a place for a word.
            ok(unsafe { cuMemcpyDtoH_v2((&raw mut word).cast(), self.words, 4) });
            word
        }
    }

    fn call(stream: CUstream, function: Function, argument: usize) {
        // SAFETY: the functions take any argument.
        ok(unsafe { cuLaunchHostFunc(stream, Some(function), std::ptr::without_provenance_mut(argument)) });
    }

    fn stream() -> CUstream {
        // SAFETY: a place for a handle.
        get(|stream| unsafe { cuStreamCreate(stream, NON_BLOCKING) }).unwrap()
    }

    fn synchronize(stream: CUstream) {
        // SAFETY: handles are any values.
        ok(unsafe { cuStreamSynchronize(stream) });
    }

    /// What a client does. Its exit status is what it returns.
    pub(crate) fn play(part: &str) -> i32 {
        let client = Client::new();
        let (one, other) = (stream(), stream());
        match part {
            "ends its thread" => {
                for round in 1..=100 {
                    for function in [end_thread, count, end_thread, end_thread, cancel_itself, count] {
                        call(one, function, 0);
                    }
                    client.add(1, one);
                    synchronize(one);
                    assert_eq!((CALLS.load(SeqCst), client.first()), (6 * round, round));
                }
            }
            "ends the thread of others" => {
                call(one, end_thread_later, 0);
                (0..5).for_each(|_| call(stream(), count, 0));
                // They wait for the thread.
                client.add(1, other);
                synchronize(other);
                assert_eq!(CALLS.load(SeqCst), 0);
                GO.store(1, SeqCst);
                // SAFETY: it takes no pointers.
                ok(unsafe { cuCtxSynchronize() });
                assert_eq!(CALLS.load(SeqCst), 5);
            }
            "ends the thread of a callback" => {
                // SAFETY: the function takes any argument.
                unsafe {
                    ok(cuStreamAddCallback(one, Some(end_thread_after_status), std::ptr::null_mut(), 0));
                }
                call(one, count, 0);
                synchronize(one);
                assert_eq!((FOUND.load(SeqCst), CALLS.load(SeqCst)), (0, 1));
            }
            "ends the thread of a graph" => {
                // SAFETY: places for handles.
                unsafe {
                    ok(cuStreamBeginCapture_v2(one, CUstreamCaptureMode::RELAXED));
                    for function in [count, end_thread, count] {
                        call(one, function, 0);
                        client.add(1, one);
                    }
                    let graph = get(|graph| cuStreamEndCapture(one, graph)).unwrap();
                    let exec = get(|exec| cuGraphInstantiateWithFlags(exec, graph, 0)).unwrap();
                    for round in 1..=10 {
                        ok(cuGraphLaunch(exec, other));
                        synchronize(other);
                        assert_eq!((CALLS.load(SeqCst), client.first()), (3 * round, 3 * round));
                    }
                }
            }
            "is cancelled" => {
                call(one, sleep, 0);
                while THREAD.load(SeqCst) == 0 {
                    yield_now();
                }
                // SAFETY: the thread runs until it is cancelled.
                assert_eq!(unsafe { pthread_cancel(THREAD.load(SeqCst)) }, 0);
                call(one, return_cancelled, 0);
                call(one, look_for_cancellation, 0);
                synchronize(one);
                assert_eq!(CALLS.load(SeqCst), 1);
            }
            "is cancelled in a call" => {
                let memory = [0u32; 64];
                // SAFETY: a thread may cancel itself. It is not in what Rust or this library catches and drops.
                unsafe {
                    pthread_cancel(pthread_self());
                    // It looks for what is mapped there, where a thread may be cancelled.
                    let at = memory.as_ptr().cast_mut().cast();
                    ok(cuMemHostRegister_v2(at, size_of_val(&memory), 0));
                    ok(cuMemHostUnregister(at));
                    const CANNOT_BE_CANCELLED: c_int = 1;
                    pthread_setcancelstate(CANNOT_BE_CANCELLED, std::ptr::null_mut());
                }
            }
            "throws" => {
                const END_OF_STACK: i32 = 5;
                call(one, throw, 0);
                call(one, count, 0);
                synchronize(one);
                assert_eq!((FOUND.load(SeqCst), CALLS.load(SeqCst)), (END_OF_STACK, 1));
            }
            "panics" => {
                call(one, panic, 0);
                synchronize(one);
            }
            "ends the process" => {
                call(one, end_process, 3);
                synchronize(one);
                println!("the function has not returned, and the stream goes on");
            }
            "ends the process beside a launch" => {
                call(one, end_process_later, 0);
                client.add(6, other);
                GO.store(1, SeqCst);
                synchronize(one);
                println!("the function has not returned, and the stream goes on");
            }
            "ends beside what never returns" => {
                call(one, never_return, 0);
                wait_for(&GO, 1);
            }
            "ends beside what returns soon" => {
                call(one, speak_later, 0);
                wait_for(&GO, 1);
            }
            "divides" => {
                call(one, divide, 0);
                client.add(1, one);
                synchronize(one);
                println!("{} {}", FOUND.load(SeqCst), client.first());
            }
            "divides beside a call" => {
                call(one, never_return, 0);
                wait_for(&GO, 1);
                // SAFETY: a place for a number. The child ends as a process does.
                unsafe {
                    let child = fork();
                    if child == 0 {
                        exit((cuStreamSynchronize(one) == Status::NOT_INITIALIZED).into());
                    }
                    let mut status = 0;
                    assert_eq!(waitpid(child, &raw mut status, 0), child);
                    println!("{}", status >> 8);
                }
            }
            other => panic!("no part is called {other}"),
        }
        0
    }

    pub(crate) const TESTS: &[(&str, fn())] = &[
        ("a_function_may_end_its_thread", a_function_may_end_its_thread),
        ("a_function_may_be_cancelled", a_function_may_be_cancelled),
        ("what_is_thrown_is_caught_by_nobody", what_is_thrown_is_caught_by_nobody),
        ("a_function_may_end_the_process", a_function_may_end_the_process),
        ("the_process_may_end_beside_a_function", the_process_may_end_beside_a_function),
        ("a_function_may_fork", a_function_may_fork),
    ];

    fn plays(part: &str) -> String {
        let ended = client(part, &[("WARPWRIGHT_EXIT_STATUS", "9")]);
        assert_eq!((ended.status(), ended.errors()), (Some(0), vec![]), "{part}");
        ended.text()
    }

    fn a_function_may_end_its_thread() {
        for part in [
            "ends its thread",
            "ends the thread of others",
            "ends the thread of a callback",
            "ends the thread of a graph",
        ] {
            plays(part);
        }
    }

    fn a_function_may_be_cancelled() {
        plays("is cancelled");
        plays("is cancelled in a call");
    }

    fn what_is_thrown_is_caught_by_nobody() {
        plays("throws");
        // What is thrown all the same ends the process, as it does in a thread of the client's.
        let ended = client("panics", &[]);
        assert_eq!((ended.status(), ended.signal()), (None, Some(6)));
    }

    fn a_function_may_end_the_process() {
        let ended = client("ends the process", &[]);
        assert_eq!((ended.status(), ended.text()), (Some(3), String::new()));
        let ended = client("ends the process beside a launch", &[("WARPWRIGHT_EXIT_STATUS", "9")]);
        assert_eq!((ended.status(), ended.text()), (Some(9), String::new()));
    }

    fn the_process_may_end_beside_a_function() {
        plays("ends beside what never returns");
        assert_eq!(plays("ends beside what returns soon"), "spoken");
    }

    fn a_function_may_fork() {
        assert_eq!(plays("divides"), "0 1");
        assert_eq!(plays("divides beside a call"), "1");
    }
}

#[cfg(target_os = "linux")]
fn main() {
    common::main(suite::TESTS, suite::play);
}

#[cfg(not(target_os = "linux"))]
fn main() {}
