//! Grids that are resident at once: a kernel that waits makes way for what it waits for, on any stream.

use crate::*;

/// Buffers of two words of zero, and a stream for each, all of which may use any of the buffers.
fn streams<const N: usize>(gpu: &Gpu) -> [(Stream, Buffer<u32>); N] {
    let streams: [Stream; N] = std::array::from_fn(|_| gpu.device.new_stream().unwrap());
    let pairs = streams.map(|stream| {
        let words = stream.alloc_zeros::<u32>(2).unwrap();
        (stream, words)
    });
    let events: Vec<_> = pairs.iter().map(|(stream, _)| stream.record_event().unwrap()).collect();
    for (stream, _) in &pairs {
        events.iter().for_each(|event| stream.wait_event(event).unwrap());
    }
    pairs
}

#[test]
fn a_copy_goes_on_beside_a_kernel_that_waits_for_it() {
    let gpu = Gpu::plain();
    let [(one, x), (two, flags)] = streams(&gpu);
    gpu.launch(&one, "spin", &x, &flags, 7);
    two.memcpy_htod(&[1], &flags.slice(..1).unwrap()).unwrap();
    one.synchronize().unwrap();
    assert_eq!(one.clone_dtoh(&x).unwrap(), [7, 0]);
    assert_eq!(two.clone_dtoh(&flags).unwrap(), [1, 1]);
}

#[test]
fn several_grids_wait_for_the_last() {
    let gpu = Gpu::plain();
    let [(one, x), (two, flags), (three, gate)] = streams(&gpu);
    gpu.launch(&one, "spin", &x, &flags, 5);
    gpu.launch(&two, "spin", &flags, &gate, 1);
    gpu.launch(&three, "add", &gate, &x, 1);
    gpu.device.synchronize().unwrap();
    assert_eq!(one.clone_dtoh(&x).unwrap(), [5, 0]);
}

#[test]
fn a_kernel_waits_for_what_is_asked_for_later() {
    let gpu = Gpu::plain();
    let [(one, x), (two, flags)] = streams(&gpu);
    gpu.launch(&one, "spin", &x, &flags, 3);
    let waiting = std::thread::spawn(move || {
        one.synchronize().unwrap();
        one.clone_dtoh(&x).unwrap()
    });
    // Another thread waits for the kernel already: it must not be taken for one that hangs.
    std::thread::sleep(Duration::from_millis(300));
    two.memcpy_htod(&[1], &flags.slice(..1).unwrap()).unwrap();
    assert_eq!(waiting.join().unwrap(), [3, 0]);
}

#[test]
fn a_thread_that_has_not_used_the_device_may_end_the_wait() {
    let gpu = Gpu::plain();
    let [(one, x), (two, flags)] = streams(&gpu);
    gpu.launch(&one, "spin", &x, &flags, 4);
    // Its first call comes long after the only client so far has begun to wait.
    let fresh = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        two.memcpy_htod(&[1], &flags.slice(..1).unwrap()).unwrap();
    });
    one.synchronize().unwrap();
    fresh.join().unwrap();
    assert_eq!(one.clone_dtoh(&x).unwrap(), [4, 0]);
}

#[test]
fn kernels_talk_to_one_another() {
    // `n` times: waits until `seen[0]` is what it has counted to, and then sets `own[0]` to the next number.
    let player = |name: &str, first: u32, own: &str, seen: &str| {
        format!(
            ".visible .entry {name}(.param .u64 p, .param .u64 q, .param .u32 n)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [{own}];
    ld.param.u64 %rd2, [{seen}];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, 0;
$turn:
    add.u32 %r2, %r2, 1;
    sub.u32 %r3, %r2, {first};
$wait:
    ld.acquire.gpu.global.u32 %r0, [%rd2];
    setp.ne.u32 %p1, %r0, %r3;
    @%p1 bra $wait;
    st.release.gpu.global.u32 [%rd1], %r2;
    setp.ne.u32 %p1, %r2, %r1;
    @%p1 bra $turn;
    ret;
}}
"
        )
    };
    // The first to play sees the other's last number, the other one sees this one's.
    let players = player("volley", 1, "p", "q") + &player("answer", 0, "q", "p");
    let text = format!(".version 7.8\n.target sm_80\n.address_size 64\n{players}");
    let device = Gpu::plain().device;
    let gpu = Gpu { module: device.load_ptx(&text).unwrap(), device };
    let [(one, ball), (two, answer)] = streams(&gpu);
    gpu.launch(&one, "volley", &ball, &answer, 60);
    gpu.launch(&two, "answer", &ball, &answer, 60);
    gpu.device.synchronize().unwrap();
    assert_eq!(one.clone_dtoh(&ball).unwrap(), [60, 0]);
    assert_eq!(two.clone_dtoh(&answer).unwrap(), [60, 0]);
}

