//! Checks of the whole graph, except for the order of its nodes.

use super::build::{ComputeGraph, TensorInfo};
use super::error::GraphError;
use super::tensor::{Element, Role};
use std::collections::HashSet;

/// See [`ComputeGraph::check`].
pub(super) fn check(graph: &ComputeGraph) -> Result<(), GraphError> {
    let tensors = || graph.tensors().iter();
    distinct("tensors", tensors().filter(|info| info.is_named()).map(|info| &*info.name))?;
    distinct("nodes", graph.nodes().iter().map(|node| &*node.name))?;
    tensors().filter(|info| info.is_given()).try_for_each(given)
}

/// Whether no name comes twice.
fn distinct<'a>(what: &'static str, names: impl Iterator<Item = &'a str>) -> Result<(), GraphError> {
    let mut seen = HashSet::new();
    let mut names = names;
    match names.find(|&name| !seen.insert(name)) {
        Some(name) => Err(GraphError::Name { what, name: name.into() }),
        None => Ok(()),
    }
}

/// Whether a tensor of its type can be given.
fn given(info: &TensorInfo) -> Result<(), GraphError> {
    let numbers = matches!(info.ty.element, Element::Float(_) | Element::U32 | Element::U64);
    let (allowed, rule) = match info.role {
        Role::Weight => {
            (numbers || matches!(info.ty.element, Element::Weights(_)), "floats, integers or a weight matrix")
        }
        Role::State => {
            (numbers || matches!(info.ty.element, Element::Cache(_)), "floats, integers or a cache")
        }
        _ => (numbers, "floats or integers"),
    };
    let rule = if allowed { info.ty.broken_rule() } else { Some(rule.into()) };
    match rule {
        Some(rule) => {
            Err(GraphError::Given { tensor: info.name.clone(), role: info.role, ty: info.ty, rule })
        }
        None => Ok(()),
    }
}
