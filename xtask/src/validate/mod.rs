//! Runs the catalogue through the verifier and `ptxas`: every kernel at its defaults for every target, its examples for
//! two targets or all, and writes the page of results.
//!
//! The catalogue's tests check that every example builds and verifies for every target. The result of `ptxas` depends
//! on the target in three ways: the oldest instructions, those of sm_80, those of sm_90 and later.
//!
//! ```text
//!   catalogue ── PTX ──► ptxas ──► resources ──┐
//!                          │                   ├──► docs/kernels.md
//!                          └─► nvdisasm ──► figures
//! ```

mod figures;
mod page;

use crate::run::parallel;
use crate::summary::{SuiteResult, Summary};
use crate::tools::{self, Tools};
use clap::builder::PossibleValuesParser;
use figures::{FIGURES, Figure};
use std::ops::Range;
use warpwright_dsl::{Block, LaunchRule};
use warpwright_estimate::machine::{Disassembler, Ptxas, Resources, first_error};
use warpwright_ptx::ir::Arch;

/// The targets that kernels support, unless their launch rule needs more.
const TARGETS: [&str; 8] = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"];

/// The targets for which examples are assembled by default.
const EXAMPLES: [&str; 2] = ["sm_80", "sm_90"];

/// One instruction in so many of a loop may load or store a spilled register: what FlashAttention sets aside beside its
/// results costs less than smaller tiles would.
const SPILLS: usize = 40;

/// A kernel of the catalogue in one configuration, for one target.
struct Entry {
    kernel: &'static str,
    /// The differences from the defaults.
    assignments: &'static str,
    target: &'static str,
    /// The PTX, or why there is none.
    built: Result<Emitted, String>,
}

/// A kernel's text and how it is launched.
struct Emitted {
    ptx: String,
    arch: Arch,
    launch: LaunchRule,
}

impl Entry {
    fn name(&self) -> String {
        format!("{} {}", self.kernel, self.assignments).trim().to_string()
    }
}

/// The configurations of a kernel that are assembled, for as long as the program runs.
fn configurations(kernel: &warpwright_kernels::Entry) -> impl Iterator<Item = &'static str> {
    kernel.configurations().into_iter().map(|assignments| &*assignments.leak())
}

/// What is assembled: the catalogue or one kernel of it, each kernel in its configurations.
fn catalogue(only: Option<&str>, extent: Extent) -> Vec<Entry> {
    let mut chosen = Vec::new();
    for kernel in warpwright_kernels::catalogue() {
        if only.is_some_and(|name| name != kernel.name) {
            continue;
        }
        for assignments in configurations(kernel) {
            let of = |target: &&str| extent == Extent::Full || is_shown(assignments, target);
            let targets = TARGETS.into_iter().filter(of);
            chosen.extend(targets.map(|target| (kernel, assignments, target)));
        }
    }
    chosen.retain(|(kernel, assignments, target)| claims(kernel, assignments, target));
    parallel(&chosen, |&(kernel, assignments, target)| {
        let built = emit(kernel, assignments, target);
        Entry { kernel: kernel.name, assignments, target, built }
    })
}

/// Whether the page says what a configuration takes on a target: what every run has found.
fn is_shown(assignments: &str, target: &str) -> bool {
    assignments.is_empty() || EXAMPLES.contains(&target)
}

/// Every kernel as it is without configuration, by name, for an old target and a new one.
pub(crate) fn default_modules() -> Result<Vec<(String, String)>, String> {
    let mut modules = Vec::new();
    for kernel in warpwright_kernels::catalogue() {
        for target in ["sm_75", "sm_90"] {
            if claims(kernel, "", target) {
                let emitted = emit(kernel, "", target)?;
                modules.push((format!("kernel {} for {target}", kernel.name), emitted.ptx));
            }
        }
    }
    Ok(modules)
}

