//! Goes on from a prompt: what a program needs that has a model in it.
//!
//! `cargo run --release -p warpwright-llm --example complete -- MODEL.gguf "Once upon a time"`

use std::error::Error;
use std::io::{Write, stdout};
use std::ops::ControlFlow;
use warpwright_llm::engine::{Engine, EngineOptions};
use warpwright_llm::generate::{GenerateOptions, generate};
use warpwright_llm::gguf::Gguf;
use warpwright_llm::tokenizer::{Encode, Tokenizer};
use warpwright_runtime::Device;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(prompt)) = (arguments.next(), arguments.next()) else {
        return Err("usage: complete MODEL.gguf PROMPT".into());
    };
    let gguf = Gguf::open(path)?;
    let tokenizer = Tokenizer::from_gguf(&gguf)?;
    let chosen = Device::auto()?;
    eprintln!("on {}: {}", chosen.device.properties().name, chosen.reason);
    let mut engine = Engine::load(&gguf, EngineOptions::new(chosen.device), |_| {})?;

    let ids = tokenizer.encode(&prompt, Encode { add_special: true, parse_special: false })?;
    let options = GenerateOptions { max_tokens: Some(64), ..GenerateOptions::default() };
    print!("{prompt}");
    let mut show = |piece: &str| match write!(stdout(), "{piece}").and_then(|()| stdout().flush()) {
        Ok(()) => ControlFlow::Continue(()),
        // Nobody reads any more.
        Err(_) => ControlFlow::Break(()),
    };
    let generation = generate(&mut engine, &tokenizer, &ids, &options, &mut show)?;
    println!();
    eprintln!("{} tokens, ended by `{}`", generation.tokens.len(), generation.finish.name());
    Ok(())
}
