//! The DSL: every feature in a small kernel that verifies, and whose text reads back as the module it
//! was printed from; every mistake reported with its line.

use std::ops::Rem;
use warpwright_dsl::*;
use warpwright_ptx::diag::{Code, Diagnostics};
use warpwright_ptx::ir::{Arch, Function, Module, Origin, Scope, StatementKind};
use warpwright_ptx::op::Op;
use warpwright_ptx::{parse, print, verify};

type Body = for<'k> fn(K<'k>);

struct Case {
    name: &'static str,
    sm: u16,
    launch: LaunchRule,
    body: Body,
}

fn case(name: &'static str, body: Body) -> Case {
    Case { name, sm: 75, launch: LaunchRule::new(128), body }
}

/// A kernel that stores one value per thread.
macro_rules! value {
    ($name:literal, $ty:ty, |$k:ident, $tid:ident, $x:ident: $xty:ty| $result:expr) => {
        case($name, |$k| {
            let $tid = $k.tid();
            let $x = $k.ptr::<$xty>("x");
            let _ = ($x, $tid);
            let result: Reg<'_, $ty> = $result;
            $k.ptr_mut::<$ty>("y").st($tid, result);
        })
    };
}

fn cases() -> Vec<Case> {
    let mut list = vec![
        value!("float_arithmetic", f32, |k, t, x: f32| {
            let (a, b) = (x.ld(t), x.ld(t + 1));
            -((a + b) * 2.0 - a / b + 1.0 / a).abs().min(b).max(0.5)
        }),
        value!("float_functions", f32, |k, t, x: f32| {
            let a = x.ld(t);
            let sum = a.sqrt() + a.rsqrt() + a.rcp() + a.exp2() + a.log2() + a.sin() + a.cos() + a.tanh();
            sum + a.exp()
                + a.ln()
                + a.tanh_approx()
                + a.rcp_ftz()
                + a.rcp_approx()
                + a.sqrt_approx()
                + a.div_approx(3.0)
                + a.floor()
                + a.ceil()
                + a.round()
                + a.trunc()
        }),
        value!("activations", f32, |k, t, x: f32| {
            let a = x.ld(t);
            let rounded = a.sigmoid() + a.silu() + a.gelu() + a.gelu_tanh();
            rounded + a.sigmoid_approx() + a.silu_approx() + a.gelu_approx() + a.gelu_tanh_approx()
        }),
        value!("double", f64, |k, t, x: f64| {
            let a = x.ld(t);
            (a * 3.0 - a / 4.0 + a / 3.0).sqrt().mul_add(a, 1.5).rcp()
        }),
        value!("half", F16, |k, t, x: F16| {
            let a = x.ld(t);
            (a + 1.0) * a - (2.0 * a).mul_add(a, 0.25).max(a).abs()
        }),
        value!("half_to_float", f32, |k, t, x: F16| x.ld(t).f32() * 2.0),
        value!("float_to_half", F16, |k, t, x: f32| x.ld(t).to()),
        value!("bfloat_to_float", f32, |k, t, x: Bf16| x.ld(t).f32()),
        value!("float_to_bfloat", Bf16, |k, t, x: f32| x.ld(t).to()),
        value!("integers", u32, |k, t, x: u32| {
            let a = x.ld(t);
            ((a * 3 + 7 - t) / 5 % 11) ^ (a & 0xff | t) ^ (a << 3) ^ (a >> t) ^ !a
        }),
        value!("signed", i32, |k, t, x: i32| {
            let a = x.ld(t);
            (-a).abs().max(-3).min(9) + (a >> 2) + a.mul_hi(a) + a.mad(3, a)
        }),
        value!("long", u64, |k, t, x: u64| {
            let a = x.ld(t);
            a * 3 + (a >> 4) + u64::MAX.into_wide(k) + t.mul_wide(t) + a.popc().to::<u64>()
        }),
        value!("bits", u32, |k, t, x: u32| {
            let a = x.ld(t);
            let [b0, b1, b2, b3] = a.bytes();
            a.popc()
                + a.clz()
                + a.brev()
                + a.bfe(3, 5)
                + a.bfi(t, 4, 8)
                + a.lop3(t, 5, 0x96)
                + a.prmt(t, 0x5140)
                + a.shf_left(t, 7)
                + a.shf_right(t, a)
                + b0
                + b1
                + b2
                + b3
        }),
        value!("dot_products", i32, |k, t, x: i32| {
            let (a, u) = (x.ld(t), t);
            a.dp4a(u, a.dp4a(a, 0)) + u.dp4a(a, k.i32(4)) + a.dp2a(a, true, k.i32(1)) + a.dp2a(u, false, a)
        }),
        value!("comparisons", u32, |k, t, x: f32| {
            let a = x.ld(t);
            let p = a.lt(1.0) & a.le(2.0) | a.gt(3.0) ^ a.ge(4.0) & !a.eq(5.0) & a.ne(6.0);
            let q = t.lt(3) | a.is_finite() | k.pred(true);
            (p & q).select(t, 7) + q.u32()
        }),
        value!("bytes", u8, |k, t, x: u8| (x.ld(t).to::<u32>() * 2).to()),
        value!("signed_bytes", i32, |k, t, x: i8| x.ld(t).to::<i32>()),
        value!("shorts", u16, |k, t, x: u16| x.ld(t) * 3 + 1),
        value!("conversions", f32, |k, t, x: i32| {
            let a = x.ld(t);
            a.f32()
                + a.to::<u64>().f32()
                + a.to::<f64>().f32()
                + a.to::<i16>().f32()
                + a.to::<F16>().f32()
                + a.f32().to::<i64>().f32()
                + a.f32().round_i32().f32()
                + a.f32().to::<u32>().f32()
                + a.f32().bits::<u32>().f32()
        }),
        value!("vectors", f32, |k, t, x: f32| {
            let [a, b, c, d] = x.ld_vec::<4>(t * 4);
            let [e, f] = x.ld_vec::<2>(t * 2);
            k.ptr_mut::<f32>("z").st_vec(t * 4, [d, c, b, a]);
            e + f
        }),
        value!("half_vectors", F16, |k, t, x: F16| {
            let v = x.ld_vec::<8>(t * 8);
            k.ptr_mut::<F16>("z").st_vec(t * 8, v);
            let w = x.ld_vec_if::<4>(t.lt(5), t * 4, 0.0);
            v[7] + w[3]
        }),
        value!("packed_halves", F16x2, |k, t, x: F16x2| {
            let a = x.ld(t);
            let [l, h] = a.unpack();
            let [p, q] = a.f32x2();
            a.mul_add(a, 1.0) + k.pair(h, l) + p.pack_f16(q)
        }),
        value!("predicated", f32, |k, t, x: f32| {
            let p = t.lt(100);
            let y = k.ptr_mut::<f32>("z");
            y.st_if(p, t, 1.0);
            y.st_vec_if(p, t * 2, [k.f32(1.0), k.f32(2.0)]);
            x.ld_if(p, t, -1.0)
        }),
        value!("chosen_pointers", f32, |k, t, x: f32| {
            let z = k.ptr::<f32>("z").nc();
            let one = t.lt(16).select_ptr(x, z);
            // Moved by different constants.
            one.ld(t) + t.lt(8).select_ptr(z.at(3), x.at(100)).at(t * 2).ld(1)
        }),
        value!("cached", f32, |k, t, x: f32| {
            let z = k.ptr_mut::<f32>("z");
            z.streaming().st(t, 1.0);
            z.cg().st(t, 2.0);
            z.volatile().st(t, 3.0);
            z.release(Scope::Gpu).st(t, 4.0);
            z.relaxed(Scope::Sys).st(t, 5.0);
            x.nc().ld(t)
                + x.cg().ld(t)
                + x.streaming().ld(t)
                + z.volatile().ld(t)
                + z.acquire(Scope::Gpu).ld(t)
                + x.evict_first().ld(t)
                + x.nc().evict_last().ld(t)
                + x.nc().no_allocate().ld(t)
        }),
        value!("atomics", u32, |k, t, x: u32| {
            let c = k.ptr_mut::<u32>("c");
            let f = k.ptr_mut::<f32>("f");
            f.reduce_add(t, 1.5);
            c.reduce_max(0, t);
            c.reduce_min(1, t);
            let s = k.shared::<u32>(4);
            s.atomic_add(0, 1);
            let l = k.ptr_mut::<i64>("l");
            l.reduce_add(0, -3);
            c.acq_rel(Scope::Gpu).atomic_add(2, 1)
                + c.atomic_min(3, t)
                + c.atomic_max(4, 5)
                + c.atomic_and(5, t)
                + c.atomic_or(6, t)
                + c.atomic_xor(7, t)
                + c.atomic_exch(8, t)
                + c.atomic_cas(9, 0, t)
                + x.ld(t)
        }),
        value!("warp", f32, |k, t, x: f32| {
            let a = x.ld(t);
            let p = a.lt(0.0);
            let votes = k.ballot(p) + k.any(p).u32() + k.all(p).u32() + k.uniform(p).u32() + k.active_mask();
            k.warp_sum(a)
                + k.warp_max(a)
                + k.warp_min(a)
                + k.shuffle_xor(a, 3)
                + k.shuffle_up(a, 1)
                + k.shuffle_down(a, t)
                + k.shuffle_idx(a, 5)
                + k.broadcast(a, 0)
                + votes.f32()
                + k.match_any(t).f32()
                + k.elect().u32().f32()
        }),
        value!("warp_integers", u32, |k, t, x: u32| {
            let a = x.ld(t);
            k.warp_sum(a) + k.warp_max(a) + k.warp_min(t)
        }),
        value!("block", f32, |k, t, x: f32| {
            let a = x.ld(t);
            k.block_sum(a) + k.block_max(a) + k.block_min(a) + k.block_any(a.lt(0.0)).u32().f32()
        }),
        value!("specials", u32, |k, t, x: u32| {
            let ids = k.ctaid()
                + k.ctaid_y()
                + k.ctaid_z()
                + k.nctaid()
                + k.tid_y()
                + k.tid_z()
                + k.lane()
                + k.warp()
                + k.linear_tid()
                + k.global_tid()
                + k.ntid()
                + k.ntid_y();
            let masks =
                k.lane_mask_lt() ^ k.lane_mask_eq() ^ k.lane_mask_le() ^ k.lane_mask_gt() ^ k.lane_mask_ge();
            ids + masks
                + k.smid()
                + k.nsmid()
                + k.warp_slot()
                + k.env(31)
                + k.perf_counter(7)
                + k.perf_counter64(0).to::<u32>()
                + k.clock()
                + k.clock64().to::<u32>()
                + k.global_timer().to::<u32>()
                + k.total_smem_size()
                + k.dynamic_smem_size()
        }),
        value!("swap", u32, |k, t, x: u32| {
            let (a, b) = k.fold(k.range(0..5), (t, x.ld(t)), |_, (a, b)| (b, a));
            a - b
        }),
        value!("rotate", f32, |k, t, x: f32| {
            let v = x.ld_vec::<4>(t * 4);
            let [a, b, c, d] = k.fold(k.upto(t), v, |_, [a, b, c, d]| [b, c, a, d + a]);
            a + b * c + d
        }),
        value!("fibonacci", u32, |k, t, x: u32| k
            .fold(k.upto(t), (k.u32(0), k.u32(1)), |_, (a, b)| (b, a + b))
            .0),
        value!("nested_folds", f32, |k, t, x: f32| {
            let n = k.scalar::<u32>("n");
            k.fold(k.upto(n), k.f32(0.0), |i, sum| {
                k.fold(k.upto(16), sum, |j, sum| x.ld(i * 16 + j).mul_add(x.ld(j * n + i), sum))
            })
        }),
        value!("unrolled", f32, |k, t, x: f32| {
            let n = k.scalar::<u32>("n");
            k.fold(k.strided(n).unroll(4), k.f32(0.0), |i, sum| sum + x.ld(i))
        }),
        value!("unrolled_known", f32, |k, t, x: f32| {
            let sum = k.fold(k.range(3..100).step(7).unroll(4), k.f32(0.0), |i, sum| sum + x.ld(i));
            let sum = k.fold(k.range(0..3).unroll(4), sum, |i, sum| sum + x.ld(i));
            let sum = k.fold(k.range(0..0), sum, |i, sum| sum + x.ld(i));
            let sum = k.fold(k.strided(100).unroll(2), sum, |i, sum| sum + x.ld(i));
            let sum = k.fold(k.strided(1000).unroll(2), sum, |i, sum| sum + x.ld(i));
            k.fold(k.warp_strided(77).no_unroll(), sum, |i, sum| sum + x.ld(i))
        }),
        value!("grid_strided", f32, |k, t, x: f32| {
            let n = k.scalar::<u32>("n");
            k.fold(k.grid_strided(n), k.f32(0.0), |i, sum| sum + x.ld(i))
        }),
        value!("while", u32, |k, t, x: u32| {
            let v = k.var(x.ld(t));
            k.while_(
                || v.get().ne(1),
                || {
                    let x = v.get();
                    v.set((x & 1).eq(0).select(x >> 1, x * 3 + 1));
                },
            );
            k.fold_while((v.get(), t), |(a, _)| a.lt(100), |(a, b)| (a + b, b + 1)).0
        }),
        value!("branches", f32, |k, t, x: f32| {
            let a = x.ld(t);
            let (b, c) = k.if_else(a.lt(0.0), || (a * 2.0, t + 1), || (a, t));
            k.when(c.gt(3), || k.ptr_mut::<f32>("z").st(c, b));
            b
        }),
        value!("switch", u32, |k, t, x: u32| {
            let v = k.var(0u32);
            k.switch(x.ld(t), 4, |i| v.set(t * i + 1));
            v.get()
        }),
        case("roles", |k| {
            let y = k.ptr_mut::<u32>("y");
            k.roles(&[1, 3], |role, warp| y.st(k.tid(), warp + role as u32));
        }),
        case("barriers", |k| {
            let s = k.shared::<u32>(128);
            s.st(k.tid(), k.tid());
            k.sync();
            k.sync_warp();
            k.fence(Scope::Gpu);
            k.fence_sc(Scope::Sys);
            k.fence(Scope::Cta);
            k.sync_at(1, 128);
            k.when(k.warp().eq(0), || k.arrive(2, 64));
            k.when(k.warp().eq(1), || k.sync_at(2, 64));
            k.ptr_mut::<u32>("y").st(k.tid(), s.ld(127 - k.tid()));
        }),
        case("large_shared", |k| {
            let (a, b) = (k.shared::<f32>(10_000), k.shared::<f32>(4_000));
            let t = k.tid();
            a.st(t + 128, 1.0);
            b.st(t, 2.0);
            b.st(0, 3.0);
            k.sync();
            k.ptr_mut::<f32>("y").st(t, a.ld(t + 128) + b.ld(t));
        }),
        case("local_and_table", |k| {
            let (l, table) = (k.local::<u32>(8), k.table::<f32>(&[1.0, 2.0, 3.0, 4.0]));
            let t = k.tid();
            l.st(t & 7, t);
            l.st(0, 5);
            k.ptr_mut::<f32>("y").st(t, table.ld(t & 3) + l.ld(t % 8).f32() + table.ld(1));
        }),
        case("matrix_strides", |k| {
            let (x, y) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"));
            let (n, pitch) = (k.scalar::<u32>("n"), k.scalar::<u32>("pitch"));
            k.each(k.strided(n), |row| {
                let sum = k.fold(k.upto(n), k.f32(0.0), |column, sum| {
                    sum + x.ld(row * pitch + column)
                        + x.ld((row + 1) * pitch + column - 1)
                        + x.ld(column * pitch)
                });
                y.st(n - row, sum);
                y.st(row * 2 + k.ctaid() * pitch, sum);
            });
        }),
        case("wide_indices", |k| {
            let (x, y) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"));
            let (big, neg) = (k.scalar::<u64>("big"), k.scalar::<i32>("neg"));
            let t = k.tid();
            y.st(big + t.to::<u64>(), x.ld(neg + t.to::<i32>()));
            y.st(big * 3, x.ld(neg * neg));
            y.st(t.to::<u64>() * big, 1.0);
        }),
        case("escape_hatch", |k| {
            let y = k.ptr_mut::<u32>("y");
            let d = k.fresh::<u32>();
            k.op(warpwright_ptx::op::logic::Cnot {
                ty: warpwright_ptx::ir::Type::B32,
                d: warpwright_ptx::ir::Dst(d.ir()),
                a: k.tid().ir().into(),
            });
            y.st(k.tid(), d);
            k.exit_if(d.eq(0));
            k.when(d.eq(5), || k.trap());
        }),
        case("pointers_from_memory", |k| {
            let pages = k.ptr::<u64>("pages");
            let y = k.ptr_mut::<f32>("y");
            k.each(k.upto(k.scalar::<u32>("n")), |i| {
                let page = k.global_at::<f32>(pages.ld(i));
                let row = page.at(k.tid() * 4);
                y.st(i, row.ld(0) + row.ld(1) + page.ld(i));
            });
        }),
        case("breaks_and_chains", |k| {
            let (x, y, t) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"), k.tid());
            let (i, found) = k.loop_(t, |out, i| {
                let value = x.ld(i);
                out.break_if(value.lt(0.0), (i, value));
                k.when(i.gt(1000), || out.break_((i, k.f32(0.0))));
                i + 128
            });
            let first = k.labelled(|out| {
                k.each(k.range(0..9).unroll(3), |j| out.break_if(x.ld(i + j).gt(found), j));
                k.u32(9)
            });
            let sign = k.if_(found.gt(1.0), || k.f32(1.0)).else_if(|| found.lt(-1.0), || k.f32(-1.0));
            y.st_if(Some(first.ne(9)), i, sign.else_(|| found));
            y.st_if(None, first, 1.0);
        }),
        case("operators_over_states", |k| {
            let (y, t) = (k.ptr_mut::<f64>("y"), k.tid());
            let state = (t.to::<f64>(), [t.lt(5), t.gt(3)], t.to::<i16>());
            let keep = |a, _| a;
            let (a, b) = k.block_scan_by(k.block_reduce_by(state, keep), keep);
            let (value, [c, d], e) = k.block_broadcast(k.warp_scan_by(k.warp_reduce_by(a, keep), keep), 7);
            y.st_if(c & d & b.1[0], e.to::<i32>(), value);
        }),
        case("empty", |_| {}),
    ];
    let at = |sm: u16, name, body| Case { sm, ..case(name, body) };
    list.push(at(80, "bfloat", |k| {
        let (x, t) = (k.ptr::<Bf16>("x"), k.tid());
        let a = x.ld(t);
        k.ptr_mut::<Bf16>("y").st(t, (a + 1.0) * a - a.mul_add(a, 0.5).max(a));
        k.ptr_mut::<Bf16x2>("z").st(t, a.f32().pack_bf16(a.f32()));
    }));
    list.push(at(80, "async_copy", |k| {
        let (x, s, t) = (k.ptr::<f32>("x"), k.shared::<f32>(1024), k.tid());
        k.cp_async(s.at(t * 4), x.at(t * 4), 16);
        k.cp_async(s.at(512 + t), x.at(t), 4);
        k.cp_async_if(t.lt(64), s.at(640 + t), x.at(t), 4);
        k.cp_async_commit();
        k.cp_async_wait(0);
        k.cp_async_wait_all();
        k.sync();
        k.ptr_mut::<f32>("y").st(t, s.ld(t));
    }));
    list.push(at(90, "cluster", |k| {
        let rank = k.cluster_rank() + k.cluster_size() + k.clusterid() + k.nclusterid() + k.cluster_ctaid();
        k.ptr_mut::<u32>("y").st(k.tid(), rank);
    }));
    let launch = LaunchRule {
        block: Block::AtMost([1024, 1, 1]),
        resident_blocks: Some(1),
        ..LaunchRule::new(0).dynamic_shared(4096)
    };
    list.push(Case {
        launch,
        ..case("dynamic", |k| {
            let s = k.dyn_shared::<f32>();
            let more = k.shared::<f32>(64);
            s.st(k.tid(), 1.0);
            more.st(k.tid() & 63, 2.0);
            k.sync();
            let i = k.ntid() - 1 - k.tid();
            k.ptr_mut::<f32>("y").st(k.global_tid(), s.ld(i) + more.ld(i & 63));
        })
    });
    list.push(Case {
        launch: LaunchRule::new(96),
        ..case("odd_warps", |k| {
            let y = k.ptr_mut::<f32>("y");
            y.st(k.tid(), k.block_max(k.tid().f32()) + k.block_sum(k.lane().f32()));
        })
    });
    list.push(Case {
        launch: LaunchRule::new(0).block_3d([8, 4, 2]),
        ..case("three_dimensions", |k| {
            k.ptr_mut::<u32>("y").st(k.linear_tid(), k.block_sum(k.tid_z()));
        })
    });
    list
}

