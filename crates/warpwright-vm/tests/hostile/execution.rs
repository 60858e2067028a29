//! Instructions with operands that mean nothing, or too much.

use crate::attack::{Answer, Answer::*, Attack, check};
use warpwright_vm::TrapKind;

const OUT: Answer = Finding("out-of-bounds");
const NULL: Answer = Finding("null");
const LANE: Answer = Finding("missing-lane");

#[test]
fn addresses() {
    let at = |address: &str, instruction: &str| {
        Attack::body(&format!("mov.u64 %d1, {address}; mov.u32 %r1, %r0; {instruction}"))
    };
    let last = "18446744073709551615";
    check([
        ("the last byte there is", at(last, "ld.u8 %r1, [%d1];"), OUT),
        ("a word that wraps around", at("18446744073709551612", "ld.v4.u8 {%r1,%r2,%r3,%r4}, [%d1];"), OUT),
        ("an offset that wraps around", at(last, "ld.global.u8 %r1, [%d1+2147483647];"), OUT),
        ("16 bytes at the end", at("18446744073709551600", "ld.global.v2.b64 {%d2,%d3}, [%d1];"), OUT),
        (
            "shared memory beyond 2^32",
            Attack::body("mov.u64 %d1, 4294967296; ld.shared.u32 %r1, [%d1];"),
            OUT,
        ),
        ("shared memory at 2^32", Attack::body("mov.u32 %r1, -4; ld.shared.u32 %r1, [%r1];"), OUT),
        ("shared memory behind the variable", Attack::body("ld.shared.u32 %r1, [tile+64];"), OUT),
        ("shared memory before it", Attack::body("mov.u32 %r1, tile; st.shared.u32 [%r1+-4], %r1;"), OUT),
        ("local memory at the last address", at(last, "st.local.u8 [%d1], %r1;"), OUT),
        ("local memory behind the variable", Attack::body("st.local.u32 [own+64], %r0;"), OUT),
        (
            "a store to a parameter",
            Attack::body("mov.u64 %d1, buffer; cvta.param.u64 %d1, %d1; st.u32 [%d1], %r0;"),
            Finding("read-only"),
        ),
        ("behind the parameters", Attack::body("ld.param.u64 %d1, [buffer+4088];"), OUT),
        ("an offset that overflows", at("9223372036854775807", "ld.global.u8 %r1, [%d1+2147483647];"), OUT),
        ("a null pointer", at("0", "st.global.u32 [%d1], %r1;"), NULL),
        ("a store to code", Attack::with(".func f() { ret; }", "mov.u64 %d1, f; st.u32 [%d1], %r0;"), OUT),
        ("a prefetch of nothing", at(last, "prefetch.global.L2 [%d1];"), Nothing),
        (
            "a constant is written",
            Attack::with(".const .b32 c = 5;", "mov.u64 %d1, c; cvta.const.u64 %d1, %d1; st.u32 [%d1], %r0;"),
            Finding("read-only"),
        ),
    ]);
}

#[test]
fn atomics() {
    let at = |instruction: &str| {
        Attack::body(&format!("mov.u32 %r1, 1; mov.u64 %d1, 1; mov.u64 %d2, -8; {instruction}"))
    };
    let end =
        |instruction: &str| Attack::body(&format!("mov.u64 %d1, 1; mov.f32 %f1, 0f3F800000; {instruction}"));
    check([
        ("an atomic on the last word", end("atom.global.add.u32 %r1, [%d0+60], 1;"), Nothing),
        ("an atomic behind it", end("atom.global.add.u32 %r1, [%d0+64], 1;"), OUT),
        ("half of an atomic behind it", end("atom.global.add.u64 %d1, [%d0+60], 1;"), Finding("misaligned")),
        ("a long atomic behind it", end("atom.global.cas.b64 %d1, [%d0+64], %d1, %d1;"), OUT),
        (
            "a vector of atomics at the end",
            end("atom.global.v4.f32.add {%f1,%f2,%f3,%f4}, [%d0+56], {%f1,%f1,%f1,%f1};"),
            Finding("misaligned"),
        ),
        ("a vector of atomics behind it", end("red.global.v2.f32.add [%d0+64], {%f1,%f1};"), OUT),
        (
            "an exchange of 16 bytes behind it",
            end("mov.b128 %q0, {%d1,%d1}; atom.global.exch.b128 %q1, [%d0+64], %q0;"),
            OUT,
        ),
        ("an atomic at the last address", at("atom.add.u64 %d1, [%d2], 1;"), OUT),
        ("a reduction at null", at("mov.u64 %d3, 0; red.global.or.b32 [%d3], 1;"), NULL),
        (
            "an atomic on local memory",
            at("mov.u64 %d3, own; cvta.local.u64 %d3, %d3; atom.add.u32 %r1, [%d3], 1;"),
            Trap(TrapKind::BadAtomic),
        ),
        (
            "an atomic on constants",
            Attack::with(
                ".const .b32 c = 5;",
                "mov.u64 %d1, c; cvta.const.u64 %d1, %d1; atom.add.u32 %r1, [%d1], 1;",
            ),
            Finding("read-only"),
        ),
        (
            "an increment at its limit",
            at("mov.u32 %r2, -1; st.global.u32 [%d0], %r2; atom.global.inc.u32 %r1, [%d0], 4294967295;"),
            Finding("race"),
        ),
    ]);
}

