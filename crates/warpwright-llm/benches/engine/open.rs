//! The model that benches run, and how they print figures.

#[path = "../../tests/engine/model.rs"]
mod model;

use std::path::Path;
use warpwright_llm::gguf::Gguf;

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

pub(crate) fn line(what: &str, figure: String) {
    println!("{what:<48} {figure:>16}");
}

/// The file that was given; else the tiny model, or one of its form.
pub(crate) fn open() -> Outcome<Gguf> {
    let tiny = concat!(env!("CARGO_MANIFEST_DIR"), "/../warpwright/models/tiny.gguf");
    let given = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    match given.or_else(|| Path::new(tiny).exists().then(|| tiny.to_owned())) {
        Some(path) => Ok(Gguf::open(path)?),
        None => {
            println!("a model of random weights: there is no {tiny}");
            let sizes = model::Sizes {
                window: None,
                layers: 6,
                hidden: 256,
                heads: 4,
                kv_heads: 2,
                head_dim: 64,
                ffn: 768,
                vocab: 2048,
                context: 1024,
            };
            Ok(model::gguf(sizes, 1))
        }
    }
}
