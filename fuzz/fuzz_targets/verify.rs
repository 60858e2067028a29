//! Any text that parses: the verifier returns, and what is printed says the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpwright_ptx::{parse, print, verify};

fuzz_target!(|text: &str| {
    let Ok(module) = parse(text) else { return };
    let verdict = verify(&module);
    let printed = print(&module);
    let again = parse(&printed).expect("what is printed parses");
    assert!(again == module, "what is printed says something else");
    assert_eq!(print(&again), printed, "printing is not idempotent");
    assert_eq!(verify(&again).is_ok(), verdict.is_ok(), "the verdict depends on the spelling");
});
