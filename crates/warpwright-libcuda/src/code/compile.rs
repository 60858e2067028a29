//! Compiles PTX to code that a device runs, with the compiler's messages.
//!
//! Messages have the format of the driver's compiler, since clients search them: `ptxas application ptx input, line N;
//! error   : …`. The texts are our own.

use super::{Managed, Options};
use crate::state::{Context, Device, config};
use crate::types::{Result, Status};
use std::time::Instant;
use warpwright_ptx::diag::{Diagnostic, Diagnostics, LineIndex, Severity};
use warpwright_ptx::ir::{self, Arch, Space, Version};
use warpwright_ptx::verify::ModuleInfo;
use warpwright_vm::DeviceError;

/// The name of the input in messages.
const INPUT: &str = "ptxas application ptx input";

/// The last message of the driver's compiler after an error.
const ABORTED: &str = "ptxas fatal   : Ptx assembly aborted due to errors";

/// PTX that was parsed and verified.
pub(crate) struct Checked {
    pub(super) module: ir::Module,
    info: ModuleInfo,
}

impl Checked {
    /// Its kernels, in the order of the text.
    pub(crate) fn kernels(&self) -> impl Iterator<Item = &str> {
        self.module.entries().map(|entry| entry.name.as_ref())
    }
}

/// Properties of compiled code that the virtual GPU does not know.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The target of its PTX.
    pub(crate) arch: Arch,
    /// Constant memory of the module's variables, in bytes.
    pub(crate) constant_bytes: u64,
    /// Whether it declares dynamic shared memory.
    pub(crate) has_dynamic_shared: bool,
    /// Its kernels, in the order of the text.
    pub(crate) kernels: Vec<String>,
}

/// Parses PTX and checks it against its rules, the driver's version and a target.
pub(crate) fn check(text: &[u8], target: Arch, options: &mut Options) -> Result<Checked> {
    let begun = Instant::now();
    // Other bytes than ASCII can be in comments and strings alone; positions are told by lines, which stay.
    let text = String::from_utf8_lossy(text);
    let checked = accepted_version(&text, options).and_then(|()| read(&text, options)).and_then(|checked| {
        let arch = checked.module.target.arch;
        if target.runs(arch) {
            return Ok(checked);
        }
        options.error(&format!(
            "ptxas fatal   : the text is for '{arch}', which '{target}' does not run: compile it for '{target}' or \
             an earlier target without a suffix"
        ));
        Err(Status::NO_BINARY_FOR_GPU)
    });
    options.spent(begun.elapsed());
    checked
}

/// Compiles PTX for a context, with its variables in the device's memory, and managed ones in the host's.
pub(crate) fn compile(
    text: &[u8],
    context: &Context,
    options: &mut Options,
    known: &Managed,
) -> Result<(warpwright_vm::Module, Facts, Managed)> {
    let device = &*context.device;
    let checked = check(text, device.arch(), options)?;
    let vm = device.vm()?;
    let begun = Instant::now();
    let (managed, placed) = known.placed(&checked.module, context)?;
    let loaded = vm.load_with(&checked.module, &checked.info, &placed).map_err(|error| match error {
        DeviceError::OutOfMemory { .. } => Status::OUT_OF_MEMORY,
        error => {
            let line = match &error {
                DeviceError::Load(error) => {
                    line_of(error.origin, &LineIndex::new(&String::from_utf8_lossy(text)))
                }
                _ => None,
            };
            options.error(&message(line, "error   ", &error.to_string()));
            options.error(ABORTED);
            Status::INVALID_PTX
        }
    })?;
    let facts = facts(&checked.module);
    tell(&loaded, &facts, &checked.module, device, options);
    options.spent(begun.elapsed());
    Ok((loaded.with_text(&String::from_utf8_lossy(text)), facts, managed))
}

fn facts(module: &ir::Module) -> Facts {
    let constants = module.globals().filter(|variable| variable.space.base() == Space::Const);
    Facts {
        arch: module.target.arch,
        constant_bytes: constants.filter_map(ir::Variable::bytes).sum(),
        has_dynamic_shared: module.has_dynamic_shared(),
        kernels: module.entries().map(|entry| entry.name.to_string()).collect(),
    }
}

/// Refuses PTX newer than the driver, before anything else is read.
fn accepted_version(text: &str, options: &mut Options) -> Result<()> {
    let Some((line, version)) = version(text) else { return Ok(()) };
    let release = config()?.driver_version;
    let newest = Version::accepted_by(release).unwrap_or(Version::OLDEST);
    if version <= newest {
        return Ok(());
    }
    let (major, minor) = (release / 1000, release % 1000 / 10);
    let what = format!(
        "Unsupported .version {version}; current version is '{newest}': the driver is that of CUDA \
         {major}.{minor}; `warpwright exec --driver VERSION` (WARPWRIGHT_DRIVER_VERSION) makes it another one"
    );
    options.error(&message(Some(line), "fatal   ", &what));
    options.error(ABORTED);
    Err(Status::UNSUPPORTED_PTX_VERSION)
}