/// A `u64` constant, for a literal that has no register beside it.
trait IntoWide {
    fn into_wide<'k>(self, k: K<'k>) -> Reg<'k, u64>;
}

impl IntoWide for u64 {
    fn into_wide<'k>(self, k: K<'k>) -> Reg<'k, u64> {
        k.u64(self)
    }
}

const TARGETS: [&str; 8] = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"];

fn targets() -> impl Iterator<Item = Arch> {
    TARGETS.iter().map(|name| name.parse().expect("a known target"))
}

/// Origins do not count, so that equality is of what the text says.
fn entry(module: &Module) -> &Function {
    module.entries().next().expect("a kernel")
}

#[test]
fn every_feature_verifies_and_reads_back() {
    // A folder to write the texts to, for `ptxas`.
    let folder = std::env::var_os("WARPWRIGHT_DUMP").map(std::path::PathBuf::from);
    for case in cases() {
        for target in targets().filter(|target| target.sm >= case.sm) {
            let name = case.name;
            let built = build(name, &case.launch, target, case.body)
                .unwrap_or_else(|errors| panic!("{name} for {target}: {errors}"));
            let text = print(&built.module);
            if let Some(folder) = &folder {
                std::fs::write(folder.join(format!("{name}.{target}.ptx")), &text).expect("a folder");
            }
            if let Err(errors) = verify(&built.module) {
                panic!("{name} for {target}: {errors}\n{text}");
            }
            match parse(&text) {
                Ok(read) => assert_eq!(read, built.module, "{name} for {target}"),
                Err(errors) => panic!("{name} for {target}: {errors}\n{text}"),
            }
        }
    }
}

