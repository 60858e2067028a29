//! Transposes and gathers, histograms, and atomics of every kind.

use crate::case::{Case, Expect, File, Source, any_order, exactly, launch, rule, source};
use crate::data::{Format, Rng, bytes};
use Format::{Bf16, F16};

pub(crate) const SOURCES: &[Source] = &[
    source("transpose.nvcc", transpose),
    source("transpose.triton", transpose_triton),
    source("gather_flip.triton", gather_flip),
    source("histogram.nvcc", histogram),
    source("histogram.triton", histogram_triton),
    source("histogram.numba", histogram_numba),
    source("atomics.nvcc", atomics),
    source("atomics.triton", atomics_triton),
    source("atomics_hopper.nvcc", atomics_hopper),
    source("spmv.nvcc", spmv),
];

fn transposed<T: Copy>(x: &[T], w: usize, h: usize) -> Vec<T> {
    (0..w * h).map(|i| x[i % h * w + i / h]).collect()
}

fn transpose(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(401);
    let (w, h) = (45usize, 70usize);
    let f = rng.f32s(w * h, -1.0, 1.0);
    let d = rng.f64s(w * h, -1.0, 1.0);
    let b = rng.bytes(w * h);
    let n = 37usize;
    let square = rng.ints(n * n, -1000, 1000);
    let (ws, hs) = (w as i32, h as i32);
    vec![
        launch("transpose_f32", (2, 3), (32, 8))
            .input(&f)
            .output(exactly(&transposed(&f, w, h)))
            .scalar(ws)
            .scalar(hs),
        launch("transpose_f64", (3, 5), (16, 4))
            .input(&d)
            .output(exactly(&transposed(&d, w, h)))
            .scalar(ws)
            .scalar(hs),
        launch("transpose_u8", (2, 3), (32, 16))
            .input(&b)
            .output(exactly(&transposed(&b, w, h)))
            .scalar(ws)
            .scalar(hs),
        launch("transpose_inplace", (3, 5), (16, 8))
            .inout(&square, exactly(&transposed(&square, n, n)))
            .scalar(n as i32),
    ]
}

fn transpose_triton(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(402);
    let (rows, cols) = (48usize, 80usize);
    let x = rng.f32s(rows * cols, -1.0, 1.0);
    let case = launch("transpose", (2, 3), 128).input(&x).output(exactly(&transposed(&x, cols, rows)));
    vec![case.scalar(rows as i32).scalar(cols as i32).triton()]
}

fn gather_flip(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(403);
    let n = 32usize;
    let x = rng.f32s(n * n, -1.0, 1.0);
    let index: Vec<i32> = rng.ints(n * n, 0, 32);
    let gathered = |r: usize, c: usize| x[r * n + index[r * n + c] as usize];
    let mut want = vec![0f32; n * n];
    for r in 0..n {
        for c in 0..n {
            // The reshape of a square is the square.
            want[c * n + r] = gathered(r, n - 1 - c) + x[c * n + r];
        }
    }
    vec![launch("gather_flip", 1, 128).input(&x).input(&index).output(exactly(&want)).triton()]
}

fn counts<T: Copy>(x: &[T], bins: usize, of: impl Fn(T) -> usize) -> Vec<u32> {
    let mut counts = vec![0; bins];
    x.iter().for_each(|&x| counts[of(x)] += 1);
    counts
}

fn histogram(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(404);
    let n = 3000usize;
    let data: Vec<u8> = rng.bytes(n).iter().map(|x| x & 0x77).collect();
    let keys: Vec<i32> = rng.ints(n, 0, 9);
    let bytes = counts(&data, 256, usize::from);
    vec![
        launch("histogram_global", 3, 128).input(&data).inout(&[0u32; 256], exactly(&bytes)).scalar(n as i32),
        launch("histogram_shared", 3, 96)
            .input(&data)
            .inout(&[0u32; 256], exactly(&bytes))
            .scalar(n as i32 / 4),
        launch("histogram_match", 24, 128)
            .input(&keys)
            .inout(&[0u32; 9], exactly(&counts(&keys, 9, |key| key as usize)))
            .scalar(n as i32),
    ]
}

