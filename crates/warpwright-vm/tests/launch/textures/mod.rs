//! Textures and surfaces, held against the formulas of the CUDA programming guide in `f64`, at odd extents.

mod checks;
mod sampling;
mod surfaces;

use crate::*;
use std::ops::Range;
use warpwright_ptx::op::texture::Geometry;

/// What a thread does with four words of `from` in `%r1` to `%r4`; what it leaves in `%r5` to `%r8` goes to `to`.
fn text(body: &str) -> String {
    format!(
        ".version 8.1
.target sm_90
.address_size 64
.global .texref bound;
.global .surfref drawn;
.visible .entry k(.param .u64 object, .param .u64 from, .param .u64 to)
{{
    .reg .pred %p<8>;
    .reg .b16 %rs<8>;
    .reg .b32 %r<32>;
    .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [object];
    ld.param.u64 %rd2, [from];
    ld.param.u64 %rd3, [to];
    mov.u32 %r9, %tid.x;
    mov.u32 %r10, %ctaid.x;
    mad.lo.u32 %r9, %r10, 64, %r9;
    mul.wide.u32 %rd4, %r9, 16;
    add.u64 %rd5, %rd2, %rd4;
    add.u64 %rd6, %rd3, %rd4;
    ld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%rd5];
    mov.u32 %r5, 0; mov.u32 %r6, 0; mov.u32 %r7, 0; mov.u32 %r8, 0;
{body}
    st.global.v4.u32 [%rd6], {{%r5, %r6, %r7, %r8}};
    ret;
}}
"
    )
}

/// Runs the body in as many threads as there are inputs, in blocks of 64, with all checks.
fn run(device: &Device, body: &str, handle: u64, inputs: &[[u32; 4]]) -> (Vec<[u32; 4]>, Report) {
    let module = load(device, &text(body));
    let blocks = inputs.len().div_ceil(64);
    let mut flat: Vec<u32> = inputs.iter().flatten().copied().collect();
    flat.resize(256 * blocks, 0);
    let (from, to) = (device.clone_htod(&flat).unwrap(), device.alloc_zeros::<u32>(flat.len()).unwrap());
    let config = LaunchConfig { block_dim: (64, 1, 1), ..LaunchConfig::new(blocks as u32, 1) };
    let args = [Arg::Pointer(handle), Arg::buffer(&from), Arg::buffer(&to)];
    let report = device.launch(&module, "k", &config, &args, &Options::checked()).unwrap().wait();
    let words = to.read();
    let outputs = words.chunks(4).take(inputs.len()).map(|words| words.try_into().unwrap()).collect();
    (outputs, report)
}

/// The same where nothing must be found.
#[track_caller]
fn clean(device: &Device, body: &str, handle: u64, inputs: &[[u32; 4]]) -> Vec<[u32; 4]> {
    let (outputs, report) = run(device, body, handle, inputs);
    assert!(report.is_clean(), "{report}");
    outputs
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 32) as u32
    }

    fn float(&mut self, range: Range<f32>) -> f32 {
        range.start + (range.end - range.start) * (self.next() >> 8) as f32 / (1 << 24) as f32
    }
}

const F32: TexelFormat = TexelFormat { channel: Channel::F32, channels: 1 };

fn shape(geometry: Geometry, width: u32, height: u32, slices: u32, format: TexelFormat) -> ArrayShape {
    ArrayShape { geometry, width, height, slices, levels: None, format }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