/// Whether a text begins like PTX: otherwise it is no code of any kind.
pub(super) fn begins_as_ptx(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    behind_comments(&text).is_some_and(|rest| rest.starts_with(".version"))
}

/// A text without its leading comments; `None` if they do not end.
fn behind_comments(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.split_once('\n')?.1;
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/")?.1;
        } else {
            return Some(rest);
        }
    }
}

/// The version that a text declares, and its line; `None` if it does not begin like PTX, which the parser will report.
fn version(text: &str) -> Option<(u32, Version)> {
    let rest = behind_comments(text)?;
    let line = 1 + text[..text.len() - rest.len()].bytes().filter(|byte| *byte == b'\n').count() as u32;
    let number = rest.strip_prefix(".version")?.trim_start();
    let number = number.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    let (major, minor) = number.split_once('.')?;
    // A number that no version will have is newer than all of them.
    let number = |digits: &str| digits.parse::<u32>().ok().map(|number| number.min(255) as u8);
    Some((line, Version::new(number(major)?, number(minor)?)))
}

fn read(text: &str, options: &mut Options) -> Result<Checked> {
    let tell = |diagnostics: &Diagnostics, options: &mut Options| {
        let lines = LineIndex::new(text);
        diagnostics.iter().for_each(|diagnostic| diagnose(diagnostic, &lines, options));
    };
    let refused = |diagnostics: Diagnostics, options: &mut Options| {
        tell(&diagnostics, options);
        options.error(ABORTED);
        Status::INVALID_PTX
    };
    let module = warpwright_ptx::parse(text).map_err(|diagnostics| refused(diagnostics, options))?;
    let info = warpwright_ptx::verify(&module).map_err(|diagnostics| refused(diagnostics, options))?;
    if !info.diagnostics.is_empty() {
        tell(&info.diagnostics, options);
    }
    Ok(Checked { module, info })
}

/// Writes a diagnostic: errors to one log, warnings to the other, notes there if the client wants verbose messages.
fn diagnose(diagnostic: &Diagnostic, lines: &LineIndex<'_>, options: &mut Options) {
    let severity = diagnostic.severity();
    let kind = match severity {
        Severity::Error => "error   ",
        Severity::Warning => "warning ",
        _ => "info    ",
    };
    let help = diagnostic.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
    let what = format!("{}{help} [{}]", diagnostic.message, diagnostic.code);
    let line = message(line_of(diagnostic.origin, lines), kind, &what);
    match severity {
        Severity::Error => options.error(&line),
        Severity::Warning => options.info(&line),
        _ if options.verbose => options.info(&line),
        _ => {}
    }
}

/// The line of a text that something comes from.
pub(super) fn line_in(origin: ir::Origin, text: &[u8]) -> Option<u32> {
    line_of(origin, &LineIndex::new(&String::from_utf8_lossy(text)))
}

fn line_of(origin: ir::Origin, lines: &LineIndex<'_>) -> Option<u32> {
    match origin {
        ir::Origin::Text(span) => Some(lines.position(span.start).line),
        _ => None,
    }
}

pub(super) fn message(line: Option<u32>, kind: &str, what: &str) -> String {
    match line {
        Some(line) => format!("{INPUT}, line {line}; {kind}: {what}"),
        None => format!("ptxas {kind}: {what}"),
    }
}

/// The resources of functions, for a client that wants verbose messages.
fn tell(
    loaded: &warpwright_vm::Module,
    facts: &Facts,
    module: &ir::Module,
    device: &Device,
    options: &mut Options,
) {
    if !options.verbose {
        return;
    }
    let globals = module.globals().filter(|variable| variable.space.base() == Space::Global);
    let global_bytes: u64 = globals.filter_map(ir::Variable::bytes).sum();
    let constants = match facts.constant_bytes {
        0 => String::new(),
        bytes => format!(", {bytes} bytes cmem[3]"),
    };
    options.info(&format!("ptxas info    : {global_bytes} bytes gmem{constants}"));
    for kernel in facts.kernels.iter().filter_map(|name| loaded.kernel(name).ok()) {
        let shared = match kernel.static_shared {
            0 => String::new(),
            bytes => format!(", {bytes} bytes smem"),
        };
        options.info(&format!(
            "ptxas info    : Compiling entry function '{0}' for '{1}'\n\
             ptxas info    : Function properties for {0}\n    \
             {2} bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
             ptxas info    : Used {3} registers{shared}",
            kernel.name,
            device.arch(),
            kernel.local_bytes,
            super::registers(kernel, options.max_registers),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_behind_comments() {
        for (text, expected) in [
            (".version 8.0\n", Some((1, Version::new(8, 0)))),
            ("// one\n/* two\n three */ .version\t9.5 .target", Some((3, Version::new(9, 5)))),
            ("\r\n\r\n.version 7.10", Some((3, Version::new(7, 10)))),
            (".version eight", None),
            (".version 8", None),
            (".version 999.0", Some((1, Version::new(255, 0)))),
            (".target sm_80", None),
            ("// .version 8.0", None),
            ("/* .version 8.0", None),
            ("", None),
        ] {
            assert_eq!(version(text), expected, "{text:?}");
        }
    }
}
