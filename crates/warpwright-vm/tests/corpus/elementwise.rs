//! One thread, one element: sums, activations, copies of every type, casts.

use crate::case::{Case, Expect, File, Source, exactly, launch, rule, source, within};
use crate::data::{Format, Number, Rng, bytes};
use crate::math::erf;
use Format::{Bf16, E5m2, F16, F32, F64};

pub(crate) const SOURCES: &[Source] = &[
    source("vector_add.nvcc", vector_add),
    source("vector_add.triton", vector_add_triton),
    source("vecadd_cl.clang", vecadd_cl),
    source("saxpy.nvcc", saxpy),
    source("saxpy.clang", saxpy_clang),
    source("saxpy.numba", saxpy_numba),
    source("strided_copy.nvcc", strided_copy),
    source("vector_types.nvcc", vector_types),
    source("wide_vectors.nvcc", wide_vectors),
    source("thrust_transform.nvcc", thrust_transform),
    source("launch_bounds.nvcc", launch_bounds),
    source("half.clang", half),
    source("gelu.triton", gelu),
    source("swiglu.triton", swiglu),
    source("math_mix.triton", math_mix),
    source("int_mix.triton", int_mix),
    source("casts.triton", casts),
    source("adam.triton", adam),
    source("inline_asm.triton", inline_asm),
    source("unpack_pairs.triton", unpack_pairs),
    source("cache_ops.nvcc", cache_ops),
];

fn vector_add(_: &File) -> Vec<Case> {
    let n = 1000;
    let mut rng = Rng::new(1);
    let (a, b) = (rng.f32s(n, -1e3, 1e3), rng.f32s(n, -1e3, 1e3));
    let sum: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    vec![launch("vector_add", 4, 256).input(&a).input(&b).output(exactly(&sum)).scalar(n as i32)]
}

fn vector_add_triton(file: &File) -> Vec<Case> {
    let n = 1504usize;
    let mut rng = Rng::new(2);
    let format = if file.variant == "masked" { F16 } else { F32 };
    let mut draw = || (0..n).map(|_| format.round(rng.f64(-100.0, 100.0))).collect::<Vec<f64>>();
    let (a, b) = (draw(), draw());
    let sum: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    let case = launch("vector_add", 2, 128).floats(format, &a).floats(format, &b);
    vec![case.output(Expect::Bytes(format.store(&sum))).scalar(n as i32).triton()]
}

fn vecadd_cl(_: &File) -> Vec<Case> {
    let n = 100;
    let mut rng = Rng::new(3);
    let (a, b) = (rng.f32s(n, -1.0, 1.0), rng.f32s(n, -1.0, 1.0));
    let sum: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    let add = launch("vecadd", 4, 32).input(&a).input(&b).output(exactly(&sum)).scalar(n as i32);

    // Small integers: every step is exact in f32. The kernel's own weights serve as its factors.
    let input: Vec<[f32; 4]> = (0..64).map(|_| std::array::from_fn(|_| rng.int(-20, 20) as f32)).collect();
    let weights = [1f32, 4.0, 6.0, 4.0, 1.0];
    let tmp: Vec<f32> = input.iter().map(|v| v[0] + v[1] * 2.0 - v[2]).collect();
    let smoothed: Vec<[f32; 4]> = (0..64)
        .map(|t| {
            let sum: f32 = (0..5).map(|j| weights[j] * weights[j] * tmp[(t + j) & 63]).sum();
            let v = input[t];
            [sum, v[3], v[2], v[1]].map(|x| x * 7.0)
        })
        .collect();
    // Dynamic shared memory begins at 0, as the module has no other.
    let smooth = launch("smooth", 1, 64).shared(256).input(&input).output(exactly(&smoothed)).scalar(0u64);
    vec![add, smooth.symbol("weights").raw(&[3i32, 4], &[])]
}

