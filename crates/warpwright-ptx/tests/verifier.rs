//! What the verifier says about small modules: tables of a module's text and the codes that it
//! yields.

use std::collections::BTreeSet;
use std::panic::Location;
use warpwright_ptx::diag::{Diagnostics, LineIndex};
use warpwright_ptx::ir::ModuleIndex;
use warpwright_ptx::ir::{Arch, ItemKind, Module, Origin, Version};
use warpwright_ptx::verify::{BlockId, Cfg, Level, Uniformity, lowest};
use warpwright_ptx::{parse, verify};

const HEADER: &str = ".version 9.0 .target sm_90 .address_size 64\n";

fn module(text: &str) -> Module {
    parse(text).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

fn as_if_built(mut module: Module) -> Module {
    for item in &mut module.items {
        if let ItemKind::Function(function) = &mut item.kind {
            for statement in function.body.iter_mut().flatten() {
                statement.origin = Origin::Rust(Location::caller());
            }
        }
    }
    module
}

fn findings(module: &Module) -> Diagnostics {
    verify(module).map_or_else(|errors| errors, |info| info.diagnostics)
}

fn codes(found: &Diagnostics) -> BTreeSet<&'static str> {
    found.iter().map(|diagnostic| diagnostic.code.text()).collect()
}

/// Checks a table of (module without header, codes with spaces between).
#[track_caller]
fn expect(table: &[(&str, &str)]) {
    for (text, expected) in table {
        let found = match parse(&format!("{HEADER}{text}")) {
            Ok(module) => findings(&module),
            Err(errors) => errors,
        };
        let expected: BTreeSet<_> = expected.split_whitespace().collect();
        assert_eq!(codes(&found), expected, "{text}\n{found}");
    }
}

/// The same for the body of a kernel, with the registers `%p0`…, `%r0`… and `%d0`….
#[track_caller]
fn expect_bodies(table: &[(&str, &str)], built: bool) {
    for (body, expected) in table {
        let module = module(&kernel(body));
        let found = findings(&if built { as_if_built(module) } else { module });
        let expected: BTreeSet<_> = expected.split_whitespace().collect();
        assert_eq!(codes(&found), expected, "{body}\n{found}");
    }
}

fn kernel(body: &str) -> String {
    format!(
        "{HEADER}.global .align 8 .b8 mem[256];
        .visible .entry k(.param .u32 n) {{ .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<4>; {body} ret; }}"
    )
}

#[test]
fn headers() {
    let table = [
        (".version 7.7 .target sm_89", "E0017"),
        (".version 7.8 .target sm_89", ""),
        (".version 8.9 .target sm_90", "E0011"),
        (".version 9.0 .target sm_90 .address_size 32", "E0011"),
        (".version 9.0 .target sm_90, texmode_unified, texmode_independent", "E0011"),
        (".version 9.0 .target sm_90, map_f64_to_f32", "E0011"),
        (".version 9.0 .target sm_90, debug", "E0011"),
        (".version 8.7 .target sm_100f", "E0017"),
    ];
    for (text, expected) in table {
        let expected: BTreeSet<_> = expected.split_whitespace().collect();
        assert_eq!(codes(&findings(&module(text))), expected, "{text}");
    }
}

#[test]
fn directives() {
    expect(&[
        (".entry k() .maxntid 0 { ret; }", "E0028"),
        (".entry k() .maxntid 32 .reqntid 32 { ret; }", "E0028"),
        (".entry k() .reqntid 2048 { ret; }", "W0006"),
        (".entry k() .minnctapersm 2 { ret; }", "W0006"),
        (".entry k() .reqntid 128 .minnctapersm 2 { ret; }", ""),
        (".entry k() .maxnctapersm 2 { ret; }", "E0028"),
        (".entry k() .reqnctapercluster 2 .maxclusterrank 2 { ret; }", "E0028"),
        (".entry k() .reqntid 32 .reqnctapercluster 2 .blocksareclusters { ret; }", ""),
        (".entry k() .reqntid 32 .blocksareclusters { ret; }", "E0028"),
        (".func f() .maxntid 32 { ret; }", "E0028"),
        (".entry k() .noreturn { ret; }", "E0028"),
        (".func (.param .b32 r) f() .noreturn { exit; }", "E0028"),
        (".entry k() .maxntid 32;", "E0028"),
    ]);
}

