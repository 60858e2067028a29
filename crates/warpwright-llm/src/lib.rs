//! The GGUF engine: a model file becomes text.
//!
//! ```text
//!  Gguf ──► ModelConfig ──► graphs ──► Engine ──► generate ──► text
//!    └────► Tokenizer, ChatTemplate ────────────────┘
//! ```
//!
//! Opening a file checks it. Its tokenizer converts text to ids. An engine holds the model and the current sequence on
//! a device. [`generate`](generate::generate) continues a prompt and passes the text to a listener as it is made.
//!
//! ```
//! use std::ops::ControlFlow;
//! use warpwright_llm::engine::{Engine, EngineOptions, SamplerOptions};
//! use warpwright_llm::generate::{Finish, GenerateOptions, generate};
//! use warpwright_llm::gguf::Gguf;
//! use warpwright_llm::tokenizer::{Encode, Tokenizer};
//! use warpwright_runtime::Device;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../warpwright/models/tiny.gguf");
//! let gguf = Gguf::open(path)?;
//! let tokenizer = Tokenizer::from_gguf(&gguf)?;
//!
//! let mut options = EngineOptions::new(Device::auto()?.device);
//! options.sampler = SamplerOptions::greedy();
//! let mut engine = Engine::load(&gguf, options, |_| {})?;
//!
//! let prompt = tokenizer.encode("Once upon a time", Encode { add_special: true, parse_special: false })?;
//! let options = GenerateOptions { max_tokens: Some(8), ..GenerateOptions::default() };
//! let mut show = |piece: &str| {
//!     print!("{piece}");
//!     ControlFlow::Continue(())
//! };
//! let generation = generate(&mut engine, &tokenizer, &prompt, &options, &mut show)?;
//! assert_eq!(generation.finish, Finish::Length);
//! assert_eq!(generation.text, ", a young duck named Rita lived in");
//!
//! // The sequence goes on: another call adds to what is in the cache.
//! assert_eq!(engine.tokens().len(), prompt.len() + 8);
//! # Ok(())
//! # }
//! ```
//!
//! What is one level down is public too: [`Engine::prefill`](engine::Engine::prefill) and
//! [`decode`](engine::Engine::decode) for ids alone, [`logits`](engine::Engine::logits),
//! [`ChatTemplate`](chat::ChatTemplate) for conversations, and the graph of a model
//! ([`ModelConfig::graph`](model::ModelConfig::graph)), which runs on other plans than the engine's.
#![deny(unsafe_code)]

pub mod chat;
pub mod engine;
pub mod generate;
pub mod gguf;
pub mod model;
pub mod tokenizer;

/// The example of the page that registries show.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