#[test]
fn control() {
    let table = |index: &str| {
        Attack::body(&format!("{index} T: .branchtargets A, B; brx.idx %r1, T; A: bra E; B: bra E; E:"))
    };
    let call = |declarations: &str, body: &str| Attack::with(declarations, body).budget(1 << 32);
    let endless = ".func f() { call f; ret; }";
    let indirect = |target: &str| {
        Attack::with(
            ".func g(.param .b32 p) { ret; } .func two(.param .b32 a, .param .b32 b) { ret; } \
             .func large(.param .align 4 .b8 p[64]) { ret; }",
            &format!(
                "{target} {{ .param .b32 a; st.param.b32 [a], 1; P: .callprototype _ (.param .b32 _); call %d1, (a), P; }}"
            ),
        )
    };
    check([
        ("the entry behind a table", table("mov.u32 %r1, 2;"), Trap(TrapKind::BadBranch)),
        ("an entry before a table", table("mov.u32 %r1, -1;"), Trap(TrapKind::BadBranch)),
        ("an entry of each lane", table("mov.u32 %r1, %r0;"), Trap(TrapKind::BadBranch)),
        ("recursion without an end", call(endless, "call f;"), Trap(TrapKind::StackOverflow)),
        (
            "recursion of one lane",
            call(endless, "setp.eq.u32 %p0, %r0, 7; @%p0 call f;"),
            Trap(TrapKind::StackOverflow),
        ),
        (
            "recursion that keeps many registers",
            call(
                ".func f(.reg .b64 a) { .reg .b64 %x<40>; .reg .pred %p; mov.u64 %x1, a; add.u64 %x2, a, 1; call f, (%x2); add.u64 %x3, %x1, %x2; ret; }",
                "call f, (%d0);",
            ),
            Trap(TrapKind::StackOverflow),
        ),
        (
            "recursion that keeps arrays",
            call(
                ".func f() { .local .b8 l[4096]; .reg .b32 %x; st.local.u32 [l], 1; call f; ret; }",
                "call f;",
            ),
            Trap(TrapKind::StackOverflow),
        ),
        (
            "two that call each other, in all threads",
            call(".func g(); .func f() { call g; ret; } .func g() { call f; ret; }", "call f;")
                .threads(128)
                .blocks(2),
            Trap(TrapKind::StackOverflow),
        ),
        ("a call of null", indirect("mov.u64 %d1, 0;"), Trap(TrapKind::BadCall)),
        ("a call of data", indirect("mov.u64 %d1, %d0;"), Trap(TrapKind::BadCall)),
        ("a call into a function", indirect("mov.u64 %d1, g; add.u64 %d1, %d1, 4;"), Trap(TrapKind::BadCall)),
        (
            "a call behind all functions",
            indirect("mov.u64 %d1, g; add.u64 %d1, %d1, 1600000;"),
            Trap(TrapKind::BadCall),
        ),
        (
            "a call of anything",
            indirect("cvt.u64.u32 %d1, %r0; mul.lo.u64 %d1, %d1, -1;"),
            Trap(TrapKind::BadCall),
        ),
        ("a call of a kernel", indirect("mov.u64 %d1, k;"), Trap(TrapKind::BadCall)),
        ("a call that fits", indirect("mov.u64 %d1, g;"), Nothing),
        ("a call with too few arguments", indirect("mov.u64 %d1, two;"), Trap(TrapKind::BadCall)),
        ("a call with too small an argument", indirect("mov.u64 %d1, large;"), Trap(TrapKind::BadCall)),
        ("a trap", Attack::body("trap;"), Trap(TrapKind::Instruction)),
        ("a breakpoint", Attack::body("brkpt;"), Nothing),
        ("a long sleep", Attack::body("nanosleep.u32 4294967295;"), Nothing),
    ]);
}

