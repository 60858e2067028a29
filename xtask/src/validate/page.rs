//! `docs/kernels.md`: the resources of kernels.

use super::figures::{self, Figure, Goal};
use super::resident_blocks;
use super::{Entry, Page, TARGETS, is_shown};
use crate::run::root;
use std::fmt::Write;
use warpwright_dsl::Block;
use warpwright_estimate::machine::Resources;

/// Its path.
const PATH: &str = "docs/kernels.md";

/// Targets for which resident warps are shown.
const OCCUPANCY: [&str; 2] = ["sm_80", "sm_90"];

const HEAD: &str = "
## Resources

The tables list every kernel of the catalogue: its defaults, its examples and every format of weights. A field that is
not named has its default (`warpwright kernels` explains the fields). The columns are the threads of a block, its bytes
of shared memory, the registers of a thread for each target, and for two targets the warps resident on a
multiprocessor. Examples are shown for two targets; `cargo xtask validate --full` assembles them for all. A dash
means that the target lacks the kernel. `+ 8 B` is local memory of a thread, for registers that are set aside; one
instruction in 40 of a loop may be for them, and more is a failure.
";

const FIGURES_HEAD: &str = "\
# Kernels: figures and resources

`cargo xtask validate --write` makes this page with the pinned `ptxas` and `nvdisasm` and the counters of the virtual
GPU; `cargo xtask test` compares it with their results. The figures are not timings.

## Figures

Machine instructions are those that `nvdisasm` lists. A figure of a whole kernel counts each loop as often as the
virtual GPU ran it, and all other instructions once for every warp, skipped or not. A goal is an upper limit for the
figure. A floor is the necessary minimum: for products with vectors, the multiplication of each weight, its
unpacking (a float from a quant, or four bytes for `dp4a`) and its part of a 16-byte load; for products on
the tensor cores, HMMA, `ldmatrix` and copies; for decode attention, the products (on the tensor cores, or a
multiplication for each element and head) and the loads.

| kernel | figure | sm_80 | sm_90 | |
| --- | --- | ---: | ---: | ---: |
";

/// Figures that were taken, each for every target.
pub(super) type Taken = Vec<[Result<f64, String>; figures::TARGETS.len()]>;

/// The page.
pub(super) fn text(figures: &str, resources: &str) -> String {
    [FIGURES_HEAD, figures, HEAD, resources].concat()
}

/// The rows of the table of figures.
pub(super) fn figures(figures: &[&Figure], taken: &Taken) -> String {
    let mut rows = String::new();
    for (figure, values) in figures.iter().zip(taken) {
        let values = values.each_ref().map(|value| match value {
            Ok(value) => format!("{value:.2}"),
            Err(_) => "-".into(),
        });
        let goal = match figure.goal {
            Goal::AtMost(goal) => format!("goal {goal}"),
            Goal::Floor(floor) => format!("floor {floor}"),
        };
        let name = format!("{} {}", figure.kernel, figure.assignments);
        let _ = writeln!(rows, "| {} | {} | {} | {goal} |", name.trim(), figure.what, values.join(" | "));
    }
    rows
}

/// The resources of the kernels among the entries, a section for each.
pub(super) fn resources(entries: &[Entry], results: &[Result<Resources, String>]) -> String {
    let mut page = String::new();
    let targets: Vec<_> = TARGETS.into_iter().filter(|target| *target != "sm_90a").collect();
    for kernel in warpwright_kernels::catalogue() {
        if !entries.iter().any(|entry| entry.kernel == kernel.name) {
            continue;
        }
        let _ = write!(page, "\n### {}\n\n{}.\n\n", kernel.name, kernel.doc);
        let columns: Vec<_> = OCCUPANCY.iter().map(|target| format!("warps, {target}")).collect();
        let _ = writeln!(
            page,
            "| configuration | threads | shared | {} | {} |\n| --- |{}",
            targets.join(" | "),
            columns.join(" | "),
            " ---: |".repeat(2 + targets.len() + columns.len())
        );
        for assignments in super::configurations(kernel) {
            let of = |target: &str| {
                let mut all = entries.iter().zip(results).filter(|_| is_shown(assignments, target));
                all.find(|(entry, _)| {
                    entry.kernel == kernel.name && entry.assignments == assignments && entry.target == target
                })
            };
            let built = targets.iter().rev().find_map(|target| {
                let (entry, result) = of(target)?;
                Some((entry.built.as_ref().ok()?, result.as_ref().ok()?))
            });
            let Some((emitted, used)) = built else { continue };
            let (Block::Exactly(dims) | Block::AtMost(dims)) = emitted.launch.block;
            let threads = dims.iter().product::<u32>();
            let registers = targets.iter().map(|target| match of(target) {
                Some((_, Ok(used))) if used.local > 0 => format!("{} + {} B", used.registers, used.local),
                Some((_, Ok(used))) => used.registers.to_string(),
                _ if is_shown(assignments, target) => "-".into(),
                _ => String::new(),
            });
            let warps = OCCUPANCY.iter().map(|target| match of(target) {
                Some((Entry { built: Ok(emitted), .. }, Ok(used))) => {
                    let blocks = resident_blocks(*used, emitted);
                    (blocks * threads.div_ceil(32)).to_string()
                }
                _ => "-".into(),
            });
            let cells: Vec<_> = registers.chain(warps).collect();
            let name = if assignments.is_empty() { "defaults" } else { assignments };
            let shared = used.shared + emitted.launch.dynamic_shared;
            let _ = writeln!(page, "| {name} | {threads} | {shared} | {} |", cells.join(" | "));
        }
    }
    page
}

/// Writes the page, or says where it differs.
pub(super) fn check(text: &str, page: Page) -> Result<(), String> {
    let path = root().join(PATH);
    if page == Page::Written {
        return std::fs::write(&path, text).map_err(|error| format!("cannot write {PATH}: {error}"));
    }
    let known = std::fs::read_to_string(&path).map_err(|error| format!("cannot read {PATH}: {error}"))?;
    if known == text {
        return Ok(());
    }
    let lines = known.lines().zip(text.lines()).enumerate();
    let (line, (known, found)) = lines
        .into_iter()
        .find(|(_, (known, found))| known != found)
        .unwrap_or((0, ("the same", "other lines")));
    Err(format!(
        "{PATH}:{}: says\n  {known}\nand what is found is\n  {found}\nrun `cargo xtask validate --write`",
        line + 1
    ))
}
