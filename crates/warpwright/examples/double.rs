//! A kernel of one's own, launched on a virtual GPU.

use warpwright::runtime::{Device, RuntimeError, VmConfig};

use warpwright::dsl::*;

/// `y = 2 x`.
#[derive(Config)]
struct Double {
    /// Threads of a block.
    #[field(domain = Domain::THREADS, default = 64)]
    threads: u32,
}

#[derive(Args)]
#[args(of = Double)]
struct DoubleArgs<M: Mode> {
    #[arg(len = n)]
    x: M::In<f32>,
    #[arg(len = n, shares(x))]
    y: M::Out<f32>,
    n: M::Scalar<u32>,
}

impl Kernel for Double {
    type Args<M: Mode> = DoubleArgs<M>;

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(self.threads).grid(Extent::dim("n").per(self.threads.into()))
    }

    fn body<'k>(&self, k: K<'k>, DoubleArgs { x, y, n }: DoubleArgs<Body<'k>>) {
        let i = k.global_tid();
        k.when(i.lt(n), || y.st(i, x.ld(i) + x.ld(i)));
    }
}

fn main() -> Result<(), RuntimeError> {
    let device = Device::vm(VmConfig::default())?;
    let stream = device.default_stream();
    let (x, y) = (stream.clone_htod(&[1.0f32, 2.5, -4.0])?, stream.alloc::<f32>(3)?);
    let double = device.kernel(&Double { threads: 64 })?;
    double.with(DoubleArgs { x: &x, y: &y, n: 3 }).launch(&stream)?;
    println!("{:?}", stream.clone_dtoh(&y)?);
    Ok(())
}
