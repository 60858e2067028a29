//! JSON as Python's `json.dumps` writes it: the meaning of `tojson` in a chat template.
//!
//! It differs from Jinja's own filter, which writes for HTML, and from compact JSON: there is a space after commas and
//! colons, as in the models' training data.

use super::{bounds, repr};
use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Error, ErrorKind, Value};
use std::fmt::Write;

/// The widest indent; what is wider is cut.
const WIDEST: usize = 64;

/// How it is written.
struct Style {
    /// Characters beyond ASCII are escaped.
    ascii: bool,
    /// What a level of nesting is indented by; `None`: all on one line.
    indent: Option<String>,
    comma: String,
    colon: String,
    sorted: bool,
}

/// The filter `tojson(value, ensure_ascii=false, indent=none, separators=none, sort_keys=false)`.
pub(super) fn tojson(value: Value, positional: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    let argument = |index: usize, name: &str| -> Result<Value, Error> {
        let named: Option<Value> = named.get(name)?;
        Ok(positional
            .get(index)
            .cloned()
            .or(named)
            .filter(|value| !value.is_undefined())
            .unwrap_or(Value::from(())))
    };
    let [ascii, indent, separators, sorted] = [
        argument(0, "ensure_ascii")?,
        argument(1, "indent")?,
        argument(2, "separators")?,
        argument(3, "sort_keys")?,
    ];
    named.assert_all_used()?;
    if positional.len() > 4 {
        return Err(Error::from(ErrorKind::TooManyArguments));
    }
    let indent = match indent.kind() {
        ValueKind::None => None,
        ValueKind::String => indent.as_str().map(|indent| indent.chars().take(WIDEST).collect()),
        _ => Some(" ".repeat(spaces(&indent)?)),
    };
    let comma = if indent.is_some() { "," } else { ", " };
    let (comma, colon) = match separators.kind() {
        ValueKind::None => (comma.to_string(), ": ".to_string()),
        _ => {
            let given: Vec<Value> = separators.try_iter()?.collect();
            match &given[..] {
                [comma, colon] => (comma.to_string(), colon.to_string()),
                _ => return Err(invalid("`separators` are two strings")),
            }
        }
    };
    let style = Style { ascii: ascii.is_true(), indent, comma, colon, sorted: sorted.is_true() };
    // It is not too deep, and its parts are looked at one by one as they are written.
    bounds::weight(&value)?;
    let mut text = String::new();
    write(&mut text, &value, &style, 0)?;
    Ok(text)
}

fn invalid(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("tojson: {what}"))
}

fn spaces(indent: &Value) -> Result<usize, Error> {
    let number = i64::try_from(indent.clone()).map_err(|_| invalid("`indent` is a number or a string"))?;
    // Python takes negative numbers for none.
    Ok(usize::try_from(number.clamp(0, WIDEST as i64)).unwrap_or(0))
}

fn write(out: &mut String, value: &Value, style: &Style, depth: usize) -> Result<(), Error> {
    bounds::room(out.len() as u64)?;
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => number(out, value),
        ValueKind::String => string(out, value.as_str().unwrap_or_default(), style.ascii),
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<Value> = value.try_iter()?.collect();
            group(out, ['[', ']'], items.len(), style, depth, |out, index| {
                write(out, &items[index], style, depth + 1)
            })?;
        }
        ValueKind::Map => {
            let mut keys: Vec<Value> = value.try_iter()?.collect();
            if style.sorted {
                keys.sort();
            }
            group(out, ['{', '}'], keys.len(), style, depth, |out, index| {
                key(out, &keys[index], style.ascii)?;
                out.push_str(&style.colon);
                write(out, &value.get_item(&keys[index])?, style, depth + 1)
            })?;
        }
        kind => return Err(invalid(format_args!("{kind} cannot be written as JSON"))),
    }
    Ok(())
}

/// What stands between brackets.
fn group(
    out: &mut String,
    [open, close]: [char; 2],
    len: usize,
    style: &Style,
    depth: usize,
    mut item: impl FnMut(&mut String, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    let line = |out: &mut String, depth: usize| {
        if let Some(indent) = &style.indent {
            out.push('\n');
            (0..depth).for_each(|_| out.push_str(indent));
        }
    };
    out.push(open);
    for index in 0..len {
        if index > 0 {
            out.push_str(&style.comma);
        }
        line(out, depth + 1);
        item(out, index)?;
    }
    if len > 0 {
        line(out, depth);
    }
    out.push(close);
    Ok(())
}

/// Keys are strings, whatever they were.
fn key(out: &mut String, key: &Value, ascii: bool) -> Result<(), Error> {
    match key.kind() {
        ValueKind::String => string(out, key.as_str().unwrap_or_default(), ascii),
        ValueKind::None => out.push_str("\"null\""),
        ValueKind::Bool => out.push_str(if key.is_true() { "\"true\"" } else { "\"false\"" }),
        ValueKind::Number => {
            out.push('"');
            number(out, key);
            out.push('"');
        }
        kind => return Err(invalid(format_args!("{kind} cannot be a key"))),
    }
    Ok(())
}

fn number(out: &mut String, value: &Value) {
    if value.is_integer() {
        out.push_str(&value.to_string());
        return;
    }
    match f64::try_from(value.clone()) {
        Ok(number) => float(out, number),
        Err(_) => out.push_str(&value.to_string()),
    }
}

fn float(out: &mut String, number: f64) {
    if number.is_nan() {
        out.push_str("NaN");
    } else if number.is_infinite() {
        out.push_str(if number > 0.0 { "Infinity" } else { "-Infinity" });
    } else {
        // Writing into a string does not fail.
        let _ = repr::digits(out, number);
    }
}

fn string(out: &mut String, text: &str, ascii: bool) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if u32::from(c) < 0x20 || (ascii && u32::from(c) > 0x7e) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
