//! What a safe launch may do on a device that checks no access: kernels that promise to stay within their arguments.

use crate::{FOUND, clean};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_runtime::{Binder, Device, RuntimeError, VmConfig};

/// Stores 7 at an index of `y`, wherever that is.
struct Anywhere;

impl AnyKernel for Anywhere {
    fn entry(&self) -> String {
        "anywhere".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        vec![ArgDesc::output::<u32>("y", 1), ArgDesc::scalar::<u64>("at")]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(1)
    }

    fn body(&self, k: K<'_>) {
        k.ptr_mut::<u32>("y").at(k.scalar::<u64>("at")).st(0, k.u32(7));
    }
}

/// Stores 7 at index 0 of `y`, and takes an index too.
struct Inside;

// SAFETY: `y` has the one element that is written.
unsafe impl Bounded for Inside {}

impl AnyKernel for Inside {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn entry(&self) -> String {
        "inside".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        Anywhere.args()
    }

    fn launch(&self) -> LaunchRule {
        Anywhere.launch()
    }

    fn body(&self, k: K<'_>) {
        let at = k.scalar::<u64>("at");
        k.ptr_mut::<u32>("y").st(0, at.ne(0).select(k.u32(7), 7));
    }
}

/// Shows the promise of another kernel.
struct Borrows(Inside);

impl AnyKernel for Borrows {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(&self.0)
    }

    fn entry(&self) -> String {
        "borrows".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        Anywhere.args()
    }

    fn launch(&self) -> LaunchRule {
        Anywhere.launch()
    }

    fn body(&self, k: K<'_>) {
        Anywhere.body(k);
    }
}

#[track_caller]
fn unbounded<T>(result: Result<T, RuntimeError>) -> String {
    match result {
        Err(RuntimeError::Unbounded { kernel }) => kernel,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it is not refused"),
    }
}

#[test]
fn a_safe_launch_does_not_go_beyond_its_arguments() {
    if let Some(apart) = clean("bounded::a_safe_launch_does_not_go_beyond_its_arguments") {
        return apart.run().passed();
    }
    let device = Device::cuda(0).unwrap();
    let stream = device.default_stream();
    let y = stream.alloc_zeros::<u32>(1).unwrap();
    let host = device.alloc_mapped::<u32>(1).unwrap();
    let beyond = host.buffer().device_ptr().wrapping_sub(y.device_ptr()) / 4;
    let anywhere = device.kernel(&Anywhere).unwrap();
    let bind = |at: u64| -> Binder<'_> { anywhere.bind().buffer("y", &y).scalar("at", at) };

    assert_eq!(unbounded(bind(beyond).launch(&stream)), "anywhere");
    assert_eq!(unbounded(bind(0).prepare()), "anywhere", "what is given does not count");
    assert_eq!(unbounded(device.operands(&Anywhere)), "anywhere");
    stream.begin_capture().unwrap();
    assert_eq!(unbounded(bind(beyond).launch(&stream)), "anywhere");
    let graph = stream.end_capture().unwrap();
    assert!(graph.is_empty());
    stream.synchronize().unwrap();
    assert_eq!((host.get(0).unwrap(), device.statistics().launches), (0, 0));

    // Whoever promises it launches it, and what is prepared so is launched again.
    // SAFETY: index 0 is inside `y`.
    unsafe { bind(0).launch_unbounded(&stream) }.unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [7]);
    stream.memset_zeros(&y).unwrap();
    // SAFETY: as above.
    let prepared = unsafe { bind(0).prepare_unbounded() }.unwrap();
    stream.launch(&prepared).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [7]);
    // What the refusal is for: nobody else would have stopped it.
    // SAFETY: the word belongs to `host`, which outlives the launch.
    unsafe { bind(beyond).launch_unbounded(&stream) }.unwrap();
    stream.synchronize().unwrap();
    assert_eq!(host.get(0).unwrap(), 7);
}