fn axpy<T: Number>(name: &str, n: usize, alpha: T, x: Vec<T>, y: Vec<T>, of: impl Fn(T, T, T) -> T) -> Case {
    let want: Vec<T> = x.iter().zip(&y).map(|(&x, &y)| of(alpha, x, y)).collect();
    let entry = format!("_Z4axpyI{name}EvT_PKS0_PS0_m");
    launch(&entry, 3, 64).scalar(alpha).input(&x).inout(&y, exactly(&want)).scalar(n as u64)
}

fn saxpy(_: &File) -> Vec<Case> {
    let n = 500;
    let mut rng = Rng::new(4);
    let ints = |rng: &mut Rng| -> Vec<i64> { (0..n).map(|_| rng.u64() as i64).collect() };
    let (x, y) = (rng.f32s(n, -2.0, 2.0), rng.f32s(n, -2.0, 2.0));
    let (dx, dy) = (rng.f64s(n, -2.0, 2.0), rng.f64s(n, -2.0, 2.0));
    let (ix, iy) = (ints(&mut rng), ints(&mut rng));
    let (sx, sy): (Vec<i16>, Vec<i16>) = (ix.iter().map(|&x| x as i16).collect(), iter16(&iy));
    let (bx, by): (Vec<u8>, Vec<u8>) = (rng.bytes(n), rng.bytes(n));
    let (wx, wy): (Vec<i32>, Vec<i32>) =
        (ix.iter().map(|&x| x as i32).collect(), iy.iter().map(|&x| x as i32).collect());
    let vectors: Vec<f32> = x[..400].iter().zip(&y).map(|(x, y)| 1.75f32.mul_add(*x, *y)).collect();
    vec![
        axpy("f", n, 1.75f32, x.clone(), y.clone(), f32::mul_add),
        axpy("d", n, -0.3f64, dx, dy, f64::mul_add),
        axpy("i", n, 77_777i32, wx, wy, |a, x, y| a.wrapping_mul(x).wrapping_add(y)),
        axpy("x", n, -123_456_789_012i64, ix, iy, |a, x, y| a.wrapping_mul(x).wrapping_add(y)),
        axpy("s", n, 300i16, sx, sy, |a, x, y| a.wrapping_mul(x).wrapping_add(y)),
        axpy("h", n, 7u8, bx, by, |a, x, y| a.wrapping_mul(x).wrapping_add(y)),
        launch("saxpy4", 4, 32)
            .scalar(1.75f32)
            .input(&x[..400])
            .inout(&y[..400], exactly(&vectors))
            .scalar(100i32),
    ]
}

fn iter16(x: &[i64]) -> Vec<i16> {
    x.iter().map(|&x| x as i16).collect()
}

fn saxpy_clang(_: &File) -> Vec<Case> {
    let n = 333;
    let mut rng = Rng::new(5);
    let (x, y) = (rng.f32s(n, -2.0, 2.0), rng.f32s(n, -2.0, 2.0));
    let (dx, dy) = (rng.f64s(n, -2.0, 2.0), rng.f64s(n, -2.0, 2.0));
    // Compiled with and without contraction: one or two roundings.
    let single = x.iter().zip(&y).map(|(&x, &y)| {
        let (x, y) = (f64::from(x), f64::from(y));
        (1.5 * x + y, F32.unit() * (1.5 * x).abs())
    });
    let double: Vec<f64> = dx.iter().zip(&dy).map(|(x, y)| 0.1f64.mul_add(*x, *y)).collect();
    vec![
        launch("saxpy", 2, 64).scalar(1.5f32).input(&x).inout(&y, within(F32, single)).scalar(n as i32),
        launch("daxpy", 6, 64).scalar(0.1f64).input(&dx).inout(&dy, exactly(&double)).scalar(n as u64),
    ]
}

