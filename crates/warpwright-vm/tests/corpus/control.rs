//! Control flow, calls, parameters, variables of a module, local memory, the device runtime.

use crate::case::{Case, Expect, File, Source, exactly, launch, rule, source, within};
use crate::data::{Format, Rng, bytes};
use Format::F32;

pub(crate) const SOURCES: &[Source] = &[
    source("control_flow.nvcc", control_flow),
    source("indirect_calls.nvcc", indirect_calls),
    source("jump_table.nvcc", jump_table),
    source("dispatch.nvcc", dispatch),
    source("struct_calls.nvcc", struct_calls),
    source("structs.clang", structs_clang),
    source("alias_c.clang", aliases),
    source("variadic_alloca.nvcc", variadic_alloca),
    source("globals.nvcc", globals),
    source("shared_dynamic.nvcc", shared_dynamic),
    source("big_params.nvcc", big_params),
    source("printf_assert.nvcc", printf_assert),
    source("print_assert.triton", print_assert),
    source("print_errors.numba", print_errors),
];

fn control_flow(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1501);
    let n = 150usize;
    let starts: Vec<u64> = (1..=n as u64).map(|x| x * x).collect();
    let collatz = |mut v: u64| {
        let mut k = 0u32;
        while v != 1 && k < 10000 {
            v = if v % 2 == 1 { 3 * v + 1 } else { v / 2 };
            k += 1;
        }
        k
    };
    let steps: Vec<u32> = starts.iter().map(|&v| collatz(v)).collect();

    let limit = 1000usize;
    let composite: Vec<u8> = (0..limit).map(|m| u8::from((2..m).any(|d| d * d <= m && m % d == 0))).collect();
    // Two primes may mark one number: both write 1.
    let sieve = launch("sieve", 1, 64).inout(&vec![0u8; limit], exactly(&composite)).scalar(limit as i32);

    let (threads, length) = (40usize, 60usize);
    let input = rng.ints(threads * length, -20, 60);
    let machine = |t: usize| {
        let (mut state, mut acc) = (0, 0i32);
        for i in 0..length {
            let v = input[i * threads + t];
            if state == 0 && v > 0 {
                state = 1;
            }
            match state {
                0 => acc = acc.wrapping_sub(v),
                1 if v < 5 || (v & 1 == 1 && acc > 100) => {
                    state = 2;
                    continue;
                }
                1 => acc = acc.wrapping_add(v),
                _ => {
                    acc = if v != 0 { acc / v } else { acc };
                    state = 0;
                }
            }
            if acc > 1_000_000 {
                break;
            }
        }
        acc
    };
    let states: Vec<i32> = (0..threads).map(machine).collect();

    let mut sorted = rng.f32s(77, -10.0, 10.0);
    sorted.sort_by(f32::total_cmp);
    let queries: Vec<f32> =
        (0..n).map(|i| if i % 3 == 0 { sorted[i % 77] } else { rng.f64(-11.0, 11.0) as f32 }).collect();
    let places: Vec<i32> = queries.iter().map(|q| sorted.partition_point(|x| x < q) as i32).collect();

    let special = [0.0, -0.0, 1.0, -1.5, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40, 2.0];
    let (x, y): (Vec<f32>, Vec<f32>) = (0..81).map(|i| (special[i / 9], special[i % 9])).unzip();
    let flags: Vec<i32> = x
        .iter()
        .zip(&y)
        .map(|(&x, &y)| {
            #[allow(clippy::eq_op, clippy::nonminimal_bool, clippy::neg_cmp_op_on_partial_ord)]
            let flags = [
                x < y,
                x <= y,
                x > y,
                x >= y,
                x == y,
                x != y,
                !(x < y),
                !(x >= y),
                x != x,
                x < y && y > 0.0,
                (x < y) ^ (x > 2.0 * y),
            ];
            flags.iter().enumerate().map(|(i, &flag)| i32::from(flag) << i).sum()
        })
        .collect();

    let (w, h) = (21usize, 17usize);
    let cells: Vec<u8> = (0..w * h).map(|_| u8::from(rng.int(0, 3) == 0)).collect();
    let alive = |i: usize| {
        let (x, y) = (i % w, i / w);
        let near =
            (0..9).filter(|&k| k != 4).map(|k| cells[(y + h + k / 3 - 1) % h * w + (x + w + k % 3 - 1) % w]);
        let count: u8 = near.sum();
        u8::from(count == 3 || (count == 2 && cells[i] == 1))
    };
    let next: Vec<u8> = (0..w * h).map(alive).collect();
    vec![
        launch("collatz", 3, 64).input(&starts).output(exactly(&steps)).scalar(n as i32),
        sieve,
        launch("state_machine", 1, threads as u32)
            .input(&input)
            .output(exactly(&states))
            .scalar(length as i32),
        launch("binary_search", 3, 64)
            .input(&sorted)
            .scalar(77i32)
            .input(&queries)
            .output(exactly(&places))
            .scalar(n as i32),
        launch("unordered", 2, 64).input(&x).input(&y).output(exactly(&flags)).scalar(81i32),
        launch("game_of_life", (3, 3), (8, 8))
            .input(&cells)
            .output(exactly(&next))
            .scalar(w as i32)
            .scalar(h as i32),
    ]
}

