//! Tiles: every operation in a small kernel that verifies and reads back, with the instruction that the
//! target has; every misfit reported with both tiles and the line.

use std::collections::{BTreeMap, BTreeSet};
use warpwright_dsl::*;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{Arch, Imm, Module, Origin, Space, Src, StatementKind, Type};
use warpwright_ptx::op::Op;
use warpwright_ptx::op::matrix::MmaShape;
use warpwright_ptx::{parse, print, verify};

const TARGETS: [u16; 7] = [75, 80, 86, 89, 90, 100, 120];

/// The module, which verifies without a finding and reads back as itself.
fn checked(name: &str, sm: u16, threads: u32, body: impl for<'k> Fn(K<'k>)) -> Module {
    let built = build(name, &LaunchRule::new(threads), Arch::sm(sm), body)
        .unwrap_or_else(|errors| panic!("{name} for sm_{sm}: {errors}"));
    let text = print(&built.module);
    let info = verify(&built.module).unwrap_or_else(|errors| panic!("{name} for sm_{sm}: {errors}\n{text}"));
    assert!(info.diagnostics.is_empty(), "{name} for sm_{sm}: {}", info.diagnostics);
    let read = parse(&text).unwrap_or_else(|errors| panic!("{name} for sm_{sm}: {errors}\n{text}"));
    assert_eq!(read, built.module, "{name} for sm_{sm}");
    built.module
}

fn ops(module: &Module) -> impl Iterator<Item = (&Op, Origin)> {
    let entry = module.entries().next().expect("a kernel");
    entry.statements().iter().filter_map(|statement| match &statement.kind {
        StatementKind::Instruction(instruction) => Some((&instruction.op, statement.origin)),
        _ => None,
    })
}

fn count(module: &Module) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for (op, _) in ops(module) {
        *counts.entry(op.name()).or_default() += 1;
    }
    counts
}

/// One product of a warp, `C = A·B` or `C = A·Bᵀ`, from shared tiles.
fn product<T: Factor>(k: K<'_>, [m, n, depth]: [u32; 3], transposed: bool) {
    let (a, b, c) = (k.ptr::<T>("a"), k.ptr::<T>("b"), k.ptr_mut::<f32>("c"));
    let a_tile = k.shared_tile::<T>(m, depth);
    a_tile.load(a.matrix(m, depth), 0, 0);
    let b = if transposed {
        let tile = k.shared_tile::<T>(n, depth);
        tile.load(b.matrix(n, depth), 0, 0);
        k.sync();
        tile.load_bt()
    } else {
        let tile = k.shared_tile::<T>(depth, n);
        tile.load(b.matrix(depth, n), 0, 0);
        k.sync();
        tile.load_b()
    };
    a_tile.load_a().mma(b, k.accumulators(m, n)).store(c.matrix(m, n), 0, 0);
}

#[test]
fn products_verify_for_every_shape_type_and_target() {
    for sm in TARGETS {
        for transposed in [false, true] {
            for shape in [[16, 8, 32], [32, 24, 32], [48, 64, 64], [64, 32, 80]] {
                checked("f16", sm, 32, |k| product::<F16>(k, shape, transposed));
                if sm >= 80 {
                    checked("bf16", sm, 96, |k| product::<Bf16>(k, shape, transposed));
                    checked("tf32", sm, 256, |k| product::<f32>(k, shape, transposed));
                }
            }
        }
    }
}

#[test]
fn the_target_chooses_the_instruction() {
    let shapes = |module: &Module| {
        let products = ops(module).filter_map(|(op, _)| match op {
            Op::Mma(mma) => Some((mma.shape, mma.a_type)),
            _ => None,
        });
        products.collect::<Vec<_>>()
    };
    let f16 = |sm| shapes(&checked("f16", sm, 32, |k| product::<F16>(k, [16, 8, 16], false)));
    assert_eq!(f16(75), [(MmaShape::M16N8K8, Type::F16); 2]);
    assert_eq!(f16(80), [(MmaShape::M16N8K16, Type::F16)]);
    let bf16 = checked("bf16", 90, 32, |k| product::<Bf16>(k, [16, 8, 16], false));
    assert_eq!(shapes(&bf16), [(MmaShape::M16N8K16, Type::BF16)]);
    let tf32 = checked("tf32", 90, 32, |k| product::<f32>(k, [16, 8, 16], false));
    assert_eq!(shapes(&tf32), [(MmaShape::M16N8K8, Type::TF32); 2]);
}

