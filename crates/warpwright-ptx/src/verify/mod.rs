//! The verifier: what a module must keep so that `ptxas` takes it and a GPU runs it.
//!
//! [`verify`] looks at a whole module and collects everything that is wrong. A module without errors
//! yields a [`ModuleInfo`], which the later stages ask for.

mod check;
mod index;

pub use check::Check;
pub use index::{GlobalSymbol, ModuleIndex};

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::*;

/// What the verifier found out about a module that it accepted.
#[derive(Clone, Debug)]
pub struct ModuleInfo {
    /// Warnings and notes.
    pub diagnostics: Diagnostics,
}

/// Checks a module. Errors refuse it; warnings and notes come with the [`ModuleInfo`].
pub fn verify(module: &Module) -> Result<ModuleInfo, Diagnostics> {
    let mut out = Diagnostics::new();
    let index = ModuleIndex::new(module);
    let mut needs = Needs::new();
    for function in module.functions() {
        for statement in function.statements() {
            let StatementKind::Instruction(instruction) = &statement.kind else { continue };
            let mut check = Check::new(&index, function, instruction.op.name(), statement.origin, &mut out);
            if let Some(guard) = instruction.guard {
                check.guard(guard);
            }
            instruction.op.check(&mut check);
            needs.clear();
            instruction.op.needs(&mut needs);
            for (feature, need) in needs.unmet(module.version, module.target.arch) {
                let (code, what) = match need {
                    Requirement::Version(_) => {
                        (Code::NeedsVersion, format!("the module says {}", module.version))
                    }
                    _ => (Code::NeedsTarget, format!("the module is for {}", module.target.arch)),
                };
                out.push(Diagnostic::new(code, statement.origin, format!("{feature} needs {need}; {what}")));
            }
        }
    }
    if out.has_errors() { Err(out) } else { Ok(ModuleInfo { diagnostics: out }) }
}