fn histogram_triton(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(405);
    let n = 1200usize;
    let x = rng.ints(n, 0, 128);
    let want = counts(&x, 128, |x| x as usize);
    let case = launch("histogram", 3, 128).input(&x).inout(&[0u32; 128], exactly(&want));
    vec![case.scalar(n as i32).triton()]
}

fn histogram_numba(file: &File) -> Vec<Case> {
    let mut rng = Rng::new(406);
    let n = 700usize;
    let x = rng.bytes(n);
    let mut want = counts(&x, 8, |x| usize::from(x & 7));
    want.extend([127, 1]);
    let mut case = launch(&file.entries[0], 2, 64);
    let input = case.add(Some(x), Expect::Same);
    let bins = case.add(Some(bytes(&[0i32; 10])), exactly(&want));
    vec![case.array(input, n, 1).array(bins, 10, 4)]
}

/// The values that 32 lanes saw, in any order, each lane's own slot.
fn seen<T: Copy + Ord + std::fmt::Debug>(got: &[T], mut want: Vec<T>, what: &str) -> Result<(), String> {
    let mut got = got.to_vec();
    got.sort();
    want.sort();
    if got == want { Ok(()) } else { Err(format!("{what}: {got:?}, expected in some order {want:?}")) }
}

fn atomics(file: &File) -> Vec<Case> {
    let mut rng = Rng::new(407);
    let v = 7i32;
    // add, sub, min, max, and, or, xor, exch, cas
    let p = [100, 100, 50, 3, 0x0f0f, 0x1010, 9, -5, 7];
    let after = rule(9, move |got: &[i32]| {
        let want = [100 + 32 * v, 100 - 32 * v, v, v, 0x0f0f & v, 0x1010 | v, 9, v];
        if got[..8] != want {
            return Err(format!("{got:?}, expected {want:?}"));
        }
        // The first lane to swap the 7 leaves its number; lane 7 may leave a 7 to be swapped again.
        if (0..32).contains(&got[8]) { Ok(()) } else { Err(format!("cas left {}", got[8])) }
    });
    let old = rule(7 * 32, move |got: &[i32]| {
        let part = |k: usize| &got[32 * k..32 * k + 32];
        seen(part(0), (0..32).map(|i| 100 + i * v).collect(), "add")?;
        seen(part(1), (0..32).map(|i| if i == 0 { 50 } else { v }).collect(), "min")?;
        seen(part(2), (0..32).map(|i| if i == 0 { 0x1010 } else { 0x1010 | v }).collect(), "or")?;
        seen(part(3), (0..32).map(|i| if i == 0 { -5 } else { v }).collect(), "exch")?;
        // dec of 0 wraps to 10: 3, 2, 1, 0, 10, 9, ...
        seen(part(5), (0..32).map(|i| (3 + 11 * 4 - i) % 11).collect(), "dec")?;
        seen(part(6), (0..32).map(|i| if i == 0 { 2 } else { v }).collect(), "max")
    });
    // inc counts 0..=10; dec as above; min and max of unsigned.
    let u = [4u32, 3, u32::MAX, 2];
    let u_after = [(4 + 32) % 11, ((3 + 11 * 4 - 32) % 11) as u32, 7, 7];
    let i32s = launch("atomics_i32", 1, 32).inout(&p, after).inout(&u, exactly(&u_after));
    let i32s = i32s.inout(&[0i32; 7 * 32], old).scalar(v);

    let big = 0x8000_0000_0000_0005u64;
    let (u64s, s64s) = ([1u64, 4, !0, 2, 6, 9, big], [40i64, -9]);
    let u64_after = rule(7, move |got: &[u64]| {
        let want = [1u64.wrapping_add(big.wrapping_mul(32)), big, big, 2 | big, 6, big];
        if got[..6] == want && got[6] < 32 { Ok(()) } else { Err(format!("{got:x?}, expected {want:x?}")) }
    });
    let s64_after = [big as i64, -9];
    let old64 = rule(5 * 32, move |got: &[u64]| {
        let part = |k: usize| &got[32 * k..32 * k + 32];
        seen(part(0), (0..32).map(|i| 1u64.wrapping_add(big.wrapping_mul(i))).collect(), "add")?;
        seen(part(1), vec![-9i64 as u64; 32], "max")?;
        seen(part(2), (0..32).map(|i| if i % 2 == 0 { 6 } else { 6 ^ big }).collect(), "xor")?;
        seen(part(3), (0..32).map(|i| if i == 0 { 9 } else { big }).collect(), "exch")
    });
    let i64s = launch("atomics_i64", 1, 32).inout(&u64s, u64_after).inout(&s64s, exactly(&s64_after));
    let i64s = i64s.inout(&[0u64; 5 * 32], old64).scalar(big);

    let sums = rule(3 * 32, |got: &[f32]| {
        let quarters = |x: &[f32]| x.iter().map(|x| (x * 4.0) as i32).collect::<Vec<i32>>();
        seen(&quarters(&got[..32]), (0..32).map(|i| 6 * i).collect(), "f32 add")?;
        seen(&quarters(&got[32..64]), (0..32).collect(), "f64 add")?;
        Ok(())
    });
    let floats = rule(3, |got: &[f32]| {
        let fine = got[0] == 48.0 && got[1] == 496.0 && (0.0..32.0).contains(&got[2]);
        if fine { Ok(()) } else { Err(format!("{got:?}")) }
    });
    let halves = |format: Format, x: &[f64]| Expect::Bytes(format.store(x));
    let mut cases = vec![
        i32s,
        i64s,
        launch("atomics_float", 1, 32)
            .inout(&[0f32, 0.0, -1.0], floats)
            .inout(&[0f64, 0.0], exactly(&[16f64, 8.0]))
            .inout(&[0u16; 2], halves(F16, &[32.0, 64.0]))
            .inout(&[0u16; 2], halves(F16, &[16.0, 0.0]))
            .inout(&[0f32; 96], sums),
    ];
    cases.push(if file.arch >= 80 {
        let low = rule(32, |got: &[f32]| {
            seen(&got.iter().map(|&x| x as i32).collect::<Vec<_>>(), (0..32).collect(), "bf16")
        });
        launch("atomics_bf16", 1, 32)
            .inout(&[0u16; 2], halves(Bf16, &[32.0, 64.0]))
            .inout(&[0u16; 2], halves(Bf16, &[16.0, 0.0]))
            .inout(&[-1f32; 32], low)
    } else {
        launch("atomics_bf16", 1, 32)
            .inout(&[0u16; 2], Expect::Same)
            .inout(&[0u16; 2], Expect::Same)
            .inout(&[0f32], Expect::Same)
    });

    let x: Vec<i32> = rng.ints(64, 1, 1000);
    let n = 50;
    let total: i32 = x[..n].iter().sum();
    let taken = x[..n].to_vec();
    let fold = |of: fn(i32, i32) -> i32, init| taken.iter().copied().fold(init, of);
    let (max, or, xor) = (fold(i32::max, 0), fold(|a, b| a | b, 0), fold(|a, b| a ^ b, 0));
    let shared = rule(64, move |got: &[i32]| {
        // Every slot has the 64-bit sum and the 16-bit winner on top; slot 7 has nothing else.
        let base = got[7];
        let winner = base - total;
        let least = taken.iter().copied().fold(i32::MAX, i32::min);
        let want = [total, max, least, or, xor];
        let first: Vec<i32> = got[..5].iter().map(|x| x.wrapping_sub(base)).collect();
        if first != want || !(0..n as i32).contains(&winner) {
            return Err(format!("{first:?} beside {winner}, expected {want:?}"));
        }
        let old = got[6] - base;
        let last = got[5] - base;
        let fine = taken.contains(&last) && (old == 0 || taken.contains(&old));
        if fine { Ok(()) } else { Err(format!("exchanged {last}, swapped {old}")) }
    });
    let i = |x: i32| x as f32;
    cases.push(
        launch("atomics_shared", 1, 64)
            .input(&x)
            .inout(&[0i32; 64], shared)
            .output(exactly(&[i(total)]))
            .scalar(n as i32),
    );
    cases.push(
        launch("atomics_scoped", 1, 64)
            .inout(&[0i32, 0, 1, 0, 7], exactly(&[64i32, 128, 3, 4, 5]))
            .inout(&[1u64], exactly(&[2u64]))
            .inout(&[0f32], exactly(&[64f32])),
    );
    let f = rng.f32s(300, 0.0, 1000.0);
    let best = f.iter().copied().fold(0f32, f32::max);
    cases.push(launch("atomic_max_float", 3, 128).input(&f).inout(&[0f32], exactly(&[best])).scalar(300i32));
    cases
}

