//! What Python shows of a list or a dict: a template that prints one gets this.

use super::bounds;
use minijinja::value::ValueKind;
use minijinja::{Error, Output, State, Value, escape_formatter};
use std::fmt::{self, Write};

/// Prints a value, none of which is too deep, as `{{ value }}` does.
pub(super) fn format(out: &mut Output<'_>, state: &State<'_, '_>, value: &Value) -> Result<(), Error> {
    bounds::printed(state, value)?;
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => Ok(repr(out, value)?),
        _ => escape_formatter(out, state, value),
    }
}

fn repr(out: &mut Output<'_>, value: &Value) -> fmt::Result {
    match value.kind() {
        ValueKind::String => quoted(out, value.as_str().unwrap_or_default()),
        ValueKind::Seq | ValueKind::Iterable => {
            out.write_char('[')?;
            for (index, item) in value.try_iter().into_iter().flatten().enumerate() {
                out.write_str(if index > 0 { ", " } else { "" })?;
                repr(out, &item)?;
            }
            out.write_char(']')
        }
        ValueKind::Map => {
            out.write_char('{')?;
            for (index, key) in value.try_iter().into_iter().flatten().enumerate() {
                out.write_str(if index > 0 { ", " } else { "" })?;
                repr(out, &key)?;
                out.write_str(": ")?;
                repr(out, &value.get_item(&key).unwrap_or_default())?;
            }
            out.write_char('}')
        }
        _ => write!(out, "{value}"),
    }
}

/// In single quotes, unless that would need an escape and double quotes would not.
fn quoted(out: &mut Output<'_>, text: &str) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.write_char(quote)?;
    for c in text.chars() {
        match c {
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            '\\' => out.write_str("\\\\")?,
            c if c == quote => write!(out, "\\{c}")?,
            c if c.is_control() => write!(out, "\\x{:02x}", u32::from(c))?,
            c => out.write_char(c)?,
        }
    }
    out.write_char(quote)
}
