//! What asking for work costs the thread that asks. `cargo bench -p warpwright-libcuda --bench enqueue`.
//!
//! Goal: a launch, a fill or a record is asked for in 1 us while the device is busy with something else, and what other
//! streams are held up with costs a launch nothing.

#![allow(missing_docs, reason = "a program")]

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::c_void;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::time::Instant;
    use warpwright_cuda::api::*;
    use warpwright_cuda::types::*;

    const PTX: &str = "
.version 7.8
.target sm_80
.address_size 64
.visible .entry empty(.param .u64 a, .param .u64 b, .param .u32 n) { ret; }
.visible .entry hold(.param .u64 flag)
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [flag];
$again:
    ld.volatile.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra $again;
    ret;
}
\0";

    /// Operations in a row, which a kernel holds up.
    const COUNT: u32 = 2000;
    const ROUNDS: u32 = 20;

    /// Launches that are done next to others that are held up.
    const LAUNCHES: u32 = 100;

    fn ok(status: Status) {
        assert_eq!(status, Status::SUCCESS);
    }

    fn launch(function: CUfunction, stream: CUstream, params: &[In<u8>]) {
        // SAFETY: the parameters are those of the kernel.
        ok(unsafe {
            let (params, extra) = (In::new(params.as_ptr()), In::null());
            cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, params, extra)
        });
    }

    fn byte<T>(value: &T) -> In<u8> {
        // SAFETY: only a launch follows it, while the value is there.
        unsafe { In::new(std::ptr::from_ref(value).cast::<u8>()) }
    }

    pub(super) fn main() {
        let (mut context, mut stream, mut event) = <(CUcontext, CUstream, CUevent)>::default();
        let (mut module, mut empty, mut hold, mut at) = Default::default();
        let mut flag: *mut c_void = std::ptr::null_mut();
        // SAFETY: pointers are good for what the functions write and read.
        unsafe {
            ok(cuInit(0));
            ok(cuCtxCreate_v2(Out::new(&mut context), 0, 0));
            ok(cuStreamCreate(Out::new(&mut stream), 1));
            ok(cuEventCreate(Out::new(&mut event), 2));
            ok(cuModuleLoadData(Out::new(&mut module), In::new(PTX.as_ptr())));
            ok(cuModuleGetFunction(Out::new(&mut empty), module, In::new(c"empty".as_ptr())));
            ok(cuModuleGetFunction(Out::new(&mut hold), module, In::new(c"hold".as_ptr())));
            ok(cuMemAlloc_v2(Out::new(&mut at), 4096));
            ok(cuMemAllocHost_v2(Out::new(&mut flag), 4));
        }
        let (address, n) = (flag.expose_provenance() as u64, 5u32);
        // SAFETY: a word that was just allocated, and is not given back.
        let flag = unsafe { &*flag.cast::<AtomicU32>() };
        let params = [byte(&at), byte(&at), byte(&n)];
        let data = [1u8; 64];
        let measure = |what: &str, ask: &dyn Fn()| {
            let mut best = f64::MAX;
            for _ in 0..ROUNDS {
                flag.store(0, SeqCst);
                launch(hold, stream, &[byte(&address)]);
                let begin = Instant::now();
                (0..COUNT).for_each(|_| ask());
                best = best.min(begin.elapsed().as_secs_f64() / f64::from(COUNT));
                flag.store(1, SeqCst);
                // SAFETY: a stream.
                ok(unsafe { cuStreamSynchronize(stream) });
            }
            println!("{what:40} {:6.0} ns", best * 1e9);
        };
        measure("cuLaunchKernel, three parameters", &|| launch(empty, stream, &params));
        // SAFETY: memory that was allocated, and data that is there.
        measure("cuMemsetD8Async", &|| ok(unsafe { cuMemsetD8Async(at, 1, 64, stream) }));
        measure("cuMemcpyDtoDAsync", &|| {
            // SAFETY: as above.
            ok(unsafe { cuMemcpyDtoDAsync_v2(at, at + 1024, 64, stream) });
        });
        measure("cuMemcpyHtoDAsync, 64 bytes", &|| {
            // SAFETY: as above.
            ok(unsafe { cuMemcpyHtoDAsync_v2(at, data.as_ptr().cast(), data.len(), stream) });
        });
        // SAFETY: an event and a stream.
        measure("cuEventRecord", &|| ok(unsafe { cuEventRecord(event, stream) }));
        let mut other = CUstream::default();
        // SAFETY: a place for a stream.
        ok(unsafe { cuStreamCreate(Out::new(&mut other), 1) });
        for held in [0, 1000, 50_000] {
            flag.store(0, SeqCst);
            // SAFETY: streams, a word that is there, and memory that was allocated.
            unsafe {
                ok(cuStreamWaitValue32_v2(stream, address, 1, 1));
                (0..held).for_each(|_| ok(cuMemsetD8Async(at, 1, 64, stream)));
            }
            let mut best = f64::MAX;
            for _ in 0..ROUNDS {
                let begin = Instant::now();
                (0..LAUNCHES).for_each(|_| launch(empty, other, &params));
                // SAFETY: a stream.
                ok(unsafe { cuStreamSynchronize(other) });
                best = best.min(begin.elapsed().as_secs_f64() / f64::from(LAUNCHES));
            }
            println!("a launch next to {held:6} that are held up  {:6.0} ns", best * 1e9);
            flag.store(1, SeqCst);
            // SAFETY: a stream.
            ok(unsafe { cuStreamSynchronize(stream) });
        }
    }
}

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
}
