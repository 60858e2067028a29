//! A level of vector instructions cannot be made up: code that is compiled for AVX-512 is entered only where detection
//! has found it.
//!
//! `simd.rs` is private, so that no doctest reaches it. Its text is compiled here as a module of a program of its own.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The codes of the errors that a program has whose `main` is this body, beside the module `simd`.
fn errors(main: &str) -> BTreeSet<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/simd.rs");
    let program = format!(
        "#![allow(dead_code, unused)]
        mod machine {{ pub struct Machine<'a>(&'a ()); pub struct Inst; pub enum Step {{ Next }} }}
        mod native {{ #[derive(Clone, Copy)] pub enum Operation {{}} }}
        #[path = {source:?}] mod simd;
        struct Add;
        impl simd::LaneOp for Add {{
            fn run(_: &mut machine::Machine<'_>, _: &machine::Inst) -> machine::Step {{ machine::Step::Next }}
        }}
        fn main() {{ {main} }}"
    );
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let hash = main.bytes().fold(0u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    let name = format!("level_{hash:x}");
    let file = folder.join(format!("{name}.rs"));
    std::fs::write(&file, program).unwrap();
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
    rustc.args(["--edition=2024", "--emit=metadata", "--error-format=short", "--out-dir"]).arg(folder);
    let output = rustc.arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let codes: BTreeSet<String> =
        said.split("error[").skip(1).map(|rest| rest.chars().take_while(|&c| c != ']').collect()).collect();
    assert_eq!(output.status.success(), codes.is_empty(), "{said}");
    codes
}

#[test]
fn only_detection_makes_a_level() {
    let none = BTreeSet::new();
    assert_eq!(
        errors("simd::Level::detect().run(|| ()); simd::lanes::<Add>().at(simd::Level::detect());"),
        none
    );
    for (made_up, code) in [
        ("simd::Level::V4;", "E0599"),
        ("simd::Features::Base;", "E0603"),
        ("simd::Level(unreachable!());", "E0603"),
        ("simd::Level::default();", "E0599"),
        ("simd::lanes::<Add>().base;", "E0616"),
        ("simd::x86::v4::<Add>;", if cfg!(target_arch = "x86_64") { "E0603" } else { "E0433" }),
    ] {
        assert_eq!(errors(made_up), [code.to_owned()].into(), "{made_up}");
    }
}