/// Whether the launch rule of a configuration lets it run on a target.
fn claims(kernel: &warpwright_kernels::Entry, assignments: &str, target: &str) -> bool {
    let oldest = kernel.configure_text(assignments).map(|kernel| kernel.launch().min_sm);
    let sm = target.parse::<Arch>().map(|arch| arch.sm);
    !matches!((oldest, sm), (Ok(oldest), Ok(sm)) if sm < oldest)
}

/// The PTX of a kernel that the verifier accepts.
fn emit(kernel: &warpwright_kernels::Entry, assignments: &str, target: &str) -> Result<Emitted, String> {
    let kernel = kernel.configure_text(assignments).map_err(|error| error.to_string())?;
    let arch = target.parse().map_err(|error| format!("{error}"))?;
    let built = kernel.build(arch).map_err(|mistakes| mistakes.to_string())?;
    let info = warpwright_ptx::verify(&built.module).map_err(|errors| errors.to_string())?;
    match info.diagnostics.iter().next() {
        Some(finding) => Err(finding.to_string()),
        None => Ok(Emitted { ptx: warpwright_ptx::print(&built.module), arch, launch: built.launch }),
    }
}

/// Blocks that are resident on a multiprocessor at once.
fn resident_blocks(used: Resources, emitted: &Emitted) -> u32 {
    let (Block::Exactly(block) | Block::AtMost(block)) = emitted.launch.block;
    used.resident_blocks(emitted.arch, block.iter().product(), emitted.launch.dynamic_shared)
}

/// What to do with the kernels.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Their examples for every target too, and not for two
    #[arg(long)]
    full: bool,
    /// Write docs/kernels.md instead of comparing it
    #[arg(long)]
    write: bool,
    /// Print what it says of one kernel instead
    #[arg(long, value_name = "KERNEL", value_parser = PossibleValuesParser::new(names()))]
    only: Option<String>,
}

/// The names of the kernels.
fn names() -> impl Iterator<Item = &'static str> {
    warpwright_kernels::catalogue().iter().map(|entry| entry.name)
}

/// For which targets examples are assembled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Two of them.
    Usual,
    /// All that they claim.
    Full,
}

/// What to do with the page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    /// Compare it: a difference is a failure.
    Compared,
    /// Write it.
    Written,
}

/// `cargo xtask validate`: a failure for whatever does not assemble or has much local memory in a loop, and the
/// page.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let extent = if options.full { Extent::Full } else { Extent::Usual };
    let page = if options.write { Page::Written } else { Page::Compared };
    if let Some(kernel) = &options.only {
        return show(kernel, extent);
    }
    let tools = tools::set_up()?;
    let ptxas = Ptxas::new(&tools.ptxas, &tools::scratch())?;
    let mut summary = Summary::begin();
    check(&ptxas, &tools, page, extent, &mut summary);
    summary.finish()
}

/// `cargo xtask validate --only KERNEL`: what the page would say of one kernel.
fn show(kernel: &str, extent: Extent) -> Result<(), String> {
    let tools = tools::set_up()?;
    let ptxas = Ptxas::new(&tools.ptxas, &tools::scratch())?;
    let disassembler = Disassembler::new(&tools.nvdisasm, &tools::scratch())?;
    let mut summary = Summary::begin();
    let figures: Vec<_> = FIGURES.iter().filter(|figure| figure.kernel == kernel).collect();
    let taken = take_figures(&figures, &ptxas, &disassembler, &mut summary);
    print!("{}", page::figures(&figures, &taken));
    let entries = catalogue(Some(kernel), extent);
    let results = assemble(&entries, &ptxas, &disassembler, &mut summary);
    print!("{}", page::resources(&entries, &results));
    summary.finish()
}