fn saxpy_numba(file: &File) -> Vec<Case> {
    let n = 300;
    let mut rng = Rng::new(6);
    let (x, y) = (rng.f32s(n, -2.0, 2.0), rng.f32s(n, -2.0, 2.0));
    let want = x.iter().zip(&y).map(|(&x, &y)| {
        let (x, y) = (f64::from(x), f64::from(y));
        (1.5 * x + y, F32.unit() * (1.5 * x).abs())
    });
    let mut case = launch(&file.entries[0], 5, 64).scalar(1.5f32);
    let (a, b) = (case.add(Some(bytes(&x)), Expect::Same), case.add(Some(bytes(&y)), within(F32, want)));
    vec![case.array(a, n, 4).array(b, n, 4)]
}

fn strided_copy(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(7);
    let (rows, cols, from, to) = (37usize, 29usize, 40usize, 33usize);
    let src = rng.ints(rows * from, -1000, 1000);
    let init = vec![-1i32; rows * to];
    let mut dst = init.clone();
    for r in 0..rows {
        dst[r * to..][..cols].copy_from_slice(&src[r * from..][..cols]);
    }
    let n = 500;
    let halves: Vec<u16> = (0..256).map(|_| rng.u32() as u16).collect();
    let index: Vec<u32> = (0..n).map(|_| rng.int(0, 256) as u32).collect();
    let gathered: Vec<u16> = index.iter().map(|&i| halves[i as usize]).collect();
    let small: Vec<i8> = (0..n).map(|_| rng.u32() as i8).collect();
    let mut places: Vec<i64> = (0..n as i64).collect();
    rng.shuffle(&mut places);
    let mut scattered = vec![0i8; n];
    places.iter().zip(&small).for_each(|(&at, &x)| scattered[at as usize] = x);
    let words: Vec<[u32; 4]> = (0..50).map(|_| std::array::from_fn(|_| rng.u32())).collect();
    let reversed: Vec<[u32; 4]> =
        words.iter().map(|w| [w[3], w[2], w[1], w[0]].map(u32::swap_bytes)).collect();
    let n = n as u32;
    vec![
        launch("strided_copy", (2, 3), (8, 4))
            .input(&src)
            .inout(&init, exactly(&dst))
            .scalar(rows as i32)
            .scalar(cols as i32)
            .scalar(from as i32)
            .scalar(to as i32),
        launch("gather_u16", 4, 128).input(&halves).input(&index).output(exactly(&gathered)).scalar(n),
        launch("scatter_s8", 4, 128)
            .input(&small)
            .input(&places)
            .output(exactly(&scattered))
            .scalar(i64::from(n)),
        launch("reverse_bytes", 2, 32).inout(&words, exactly(&reversed)).scalar(50i32),
    ]
}

fn vector_types(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(8);
    let n = 50usize;
    let types = [
        ("char2", 2),
        ("char3", 3),
        ("uchar4", 4),
        ("short2", 4),
        ("short4", 8),
        ("ushort3", 6),
        ("int2", 8),
        ("int3", 12),
        ("uint4", 16),
        ("longlong2", 16),
        ("ulonglong2", 16),
        ("float2", 8),
        ("float3", 12),
        ("float4", 16),
        ("double2", 16),
        ("double3", 24),
    ];
    let mut cases: Vec<Case> = types
        .iter()
        .map(|&(name, size)| {
            let input = rng.bytes(n * size);
            let reversed: Vec<u8> = input.chunks(size).rev().flatten().copied().collect();
            launch(&format!("move_{name}"), 1, 64).input(&input).output(exactly(&reversed)).scalar(n as i32)
        })
        .collect();
    let (f, d, u) = (rng.u32s(n), rng.u64s(n), rng.u32s(2 * n));
    let casts: Vec<u64> = (0..n)
        .flat_map(|i| {
            let v = u64::from(f[i]).wrapping_add(d[i]);
            let high = (v >> 48) as i16 as i64 as u64;
            [v, u64::from(u[2 * i]) << 32 | u64::from(u[2 * i + 1]), u64::from((v >> 16) as u16) | high << 8]
        })
        .collect();
    let case = launch("bit_casts", 1, 64).input(&f).input(&d).input(&u);
    cases.push(case.output(exactly(&casts)).scalar(n as i32));
    cases
}

