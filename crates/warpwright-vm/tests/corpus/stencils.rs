//! Stencils and convolutions, bodies and rays, fractals, Fourier transforms, small solvers.

use crate::case::{Case, Expect, File, Source, exactly, launch, rule, source, within};
use crate::data::{Format, Rng, bytes};
use Format::{F16, F32, F64};

pub(crate) const SOURCES: &[Source] = &[
    source("stencil.nvcc", stencil),
    source("mdspan_stencil.nvcc", mdspan_stencil),
    source("laplace.numba", laplace),
    source("conv2d.nvcc", conv2d),
    source("conv3x3.triton", conv3x3),
    source("conv1d_causal.triton", conv1d_causal),
    source("nbody.nvcc", nbody),
    source("mandelbrot.nvcc", mandelbrot),
    source("mandelbrot.numba", mandelbrot_numba),
    source("ray_trace.nvcc", ray_trace),
    source("fft.nvcc", fft),
    source("linear_algebra.nvcc", linear_algebra),
    source("complex_scale.numba", complex_scale),
];

/// A sum and what it may be off: `roundings` of the sum of sizes in f32.
fn sum(terms: impl IntoIterator<Item = f64>, roundings: f64) -> (f64, f64) {
    let (value, size) = terms.into_iter().fold((0.0, 0.0), |(value, size), x| (value + x, size + x.abs()));
    (value, roundings * F32.unit() * size)
}

fn stencil(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(501);
    let n = 600usize;
    let x = rng.f32s(n, -1.0, 1.0);
    let coefficients = [0.5f32, -1.0, 2.0, 3.0, -2.0, 1.0, 0.25];
    let at = |i: i64| if (0..n as i64).contains(&i) { f64::from(x[i as usize]) } else { 0.0 };
    let line = (0..n as i64)
        .map(|i| sum((-3..=3).map(|k| f64::from(coefficients[(k + 3) as usize]) * at(i + k)), 7.0));
    let one = launch("stencil_1d", 3, 256).input(&x).output(within(F32, line)).scalar(n as i32);

    let (w, h) = (30usize, 21usize);
    let d: Vec<f64> = (0..w * h).map(|_| rng.int(-1000, 1000) as f64).collect();
    let plane: Vec<f64> = (0..w * h)
        .map(|i| {
            let inside = i % w > 0 && i % w < w - 1 && i / w > 0 && i / w < h - 1;
            if inside { 0.25 * (d[i - 1] + d[i + 1] + d[i - w] + d[i + w]) - d[i] } else { -7.0 }
        })
        .collect();
    let two = launch("stencil_2d", (4, 3), (8, 8)).input(&d).inout(&vec![-7f64; w * h], exactly(&plane));

    let (nx, ny, nz) = (19usize, 11usize, 7usize);
    let f = rng.f32s(nx * ny * nz, -1.0, 1.0);
    let at = |i: usize| f64::from(f[i]);
    let (c0, c1) = (0.5f32, -0.125f32);
    let layer = nx * ny;
    let space = (0..f.len()).map(|i| {
        let (x, y, z) = (i % nx, i / nx % ny, i / layer);
        if x == 0 || x == nx - 1 || y == 0 || y == ny - 1 || z == 0 || z == nz - 1 {
            return (-7.0, 0.0);
        }
        let near = [i - layer, i + layer, i - 1, i + 1, i - nx, i + nx];
        let terms = near.iter().map(|&j| f64::from(c1) * at(j)).chain([f64::from(c0) * at(i)]);
        sum(terms, 8.0)
    });
    let three =
        launch("stencil_3d", (3, 2), (8, 8)).input(&f).inout(&vec![-7f32; f.len()], within(F32, space));
    vec![
        one.global("coef", Some(bytes(&coefficients)), Expect::Same),
        two.scalar(w as i32).scalar(h as i32),
        three.scalar(nx as i32).scalar(ny as i32).scalar(nz as i32).scalar(c0).scalar(c1),
    ]
}