#[test]
fn instructions_know_their_rust_line() {
    let line = line!() + 2;
    let built = build("lines", &LaunchRule::new(32), Arch::sm(80), |k| {
        k.ptr_mut::<f32>("y").st(k.tid(), 1.0);
    })
    .expect("a correct kernel");
    for statement in entry(&built.module).statements() {
        if let StatementKind::Instruction(instruction) = &statement.kind
            && !matches!(instruction.op, Op::Ret(_))
        {
            let Origin::Rust(location) = statement.origin else { panic!("no line") };
            assert_eq!((location.file(), location.line()), (file!(), line), "{}", instruction.op.name());
        }
    }
}

fn mistakes(launch: LaunchRule, body: impl for<'k> FnOnce(K<'k>)) -> Vec<(Code, u32)> {
    let errors: Diagnostics = build("wrong", &launch, Arch::sm(80), body).expect_err("the kernel is wrong");
    errors
        .iter()
        .map(|diagnostic| match diagnostic.origin {
            Origin::Rust(location) => (diagnostic.code, location.line()),
            _ => panic!("no line: {diagnostic}"),
        })
        .collect()
}

#[test]
fn mistakes_are_collected_with_their_lines() {
    let first = line!();
    let found = mistakes(LaunchRule::new(48), |k| {
        let (x, y) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"));
        let x2 = k.ptr::<f32>("x"); // twice
        let sum = k.block_sum(x.ld(k.tid())); // 48 threads
        y.st(0, sum + sum * 2.0); // poison: no message
        x.st(0, 1.0); // read only
        let [a, _, _] = x.ld_vec::<3>(0); // no vector of three
        y.st(1, a);
        let [b, _] = x.ld_vec::<2>(k.tid() * 2 + 1); // not aligned
        y.st(2, b);
        k.each(k.range(0..8).step(0), |i| y.st(i, 0.0)); // never ends
        k.each(k.range(0..8).unroll(0), |i| y.st(i, x2.ld(i))); // no copies
        k.sync_at(16, 64); // no such barrier
        y.st(3, k.u32(1).bits::<f64>().to::<f32>()); // sizes differ
        k.shared::<f32>(0); // empty
        k.refuse("not today");
        k.tid().lt(4).select_ptr(x, x.at(k.tid())); // not parameters
        let never: Reg<'_, f32> = k.loop_((), |_, ()| ()); // no break
        y.st(4, never); // poison
    });
    let expected = [
        (Code::Redeclared, 3),
        (Code::ModifierCombination, 4),
        (Code::Parameter, 6),
        (Code::VectorShape, 7),
        (Code::Alignment, 9),
        (Code::ImmediateRange, 11),
        (Code::ImmediateRange, 12),
        (Code::ImmediateRange, 13),
        (Code::OperandType, 14),
        (Code::SharedMemory, 15),
        (Code::Parameter, 16),
        (Code::Parameter, 17),
        (Code::Parameter, 18),
    ];
    assert_eq!(found, expected.map(|(code, line)| (code, first + line)));
}

