//! Python's `repr` of lists and dicts, for templates that print them.

use super::bounds;
use minijinja::value::ValueKind;
use minijinja::{Error, Output, State, Value, escape_formatter};
use std::fmt::{self, Write};

/// Prints a value, none of which is too deep, as `{{ value }}` does.
pub(super) fn format(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    bounds::printed(state, value)?;
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map | ValueKind::Number => Ok(repr(out, value)?),
        _ => escape_formatter(out, state, value),
    }
}

/// A value as Python's `str` has it: what has a text already stays what it is.
pub(super) fn text(value: Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::String => Ok(value),
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map | ValueKind::Number => quoted_text(&value),
        _ => Ok(value.to_string().into()),
    }
}

/// What Python's `repr` has of a value.
pub(super) fn quoted_text(value: &Value) -> Result<Value, Error> {
    bounds::weight(value)?;
    let mut text = String::new();
    repr(&mut text, value)?;
    Ok(text.into())
}

/// The shortest digits that mean a number; from 10¹⁶ on and below 10⁻⁴ with an exponent of two digits or more.
pub(super) fn digits(out: &mut impl Write, number: f64) -> fmt::Result {
    if number == 0.0 || (1e-4..1e16).contains(&number.abs()) {
        return write!(out, "{number:?}");
    }
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    write!(out, "{digits}e{sign}{exponent:0>2}")
}

fn repr(out: &mut impl Write, value: &Value) -> fmt::Result {
    match value.kind() {
        ValueKind::String => quoted(out, value.as_str().unwrap_or_default()),
        ValueKind::Seq | ValueKind::Iterable => {
            let [open, close] = if value.is_tuple() { ['(', ')'] } else { ['[', ']'] };
            out.write_char(open)?;
            for (index, item) in value.try_iter().into_iter().flatten().enumerate() {
                out.write_str(if index > 0 { ", " } else { "" })?;
                repr(out, &item)?;
            }
            if value.is_tuple() && value.len() == Some(1) {
                out.write_char(',')?;
            }
            out.write_char(close)
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
        ValueKind::Number if !value.is_integer() => match f64::try_from(value.clone()) {
            Ok(number) if number.is_finite() => digits(out, number),
            Ok(number) if number.is_nan() => out.write_str("nan"),
            Ok(number) => out.write_str(if number > 0.0 { "inf" } else { "-inf" }),
            Err(_) => write!(out, "{value}"),
        },
        _ => write!(out, "{value}"),
    }
}

/// In single quotes, unless that would need an escape and double quotes would not.
fn quoted(out: &mut impl Write, text: &str) -> fmt::Result {
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
