//! Any text: the parser returns, with a module or with reasons.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(diagnostics) = warpwright_ptx::parse(text) {
        assert!(diagnostics.has_errors(), "refused without a reason");
        for diagnostic in &diagnostics {
            if let warpwright_ptx::ir::Origin::Text(span) = diagnostic.origin {
                assert!(text.get(span.range()).is_some(), "a span outside of the text");
            }
        }
    }
});