/// FlashAttention's inner loop for one warp and one head.
fn attention<T: Half>(k: K<'_>, head_dim: u32, keys: u32) {
    let [q, key, v] = ["q", "k", "v"].map(|name| k.ptr::<T>(name));
    let o = k.ptr_mut::<f32>("o");
    let len = k.scalar::<u32>("len");
    let q_tile = k.shared_tile::<T>(16, head_dim);
    q_tile.load(q.matrix(16, head_dim), 0, 0);
    k.sync();
    let q = q_tile.load_a();
    let pipeline = k.pipeline(2);
    let (k_tiles, v_tiles) = (pipeline.tile::<T>(keys, head_dim), pipeline.tile::<T>(keys, head_dim));
    let init = (k.accumulators(16, head_dim), k.rows(16, -1e30), k.rows(16, 0.0));
    let (out, _, sum) = pipeline.run(
        (len + (keys - 1)) / keys,
        init,
        |stage, tile| {
            k_tiles.at(stage).load(key.matrix(len, head_dim), tile * keys, 0);
            v_tiles.at(stage).load(v.matrix(len, head_dim), tile * keys, 0);
        },
        |stage, tile, (out, max, sum)| {
            let s = q.mma(k_tiles.at(stage).load_bt(), k.accumulators(16, keys)) * 0.125;
            let s = s.map_at(|_, column, x| (tile * keys + column).lt(len).select(x, -1e30));
            let new_max = max.max(s.row_max());
            let p = (s - new_max).exp2();
            let fix = (max - new_max).exp2();
            let out = p.as_a().mma(v_tiles.at(stage).load_b(), out * fix);
            (out, new_max, sum * fix + p.row_sum())
        },
    );
    (out / sum).store(o.matrix(16, head_dim), 0, 0);
}

#[test]
fn attention_reads_as_its_algorithm() {
    for sm in TARGETS {
        for head_dim in [32, 64, 80, 128] {
            checked("attention", sm, 32, |k| attention::<F16>(k, head_dim, 32));
            if sm >= 80 {
                checked("attention", sm, 32, |k| attention::<Bf16>(k, head_dim, 16));
            }
        }
    }
}

#[test]
fn elementwise_operations_verify() {
    for sm in TARGETS {
        checked("elementwise", sm, 32, |k| {
            let x = k.ptr::<f32>("x");
            let (scale, y) = (x.ld(k.tid()), k.ptr_mut::<F16>("y"));
            let z = k.accumulators(32, 16) + 1.5;
            let rows = (k.rows(32, scale) * 2.0 - scale).max(0.5).exp2().rcp().map(|x| x.abs()) + 1.0;
            let t = ((z * scale - rows) / rows + z).max(0.0).exp2().map(|x| x.rsqrt());
            let t = t.zip(z, |x, y| x.mul_add(y, 1.0)).map_at(|r, c, x| r.lt(c).select(x, 0.0));
            let t = t / (t.row_sum() / rows - t.row_max());
            t.store(y.matrix(k.ctaid(), 37).pitch(40), 0, 0);
        });
    }
}

#[test]
fn pipelines_verify_with_any_number_of_stages() {
    for sm in TARGETS {
        for stages in 1..=4 {
            for tiles in [None, Some(1), Some(9)] {
                let module = checked("pipeline", sm, 64, |k| {
                    let (x, y) = (k.ptr::<u32>("x"), k.ptr_mut::<u32>("y"));
                    let tiles = tiles.map_or_else(|| k.scalar::<u32>("tiles"), |tiles| k.u32(tiles));
                    let pipeline = k.pipeline(stages);
                    let tile = pipeline.tile::<u32>(8, 32);
                    let sum = pipeline.run(
                        tiles,
                        k.u32(0),
                        |stage, i| tile.at(stage).load(x.matrix(8, tiles * 32).aligned(16), 0, i * 32),
                        |stage, _, sum| sum + tile.at(stage).ld(k.tid() >> 3, k.tid() & 7),
                    );
                    y.st(k.tid(), sum);
                });
                let copies = count(&module).get("cp.async").copied().unwrap_or(0);
                assert_eq!(copies > 0, sm >= 80, "sm_{sm}");
            }
        }
    }
}

