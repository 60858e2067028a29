//! The verifier: the rules that a module must follow so that `ptxas` accepts it and a GPU runs it.
//!
//! [`verify`] checks a whole module and collects all errors. A module without errors yields a [`ModuleInfo`], which
//! the later stages require.
//!
//! The rules, by submodule:
//!
//! - `module`: the header, names and their linkage, aliases, debug sections;
//! - `variable`: spaces, types, dimensions and initial values of variables and parameters;
//! - `function`: signatures, directives, register declarations, labels;
//! - the families of instructions themselves ([`crate::op::Rule`]), with [`Check`]: modifiers, types
//!   and operands;
//! - `lowest`: PTX version and target of all features used;
//! - `shared`: static shared memory of a kernel and everything that it calls;
//! - `assigned`: registers that are read and not written;
//! - `convergence`: barriers and collectives under divergent control flow, by the levels of [`Uniformity`] over the
//!   [`Cfg`].
//!
//! An *error* is something that is provably wrong or that `ptxas` refuses. Undecidable cases are a warning or a note,
//! unless the DSL built the module and could have known.

mod assigned;
pub mod cfg;
mod control;
mod convergence;
mod function;
mod grouped;
mod lowest;
mod module;
mod overlap;
mod shared;
mod stack;
pub mod uniformity;
mod uses;
mod variable;

pub use crate::op::Level;
pub use cfg::{BlockId, Cfg};
pub use lowest::{Lowest, NoTarget, lowest};
pub use uniformity::Uniformity;

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::*;
use crate::op::Check;
use crate::op::control::Way;
use assigned::Gap;
use lowest::{Gate, Requirements};
use uses::Uses;

/// The verifier's results about a module that it accepted.
#[derive(Clone, Debug)]
pub struct ModuleInfo {
    /// Warnings and notes.
    pub diagnostics: Diagnostics,
    /// The functions, prototypes included, in the order of [`Module::functions`].
    pub functions: Vec<FunctionInfo>,
    requirements: Requirements,
}

impl ModuleInfo {
    /// The lowest PTX version and target that suffice for the module.
    pub fn lowest(&self) -> Result<Lowest, NoTarget> {
        self.requirements.lowest()
    }

    /// The lowest PTX version that suffices for the module on a given target, and the feature that requires that
    /// version; `None` if the target itself or nothing in particular requires it.
    pub fn lowest_version(&self, arch: Arch) -> (Version, Option<Feature>) {
        self.requirements.version(arch)
    }
}

/// The verifier's results about a function.
#[derive(Clone, Debug)]
pub struct FunctionInfo {
    /// The control-flow graph.
    pub cfg: Cfg,
    /// For a kernel, its static shared memory in bytes, including that of all functions that it may call.
    pub static_shared: u64,
    /// The registers that it declares, by class.
    pub registers: RegisterCounts,
    /// Whether its body contains `griddepcontrol.wait`. Functions that it calls do not count: without a wait of its own a
    /// kernel is no programmatic dependent launch.
    pub waits_for_grids: bool,
    /// Whether each of its threads executes that, whichever way it takes, before it executes
    /// `griddepcontrol.launch_dependents` and before it ends. Then the launches in front of a launch are complete when
    /// one behind it begins.
    pub waits_first: bool,
}

/// Numbers of declared registers, by size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterCounts {
    /// Predicates.
    pub predicate: u32,
    /// 8 bits.
    pub bits8: u32,
    /// 16 bits.
    pub bits16: u32,
    /// 32 bits.
    pub bits32: u32,
    /// 64 bits.
    pub bits64: u32,
    /// 128 bits.
    pub bits128: u32,
}

impl RegisterCounts {
    /// Counts the registers of a function.
    pub fn of(function: &Function) -> Self {
        let mut counts = RegisterCounts::default();
        for range in &function.registers {
            let class = match range.ty.bits() {
                1 => &mut counts.predicate,
                8 => &mut counts.bits8,
                16 => &mut counts.bits16,
                32 => &mut counts.bits32,
                64 => &mut counts.bits64,
                _ => &mut counts.bits128,
            };
            *class += range.count * range.vector.map_or(1, |width| width.elements() as u32);
        }
        counts
    }
}

