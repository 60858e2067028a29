//! Tables of text.

use super::report::{InstanceReport, ScheduleReport, ScheduleTotals};
use crate::render::table::{columns, size};
use std::fmt::Write;

/// A part of something: `12%`.
fn percent(part: f64) -> String {
    format!("{:.0}%", 100.0 * part)
}

/// The tensors that an instance makes, as many as fit.
fn names(makes: &[String]) -> String {
    const MAX_WIDTH: usize = 40;
    let mut text = String::new();
    for (i, name) in makes.iter().enumerate() {
        let more = if i == 0 { name.clone() } else { format!(", {name}") };
        if i > 0 && text.chars().count() + more.chars().count() > MAX_WIDTH {
            let _ = write!(text, ", … ({} in all)", makes.len());
            break;
        }
        text.push_str(&more);
    }
    text
}

pub(super) fn render(report: &ScheduleReport) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = header(&mut text, report);
    phases(&mut text, report);
    ops(&mut text, report);
    let _ = blocks(&mut text, report);
    text
}

fn header(text: &mut String, report: &ScheduleReport) -> std::fmt::Result {
    let ScheduleTotals { barriers, stages, instances, items, tiles, bytes, weight_bytes, idle, .. } =
        report.totals;
    let (blocks, warps, assignment) = (report.blocks.len(), report.warps, &report.assignment);
    let ops = report.ops.len();
    writeln!(text, "{blocks} blocks of {warps} warps, {assignment}")?;
    writeln!(
        text,
        "a token: {barriers} barriers, {stages} stages, {instances} instances of {ops} ops, {items} items, {tiles} tiles"
    )?;
    writeln!(text, "{} moved, {} of them weights of products", size(bytes), size(weight_bytes))?;
    let round = size(report.round_bytes);
    writeln!(text, "{} idle, where a round of tiles costs as much as {round} more", percent(idle))
}

fn phases(text: &mut String, report: &ScheduleReport) {
    text.push('\n');
    let head = ["phase", "stage", "does", "tiles", "teams", "items", "bytes", "idle", "makes"];
    let mut rows = vec![head.map(String::from)];
    let mut instances: Vec<&InstanceReport> = report.instances.iter().collect();
    instances.sort_by_key(|instance| (instance.phase, instance.stage));
    let mut before = None;
    for instance in instances {
        let InstanceReport { phase, stage, warps, .. } = *instance;
        let new = |is: bool, text: String| if is { text } else { String::new() };
        let first = before.is_none_or(|(p, _)| p != phase);
        let idle = report.phases.get(phase).map_or(0.0, |phase| phase.idle);
        rows.push([
            new(first, phase.to_string()),
            new(before != Some((phase, stage)), stage.to_string()),
            instance.does.clone(),
            instance.tiles.to_string(),
            format!("{}×{warps}", report.warps.checked_div(warps).unwrap_or(0)),
            instance.items.to_string(),
            size(instance.bytes),
            new(first, percent(idle)),
            names(&instance.makes),
        ]);
        before = Some((phase, stage));
    }
    columns(text, &rows);
}

fn ops(text: &mut String, report: &ScheduleReport) {
    text.push_str("\nops\n");
    let rows: Vec<[String; 2]> =
        report.ops.iter().map(|op| [format!("{}×", op.instances), op.code.clone()]).collect();
    columns(text, &rows);
}

/// How many blocks stand in a line.
const IN_A_LINE: usize = 16;

fn blocks(text: &mut String, report: &ScheduleReport) -> std::fmt::Result {
    writeln!(text, "\nidle by block")?;
    for (i, line) in report.blocks.chunks(IN_A_LINE).enumerate() {
        let cells: Vec<String> = line.iter().map(|block| format!("{:>4}", percent(block.idle))).collect();
        writeln!(text, "  {:>5} {}", i * IN_A_LINE, cells.join(" "))?;
    }
    Ok(())
}
