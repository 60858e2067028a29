//! Declarations that no host has room for, and modules that are large where a short text, or a table of a
//! decoder, may be too small.

use crate::attack::{Answer::*, Attack, check};
use std::fmt::Write;
use warpwright_vm::TrapKind;

/// A variable of module scope, which the kernel reads at its beginning.
fn global(declaration: &str) -> Attack {
    Attack::with(declaration, "mov.u64 %d1, x; cvta.global.u64 %d1, %d1; ld.u8 %r1, [%d1];")
}

#[test]
fn global_memory() {
    check([
        ("a terabyte", global(".global .b8 x[1099511627776];"), Load),
        ("as many bytes as there are addresses", global(".global .b8 x[9223372036854775807];"), Load),
        ("a product of dimensions that wraps", global(".global .b64 x[4294967296][4294967296];"), Verifier),
        ("more than the device has", global(".global .b8 x[1073741825];"), Load),
        ("most of what the device has", global(".global .b8 x[1000000000];"), Nothing),
        (
            "many that are too much together",
            Attack::with(&(0..40).map(|i| format!(".global .b8 x{i}[100000000];\n")).collect::<String>(), ""),
            Load,
        ),
        ("a large alignment", global(".global .align 1048576 .b8 x[16];"), Nothing),
        ("no bytes", global(".global .b8 x[0];"), Verifier),
        ("a constant", Attack::with(".const .b8 x[1099511627776];", ""), Verifier),
        ("a few initial values of much", global(".global .b32 x[200000000] = {1, 2, 3};"), Nothing),
        ("a variable of a function", Attack::body("{ .global .b8 y[1099511627776]; }"), Load),
    ]);
}

#[test]
fn shared_and_local_memory() {
    check([
        ("shared memory for ever", Attack::with(".shared .b8 x[1099511627776];", ""), Load),
        ("more shared memory than addresses", Attack::with(".shared .b8 x[9223372036854775807];", ""), Load),
        (
            "shared memory that is used",
            Attack::with(".shared .b8 x[1099511627776];", "mov.u32 %r1, x; ld.shared.u8 %r1, [%r1];"),
            Verifier,
        ),
        ("local memory for ever", Attack::body("{ .local .b8 y[1099511627776]; }"), Load),
        ("more local memory than addresses", Attack::body("{ .local .b8 y[9223372036854775800]; }"), Load),
        ("local memory beyond 2^32", Attack::body("{ .local .b8 y[4294967296]; }"), Load),
        ("all local memory of a thread", Attack::body("{ .local .b8 y[524000]; }").threads(1), Nothing),
        (
            "all local memory of all threads of blocks that wait",
            Attack::body("{ .local .b8 y[524000]; } barrier.sync 0; again: bra again;")
                .threads(1024)
                .blocks(100)
                .cooperative(),
            Trap(TrapKind::OutOfMemory),
        ),
        ("a local alignment", Attack::body("{ .local .align 1073741824 .b8 y[4]; }"), Load),
    ]);
}

#[test]
fn parameters() {
    let function = |param: &str, body: &str| Attack::with(&format!(".func f({param}) {{ {body} ret; }}"), "");
    let kernel = |param: &str| {
        let module =
            format!(".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k({param}) {{ ret; }}\n");
        Attack::module(module).args([])
    };
    check([
        ("parameters of a kernel for ever", kernel(".param .b8 p[1099511627776]"), Verifier),
        ("parameters of a kernel that wrap", kernel(".param .b64 p[2305843009213693952]"), Verifier),
        ("parameters of a function for ever", function(".param .b8 p[1099511627776]", ""), Load),
        (
            "variables of the parameter space for ever",
            Attack::body("{ .param .b8 y[9223372036854775800]; }"),
            Load,
        ),
    ]);
}

#[test]
fn registers() {
    check([
        ("registers that nobody names", Attack::body("{ .reg .b32 %many<100000>; }"), Nothing),
        ("all registers there are", Attack::body("{ .reg .b32 %many<4294967295>; }"), Verifier),
        (
            "all registers twice",
            Attack::body("{ .reg .b64 %many<4294967295>; .reg .b64 %more<4294967295>; }"),
            Verifier,
        ),
        (
            "the last of them",
            Attack::body("{ .reg .b32 %many<2147483647>; mov.u32 %many2147483646, 1; }"),
            Verifier,
        ),
        ("vectors of them", Attack::body("{ .reg .v4 .b32 %many<1073741824>; }"), Verifier),
    ]);
}

/// A body of that many copies of some lines, in which `#` is the number of the copy.
fn repeated(count: usize, lines: &str) -> Attack {
    let mut body = String::new();
    for i in 0..count {
        let _ = writeln!(body, "{}", lines.replace('#', &i.to_string()));
    }
    Attack::body(&body).budget(1 << 30)
}

/// What walks the control-flow graph does not recurse with it.
#[test]
fn long_functions() {
    const COUNT: usize = 20_000;
    check([
        (
            "branches one after the other",
            repeated(COUNT, "setp.eq.u32 %p0, %r0, #; @%p0 bra L#; L#:"),
            Nothing,
        ),
        (
            "branches that all meet at the end",
            Attack::body(&format!("setp.eq.u32 %p0, %r0, 99; {} end:", "@%p0 bra end;\n".repeat(COUNT))),
            Nothing,
        ),
        ("blocks side by side", repeated(COUNT, "{ .reg .b32 %x; mov.u32 %x, #; }"), Nothing),
        ("blocks in blocks", Attack::body(&format!("{} {}", "{".repeat(COUNT), "}".repeat(COUNT))), Verifier),
        (
            "jumps back and forth",
            Attack::body(&format!(
                "bra A0; {} B0: ret;",
                (0..2000)
                    .map(|i| format!(
                        "B{}: bra B{i}; A{i}: bra {};\n",
                        i + 1,
                        if i < 1999 { format!("A{}", i + 1) } else { "B2000".into() }
                    ))
                    .collect::<String>()
            )),
            Nothing,
        ),
    ]);
}

#[test]
fn many_functions() {
    let chain: String = (0..2000)
        .rev()
        .map(|i| {
            let call = if i < 1999 { format!("call f{};", i + 1) } else { String::new() };
            format!(".func f{i}() {{ {call} ret; }}\n")
        })
        .collect();
    let kernels: String =
        (0..5000).map(|i| format!(".visible .entry e{i}() {{ .shared .b8 s[32768]; ret; }}\n")).collect();
    let functions: String =
        (0..5000).map(|i| format!(".func g{i}() {{ .shared .b8 s[32768]; ret; }}\n")).collect();
    check([
        ("a chain of calls", Attack::with(&chain, "call f0;"), Nothing),
        ("the shared memory of many kernels", Attack::with(&kernels, ""), Nothing),
        ("the shared memory of many functions", Attack::with(&functions, ""), Load),
        ("a function that is nowhere", Attack::with(".extern .func nowhere();", "call nowhere;"), Load),
        (
            "a variable that is nowhere",
            Attack::with(".extern .global .b32 nowhere;", "ld.global.u32 %r1, [nowhere];"),
            Nothing,
        ),
        (
            "a builtin with another signature",
            Attack::with(
                ".extern .func malloc(.param .b32 a);",
                "{ .param .b32 a; st.param.b32 [a], 5; call malloc, (a); }",
            ),
            Nothing,
        ),
        ("a builtin without arguments", Attack::with(".extern .func vprintf();", "call vprintf;"), Nothing),
        (
            "an assertion without arguments",
            Attack::with(".extern .func __assertfail();", "call __assertfail;"),
            Trap(TrapKind::Assertion),
        ),
    ]);
}