/// Checks a module. Returns its errors if there are any, otherwise the [`ModuleInfo`] with warnings and notes.
pub fn verify(module: &Module) -> Result<ModuleInfo, Diagnostics> {
    let mut out = Diagnostics::new();
    let index = ModuleIndex::new(module);
    let mut gate = Gate::new(module);
    let mut needs = Needs::new();
    module::check(&index, &mut out);
    lowest::item_needs(module, &mut |origin, needed| gate.check(needed, origin, &mut out), &mut needs);
    let mut functions = Vec::new();
    for function in module.functions() {
        function::signature(&index, function, &mut out);
        let uses = Uses::new(function);
        if !uses.invalid.is_empty() {
            function::invalid(function, &uses, &mut out);
            continue;
        }
        function::body(&index, function, &uses, &mut out);
        instructions(&index, function, &uses, &mut gate, &mut needs, &mut out);
        let cfg = Cfg::new(&index, function);
        if function.body.is_some() {
            flow(function, &cfg, &uses, &mut out);
        }
        functions.push(FunctionInfo {
            static_shared: 0,
            registers: RegisterCounts::of(function),
            waits_for_grids: overlap::waits(function),
            waits_first: overlap::waits_first(function, &cfg),
            cfg,
        });
    }
    let sizes = shared::sizes(&index, &mut out);
    for (info, size) in functions.iter_mut().zip(sizes) {
        info.static_shared = size;
    }
    if out.has_errors() {
        return Err(out);
    }
    Ok(ModuleInfo { diagnostics: out, functions, requirements: gate.requirements })
}

fn instructions(
    index: &ModuleIndex<'_>,
    function: &Function,
    uses: &Uses,
    gate: &mut Gate,
    needs: &mut Needs,
    out: &mut Diagnostics,
) {
    for statement in function.statements() {
        let instruction = match &statement.kind {
            StatementKind::Instruction(instruction) => instruction,
            StatementKind::Loc(Loc { inlined: Some(_), .. }) => {
                needs.clear();
                needs.version("`.loc` with `inlined_at`", 7, 0);
                gate.check(needs, statement.origin, out);
                continue;
            }
            _ => continue,
        };
        let mut check = Check::new(index, function, instruction.op.name(), statement.origin, out);
        if let Some(guard) = instruction.guard {
            check.guard(guard);
        }
        instruction.op.check(&mut check);
        needs.clear();
        instruction.op.needs(needs);
        if !needs.is_empty() {
            gate.check(needs, statement.origin, out);
        }
    }
    // Each register once: its first use stands for all.
    const { assert!(SpecialRegister::ALL.len() <= u128::BITS as usize) };
    let mut seen = 0u128;
    for (statement, special) in &uses.specials {
        let bit = 1u128 << (special.register as u32);
        if seen & bit == 0 {
            seen |= bit;
            needs.clear();
            lowest::special_needs(special.register, needs);
            gate.check(needs, function.statements()[*statement as usize].origin, out);
        }
    }
}

/// Checks that depend on control flow: registers without a value, unreachable code, barriers that threads miss.
fn flow(function: &Function, cfg: &Cfg, uses: &Uses, out: &mut Diagnostics) {
    unreachable(function, cfg, out);
    for finding in assigned::unassigned(function, cfg, uses) {
        let origin = function.statements()[finding.statement as usize].origin;
        let built = matches!(origin, Origin::Rust(_));
        let name = function.register_name(finding.reg);
        let message = match finding.gap {
            Gap::NeverWritten => format!("`{name}` is read, and nothing ever writes it"),
            Gap::OnAllPaths => format!("`{name}` is read before anything writes it"),
            Gap::OnSomePath => format!("`{name}` is read here, and not written on every path to here"),
        };
        let code = match finding.gap {
            Gap::NeverWritten | Gap::OnAllPaths if built => Code::Unassigned,
            _ => Code::MaybeUnassigned,
        };
        let declared = function.register_range(finding.reg).origin;
        out.push(Diagnostic::new(code, origin, message).with_related(declared, "it is declared here"));
    }
    convergence::check(function, cfg, uses, out);
}

/// Reports each run of blocks that nothing reaches, unless it only ends the function.
fn unreachable(function: &Function, cfg: &Cfg, out: &mut Diagnostics) {
    let mut reported = false;
    for (i, block) in cfg.blocks().iter().enumerate() {
        if cfg.is_reachable(BlockId(i as u32)) {
            reported = false;
            continue;
        }
        let work = function.statements()[block.statements()].iter().find(|statement| match &statement.kind {
            StatementKind::Instruction(instruction) => {
                !matches!(instruction.op.way(), Way::To(_) | Way::Away)
            }
            _ => false,
        });
        if let Some(statement) = work
            && !std::mem::replace(&mut reported, true)
        {
            let message = "nothing reaches this instruction";
            out.push(Diagnostic::new(Code::Unreachable, statement.origin, message));
        }
    }
}
