//! GGUF files: what is written is read, and what is damaged is refused.

mod damaged;
mod hostile;
mod python;
mod raw;
mod read;
mod split;