#[test]
fn integers_are_not_divided_by_zero_nor_shifted_by_their_width() {
    let first = line!();
    let found = mistakes(LaunchRule::new(32), |k| {
        let (i, y) = (k.tid(), k.ptr_mut::<u32>("y"));
        y.st(0, i / 0);
        y.st(1, i % 0 + i.to::<i64>().rem(0).to::<u32>());
        y.st(2, (i.to::<i32>() / 0).to::<u32>());
        y.st(3, (i << 32) + (i >> 31) + (i << 31)); // the first of them
        y.st(4, (i.to::<u64>() >> 64).to::<u32>() + (i.to::<u64>() >> 63).to::<u32>());
        y.st(5, (i.to::<u16>() << 16).to::<u32>());
        y.st(6, k.u32(7) / k.u32(0)); // both known
        y.st(7, i >> (k.u32(30) + 2)); // known after all
        y.st(8, (i.to::<f32>() / 0.0).to::<u32>()); // infinite, and no mistake
    });
    let lines = [3, 4, 4, 5, 6, 7, 8, 9, 10];
    assert_eq!(found, lines.map(|line| (Code::ImmediateRange, first + line)));
}

#[test]
fn a_value_does_not_leave_its_closure() {
    let first = line!();
    let found = mistakes(LaunchRule::new(32), |k| {
        let y = k.ptr_mut::<u32>("y");
        let leaked = std::cell::Cell::new(k.u32(0));
        k.when(k.tid().lt(3), || leaked.set(k.tid() * 3));
        y.st(0, leaked.get() + 1);
    });
    assert_eq!(found, [(Code::Unassigned, first + 5)]);
}