fn wide_vectors(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(9);
    let n = 40;
    let (a, b) = (rng.f32s(8 * n, -1.0, 1.0), rng.f32s(8 * n, -1.0, 1.0));
    let sum: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    let add = launch("wide_add", 2, 32).input(&a).input(&b).output(exactly(&sum)).scalar(n as i32);

    let pairs: Vec<[f32; 2]> =
        (0..4 * n).map(|_| [rng.f64(0.5, 2.0) as f32, rng.f64(0.5, 2.0) as f32]).collect();
    let factors: Vec<[f32; 2]> =
        (0..n).map(|_| [rng.f64(0.5, 2.0) as f32, rng.f64(0.5, 2.0) as f32]).collect();
    let toward_zero = |x: f64| {
        let near = x as f32;
        if f64::from(near).abs() > x.abs() { f32::from_bits(near.to_bits() - 1) } else { near }
    };
    let fused = |x: f32, y: f32| toward_zero(f64::from(x.mul_add(y, x) + y) * f64::from(y));
    let mut out: Vec<[f32; 2]> =
        (0..n).map(|i| [fused(pairs[i][0], factors[i][0]), fused(pairs[i][1], factors[i][1])]).collect();
    for i in 0..n {
        let w: [[u32; 2]; 4] = std::array::from_fn(|k| pairs[4 * i + k].map(f32::to_bits));
        out.push([w[0][0] ^ w[3][0], w[0][1] ^ w[3][1]].map(f32::from_bits));
        out.extend(&pairs[4 * i + 1..4 * i + 4]);
    }
    let largest: Vec<f32> = (0..n).map(|i| pairs[i][0].max(pairs[i][1]).max(factors[i][0])).collect();
    let fma = launch("packed_fma", 2, 32).input(&pairs).input(&factors).output(exactly(&out));
    vec![add, fma.output(exactly(&largest)).scalar(n as i32)]
}

fn thrust_transform(file: &File) -> Vec<Case> {
    let named = |part: &str| file.entries.iter().find(|entry| entry.contains(part)).map_or("", |entry| entry);
    let mut rng = Rng::new(10);
    let n = 1000usize;
    let x = rng.ints(n, -100, 100);
    let bumped: Vec<i32> = x.iter().map(|x| x + 3).collect();
    let mut each = launch(named("for_each"), 2, 256);
    let data = each.add(Some(bytes(&x)), exactly(&bumped));

    let (a, b) = (rng.f32s(n, -1.0, 1.0), rng.f32s(n, -1.0, 1.0));
    let sum: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    let mut transform = launch(named("transform_kernel"), 2, 256).shared(16 << 10);
    let inputs = [transform.add(Some(bytes(&a)), Expect::Same), transform.add(Some(bytes(&b)), Expect::Same)];
    let output = transform.add(None, exactly(&sum));
    let transform = transform
        .scalar(n as u64)
        .scalar(2i32)
        .scalar(0u8)
        .raw(&[0u8], &[])
        .raw(&[0u8], &[])
        .pass(output)
        .raw(&[0u64, 0], &[(0, inputs[0])])
        .raw(&[0u64, 0], &[(0, inputs[1])]);
    let each = each.scalar(n as u64).raw(&[0u64, 0], &[(0, data)]);
    vec![launch(named("EmptyKernel"), 1, 32), each, transform]
}

