//! `warpwright tokenize` and `detokenize`: text to the tokens of a model, and back.

use super::model::ModelArguments;
use super::{Failure, Outcome, json, source};
use std::io::{Read, Write};
use warpwright_llm::tokenizer::Encode;

/// Show the tokens of a text, one per line, with id and bytes
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    model: ModelArguments,
    /// Print the ids alone, as `1,2,3`
    #[arg(long, conflicts_with = "json")]
    ids: bool,
    /// Do not add BOS before the text or EOS after it
    #[arg(long)]
    no_bos: bool,
    /// Encode the texts of control tokens, such as `<|im_start|>`, as those tokens
    #[arg(long)]
    parse_special: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// The text; `-`, or no text, reads standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
}

/// Print the text of tokens
#[derive(clap::Args)]
pub(crate) struct DetokenizeArguments {
    #[command(flatten)]
    model: ModelArguments,
    /// Show control tokens too
    #[arg(long)]
    special: bool,
    /// Ids, separated by spaces or commas, or a JSON list; `-`, or no ids, reads standard input
    #[arg(value_name = "IDS")]
    ids: Vec<String>,
}

/// Encodes and prints.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    let file = arguments.model.open()?;
    let tokenizer = file.tokenizer()?;
    let text = match &arguments.text {
        Some(text) if text != source::STDIN => text.clone(),
        _ => String::from_utf8(standard_input()?).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Failure::Message(format!("byte {at} of standard input is not UTF-8, and only text has tokens"))
        })?,
    };
    let how = Encode { add_special: !arguments.no_bos, parse_special: arguments.parse_special };
    let ids = tokenizer.encode(&text, how).map_err(|error| file.tokenizer_failure(&error))?;

    if arguments.ids {
        let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
        writeln!(out, "{}", ids.join(","))?;
    } else if arguments.json {
        let token = |id: &u32| {
            let bytes = tokenizer.token_bytes(*id).unwrap_or_default();
            json::object! {
                id: *id,
                // As the file writes it.
                token: tokenizer.token_text(*id).unwrap_or_default(),
                // What it says, where that is UTF-8.
                text: std::str::from_utf8(bytes).ok(),
                bytes: bytes,
                control: tokenizer.is_control(*id),
            }
        };
        let tokens: Vec<_> = ids.iter().map(token).collect();
        json::document(out, json::object! { model: &file.name, tokens: tokens })?;
    } else {
        for id in ids {
            let bytes = tokenizer.token_bytes(id).unwrap_or_default();
            writeln!(out, "{id:>7}  {}", shown(bytes))?;
        }
    }
    Ok(Outcome::Fine)
}

/// Decodes and prints.
pub(crate) fn detokenize(arguments: &DetokenizeArguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    let file = arguments.model.open()?;
    let tokenizer = file.tokenizer()?;
    let text = match arguments.ids.as_slice() {
        [] => None,
        [one] if one == source::STDIN => None,
        ids => Some(ids.join(" ")),
    };
    let text = match text {
        Some(text) => text,
        None => String::from_utf8_lossy(&standard_input()?).into_owned(),
    };
    let ids = ids(&text)?;
    tokenizer.check(&ids).map_err(|error| file.tokenizer_failure(&error))?;
    out.write_all(&tokenizer.decode(&ids, arguments.special))?;
    Ok(Outcome::Fine)
}

fn standard_input() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| Failure::Message(format!("cannot read standard input: {error}")))?;
    Ok(bytes)
}

/// Ids as people and programs write them.
fn ids(text: &str) -> Result<Vec<u32>, Failure> {
    let text = text.trim();
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    inner
        .split(|c: char| c == ',' || c.is_whitespace())
        .filter(|word| !word.is_empty())
        .map(|word| {
            let wrong = || Failure::Message(format!("`{word}` is no token id: ids are whole numbers from 0"));
            word.parse().map_err(|_| wrong())
        })
        .collect()
}

/// Bytes between quotes, on one line: what is not UTF-8 as `\xNN`.
fn shown(bytes: &[u8]) -> String {
    let mut shown = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => shown.extend(['\\', c]),
                ' '..='~' => shown.push(c),
                _ if c.is_alphanumeric() => shown.push(c),
                c => shown.extend(c.escape_debug()),
            }
        }
        shown.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    shown.push('"');
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        for text in ["1,2,3", "1 2 3", "[1, 2, 3]\n", " 1,\n2\t3 "] {
            assert!(matches!(ids(text).as_deref(), Ok([1, 2, 3])), "{text:?}");
        }
        assert!(matches!(ids("[]").as_deref(), Ok([])));
        for text in ["-1", "1.5", "x", "[1", "4294967296"] {
            assert!(ids(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn bytes_are_shown_on_one_line() {
        assert_eq!(shown(b" a\"\\\n\xc3\xa9\xff\xe2\x80\x8b"), r#"" a\"\\\né\xff\u{200b}""#);
    }
}