fn indirect_calls(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1502);
    let n = 100usize;
    // Quarters: every step is exact.
    let quarter = |rng: &mut Rng| rng.int(-40, 40) as f32 / 4.0;
    let a: Vec<f32> = (0..n).map(|_| quarter(&mut rng)).collect();
    let b: Vec<f32> = (0..n).map(|_| quarter(&mut rng)).collect();
    let code = rng.ints(n, 0, 8);
    let applied: Vec<f32> = (0..n)
        .map(|i| {
            let (x, y) = (a[i], b[i]);
            let first = [x + y, x * y, x.max(y), y - x][(code[i] & 3) as usize];
            first + if i % 2 == 0 { x } else { x + 1.0 }
        })
        .collect();
    let areas = a[..50].iter().map(|&x| {
        let x = f64::from(x);
        let area = if x > 0.0 { 1.5 * x * 3.0 } else { std::f64::consts::PI * (1.5 * x).powi(2) };
        (area, 2.0 * F32.unit() * area)
    });
    let areas = within(F32, areas.collect::<Vec<_>>());
    let x = rng.ints(20, -1000, 1000);
    let k = 31i32;
    let folds: Vec<i32> = (0..40)
        .flat_map(|t| {
            let sum = x.iter().fold(0i32, |a, b| a.wrapping_mul(k).wrapping_add(*b));
            [sum, x.iter().fold(1, |a, b| a ^ b << (t & 7))]
        })
        .collect();
    let apply = launch("apply_ops", 2, 64).input(&a).input(&b).input(&code).output(exactly(&applied));
    vec![
        apply.scalar(n as i32),
        launch("shapes", 1, 64).input(&a[..50]).output(areas).scalar(50i32),
        launch("lambdas", 1, 40).input(&x).output(exactly(&folds)).scalar(20i32).scalar(k),
    ]
}

fn jump_table(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1503);
    let n = 100usize;
    let mut code: Vec<u8> = (0..60).map(|i| if i % 7 == 0 { 4 } else { (rng.u32() % 14) as u8 }).collect();
    code.iter_mut().take(40).filter(|op| **op == 11).for_each(|op| *op = 2);
    let input = rng.ints(n, -100_000, 100_000);
    let run = |i: usize| {
        let (mut acc, mut reg, mut pc) = (input[i], i as i32, 0);
        while pc < code.len() {
            match code[pc] {
                0 => acc = acc.wrapping_add(reg),
                1 => acc = acc.wrapping_sub(reg),
                2 => acc = acc.wrapping_mul(3),
                3 => acc ^= reg << 3,
                4 => reg = acc,
                5 => acc = acc.count_ones() as i32,
                6 => acc = acc.wrapping_abs(),
                7 => reg = input[acc as u32 as usize % n],
                8 => acc = acc.reverse_bits(),
                9 => pc += usize::from(acc & 1 == 1),
                10 => (acc, reg) = (reg, acc),
                11 => return acc,
                _ => acc = !acc,
            }
            pc += 1;
        }
        acc
    };
    let results: Vec<i32> = (0..n).map(run).collect();
    let text: Vec<u8> = (0..=255).collect();
    let class = |c: u8| match c {
        b' ' | b'\t' | b'\n' => 1,
        b'+' | b'-' => 2,
        b'*' | b'/' | b'%' => 3,
        b'0'..=b'9' => 4,
        b'(' => 5,
        b')' => 6,
        _ => 0,
    };
    let classes: Vec<u8> = text.iter().map(|&c| class(c)).collect();
    let machine = launch("bytecode", 2, 64).input(&code).scalar(code.len() as i32).input(&input);
    vec![
        machine.output(exactly(&results)).scalar(n as i32),
        launch("classify", 4, 64).input(&text).output(exactly(&classes)).scalar(256i32),
    ]
}

