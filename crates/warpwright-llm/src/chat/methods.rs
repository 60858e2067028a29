//! Python methods of values that templates call.
//!
//! The renderer has most of them. This module adds missing ones, and replaces those that work on bytes where Python
//! works on characters.

use super::filters;
use minijinja::value::{Tuple, Value, ValueKind, from_args};
use minijinja::{Error, State};
use minijinja_contrib::pycompat;

fn tuple(parts: [&str; 3]) -> Value {
    Tuple::from(parts.map(Value::from)).into()
}

/// Calls a method of a value that is no object of the renderer.
pub(super) fn call(
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    arguments: &[Value],
) -> Result<Value, Error> {
    if let (ValueKind::String, Some(text)) = (value.kind(), value.as_str()) {
        filters::method(method, value, arguments)?;
        let one = || from_args::<(&str,)>(arguments).map(|(one,)| one);
        // Where a text is, counted in characters; −1 where it is not.
        let place = |found: Option<usize>| found.map_or(-1, |at| text[..at].chars().count() as i64);
        match method {
            "find" => return Ok(place(text.find(one()?)).into()),
            "rfind" => return Ok(place(text.rfind(one()?)).into()),
            "count" => return Ok(text.matches(one()?).count().into()),
            "rsplit" if arguments.first().is_some_and(|separator| !separator.is_none()) => {
                let (separator, max): (&str, Option<i64>) = from_args(arguments)?;
                let parts = max
                    .and_then(|max| usize::try_from(max).ok())
                    .map_or(usize::MAX, |max| max.saturating_add(1));
                let mut parts: Vec<Value> = text.rsplitn(parts, separator).map(Value::from).collect();
                parts.reverse();
                return Ok(parts.into());
            }
            "removeprefix" => return Ok(text.strip_prefix(one()?).unwrap_or(text).into()),
            "removesuffix" => return Ok(text.strip_suffix(one()?).unwrap_or(text).into()),
            "partition" => {
                let separator = one()?;
                let parts = text.split_once(separator).map(|(before, after)| [before, separator, after]);
                return Ok(tuple(parts.unwrap_or([text, "", ""])));
            }
            "rpartition" => {
                let separator = one()?;
                let parts = text.rsplit_once(separator).map(|(before, after)| [before, separator, after]);
                return Ok(tuple(parts.unwrap_or(["", "", text])));
            }
            _ => {}
        }
    }
    pycompat::unknown_method_callback(state, value, method, arguments)
}