fn mdspan_stencil(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(502);
    let (w, h) = (21usize, 13usize);
    // Integers: sums are exact.
    let x: Vec<f32> = (0..w * h).map(|_| rng.int(-1000, 1000) as f32).collect();
    let at = |y: i64, c: i64| {
        let inside = (0..h as i64).contains(&y) && (0..w as i64).contains(&c);
        if inside { x[y as usize * w + c as usize] } else { 1.0 }
    };
    let want: Vec<f32> = (0..w * h)
        .map(|i| {
            let (y, c) = ((i / w) as i64, (i % w) as i64);
            (at(y - 1, c) + at(y + 1, c) + at(y, c - 1) + at(y, c + 1)) * 0.25
        })
        .collect();
    let stencil = launch("mdspan_stencil", (3, 4), (8, 4)).input(&x).output(exactly(&want));
    let words = rng.u32s(8);
    let turned: Vec<u32> = words
        .iter()
        .map(|&x| x.rotate_left(3) ^ x.count_ones() ^ x.leading_zeros() ^ (x & 255).next_power_of_two())
        .collect();
    let wide = rng.u64s(3);
    let wide_turned: Vec<u64> = wide
        .iter()
        .map(|&x| {
            let bits = u64::from(x.count_ones()) ^ u64::from(x.leading_zeros());
            x.rotate_left(3) ^ bits ^ (x & 255).next_power_of_two()
        })
        .collect();
    let narrow: Vec<u16> = (0..4).map(|_| rng.u32() as u16).collect();
    let narrow_turned: Vec<u16> = narrow
        .iter()
        .map(|&x| {
            let bits = x.count_ones() as u16 ^ x.leading_zeros() as u16;
            x.rotate_left(3) ^ bits ^ (x & 255).next_power_of_two()
        })
        .collect();
    let span = |name: &str, init: Vec<u8>, want: Expect| {
        let mut case = launch(&format!("_Z11rotate_bitsI{name}EEvN4cuda3std3__44spanIT_XT0_EEE"), 1, 1);
        let data = case.add(Some(init), want);
        case.raw(&[0u64], &[(0, data)])
    };
    vec![
        stencil.scalar(h as i32).scalar(w as i32),
        span("jLi8", bytes(&words), exactly(&turned)),
        span("yLi3", bytes(&wide), exactly(&wide_turned)),
        span("tLi4", bytes(&narrow), exactly(&narrow_turned)),
    ]
}

fn laplace(file: &File) -> Vec<Case> {
    let mut rng = Rng::new(503);
    let (rows, cols) = (23usize, 17usize);
    let u: Vec<f64> = (0..rows * cols).map(|_| rng.int(-1000, 1000) as f64).collect();
    let want: Vec<f64> = (0..rows * cols)
        .map(|at| {
            let (i, j) = (at / cols, at % cols);
            let inside = i > 0 && i < rows - 1 && j > 0 && j < cols - 1;
            if inside { 0.25 * (u[at - cols] + u[at + cols] + u[at - 1] + u[at + 1]) } else { 0.5 }
        })
        .collect();
    let mut case = launch(&file.entries[0], (3, 3), (8, 8));
    let from = case.add(Some(bytes(&u)), Expect::Same);
    let to = case.add(Some(bytes(&vec![0.5f64; u.len()])), exactly(&want));
    vec![case.matrix(from, rows, cols, 8).matrix(to, rows, cols, 8)]
}

