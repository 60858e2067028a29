//! Checks that the threads that a barrier or other collective requires reach it together.

use super::cfg::Cfg;
use super::control::Control;
use super::uniformity::Uniformity;
use super::uses::Uses;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::*;
use crate::op::{Convergence, Level};

/// Reports collectives under control flow, or guards, that their threads do not share.
pub(super) fn check(function: &Function, cfg: &Cfg, uses: &Uses, out: &mut Diagnostics) {
    // A function without branches and guards on its collectives has nothing to look for.
    let collective = |instruction: &Instruction| instruction.op.convergence() != Convergence::None;
    let divided = cfg.blocks().len() > 1;
    if !function.instructions().any(|i| (divided || i.guard.is_some()) && collective(i)) {
        return;
    }
    let control = Control::new(function, cfg);
    // Most kernels have their collectives where no branch decides.
    let conditional = control.conditional();
    let decided = cfg.reverse_postorder().iter().any(|id| {
        let mut statements = function.statements()[cfg.block(*id).statements()].iter();
        statements.any(|statement| {
            let StatementKind::Instruction(instruction) = &statement.kind else { return false };
            (conditional[id.index()] || instruction.guard.is_some()) && collective(instruction)
        })
    });
    if !decided {
        return;
    }
    let uniformity = Uniformity::with_control(function, cfg, uses, control);
    for id in cfg.reverse_postorder() {
        for i in cfg.block(*id).statements() {
            let statement = &function.statements()[i];
            let StatementKind::Instruction(instruction) = &statement.kind else { continue };
            let (wanted, who) = match instruction.op.convergence() {
                Convergence::None => continue,
                Convergence::Warp => (Level::WarpData, "warp"),
                Convergence::Warpgroup => (Level::WarpData, "warpgroup"),
                Convergence::Block => (Level::BlockData, "block"),
                Convergence::Cluster => (Level::Cluster, "cluster"),
            };
            let guard = instruction.guard.map_or(Level::Grid, |guard| uniformity.register(guard.reg));
            let level = guard.max(uniformity.block(*id));
            if level <= wanted {
                continue;
            }
            let name = instruction.op.name();
            let (code, verb) = match (level.is_undecided(), statement.origin) {
                (true, _) => (Code::Undecided, "may be"),
                (false, Origin::Rust(_)) => (Code::DivergentBarrier, "is"),
                (false, _) => (Code::MaybeDivergent, "may be"),
            };
            let message = format!("`{name}` wants all threads of the {who}, and {verb} reached by some only");
            let mut diagnostic = Diagnostic::new(code, statement.origin, message);
            if guard >= uniformity.block(*id) {
                diagnostic = diagnostic
                    .with_related(statement.origin, format!("its guard is {}", guard.description()));
            } else if let Some(cause) = uniformity.cause(*id) {
                diagnostic = diagnostic.with_related(
                    function.statements()[cause].origin,
                    format!("this branch decides, on a value that is {}", level.description()),
                );
            }
            out.push(diagnostic.with_help(format!(
                "move it to where all threads of the {who} pass, or make the condition the same for all of them"
            )));
        }
    }
}
