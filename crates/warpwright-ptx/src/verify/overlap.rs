//! How kernels overlap with the launches around them (`griddepcontrol`).

use super::cfg::Cfg;
use crate::ir::*;
use crate::op::Op;
use crate::op::control::GridDependency;

/// What an instruction says of other grids.
fn action(statement: &Statement) -> Option<GridDependency> {
    let StatementKind::Instruction(instruction) = &statement.kind else { return None };
    match &instruction.op {
        Op::Griddepcontrol(op) => Some(op.action),
        _ => None,
    }
}

fn is_guarded(statement: &Statement) -> bool {
    matches!(&statement.kind, StatementKind::Instruction(instruction) if instruction.guard.is_some())
}

fn is_call(statement: &Statement) -> bool {
    matches!(&statement.kind, StatementKind::Instruction(Instruction { op: Op::Call(_), .. }))
}

/// Whether the body contains `griddepcontrol.wait`.
pub(super) fn waits(function: &Function) -> bool {
    function.statements().iter().any(|statement| action(statement) == Some(GridDependency::Wait))
}

/// Whether a thread has waited, whichever way it took, before it lets dependent grids begin and before it ends. A function
/// that is called before may do either.
pub(super) fn waits_first(function: &Function, cfg: &Cfg) -> bool {
    let statements = function.statements();
    // Of each block whether a thread has waited at its end, on all ways.
    let mut waited = vec![true; cfg.blocks().len()];
    let mut changed = true;
    let entering = |waited: &[bool], id| {
        let mut before = cfg.predecessors(id).iter().filter(|&&from| cfg.is_reachable(from));
        id.index() > 0 && before.all(|from| waited[from.index()])
    };
    while changed {
        changed = false;
        for &id in cfg.reverse_postorder() {
            let waits =
                |at| action(&statements[at]) == Some(GridDependency::Wait) && !is_guarded(&statements[at]);
            let after = entering(&waited, id) || cfg.block(id).statements().any(waits);
            changed |= std::mem::replace(&mut waited[id.index()], after) != after;
        }
    }
    cfg.reverse_postorder().iter().all(|&id| {
        let mut has = entering(&waited, id);
        let orderly = cfg.block(id).statements().all(|at| {
            let statement = &statements[at];
            match action(statement) {
                Some(GridDependency::Wait) => has |= !is_guarded(statement),
                Some(GridDependency::LaunchDependents) => return has,
                None => return has || !is_call(statement),
            }
            true
        });
        orderly && (has || !cfg.block(id).leaves)
    })
}
