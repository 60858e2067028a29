//! Filters and methods whose result may be much larger than their input: bounds on the result, before they run.
//!
//! The bounds are upper bounds in bytes, not exact sizes. Functions that are not listed here produce at most a few
//! times the size of their input.

use super::bounds::{room, weight};
use super::repr;
use minijinja::value::{Kwargs, Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, filters};

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
        "round": filters::round, nothing;
        "replace": replaced, replace;
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
    }
}

/// What filters of texts are given is a text to them, and what `join` is given, texts.
fn as_texts(name: &str, arguments: &mut [Value]) -> Result<(), Error> {
    let Some((first, given)) = arguments.split_first_mut() else { return Ok(()) };
    match name {
        // Integers, which methods make floats.
        "round" if first.kind() == ValueKind::Bool => *first = i64::from(first.is_true()).into(),
        "round" if first.is_integer() && given.iter().any(is_directed) => {
            *first = f64::try_from(first.clone())?.into();
        }
        "format" => *first = formatted(first.as_str().unwrap_or_default(), given)?.into(),
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

/// Whether an argument of `round` names a method other than the common one.
fn is_directed(argument: &Value) -> bool {
    let is = |value: &Value| value.as_str().is_some_and(|method| method != "common");
    is(argument) || argument.get_attr("method").is_ok_and(|method| is(&method))
}

/// A format that means to the renderer what it means in Python, with what it is given: `%s` and `%r` write texts, and `%d`
/// whole numbers. What takes its width from an argument is the renderer's to read.
fn formatted(format: &str, given: &mut [Value]) -> Result<String, Error> {
    let mut given = given.iter_mut();
    let mut parts = format.split('%');
    let mut made = parts.next().unwrap_or_default().to_string();
    while let Some(part) = parts.next() {
        made.push('%');
        let kind = part.trim_start_matches(|c: char| c.is_ascii_digit() || "-+ #.0".contains(c));
        let flags = &part[..part.len() - kind.len()];
        match kind.chars().next() {
            // Two signs are one.
            None if part.is_empty() => {
                made.push('%');
                made.push_str(parts.next().unwrap_or_default());
            }
            None | Some('*' | '(') => return Ok(format.into()),
            Some(c) => {
                let Some(value) = given.next() else { return Ok(format.into()) };
                let is_float = value.kind() == ValueKind::Number && !value.is_integer();
                match c {
                    's' => *value = repr::text(value.clone())?,
                    'r' => *value = repr::quoted_text(value)?,
                    'd' | 'i' | 'u' if is_float => *value = truncated(number(value)?)?,
                    _ => {}
                }
                let (_, rest) = kind.split_at(c.len_utf8());
                made.extend([flags, if c == 'r' { "s" } else { &kind[..c.len_utf8()] }, rest]);
            }
        }
    }
    match given.next() {
        Some(left) if left.kind() != ValueKind::Map => {
            Err(Error::new(ErrorKind::TooManyArguments, "a format has fewer places than it is given values"))
        }
        _ => Ok(made),
    }
}

/// The whole part of a number.
fn truncated(number: f64) -> Result<Value, Error> {
    match number.is_finite() {
        true => Ok(Value::from(number.trunc() as i128)),
        false => Err(Error::new(ErrorKind::InvalidOperation, format!("{number} has no whole part"))),
    }
}

/// A number, which truth and falsehood are too.
fn number(value: &Value) -> Result<f64, Error> {
    match value.kind() {
        ValueKind::Bool => Ok(u8::from(value.is_true()).into()),
        _ => f64::try_from(value.clone()),
    }
}

/// `a % b`: a text is a format, and else it is what is left of a division, with the sign of `b`.
pub(super) fn remainder(state: &mut State<'_, '_>, a: Value, b: Value) -> Result<Value, Error> {
    if a.kind() == ValueKind::String {
        let mut arguments = vec![a];
        match b.kind() {
            _ if b.is_tuple() => arguments.extend(b.try_iter()?),
            ValueKind::Map => {
                let pairs = b.try_iter()?.map(|key| Ok((key.to_string(), b.get_item(&key)?)));
                arguments.push(pairs.collect::<Result<Kwargs, Error>>()?.into());
            }
            _ => arguments.push(b),
        }
        return state.apply_filter("format", &arguments);
    }
    let impossible = || {
        let why = format!("{} % {} cannot be computed", a.kind(), b.kind());
        Error::new(ErrorKind::InvalidOperation, why)
    };
    let numbers = [&a, &b].map(|x| matches!(x.kind(), ValueKind::Number | ValueKind::Bool));
    if numbers != [true; 2] {
        return Err(impossible());
    }
    let whole =
        |x: &Value| (x.kind() == ValueKind::Bool || x.is_integer()).then(|| i128::try_from(x.clone()));
    if let (Some(a), Some(b)) = (whole(&a), whole(&b)) {
        let (a, b) = (a?, b?);
        let left = a.checked_rem(b).ok_or_else(impossible)?;
        return Ok(if left != 0 && (left < 0) != (b < 0) { left + b } else { left }.into());
    }
    let (x, y) = (number(&a)?, number(&b)?);
    if y == 0.0 {
        return Err(impossible());
    }
    let left = x % y;
    Ok(if left == 0.0 {
        left.copysign(y)
    } else if (left < 0.0) != (y < 0.0) {
        left + y
    } else {
        left
    }
    .into())
}

/// `replace`, so many times at most.
fn replaced(text: &str, from: &str, to: &str, max: Option<i64>) -> String {
    match max.map(usize::try_from) {
        Some(Ok(max)) => text.replacen(from, to, max),
        _ => text.replace(from, to),
    }
}

/// `int`, which is `default` for what is no number.
pub(super) fn int(
    value: Value,
    default: Option<Value>,
    base: Option<u32>,
    named: Kwargs,
) -> Result<Value, Error> {
    let default = default.map_or_else(|| named.get::<Option<Value>>("default"), |value| Ok(Some(value)))?;
    let base = base.map_or_else(|| named.get::<Option<u32>>("base"), |base| Ok(Some(base)))?.unwrap_or(10);
    named.assert_all_used()?;
    let default = default.unwrap_or_else(|| 0.into());
    Ok(match value.kind() {
        ValueKind::Number if value.is_integer() => value,
        ValueKind::Number => truncated(number(&value)?).unwrap_or(default),
        ValueKind::Bool => i64::from(value.is_true()).into(),
        ValueKind::String => {
            let text = digits(value.as_str().unwrap_or_default());
            let (negative, unsigned) = match text.strip_prefix('-') {
                Some(rest) => (true, rest),
                None => (false, text.strip_prefix('+').unwrap_or(&text)),
            };
            let prefix = match base {
                2 => "0b",
                8 => "0o",
                16 => "0x",
                _ => "",
            };
            let lower = unsigned.to_ascii_lowercase();
            let unsigned = lower.strip_prefix(prefix).unwrap_or(&lower);
            let whole = (2..=36).contains(&base).then(|| i128::from_str_radix(unsigned, base).ok()).flatten();
            match whole.filter(|_| !unsigned.starts_with(['-', '+'])) {
                Some(whole) => if negative { -whole } else { whole }.into(),
                None => text.parse().ok().and_then(|number| truncated(number).ok()).unwrap_or(default),
            }
        }
        _ => default,
    })
}

/// `float`, which is `default` for what is no number.
pub(super) fn float(value: Value, default: Option<Value>, named: Kwargs) -> Result<Value, Error> {
    let default = default.map_or_else(|| named.get::<Option<Value>>("default"), |value| Ok(Some(value)))?;
    named.assert_all_used()?;
    let default = default.unwrap_or_else(|| 0.0.into());
    Ok(match value.kind() {
        ValueKind::Number | ValueKind::Bool => number(&value)?.into(),
        ValueKind::String => {
            digits(value.as_str().unwrap_or_default()).parse::<f64>().map_or(default, Value::from)
        }
        _ => default,
    })
}

/// A text as Python reads numbers: white space around it does not count, nor do low lines between digits.
fn digits(text: &str) -> String {
    let text = text.trim();
    let bytes = text.as_bytes();
    let joins = |at: usize| {
        let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_hexdigit);
        digit(at.checked_sub(1)) && digit(Some(at + 1))
    };
    text.char_indices().filter(|&(at, c)| c != '_' || !joins(at)).map(|(_, c)| c).collect()
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
    // A width that is an argument is a `*`, or stands in the braces of another.
    let nested = format.split('{').skip(1).any(|part| !part.is_empty() && !part.contains('}'));
    let mut largest_part = if nested || format.contains('*') { largest(given) } else { 0 };
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
