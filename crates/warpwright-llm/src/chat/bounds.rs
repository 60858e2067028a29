//! Memory limits of templates.
//!
//! A value's weight is the size of its text and its parts as if nothing were shared, so that a list which holds another
//! twice, which holds another twice, weighs as much as its printed text. There are limits for the weight of a value,
//! for its depth, and for the total of what a rendering makes and prints. Values within these limits can be printed,
//! compared and copied by recursion.

use super::error::TooMuch;
use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

/// The function that counts a value. No template can write this name.
pub(super) const KEPT: &str = "(kept)";

/// The function that weighs a value, and does not count it.
pub(super) const FITS: &str = "(fits)";

/// The function that is the operator `%`.
pub(super) const REMAINDER: &str = "(%)";

/// The function that makes a text of a value.
pub(super) const TEXT: &str = "(text)";

/// MiB that a value may weigh: some millions of tokens.
const LARGEST: u64 = 16;

/// MiB that a rendering may make in all. One that adds message to message in a variable makes the square of them.
const MAX_MIB: u64 = 512;

/// Values may stand in each other this deep.
const DEEPEST: usize = 64;

/// What a value weighs beside its text: about what the renderer needs for one.
const NODE: u64 = 16;

/// What is left of a rendering's memory.
struct Budget(u64);

fn too_much(rule: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, rule.clone()).with_source(TooMuch(rule))
}

/// Counts what was made.
fn charge(state: &mut State<'_, '_>, bytes: u64) -> Result<(), Error> {
    let budget = state.get_or_insert_extension_with(|| Budget(MAX_MIB << 20));
    let left = budget.0.checked_sub(bytes);
    budget.0 = left.ok_or_else(|| too_much(format!("it makes more than {MAX_MIB} MiB")))?;
    Ok(())
}

/// Whether a value of so many bytes may be made.
pub(super) fn room(bytes: u64) -> Result<(), Error> {
    if bytes > LARGEST << 20 {
        return Err(too_much(format!("it makes a value of more than {LARGEST} MiB")));
    }
    Ok(())
}

/// What a value weighs, if that is not too much.
pub(super) fn weight(value: &Value) -> Result<u64, Error> {
    let mut weight = 0;
    weigh(value, 0, &mut weight)?;
    Ok(weight)
}

fn weigh(value: &Value, depth: usize, sum: &mut u64) -> Result<(), Error> {
    if depth > DEEPEST {
        return Err(too_much(format!("it makes values that stand in each other more than {DEEPEST} deep")));
    }
    let text = match value.kind() {
        ValueKind::String => value.as_str().map_or(0, str::len),
        ValueKind::Bytes => value.as_bytes().map_or(0, <[u8]>::len),
        _ => 0,
    };
    *sum = sum.saturating_add(NODE + text as u64);
    room(*sum)?;
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            for item in value.try_iter()? {
                weigh(&item, depth + 1, sum)?;
            }
        }
        ValueKind::Map => {
            for key in value.try_iter()? {
                weigh(&key, depth + 1, sum)?;
                weigh(&value.get_item(&key)?, depth + 1, sum)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Counts a value that an expression made, and gives it back.
pub(super) fn kept(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    let weight = weight(&value)?;
    // What a list holds was counted when it was made; looking at it again takes time, though no memory.
    let made = match value.kind() {
        ValueKind::String | ValueKind::Bytes => weight,
        _ => NODE + 2 * NODE * value.len().unwrap_or(0) as u64,
    };
    charge(state, made + weight / 16)?;
    Ok(value)
}

/// Weighs a value that nothing holds, and gives it back.
pub(super) fn fits(value: Value) -> Result<Value, Error> {
    weight(&value)?;
    Ok(value)
}

/// Counts a value that is printed. A text that grows takes up to three times its length: what it had, and twice that.
pub(super) fn printed(state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    charge(state, 3 * weight(value)?)
}