#[test]
fn a_pointer_does_not_leave_the_loop_that_moves_it() {
    let first = line!();
    let found = mistakes(LaunchRule::new(32), |k| {
        let y = k.ptr_mut::<u32>("y");
        let leaked = std::cell::Cell::new(y);
        k.each(k.range(0..8), |i| leaked.set(y.at(i)));
        leaked.get().st(0, 1);
    });
    assert_eq!(found, [(Code::Unassigned, first + 5)]);
}

#[test]
fn too_much_shared_memory_is_refused() {
    let first = line!();
    let found = mistakes(LaunchRule::new(32).dynamic_shared(100), |k| {
        let small = k.shared::<f32>(10_000);
        let large = k.shared::<f32>(40_000); // more than 163 KiB from here on
        let other = k.shared::<f32>(10);
        for array in [small, large, other] {
            array.st(0, 1.0);
        }
    });
    assert_eq!(found, [(Code::SharedMemory, first + 3)]);
    let found = mistakes(LaunchRule::new(32).dynamic_shared(200_000), |k| {
        k.shared::<f32>(10).st(0, 1.0);
        k.dyn_shared::<f32>().st(0, 1.0); // as much as the launch rule says
    });
    assert_eq!(found, [(Code::SharedMemory, first + 12)]);
}