#[test]
fn linkage() {
    expect(&[
        (".extern .func f() { ret; }", "E0026"),
        (".func f();", "E0026"),
        (".extern .func f();", ""),
        (".func f(); .func f() { ret; }", ""),
        (".visible .func f(); .func f() { ret; }", ""),
        (".func f(); .visible .func f() { ret; }", "E0026"),
        (".extern .func f(); .visible .func f() { ret; }", "E0026"),
        (".func f() { ret; } .func f();", "E0008"),
        (".func f(); .visible .entry f() { ret; }", "E0026"),
        (".func f(.param .b32 a); .func f(.param .u32 a) { ret; }", "E0026"),
        (".func f(.param .align 8 .b8 a[8]); .func f(.param .align 4 .b8 a[8]) { ret; }", "E0026"),
        (".func f() .noreturn; .func f() { ret; }", "E0026"),
        (".global .b32 x; .extern .global .b32 x;", ""),
        (".extern .global .b32 x; .global .b32 x;", "E0026"),
        (".extern .global .b32 x; .extern .global .b64 x;", "E0026"),
        (".extern .global .b32 x[]; .visible .global .b32 x[4];", ""),
        (".common .shared .b32 x;", "E0026"),
        (".visible .func f() { ret; } .visible .func g(); .alias g, f;", ""),
        (".weak .func f() { ret; } .visible .func g(); .alias g, f;", "E0026"),
        (".visible .func f(.param .b32 a) { ret; } .visible .func g(); .alias g, f;", "E0026"),
    ]);
}

#[test]
fn variables() {
    expect(&[
        (".local .b32 x;", "E0014"),
        (".global .pred x;", "E0014"),
        (".const[2] .b32 x;", "E0014"),
        (".shared .texref x;", "E0014"),
        (".global .texref x;", ""),
        (".global .samplerref x;", "E0028"),
        (".global .e4m3 x;", "E0028"),
        (".global .v4 .f64 x;", "E0028"),
        (".global .b32 x[];", "E0028"),
        (".extern .shared .b8 x[];", ""),
        (".shared .attribute(.managed) .b32 x;", "E0028"),
        (".func f() { .reg .f32x2 x; ret; }", "E0028"),
        (".func f() { .reg .v2 .pred x; ret; }", "E0028"),
        (".const .b8 x[40000]; .const .b8 y[40000];", "E0031"),
    ]);
}

#[test]
fn initial_values() {
    expect(&[
        (".global .u32 x = -1;", ""),
        (".global .u32 x = 1.5;", "E0029"),
        (".global .b32 x = 1.5;", ""),
        (".global .f32 x = 1;", "E0029"),
        (".global .f16 x = 1.0;", "E0029"),
        (".global .b32 x[4] = {1, 2, 3};", ""),
        (".global .b32 x[2] = {1, 2, 3};", "E0029"),
        (".global .b32 x[2][3] = {{1, 2}, {4}};", ""),
        (".global .b32 x[2][3] = {1, 2};", "E0029"),
        (".global .b32 x[2] = 1;", "E0029"),
        (".global .b32 x = {1};", "E0029"),
        (".global .v2 .f32 x = {1.0, 2.0};", ""),
        (".global .v2 .f32 x = {1.0};", "E0029"),
        (".shared .b32 x = 1;", "E0029"),
        (".extern .global .b32 x = 1;", "E0029"),
        (".global .b32 y; .global .u64 x = generic(y);", ""),
        (".global .b32 y; .global .u16 x = y;", "E0029"),
        (".shared .b32 y; .global .u64 x = y;", "E0029"),
        (".global .b32 y; .global .u8 x = 0xff00(y);", ""),
        (".global .b32 y; .global .u8 x = 0xfe(y);", "E0029"),
        (".func f() { ret; } .global .u64 x = f;", ""),
    ]);
}

#[test]
fn parameters() {
    expect(&[
        (".entry k(.reg .b32 a) { ret; }", "E0021"),
        (".entry k(.param .v4 .f32 a) { ret; }", "E0021"),
        (".entry k(.param .b8 a[]) { ret; }", "E0021"),
        (".func f(.param .b8 a[]) { ret; }", ""),
        (".func f(.param .b8 a[], .param .b32 b) { ret; }", "E0021"),
        (".func (.param .b32 a, .param .b32 b) f() { ret; }", "E0021"),
        (".func (.reg .b32 a, .param .b32 b) f() { ret; }", "E0021"),
        (".func (.reg .b32 a, .reg .v2 .b32 b) f() { ret; }", ""),
        (".func (.reg .pred b) f(.reg .pred a) { ret; }", ""),
        (".func f(.param .u64 .ptr .global a) { ret; }", "E0021"),
        (".entry k(.param .u64 .ptr .global .align 16 a) { ret; }", ""),
        (".entry k(.param .b8 a[32764]) { ret; }", ""),
        (".entry k(.param .b8 a[32765]) { ret; }", "E0021"),
    ]);
    let old = module(".version 8.0 .target sm_90 .entry k(.param .b8 a[4350], .param .b32 b) { ret; }");
    assert_eq!(codes(&findings(&old)), BTreeSet::from(["E0021"]));
}

