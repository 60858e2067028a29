//! The GGUF engine: a model file becomes text.
//!
//! ```text
//!  Gguf ──► ModelConfig ──► graphs ──► Engine ──► generate ──► text
//!    └────► Tokenizer, ChatTemplate ────────────────┘
//! ```
#![deny(unsafe_code)]

pub mod chat;
pub mod engine;
pub mod generate;
pub mod gguf;
pub mod model;
pub mod tokenizer;
