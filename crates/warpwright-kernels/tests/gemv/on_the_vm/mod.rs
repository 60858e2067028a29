//! What the virtual GPU alone finds and counts.

mod planted;
mod traffic;