/// A kernel that does something each time that it looks at `q[0]`, until that is 1: then it stores `n` in `p[0]`.
fn waits(meanwhile: &str) -> Gpu {
    let text = format!(
        ".version 7.8
.target sm_80
.address_size 64
.visible .entry waits(.param .u64 p, .param .u64 q, .param .u32 n)
{{
    .reg .pred %p<3>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .shared .align 4 .b8 beats[4];
    ld.param.u64 %rd1, [p];
    ld.param.u64 %rd2, [q];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, 0;
    setp.ne.u32 %p2, %r2, 0;
$wait:
    {meanwhile}
    ld.acquire.gpu.global.u32 %r0, [%rd2];
    setp.ne.u32 %p1, %r0, 1;
    @%p1 bra $wait;
    st.global.u32 [%rd1], %r1;
    ret;
}}
"
    );
    let device = Gpu::plain().device;
    Gpu { module: device.load_ptx(&text).unwrap(), device }
}

#[test]
fn a_kernel_that_waits_makes_way_whatever_it_does_meanwhile() {
    for meanwhile in [
        "add.u32 %r2, %r2, 1;",
        "add.u32 %r2, %r2, 1; setp.gt.u32 %p2, %r2, 0x7fffffff; @%p2 trap;",
        "mad.lo.u32 %r2, %r2, 1664525, 1013904223; shr.u32 %r3, %r2, 28; @%p2 add.u32 %r2, %r2, %r3;",
        "mov.u64 %rd3, %clock64; setp.eq.u64 %p2, %rd3, 0; @%p2 trap;",
        "mov.u64 %rd3, %globaltimer; setp.eq.u64 %p2, %rd3, 0; @%p2 trap;",
        "add.u32 %r2, %r2, 1; st.shared.u32 [beats], %r2;",
        "add.u32 %r2, %r2, 1; nanosleep.u32 20;",
        "add.u32 %r2, %r2, 1; st.global.u32 [%rd1+4], %r2;",
        "atom.global.add.u32 %r3, [%rd1+4], 1;",
    ] {
        let gpu = waits(meanwhile);
        let [(one, x), (two, flags)] = streams(&gpu);
        gpu.launch(&one, "waits", &x, &flags, 7);
        two.memcpy_htod(&[1], &flags.slice(..1).unwrap()).unwrap();
        one.synchronize().unwrap();
        assert_eq!(one.clone_dtoh(&x).unwrap()[0], 7, "{meanwhile}");
    }
}

/// On the virtual GPU each of them takes long to make way.
#[test]
fn kernels_that_wait_make_way_for_others_and_not_only_for_one_another() {
    let gpu =
        waits("add.u32 %r2, %r2, 1; st.global.u32 [%rd1+4], %r2; setp.gt.u32 %p2, %r2, 40000000; @%p2 trap;");
    let [(one, x), (two, y), (three, flags)] = streams(&gpu);
    gpu.launch(&one, "waits", &x, &flags, 7);
    gpu.launch(&two, "waits", &y, &flags, 8);
    three.memcpy_htod(&[1], &flags.slice(..1).unwrap()).unwrap();
    gpu.device.synchronize().unwrap();
    assert_eq!((one.clone_dtoh(&x).unwrap()[0], two.clone_dtoh(&y).unwrap()[0]), (7, 8));
}

mod on_the_vm {
    use super::*;

    #[test]
    fn another_device_brings_what_a_kernel_waits_for() {
        let (here, there) = (Gpu::plain(), Gpu::plain());
        let [(one, x), (two, flags)] = streams(&here);
        let far = there.device.default_stream();
        let (ones, busy) = (far.clone_htod(&[1u32, 0]).unwrap(), far.alloc_zeros::<u32>(1).unwrap());
        here.launch(&one, "spin", &x, &flags, 9);
        // Longer than a kernel that nothing can end is left alone.
        let hold = there.hold(&far, &busy, 1);
        let ready = two.record_event().unwrap();
        far.wait_event(&ready).unwrap();
        far.memcpy_peer(&ones, &flags).unwrap();
        let release = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            hold.release();
        });
        one.synchronize().unwrap();
        release.join().unwrap();
        assert_eq!(one.clone_dtoh(&x).unwrap(), [9, 0]);
    }

    #[test]
    fn a_kernel_that_waits_in_vain_is_an_error_of_the_launch() {
        let gpu = Gpu::plain();
        let [(one, x), (two, flags)] = streams(&gpu);
        gpu.launch(&one, "spin", &x, &flags, 7);
        gpu.launch(&two, "touch", &x, &x, 1);
        match one.synchronize() {
            Err(RuntimeError::Failed(failure)) => assert_eq!(failure.kernel, "spin"),
            other => panic!("{other:?}"),
        }
        // What comes after the error is done.
        gpu.launch(&one, "add", &x, &x, 1);
        assert_eq!(one.clone_dtoh(&x).unwrap(), [1, 0]);
    }
}