fn launch_bounds(file: &File) -> Vec<Case> {
    let mut rng = Rng::new(11);
    // Small integers: exact in any order.
    let x: Vec<f32> = (0..300).map(|_| rng.int(-30, 30) as f32).collect();
    let heavy = |n: usize, i: usize| (0..n).map(|k| x[i + k] * x[i + n - 1 - k]).sum::<f32>();
    let bounds = |entry, width, n| {
        let want: Vec<f32> = (0..width).map(|i| heavy(n, i)).collect();
        launch(entry, 1, width as u32).input(&x).output(exactly(&want))
    };
    let d = rng.f64s(1024, -1.0, 1.0);
    let plus: Vec<f64> = d.iter().map(|x| x + 1.0).collect();
    let mut cases = vec![
        bounds("bounds_1", 256, 8),
        bounds("bounds_2", 128, 16),
        bounds("max_regs", 100, 12),
        launch("bounds_3", 1, 1024).input(&d).output(exactly(&plus)),
    ];
    if file.arch >= 90 {
        // The grid counts clusters of two blocks.
        cases.push(launch("sized", 1, (64, 2)).output(exactly(&[1f32; 256])));
    }
    cases
}

fn half(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(12);
    let n = 90usize;
    let mut draw = |n| (0..n).map(|_| F16.round(rng.f64(-2.0, 2.0))).collect::<Vec<f64>>();
    let (x, y) = (draw(n), draw(n));
    // The product may be rounded to f32 before the sum, and the sum before it is rounded to f16.
    let axpy = x.iter().zip(&y).map(|(x, y)| (1.5 * x + y, F16.unit() * 0.01 * ((1.5 * x).abs() + y.abs())));
    let (a, b) = (draw(12), draw(12));
    let dot: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
    let size: f64 = a.iter().zip(&b).map(|(a, b)| (a * b).abs()).sum();
    let dot = if dot > 1.0 { dot } else { -dot };
    // 24 roundings to f16 of numbers no larger than the sum of sizes.
    let dots = (0..7).map(|_| (dot, 24.0 * F16.unit() * size));
    vec![
        launch("half_axpy", 3, 32)
            .floats(F16, &x)
            .inout(&F16.store(&y), within(F16, axpy))
            .scalar(1.5f32)
            .scalar(n as i32),
        launch("half_dot", 1, 7).floats(F16, &a).floats(F16, &b).output(within(F16, dots)).scalar(12i32),
    ]
}

fn gelu(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(13);
    let n = 1312usize;
    let x: Vec<f64> = (0..n).map(|_| Bf16.round(rng.f64(-5.0, 5.0))).collect();
    // erf is good to 2e-7, and 1 + erf cancels for negative x.
    let want = x.iter().map(|x| (0.5 * x * (1.0 + erf(x / 2f64.sqrt())), 1e-6 * x.abs()));
    vec![launch("gelu", 2, 128).floats(Bf16, &x).output(within(Bf16, want)).scalar(n as i32).triton()]
}

fn swiglu(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(14);
    let n = 1712usize;
    let mut draw = || (0..n).map(|_| Bf16.round(rng.f64(-6.0, 6.0))).collect::<Vec<f64>>();
    let (g, u) = (draw(), draw());
    let want = g.iter().zip(&u).map(|(g, u)| {
        let y = g / (1.0 + (-g).exp()) * u;
        (y, 2e-6 * y.abs())
    });
    let case = launch("swiglu", 2, 128).floats(Bf16, &g).floats(Bf16, &u);
    vec![case.output(within(Bf16, want)).scalar(n as i32).triton()]
}

fn math_mix(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(15);
    let n = 496usize;
    let x = rng.f32s(n, -4.0, 4.0);
    let want = x.iter().map(|&x| {
        let x = f64::from(x);
        let size = x.abs();
        let terms = [
            x.exp(),
            (size + 1.0).ln(),
            x.sin() * x.cos(),
            size.sqrt(),
            1.0 / (size + 1.0).sqrt(),
            x.exp2(),
            (size + 2.0).log2(),
            x.floor() - x.ceil(),
            x / 3.0,
            x * x,
            x.tanh(),
            size.powf(1.5),
        ];
        let y: f64 = terms.iter().sum::<f64>() + terms[..7].iter().sum::<f64>();
        let bound: f64 = terms.iter().map(|t| t.abs()).sum();
        // Each function is good to a few units, each sum to one; sin and cos to 1e-6 absolute.
        (y.clamp(-100.0, 100.0), 40.0 * F32.unit() * bound + 2e-6)
    });
    vec![launch("math_mix", 2, 128).input(&x).output(within(F32, want)).scalar(n as i32).triton()]
}