/// Of a kernel that promises nothing, built with checked pointers: it traps where it would leave its argument.
#[test]
fn checked_pointers_do_not_go_beyond_their_arguments() {
    if let Some(apart) = clean("bounded::checked_pointers_do_not_go_beyond_their_arguments") {
        // The trap is told.
        return apart.run().exited(FOUND);
    }
    let device = Device::cuda(0).unwrap();
    let stream = device.default_stream();
    let y = stream.alloc_zeros::<u32>(1).unwrap();
    let host = device.alloc_mapped::<u32>(1).unwrap();
    let beyond = host.buffer().device_ptr().wrapping_sub(y.device_ptr()) / 4;
    let checked = device.checked(&Anywhere).unwrap();
    let bind = |at: u64| -> Binder<'_> { checked.bind().buffer("y", &y).scalar("at", at) };
    bind(0).launch(&stream).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [7]);
    // The same kernel without checks is another one.
    assert_eq!(
        unbounded(
            device.kernel(&Anywhere).unwrap().bind().buffer("y", &y).scalar("at", 0u64).launch(&stream)
        ),
        "anywhere"
    );
    bind(beyond).launch(&stream).unwrap();
    assert!(stream.synchronize().is_err());
    assert_eq!(host.get(0).unwrap(), 0);
}

#[test]
fn a_promise_is_of_the_kernel_that_has_given_it() {
    if let Some(apart) = clean("bounded::a_promise_is_of_the_kernel_that_has_given_it") {
        return apart.run().passed();
    }
    let device = Device::cuda(0).unwrap();
    let stream = device.default_stream();
    for kernel in [&Inside as &dyn AnyKernel, &Borrows(Inside)] {
        let kernel = device.kernel(kernel).unwrap();
        assert_eq!(kernel.entry(), "inside");
        let y = stream.alloc_zeros::<u32>(1).unwrap();
        kernel.bind().buffer("y", &y).scalar("at", 1u64 << 40).launch(&stream).unwrap();
        assert_eq!(stream.clone_dtoh(&y).unwrap(), [7]);
    }
    assert!(device.operands(&Borrows(Inside)).is_ok());
}

/// It does not cover what is built of another kernel with the same entry.
#[test]
fn a_promise_does_not_cover_a_namesake() {
    if let Some(apart) = clean("bounded::a_promise_does_not_cover_a_namesake") {
        return apart.run().passed();
    }
    struct Namesake;

    impl AnyKernel for Namesake {
        fn entry(&self) -> String {
            Inside.entry()
        }

        fn args(&self) -> Vec<ArgDesc> {
            Inside.args()
        }

        fn launch(&self) -> LaunchRule {
            Inside.launch()
        }

        fn body(&self, k: K<'_>) {
            Anywhere.body(k);
        }
    }

    let device = Device::cuda(0).unwrap();
    let stream = device.default_stream();
    let y = stream.alloc_zeros::<u32>(1).unwrap();
    let host = device.alloc_mapped::<u32>(1).unwrap();
    let beyond = host.buffer().device_ptr().wrapping_sub(y.device_ptr()) / 4;
    let namesake = device.kernel(&Namesake);
    let inside = device.kernel(&Inside).unwrap();
    inside.bind().buffer("y", &y).scalar("at", beyond).launch(&stream).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [7]);
    assert_eq!(host.get(0).unwrap(), 0);
    if let Ok(namesake) = namesake {
        let bound = namesake.bind().buffer("y", &y).scalar("at", beyond);
        assert_eq!(unbounded(bound.launch(&stream)), "inside");
    }
}

/// A virtual GPU checks what it does, and asks for no promise.
#[test]
fn a_virtual_gpu_runs_any_kernel() {
    let device = Device::vm(VmConfig::default()).unwrap();
    let stream = device.default_stream();
    let y = stream.alloc_zeros::<u32>(1).unwrap();
    let anywhere = device.kernel(&Anywhere).unwrap();
    anywhere.bind().buffer("y", &y).scalar("at", 0u64).launch(&stream).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [7]);
    anywhere.bind().buffer("y", &y).scalar("at", 1u64).launch(&stream).unwrap();
    let Err(RuntimeError::Failed(failure)) = stream.synchronize() else { panic!("it has not failed") };
    assert_eq!(failure.kernel, "anywhere");
    assert!(!failure.lost);
}
