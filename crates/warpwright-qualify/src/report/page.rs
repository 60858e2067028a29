//! The page of a qualification.

use super::Report;
use crate::event::{Figure, Finding};
use crate::measure::VIRTUAL;
use crate::stages::Stage;
use std::fmt::Write;

/// Stages whose figures have tables of their own.
const MEASURED: [Stage; 7] = [
    Stage::Bandwidth,
    Stage::Decode,
    Stage::Overhead,
    Stage::Gemv,
    Stage::Attention,
    Stage::FlashAttention,
    Stage::Gemm,
];

pub(super) fn page(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(report, &mut out);
    out
}

fn write(report: &Report, out: &mut String) -> std::fmt::Result {
    let device = &report.device;
    writeln!(out, "# Qualification of {}\n", device.name)?;
    let driver = device.driver.as_ref().map_or("none".into(), |driver| format!("CUDA {driver}"));
    let l2 = device.l2.map_or("unknown".into(), |bytes| format!("{} MiB", bytes >> 20));
    writeln!(
        out,
        "{}, Warpwright {}. {}, {} multiprocessors, {} GiB of memory, L2 cache {l2}, driver {driver}.{}\n",
        report.date,
        report.version,
        device.arch,
        device.multiprocessors,
        device.memory >> 30,
        if report.quick { " A quick qualification." } else { "" },
    )?;
    if device.name.contains(VIRTUAL) {
        writeln!(
            out,
            "A virtual GPU: its times say nothing about a GPU, and models and shapes are reduced, whose names stand below.\n"
        )?;
    }
    if !report.finished {
        writeln!(out, "**Not finished**: what was done until this was written.\n")?;
    }
    writeln!(out, "| stage | right | wrong | left out | seconds |\n| --- | ---: | ---: | ---: | ---: |")?;
    for stage in &report.stages {
        let wrong = stage.items.iter().filter(|item| item.wrong.is_some()).count();
        let right = stage.items.len() - wrong;
        let (name, seconds) = (stage.stage.description(), stage.seconds);
        let left_out = if stage.not_begun { "all".into() } else { stage.left_out.to_string() };
        writeln!(out, "| {name} | {right} | {wrong} | {left_out} | {seconds:.1} |")?;
    }
    writeln!(out)?;
    what_is_wrong(report, out)?;
    for stage in MEASURED {
        measured(report, stage, out)?;
    }
    tuned(report, out)?;
    loaded(report, out)?;
    compared(report, out)
}

