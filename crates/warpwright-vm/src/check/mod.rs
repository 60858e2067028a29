//! What is looked for while a kernel runs: races, uninitialised data, broken synchronisation.

pub mod race;
