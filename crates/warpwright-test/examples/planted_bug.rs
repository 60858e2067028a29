//! The report of a kernel test when a barrier is missing.
//!
//! ```text
//! cargo run -p warpwright-test --example planted_bug
//! ```

use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_test::KernelTest;

/// Reverses blocks of 64 elements through shared memory.
struct Reverse {
    barrier: bool,
}

impl AnyKernel for Reverse {
    fn entry(&self) -> String {
        "reverse".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        let n = Extent::dim("n");
        vec![ArgDesc::input::<f32>("x", n), ArgDesc::output::<f32>("y", n)]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(64).grid(Extent::dim("n").per(64))
    }

    fn body(&self, k: K<'_>) {
        let (x, y) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"));
        let block = k.shared::<f32>(64);
        block.st(k.tid(), x.ld(k.global_tid()));
        if self.barrier {
            k.sync();
        }
        y.st(k.global_tid(), block.ld(k.u32(63) - k.tid()));
    }
}

fn main() {
    let x: Vec<f32> = (0..128).map(|i| i as f32).collect();
    for barrier in [true, false] {
        match KernelTest::new(&Reverse { barrier }).dim("n", 128).input("x", &x).run() {
            Ok(run) => println!("with a barrier: y begins with {:?}", &run.output::<f32>("y")[..4]),
            Err(error) => println!("without a barrier:\n{error}"),
        }
    }
}