fn dispatch(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1504);
    let n = 120usize;
    let op: Vec<i32> = (0..n).map(|_| rng.int(-1, 18) as i32).collect();
    let mem = rng.ints(16 * n, -50, 5000);
    let slow =
        |x: i32, k: i32| ((x as u32).wrapping_mul(2_654_435_761) >> (k & 7)).wrapping_add(k as u32) as i32;
    let mut want = mem.clone();
    for (m, &op) in want.chunks_mut(16).zip(&op) {
        match op {
            0 => m[0] += m[1],
            1 => (m[3], m[4]) = (slow(m[2], 1), 7),
            2 => (0..16).for_each(|i| m[i] = m[15 - i] ^ i as i32),
            3 => m[5] += m[6],
            4 => m[7] = (m[8].count_ones() as i32).wrapping_mul(m[9]),
            5 => m[10] = slow(m[11], m[12]),
            6 if m[13] > 3 => m[14] = 1,
            6 => m[15] = 2,
            7 => {
                while m[0] > 10 {
                    m[0] /= 3;
                }
            }
            8 => (m[1], m[2]) = (m[2] % (m[3] | 1), 0),
            9 => (m[4], m[6]) = (m[5].leading_zeros() as i32, slow(4, 5)),
            10 => m.swap(8, 9),
            // The root of a negative number is a NaN, which converts to 0.
            11 => m[12] = (m[13] as f32).sqrt() as i32,
            12 => m[2] = m[2].max(m[1]),
            13 => m[15] = m[14] << (m[13] & 31),
            14 => {
                (m[0], m[1]) = (0, 1);
                (2..16).for_each(|i| m[i] = m[i - 1] + m[i - 2]);
            }
            15 => m[3] = -m[3],
            _ => (m[0], m[15]) = (-1, op),
        }
    }
    vec![launch("dispatch", 2, 64).input(&op).inout(&mem, exactly(&want)).scalar(n as i32)]
}

