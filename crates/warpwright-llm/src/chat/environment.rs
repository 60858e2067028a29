//! The renderer's settings and functions, the same as in Hugging Face's `transformers`.

use super::error::Raised;
use super::{bounds, clock, filters, json, methods, repr};
use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind};
use std::borrow::Cow;

/// Steps of the renderer that a template may take; 64 bytes that it makes or looks at are one too. A long conversation
/// takes tens of thousands, and one that adds message to message in a variable millions.
pub(super) const MAX_STEPS: u64 = 30_000_000;

/// What templates have around them.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(MAX_STEPS));
    environment.set_unknown_method_callback(methods::call);
    environment.set_formatter(repr::format);
    filters::bounded(&mut environment);
    environment.add_function(bounds::KEPT, bounds::kept);
    environment.add_function(bounds::FITS, bounds::fits);
    environment.add_function(bounds::TEXT, repr::text);
    environment.add_function(bounds::REMAINDER, filters::remainder);
    environment.add_filter("string", repr::text);
    environment.add_filter("int", filters::int);
    environment.add_filter("float", filters::float);
    environment.add_filter("tojson", json::tojson);
    environment.add_filter("length", length);
    environment.add_filter("count", length);
    environment.add_test("sequence", is_sequence);
    environment.add_test("iterable", is_iterable);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", |format: &str| clock::strftime_now(format));
    environment
}

fn raise_exception(message: Value) -> Result<Value, Error> {
    let message = message.to_string();
    Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
}

/// To Python, strings and dicts are sequences too: they have a length and items.
fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::String | ValueKind::Map)
}

/// `None` cannot be gone through; what is not defined can, and is empty.
fn is_iterable(value: &Value) -> bool {
    !value.is_none() && (value.is_undefined() || value.try_iter().is_ok())
}

/// What is not defined has the length 0.
fn length(value: &Value) -> Result<usize, Error> {
    if value.is_undefined() {
        return Ok(0);
    }
    value.len().ok_or_else(|| {
        let detail = format!("{} has no length", value.kind());
        Error::new(ErrorKind::InvalidOperation, detail)
    })
}

/// `{% generation %}` marks what a model is trained on. It has no effect on the text but for a scope of its own,
/// which `{% with %}` has too.
pub(super) fn generation_blocks(source: &str) -> Cow<'_, str> {
    if !source.contains("generation") {
        return Cow::Borrowed(source);
    }
    let mut text = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let inside = &rest[at + 2..];
        let Some(end) = inside.find("%}") else { break };
        let tag = &inside[..end];
        let word = tag.trim_start_matches(['-', '+']).trim_end_matches(['-', '+']).trim();
        text.push_str(&rest[..at + 2]);
        match word {
            "generation" => text.push_str(&tag.replacen("generation", "with", 1)),
            "endgeneration" => text.push_str(&tag.replacen("endgeneration", "endwith", 1)),
            // What looks like the end may be a part of a string: only what begins here is passed over.
            _ => {
                rest = inside;
                continue;
            }
        }
        rest = &inside[end..];
    }
    text.push_str(rest);
    Cow::Owned(text)
}