fn atomics_triton(_: &File) -> Vec<Case> {
    let n = 100i32;
    let init = [[-1i32; 8], [1000; 8], [-1; 8], [0; 8], [0; 8]];
    let mut want = init;
    for i in 0..n {
        let k = (i % 8) as usize;
        want[0][k] = want[0][k].max(i);
        want[1][k] = want[1][k].min(i);
        want[2][k] &= i;
        want[3][k] |= i;
        want[4][k] ^= i;
    }
    let floats = rule(8 + 128, move |got: &[f32]| {
        for k in 0..4 {
            let terms: Vec<i32> = (0..n).filter(|i| i % 4 == k as i32).collect();
            let total: i32 = terms.iter().sum();
            if got[k] as i32 != total {
                return Err(format!("sum {k} is {}, expected {total}", got[k]));
            }
            // The last to add saw the sum without its own number.
            if !terms.iter().any(|i| got[4 + k] as i32 == total - i) {
                return Err(format!("the largest sum seen in {k} is {}", got[4 + k]));
            }
        }
        Ok(())
    });
    let mut f = vec![0f32; 8 + 128];
    f[8..].iter_mut().enumerate().for_each(|(i, x)| *x = i as f32);
    let swapped: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let case = launch("atomics", 1, 128).inout(&init, exactly(&want)).inout(&f, floats);
    vec![case.output(exactly(&swapped)).scalar(n).triton()]
}