fn int_mix(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(16);
    let n = 400usize;
    let a: Vec<i32> =
        (0..n).map(|i| if i % 3 == 0 { rng.int(-50, 50) as i32 } else { rng.u32() as i32 }).collect();
    let b: Vec<i32> =
        (0..n).map(|i| if i % 5 == 0 { rng.int(-3, 4) as i32 } else { rng.u32() as i32 >> 12 }).collect();
    let (mut out, mut wide) = (Vec::new(), Vec::new());
    for (&a, &b) in a.iter().zip(&b) {
        let d = if b == 0 { 1 } else { b };
        let high = ((u64::from(a as u32) * u64::from(b as u32)) >> 32) as i32;
        let rounded_up = a.wrapping_add(15) / 16;
        let sum = a
            .wrapping_rem(d)
            .wrapping_add(rounded_up)
            .wrapping_sub(a << 3)
            .wrapping_add(a >> 2)
            .wrapping_add(high);
        out.push((a.wrapping_div(d) ^ sum).min(!a | b));
        wide.push(i64::from(a) * i64::from(b) + i64::from(a as i8) / i64::from(d));
    }
    let case = launch("int_mix", 2, 128).input(&a).input(&b).output(exactly(&out));
    vec![case.output(exactly(&wide)).scalar(n as i32).triton()]
}

fn casts(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(17);
    let n = 704usize;
    let x = rng.f32s(n, -120.0, 120.0);
    let toward_zero = |x: f64| {
        let near = F16.bits(x);
        if F16.value(near).abs() > x.abs() { near - 1 } else { near }
    };
    let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let halves: Vec<u16> = wide.iter().map(|&x| toward_zero(x) as u16).collect();
    let doubles: Vec<f64> = wide.iter().map(|x| x * 1.5).collect();
    let small: Vec<i8> = x.iter().map(|&x| x as i32 as i8).collect();
    vec![
        launch("casts", 2, 128)
            .input(&x)
            .output(exactly(&halves))
            .output(Expect::Bytes(Bf16.store(&wide)))
            .output(Expect::Bytes(E5m2.store(&wide)))
            .output(Expect::Bytes(F64.store(&doubles)))
            .output(exactly(&small))
            .scalar(n as i32)
            .triton(),
    ]
}

fn adam(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(18);
    let n = 608usize;
    let (p, m, v) = (rng.f32s(n, -1.0, 1.0), rng.f32s(n, -0.1, 0.1), rng.f32s(n, 0.01, 0.1));
    let g: Vec<f64> = (0..n).map(|_| Bf16.round(rng.f64(-1.0, 1.0))).collect();
    let (lr, b1, b2, eps, c1, c2) = (0.01f32, 0.9f32, 0.99f32, 1e-8f32, 1.5f32, 1.25f32);
    let of = f64::from;
    let momentum = |i: usize| of(b1) * of(m[i]) + (1.0 - of(b1)) * g[i];
    let square = |i: usize| of(b2) * of(v[i]) + (1.0 - of(b2)) * g[i] * g[i];
    let unit = F32.unit();
    let new_m = (0..n).map(|i| (momentum(i), 4.0 * unit * (of(m[i]).abs() + g[i].abs())));
    let new_v = (0..n).map(|i| (square(i), 4.0 * unit * (of(v[i]) + g[i] * g[i])));
    let new_p = (0..n).map(|i| {
        let step = of(lr) * momentum(i) * of(c1) / ((square(i) * of(c2)).sqrt() + of(eps));
        let loose =
            of(lr) * of(c1) * 4.0 * unit * (of(m[i]).abs() + g[i].abs()) / (square(i) * of(c2)).sqrt();
        (of(p[i]) - step, 10.0 * unit * step.abs() + 3.0 * loose)
    });
    let (p_out, m_out, v_out) = (within(F32, new_p), within(F32, new_m), within(F32, new_v));
    vec![
        launch("adam", 2, 128)
            .inout(&p, p_out)
            .floats(Bf16, &g)
            .inout(&m, m_out)
            .inout(&v, v_out)
            .scalar(n as i32)
            .scalar(lr)
            .scalar(b1)
            .scalar(b2)
            .scalar(eps)
            .scalar(c1)
            .scalar(c2)
            .triton(),
    ]
}