#[test]
fn stack() {
    let allocate = |size: &str| {
        Attack::body(&format!("mov.u64 %d1, {size}; alloca.u64 %d2, %d1; st.local.u32 [%d2], %r0;"))
    };
    check([
        ("all of memory on the stack", allocate("18446744073709551615"), Trap(TrapKind::StackOverflow)),
        ("half of memory", allocate("9223372036854775807"), Trap(TrapKind::StackOverflow)),
        ("2^32 bytes", allocate("4294967296"), Trap(TrapKind::StackOverflow)),
        ("a byte more than there is", allocate("524289"), Trap(TrapKind::StackOverflow)),
        ("nothing", allocate("0"), OUT),
        ("enough", allocate("16"), Nothing),
        ("a loop", Attack::body("again: alloca.u64 %d2, 1024; bra again;"), Trap(TrapKind::StackOverflow)),
        (
            "a loop that frees",
            Attack::body("stacksave.u64 %d3; again: alloca.u64 %d2, 1024; stackrestore.u64 %d3; bra again;"),
            Trap(TrapKind::Budget),
        ),
        (
            "a wild restore",
            Attack::body(
                "mov.u64 %d3, -1; stackrestore.u64 %d3; alloca.u64 %d2, 64; st.local.u32 [%d2], %r0;",
            ),
            Nothing,
        ),
        (
            "a restore of nothing",
            Attack::body("mov.u64 %d3, 0; stackrestore.u64 %d3; st.local.u32 [own], %r0;"),
            Nothing,
        ),
        (
            "the stacks of all threads",
            Attack::body("alloca.u64 %d2, 500000; barrier.sync 0; again: bra again;")
                .threads(1024)
                .blocks(64)
                .cooperative()
                .budget(1 << 32),
            Trap(TrapKind::OutOfMemory),
        ),
    ]);
}

#[test]
fn lanes() {
    let with = |mask: &str, instruction: &str| {
        Attack::body(&format!(
            "mov.b32 %r1, {mask}; mov.u32 %r2, %r0; {}",
            instruction.replace("MASK", "%r1")
        ))
    };
    let shuffle = "shfl.sync.idx.b32 %r3|%p1, %r2, -1, -1, MASK;";
    check([
        ("a shuffle of nobody", with("0", shuffle), LANE),
        ("a shuffle of somebody else", with("2", shuffle), LANE),
        ("a shuffle of all", with("-1", shuffle), Nothing),
        ("a shuffle with masks of all kinds", with("%r0", shuffle), LANE),
        ("a shuffle of lanes that are not there", with("-1", shuffle).threads(5), Nothing),
        (
            "a shuffle of those that left",
            with("-1", &format!("setp.lt.u32 %p0, %r0, 16; @%p0 exit; {shuffle}")),
            Nothing,
        ),
        (
            "a shuffle in one branch",
            with(
                "-1",
                &format!(
                    "setp.lt.u32 %p0, %r0, 16; @%p0 bra skip; {shuffle} bra skip; skip: barrier.sync 0;"
                ),
            ),
            LANE,
        ),
        ("a vote of nobody", with("0", "vote.sync.ballot.b32 %r3, 1, MASK;"), LANE),
        ("a match of nobody", with("0", "match.any.sync.b32 %r3, %r2, MASK;"), LANE),
        ("a match of strange masks", with("%r0", "match.all.sync.b32 %r3|%p1, %r2, MASK;"), LANE),
        ("a reduction of nobody", with("0", "redux.sync.add.u32 %r3, %r2, MASK;"), LANE),
        ("an election of nobody", with("0", "elect.sync %r3|%p1, MASK;"), LANE),
        ("a barrier of nobody", with("0", "bar.warp.sync MASK;"), LANE),
        ("a barrier of strangers", with("%r0", "bar.warp.sync MASK;"), LANE),
    ]);
}