#[test]
fn labels() {
    expect_bodies(
        &[
            ("mov.u32 %r0, %tid.x; T: .branchtargets A, B; brx.idx %r0, T; A: B:", ""),
            ("mov.u32 %r0, %tid.x; brx.idx %r0, T; T: .branchtargets A; A:", "E0022"),
            ("mov.u32 %r0, %tid.x; A: brx.idx %r0, A;", "E0022"),
            ("T: .branchtargets A; bra T; A:", "E0022"),
            ("P: .callprototype _ (); mov.u64 %d0, 0; call %d0, P;", ""),
        ],
        false,
    );
}

#[test]
fn shared_memory_counts_with_callees() {
    let uses = |name: &str| format!("mov.u32 %r, {name}; st.shared.b32 [%r], 0;");
    let (x, y) = (uses("x"), uses("y"));
    let declare = ".shared .b8 x[40000]; .shared .b8 y[40000];";
    let both = format!("{declare} .entry k() {{ .reg .b32 %r; {x} {y} ret; }}");
    let one = format!("{declare} .entry k() {{ .reg .b32 %r; {x} ret; }}");
    let callee = format!(".func f() {{ .reg .b32 %r; {y} ret; }}");
    let called = format!("{declare} {callee} .entry k() {{ .reg .b32 %r; {x} call f; ret; }}");
    let beside = format!("{declare} {callee} .entry k() {{ .reg .b32 %r; {x} ret; }}");
    expect(&[(&both, "E0025"), (&one, ""), (&called, "E0025"), (&beside, "")]);

    let info = verify(&module(&format!("{HEADER}{beside}"))).expect("48 KiB suffice");
    let sizes: Vec<_> = info.functions.iter().map(|function| function.static_shared).collect();
    assert_eq!(sizes, [0, 40000]);
}

#[test]
fn registers_without_a_value() {
    let table = [
        ("mov.u32 %r0, 1; add.u32 %r1, %r0, %r0;", "", ""),
        ("add.u32 %r1, %r0, 1;", "W0001", "E0023"),
        ("add.u32 %r1, %r0, 1; mov.u32 %r0, 1;", "W0001", "E0023"),
        // A loop writes it before it comes round.
        (
            "mov.u32 %r2, 0; L: add.u32 %r2, %r2, 1; mov.u32 %r0, %r2; setp.lt.u32 %p0, %r0, 9; @%p0 bra L;",
            "",
            "",
        ),
        // On one of two ways only.
        (
            "ld.param.u32 %r1, [n]; setp.eq.u32 %p0, %r1, 0; @%p0 bra L; mov.u32 %r0, 1; L: add.u32 %r2, %r0, 1;",
            "W0001",
            "W0001",
        ),
        // A guarded write counts.
        (
            "ld.param.u32 %r1, [n]; setp.eq.u32 %p0, %r1, 0; @%p0 mov.u32 %r0, 1; @%p0 mov.u32 %r2, %r0;",
            "",
            "",
        ),
        // What is not reached does not read.
        ("bra L; add.u32 %r1, %r0, 1; st.global.u32 [mem], %r1; L:", "W0003", "W0003"),
        ("@%p0 mov.u32 %r0, 1;", "W0001", "E0023"),
    ];
    for (body, parsed, built) in table {
        expect_bodies(&[(body, parsed)], false);
        expect_bodies(&[(body, built)], true);
    }
}