fn inline_asm(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(19);
    let n = 512usize;
    let (a, b) = (rng.u32s(n), rng.u32s(n));
    let mut out = Vec::new();
    for group in 0..n / 4 {
        let pack = |x: &[u32]| (0..4).map(|k| (x[4 * group + k] & 255) << (8 * k)).sum::<u32>();
        let (pa, pb) = (pack(&a).to_le_bytes(), pack(&b).to_le_bytes());
        let mixed = [pa[0], pb[0], pa[1], pb[1]];
        for k in 0..4 {
            let (x, y) = (a[4 * group + k], b[4 * group + k]);
            // 0x6a is c ^ (a & b).
            let t = (255 ^ (x & y)).rotate_left(7);
            out.push(t.wrapping_add(mixed[k] as i8 as u32));
        }
    }
    vec![launch("inline_asm", 1, 128).input(&a).input(&b).output(exactly(&out)).triton()]
}

fn unpack_pairs(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(20);
    let n = 304usize;
    let q = rng.bytes(n);
    let want: Vec<f64> = q.iter().flat_map(|q| [f64::from(q & 15), f64::from(q >> 4)]).collect();
    vec![
        launch("unpack_pairs", 2, 128)
            .input(&q)
            .output(Expect::Bytes(F16.store(&want)))
            .scalar(n as i32)
            .triton(),
    ]
}

fn cache_ops(file: &File) -> Vec<Case> {
    let mut rng = Rng::new(21);
    let n = 96usize;
    let a = rng.ints(n, -1000, 1000);
    let b: Vec<[f32; 4]> = (0..n).map(|_| std::array::from_fn(|_| rng.int(-100, 100) as f32)).collect();
    let d: Vec<f64> = (0..n).map(|_| rng.int(-100, 100) as f64).collect();
    let c = rng.bytes(n);
    let s: Vec<[i16; 2]> = (0..n).map(|_| [rng.u32() as i16, rng.u32() as i16]).collect();
    let sums: Vec<i32> = (0..n).map(|i| 6 * a[i] + i32::from(c[i]) + i32::from(s[i][1])).collect();
    let vectors: Vec<[f32; 4]> = (0..n).map(|i| [b[i][0] + d[i] as f32, b[i][1], b[i][2], b[i][3]]).collect();
    let loads = launch("cache_loads", 3, 32).input(&a).input(&b).input(&d).input(&c).input(&s);
    let loads =
        loads.output(exactly(&[&sums[..], &sums, &sums].concat())).output(exactly(&vectors)).scalar(n as i32);

    let x = rng.f32s(n, -1.0, 1.0);
    let new = file.arch >= 80;
    // global: 1 by isspacep, 16 by __isGlobal; the address of a local variable: 2.
    let spaces = [(1 + 2 + 16) as f32];
    let mut hints = vec![0f32; 4 * n];
    for i in 0..n {
        hints[i] = if new { x[i] + x[i] } else { x[i] };
        hints[3 * n + i] = spaces[0];
    }
    let want = rule(4 * n, move |got: &[f32]| {
        // The third part adds a cache policy's bits, which the ISA leaves open.
        let wrong = (0..n).chain(3 * n..4 * n).find(|&i| got[i] != hints[i]);
        wrong.map_or(Ok(()), |i| Err(format!("number {i} is {}, expected {}", got[i], hints[i])))
    });
    let hints = launch("hints", 3, 32).input(&x).inout(&vec![0f32; 4 * n], want).scalar(n as i32);
    vec![loads, hints]
}
