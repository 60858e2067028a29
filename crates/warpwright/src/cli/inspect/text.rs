//! A report for people.

use super::report::{Content, Entry, FormatReport, Report, Scalar, TensorReport, TokenizerReport};
use super::shown;
use std::io::{self, Write};
use warpwright_llm::gguf::Value;

/// Characters of a text that are shown.
const TEXT: usize = 60;
/// Characters of a text in an array.
const ITEM: usize = 16;
/// Characters of a line's first column, where what stands in it is not longer.
const LABEL: usize = 16;

pub(super) fn write(out: &mut impl Write, report: &Report<'_>) -> io::Result<()> {
    head(out, report)?;
    if !report.formats.is_empty() {
        writeln!(out)?;
        formats(out, &report.formats)?;
    }
    if let Some(tokenizer) = &report.tokenizer {
        writeln!(out)?;
        tokens(out, tokenizer)?;
    }
    if !report.metadata.is_empty() {
        writeln!(out, "\nmetadata")?;
        let width = widest(report.metadata.iter().map(|entry| entry.key));
        report.metadata.iter().try_for_each(|entry| metadata(out, entry, width))?;
    }
    if let Some(tensors) = &report.tensor_list {
        writeln!(out, "\ntensors")?;
        let width = widest(tensors.iter().map(|tensor| tensor.name));
        let parts = report.parts.len() > 1;
        tensors.iter().try_for_each(|one| tensor(out, one, width, parts))?;
    }
    Ok(())
}

fn line(out: &mut impl Write, label: &str, text: &str) -> io::Result<()> {
    writeln!(out, "{label:<LABEL$} {text}")
}

fn head(out: &mut impl Write, report: &Report<'_>) -> io::Result<()> {
    line(out, "file", report.file)?;
    for (number, part) in report.parts.iter().enumerate() {
        let label = match report.parts.len() {
            1 => "format".to_string(),
            count => format!("part {} of {count}", number + 1),
        };
        let (version, size, tensors) = (part.gguf_version, shown::bytes(part.bytes), part.tensors);
        line(out, &label, &format!("GGUF {version}, {size}, {tensors} tensors"))?;
    }
    if let Some(name) = report.name {
        line(out, "name", &shown::text(name, TEXT))?;
    }
    let architecture = report.architecture.map_or_else(|| "not said".into(), |name| shown::text(name, TEXT));
    line(out, "architecture", &architecture)?;
    if let Some(file_type) = &report.file_type {
        line(out, "file type", file_type)?;
    }
    let parameters = shown::count(report.parameters);
    match report.bits_per_weight {
        Some(bits) => line(out, "parameters", &format!("{parameters}, {bits:.2} bits each"))?,
        None => line(out, "parameters", &parameters)?,
    }
    if let Some(sequence) = &report.sequence {
        let (bytes, cache) = (shown::bytes(sequence.bytes), sequence.cache);
        line(out, "sequence", &format!("{} tokens take {bytes}, with {cache} caches", sequence.tokens))?;
    }
    match report.runs {
        true => line(out, "runs here", "yes"),
        false => report.problems.iter().try_for_each(|why| {
            // One line, whatever names it repeats.
            line(out, "runs here", &format!("no: {}", shown::text(why, usize::MAX)))
        }),
    }
}

fn formats(out: &mut impl Write, formats: &[FormatReport]) -> io::Result<()> {
    let (tensors, parameters, bytes) = ("tensors", "parameters", "bytes");
    writeln!(out, "{:<LABEL$} {tensors:>8} {parameters:>11} {bytes:>11}   bits/weight", "format")?;
    for format in formats {
        let (parameters, bytes) = (shown::count(format.parameters), shown::bytes(format.bytes));
        let (tensors, bits) = (format.tensors, format.bits_per_weight);
        writeln!(out, "{:<LABEL$} {tensors:>8} {parameters:>11} {bytes:>11}   {bits:>11.4}", format.format)?;
    }
    Ok(())
}

fn tokens(out: &mut impl Write, tokenizer: &TokenizerReport<'_>) -> io::Result<()> {
    let mut kind = shown::text(tokenizer.model, TEXT);
    if let Some(pre) = tokenizer.pre {
        kind += &format!(" ({})", shown::text(pre, TEXT));
    }
    let template = if tokenizer.chat_template { "a" } else { "no" };
    line(out, "tokenizer", &format!("{kind}, {} tokens, {template} chat template", tokenizer.tokens))?;
    for token in &tokenizer.special {
        let text = token.text.as_ref().map_or_else(
            || "which is not in the vocabulary".to_string(),
            |text| format!("`{}`", shown::text(text, TEXT)),
        );
        line(out, &format!("  {}", shown::text(&token.role, TEXT)), &format!("{} {text}", token.id))?;
    }
    Ok(())
}

/// The width of a column of names; those that are longer stand out.
fn widest<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(|name| name.chars().count()).filter(|&width| width <= 48).max().unwrap_or(0)
}

fn metadata(out: &mut impl Write, entry: &Entry<'_>, width: usize) -> io::Result<()> {
    let key = shown::text(entry.key, TEXT);
    match &entry.content {
        Content::Value { value: Scalar(value) } => {
            writeln!(out, "  {key:<width$}  {:<7} {}", entry.ty, scalar(value, TEXT))
        }
        Content::Array { items, count, first } => {
            let mut list: Vec<String> = first.iter().map(|item| scalar(&item.0, ITEM)).collect();
            if first.len() < *count {
                list.push("…".to_string());
            }
            writeln!(out, "  {key:<width$}  {items:<7} × {count}: {}", list.join(", "))
        }
    }
}

fn scalar(value: &Value, max: usize) -> String {
    match value {
        Value::String(text) => format!("`{}`", shown::text(text, max)),
        Value::Bool(value) => value.to_string(),
        Value::F32(value) => value.to_string(),
        Value::F64(value) => value.to_string(),
        Value::Array(array) => format!("[{} × {}]", array.ty(), array.len()),
        other => other.integer().map(|integer| integer.to_string()).unwrap_or_default(),
    }
}

fn tensor(out: &mut impl Write, tensor: &TensorReport<'_>, width: usize, parts: bool) -> io::Result<()> {
    let dims: Vec<String> = tensor.dims.iter().map(u64::to_string).collect();
    let place = if parts { format!("{}:", tensor.part + 1) } else { String::new() };
    let (name, dims) = (shown::text(tensor.name, TEXT), dims.join(" × "));
    let (format, bytes, offset) = (tensor.format, tensor.bytes, tensor.offset);
    writeln!(out, "  {name:<width$}  {format:<7} {dims:<16} {bytes:>12} bytes at {place}{offset}")
}