fn cross(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// Small integers: products and their sums are exact.
fn vectors(rng: &mut Rng, n: usize) -> Vec<[f32; 3]> {
    (0..n).map(|_| std::array::from_fn(|_| rng.int(-20, 20) as f32)).collect()
}

/// Records of `size` bytes whose fields, but not the gaps between them, must be as in `want`.
fn records(want: Vec<u8>, size: usize, gaps: &'static [usize]) -> Expect {
    let length = want.len();
    let check = move |got: &[u8]| {
        let wrong = (0..length).find(|at| !gaps.contains(&(at % size)) && got[*at] != want[*at]);
        let show = |at: usize| {
            let record = at / size * size;
            let of = |bytes: &[u8]| format!("{:02x?}", &bytes[record..record + size]);
            format!("record {}, byte {}: {}, expected {}", at / size, at % size, of(got), of(&want))
        };
        wrong.map_or(Ok(()), |at| Err(show(at)))
    };
    Expect::Rule(Box::new(check), length)
}

fn struct_calls(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1505);
    let n = 40usize;
    let (a, b) = (vectors(&mut rng, n), vectors(&mut rng, n));
    let crossed: Vec<[f32; 3]> = (0..n)
        .map(|i| {
            let c = cross(a[i], b[i]);
            let mixed = f64::from(c[1]) * f64::from(c[2]) + i as f64 + f64::from(c[0]);
            [c[0] + mixed as f32, c[1], c[2]]
        })
        .collect();
    let (mut big, mut big_after) = (Vec::new(), Vec::new());
    let (mut mixed, mut mixed_after) = (Vec::new(), Vec::new());
    let (mut quads, mut quads_after) = (Vec::<[i32; 4]>::new(), Vec::<[i32; 4]>::new());
    for i in 0..n {
        let k = (3 * i) as u8;
        let d = rng.f64s(5, -1.0, 1.0);
        let (tag, name) = (rng.u32(), rng.bytes(7));
        big.extend([bytes(&d), bytes(&[tag]), name.clone(), vec![0; 5]].concat());
        let mut changed = name;
        changed[usize::from(k) % 7] = b'x';
        let raised: Vec<f64> = d.iter().map(|d| d + f64::from(k)).collect();
        big_after.extend([bytes(&raised), bytes(&[tag ^ u32::from(k)]), changed, vec![0; 5]].concat());

        let (c, s, word, l, flag) =
            (rng.u32() as u8, rng.u32() as i16, rng.u32(), rng.u64() as i64 >> 2, rng.u32() as u8 & 1);
        let record = |into: &mut Vec<u8>, c: u8, s: i16, word: u32, l: i64, flag: u8| {
            into.extend(
                [vec![c, 0], bytes(&[s]), bytes(&[word]), bytes(&[l]), vec![flag, 0, 0, 0, 0, 0, 0, 0]]
                    .concat(),
            );
        };
        record(&mut mixed, c, s, word, l, flag);
        let l = if i % 2 == 1 { l << 1 } else { -l };
        record(&mut mixed_after, c.wrapping_add(3), s.wrapping_sub(5), word ^ 250, l, 1 - flag);

        let q: [i32; 4] = std::array::from_fn(|_| rng.u32() as i32);
        quads.push(q);
        quads_after.push([q[1], q[2], q[3], q[0]]);
    }
    let case = launch("struct_calls", 2, 32).input(&a).input(&b).output(exactly(&crossed));
    let case = case.inout(&big, records(big_after, 56, &[51, 52, 53, 54, 55]));
    let case = case.inout(&mixed, records(mixed_after, 24, &[1, 17, 18, 19, 20, 21, 22, 23]));
    vec![case.inout(&quads, exactly(&quads_after)).scalar(n as i32)]
}

fn structs_clang(file: &File) -> Vec<Case> {
    let mut rng = Rng::new(1506);
    let n = 40usize;
    let (a, b) = (vectors(&mut rng, n), vectors(&mut rng, n));
    let crossed: Vec<[f32; 3]> = (0..n).map(|i| cross(a[i], b[i])).collect();
    let record = |tag: i8, s: i16, big: i64, d: &[f64]| {
        [bytes(&[tag]), vec![0], bytes(&[s]), vec![0; 4], bytes(&[big]), bytes(d)].concat()
    };
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for i in 0..n {
        let k = i & 7;
        let (tag, s, big, mut d) =
            (rng.u32() as i8, rng.u32() as i16, rng.u64() as i64, rng.f64s(3, -1.0, 1.0));
        before.extend(record(tag, s, big, &d));
        d[k % 3] *= 2.0;
        after.extend(record(tag.wrapping_add(k as i8), s.wrapping_sub(k as i16), big ^ k as i64, &d));
    }
    let calls = launch("struct_calls", 2, 32).input(&a).input(&b).output(exactly(&crossed));
    let calls = calls.inout(&before, records(after, 40, &[1, 4, 5, 6, 7])).scalar(n as i32);

    // An old clang leaves the pointer of case 5 empty.
    let codes: Vec<i32> =
        (0..90).map(|i| i % 9).map(|c| if c == 5 && file.name.contains("clang14") { 6 } else { c }).collect();
    let names = [b"first\0\0\0", b"second\n\0"];
    let results: Vec<i32> = codes
        .iter()
        .enumerate()
        .map(|(at, &code)| {
            let i = at as i32;
            let v = if code & 1 == 1 { i + 1 } else { i * 2 };
            match code {
                0 => v + [2, 3, 5, 7, 11, 13, 17, 19][at & 7],
                1 => v * 3,
                2 => v ^ [100, 50, -25, 0][at & 3],
                3 => 2 * (i & 3) + 3,
                4 => i32::from(names[at & 1][at % 5]),
                5 => 0,
                6 => v.count_ones() as i32,
                7 => v / (i + 1),
                _ => -1,
            }
        })
        .collect();
    let tables = launch("tables", 3, 32).input(&codes).output(exactly(&results)).scalar(90i32);

    let d = [1.5f64, -2.25, 1e10];
    let values: Vec<f64> = (0..9).map(|t| d[t % 3] + 0.75 + 1_000_000_007.0 + 65.0).collect();
    let by_value = launch("by_value", 1, 9).raw(&record(65, -3, 1_000_000_007, &d), &[]);
    let by_value = by_value.raw(&[0.25f32, 0.5, 0.75], &[]).output(exactly(&values));
    vec![calls, tables, by_value]
}

