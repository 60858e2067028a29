//! Runs PTX on the virtual GPU with all checks, and shows what they find.
//!
//! ```text
//! cargo run -p warpwright-vm --example find_a_race
//! ```

use warpwright_vm::render::Renderer;
use warpwright_vm::{Arg, Device, DeviceConfig, DeviceError, LaunchConfig, Options};

/// Each thread stores its number in shared memory and reads its neighbour's, with or without a barrier between.
fn neighbours(barrier: &str) -> String {
    format!(
        ".version 8.0
.target sm_80
.address_size 64
.visible .entry neighbours(.param .u64 out)
{{
    .shared .align 4 .b32 numbers[64];
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, numbers;
    mad.lo.u32 %r3, %r1, 4, %r2;
    st.shared.u32 [%r3], %r1;
    {barrier}
    xor.b32 %r4, %r1, 32;
    mad.lo.u32 %r5, %r4, 4, %r2;
    ld.shared.u32 %r6, [%r5];
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r6;
    ret;
}}
"
    )
}

fn main() -> Result<(), DeviceError> {
    let device = Device::new(DeviceConfig::default())?;
    let out = device.alloc_zeros::<u32>(64)?;
    for barrier in ["bar.sync 0;", ""] {
        let text = neighbours(barrier);
        let module = device.load_ptx(&text)?;
        let config = LaunchConfig::new(1, 64);
        let report =
            device.launch(&module, "neighbours", &config, &[Arg::buffer(&out)], &Options::checked())?.wait();
        println!(
            "between the accesses: `{barrier}`\n{}\n",
            Renderer::of_ptx("neighbours.ptx", &text).report(&report)
        );
    }
    Ok(())
}