fn conv2d(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(504);
    let (c, h, w, k) = (3usize, 10usize, 13usize, 4usize);
    let x = rng.f32s(c * h * w, -1.0, 1.0);
    let weights = rng.f32s(k * c * 9, -1.0, 1.0);
    let bias = rng.f32s(k, -1.0, 1.0);
    let inside = |y: usize, dy: usize, top: usize| (1..=top).contains(&(y + dy)).then(|| y + dy - 1);
    let want = (0..k * h * w).map(|i| {
        let (out, y, column) = (i / (h * w), i / w % h, i % w);
        let mut terms = vec![f64::from(bias[out])];
        for channel in 0..c {
            for tap in 0..9 {
                let (Some(yy), Some(xx)) = (inside(y, tap / 3, h), inside(column, tap % 3, w)) else {
                    continue;
                };
                let weight = weights[(out * c + channel) * 9 + tap];
                terms.push(f64::from(x[(channel * h + yy) * w + xx]) * f64::from(weight));
            }
        }
        let (value, bound) = sum(terms, 28.0);
        (value.max(0.0), bound)
    });
    let direct =
        launch("conv3x3", (2, 2, 4), (8, 8)).input(&x).input(&weights).input(&bias).output(within(F32, want));
    let direct = direct.scalar(c as i32).scalar(h as i32).scalar(w as i32);

    let bytes_in: Vec<i8> = (0..h * w * c).map(|_| rng.u32() as i8).collect();
    let taps: Vec<i8> = (0..9 * c).map(|_| rng.u32() as i8).collect();
    let bias = rng.ints(c, -1000, 1000);
    let scale = 0.003f32;
    let depthwise: Vec<i8> = (0..h * w * c)
        .map(|i| {
            let (channel, column, y) = (i % c, i / c % w, i / c / w);
            let mut acc = bias[channel];
            for tap in 0..9 {
                let (Some(yy), Some(xx)) = (inside(y, tap / 3, h), inside(column, tap % 3, w)) else {
                    continue;
                };
                acc += i32::from(bytes_in[(yy * w + xx) * c + channel]) * i32::from(taps[tap * c + channel]);
            }
            (acc as f32 * scale).round_ties_even().clamp(-128.0, 127.0) as i8
        })
        .collect();
    let depth =
        launch("depthwise_s8", 7, 64).input(&bytes_in).input(&taps).input(&bias).output(exactly(&depthwise));

    let pooled: Vec<f32> = (0..c * (h / 2) * (w / 2))
        .map(|i| {
            let (plane, y, column) = (i / (h / 2 * (w / 2)), i / (w / 2) % (h / 2), i % (w / 2));
            let at = (plane * h + 2 * y) * w + 2 * column;
            x[at].max(x[at + 1]).max(x[at + w]).max(x[at + w + 1])
        })
        .collect();
    vec![
        direct,
        depth.scalar(scale).scalar(c as i32).scalar(h as i32).scalar(w as i32),
        launch("max_pool", (1, 5, 3), 32)
            .input(&x)
            .output(exactly(&pooled))
            .scalar(h as i32)
            .scalar(w as i32),
    ]
}

fn conv3x3(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(505);
    let (c, h, w, k) = (32usize, 7usize, 10usize, 48usize);
    let mut draw = |n| (0..n).map(|_| F16.round(rng.f64(-1.0, 1.0))).collect::<Vec<f64>>();
    let (x, weights) = (draw(h * w * c), draw(9 * c * k));
    let want = (0..h * w * k).map(|i| {
        let (y, column, out) = (i / k / w, i / k % w, i % k);
        let mut terms = Vec::new();
        for tap in 0..9 {
            let (yy, xx) = (y + tap / 3, column + tap % 3);
            if (1..=h).contains(&yy) && (1..=w).contains(&xx) {
                let at = (yy - 1) * w + xx - 1;
                terms.extend((0..c).map(|c0| x[at * c + c0] * weights[(tap * c + c0) * k + out]));
            }
        }
        // Tensor cores truncate: two units for each of the steps of eight products.
        sum(terms, 2.0 * 80.0)
    });
    let case = launch("conv3x3", (2, 2), 128).floats(F16, &x).floats(F16, &weights).output(within(F16, want));
    vec![case.scalar(c as i32).scalar(h as i32).scalar(w as i32).scalar(k as i32).triton()]
}

fn conv1d_causal(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(506);
    let n = 600usize;
    let (x, taps) = (rng.f32s(n, -1.0, 1.0), rng.f32s(4, -1.0, 1.0));
    let want = (0..n).map(|t| sum((0..=t.min(3)).map(|k| f64::from(taps[k]) * f64::from(x[t - k])), 8.0));
    let case = launch("conv1d_causal", 3, 128).input(&x).input(&taps).output(within(F32, want));
    vec![case.scalar(n as i32).triton()]
}

