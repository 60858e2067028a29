//! Launches as the host sees them: what findings and traps say, the order of things, shapes, and memory
//! that the host changes while a kernel runs.

mod bytes;
mod dependent;
mod end;
mod findings;
mod host;
mod mapped;
mod memory;
mod native;
mod noted;
mod noted_global;
mod order;
mod shapes;
mod textures;

use std::time::{Duration, Instant};
use warpwright_vm::*;

/// A kernel of one parameter, `p` in `%rd1`, with some registers.
fn kernel(body: &str) -> String {
    format!(
        ".version 7.8
.target sm_80
.address_size 64
.file 1 \"kernel.cu\"
.visible .entry k(.param .u64 p)
{{
    .reg .pred %p<8>;
    .reg .b16 %rs<8>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd1, %rd1;
{body}
}}
"
    )
}

/// A device with two host threads.
fn device() -> Device {
    let mut config = DeviceConfig::default();
    config.workers = 2;
    Device::new(config).unwrap()
}

fn load(device: &Device, text: &str) -> Module {
    let module = warpwright_ptx::parse(text).unwrap();
    let info = warpwright_ptx::verify(&module).unwrap();
    device.load(&module, &info).unwrap()
}

/// Begins kernel `k` with a buffer.
fn launch<T: Element>(
    device: &Device,
    text: &str,
    config: &LaunchConfig,
    buffer: &Buffer<T>,
    options: &Options,
) -> Running {
    device.launch(&load(device, text), "k", config, &[Arg::buffer(buffer)], options).unwrap()
}

/// Waits for something that must come, but not for ever.
fn until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never comes");
        std::thread::yield_now();
    }
}

/// The line of the text, from 1, that an instruction stands in.
fn line(text: &str, origin: warpwright_ptx::ir::Origin) -> usize {
    let warpwright_ptx::ir::Origin::Text(span) = origin else { panic!("not of the text") };
    text[..span.start as usize].lines().count().max(1)
}

/// The line, from 1, that ends with a comment `// NAME`.
fn marked(text: &str, name: &str) -> usize {
    let mark = format!("// {name}");
    text.lines().position(|line| line.ends_with(&mark)).expect("the text has the mark") + 1
}
