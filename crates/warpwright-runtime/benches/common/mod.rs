//! What benches of launches have in common: a kernel with the parameters of a decoder's, and a device that is held.

use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_runtime::{Device, HostBuffer, LaunchConfig, Stream};

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Four buffers and a number, as many a kernel of a decoder has, and next to nothing to do.
pub(crate) struct Touch;

impl AnyKernel for Touch {
    fn entry(&self) -> String {
        "touch".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        let n = || Extent::dim("n");
        vec![
            ArgDesc::input::<f32>("a", n()),
            ArgDesc::input::<f32>("b", n()),
            ArgDesc::input::<f32>("c", n()),
            ArgDesc::output::<f32>("d", n()),
            ArgDesc::scalar::<u32>("n"),
        ]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }

    fn body(&self, k: K<'_>) {
        let (a, b, c) = (k.ptr::<f32>("a"), k.ptr::<f32>("b"), k.ptr::<f32>("c"));
        let (d, n) = (k.ptr_mut::<f32>("d"), k.scalar::<u32>("n"));
        let i = k.global_tid();
        k.when(i.lt(n), || d.st(i, a.ld(i) + b.ld(i) * c.ld(i)));
    }
}

/// Waits until the word of its parameter is not zero.
const SPIN: &str = include_str!("../../tests/small/spin.ptx");

/// Holds the device by what its stream is asked for last. The word lets it go on when it is not zero.
pub(crate) fn hold(device: &Device, stream: &Stream) -> Outcome<HostBuffer<u32>> {
    let flag = device.alloc_mapped::<u32>(1)?;
    let function = device.load_ptx(SPIN)?.load_function("spin")?;
    let one = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
    let builder = stream.launch_builder(&function).arg(flag.buffer());
    // SAFETY: the kernel reads the one word of its parameter, which is mapped.
    #[allow(unsafe_code, reason = "a kernel in PTX")]
    unsafe {
        builder.launch(one)?;
    }
    Ok(flag)
}