#[test]
fn large_static_arrays_become_dynamic() {
    let built = build("large", &LaunchRule::new(32).dynamic_shared(100), Arch::sm(80), |k| {
        k.shared::<u8>(40_000).st(0, k.u32(1).to::<u8>());
        k.shared::<u8>(20_000).st(0, k.u32(1).to::<u8>());
    })
    .expect("it fits");
    assert_eq!(built.launch.static_shared, 0);
    assert_eq!(built.launch.dynamic_shared, 112 + 40_000 + 20_000);
}

#[test]
fn halves_round_to_nearest_even() {
    for (value, bits) in [
        (0.0, 0),
        (-0.0, 0x8000),
        (1.0, 0x3c00),
        (65504.0, 0x7bff),
        (65519.9, 0x7bff),
        (65520.0, 0x7c00),
        (f32::INFINITY, 0x7c00),
        (6.0e-8, 1),
        (2.980_232_2e-8, 0),
        (2.980_233e-8, 1),
        (6.103_515_6e-5, 0x0400),
        (6.1e-5, 0x03ff),
        (1.000_488_3, 0x3c00),
        (1.001_464_8, 0x3c02),
    ] {
        assert_eq!(f16_bits(value), bits, "{value}");
    }
    for (value, bits) in [(1.0, 0x3f80), (1.003_906_3, 0x3f80), (1.011_718_8, 0x3f82), (f32::MAX, 0x7f80)] {
        assert_eq!(bf16_bits(value), bits, "{value}");
    }
}
