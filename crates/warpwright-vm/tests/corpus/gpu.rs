//! Runs a case on the virtual GPU, with every check, and says what is wrong.

use crate::case::{Case, Deserved, End, Expect, File};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use warpwright_ptx::ir::{self, Arch};
use warpwright_ptx::verify::ModuleInfo;
use warpwright_vm::{
    Arg, Buffer, Checks, Device, DeviceConfig, Finding, LaunchConfig, Options, PageAccess, Report, Schedule,
};

/// Instructions of all lanes after which a launch counts as a runaway; none needs a tenth of it.
const BUDGET: u64 = 1 << 31;

/// Where multimem addresses of the first buffer are; of others twice as far, and so on.
const MULTIMEM: u64 = 1 << 32;

/// A file of the corpus, verified.
pub(crate) struct Program {
    module: ir::Module,
    info: ModuleInfo,
}

impl Program {
    pub(crate) fn new(module: ir::Module) -> Result<Self, String> {
        let info =
            warpwright_ptx::verify(&module).map_err(|errors| format!("it does not verify: {errors:?}"))?;
        Ok(Self { module, info })
    }
}

/// Runs a case once. An error says everything that is wrong.
pub(crate) fn run(file: &File, program: &Program, case: &Case, schedule: Schedule) -> Result<(), String> {
    let mut config = DeviceConfig::default();
    config.arch = Arch::sm(file.arch as u16);
    config.workers = 2;
    let device = Device::new(config).map_err(|error| error.to_string())?;
    let fail = |error: warpwright_vm::DeviceError| error.to_string();
    let module = match (device.load(&program.module, &program.info), &case.end) {
        (Ok(_), End::Refused(words)) => return Err(format!("it is loaded, though it lacks `{words}`")),
        (Err(error), End::Refused(words)) if error.to_string().contains(words) => return Ok(()),
        (module, _) => module.map_err(fail)?,
    };

    let mut buffers: Vec<Buffer<u8>> = Vec::new();
    for buffer in &case.buffers {
        let size = buffer.init.as_ref().map_or(buffer.expect.size(), Vec::len);
        buffers.push(device.alloc(size).map_err(fail)?);
    }
    let mut addresses: Vec<u64> = buffers.iter().map(Buffer::address).collect();
    let mut reserved = Vec::new();
    for &buffer in &case.multimem {
        let (target, address, bytes) = (addresses[buffer], MULTIMEM << buffer, buffers[buffer].len() as u64);
        let words: Vec<AtomicU32> = (0..bytes.div_ceil(4)).map(|_| AtomicU32::new(0)).collect();
        let range = device.reserve(address, Arc::new(words), bytes, "multicast").map_err(fail)?;
        range.set(0, bytes, PageAccess::Multimem { distance: target.wrapping_sub(address) }).map_err(fail)?;
        addresses[buffer] = address;
        reserved.push(range);
    }
    let patch = |bytes: &mut [u8], pointers: &[(usize, usize)]| {
        for &(at, buffer) in pointers {
            bytes[at..at + 8].copy_from_slice(&addresses[buffer].to_le_bytes());
        }
    };
    let mut before = Vec::new();
    for (on_device, buffer) in buffers.iter().zip(&case.buffers) {
        let mut init = buffer.init.clone();
        if let Some(bytes) = &mut init {
            patch(bytes, &buffer.pointers);
            on_device.write(bytes).map_err(fail)?;
        }
        before.push(init);
    }
    for global in &case.globals {
        if let Some(bytes) = &global.init {
            device.write_variable(&module, global.name, bytes).map_err(fail)?;
        }
    }
    let mut images = Vec::new();
    for image in &case.images {
        let array = device.array("image", image.shape).map_err(fail)?;
        array.write(&image.texels).map_err(fail)?;
        let seen = array.image().clone();
        images.push((
            array,
            match &image.sampler {
                Some(sampler) => Ok(device.texture("texture", seen, sampler.clone()).map_err(fail)?),
                None => Err(device.surface("surface", seen).map_err(fail)?),
            },
        ));
    }
    let arguments: Vec<Arg> = case
        .arguments
        .iter()
        .map(|argument| {
            let mut bytes = argument.bytes.clone();
            patch(&mut bytes, &argument.pointers);
            if let Some((address, _)) = argument.symbol.and_then(|name| module.variable(name)) {
                bytes = address.to_le_bytes().into();
            }
            if let Some(image) = argument.image {
                let handle = match &images[image].1 {
                    Ok(texture) => texture.handle(),
                    Err(surface) => surface.handle(),
                };
                bytes = handle.to_le_bytes().into();
            }
            Arg::Bytes(bytes)
        })
        .collect();

    let dim = |dim: crate::case::Dim| (dim.0, dim.1, dim.2);
    let mut launch = LaunchConfig::new(1, 1);
    launch.grid_dim = dim(case.grid);
    launch.block_dim = dim(case.block);
    launch.shared_mem_bytes = case.shared;
    launch.cooperative = case.cooperative;
    launch.cluster_dim = case.cluster.map(|blocks| (blocks, 1, 1));
    let options = Options { checks: Checks::all(), schedule, max_instructions: BUDGET, ..Options::default() };
    let report = match (device.launch(&module, &case.entry, &launch, &arguments, &options), &case.end) {
        (Err(error), End::Trap(words)) if words.iter().any(|word| error.to_string().contains(word)) => {
            return Ok(());
        }
        (running, _) => running.map_err(fail)?.wait(),
    };

    let mut wrong = Vec::new();
    findings(file, case, &report, &mut wrong);
    let trap = report.trap.as_ref().map(|trap| format!("{}{}", at(file, trap.origin), trap.message));
    match (&case.end, trap) {
        (End::Normal, None) => {
            for (index, buffer) in case.buffers.iter().enumerate() {
                let after = buffers[index].read();
                check(
                    &format!("buffer {index}"),
                    &buffer.expect,
                    before[index].as_deref(),
                    &after,
                    &mut wrong,
                );
            }
            for (index, image) in case.images.iter().enumerate() {
                let after = images[index].0.read().map_err(fail)?;
                check(&format!("image {index}"), &image.expect, Some(&image.texels), &after, &mut wrong);
            }
            for global in &case.globals {
                let after = device.read_variable(&module, global.name).map_err(fail)?;
                let before = global.init.as_deref();
                check(&format!("`{}`", global.name), &global.expect, before, &after, &mut wrong);
            }
            printed(case, &report, &mut wrong);
        }
        (End::Normal, Some(trap)) => wrong.push(format!("trap: {trap}")),
        // Dealt with above.
        (End::Refused(_), _) => {}
        (End::Trap(words), None) => wrong.push(format!("no trap that names one of {words:?}")),
        (End::Trap(words), Some(trap)) => {
            if !words.iter().any(|word| trap.contains(word)) {
                wrong.push(format!("the trap names none of {words:?}: {trap}"));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n      ")) }
}

fn check(what: &str, expect: &Expect, before: Option<&[u8]>, after: &[u8], wrong: &mut Vec<String>) {
    if let Err(problem) = expect.check(before, after) {
        wrong.push(format!("{what}: {problem}"));
    }
}

/// The line of the file that an instruction came from, with its text.
fn at(file: &File, origin: Option<ir::Origin>) -> String {
    let Some(ir::Origin::Text(span)) = origin else { return String::new() };
    let line = 1 + file.text[..span.start as usize].matches('\n').count();
    let text = file.text.lines().nth(line - 1).unwrap_or_default().trim();
    format!("line {line}, `{text}`: ")
}

/// Every finding must be one that the source deserves, and those that always show must be there.
fn findings(file: &File, case: &Case, report: &Report, wrong: &mut Vec<String>) {
    let is = |finding: &Finding, deserved: &Deserved| {
        let mut opcodes: Vec<&str> = finding.accesses.iter().map(|site| site.opcode).collect();
        opcodes.sort_unstable();
        finding.kind.name() == deserved.kind && opcodes == deserved.opcodes
    };
    for finding in &report.findings {
        if !case.findings.iter().any(|deserved| is(finding, deserved)) {
            let lines: String = finding.accesses.iter().map(|site| at(file, Some(site.origin))).collect();
            wrong.push(format!("finding: {lines}{finding}, {} times", finding.count));
        }
    }
    for deserved in case.findings.iter().filter(|deserved| deserved.always) {
        if !report.findings.iter().any(|finding| is(finding, deserved)) {
            let Deserved { kind, opcodes, why, .. } = deserved;
            wrong.push(format!("no `{kind}` of {opcodes:?}, though {why}"));
        }
    }
}

/// Compares the lines that were printed, in any order.
fn printed(case: &Case, report: &Report, wrong: &mut Vec<String>) {
    let mut lines: Vec<String> = report.output.lines().map(without_addresses).collect();
    lines.sort();
    if lines != case.prints {
        wrong.push(format!("printed {lines:?}, expected {:?}", case.prints));
    }
}

/// The line with `0x…` for each address.
fn without_addresses(line: &str) -> String {
    let word = |word: &str| if word.starts_with("0x") { "0x…".to_owned() } else { word.to_owned() };
    line.split(' ').map(word).collect::<Vec<String>>().join(" ")
}