#[test]
fn barriers() {
    let barrier = |id: &str, count: &str| {
        Attack::body(&format!("mov.u32 %r1, {id}; mov.u32 %r2, {count}; barrier.sync %r1, %r2;"))
    };
    check([
        ("a barrier that is none", barrier("16", "32"), Trap(TrapKind::BadOperand)),
        ("the last number of a barrier", barrier("-1", "32"), Trap(TrapKind::BadOperand)),
        ("a barrier of each lane", barrier("%r0", "32"), Trap(TrapKind::BadOperand)),
        ("a barrier of all threads, as no count says", barrier("1", "0"), Nothing),
        ("a barrier of one thread", barrier("1", "1"), Trap(TrapKind::BadOperand)),
        ("a barrier of 2^32 threads", barrier("1", "-32"), Trap(TrapKind::Deadlock)),
        ("a barrier of more threads than there are", barrier("1", "64"), Trap(TrapKind::Deadlock)),
        ("a barrier of another count for each", barrier("1", "%r0"), Trap(TrapKind::BadOperand)),
        (
            "arrivals without an end",
            Attack::body("again: barrier.arrive 1, 64; bra again;"),
            Trap(TrapKind::Budget),
        ),
        (
            "a barrier that half of the warp skips",
            Attack::body("setp.lt.u32 %p0, %r0, 16; @%p0 bar.sync 0; bar.warp.sync -1;"),
            Finding("divergent-barrier"),
        ),
        (
            "a spin on memory",
            Attack::body(
                "again: ld.volatile.global.u32 %r1, [%d0]; setp.eq.u32 %p0, %r1, 0; @%p0 bra again;",
            )
            .budget(1 << 40),
            Trap(TrapKind::Deadlock),
        ),
    ]);
}

#[test]
fn mbarriers() {
    let init = |count: &str, then: &str| {
        Attack::body(&format!("mov.u32 %r1, {count}; mbarrier.init.shared.b64 [tile], %r1; {then}"))
            .threads(1)
    };
    let bad = Trap(TrapKind::BadBarrier);
    check([
        ("of no arrivals", init("0", ""), bad),
        ("of too many", init("1048576", ""), bad),
        ("of all numbers", init("-1", ""), bad),
        ("that is none", Attack::body("mbarrier.arrive.shared.b64 %d1, [tile];").threads(1), bad),
        (
            "that was made invalid",
            init("1", "mbarrier.inval.shared.b64 [tile]; mbarrier.arrive.shared.b64 %d1, [tile];"),
            bad,
        ),
        ("with too many arrivals", init("1", "mbarrier.arrive.shared.b64 %d1, [tile], 2;"), bad),
        (
            "with any number of arrivals",
            init("5", "mov.u32 %r2, -1; mbarrier.arrive.shared.b64 %d1, [tile], %r2;"),
            bad,
        ),
        ("with no arrivals", init("5", "mov.u32 %r2, 0; mbarrier.arrive.shared.b64 %d1, [tile], %r2;"), bad),
        (
            "with all bytes expected",
            init("5", "mov.u32 %r2, -1; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [tile], %r2;"),
            bad,
        ),
        (
            "with bytes that nobody expects",
            init("5", "again: mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [tile], 1000000; bra again;"),
            bad,
        ),
        ("behind the variable", Attack::body("mbarrier.init.shared.b64 [tile+64], 1;").threads(1), OUT),
        (
            "that is not aligned",
            Attack::body("mbarrier.init.shared.b64 [tile+4], 1;").threads(1),
            Finding("misaligned"),
        ),
        ("at a wild address", Attack::body("mov.u64 %d1, -8; mbarrier.init.b64 [%d1], 1;").threads(1), OUT),
        (
            "a state that is none",
            init("5", "mov.u64 %d1, -1; mbarrier.test_wait.shared.b64 %p0, [tile], %d1;"),
            Nothing,
        ),
        (
            "overwritten",
            init("1", "mov.u64 %d1, -1; st.shared.u64 [tile], %d1; mbarrier.arrive.shared.b64 %d1, [tile];"),
            bad,
        ),
        (
            "waited for for ever",
            init("2", "again: mbarrier.try_wait.parity.shared.b64 %p0, [tile], 0; @!%p0 bra again;")
                .budget(1 << 40),
            Trap(TrapKind::Deadlock),
        ),
        (
            "a count of what is no state",
            init("5", "mov.u64 %d1, 7; mbarrier.pending_count.b64 %r2, %d1;"),
            Nothing,
        ),
    ]);
}

