//! What the virtual GPU alone finds and counts.

mod called;
mod planted;
mod traffic;
