//! What is looked for while a kernel runs: races, uninitialised data, broken synchronisation.

mod hooks;
pub mod race;
