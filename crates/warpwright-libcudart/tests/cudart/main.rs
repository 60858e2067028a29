//! The library as a loader sees it, and as compiled programs use it.
#![cfg(target_os = "linux")]

mod common;
mod loader;
mod programs;
