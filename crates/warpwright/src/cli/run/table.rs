//! The counters of a run as a table, and its hottest lines.

use std::io::{self, Write};
use warpwright_report::{Accesses, Counters, Executed, Line, Traffic};

/// A number with its thousands apart.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// Prints the counters of a grid of that many blocks.
pub(super) fn print(out: &mut impl Write, counters: &Counters, blocks: u64) -> io::Result<()> {
    if counters.blocks < blocks {
        writeln!(out, "a sample: {} of {} blocks\n", thousands(counters.blocks), thousands(blocks))?;
    }
    writeln!(out, "{:32}{:>16}{:>16}{:>12}", "instructions", "of warps", "of lanes", "lanes/warp")?;
    let all = &counters.instructions;
    let mut classes: Vec<_> = all.classes.iter().collect();
    classes.sort_by_key(|(_, executed)| std::cmp::Reverse(executed.warps));
    for (class, &Executed { warps, lanes }) in classes {
        row_of_instructions(out, class, warps, lanes)?;
    }
    row_of_instructions(out, "all", all.warps, all.lanes)?;
    writeln!(
        out,
        "\n{:32}{:>16}{:>16}{:>12}{:>14}",
        "memory", "requests", "bytes", "sectors", "per request"
    )?;
    let memory = &counters.memory;
    rows_of_traffic(out, "global", &memory.global)?;
    rows_of_traffic(out, "local", &memory.local)?;
    let on_chip = [("shared", &memory.shared), ("constant", &memory.constant)];
    if on_chip.iter().any(|(_, traffic)| traffic.requests() > 0) {
        writeln!(
            out,
            "\n{:32}{:>16}{:>16}{:>12}{:>14}",
            "shared and constant memory", "requests", "bytes", "passes", "per request"
        )?;
        for (name, traffic) in on_chip {
            rows_of_traffic(out, name, traffic)?;
        }
    }
    if !counters.arguments.is_empty() || !counters.variables.is_empty() {
        writeln!(
            out,
            "\n{:32}{:>16}{:>16}{:>16}{:>12}{:>14}",
            "by argument", "bytes loaded", "bytes stored", "bytes updated", "sectors", "per request"
        )?;
    }
    for buffer in &counters.arguments {
        row_of_buffer(out, &format!("{} ({})", buffer.parameter, buffer.argument), &buffer.traffic)?;
    }
    for buffer in &counters.variables {
        row_of_buffer(out, &format!("variable {}", buffer.variable), &buffer.traffic)?;
    }
    writeln!(out)?;
    for (name, number) in [
        ("shared bank conflicts", counters.shared_bank_conflicts),
        ("divergent branches", counters.divergent_branches),
        ("barrier waits", counters.barriers.waits),
        ("  instructions waited for", counters.barriers.instructions),
    ] {
        writeln!(out, "{name:32}{:>16}", thousands(number))?;
    }
    Ok(())
}

fn row_of_buffer(out: &mut impl Write, name: &str, traffic: &Traffic) -> io::Result<()> {
    let Traffic { loads, stores, atomics } = traffic;
    let sectors = loads.transactions + stores.transactions + atomics.transactions;
    writeln!(
        out,
        "  {:30}{:>16}{:>16}{:>16}{:>12}{:>14}",
        shorten(name, 29),
        thousands(loads.bytes),
        thousands(stores.bytes),
        thousands(atomics.bytes),
        thousands(sectors),
        ratio(sectors, traffic.requests()),
    )
}

fn row_of_instructions(out: &mut impl Write, name: &str, warps: u64, lanes: u64) -> io::Result<()> {
    writeln!(out, "  {name:30}{:>16}{:>16}{:>12}", thousands(warps), thousands(lanes), ratio(lanes, warps))
}

fn rows_of_traffic(out: &mut impl Write, space: &str, traffic: &Traffic) -> io::Result<()> {
    row_of_traffic(out, &format!("{space} loads"), &traffic.loads)?;
    row_of_traffic(out, &format!("{space} stores"), &traffic.stores)?;
    row_of_traffic(out, &format!("{space} atomics"), &traffic.atomics)
}

fn row_of_traffic(out: &mut impl Write, name: &str, traffic: &Accesses) -> io::Result<()> {
    if traffic.requests == 0 {
        return Ok(());
    }
    writeln!(
        out,
        "  {name:30}{:>16}{:>16}{:>12}{:>14}",
        thousands(traffic.requests),
        thousands(traffic.bytes),
        thousands(traffic.transactions),
        ratio(traffic.transactions, traffic.requests),
    )
}

fn ratio(of: u64, by: u64) -> String {
    if by == 0 { String::new() } else { format!("{:.1}", of as f64 / by as f64) }
}

/// Prints the hottest lines: where warps spent their instructions, and what stands there.
pub(super) fn print_lines(out: &mut impl Write, lines: &[Line]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nhottest instructions")?;
    writeln!(out, "{:>8}{:>8}{:>12}{:>12}{:>12}", "line", "share", "slots", "of warps", "lanes/warp")?;
    for line in lines {
        writeln!(
            out,
            "{:>8}{:>7.1}%{:>12}{:>12}{:>12}   {}{}",
            line.ptx_line,
            100.0 * line.share,
            thousands(line.slots),
            thousands(line.warps),
            ratio(line.lanes, line.warps),
            line.ptx,
            note(line),
        )?;
        if let Some(source) = &line.source {
            let text = source.text.as_deref().unwrap_or_default();
            writeln!(out, "{:55}{}:{}  {text}", "", source.file, source.line)?;
        }
    }
    Ok(())
}

/// What there is to say of an instruction beyond how often it was executed.
fn note(line: &Line) -> String {
    let mut notes = Vec::new();
    if let Some(global) = &line.global {
        notes.push(format!("{} sectors a request", ratio(global.transactions, global.requests)));
    }
    if let (Some(shared), 1..) = (&line.shared, line.shared_bank_conflicts) {
        notes.push(format!(
            "{} passes a request, {} conflicts",
            ratio(shared.transactions, shared.requests),
            thousands(line.shared_bank_conflicts)
        ));
    }
    if line.divergent > 0 {
        notes.push(format!("divides its warp {} times", thousands(line.divergent)));
    }
    if line.barriers.waits > 0 {
        let (waits, instructions) = (line.barriers.waits, line.barriers.instructions);
        notes.push(format!("{} waits, for {} instructions", thousands(waits), thousands(instructions)));
    }
    if notes.is_empty() { String::new() } else { format!("   // {}", notes.join("; ")) }
}

/// At most `max` characters of a text, with a mark for the omitted part.
fn shorten(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_string();
    }
    let mut short: String = text.chars().take(max.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts() {
        let shown: Vec<_> = [0, 999, 1000, 1234567].into_iter().map(thousands).collect();
        assert_eq!(shown, ["0", "999", "1 000", "1 234 567"]);
        assert_eq!((shorten("abc", 3), shorten("abcd", 3)), ("abc".to_string(), "ab…".to_string()));
    }
}