fn aliases(_: &File) -> Vec<Case> {
    let n = 30i32;
    let want: Vec<i32> =
        (0..n).map(|t| (t * 3 + n) + (t - 4) + (t + 2 + n + t * 5 + 2 + (t & 1) + n)).collect();
    vec![launch("aliases", 1, 32).output(exactly(&want)).scalar(n)]
}

fn variadic_alloca(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1507);
    let sums: Vec<f64> = (0..40).map(|t| f64::from(t) * 1.5 + f64::from(t) * 2f64.powi(33) + 17.0).collect();
    let counts = rng.ints(40, 0, 1000);
    let stacked: Vec<i32> = counts
        .iter()
        .map(|n| {
            let mut v = vec![1i32];
            (1..=n & 63).for_each(|i| v.push((v[i as usize - 1] * 5 + i) % 1009));
            v.iter().rev().fold(0, |s: i32, v| s.wrapping_mul(3).wrapping_add(*v))
        })
        .collect();
    let x = rng.ints(64, 0, 1000);
    let n = 11i32;
    let mut s: i32 = x[..11].iter().sum();
    x[..11].iter().enumerate().for_each(|(i, x)| s ^= x * i as i32);
    let returned: Vec<i32> = x.iter().map(|x| [1, 5, 9, -2][(x & 3) as usize] + s).collect();
    let mut bad = x.clone();
    bad[17] = -1;
    let dies = launch("no_return", 1, 64).input(&bad).inout(&[0i32; 64], exactly(&[0i32; 64])).scalar(n);
    vec![
        launch("variadic", 1, 40).output(exactly(&sums)),
        launch("stack_alloc", 1, 40).input(&counts).output(exactly(&stacked)),
        launch("no_return", 1, 64).input(&x).output(exactly(&returned)).scalar(n),
        dies.traps(&["trap"]),
    ]
}

fn globals(_: &File) -> Vec<Case> {
    let n = 60usize;
    let table = [1.5f32, -2.25, 3.0e-5, 1e20].map(f64::from);
    let pi = [std::f64::consts::PI, -0.0, 1e-310];
    let grid = [[1, 2, 3, 4], [5, 6, 0, 0], [-7, 0, 0, 0]];
    let text = b"hello, \"quoted\"\n\ttab\\ \x7f end\0";
    let words = [b"alpha\0", b"beta\0\0", b"gamma\0"];
    let value = |i: usize| {
        let first = table[i & 3]
            + pi[i % 3]
            + f64::from(grid[i % 3][i & 3])
            + 0.5 * -1.25
            + [1.0, -2.0, 3.0][i % 3]
            + table[1];
        let list = 10 + 20 + 30;
        let more = list + [1, 0, 255, 128, 7][i % 5] + [-1, -32768][i & 1] + 1 + grid[1][2] + 42;
        first + f64::from(more)
    };
    let values: Vec<f64> = (0..n).map(value).collect();
    let chars: Vec<u8> = (0..n)
        .flat_map(|i| {
            [text[i % text.len()], words[i % 3][i % 4], b"configured"[i % 10].wrapping_add(b"tag"[i % 3])]
        })
        .collect();
    let threads = 20u64;
    let buffer: Vec<i32> = (0..32).map(|i| if i < 20 { i } else { 0 }).collect();
    let counter = 0x0123_4567_89ab_cdefu64 + threads * (threads - 1) / 2;
    let write = launch("write_globals", 1, 32)
        .scalar(threads as i32)
        .global("big_counter", None, exactly(&[counter]))
        .global("aligned_buf", None, exactly(&buffer))
        .global("ready", None, exactly(&[0u8]));
    vec![
        launch("read_globals", 1, 64).output(exactly(&values)).output(exactly(&chars)).scalar(n as i32),
        write,
    ]
}

