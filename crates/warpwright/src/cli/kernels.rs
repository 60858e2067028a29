//! `warpwright kernels`: the catalogue.

use super::{Failure, Outcome, json};
use serde::Serialize;
use std::io::Write;
use warpwright_kernels::{Entry, catalogue};

/// List the kernels with their fields
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

/// An entry, for `--json`.
fn described(entry: &'static Entry) -> impl Serialize {
    let fields = entry.fields.iter().map(|field| {
        json::object! {
            name: field.name,
            r#type: field.domain.ty(),
            default: field.default.unwrap_or_default(),
            domain: field.domain.to_string(),
            doc: field.doc,
        }
    });
    let fields: Vec<_> = fields.collect();
    json::object! { name: entry.name, doc: entry.doc, fields: fields, examples: entry.examples }
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    if arguments.json {
        let list: Vec<_> = catalogue().iter().map(described).collect();
        json::write(out, &list)?;
        return Ok(Outcome::Fine);
    }
    for (i, entry) in catalogue().iter().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}: {}", entry.name, entry.doc)?;
        for field in entry.fields {
            let assignment = format!("{}={}", field.name, field.default.unwrap_or_default());
            writeln!(out, "    {assignment:<20} {}: {}, {}", field.domain.ty(), field.doc, field.domain)?;
        }
    }
    Ok(Outcome::Fine)
}
