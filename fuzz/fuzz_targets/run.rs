//! Any text that the verifier accepts: its kernels, launched with wild arguments and a small budget, come
//! to an end, and the host is as it was. They do the same compiled as interpreted.
//!
//! Most mutants are made of whole instructions and operands, for few others pass the verifier.
#![no_main]

#[path = "../../crates/warpwright-vm/tests/hostile/mutate.rs"]
mod mutate;
#[path = "../../crates/warpwright-vm/tests/hostile/run.rs"]
mod run;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|text: &str| {
    run::run(text);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let Some(text) = std::str::from_utf8(&data[..size]).ok().filter(|_| seed % 8 != 0) else {
        return fuzzer_mutate(data, size, max_size);
    };
    let mutant = mutate::mutate(text, &mut mutate::Random(seed.into()));
    let length = mutant.len().min(max_size);
    data[..length].copy_from_slice(&mutant.as_bytes()[..length]);
    length
});