/// Assembles the catalogue, and writes the page or compares it.
pub(crate) fn check(ptxas: &Ptxas, tools: &Tools, page: Page, extent: Extent, summary: &mut Summary) {
    let entries = catalogue(None, extent);
    let disassembler = match Disassembler::new(&tools.nvdisasm, &tools::scratch()) {
        Ok(disassembler) => disassembler,
        Err(why) => return summary.add_failure("kernels, assembled", &why),
    };
    let results = assemble(&entries, ptxas, &disassembler, summary);
    let figures: Vec<_> = FIGURES.iter().collect();
    let taken = take_figures(&figures, ptxas, &disassembler, summary);
    let text = page::text(&page::figures(&figures, &taken), &page::resources(&entries, &results));
    let (passed, failed) = match page::check(&text, page) {
        Ok(()) => (1, 0),
        Err(why) => {
            eprintln!("{why}");
            (0, 1)
        }
    };
    summary.add(SuiteResult { name: "kernels, the page".to_string(), passed, failed, remark: String::new() });
}

/// Assembles kernels: what each uses, or why it may not be.
fn assemble(
    entries: &[Entry],
    ptxas: &Ptxas,
    disassembler: &Disassembler,
    summary: &mut Summary,
) -> Vec<Result<Resources, String>> {
    let results = parallel(entries, |entry| {
        let emitted = entry.built.as_ref().map_err(|why| format!("is not built: {why}"))?;
        let assembled = ptxas.assemble_whole(&emitted.ptx, entry.target).map_err(|log| first_error(&log))?;
        let used = Resources::read(&assembled.log);
        if used.local > 0 {
            let code = disassembler.code(&assembled.cubin, None)?;
            let spills = |body: &Range<usize>| code.count(body.clone(), &["LDL", "STL"]);
            if let Some(body) = code.loops().iter().find(|body| spills(body) * SPILLS > body.len()) {
                let (spills, all) = (spills(body), body.len());
                return Err(format!(
                    "has {} bytes of local memory, and a loop of {all} instructions has {spills} for it",
                    used.local
                ));
            }
        }
        match resident_blocks(used, emitted) {
            0 => Err(format!("does not fit a multiprocessor: {used:?}")),
            _ => Ok(used),
        }
    });
    let mut passed = 0;
    for (entry, result) in entries.iter().zip(&results) {
        match result {
            Ok(_) => passed += 1,
            Err(why) => eprintln!("{} for {}: {why}", entry.name(), entry.target),
        }
    }
    let failed = entries.len() - passed;
    summary.add(SuiteResult {
        name: "kernels, assembled".to_string(),
        passed,
        failed,
        remark: String::new(),
    });

    results
}

/// Takes every figure for every target.
fn take_figures(
    figures: &[&Figure],
    ptxas: &Ptxas,
    disassembler: &Disassembler,
    summary: &mut Summary,
) -> page::Taken {
    // Those of one configuration share its launch.
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, figure) in figures.iter().enumerate() {
        let same = |group: &&mut Vec<usize>| {
            let first = figures[group[0]];
            (first.kernel, first.assignments, first.launch)
                == (figure.kernel, figure.assignments, figure.launch)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    let values = parallel(&groups, |group| {
        let of_group: Vec<_> = group.iter().map(|&at| figures[at]).collect();
        figures::TARGETS.map(|target| figures::take(&of_group, target, ptxas, disassembler))
    });
    let mut taken: page::Taken = vec![std::array::from_fn(|_| Err(String::new())); figures.len()];
    for (group, values) in groups.iter().zip(values) {
        for (target, values) in values.into_iter().enumerate() {
            group.iter().zip(values).for_each(|(&at, value)| taken[at][target] = value);
        }
    }
    let (mut passed, mut failed) = (0, 0);
    for (figure, values) in figures.iter().zip(&taken) {
        for (target, value) in figures::TARGETS.iter().zip(values) {
            match value {
                Ok(_) => passed += 1,
                Err(why) => {
                    failed += 1;
                    eprintln!(
                        "{} {} for {target}, {}: {why}",
                        figure.kernel, figure.assignments, figure.what
                    );
                }
            }
        }
    }
    summary.add(SuiteResult { name: "kernels, figures".to_string(), passed, failed, remark: String::new() });
    taken
}