fn nbody(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(507);
    let n = 200usize;
    let position: Vec<[f32; 4]> = (0..n)
        .map(|_| {
            std::array::from_fn(|k| if k == 3 { rng.f64(0.1, 1.0) as f32 } else { rng.f64(-1.0, 1.0) as f32 })
        })
        .collect();
    let eps2 = 0.01f32;
    // The padding of the last tile has no mass.
    let want = (0..n).flat_map(|i| {
        let mut out: [(f64, f64); 4] = [(0.0, 0.0); 4];
        for q in &position {
            let d: [f64; 3] = std::array::from_fn(|k| f64::from(q[k]) - f64::from(position[i][k]));
            let r2 = d.iter().map(|d| d * d).sum::<f64>() + f64::from(eps2);
            let f = f64::from(q[3]) / (r2 * r2.sqrt());
            for k in 0..3 {
                out[k].0 += d[k] * f;
                // Positions are exact; the rest takes about 20 roundings, and 200 sums follow.
                out[k].1 += 20.0 * F32.unit() * (d[k] * f).abs() + 20.0 * F32.unit() * f * 1e-3;
            }
        }
        out.map(|(value, bound)| (value, 3.0 * bound))
    });
    let forces = launch("nbody_forces", 2, 128).input(&position).output(within(F32, want));
    let velocity: Vec<[f32; 4]> =
        (0..n).map(|_| std::array::from_fn(|_| rng.f64(-1.0, 1.0) as f32)).collect();
    let force: Vec<[f32; 4]> = (0..n).map(|_| std::array::from_fn(|_| rng.f64(-1.0, 1.0) as f32)).collect();
    let dt = 0.25f32;
    // With and without contraction.
    let of = |x: f32| f64::from(x);
    let step = |i: usize, k: usize| {
        if k == 3 { of(velocity[i][3]) } else { of(velocity[i][k]) + of(force[i][k]) * 0.25 }
    };
    let moved =
        |i: usize, k: usize| if k == 3 { of(position[i][3]) } else { of(position[i][k]) + step(i, k) * 0.25 };
    let each = |of: &dyn Fn(usize, usize) -> f64| {
        within(F32, (0..4 * n).map(|at| (of(at / 4, at % 4), 4.0 * F32.unit())))
    };
    let step = launch("nbody_step", 4, 64)
        .inout(&position, each(&moved))
        .inout(&velocity, each(&step))
        .input(&force);
    vec![forces.scalar(n as i32).scalar(eps2), step.scalar(dt).scalar(n as i32)]
}

/// Steps until z² + c leaves the circle of the squared radius, at most `limit`.
fn escape(c: (f64, f64), radius: f64, limit: i32) -> i32 {
    let (mut x, mut y, mut k) = (0.0, 0.0, 0);
    while k < limit && x * x + y * y < radius {
        (x, y) = (x * x - y * y + c.0, 2.0 * x * y + c.1);
        k += 1;
    }
    k
}

/// Errors double with every step: a point is decided if circles a little smaller and larger, and
/// starts a little aside, agree.
fn decided(c: (f64, f64), aside: f64, limit: i32) -> Option<i32> {
    let k = escape(c, 4.0, limit);
    let same = [(3.99, aside, 0.0), (4.01, 0.0, aside), (4.0, -aside, aside), (4.0, aside, -aside)]
        .iter()
        .all(|&(radius, dx, dy)| escape((c.0 + dx, c.1 + dy), radius, limit) == k);
    same.then_some(k)
}

fn mandelbrot(_: &File) -> Vec<Case> {
    let (w, h, limit) = (25i32, 19i32, 50);
    let points = |x0: f64, y0: f64, step: f64, aside: f64| -> Vec<Option<i32>> {
        let point = |i: i32| (x0 + f64::from(i % w) * step, y0 + f64::from(i / w) * step);
        (0..w * h).map(|i| decided(point(i), aside, limit)).collect()
    };
    let colours = points(-2.0, -1.25, 0.125, 1e-5);
    assert!(colours.iter().flatten().count() > 400, "most points are decided");
    let image = rule(colours.len(), move |got: &[[u8; 4]]| {
        for (i, (got, &k)) in got.iter().zip(&colours).enumerate() {
            let Some(k) = k else { continue };
            let want = if k == limit { [0, 0, 0, 255] } else { [k * 5, k * 7, k * 11, 255].map(|x| x as u8) };
            if *got != want {
                return Err(format!("pixel {i} is {got:?}, expected {want:?} of {k} steps"));
            }
        }
        Ok(())
    });
    let steps = points(-2.0, -1.25, 0.11, 1e-13);
    let iterations = rule(steps.len(), move |got: &[i32]| {
        let wrong = got.iter().zip(&steps).position(|(got, want)| want.is_some_and(|k| k != *got));
        wrong.map_or(Ok(()), |i| Err(format!("pixel {i} has {} steps, expected {:?}", got[i], steps[i])))
    });
    let single = launch("mandelbrot_f32", (4, 3), (8, 8)).output(image).scalar(w).scalar(h);
    let double = launch("mandelbrot_f64", (4, 3), (8, 8)).output(iterations).scalar(w).scalar(h);
    vec![
        single.scalar(-2.0f32).scalar(-1.25f32).scalar(0.125f32).scalar(limit),
        double.scalar(-2.0f64).scalar(-1.25f64).scalar(0.11f64).scalar(limit),
    ]
}

