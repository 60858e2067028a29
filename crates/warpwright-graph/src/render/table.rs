//! Tables of text.

use super::report::{LaunchReport, MemoryReport, PlanReport, TotalsReport};
use std::fmt::Write;

/// Bytes with three digits or so: `6.24 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// Dimensions as far as they are more than one: `96`, `4×32`.
pub(super) fn dims(dims: [u32; 3]) -> String {
    let last = dims.iter().rposition(|&dim| dim != 1).unwrap_or(0);
    dims[..=last].iter().map(u32::to_string).collect::<Vec<_>>().join("×")
}

/// A name on one line: what a terminal takes for a command is replaced.
pub(crate) fn printable(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// Rows of cells with columns as wide as they need; the last one is not filled up.
pub(crate) fn columns<const N: usize>(text: &mut String, rows: &[[String; N]]) {
    let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{:<width$}", printable(cell))).collect();
        text.push_str("  ");
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
}

pub(super) fn render(report: &PlanReport) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = header(&mut text, report);
    nodes(&mut text, report);
    steps(&mut text, report);
    let _ = memory(&mut text, &report.memory);
    text
}

fn header(text: &mut String, report: &PlanReport) -> std::fmt::Result {
    let target = &report.target;
    let TotalsReport { nodes, steps, launches, bytes, .. } = report.totals;
    writeln!(text, "{}, {} multiprocessors, {}", target.arch, target.multiprocessors, target.arithmetic)?;
    let overlaps = report.launches.iter().filter(|launch| launch.overlaps).count();
    let overlaps = if overlaps > 0 { format!(", {overlaps} of which overlap") } else { String::new() };
    writeln!(text, "{nodes} nodes → {steps} steps → {launches} launches{overlaps}, {}", size(bytes))?;
    if let Some(TotalsReport { steps, launches, bytes, arena_bytes, .. }) = report.unfused {
        let (moved, arena) = (size(bytes), size(arena_bytes));
        writeln!(text, "unfused: {steps} steps → {launches} launches, {moved}, in {arena} of memory")?;
    }
    Ok(())
}

fn nodes(text: &mut String, report: &PlanReport) {
    text.push_str("\nbefore\n");
    let mut rows = vec![["node", "op", "makes", "step"].map(String::from)];
    for node in &report.before {
        let made = report.tensors.iter().find(|tensor| node.writes.first() == Some(&tensor.name));
        let made = made.map_or(String::new(), |tensor| tensor.ty.clone());
        rows.push([node.name.clone(), node.op.clone(), made, node.step.to_string()]);
    }
    columns(text, &rows);
}

fn steps(text: &mut String, report: &PlanReport) {
    text.push_str("\nafter\n");
    let mut rows = vec![["step", "does", "grid", "block", "bytes", "overlaps", "kernel"].map(String::from)];
    for (i, step) in report.steps.iter().enumerate() {
        let first = [i.to_string(), step.op.clone()];
        let mut lines: Vec<[String; 5]> = step
            .launches
            .iter()
            .filter_map(|&launch| report.launches.get(launch))
            .map(|LaunchReport { grid, block, bytes, overlaps, kernel, .. }| {
                let overlaps = if *overlaps { "yes" } else { "" };
                [dims(*grid), dims(*block), size(*bytes), overlaps.into(), kernel.clone()]
            })
            .collect();
        let plain = |what: String| ["".into(), "".into(), "".into(), "".into(), what];
        lines.extend(step.copies.iter().map(|copy| plain(format!("copy {} to {}", copy.from, copy.to))));
        if step.overridden {
            lines.push(plain("the dispatcher's own".into()));
        }
        let nodes = if step.nodes.is_empty() { "(added)".into() } else { step.nodes.join(" + ") };
        let fusions = step.fusions.join(", ");
        let own = if fusions.is_empty() { nodes } else { format!("{nodes}  [{fusions}]") };
        lines.push(plain(format!("  {own}")));
        let mut first = Some(first);
        for [grid, block, bytes, overlaps, kernel] in lines {
            let [number, op] = first.take().unwrap_or_default();
            rows.push([number, op, grid, block, bytes, overlaps, kernel]);
        }
    }
    columns(text, &rows);
}

fn memory(text: &mut String, memory: &MemoryReport) -> std::fmt::Result {
    let MemoryReport { arena_bytes, bound_bytes, zeroed_bytes, weight_bytes, state_bytes, in_place } = memory;
    let [arena, bound, zeroed] = [arena_bytes, bound_bytes, zeroed_bytes].map(|&bytes| size(bytes));
    writeln!(text, "\nmemory")?;
    writeln!(text, "  peak {arena}, at best {bound}; {zeroed} that stay zero")?;
    writeln!(text, "  weights {}, states {}", size(*weight_bytes), size(*state_bytes))?;
    for pair in in_place {
        writeln!(text, "  {} has the place of {}", printable(&pair.result), printable(&pair.operand))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_dimensions() {
        let sizes = [0, 1023, 1024, 10_234, 1 << 20, 1_047_552, u64::MAX].map(size);
        assert_eq!(sizes, ["0 B", "1023 B", "1.00 KiB", "9.99 KiB", "1.00 MiB", "1.00 MiB", "16.0 EiB"]);
        assert_eq!([[1, 1, 1], [96, 1, 1], [4, 32, 1], [1, 1, 8]].map(dims), ["1", "96", "4×32", "1×1×8"]);
    }
}
