//! Rules for every program, whichever passes have changed it.
//!
//! [`Program::check`] lists the rules; they do not depend on kernels.

use super::Program;
use super::step::{Access, Step};
use crate::graph::{NodeId, Role, Tensor};
use std::collections::{HashMap, HashSet};
use thiserror::Error;

/// A program that cannot be run, because a pass has made a mistake.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// A step reads a tensor that was not made yet.
    #[error("step {step} ({name}) reads `{tensor}`, which no step before it makes")]
    Unmade {
        /// The step's place.
        step: usize,
        /// The step's name.
        name: &'static str,
        /// The tensor's name.
        tensor: String,
    },
    /// A step makes a tensor that was already made.
    #[error("step {step} ({name}) makes `{tensor}`, which is there already")]
    MadeTwice {
        /// The step's place.
        step: usize,
        /// The step's name.
        name: &'static str,
        /// The tensor's name.
        tensor: String,
    },
    /// A step reads or changes an outdated version of a state.
    #[error("step {step} ({name}) takes `{tensor}` of a state, but the state is `{now}` by then")]
    Version {
        /// The step's place.
        step: usize,
        /// The step's name.
        name: &'static str,
        /// The version that it takes.
        tensor: String,
        /// The version that is there.
        now: String,
    },
    /// No step makes an output.
    #[error("no step makes the output `{tensor}`")]
    Output {
        /// The tensor's name.
        tensor: String,
    },
    /// A node's work is done twice.
    #[error("the work of node {} is done twice, the second time by step {step} ({name})", .node.index())]
    Twice {
        /// The node.
        node: NodeId,
        /// The step's place.
        step: usize,
        /// The step's name.
        name: &'static str,
    },
    /// No step does a node's work.
    #[error("no step does the work of node {}", .node.index())]
    Lost {
        /// The node.
        node: NodeId,
    },
}

impl Program {
    /// Whether the program can be run, and does the work of its graph once:
    ///
    /// - a step reads tensors that are given (inputs, weights, states) or that an earlier step makes;
    /// - a tensor is made once, and given tensors are not made;
    /// - a step reads and changes only the newest version of a state, because memory holds no other;
    /// - outputs are made, and each node's work is done by one step.
    ///
    /// Passes preserve these rules; their tests call this function.
    ///
    /// # Errors
    ///
    /// The first broken rule, in the order of the steps, with the step that breaks it.
    pub fn check(&self) -> Result<(), ProgramError> {
        let mut state = Checked { program: self, made: HashSet::new(), newest: HashMap::new() };
        let mut done = vec![false; self.nodes.len()];
        for (at, step) in self.steps.iter().enumerate() {
            state.step(at, step)?;
            for &node in &step.nodes {
                match done.get_mut(node.index()) {
                    Some(done) if !*done => *done = true,
                    _ => return Err(ProgramError::Twice { node, step: at, name: step.op.name() }),
                }
            }
        }
        if let Some(lost) = done.iter().position(|&done| !done) {
            return Err(ProgramError::Lost { node: NodeId(lost as u32) });
        }
        for tensor in self.handles() {
            let info = self.info(tensor);
            if info.role == Role::Output && !state.made.contains(&tensor) {
                return Err(ProgramError::Output { tensor: info.name.clone() });
            }
        }
        Ok(())
    }
}

/// What is there before a step.
struct Checked<'a> {
    program: &'a Program,
    made: HashSet<Tensor>,
    /// The version of a state that its memory holds, where it was changed.
    newest: HashMap<Tensor, Tensor>,
}

impl Checked<'_> {
    fn step(&mut self, at: usize, step: &Step) -> Result<(), ProgramError> {
        let name = step.op.name();
        let named = |tensor: Tensor| self.program.info(tensor).name.clone();
        let operands = step.op.operands();
        for operand in operands.iter().filter(|operand| operand.access == Access::Read) {
            let tensor = operand.tensor;
            let info = self.program.info(tensor);
            if !info.is_given() && !self.made.contains(&tensor) {
                return Err(ProgramError::Unmade { step: at, name, tensor: named(tensor) });
            }
            if info.role == Role::State {
                let root = self.program.root(tensor);
                let now = self.newest.get(&root).copied().unwrap_or(root);
                if now != tensor {
                    return Err(ProgramError::Version {
                        step: at,
                        name,
                        tensor: named(tensor),
                        now: named(now),
                    });
                }
            }
        }
        for operand in operands.iter().filter(|operand| operand.access == Access::Write) {
            let tensor = operand.tensor;
            let info = self.program.info(tensor);
            if info.is_given() || !self.made.insert(tensor) {
                return Err(ProgramError::MadeTwice { step: at, name, tensor: named(tensor) });
            }
            if let Some(root) = info.state {
                self.newest.insert(root, tensor);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{ComputeGraph, GraphError, TensorType};
    use crate::program::StepOp;

    /// `y = silu(s)` of a state, the state's next version, and `z = silu` of that.
    fn program() -> Result<Program, GraphError> {
        let mut graph = ComputeGraph::new();
        let row = TensorType::f32([1, 4]);
        let (state, value) = (graph.state("state", row), graph.input("value", row));
        let y = graph.silu("y", state)?;
        let next = graph.assign("next", state, value)?;
        let z = graph.silu("z", next)?;
        let sum = graph.add("sum", y, z)?;
        graph.output(sum)?;
        Program::new(&graph)
    }

    fn broken(change: impl FnOnce(&mut Vec<Step>)) -> Result<(), ProgramError> {
        let mut program = program().expect("a graph");
        change(program.steps_mut());
        program.check()
    }

    /// Each mistake that a pass can make is found, and is found as what it is.
    #[test]
    fn mistakes_are_found() {
        assert_eq!(broken(|_| {}), Ok(()));
        assert!(matches!(broken(|steps| steps.swap(2, 3)), Err(ProgramError::Unmade { step: 2, .. })));
        assert!(matches!(broken(|steps| steps.swap(0, 1)), Err(ProgramError::Version { step: 1, .. })));
        assert!(matches!(broken(|steps| steps.truncate(3)), Err(ProgramError::Lost { .. })));
        let twice = |steps: &mut Vec<Step>| steps.push(steps[0].clone());
        assert!(matches!(broken(twice), Err(ProgramError::Version { step: 4, .. })));
        let twice = |steps: &mut Vec<Step>| steps.push(steps[2].clone());
        assert!(matches!(broken(twice), Err(ProgramError::MadeTwice { step: 4, .. })));
        let node_twice = |steps: &mut Vec<Step>| steps[1].nodes = steps[0].nodes.clone();
        assert!(matches!(broken(node_twice), Err(ProgramError::Twice { step: 1, .. })));
        let no_output = |steps: &mut Vec<Step>| {
            let nodes = steps.pop().expect("the sum").nodes;
            steps[0].nodes.extend(nodes);
        };
        assert!(matches!(broken(no_output), Err(ProgramError::Output { .. })));
        // A result that is written where the host's value is.
        let given = |steps: &mut Vec<Step>| {
            if let [
                _,
                Step { op: StepOp::Assign { value, .. }, .. },
                Step { op: StepOp::Elementwise { out, .. }, .. },
                ..,
            ] = &mut steps[..]
            {
                *out = *value;
            }
        };
        assert!(matches!(broken(given), Err(ProgramError::MadeTwice { step: 2, .. })));
    }
}