fn mandelbrot_numba(file: &File) -> Vec<Case> {
    let (w, h, limit) = (20i32, 15i32, 40);
    let point =
        |i: i32| (-2.0 + 3.0 * f64::from(i % w) / f64::from(w), -1.5 + 3.0 * f64::from(i / w) / f64::from(h));
    let steps: Vec<Option<i32>> = (0..w * h).map(|i| decided(point(i), 1e-13, limit)).collect();
    let n = steps.len();
    let want = rule(n, move |got: &[i32]| {
        let wrong = got.iter().zip(&steps).position(|(got, want)| want.is_some_and(|k| k != *got));
        wrong.map_or(Ok(()), |i| Err(format!("pixel {i} has {} steps, expected {:?}", got[i], steps[i])))
    });
    let mut case = launch(&file.entries[0], 5, 64);
    let out = case.add(None, want);
    vec![case.array(out, n, 4).scalar(w).scalar(h).scalar(limit)]
}

type Vector = [f64; 3];

fn add(a: Vector, b: Vector, scale: f64) -> Vector {
    std::array::from_fn(|i| a[i] + b[i] * scale)
}

fn dot(a: Vector, b: Vector) -> f64 {
    a.iter().zip(&b).map(|(a, b)| a * b).sum()
}

fn unit(a: Vector) -> Vector {
    a.map(|x| x / dot(a, a).sqrt())
}

/// The ray's nearest hit: distance and body, of which the plane is the fourth.
fn hit(o: Vector, d: Vector) -> Option<(f64, usize)> {
    let mut best: Option<(f64, usize)> = None;
    let mut offer = |t: f64, body: usize| {
        if t > 1e-3 && best.is_none_or(|(nearest, _)| t < nearest) {
            best = Some((t, body));
        }
    };
    for (i, (c, r, _, _)) in SCENE.iter().enumerate() {
        let oc = add(o, *c, -1.0);
        let (b, q) = (dot(oc, d), dot(oc, d).powi(2) - dot(oc, oc) + r * r);
        if q >= 0.0 {
            offer(-b - q.sqrt(), i);
        }
    }
    if d[1] < -1e-4 {
        offer((-1.0 - o[1]) / d[1], 3);
    }
    best
}

const SCENE: [(Vector, f64, Vector, f64); 3] = [
    ([0.0, 0.0, 5.0], 1.0, [1.0, 0.2, 0.2], 0.3),
    ([1.5, 0.5, 4.0], 0.7, [0.2, 1.0, 0.2], 0.5),
    ([-1.2, -0.3, 3.5], 0.5, [0.3, 0.3, 1.0], 0.1),
];