fn atomics_hopper(_: &File) -> Vec<Case> {
    let vectors = rule(4 * 64, |got: &[f32]| {
        for k in 0..4 {
            let column: Vec<i32> = got.chunks(4).map(|v| v[k] as i32).collect();
            seen(&column, (0..64).map(|i| i * (k as i32 + 1)).collect(), "vector add")?;
        }
        Ok(())
    });
    let n = 40usize;
    // Four keys share each slot: one stays, the others find it and note it.
    let pairs: Vec<[u64; 2]> = (0..n as u64).map(|i| [i % 10 + 1 + 64 * (i / 10), 1000 + i]).collect();
    let known = pairs.clone();
    let slots = rule(64 + n, move |got: &[[u64; 2]]| {
        let (table, noted) = got.split_at(64);
        for (slot, &held) in table.iter().enumerate() {
            let rivals = (1..=10).contains(&slot);
            if held != [0, 0] && !(known.contains(&held) && held[0] % 64 == slot as u64)
                || rivals == (held == [0, 0])
            {
                return Err(format!("slot {slot} holds {held:?}"));
            }
        }
        for (i, &seen) in noted.iter().enumerate() {
            let holder = table[(known[i][0] % 64) as usize];
            let won = holder == known[i];
            if seen != if won { [0, 0] } else { holder } {
                return Err(format!("thread {i} noted {seen:?} in the slot of {holder:?}"));
            }
        }
        Ok(())
    });
    vec![
        launch("atomics_vector", 1, 64)
            .inout(&[0f32; 4], exactly(&[64f32, 128.0, 192.0, 256.0]))
            .inout(&[0f32; 2], exactly(&[32f32, 16.0]))
            .output(vectors),
        launch("atomics_128", 1, 64).inout(&vec![[0u64; 2]; 64 + n], slots).input(&pairs).scalar(n as i32),
        red_packed(),
    ]
}