#[test]
fn asynchronous_copies() {
    let copy = |to: &str, from: &str, sizes: &str| {
        Attack::body(&format!(
            "mov.u64 %d1, {from}; mov.u32 %r1, {to}; mov.u32 %r2, -1; cp.async.ca.shared.global [%r1], [%d1], {sizes}; cp.async.wait_all;"
        )).threads(1)
    };
    check([
        ("from null", copy("tile", "0", "16"), NULL),
        ("from the last address", copy("tile", "18446744073709551600", "16"), OUT),
        ("to the last address", copy("-16", "%d0", "16"), OUT),
        ("to behind the variable", copy("tile+64", "%d0", "16"), OUT),
        ("to no multiple", copy("tile+8", "%d0", "16"), Finding("misaligned")),
        ("of more than it copies", copy("tile", "%d0", "16, %r2"), Nothing),
        ("of nothing, from null", copy("tile", "0", "16, 0"), Nothing),
        (
            "without an end",
            Attack::body("again: cp.async.ca.shared.global [tile], [%d0], 16; bra again;")
                .threads(1)
                .budget(1 << 40),
            Trap(TrapKind::Deadlock),
        ),
        (
            "groups without an end",
            Attack::body(
                "again: cp.async.ca.shared.global [tile], [%d0], 16; cp.async.commit_group; bra again;",
            )
            .threads(1)
            .budget(10_000),
            Trap(TrapKind::Budget),
        ),
        ("a wait for any number of groups", Attack::body("cp.async.wait_group 2147483647;"), Nothing),
    ]);
}

const RUNTIME: &str = ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.extern .func (.param .b64 r) malloc (.param .b64 n);
.extern .func free (.param .b64 p);
.extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.global .align 1 .b8 wide[32] = {37, 42, 46, 42, 100, 37, 57, 57, 57, 57, 57, 57, 57, 57, 57, 115, 37, 46, 57, 57, 57, 57, 57, 57, 57, 102, 0};
.global .align 1 .b8 odd[16] = {37, 110, 37, 37, 37, 113, 37, 104, 104, 104, 108, 108, 100, 37, 45, 0};
.global .align 1 .b8 endless[4] = {37, 115, 37, 115};";

fn runtime(body: &str) -> Attack {
    Attack::with(RUNTIME, body)
}

#[test]
fn printing() {
    let print = |format: &str, arguments: &str| {
        runtime(&format!(
            "mov.u64 %d1, {format}; mov.u64 %d2, {arguments};
            {{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %d1; st.param.b64 [a], %d2; call (r), vprintf, (f, a); }}"
        ))
    };
    let own = "mov.u64 %d3, own; cvta.local.u64 %d3, %d3; st.local.u64 [own], -1; st.local.u64 [own+8], -1;";
    let local = |format: &str| {
        let Attack { module, .. } = print(format, "%d3");
        Attack::module(module.replace("mov.u64 %d1", &format!("{own} mov.u64 %d1")))
    };
    check([
        ("no format", print("0", "0"), Nothing),
        ("a wild format", print("-1", "-1"), Nothing),
        ("a format without arguments", print("wide", "0"), Nothing),
        ("widths of any size, of values that are not there", local("wide"), Finding("uninitialized")),
        ("conversions that are none", local("odd"), Nothing),
        ("a format without an end", local("endless"), Nothing),
        ("a lot", print("wide", "0").threads(1024).blocks(100).budget(1 << 32), Nothing),
        (
            "a failed assertion of nothing",
            runtime(
                "{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s; st.param.b64 [m], -1; st.param.b64 [f], 0; st.param.b32 [l], -1; st.param.b64 [n], 7; st.param.b64 [s], -1; call __assertfail, (m, f, l, n, s); }",
            ),
            Trap(TrapKind::Assertion),
        ),
    ]);
}