fn ray_trace(_: &File) -> Vec<Case> {
    let (w, h) = (40i32, 30i32);
    let colour = |x: i32, y: i32, aside: [f64; 2]| {
        let (w, h) = (f64::from(w), f64::from(h));
        let (mut o, mut d) =
            ([0.0; 3], unit([(f64::from(x) - w * 0.5) / h, (h * 0.5 - f64::from(y)) / h, 1.0]));
        let (mut c, light, mut weight) = ([0.0; 3], unit([-1.0, 2.0, -1.0]), 1.0);
        for _ in 0..3 {
            let Some((t, k)) = hit(o, d) else {
                c = add(c, [0.5, 0.7, 1.0], weight * (0.5 + 0.5 * d[1]));
                break;
            };
            let p = add(o, d, t);
            let n = if k == 3 { [0.0, 1.0, 0.0] } else { unit(add(p, SCENE[k].0, -1.0)) };
            let tile = if ((p[0] + aside[0]).floor() as i64 + (p[2] + aside[1]).floor() as i64) & 1 == 1 {
                1.0
            } else {
                0.1
            };
            let base = if k == 3 { [tile; 3] } else { SCENE[k].2 };
            let mirror = if k == 3 { 0.1 } else { SCENE[k].3 };
            let lit = dot(n, light).max(0.0) * if hit(p, light).is_some() { 0.2 } else { 1.0 };
            c = add(c, base, weight * (1.0 - mirror) * (0.1 + lit));
            weight *= mirror;
            d = add(d, n, -2.0 * dot(d, n));
            o = p;
        }
        c.map(|x| x.clamp(0.0, 1.0) * 255.0)
    };
    // Points near the edges of a tile of the plane may be on either side of each; below the horizon, all
    // are on corners.
    let e = 1e-3;
    let aside = [[0.0, 0.0], [-e, -e], [-e, e], [e, -e], [e, e]];
    let want: Vec<[Vector; 5]> = (0..w * h).map(|i| aside.map(|aside| colour(i % w, i / w, aside))).collect();
    let image = rule(want.len(), move |got: &[[u8; 4]]| {
        let off = |got: &[u8; 4], want: &Vector| {
            (0..3).any(|i| (f64::from(got[i]) - want[i]).abs() > 1.1) || got[3] != 255
        };
        // Rounding moves the edges of bodies and shadows by a pixel here and there.
        let wrong: Vec<usize> =
            (0..want.len()).filter(|&i| want[i].iter().all(|want| off(&got[i], want))).collect();
        if wrong.len() <= 12 {
            Ok(())
        } else {
            Err(format!("{} pixels are off: {:?}", wrong.len(), &wrong[..12]))
        }
    });
    vec![launch("ray_trace", (5, 4), (8, 8)).output(image).scalar(w).scalar(h)]
}

fn fft(file: &File) -> Vec<Case> {
    let mut rng = Rng::new(508);
    let x: Vec<[f32; 2]> =
        (0..1024).map(|_| [rng.f64(-1.0, 1.0) as f32, rng.f64(-1.0, 1.0) as f32]).collect();
    let transform = |x: &[[f64; 2]], k: usize| {
        let n = x.len();
        x.iter().enumerate().fold([0.0, 0.0], |sum, (j, x)| {
            let (s, c) = (-2.0 * std::f64::consts::PI * (j * k % n) as f64 / n as f64).sin_cos();
            [sum[0] + x[0] * c - x[1] * s, sum[1] + x[0] * s + x[1] * c]
        })
    };
    let wide: Vec<[f64; 2]> = x.iter().map(|x| x.map(f64::from)).collect();
    let want = wide.chunks(512).flat_map(|x| (0..512).flat_map(|k| transform(x, k)).collect::<Vec<f64>>());
    // The angles' sines are good to 2^-21, in nine stages that keep the mean square, ~sqrt(512).
    let want = within(F32, want.map(|x| (x, 9.0 * 2f64.powi(-20) * 40.0)));
    let n = 45usize;
    let z: Vec<[f64; 2]> = (0..n).map(|_| [rng.f64(-1.0, 1.0), rng.f64(-1.0, 1.0)]).collect();
    let bound = if file.variant == "fast" { 1e-11 } else { 1e-12 };
    let slow = within(F64, (0..n).flat_map(|k| transform(&z, k)).map(|x| (x, bound)));
    vec![
        launch("fft512", 2, 256).inout(&x, want),
        launch("dft", 2, 32).input(&z).output(slow).scalar(n as i32),
    ]
}

