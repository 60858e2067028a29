//! Inline assembly: instructions that compilers do not choose by themselves.

use crate::case::{Case, File, Source, exactly, launch, rule, source};
use crate::data::{Format, Rng};
use crate::floats::{exact, slots};
use Format::{Bf16, F16, F32, F64};

pub(crate) const SOURCES: &[Source] = &[source("asm_misc.nvcc", asm_misc)];

fn asm_misc(_: &File) -> Vec<Case> {
    vec![halves(), floats(), data(0), data(2)]
}

fn halves() -> Case {
    let mut rng = Rng::new(1310);
    let halves: Vec<f64> = (0..128).map(|_| F16.round(rng.f64(-2.0, 2.0))).collect();
    let words = F16.store(&halves);
    let input = words.clone();
    let check = rule(32 * 12, move |got: &[u32]| {
        let word = |i: usize| {
            u32::from_le_bytes([words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]])
        };
        let split =
            |format: Format, word: u32| [word & 0xffff, word >> 16].map(|bits| format.value(bits.into()));
        let join = |format: Format, x: [f64; 2]| format.bits(x[0]) as u32 | (format.bits(x[1]) as u32) << 16;
        for t in 0..32 {
            let (xw, yw) = (word(t), word(t + 32));
            let (x, y) = (split(F16, xw), split(F16, yw));
            let (u, v) = (split(Bf16, xw), split(Bf16, yw));
            let each = |format, of: &dyn Fn(usize) -> f64| join(format, [of(0), of(1)]);
            let flag = |yes: bool| f64::from(u8::from(yes));
            let exact = [
                (2, each(F16, &|k| (x[k] * y[k] + x[k]).max(0.0))),
                (3, each(Bf16, &|k| u[k].mul_add(v[k], u[k]))),
                (4, each(F16, &|k| x[k].min(y[k]))),
                (5, each(F16, &|k| x[k].max(y[k]))),
                (6, each(F16, &|k| (x[k] + y[k]).clamp(0.0, 1.0))),
                (7, each(F16, &|k| flag(x[k] > y[k]))),
                (8, (if x[0] < y[0] { 1 } else { 2 }) | u32::from(x[1] < y[1]) << 2),
                (10, xw ^ 0x8000_8000),
            ];
            for (slot, want) in exact {
                if got[12 * t + slot] != want {
                    return Err(format!(
                        "lane {t}, result {slot}: 0x{:08x}, expected 0x{want:08x}",
                        got[12 * t + slot]
                    ));
                }
            }
            let near = |slot: usize, of: fn(f64) -> f64, bound: f64| {
                let got = split(F16, got[12 * t + slot]);
                let off = (0..2).find(|&k| (got[k] - of(x[k])).abs() > bound * of(x[k]).abs().max(0.25));
                off.map_or(Ok(()), |k| {
                    Err(format!("lane {t}, result {slot}: {}, expected {}", got[k], of(x[k])))
                })
            };
            near(0, f64::exp2, 2f64.powi(-9))?;
            near(1, f64::tanh, 2f64.powi(-9))?;
        }
        Ok(())
    });
    launch("asm_half", 1, 32).input(&input).output(check)
}

fn floats() -> Case {
    let mut rng = Rng::new(1312);
    let (a, d) = (rng.f32s(64, 0.1, 2.0), rng.f64s(32, 0.1, 2.0));
    let singles = (0..32).map(|t| {
        let (x, y) = (f64::from(a[t]), f64::from(a[t + 32]));
        let near = |z: f64, bound: f64| (z, bound);
        let p = x < y;
        vec![
            near(x.tanh(), 6e-4 * x.tanh()),
            near(x.sin(), 1e-6),
            near(1.0 / x, 2.0 * F32.unit() / x),
            near(1.0 / x.sqrt(), 4.0 * F32.unit() / x.sqrt()),
            near(x / y, 4.0 * F32.unit() * x / y),
            near(x / y, 4.0 * F32.unit() * x / y),
            exact(x.min(y)),
            exact(x.max(y)),
            // The sign of the first, the size of the second.
            exact(y),
            exact((x * y + 0.5).min(1.0)),
            exact(if t >= 16 { x } else { y }),
            // The second predicate is the comparison's complement.
            exact(if p { -x } else { y }),
            exact(1.0),
            exact(0.0),
        ]
    });
    let singles = slots(F32, singles);
    let lo = |x: f64| {
        // Rounded down: the product is split exactly.
        let p = x * x;
        let sum = p + 1.5;
        let rest = x.mul_add(x, -p) + (p - (sum - 1.5));
        if rest < 0.0 { sum.next_down() } else { sum }
    };
    let doubles = (0..32).map(|t| {
        let u = d[t];
        vec![
            (1.0 / u, 2f64.powi(-19) / u),
            (1.0 / u.sqrt(), 2f64.powi(-19) / u.sqrt()),
            exact(lo(u)),
            exact(u),
        ]
    });
    let doubles = slots(F64, doubles);
    launch("asm_float", 1, 32).input(&a).input(&d).output(singles).output(doubles)
}

/// One warp; `select` chooses the bytes of the permutations.
fn data(select: u32) -> Case {
    let mut rng = Rng::new(1313 + u64::from(select));
    let input: Vec<[u32; 4]> = (0..32).map(|_| [rng.u32(), rng.u32(), rng.u32(), rng.u32() % 40]).collect();
    // A 128-bit register is packed from two halves and unpacked into them the other way round.
    let swapped: Vec<[u32; 4]> = input.iter().map(|&[x, y, z, w]| [z, w, x, y]).collect();
    let half = |row: usize, column: usize| swapped[4 * row + column / 2][0] >> (16 * (column % 2)) & 0xffff;
    let above = swapped.iter().filter(|v| v[1] > 7).count() as u32;
    let mut words = vec![0u32; 300];
    for (t, &[x, y, z, _]) in swapped.iter().enumerate() {
        let both = u64::from(y) << 32 | u64::from(x);
        let pair = x >> (16 * (select & 1)) & 0xffff;
        let product = (z & 0xffff) * (z >> 16);
        words[6 * t..6 * t + 6].copy_from_slice(&[
            half(2 * (t % 4), t / 4) | half(2 * (t % 4) + 1, t / 4) << 16,
            above,
            u32::from(above == 32),
            (both >> (8 * (select & 3))) as u32,
            pair | pair << 16,
            product.abs_diff(z).wrapping_add(3),
        ]);
        words[256 + t] = input[0][0];
    }
    words[200] = words[0];
    words[299] = input[0][2] << 24;
    let case = launch("asm_data", 1, 32).input(&input).output(exactly(&swapped));
    case.inout(&[0u32; 300], exactly(&words)).scalar(select)
}