fn shared_dynamic(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1508);
    let (m, n) = (100usize, 90usize);
    let x: Vec<f32> = (0..n).map(|_| rng.int(0, 160) as f32 / 16.0).collect();
    let f = |i: usize| if i % m < n { x[i % m] } else { 0.0 };
    let q = |i: usize| (f(i) * 16.0) as i32;
    let carved: Vec<i32> = (0..n).map(|i| q(i + 1) + (q(i + 2) & 255) + f(i + 3) as i32).collect();
    let carve = launch("carve", 1, 64).shared((9 * m) as u32).input(&x).output(exactly(&carved));

    let index = rng.ints(20, 0, 1000);
    let count = 10usize;
    let local: Vec<f32> = (0..32)
        .map(|t| {
            let mut a: Vec<f32> = (0..24).map(|k| k as f32 * 1.5 + t as f32).collect();
            let mut h: Vec<u16> = (0..10).map(|k| k * k).collect();
            for k in 0..count {
                let at = |k: usize| index[k] as usize % 24;
                a[at(k)] += a[at(k + count)];
                h[index[k] as usize % 10] ^= 5;
            }
            let sum: f32 = (0..24).map(|k| a[index[k % count] as usize % 24]).sum();
            sum + f32::from(h[index[0] as usize % 10])
        })
        .collect();
    let mut d: Vec<[f64; 2]> = (0..32).map(|_| [rng.f64(0.0, 1.0), rng.f64(-1.0, 1.0)]).collect();
    let turned = |d: &[[f64; 2]], any: bool| {
        let add = |t: i32| if any { f64::from(-(t ^ 1)) } else { 4.0 };
        (0..32).map(|t| [d[31 - t][0] + add(t as i32), d[31 - t][1]]).collect::<Vec<[f64; 2]>>()
    };
    let none = launch("static_shared", 1, 32).input(&d).output(exactly(&turned(&d, false)));
    d[13][0] = -0.5;
    vec![
        carve.scalar(m as i32).scalar(n as i32),
        launch("local_index", 1, 32).input(&index).output(exactly(&local)).scalar(count as i32),
        none,
        launch("static_shared", 1, 32).input(&d).output(exactly(&turned(&d, true))),
    ]
}

fn big_params(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1509);
    let n = 50usize;
    let weights: Vec<Vec<f32>> = (0..3).map(|_| rng.f32s(16, -0.2, 0.2)).collect();
    let bias = rng.f32s(5, -0.5, 0.5);
    let shapes = [[5i32, 2, 3, 4], [5, 6, 7, 8], [5, 10, 11, 12]];
    let mut net = Vec::new();
    for l in 0..3 {
        net.extend(
            [bytes(&weights[l]), bytes(&shapes[l]), vec![0; 8], vec![[1, 2, 0][l], 0, 0, 0, 0, 0, 0, 0]]
                .concat(),
        );
    }
    net.extend([bytes(&[0.5f64]), bytes(&[3i16]), vec![0; 6]].concat());
    let x = rng.f32s(n, -1.0, 1.0);
    let forward = (0..n).map(|i| {
        let mut v = f64::from(x[i]);
        for l in 0..3 {
            let b = if l == 1 { 0.0 } else { f64::from(bias[i % 5]) };
            let s = (0..16).fold(b, |s, k| f64::from(weights[l][k]) * (v + k as f64) + s);
            v = [s.max(0.0), s.tanh(), s][l];
        }
        // Sums of sixteen terms up to 4, thrice, each with the errors of the one before.
        (v * 0.5, 3e-4 * 0.05)
    });
    let forward = within(F32, forward.collect::<Vec<_>>());
    let mut case = launch("net_forward", 1, 64);
    let bias = case.add(Some(bytes(&bias)), Expect::Same);
    let case = case.raw(&net, &[(80, bias), (272, bias)]).input(&x).output(forward).scalar(n as i32);
    let picked: Vec<f32> = (0..n).map(|i| weights[i % 3][i & 15] + shapes[i % 3][i & 3] as f32).collect();
    let pick = launch("grid_const", 1, 64).raw(&net, &[]).output(exactly(&picked)).scalar(n as i32);
    // All integers below 2^53, and halves.
    let sum: f64 = [
        -1.0, -2.0, 200.0, -300.0, 60000.0, -70000.0, 4e9, -5e9, 6e10, 0.5, 0.25, 1.0, 4.0, -7.0, 2.5, 8.0,
        9.0, 77.0,
    ]
    .iter()
    .sum();
    let rounded = rule(8, move |got: &[f64]| {
        // The first sums are of 64-bit integers, then of f32: one rounding of a number near 6e10.
        let wrong = got.iter().find(|got| (*got - sum).abs() > 8192.0);
        wrong.map_or(Ok(()), |got| Err(format!("{got}, expected {sum}")))
    });
    let many = launch("many_params", 1, 8)
        .scalar(-1i8)
        .scalar(-2i8)
        .scalar(200u8)
        .scalar(-300i16)
        .scalar(60000u16)
        .scalar(-70000i32)
        .scalar(4_000_000_000u32)
        .scalar(-5_000_000_000i64)
        .scalar(60_000_000_000u64)
        .scalar(0.5f32)
        .scalar(0.25f64)
        .scalar(1u8)
        .raw(&[1i8, 2, 3, 4], &[])
        .raw(&[5i16, -7], &[])
        .raw(&[0f32, 1.0, 2.5], &[])
        .raw(&[0f64, 8.0], &[])
        .raw(&[1i32, 2, 3, 9], &[])
        .raw(&[1u8, 2, 77], &[])
        .output(rounded);
    vec![case, pick, many, launch("no_params", 2, 32)]
}