/// One thread reduces the same words as numbers of four types, one after the other.
fn red_packed() -> Case {
    let join = |format: Format, x: [f64; 2]| format.bits(x[0]) as u32 | (format.bits(x[1]) as u32) << 16;
    let split = |format: Format, word: u32| [word & 0xffff, word >> 16].map(|bits| format.value(bits.into()));
    let both = |format, a: u32, b: u32, of: fn(f64, f64) -> f64| {
        let (a, b) = (split(format, a), split(format, b));
        join(format, [of(a[0], b[0]), of(a[1], b[1])])
    };
    let with = [[1.5, -2.25], [0.75, 3.0], [-1.0, 0.5], [8.0, -0.125]].map(|x| join(F16, x));
    let before = [[0.5, 4.0], [2.0, -7.0], [1.0, 0.25], [-3.0, 1.0]].map(|x| join(F16, x));
    let mut words = before;
    words[0] = both(F16, words[0], with[0], |a, b| a + b);
    (0..4).for_each(|i| words[i] = both(Bf16, words[i], with[i], |a, b| a + b));
    (0..2).for_each(|i| words[i] = both(F16, words[i], with[i], f64::min));
    let wide = u64::from(words[1]) << 32 | u64::from(words[0]);
    let wide = wide.max(u64::from(with[0]) + 5 * u64::from(with[1]));
    (words[0], words[1]) = (wide as u32, (wide >> 32) as u32);
    let case = launch("red_packed", 1, 1).inout(&before, exactly(&words));
    with.into_iter().fold(case, Case::scalar)
}

fn spmv(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(408);
    let (rows, cols) = (67usize, 50i64);
    let mut start = vec![0i32];
    let (mut col, mut val) = (Vec::new(), Vec::new());
    for row in 0..rows {
        for _ in 0..if row == 5 { 90 } else { rng.int(0, 9) } {
            col.push(rng.int(0, cols) as i32);
            // Small integers: sums are exact in any order.
            val.push(rng.int(-9, 10) as f32);
        }
        start.push(col.len() as i32);
    }
    let x: Vec<f32> = (0..cols).map(|_| rng.int(-9, 10) as f32).collect();
    let row_of = |at: usize| start.partition_point(|&s| s as usize <= at) - 1;
    let mut y = vec![0f32; rows];
    (0..col.len()).for_each(|j| y[row_of(j)] += val[j] * x[col[j] as usize]);
    let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
    let coordinates: Vec<[i32; 2]> = (0..col.len()).map(|j| [row_of(j) as i32, col[j]]).collect();
    let n = rows as i32;

    // One level of a breadth-first search from nodes 0, 1 and 2.
    let mut dist = vec![-1i32; 100];
    dist[..3].fill(0);
    let frontier = [0i32, 1, 2];
    let mut reached: Vec<i32> = (start[0]..start[3]).map(|j| col[j as usize] + 10).collect();
    let adjacent: Vec<i32> = col.iter().map(|c| c + 10).collect();
    reached.sort();
    reached.dedup();
    let mut after = dist.clone();
    reached.iter().for_each(|&v| after[v as usize] = 1);
    let count = reached.len() as i32;
    let mut next = reached;
    next.resize(100, -1);
    let csr = |entry, grid, block| launch(entry, grid, block).input(&start).input(&col);
    vec![
        csr("spmv_csr", 3, 32).input(&val).input(&x).output(exactly(&y)).scalar(n),
        csr("spmv_csr_warp", 17, 128)
            .input(&wide(&val))
            .input(&wide(&x))
            .output(exactly(&wide(&y)))
            .scalar(n),
        launch("spmv_coo", 10, 64)
            .input(&coordinates)
            .input(&val)
            .input(&x)
            .inout(&vec![0f32; rows], exactly(&y))
            .scalar(col.len() as i32),
        launch("bfs_level", 1, 32)
            .input(&start)
            .input(&adjacent)
            .inout(&dist, exactly(&after))
            .inout(&[-1i32; 100], any_order(next))
            .inout(&[0i32], exactly(&[count]))
            .input(&frontier)
            .scalar(3i32)
            .scalar(1i32),
    ]
}