#[test]
fn barriers_under_control_flow() {
    const WORK: &str = "st.global.u32 [mem], 0;";
    let table = [
        // The same for the block, and for the grid.
        ("mov.u32 %r0, %ctaid.x; setp.eq.u32 %p0, %r0, 0; @%p0 bra L; bar.sync 0; L: WORK", "", ""),
        ("ld.param.u32 %r0, [n]; setp.eq.u32 %p0, %r0, 0; @%p0 bra L; bar.sync 0; L: WORK", "", ""),
        // By thread.
        (
            "mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 7; @%p0 bra L; bar.sync 0; L: WORK",
            "W0002",
            "E0024",
        ),
        // By thread, and together again.
        (
            "mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 7; @%p0 bra L; st.global.u32 [mem], 0; L: bar.sync 0; WORK",
            "",
            "",
        ),
        // Some threads end before the barrier.
        ("mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 7; @%p0 bra L; bar.sync 0; WORK L:", "", ""),
        ("mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 7; @%p0 ret; bar.sync 0; WORK", "", ""),
        // A warp at a time: right for a barrier of as many threads, wrong for the whole block.
        (
            "mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 64; @!%p0 bra L; bar.sync 1, 64; L: WORK",
            "",
            "",
        ),
        (
            "mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 64; @!%p0 bra L; bar.sync 0; L: WORK",
            "W0002",
            "E0024",
        ),
        // Threads leave a loop at different times.
        (
            "mov.u32 %r0, %tid.x; L: bar.sync 0; sub.u32 %r0, %r0, 1; setp.gt.u32 %p0, %r0, 9; @%p0 bra L; WORK",
            "W0002",
            "E0024",
        ),
        ("mov.u32 %r0, 9; L: bar.sync 0; sub.u32 %r0, %r0, 1; setp.gt.u32 %p0, %r0, 0; @%p0 bra L; WORK", "", ""),
        // A value written where threads differ.
        (
            "mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 7; mov.u32 %r1, 0; @%p0 bra L; mov.u32 %r1, 1;
             L: setp.eq.u32 %p1, %r1, 0; @%p1 bra M; bar.sync 0; M: WORK",
            "W0002",
            "E0024",
        ),
        ("mov.u32 %r0, %laneid; setp.lt.u32 %p0, %r0, 7; @%p0 bar.sync 0; WORK", "W0002", "E0024"),
        // What memory holds.
        ("ld.global.u32 %r0, [mem]; setp.eq.u32 %p0, %r0, 0; @%p0 bra L; bar.sync 0; L: WORK", "", ""),
        (
            "mov.u32 %r0, %tid.x; mul.wide.u32 %d0, %r0, 4; ld.global.u32 %r0, [%d0]; setp.eq.u32 %p0, %r0, 0;
             @%p0 bra L; bar.sync 0; L: WORK",
            "N0001",
            "N0001",
        ),
    ];
    for (body, parsed, built) in table {
        let body = body.replace("WORK", WORK);
        expect_bodies(&[(&body, parsed)], false);
        expect_bodies(&[(&body, built)], true);
    }
}

#[test]
fn lowest_version_and_target() {
    let table = [
        (".entry k() { ret; }", (6, 0), Arch::sm(50)),
        (".entry k() .reqnctapercluster 2 { ret; }", (7, 8), Arch::sm(90)),
        (".entry k() { .reg .b128 x; ret; }", (8, 3), Arch::sm(70)),
        (".func f() .noreturn { exit; }", (6, 4), Arch::sm(50)),
        (".entry k() { .reg .b32 %r; mov.u32 %r, %cluster_ctarank; ret; }", (7, 8), Arch::sm(90)),
    ];
    for (text, (major, minor), arch) in table {
        let found = lowest(&module(&format!("{HEADER}{text}"))).expect("some target offers it");
        assert_eq!((found.version, found.arch), (Version::new(major, minor), arch), "{text}");
    }
}

#[test]
fn the_lowest_version_for_a_target_names_what_asks_for_it() {
    let table = [
        (".entry k() { ret; }", Arch::sm(50), (6, 0), None),
        (".entry k() { ret; }", Arch::sm(80), (7, 0), None),
        (".func f() .noreturn { exit; }", Arch::sm(50), (6, 4), Some("`.noreturn`")),
        (".func f() .noreturn { exit; }", Arch::sm(80), (7, 0), None),
        (".entry k() { .reg .b128 x; ret; }", Arch::specific(90), (8, 3), Some("a `.b128` variable")),
    ];
    for (text, arch, (major, minor), feature) in table {
        let info = verify(&module(&format!("{HEADER}{text}"))).expect("it is valid");
        assert_eq!(info.lowest_version(arch), (Version::new(major, minor), feature), "{text} for {arch}");
    }
}

#[test]
fn drivers_accept_what_their_release_introduced_and_all_before_it() {
    let accepted = [
        (990, None),
        (2020, Some((1, 4))),
        (5050, Some((3, 2))),
        (6000, Some((4, 0))),
        (11080, Some((7, 8))),
        (12000, Some((8, 0))),
        (12040, Some((8, 4))),
        (12060, Some((8, 5))),
        (12080, Some((8, 7))),
        (12090, Some((8, 8))),
        (13000, Some((9, 0))),
        (13050, Some((9, 5))),
        // Newer than what is known here.
        (14000, Some((9, 5))),
    ];
    for (release, version) in accepted {
        let version = version.map(|(major, minor)| Version::new(major, minor));
        assert_eq!(Version::accepted_by(release), version, "CUDA {release}");
    }
    let published = (0..16).flat_map(|major| (0..16).map(move |minor| Version::new(major, minor)));
    for version in published {
        let release = version.cuda_release();
        assert_eq!(release.is_some(), version.is_published(), "{version}");
        assert!(release.is_none_or(|release| Version::accepted_by(release) == Some(version)), "{version}");
    }
}