fn printf_assert(_: &File) -> Vec<Case> {
    let x = [1.5f32, -2.25, 0.0, -1e6, 7.0];
    let line = |i: usize| format!("x[{i}] = {:.6}, negative, c {} 0x…", x[i], (i as i64) << 33);
    let rows = launch("print_rows", 1, 32).input(&x).scalar(5i32);
    let rows = rows.prints(vec!["rows: 5".to_owned(), line(1), line(3)]);
    let sorted = [1i32, 2, 2, 5, 9];
    let unsorted = [1i32, 2, 7, 5, 9];
    let doubles = [1f64, f64::INFINITY, -3.0, f64::NAN];
    let fold = |t: i32| (0..9).rev().fold(0i32, |sum, i| sum.wrapping_mul(31).wrapping_add(i * t));
    let lists: Vec<i32> = (0..40).map(fold).collect();
    let best: Vec<i32> = (0..40).map(|t| (0..13).map(|i| (i * 7919 + t) % 101).max().unwrap_or(0)).collect();
    vec![
        rows,
        launch("check_sorted", 1, 32).input(&sorted).scalar(5i32),
        launch("check_sorted", 1, 32).input(&unsorted).scalar(5i32).traps(&["input must be sorted"]),
        launch("trap_on_nan", 1, 32).input(&[1f64, -3.0, 7.0, 0.0]).scalar(4i32),
        launch("trap_on_nan", 1, 32).input(&doubles).scalar(4i32).traps(&["trap", "brkpt"]),
        launch("list_build", 1, 40).output(exactly(&lists)).scalar(9i32),
        launch("new_array", 1, 40).output(exactly(&best)).scalar(13i32),
    ]
}

fn print_assert(_: &File) -> Vec<Case> {
    let n = 100usize;
    let x: Vec<f32> = (0..n).map(|i| (i * i) as f32).collect();
    let roots: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let value = |i: usize| x.get(i).copied().unwrap_or(0.0);
    let lines = (0..128).map(|i| format!("pid (0, 0, 0) idx ({i:3}) x =: {:.6}", value(i)));
    let fine = launch("print_assert", 1, 128).inout(&x, exactly(&roots)).scalar(n as i32).triton();
    let mut bad = x.clone();
    bad[50] = -1.0;
    let bad = launch("print_assert", 1, 128).inout(&bad, exactly(&roots)).scalar(n as i32).triton();
    vec![fine.prints(lines.collect()), bad.traps(&["negative input"])]
}

fn print_errors(file: &File) -> Vec<Case> {
    let x: Vec<f32> = (0..50).map(|i| if i % 17 == 5 { -(i as f32) } else { i as f32 }).collect();
    let mut case = launch(&file.entries[0], 1, 64);
    let input = case.add(Some(bytes(&x)), Expect::Same);
    let lines = [5, 22, 39].iter().map(|i| format!("negative {i} -{i}.000000"));
    vec![case.array(input, 50, 4).prints(lines.collect())]
}
