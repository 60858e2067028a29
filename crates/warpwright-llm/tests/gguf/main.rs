//! GGUF files: what is written is read, and what is damaged is refused.

#[path = "../common/counting.rs"]
mod counting;
mod damaged;
mod hostile;
mod python;
mod raw;
mod read;
mod split;
