//! Any text that the verifier accepts: its kernels, launched with wild arguments and a small budget, come
//! to an end, and the host is as it was.
#![no_main]

#[path = "../../crates/warpwright-vm/tests/hostile/run.rs"]
mod run;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    run::run(text);
});
