//! Handles of conditional nodes, and their parameters.

use super::entries;
use crate::engine::permitted;
use crate::graph::{self, Condition, Conditional, Graph, Task};
use crate::state::{CONTEXTS, current};
use crate::types::{CUDA_CONDITIONAL_NODE_PARAMS, CUcontext, CUgraph, In, Out, Result, Status};
use std::ffi::c_uint;

/// The flag of a handle with a default.
const ASSIGN_DEFAULT: c_uint = 1;

entries! {
    /// Creates a handle of a conditional node of a graph, or of one inside of it.
    fn cuGraphConditionalHandleCreate(
        handle: Out<u64>, graph: CUgraph, context: CUcontext, default: c_uint, flags: c_uint,
    ) {
        permitted()?;
        handle.required()?;
        let default = match flags {
            0 => None,
            ASSIGN_DEFAULT => Some(default),
            _ => return Err(Status::INVALID_VALUE),
        };
        let context = match context {
            CUcontext::NULL => current()?,
            context => CONTEXTS.get(context.0).map_err(|_| Status::INVALID_CONTEXT)?,
        };
        context.check()?;
        handle.set(Condition::create(&*graph::graph(graph)?, &context, default)?.handle())
    }
}

/// A conditional node. The graphs of its bodies go into the parameters.
pub(super) fn conditional(into: &Graph, params: &mut CUDA_CONDITIONAL_NODE_PARAMS) -> Result<Task> {
    let made = Conditional::create(into, params.handle, params.kind, params.size as usize)?;
    params.phGraph_out = bodies(&made);
    Ok(Task::Conditional(made))
}

/// The graphs of the bodies, in memory of the node.
fn bodies(conditional: &Conditional) -> In<CUgraph> {
    // SAFETY: the list stays where it is as long as the node, which is as long as the interface promises.
    unsafe { In::new(conditional.handles.as_ptr()) }
}

/// The parameters of a conditional node.
pub(super) fn conditional_params(conditional: &Conditional) -> CUDA_CONDITIONAL_NODE_PARAMS {
    CUDA_CONDITIONAL_NODE_PARAMS {
        handle: conditional.condition.handle(),
        kind: conditional.kind,
        size: conditional.handles.len() as c_uint,
        phGraph_out: bodies(conditional),
        ctx: conditional.condition.context.handle,
    }
}
