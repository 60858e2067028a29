//! Filters and methods that make much of little: how much they would make, before they do.
//!
//! The numbers are bounds from above, of bytes, and not what comes out. What is not here makes no more than a few times
//! what it is given.

use super::bounds::{room, weight};
use super::repr;
use minijinja::value::{Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, State, filters};

/// Bytes of a list for each of its items.
const ITEM: u64 = 32;

/// What a filter or method makes at most; its arguments begin with the value that it is applied to.
type Bound = fn(&[Value]) -> Result<u64, Error>;

/// Puts the bounded filters in the place of the renderer's.
pub(super) fn bounded(environment: &mut Environment<'_>) {
    // Under names that no template can write, the renderer's own do the work.
    macro_rules! bounded {
        ($($name:literal: $filter:path, $bound:expr;)*) => {$(
            let inner = concat!("(", $name, ")");
            environment.add_filter(inner, $filter);
            let filter = move |state: &mut State<'_, '_>, arguments: Rest<ValueOrKwargs>| {
                let mut arguments = arguments.into_values();
                as_texts($name, &mut arguments)?;
                room(($bound as Bound)(&arguments)?)?;
                state.apply_filter(inner, &arguments)
            };
            environment.add_filter($name, filter);
        )*};
    }
    bounded! {
        "upper": filters::upper, nothing;
        "lower": filters::lower, nothing;
        "title": filters::title, nothing;
        "capitalize": filters::capitalize, nothing;
        "trim": filters::trim, nothing;
        "replace": filters::replace, replace;
        "join": filters::join, |arguments| join(arguments.get(1), arguments.first());
        "indent": filters::indent, indent;
        "format": filters::format, format;
        "split": filters::split, split;
        "lines": filters::lines, split;
        "list": filters::list, items;
        "sort": filters::sort, items;
        "unique": filters::unique, items;
        "batch": filters::batch, groups;
        "slice": filters::slice, groups;
        "map": filters::map, items;
        "select": filters::select, items;
        "reject": filters::reject, items;
        "selectattr": filters::selectattr, items;
        "rejectattr": filters::rejectattr, items;
        "groupby": filters::groupby, items;
        "zip": filters::zip, items;
        "pprint": filters::pprint, |arguments| arguments.first().map_or(Ok(0), weight);
    }
}

/// What filters of texts are given is a text to them, and what `join` is given, texts.
fn as_texts(name: &str, arguments: &mut [Value]) -> Result<(), Error> {
    let Some(first) = arguments.first_mut() else { return Ok(()) };
    match name {
        "upper" | "lower" | "title" | "capitalize" | "trim" | "replace" | "indent" => {
            *first = repr::text(first.clone())?;
        }
        "join" if matches!(first.kind(), ValueKind::Seq | ValueKind::Iterable) => {
            weight(first)?;
            let items = first.try_iter()?.map(repr::text);
            *first = items.collect::<Result<Vec<Value>, Error>>()?.into();
        }
        _ => {}
    }
    Ok(())
}

/// What a method of a text makes at most.
pub(super) fn method(name: &str, text: &Value, arguments: &[Value]) -> Result<(), Error> {
    let all: Vec<Value> = [text].into_iter().chain(arguments).cloned().collect();
    room(match name {
        "replace" => replace(&all)?,
        "join" => join(Some(text), arguments.first())?,
        "format" => format(&all)?,
        "split" | "splitlines" => split(&all)?,
        _ => 0,
    })
}

/// No more than a few times what it is given.
fn nothing(_: &[Value]) -> Result<u64, Error> {
    Ok(0)
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

fn len(value: Option<&Value>) -> u64 {
    text(value).len() as u64
}

/// The largest number among arguments, also among named ones.
fn largest(arguments: &[Value]) -> u64 {
    let number = |value: &Value| u64::try_from(value.clone()).unwrap_or(0);
    let of = |value: &Value| match value.kind() {
        ValueKind::Map => {
            let keys = value.try_iter().into_iter().flatten();
            keys.filter_map(|key| value.get_item(&key).ok()).map(|value| number(&value)).max().unwrap_or(0)
        }
        _ => number(value),
    };
    arguments.iter().map(of).max().unwrap_or(0)
}

fn replace(arguments: &[Value]) -> Result<u64, Error> {
    let (value, from) = (text(arguments.first()), text(arguments.get(1)));
    let times = value.matches(from).count() as u64;
    Ok(len(arguments.first()).saturating_add(times.saturating_mul(len(arguments.get(2)))))
}

fn join(separator: Option<&Value>, parts: Option<&Value>) -> Result<u64, Error> {
    let Some(parts) = parts else { return Ok(0) };
    let count = match parts.as_str() {
        Some(text) => text.chars().count() as u64,
        None => parts.len().unwrap_or(0) as u64,
    };
    Ok(weight(parts)?.saturating_add(count.saturating_mul(len(separator))))
}

fn indent(arguments: &[Value]) -> Result<u64, Error> {
    let lines = text(arguments.first()).matches('\n').count() as u64 + 2;
    let width = largest(arguments.get(1..).unwrap_or_default());
    Ok(len(arguments.first()).saturating_add(lines.saturating_mul(width)))
}

/// A format writes any argument in any place, in any width that it or an argument says.
fn format(arguments: &[Value]) -> Result<u64, Error> {
    let format = text(arguments.first());
    let given = arguments.get(1..).unwrap_or_default();
    let places = format.matches(['%', '{']).count() as u64;
    let widths = format.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let widths = widths.map(|digits| digits.parse().unwrap_or(u64::MAX)).fold(0, u64::saturating_add);
    let mut largest_part = if format.contains(['*', '{']) { largest(given) } else { 0 };
    for value in given {
        largest_part = largest_part.max(weight(value)?);
    }
    Ok(len(arguments.first()).saturating_add(widths).saturating_add(places.saturating_mul(largest_part)))
}

fn split(arguments: &[Value]) -> Result<u64, Error> {
    let value = text(arguments.first());
    let parts = match arguments.get(1).and_then(Value::as_str) {
        Some(separator) if !separator.is_empty() => value.matches(separator).count(),
        _ => value.matches(char::is_whitespace).count(),
    };
    Ok(len(arguments.first()).saturating_add(ITEM * (parts as u64 + 1)))
}

/// A list, or a text by its characters.
fn items(arguments: &[Value]) -> Result<u64, Error> {
    Ok(arguments.first().and_then(Value::as_str).map_or(0, |text| ITEM * text.chars().count() as u64))
}

fn groups(arguments: &[Value]) -> Result<u64, Error> {
    let count = largest(arguments.get(1..).unwrap_or_default());
    Ok(items(arguments)?.saturating_add(count.saturating_mul(ITEM)))
}