#[test]
fn copies_are_as_wide_as_the_matrix_allows() {
    let sizes = |columns: u32| {
        let module = checked("copy", 80, 32, |k| {
            let pipeline = k.pipeline(2);
            let tile = pipeline.tile::<F16>(16, 16);
            let x = k.ptr::<F16>("x").matrix(100, columns);
            pipeline.run(3, (), |stage, i| tile.at(stage).load(x, i * 16, 0), |_, _, ()| ());
        });
        let widths = ops(&module).filter_map(|(op, _)| match op {
            Op::CpAsync(copy) => match copy.size {
                Src::Imm(Imm::Int(size)) => Some(size),
                _ => None,
            },
            _ => None,
        });
        widths.collect::<BTreeSet<_>>()
    };
    assert_eq!(sizes(24), BTreeSet::from([16]));
    assert_eq!(sizes(20), BTreeSet::from([8]));
    assert_eq!(sizes(18), BTreeSet::from([4]));
    assert_eq!(sizes(17), BTreeSet::new());
}

#[test]
fn copies_are_as_wide_as_a_counter_allows() {
    for (first, step, width) in [(0, 8, 16), (8, 16, 16), (0, 4, 8), (2, 8, 4), (0, 2, 4)] {
        let module = checked("copy", 80, 32, |k| {
            let tile = k.shared_tile::<F16>(16, 16);
            let x = k.ptr::<F16>("x").matrix(16, 64);
            k.each(k.range(first..64).step(step), |column| {
                tile.load(x, 0, column);
                k.sync();
            });
        });
        let widths: BTreeSet<_> = ops(&module)
            .filter_map(|(op, _)| match op {
                Op::Ld(load) if load.space == Some(Space::Global) => Some(load.d.len() * 4),
                _ => None,
            })
            .collect();
        assert_eq!(widths, BTreeSet::from([width]), "{first}, {step}");
    }
}

#[test]
fn accumulators_stay_in_their_registers() {
    let module = checked("chain", 80, 32, |k| {
        let (x, c) = (k.ptr::<F16>("x").matrix(16, 16), k.ptr_mut::<f32>("c").matrix(16, 16));
        let tile = k.shared_tile::<F16>(16, 16);
        tile.load(x, 0, 0);
        k.sync();
        let sums = k.fold(k.upto(k.scalar::<u32>("n")), k.accumulators(16, 16), |_, sums| {
            tile.load_a().mma(tile.load_b(), tile.load_a().mma(tile.load_bt(), sums))
        });
        sums.store(c, 0, 0);
    });
    // Eight zeros before the loop, and none to carry what is in place.
    let moves = ops(&module).filter(|(op, _)| matches!(op, Op::Mov(mov) if mov.ty == Type::F32)).count();
    assert_eq!(moves, 8);
}

#[test]
fn tiles_know_their_rust_line() {
    let body = |k: K<'_>| attention::<F16>(k, 64, 16);
    for sm in [75, 80] {
        for (op, origin) in ops(&checked("lines", sm, 32, body)) {
            let Origin::Rust(location) = origin else { panic!("{} has no line", op.name()) };
            assert_eq!(location.file(), file!(), "{} at {location}", op.name());
        }
    }
}

/// The mistakes of a body: code, line after the first, and message.
fn mistakes(first: u32, body: impl for<'k> FnOnce(K<'k>)) -> Vec<(Code, u32, String)> {
    let errors = build("wrong", &LaunchRule::new(32), Arch::sm(80), body).expect_err("the kernel is wrong");
    let list = errors.iter().map(|diagnostic| match diagnostic.origin {
        Origin::Rust(location) => (diagnostic.code, location.line() - first, diagnostic.message.clone()),
        _ => panic!("no line: {diagnostic}"),
    });
    list.collect()
}