#[test]
fn blocks_and_dominators() {
    let module = module(&kernel(
        "mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 7; @%p0 bra B; mov.u32 %r1, 1; bra C; B: mov.u32 %r1, 2;
         C: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra C; exit; D: trap;",
    ));
    let index = ModuleIndex::new(&module);
    let function = module.entries().next().expect("a kernel");
    let cfg = Cfg::new(&index, function);
    let successors: Vec<Vec<u32>> = (0..cfg.blocks().len() as u32)
        .map(|id| cfg.successors(BlockId(id)).iter().map(|next| next.0).collect())
        .collect();
    // 0: up to the branch; 1: then; 2: `B`; 3: `C`, a loop; 4: exit; 5: `D`; 6: what follows.
    assert_eq!(successors, [vec![1, 2], vec![3], vec![3], vec![4, 3], vec![], vec![], vec![]]);
    let reachable: Vec<_> = (0..7).map(|id| cfg.is_reachable(BlockId(id))).collect();
    assert_eq!(reachable, [true, true, true, true, true, false, false]);
    let parents = |tree: &warpwright_ptx::verify::cfg::DominatorTree| -> Vec<_> {
        (0..5).map(|id| tree.parent(BlockId(id)).map(|up| up.0)).collect()
    };
    assert_eq!(parents(&cfg.dominators()), [None, Some(0), Some(0), Some(0), Some(3)]);
    assert_eq!(parents(&cfg.post_dominators()), [Some(3), Some(3), Some(3), Some(4), Some(7)]);
    assert!(cfg.dominators().dominates(BlockId(0), BlockId(4)));
    assert!(!cfg.dominators().dominates(BlockId(1), BlockId(3)));

    let uniformity = Uniformity::new(function, &cfg);
    let levels: Vec<_> = (0..5).map(|id| uniformity.block(BlockId(id))).collect();
    assert_eq!(levels, [Level::Grid, Level::Lane, Level::Lane, Level::Lane, Level::Grid]);
}

#[test]
fn rendered() {
    let text = format!(
        "{HEADER}.visible .entry k()\n{{\n    .reg .b32 %r<2>;\n    add.u32 %r0, %r1, 1;\n    ret;\n}}\n"
    );
    let found = findings(&module(&text));
    let shown = warpwright_ptx::diag::render(&found, "k.ptx", &text, false);
    assert_eq!(
        shown,
        "\
warning[W0001]: `%r1` is read, and nothing ever writes it
 --> k.ptx:5:5
  |
4 |     .reg .b32 %r<2>;
  |     --------------- it is declared here
5 |     add.u32 %r0, %r1, 1;
  |     ^^^^^^^^^^^^^^^^^^^^
"
    );
    let position = found.iter().next().and_then(|diagnostic| diagnostic.position(&LineIndex::new(&text)));
    assert_eq!(position.map(|at| (at.line, at.column)), Some((5, 5)));
}

#[test]
fn messages_about_several_texts() {
    use warpwright_ptx::diag::{Message, MessagePlace, Severity, render_message};
    let ptx = "one\ntwo words\nthree\n";
    let source = "fn f() {\n    body\n}\n";
    let (ptx_lines, source_lines) = (LineIndex::new(ptx), LineIndex::new(source));
    let place = |name, lines, (start, end), label| {
        let span = warpwright_ptx::ir::Span::new(start, end);
        MessagePlace { name, lines, span, label }
    };
    let message = Message {
        severity: Severity::Error,
        id: "racecheck",
        title: "both write it",
        places: vec![
            place("k.ptx", &ptx_lines, (8, 13), Some("thread 1 writes")),
            place("k.rs", &source_lines, (13, 17), None),
            place("k.ptx", &ptx_lines, (0, 3), Some("thread 0 wrote")),
        ],
        notes: vec!["8 times"],
        help: Some("a barrier between them orders them"),
    };
    let shown = render_message(&message, false);
    assert_eq!(
        shown,
        "\
error[racecheck]: both write it
 --> k.ptx:2:5
  |
1 | one
  | --- thread 0 wrote
2 | two words
  |     ^^^^^ thread 1 writes
  |
 ::: k.rs:2:5
  |
2 |     body
  |     ----
  |
  = note: 8 times
  = help: a barrier between them orders them
"
    );
}