#[test]
fn heap() {
    let allocate = |size: &str, then: &str| {
        runtime(&format!(
            "mov.u64 %d1, {size}; again: {{ .param .b64 n; .param .b64 r; st.param.b64 [n], %d1; call (r), malloc, (n); ld.param.b64 %d2, [r]; }} {then}"
        ))
    };
    let free = "{ .param .b64 p; st.param.b64 [p], %d2; call free, (p); }";
    let touch = "st.u8 [%d2], %r0;";
    check([
        ("all of memory", allocate("-1", touch), NULL),
        ("half of memory", allocate("9223372036854775807", touch), NULL),
        ("almost all of memory", allocate("-16", touch), NULL),
        ("nothing", allocate("0", touch), NULL),
        ("a byte", allocate("1", touch), Nothing),
        ("behind it", allocate("16", "st.u8 [%d2+16], %r0;"), OUT),
        ("after it was freed", allocate("16", &format!("{free} {touch}")), Finding("use-after-free")),
        ("freed twice", allocate("16", &format!("{free} {free}")), Trap(TrapKind::BadFree)),
        (
            "freed in the middle",
            allocate("16", &format!("add.u64 %d2, %d2, 4; {free}")),
            Trap(TrapKind::BadFree),
        ),
        ("null is freed", allocate("-1", free), Nothing),
        (
            "something else is freed",
            allocate("16", &format!("mov.u64 %d2, %d0; {free}")),
            Trap(TrapKind::BadFree),
        ),
        ("without an end", allocate("1", "bra again;").threads(1024), Trap(TrapKind::Budget)),
        (
            "and freed, without an end",
            allocate("100000", &format!("{free} bra again;")),
            Trap(TrapKind::Budget),
        ),
    ]);
}

/// A prefetch brings nothing that a program sees, and still has rules.
#[test]
fn prefetches() {
    let bulk = |at: &str| Attack::body(&format!("cp.async.bulk.prefetch.L2.global {at};"));
    check([
        ("in bulk", bulk("[%d0], 16"), Nothing),
        ("of nothing", bulk("[%d0], 0"), Nothing),
        (
            "of half a unit",
            Attack::body("mov.u32 %r1, 24; cp.async.bulk.prefetch.L2.global [%d0], %r1;"),
            Trap(TrapKind::BadOperand),
        ),
        ("from within a unit", bulk("[%d0+8], 16"), Trap(TrapKind::BadOperand)),
        ("of a line that nobody has", Attack::body("mov.u64 %d1, 8; prefetch.global.L2 [%d1];"), Nothing),
    ]);
}

#[test]
fn matrices() {
    let wmma = |stride: &str| {
        Attack::body(&format!(
            "mov.u32 %r1, {stride}; wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {{%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}}, [%d0], %r1;"
        ))
    };
    check([
        ("any stride", wmma("-1"), OUT),
        ("no stride", wmma("0"), Nothing),
        (
            "matrices of wild rows",
            Attack::body(
                "mul.lo.u32 %r1, %r0, 16; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1+1073741824];",
            ),
            OUT,
        ),
        (
            "matrices of odd rows",
            Attack::body("mov.u32 %r1, tile; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1+2];"),
            Finding("misaligned"),
        ),
        (
            "a product of half a warp",
            Attack::body(
                "setp.lt.u32 %p0, %r0, 16; mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %r5, 0; mov.u32 %r6, 0; @%p0 mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r1,%r2}, {%r3}, {%r4}, {%r5,%r6}; bar.warp.sync -1;",
            ),
            LANE,
        ),
        (
            "a multiplication of a warpgroup that the block does not have",
            Attack::module(Attack::body("wgmma.fence.sync.aligned;").module.replace("sm_90", "sm_90a")),
            Trap(TrapKind::BadOperand),
        ),
    ]);
}

/// What the virtual GPU does not execute says so.
#[test]
fn unsupported() {
    let unsupported = Trap(TrapKind::Unsupported);
    let product = "{ .reg .b16 %q; mov.b16 %q, 0; fma.rn.oob.f16 %q, %q, %q, %q; }";
    let sum = Attack::body("multimem.red.relaxed.gpu.global.add.u32 [%d0], 7;");
    check([
        ("which NaN it makes is open", Attack::body(product), unsupported),
        ("memory of one device by the address of many", sum, Finding("no-multimem-address")),
    ]);
}