#[test]
fn misfits_name_both_tiles_and_the_line() {
    let first = line!();
    let found = mistakes(first, |k| {
        let tile = k.shared_tile::<F16>(32, 32);
        let (a, b) = (tile.rows(0, 16).load_a(), tile.rows(0, 16).load_b());
        let sums = a.mma(b, k.accumulators(16, 32));
        let sums = sums.exp2() * 2.0; // poison: no message
        let (b, c) = (tile.load_b(), k.accumulators(16, 32));
        a.mma(b, k.accumulators(32, 32));
        a.mma(b, k.accumulators(16, 16));
        let _ = c + k.accumulators(16, 16) + sums;
        let _ = c * k.rows(32, 1.0);
        let _ = k.rows(16, 1.0) + k.rows(32, 1.0);
        tile.rows(0, 8).load_a();
        k.accumulators(12, 8);
        k.accumulators(256, 256);
        k.rows(15, 0.0);
    });
    let expected = [
        (
            4,
            "the A tile of 16x32 f16 does not go with the B tile of 16x32 f16: the columns of the first are the rows of the second",
        ),
        (
            7,
            "the A tile of 16x32 f16 does not go with the accumulator tile of 32x32 f32: they have the same rows",
        ),
        (
            8,
            "the B tile of 32x32 f16 does not go with the accumulator tile of 16x16 f32: they have the same columns",
        ),
        (9, "the accumulator tile of 16x32 f32 does not go with the accumulator tile of 16x16 f32"),
        (10, "the accumulator tile of 16x32 f32 does not go with values for 32 rows"),
        (11, "values for 16 rows do not go with values for 32"),
        (12, "the A tile of 8x32 f16 cannot be: its sides are multiples of 16 and 16"),
        (13, "the accumulator tile of 12x8 f32 cannot be: its sides are multiples of 8 and 8"),
        (14, "the accumulator tile of 256x256 f32 takes 2048 registers of each lane; there are 255"),
        (15, "values for 15 rows; tiles have multiples of 8 rows, to 1024"),
    ];
    let expected = expected.map(|(line, message)| (Code::VectorShape, line, message.to_string()));
    assert_eq!(found, expected);
}

#[test]
fn state_keeps_its_shape() {
    let first = line!();
    let found = mistakes(first, |k| {
        let n = k.scalar::<u32>("n");
        k.fold(k.upto(n), k.accumulators(16, 16), |_, _| k.accumulators(32, 8));
        k.fold(k.upto(n), (k.u32(0), k.rows(16, 0.0)), |_, (i, _)| (i, k.rows(32, 0.0)));
        k.if_else(n.eq(1), || k.accumulators(16, 16), || k.accumulators(16, 24));
    });
    let found: Vec<_> = found.into_iter().map(|(code, line, _)| (code, line)).collect();
    assert_eq!(found, [3, 4, 5].map(|line| (Code::VectorShape, line)));
}

#[test]
fn a_mistake_in_a_loop_is_a_mistake() {
    let first = line!();
    let found = mistakes(first, |k| {
        let sums = k.fold(k.upto(k.scalar::<u32>("n")), k.accumulators(16, 16), |_, sums| {
            sums + k.accumulators(32, 32)
        });
        k.when(k.lane().eq(0), || sums.store(k.ptr_mut::<f32>("c").matrix(16, 16), 0, 0));
    });
    let found: Vec<_> = found.into_iter().map(|(code, line, _)| (code, line)).collect();
    assert_eq!(found, [(Code::VectorShape, 3)]);
}

#[test]
fn shared_tiles_and_pipelines_are_checked() {
    let first = line!();
    let found = mistakes(first, |k| {
        k.shared_tile::<F16>(16, 12); // rows of 24 bytes
        let tile = k.shared_tile::<F16>(16, 64);
        tile.rows(8, 16);
        tile.columns(60, 8);
        tile.columns(4, 32).load_a(); // from byte 8 on
        tile.ld_vec::<4>(0, 6);
        k.pipeline(0);
        k.ptr::<F16>("x").matrix(4, 4).aligned(3);
        tile.st(0, 0, 1.0);
    });
    let found: Vec<_> = found.into_iter().map(|(code, line, _)| (code, line)).collect();
    let expected = [
        (Code::SharedMemory, 2),
        (Code::SharedMemory, 4),
        (Code::SharedMemory, 5),
        (Code::Alignment, 6),
        (Code::Alignment, 7),
        (Code::ImmediateRange, 8),
        (Code::Alignment, 9),
    ];
    assert_eq!(found, expected);
}

#[test]
fn products_that_the_target_lacks_are_refused() {
    let launch = LaunchRule::new(32);
    let errors = build("bf16", &launch, Arch::sm(75), |k| product::<Bf16>(k, [16, 8, 16], false));
    let codes: Vec<_> = errors.expect_err("no such product").iter().map(|error| error.code).collect();
    assert_eq!(codes, [Code::NeedsTarget]);
}
