//! Graphs as text for Graphviz.

use super::nodes::Graph;
use super::{Conditional, Task};
use crate::lock;
use crate::types::{CUgraphConditionalNodeType, CUgraphNodeType};
use std::fmt::{self, Write};

/// Whether a flag is set that asks for a node's parameters: all of them, or those of its kind.
fn tells(flags: u32, task: &Task) -> bool {
    const VERBOSE: u32 = 1;
    let own = match task.kind() {
        CUgraphNodeType::KERNEL => 4,
        CUgraphNodeType::MEMCPY => 8,
        CUgraphNodeType::MEMSET => 16,
        CUgraphNodeType::HOST => 32,
        CUgraphNodeType::MEM_ALLOC => 2048,
        CUgraphNodeType::MEM_FREE => 4096,
        CUgraphNodeType::BATCH_MEM_OP => 8192,
        CUgraphNodeType::CONDITIONAL => 32768,
        _ => 0,
    };
    flags & (VERBOSE | own) != 0
}

/// The graph, with graphs inside as clusters.
pub(crate) fn dot(graph: &Graph, flags: u32) -> Result<String, fmt::Error> {
    let mut out = String::from("digraph dot {\n");
    write_graph(&mut out, graph, flags, 0)?;
    out.push_str("}\n");
    Ok(out)
}

fn write_graph(out: &mut String, graph: &Graph, flags: u32, depth: usize) -> fmt::Result {
    let state = lock(&graph.state).clone();
    let id = graph.id;
    writeln!(out, "subgraph cluster_{id} {{\nlabel=\"graph_{id}\" graph[style=\"dashed\"];")?;
    for (node, entry) in &state {
        let mut label = format!("{node}\\n{}", title(&entry.task));
        if tells(flags, &entry.task) {
            label.push_str(&params(&entry.task));
        }
        if flags & 1024 != 0 {
            write!(label, "\\nhandle: {:#x}", entry.handle.0)?;
        }
        writeln!(out, "\"graph_{id}_node_{node}\"[shape=\"box\" label=\"{}\"];", label.replace('"', "\\\""))?;
    }
    for (node, entry) in &state {
        for from in &entry.dependencies {
            let style = if entry.programmatic.contains(from) { " [style=\"dashed\"]" } else { "" };
            writeln!(out, "\"graph_{id}_node_{from}\" -> \"graph_{id}_node_{node}\"{style};")?;
        }
    }
    for entry in state.values() {
        for inside in entry.task.graphs().iter().filter(|_| depth < 64) {
            write_graph(out, inside, flags, depth + 1)?;
        }
    }
    out.push_str("}\n");
    Ok(())
}

fn title(task: &Task) -> String {
    match task {
        Task::Kernel(kernel) => kernel.launch.function.name().to_owned(),
        Task::Copy(_) => "MEMCPY".to_owned(),
        Task::Fill(_) => "MEMSET".to_owned(),
        Task::Host(_) => "HOST".to_owned(),
        Task::Child(graph) => format!("GRAPH graph_{}", graph.id),
        Task::Empty => "EMPTY".to_owned(),
        Task::Record(_) => "EVENT_RECORD".to_owned(),
        Task::Wait(_) => "WAIT_EVENT".to_owned(),
        Task::Values(_) => "BATCH_MEM_OP".to_owned(),
        Task::Alloc(_) => "MEM_ALLOC".to_owned(),
        Task::Free(_) => "MEM_FREE".to_owned(),
        Task::Conditional(conditional) => {
            let bodies = conditional.bodies.iter().map(|body| format!(" graph_{}", body.id));
            format!("{}{}", conditional_title(conditional), bodies.collect::<String>())
        }
    }
}

fn conditional_title(conditional: &Conditional) -> &'static str {
    match conditional.kind {
        CUgraphConditionalNodeType::IF => "CONDITIONAL IF",
        CUgraphConditionalNodeType::WHILE => "CONDITIONAL WHILE",
        _ => "CONDITIONAL SWITCH",
    }
}

fn params(task: &Task) -> String {
    match task {
        Task::Kernel(kernel) => {
            let shape = &kernel.launch.shape;
            format!("\\ngrid {:?} block {:?} shared {}", shape.grid, shape.block, shape.shared)
        }
        Task::Copy(copy) => format!("\\n{} x {} x {} bytes", copy.width, copy.height, copy.depth),
        Task::Fill(fill) => {
            let (at, value) = (fill.target.address(), fill.pattern.bytes());
            format!("\\n{at:#x} value {value:x?}, {} x {} bytes", fill.width, fill.height)
        }
        Task::Values(values) => format!("\\n{} values", values.params().len()),
        Task::Alloc(alloc) => {
            let block = &alloc.memory.block;
            format!("\\n{} bytes at {:#x}", block.bytes(), block.base())
        }
        Task::Free(block) => format!("\\n{:#x}", block.base()),
        Task::Conditional(conditional) => format!("\\nhandle {:#x}", conditional.condition.handle()),
        Task::Host(_) | Task::Child(_) | Task::Empty | Task::Record(_) | Task::Wait(_) => String::new(),
    }
}