fn what_is_wrong(report: &Report, out: &mut String) -> std::fmt::Result {
    if report.is_right() {
        return writeln!(out, "Everything that was begun is right.\n");
    }
    writeln!(out, "## What is wrong\n")?;
    for stage in &report.stages {
        for item in &stage.items {
            if let Some(wrong) = &item.wrong {
                writeln!(out, "- {}: {}: {}", stage.stage, item.name, one_line(wrong))?;
            }
        }
        if let Some(why) = &stage.failure {
            writeln!(out, "- {}: {}", stage.stage, one_line(why))?;
        }
    }
    writeln!(out)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The table of a stage's figures. Times are medians; the range is that of the middle half.
fn measured(report: &Report, stage: Stage, out: &mut String) -> std::fmt::Result {
    let figures: Vec<&Figure> = report.figures(stage).collect();
    if figures.is_empty() {
        return Ok(());
    }
    let title = stage.description();
    writeln!(out, "## {}{}\n", title[..1].to_uppercase(), &title[1..])?;
    let (copy, peak) = (report.copy_bandwidth(), report.tensor_rate());
    writeln!(out, "| what | median | middle half | GB/s | of a copy | Tflop/s | of `mma` |")?;
    writeln!(out, "| --- | ---: | ---: | ---: | ---: | ---: | ---: |")?;
    for figure in figures {
        let Figure { name, unit, median, quartiles: (low, high), .. } = figure;
        let share = |rate: Option<f64>, of: Option<f64>| match (rate, of) {
            (Some(rate), Some(of)) if of > 0.0 => format!("{:.1} %", 100.0 * rate / of),
            _ => String::new(),
        };
        let scaled =
            |rate: Option<f64>, by: f64| rate.map_or(String::new(), |rate| format!("{:.1}", rate / by));
        let (bandwidth, rate) = (figure.bandwidth(), figure.rate());
        writeln!(
            out,
            "| {name} | {} | {} – {} | {} | {} | {} | {} |",
            quantity(*median, unit),
            quantity(*low, unit),
            quantity(*high, unit),
            scaled(bandwidth, 1e9),
            share(bandwidth, copy),
            scaled(rate, 1e12),
            share(rate, peak),
        )?;
    }
    writeln!(out)
}

/// A number with a prefix that keeps it short.
fn quantity(value: f64, unit: &str) -> String {
    const PREFIXES: [(f64, &str); 7] =
        [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")];
    let fits = |(scale, _): &&(f64, &str)| value.abs() >= *scale;
    let (scale, prefix) = PREFIXES.iter().find(fits).unwrap_or(&PREFIXES[6]);
    let scaled = value / scale;
    // Four digits say more than any of these measurements can.
    let digits = if scaled.abs() >= 100.0 { 1 } else { 2 };
    format!("{scaled:.digits$} {prefix}{unit}")
}

/// The best choices, with what they gain.
fn tuned(report: &Report, out: &mut String) -> std::fmt::Result {
    let all = report.findings(Stage::Tune).filter_map(|finding| match finding {
        Finding::Tuned(tuned) => Some(tuned),
        _ => None,
    });
    let all: Vec<_> = all.collect();
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out, "## The best choices for the device\n")?;
    writeln!(out, "| shape and choice | candidates | median | of what is estimated |")?;
    writeln!(out, "| --- | ---: | ---: | ---: |")?;
    for crate::Tuned { row, seconds, estimated, candidates } in all {
        let share = format!("{:.1} %", 100.0 * seconds / estimated);
        writeln!(out, "| `{row}` | {candidates} | {} | {share} |", quantity(*seconds, "s"))?;
    }
    writeln!(out)
}

/// What the compiler made of the kernels: those that spill first, and those that take it longest.
fn loaded(report: &Report, out: &mut String) -> std::fmt::Result {
    let items =
        report.stages.iter().filter(|report| report.stage == Stage::Load).flat_map(|stage| &stage.items);
    let loaded: Vec<_> = items
        .filter_map(|item| match item.findings.first() {
            Some(Finding::Loaded(loaded)) => Some((&item.name, loaded)),
            _ => None,
        })
        .collect();
    if loaded.is_empty() {
        return Ok(());
    }
    let seconds: f64 = loaded.iter().map(|(_, loaded)| loaded.compile_seconds).sum();
    writeln!(out, "## Kernels through the compiler of the driver\n")?;
    writeln!(out, "{} kernels and configurations, compiled in {seconds:.1} s.\n", loaded.len())?;
    for Figure { name, median, .. } in report.figures(Stage::Load) {
        writeln!(out, "{name}: {}.\n", quantity(*median, "s"))?;
    }
    writeln!(out, "| kernel | registers | local bytes | shared bytes | compiled in |")?;
    writeln!(out, "| --- | ---: | ---: | ---: | ---: |")?;
    let number = |number: Option<u64>| number.map_or("–".into(), |number| number.to_string());
    for (name, loaded) in &loaded {
        writeln!(
            out,
            "| {name} | {} | {} | {} | {} |",
            number(loaded.registers.map(u64::from)),
            number(loaded.local_bytes),
            loaded.shared_bytes,
            if loaded.compile_seconds > 0.0 { quantity(loaded.compile_seconds, "s") } else { "–".into() },
        )?;
    }
    writeln!(out)?;
    let spills = |line: &&String| !line.contains(" 0 bytes spill stores, 0 bytes spill loads");
    for (name, loaded) in &loaded {
        for line in loaded.compiler.iter().filter(spills) {
            writeln!(out, "- {name}: {line}")?;
        }
    }
    writeln!(out)
}

fn compared(report: &Report, out: &mut String) -> std::fmt::Result {
    let all = report.findings(Stage::Compare).filter_map(|finding| match finding {
        Finding::Compared(compared) => Some(compared),
        _ => None,
    });
    let all: Vec<_> = all.collect();
    if all.is_empty() {
        return Ok(());
    }
    let sum = |of: fn(&crate::Compared) -> u64| all.iter().map(|compared| of(compared)).sum::<u64>();
    writeln!(out, "## Against the virtual GPU\n")?;
    writeln!(
        out,
        "{} launches from the same memory left {} words, of which {} differ. PTX or the model of the tensor cores \
         defines every bit for {} of the launches.\n",
        sum(|compared| compared.launches),
        sum(|compared| compared.words),
        sum(|compared| compared.differ),
        sum(|compared| compared.defined),
    )?;
    let differences: Vec<_> = all.iter().flat_map(|compared| &compared.differences).collect();
    if differences.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "| kernel | buffer | words | differ | every bit defined |\n| --- | --- | ---: | ---: | --- |"
    )?;
    for difference in differences {
        let crate::Difference { kernel, buffer, words, differ, defined } = difference;
        writeln!(
            out,
            "| {kernel} | {buffer} | {words} | {differ} | {} |",
            if *defined { "yes" } else { "no" }
        )?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::quantity;

    #[test]
    fn quantities_have_prefixes() {
        for (value, unit, text) in [
            (1.98e9, "Hz", "1.98 GHz"),
            (0.001_234, "s", "1.23 ms"),
            (123.4e-6, "s", "123.4 µs"),
            (2.5e-9, "s", "2.50 ns"),
            (12.0, "s", "12.00 s"),
            (0.0, "s", "0.00 ns"),
        ] {
            assert_eq!(quantity(value, unit), text);
        }
    }
}
