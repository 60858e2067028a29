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

#[derive(Serialize)]
struct KernelObject {
    name: &'static str,
    doc: &'static str,
    fields: Vec<FieldObject>,
    examples: &'static [&'static str],
}

#[derive(Serialize)]
struct FieldObject {
    name: &'static str,
    #[serde(rename = "type")]
    ty: &'static str,
    default: &'static str,
    domain: String,
    doc: &'static str,
}

impl From<&Entry> for KernelObject {
    fn from(entry: &Entry) -> Self {
        let fields = entry.fields.iter().map(|field| FieldObject {
            name: field.name,
            ty: field.domain.ty(),
            default: field.default.unwrap_or_default(),
            domain: field.domain.to_string(),
            doc: field.doc,
        });
        KernelObject { name: entry.name, doc: entry.doc, fields: fields.collect(), examples: entry.examples }
    }
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    if arguments.json {
        let list: Vec<_> = catalogue().iter().map(KernelObject::from).collect();
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