fn linear_algebra(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(509);
    let n = 11usize;
    let mut a = rng.f64s(2 * n * n, -1.0, 1.0);
    (0..2 * n).for_each(|i| a[i / n * n * n + (i % n) * (n + 1)] += 5.0);
    let mut lu = a.clone();
    for s in lu.chunks_mut(n * n) {
        for k in 0..n {
            for i in k + 1..n {
                s[i * n + k] /= s[k * n + k];
                for j in k + 1..n {
                    s[i * n + j] -= s[i * n + k] * s[k * n + j];
                }
            }
        }
    }
    let lu = within(F64, lu.into_iter().map(|x| (x, 1e-13)));
    let factor = launch("lu_factor", 2, 64).shared((n * n * 8) as u32).inout(&a, lu).scalar(n as i32);

    let count = 40usize;
    let (mut spd, mut factors) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let l: [[f64; 4]; 4] = std::array::from_fn(|i| {
            std::array::from_fn(|j| {
                if i == j {
                    rng.f64(1.0, 2.0)
                } else if j < i {
                    rng.f64(-1.0, 1.0)
                } else {
                    0.0
                }
            })
        });
        for i in 0..4 {
            for j in 0..4 {
                spd.push((0..4).map(|k| l[i][k] * l[j][k]).sum::<f64>() as f32);
                // The input was rounded: the condition of such factors is below 300.
                factors.push((l[i][j], if j <= i { 300.0 * 4.0 * F32.unit() } else { 0.0 }));
            }
        }
    }
    let cholesky = launch("cholesky4", 2, 32).input(&spd).output(within(F32, factors)).scalar(count as i32);

    let q: Vec<[f32; 4]> = (0..count).map(|_| std::array::from_fn(|_| rng.f64(-1.0, 1.0) as f32)).collect();
    let p: Vec<[f32; 3]> = (0..count).map(|_| std::array::from_fn(|_| rng.f64(-1.0, 1.0) as f32)).collect();
    let rotated = q.iter().zip(&p).flat_map(|(q, p)| {
        let size = q.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let [x, y, z, w] = q.map(|x| f64::from(x) / size);
        let v = p.map(f64::from);
        let cross = |a: Vector, b: Vector| {
            [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
        };
        let u = [x, y, z];
        let t = cross(u, v).map(|x| 2.0 * x);
        add(add(v, t, w), cross(u, t), 1.0).map(|x| (x, 40.0 * F32.unit()))
    });
    let rotate =
        launch("rotate_points", 2, 32).input(&q).input(&p).output(within(F32, rotated)).scalar(count as i32);

    // Quarters: sums by atomics are exact in any order.
    let (n, k) = (300usize, 7usize);
    let mut quarter = |n| {
        (0..n).map(|_| [rng.int(-80, 80) as f32 / 4.0, rng.int(-80, 80) as f32 / 4.0]).collect::<Vec<_>>()
    };
    let (points, centres): (Vec<[f32; 2]>, Vec<[f32; 2]>) = (quarter(n), quarter(k));
    let (mut labels, mut sums, mut counts) = (Vec::new(), vec![[0f32; 2]; k], vec![0u32; k]);
    for p in &points {
        let distance = |c: &[f32; 2]| (p[0] - c[0]).powi(2) + (p[1] - c[1]).powi(2);
        let best =
            (0..k).fold(0, |best, j| if distance(&centres[j]) < distance(&centres[best]) { j } else { best });
        labels.push(best as i32);
        sums[best] = [sums[best][0] + p[0], sums[best][1] + p[1]];
        counts[best] += 1;
    }
    let kmeans = launch("kmeans_assign", 3, 128).input(&points).input(&centres).scalar(k as i32);
    let kmeans = kmeans.output(exactly(&labels)).inout(&vec![[0f32; 2]; k], exactly(&sums));
    vec![factor, cholesky, rotate, kmeans.inout(&vec![0u32; k], exactly(&counts)).scalar(n as i32)]
}

fn complex_scale(file: &File) -> Vec<Case> {
    let mut rng = Rng::new(510);
    let n = 50usize;
    let z: Vec<[f64; 2]> = (0..n).map(|_| [rng.f64(-5.0, 5.0), rng.f64(-5.0, 5.0)]).collect();
    let s = 1.75;
    let want = z.iter().flat_map(|z| z.map(|x| x * s / (1.0 + z[0].hypot(z[1])))).map(|x| (x, 1e-14));
    let mut case = launch(&file.entries[0], 2, 32);
    let data = case.add(Some(bytes(&z)), within(F64, want));
    vec![case.array(data, n, 16).scalar(s)]
}
