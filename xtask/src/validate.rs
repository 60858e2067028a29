//! The catalogue under the verifier and `ptxas`: every kernel, configuration and target.

use crate::Failure;
use crate::ptxas::{Ptxas, first_error};
use crate::run::parallel;
use crate::summary::{Part, Summary};
use crate::tools;

/// The targets that kernels claim, unless their launch rule asks for more.
const TARGETS: [&str; 8] = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"];

/// A kernel of the catalogue in one configuration, for one target.
struct Entry {
    /// Kernel and what differs from the defaults.
    name: String,
    target: &'static str,
    /// The PTX, or why there is none.
    ptx: Result<String, String>,
}

/// What `ptxas -v` says about a kernel.
#[derive(Debug, Default, PartialEq)]
struct Resources {
    registers: u32,
    shared: u32,
    /// Bytes stored and loaded.
    spills: u32,
}

/// Everything that the catalogue claims to assemble: each kernel at its defaults and in its examples.
fn catalogue() -> Vec<Entry> {
    let mut entries = Vec::new();
    for kernel in warpwright_kernels::catalogue() {
        for assignments in std::iter::once(&"").chain(kernel.examples) {
            let name = format!("{} {assignments}", kernel.name).trim().to_string();
            for target in TARGETS {
                if claims(kernel, assignments, target) {
                    let ptx = emit(kernel, assignments, target);
                    entries.push(Entry { name: name.clone(), target, ptx });
                }
            }
        }
    }
    entries
}

/// Every kernel as it is without configuration, by name, for an old target and a new one.
pub(crate) fn default_modules() -> Result<Vec<(String, String)>, String> {
    let mut modules = Vec::new();
    for kernel in warpwright_kernels::catalogue() {
        for target in ["sm_75", "sm_90"] {
            modules.push((format!("kernel {} for {target}", kernel.name), emit(kernel, "", target)?));
        }
    }
    Ok(modules)
}

/// Whether the launch rule of a configuration lets it run on a target.
fn claims(kernel: &warpwright_kernels::Entry, assignments: &str, target: &str) -> bool {
    let oldest = kernel.configure_text(assignments).map(|kernel| kernel.launch().min_sm);
    let sm = target.parse::<warpwright_ptx::ir::Arch>().map(|arch| arch.sm);
    !matches!((oldest, sm), (Ok(oldest), Ok(sm)) if sm < oldest)
}

/// The PTX of a kernel that the verifier accepts.
fn emit(kernel: &warpwright_kernels::Entry, assignments: &str, target: &str) -> Result<String, String> {
    let kernel = kernel.configure_text(assignments).map_err(|error| error.to_string())?;
    let arch = target.parse().map_err(|error| format!("{error}"))?;
    let module = kernel.module(arch).map_err(|mistakes| mistakes.to_string())?;
    let info = warpwright_ptx::verify(&module).map_err(|errors| errors.to_string())?;
    match info.diagnostics.iter().next() {
        Some(finding) => Err(finding.to_string()),
        None => Ok(warpwright_ptx::print(&module)),
    }
}

/// `cargo xtask validate`: the table, and a failure for whatever does not assemble or spills.
pub(crate) fn run() -> Result<(), Failure> {
    let tools = tools::set_up().map_err(Failure::Failed)?;
    let ptxas = Ptxas::new(&tools.ptxas).map_err(Failure::Failed)?;
    let mut summary = Summary::default();
    check(&ptxas, &mut summary, true);
    summary.finish()
}

/// Assembles the catalogue; `table` prints what each kernel uses.
pub(crate) fn check(ptxas: &Ptxas, summary: &mut Summary, table: bool) {
    let entries = catalogue();
    let results = parallel(&entries, |entry| {
        let ptx = entry.ptx.as_ref().map_err(|why| format!("is not built: {why}"))?;
        let assembled = ptxas.assemble_for(ptx, entry.target).map_err(|log| first_error(&log))?;
        let used = resources(&assembled.log);
        if used.spills > 0 { Err(format!("spills {} bytes", used.spills)) } else { Ok(used) }
    });
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let mut passed = 0;
    for (entry, result) in entries.iter().zip(&results) {
        let Entry { name, target, .. } = entry;
        match result {
            Ok(Resources { registers, shared, .. }) => {
                passed += 1;
                if table {
                    println!("{name:width$}  {target:8} {registers:4} registers {shared:7} B shared");
                }
            }
            Err(why) => eprintln!("{name:width$}  {target:8} {why}"),
        }
    }
    let failed = entries.len() - passed;
    summary.add(Part { name: "kernels, assembled".to_string(), passed, failed, remark: String::new() });
}

/// Reads the resources of the last function in a log of `ptxas -v`.
fn resources(log: &str) -> Resources {
    let number_before = |line: &str, unit: &str| {
        let before = line.split(unit).next().filter(|before| before.len() < line.len())?;
        before.split_whitespace().next_back()?.parse().ok()
    };
    let mut used = Resources::default();
    for line in log.lines() {
        used.registers = number_before(line, " registers").unwrap_or(used.registers);
        used.shared = number_before(line, " bytes smem").unwrap_or(used.shared);
        let spills = [" bytes spill stores", " bytes spill loads"];
        used.spills += spills.iter().filter_map(|unit| number_before(line, unit)).sum::<u32>();
    }
    used
}

#[cfg(test)]
mod tests {
    use super::{Resources, resources};

    #[test]
    fn resources_are_read_from_the_log() {
        let log = "ptxas info    : Compiling entry function 'k' for 'sm_90'\n\
                   ptxas info    : Function properties for k\n\
                   \x20   0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n\
                   ptxas info    : Used 39 registers, used 1 barriers, 4096 bytes smem\n";
        assert_eq!(resources(log), Resources { registers: 39, shared: 4096, spills: 12 });
    }
}
