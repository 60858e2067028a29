//! Output for Graphviz.
//!
//! Boxes are `node0`, … in one cluster and `step0`, … in another; an edge is a tensor, by name.

use super::edges::edges;
use super::report::PlanReport;
use super::table::{dims, size};
use std::fmt::{self, Write};

/// Families with their colours.
pub(crate) const COLOURS: [(&str, &str); 8] = [
    ("rows", "#e8e3d3"),
    ("mat_mul", "#c9defa"),
    ("norm", "#d8efd0"),
    ("rope", "#fbe3bd"),
    ("attention", "#f6cfd6"),
    ("elementwise", "#e3d8f3"),
    ("sampling", "#cdeeea"),
    ("state", "#e4e4e4"),
];

/// The colour of a family's boxes.
pub(crate) fn colour(family: &str) -> &'static str {
    COLOURS.iter().find(|(name, _)| *name == family).map_or("#ffffff", |&(_, colour)| colour)
}

/// A string of the language. Names are the user's: quotes, backslashes and ends of lines are escaped, and what else
/// no text has is replaced.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '\\' | '"' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            letter if letter.is_control() => quoted.push('\u{fffd}'),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

pub(super) fn render(report: &PlanReport) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut text, report);
    text
}

fn write(text: &mut String, report: &PlanReport) -> fmt::Result {
    writeln!(text, "digraph plan {{")?;
    writeln!(text, "  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\"];")?;
    writeln!(text, "  edge [fontname=\"Helvetica\", fontsize=9];")?;

    writeln!(text, "  subgraph cluster_before {{")?;
    writeln!(text, "    label={};", quoted(&format!("before: {} nodes", report.before.len())))?;
    let ty = |name: &String| report.tensors.iter().find(|tensor| tensor.name == *name).map(|t| &*t.ty);
    for (i, node) in report.before.iter().enumerate() {
        let family = report.steps.get(node.step).map_or("", |step| &step.family);
        let made = node.writes.first().and_then(ty).unwrap_or("");
        let label = quoted(&format!("{}\n{} → {}, {made}", node.name, node.op, node.step));
        writeln!(text, "    node{i} [label={label}, fillcolor={}];", quoted(colour(family)))?;
    }
    let boxes: Vec<_> = report.before.iter().map(|node| (&node.reads[..], &node.writes[..])).collect();
    for edge in edges(&boxes) {
        writeln!(text, "    node{} -> node{} [label={}];", edge.from, edge.to, quoted(edge.tensor))?;
    }
    writeln!(text, "  }}")?;

    writeln!(text, "  subgraph cluster_after {{")?;
    let launches = report.launches.len();
    let label = format!("after: {} steps, {launches} launches", report.steps.len());
    writeln!(text, "    label={};", quoted(&label))?;
    for (i, step) in report.steps.iter().enumerate() {
        let mut label = format!("{i} {}\n{}", step.op, step.nodes.join("\n"));
        if !step.fusions.is_empty() {
            write!(label, "\n[{}]", step.fusions.join(", "))?;
        }
        for launch in step.launches.iter().filter_map(|&launch| report.launches.get(launch)) {
            let (grid, block) = (dims(launch.grid), dims(launch.block));
            write!(label, "\n{}\n{grid} blocks of {block}, {}", launch.kernel, size(launch.bytes))?;
        }
        for copy in &step.copies {
            write!(label, "\ncopy {} to {}", copy.from, copy.to)?;
        }
        let (label, fill) = (quoted(&label), quoted(colour(&step.family)));
        writeln!(text, "    step{i} [label={label}, fillcolor={fill}];")?;
    }
    let boxes: Vec<_> = report.steps.iter().map(|step| (&step.reads[..], &step.writes[..])).collect();
    for edge in edges(&boxes) {
        writeln!(text, "    step{} -> step{} [label={}];", edge.from, edge.to, quoted(edge.tensor))?;
    }
    writeln!(text, "  }}")?;
    writeln!(text, "}}")
}
