//! Integers: divisions, 128 bits, carry chains, bit twiddling, SIMD in a word, hashes, ciphers and
//! random numbers.

use crate::case::{Case, File, Source, exactly, launch, source, within};
use crate::data::{Format, Number, Rng};

pub(crate) const SOURCES: &[Source] = &[
    source("int_div.nvcc", int_div),
    source("int128.nvcc", int128),
    source("carry_chain.nvcc", carry_chain),
    source("bit_twiddling.nvcc", bit_twiddling),
    source("philox.nvcc", philox_kernels),
    source("sha256.nvcc", sha256),
    source("crc_hash.nvcc", crc_hash),
    source("ciphers.nvcc", ciphers),
    source("integers.clang", integers_clang),
    source("integers.numba", integers_numba),
];

/// Philox 4×32 of ten rounds.
pub(crate) fn philox(mut c: [u32; 4], mut k: [u32; 2]) -> [u32; 4] {
    let product = |a: u32, b: u32| u64::from(a) * u64::from(b);
    for _ in 0..10 {
        let (p0, p1) = (product(0xd251_1f53, c[0]), product(0xcd9e_8d57, c[2]));
        c = [(p1 >> 32) as u32 ^ c[1] ^ k[0], p1 as u32, (p0 >> 32) as u32 ^ c[3] ^ k[1], p0 as u32];
        k = [k[0].wrapping_add(0x9e37_79b9), k[1].wrapping_add(0xbb67_ae85)];
    }
    c
}

#[test]
fn philox_known_answer() {
    // The generator's published answer for zeros.
    assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
}

/// Numbers of all sizes: random bits shifted by random amounts, some negated.
fn sizes(rng: &mut Rng, n: usize) -> Vec<i64> {
    (0..n)
        .map(|_| {
            let x = (rng.u64() >> (rng.u32() % 64)) as i64;
            if rng.int(0, 2) == 0 { x.wrapping_neg() } else { x }
        })
        .collect()
}

const N: usize = 150;

fn pairwise<T: Number, R: Number>(entry: &str, a: &[T], b: &[T], of: impl Fn(usize, T, T) -> Vec<R>) -> Case {
    let want: Vec<R> = a.iter().zip(b).enumerate().flat_map(|(i, (&a, &b))| of(i, a, b)).collect();
    launch(entry, 3, 64).input(a).input(b).output(exactly(&want)).scalar(a.len() as i32)
}

fn int_div(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1101);
    let (a, mut b) = (sizes(&mut rng, N), sizes(&mut rng, N));
    b[3] = 0;
    let a32: Vec<i32> = a.iter().map(|&x| x as i32).collect();
    let b32: Vec<i32> = b.iter().map(|&x| x as i32).collect();
    // Unsigned kernels of all sizes too.
    macro_rules! divisions {
        ($entry:literal, $t:ty) => {{
            let a: Vec<$t> = a.iter().map(|&x| x as $t).collect();
            let b: Vec<$t> = b.iter().map(|&x| x as $t).collect();
            pairwise($entry, &a, &b, |_, x, y| {
                let y = if y == 0 { 1 } else { y };
                vec![x.wrapping_div(y), x.wrapping_rem(y), x / 7, x % 10, x / 16, x % 64]
            })
        }};
    }
    let gcd = pairwise("gcd_pairs", &a32, &b32, |_, x, y| {
        let (mut x, mut y) = (x as u32, y as u32);
        while y != 0 {
            (x, y) = (y, x % y);
        }
        vec![x]
    });
    vec![
        divisions!("div_s32", i32),
        divisions!("div_u32", u32),
        divisions!("div_s64", i64),
        divisions!("div_u64", u64),
        divisions!("div_s16", i16),
        divisions!("div_u8", u8),
        gcd,
    ]
}

fn wide(rng: &mut Rng, n: usize) -> Vec<u128> {
    (0..n).map(|_| (u128::from(rng.u64()) << 64 | u128::from(rng.u64())) >> (rng.u32() % 128)).collect()
}

fn int128(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1102);
    let (a, b) = (wide(&mut rng, N), wide(&mut rng, N));
    let ops = pairwise("int128_ops", &a, &b, |_, x, y| {
        let product = x.wrapping_mul(y);
        vec![
            x.wrapping_add(y),
            x.wrapping_sub(y),
            product,
            x << (y & 127),
            (x as i128 >> 5) as u128,
            x.min(y),
        ]
    });
    let divide = pairwise("int128_div", &a, &b, |_, x, y| {
        vec![x / (y | 1), (x as i128).wrapping_rem((y | 1) as i128) as u128]
    });
    let (c, d) = (rng.u64s(N), rng.u64s(N));
    let m = 0xffff_ffff_0000_0001u64;
    let want: Vec<u64> =
        c.iter().zip(&d).map(|(&c, &d)| (u128::from(c) * u128::from(d) % u128::from(m)) as u64).collect();
    let modular =
        launch("mulmod64", 3, 64).input(&c).input(&d).output(exactly(&want)).scalar(m).scalar(N as i32);
    vec![ops, divide, modular]
}

fn carry_chain(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1103);
    let n = 90usize;
    // Long runs of ones carry far.
    let limb = |rng: &mut Rng| if rng.int(0, 3) == 0 { u32::MAX } else { rng.u32() };
    let mut limbs = |n: usize| (0..n).map(|_| limb(&mut rng)).collect::<Vec<u32>>();
    let (a, b) = (limbs(8 * n), limbs(8 * n));
    let (mut sums, mut carries) = (Vec::new(), Vec::new());
    for (a, b) in a.chunks(8).zip(b.chunks(8)) {
        let mut carry = 0u64;
        for (&a, &b) in a.iter().zip(b) {
            carry += u64::from(a) + u64::from(b);
            sums.push(carry as u32);
            carry >>= 32;
        }
        carries.push(carry as u32);
    }
    let add = launch("add256", 2, 64).input(&a).input(&b).output(exactly(&sums)).output(exactly(&carries));
    let join = |x: &[u32]| x.iter().rev().fold(0u128, |sum, &limb| sum << 32 | u128::from(limb));
    let zip = |size: usize, of: &dyn Fn(u128, u128) -> u128| {
        a.chunks(size).zip(b.chunks(size)).take(n).map(|(a, b)| of(join(a), join(b))).collect::<Vec<u128>>()
    };
    let differences = zip(4, &u128::wrapping_sub);
    let products = zip(2, &|a, b| a * b);
    let sub = launch("sub128", 2, 64).input(&a[..4 * n]).input(&b[..4 * n]).output(exactly(&differences));
    let mul = launch("mul128", 2, 64).input(&a[..2 * n]).input(&b[..2 * n]).output(exactly(&products));
    let (x, y): (Vec<i32>, Vec<i32>) =
        (a[..n].iter().map(|&x| x as i32).collect(), b[..n].iter().map(|&x| x as i32).collect());
    let (mut high, mut long) = (Vec::new(), Vec::new());
    for (&x, &y) in x.iter().zip(&y) {
        let product = i64::from(x) * i64::from(y);
        let low24 = |x: i32| x << 8 >> 8;
        let plain24 = |x: i32| x as u32 & 0xff_ffff;
        high.push((product >> 32) as i32);
        high.push(((u64::from(x as u32) * u64::from(y as u32)) >> 32) as i32);
        high.push(low24(x).wrapping_mul(low24(y)));
        high.push(plain24(x).wrapping_mul(plain24(y)) as i32);
        long.push(product);
        long.push(((i128::from(product) * i128::from(x)) >> 64) as i64);
        long.push(((u128::from(product as u64) * u128::from(y as i64 as u64)) >> 64) as i64);
    }
    let all = launch("mulhi_all", 2, 64).input(&x).input(&y).output(exactly(&high)).output(exactly(&long));
    [add, sub, mul, all].into_iter().map(|case| case.scalar(n as i32)).collect()
}

fn bit_twiddling(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1104);
    let narrow = |x: Vec<i64>| x.into_iter().map(|x| x as u32).collect::<Vec<u32>>();
    let (mut a, b) = (narrow(sizes(&mut rng, N)), narrow(sizes(&mut rng, N)));
    (a[0], a[1]) = (0, u32::MAX);
    let pick = |x: u32, y: u32, select: u32| {
        let bytes = (u64::from(y) << 32 | u64::from(x)).to_le_bytes();
        u32::from_le_bytes(std::array::from_fn(|i| bytes[(select >> (4 * i)) as usize & 7]))
    };
    let field = |x: u32, at: u32, length: u32| (u64::from(x) >> at & ((1 << length) - 1)) as u32;
    let shift = |low: u32, high: u32, by: u32| ((u64::from(high) << 32 | u64::from(low)) << by >> 32) as u32;
    let down = |low: u32, high: u32, by: u32| ((u64::from(high) << 32 | u64::from(low)) >> by) as u32;
    let ops = pairwise("bit_ops32", &a, &b, |_, x, y| {
        let at = y & 31;
        let top = if x == 0 { u32::MAX } else { 31 - x.leading_zeros() };
        let other = if (x as i32) < 0 { !x } else { x };
        let signed_top = if other == 0 { u32::MAX } else { other.leading_zeros() };
        let sum = x.wrapping_add(y);
        let third = x ^ y ^ 255;
        let or = third != 0 || x != 0;
        let signed = (x << 16) as i32 >> 20;
        vec![
            x.count_ones(),
            x.leading_zeros(),
            x.reverse_bits(),
            if x == 0 { 0 } else { x.trailing_zeros() + 1 },
            (x & y) | (!x & (y >> 3)),
            (x & y) ^ (x | 0x55aa_55aa),
            pick(x, y, y & 0x7777),
            shift(x, y, 7),
            down(x, y, y.min(32)),
            shift(x, y, y.min(32)),
            down(x, y, y & 31),
            x >> 5 & 0x3ff,
            (x & 0xffff_00ff) | (y & 0xff) << 8,
            field(x, at, 9),
            signed as u32,
            (y & !(0x7ff << 6)) | (x & 0x7ff) << 6,
            top,
            signed_top,
            (x & y) | (x & sum) | (y & sum),
            third.wrapping_add(u32::from(or)),
        ]
    });
    let c: Vec<u64> = sizes(&mut rng, N).into_iter().map(|x| x as u64).chain([0]).collect();
    let want: Vec<u64> = c
        .iter()
        .flat_map(|&x| {
            let insert = (x >> 9 & !(0xff << 40)) | (x & 0xff) << 40;
            let top = if x == 0 { u64::from(u32::MAX) } else { u64::from(63 - x.leading_zeros()) };
            let first = if x == 0 { 0 } else { u64::from(x.trailing_zeros()) + 1 };
            let (ones, zeros) = (u64::from(x.count_ones()), u64::from(x.leading_zeros()));
            [ones, zeros, x.reverse_bits(), first, x >> 20 & 0x3fff_ffff, insert, top, x.rotate_left(13)]
        })
        .collect();
    let ops64 = launch("bit_ops64", 3, 64).input(&c).output(exactly(&want)).scalar(c.len() as i32);
    let fields: Vec<u32> = a
        .iter()
        .enumerate()
        .flat_map(|(i, &x)| {
            // The second set bit at or above position 3.
            let found = (3..32).filter(|bit| x >> bit & 1 == 1).nth(1).map_or(u32::MAX, |bit| bit as u32);
            let clamped = if i >= 32 { x } else { field(x, 0, i as u32) };
            let at = i as u32 & 31;
            let mask = ((1u64 << (at + 7)) - (1u64 << at)) as u32;
            [((x << 19) as i32 >> 19) as u32, clamped, mask, found]
        })
        .collect();
    vec![ops, ops64, launch("bit_fields", 3, 64).input(&a).output(exactly(&fields)).scalar(N as i32)]
}

fn philox_kernels(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1105);
    let n = 100usize;
    let (seed, offset) = (0x0123_4567_89ab_cdefu64, 0xffff_fff0u64);
    let key = [seed as u32, (seed >> 32) as u32];
    let filled: Vec<[u32; 4]> = (0..n as u64)
        .map(|i| philox([(offset + i) as u32, ((offset + i) >> 32) as u32, 0, 0], key))
        .collect();
    let normal = (0..n as u32).flat_map(|i| {
        let r = philox([i, 0, 0, 0], key);
        let scale = f64::from(2.328_306_4e-10_f32);
        // The counter's word and 1 are added in f32.
        let u = f64::from(r[0] as f32 + 1.0) * scale;
        let v = f64::from(r[1] as f32) * scale;
        let m = (-2.0 * u.ln()).max(0.0).sqrt();
        let (s, c) = (2.0 * std::f64::consts::PI * v).sin_cos();
        [(m * c, 4e-6), (m * s, 4e-6)]
    });
    let x = rng.f32s(n + 2, -1.0, 1.0);
    let (mut mask, mut y) = (Vec::new(), Vec::new());
    for (i, &x) in x.iter().enumerate() {
        let word = philox([i as u32 / 4, 1, 2, 3], key)[i % 4];
        let keep = (word >> 8) as f32 / 16_777_216.0 >= 0.25;
        mask.push(u8::from(keep));
        y.push(if keep { (f64::from(x) / 0.75, 2.0 * Format::F32.unit()) } else { (0.0, 0.0) });
    }
    let states = rng.u64s(64);
    let (mut after, mut out) = (Vec::new(), Vec::new());
    for &state in &states {
        let (mut s, mut acc) = (state, 0);
        for _ in 0..20 {
            acc ^= ((((s >> 18) ^ s) >> 27) as u32).rotate_right((s >> 59) as u32);
            s = s.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        }
        after.push(s);
        out.push(acc);
    }
    let walk = launch("pcg_walk", 2, 32).inout(&states, exactly(&after)).output(exactly(&out)).scalar(20i32);
    let fill =
        launch("philox_fill", 2, 64).output(exactly(&filled)).scalar(seed).scalar(offset).scalar(n as i32);
    let gauss =
        launch("philox_normal", 2, 64).output(within(Format::F32, normal)).scalar(seed).scalar(n as i32);
    let drop = launch("dropout", 1, 32).input(&x).output(within(Format::F32, y)).output(exactly(&mask));
    vec![fill, gauss, drop.scalar(0.25f32).scalar(seed).scalar(x.len() as i32), walk]
}

/// The first 32 bits of the fraction of the k-th prime's root.
fn root_bits(count: usize, power: f64) -> Vec<u32> {
    let primes = (2u32..).filter(|n| (2..*n).all(|d| n % d != 0));
    primes.take(count).map(|p| (f64::from(p).powf(power).fract() * 4_294_967_296.0) as u32).collect()
}

fn sha256(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1106);
    let n = 40usize;
    let blocks = rng.u32s(16 * n);
    let k = root_bits(64, 1.0 / 3.0);
    assert_eq!(k[0], 0x428a_2f98);
    let h: Vec<u32> = root_bits(8, 0.5);
    let hash = |block: &[u32]| {
        let mut w: Vec<u32> = block.iter().map(|w| w.swap_bytes()).collect();
        for r in 16..64 {
            let (a, b) = (w[r - 15], w[r - 2]);
            let s0 = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
            let s1 = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
            w.push(w[r - 16].wrapping_add(s0).wrapping_add(w[r - 7]).wrapping_add(s1));
        }
        let mut s = h.clone();
        for r in 0..64 {
            let (a, e) = (s[0], s[4]);
            let choose = (e & s[5]) ^ (!e & s[6]);
            let turned = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let t1 = [turned, choose, k[r], w[r]].iter().fold(s[7], |sum, &x| sum.wrapping_add(x));
            let majority = (a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]);
            let t2 = (a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22)).wrapping_add(majority);
            s.rotate_right(1);
            s[4] = s[4].wrapping_add(t1);
            s[0] = t1.wrapping_add(t2);
        }
        s.iter().zip(&h).map(|(s, h)| s.wrapping_add(*h)).collect::<Vec<u32>>()
    };
    let want: Vec<u32> = blocks.chunks(16).flat_map(hash).collect();
    vec![launch("sha256", 2, 32).input(&blocks).output(exactly(&want)).scalar(n as i32)]
}

fn crc_hash(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1107);
    let (rows, length) = (40usize, 23usize);
    let data = rng.bytes(rows * length);
    let crc = |row: &[u8]| {
        let step = |c: u32, &byte: &u8| {
            (0..8).fold(c ^ u32::from(byte), |c, _| if c & 1 == 1 { 0xedb8_8320 ^ c >> 1 } else { c >> 1 })
        };
        !row.iter().fold(!0, step)
    };
    assert_eq!(crc(b"123456789"), 0xcbf4_3926, "the published check value");
    let crcs: Vec<u32> = data.chunks(length).map(crc).collect();
    let offsets: Vec<i32> = (0..=rows as i32).map(|r| (r * r / 2).min(900)).collect();
    let fnv = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(14_695_981_039_346_656_037u64, |h, &b| (h ^ u64::from(b)).wrapping_mul(1_099_511_628_211))
    };
    let hashes: Vec<u64> =
        offsets.windows(2).map(|ends| fnv(&data[ends[0] as usize..ends[1] as usize])).collect();
    let words = rng.u64s(70);
    let mixed: Vec<u64> = words
        .iter()
        .map(|&v| {
            let v = (v ^ v >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
            let v = (v ^ v >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
            v ^ v >> 33
        })
        .collect();
    vec![
        launch("crc32_rows", 2, 32)
            .input(&data)
            .output(exactly(&crcs))
            .scalar(length as i32)
            .scalar(rows as i32),
        launch("fnv1a", 2, 32).input(&data).input(&offsets).output(exactly(&hashes)).scalar(rows as i32),
        launch("mix64", 3, 32).inout(&words, exactly(&mixed)).scalar(70i32),
    ]
}

fn ciphers(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1108);
    let key: [u32; 8] = std::array::from_fn(|_| rng.u32());
    let nonce = rng.u64();
    let quarter = |x: &mut [u32; 16], [a, b, c, d]: [usize; 4]| {
        for (to, by, turned, bits) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
            x[to] = x[to].wrapping_add(x[by]);
            x[turned] = (x[turned] ^ x[to]).rotate_left(bits);
        }
    };
    let stream = |i: u32| {
        let mut s = [0u32; 16];
        s[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
        s[4..12].copy_from_slice(&key);
        s[12..].copy_from_slice(&[i, 0, nonce as u32, (nonce >> 32) as u32]);
        let mut x = s;
        for _ in 0..10 {
            (0..4).for_each(|k| quarter(&mut x, [k, 4 + k, 8 + k, 12 + k]));
            (0..4).for_each(|k| quarter(&mut x, [k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4]));
        }
        std::array::from_fn::<u32, 16, _>(|k| x[k].wrapping_add(s[k]))
    };
    let blocks: Vec<[u32; 16]> = (0..40).map(stream).collect();
    let chacha = launch("chacha20", 2, 32).input(&key).scalar(nonce).output(exactly(&blocks)).scalar(40i32);

    let data: Vec<[u32; 2]> = (0..50).map(|_| [rng.u32(), rng.u32()]).collect();
    let k: [u32; 4] = std::array::from_fn(|_| rng.u32());
    let xtea = |[mut v0, mut v1]: [u32; 2]| {
        let mut sum = 0u32;
        let mix = |v: u32| ((v << 4) ^ (v >> 5)).wrapping_add(v);
        for _ in 0..32 {
            v0 = v0.wrapping_add(mix(v1) ^ sum.wrapping_add(k[(sum & 3) as usize]));
            sum = sum.wrapping_add(0x9e37_79b9);
            v1 = v1.wrapping_add(mix(v0) ^ sum.wrapping_add(k[(sum >> 11 & 3) as usize]));
        }
        [v0, v1]
    };
    let enciphered: Vec<[u32; 2]> = data.iter().map(|&v| xtea(v)).collect();
    let tea = launch("xtea", 2, 32).inout(&data, exactly(&enciphered)).raw(&k, &[]).scalar(50i32);

    let words = rng.u64s(50);
    let (k0, k1) = (rng.u64(), rng.u64());
    let sip = |word: u64| {
        let mut v = [
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ];
        fn round(v: &mut [u64; 4]) {
            for (a, b, left, turn) in
                [(0, 1, 13, true), (2, 3, 16, false), (0, 3, 21, false), (2, 1, 17, true)]
            {
                v[a] = v[a].wrapping_add(v[b]);
                v[b] = v[b].rotate_left(left) ^ v[a];
                if turn {
                    v[a] = v[a].rotate_left(32);
                }
            }
        }
        for m in [word, 8 << 56] {
            v[3] ^= m;
            round(&mut v);
            round(&mut v);
            v[0] ^= m;
        }
        v[2] ^= 0xff;
        (0..4).for_each(|_| round(&mut v));
        v[0] ^ v[1] ^ v[2] ^ v[3]
    };
    let hashed: Vec<u64> = words.iter().map(|&word| sip(word)).collect();
    let sips =
        launch("siphash", 2, 32).input(&words).output(exactly(&hashed)).scalar(k0).scalar(k1).scalar(50i32);
    vec![chacha, tea, sips]
}

fn integers_clang(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1109);
    let signed = |x: Vec<u128>| x.into_iter().map(|x| x as i128).collect::<Vec<i128>>();
    let (a, b) = (signed(wide(&mut rng, N)), signed(wide(&mut rng, N)));
    let wide = pairwise("wide", &a, &b, |_, x, y| {
        vec![x.wrapping_mul(y), x.wrapping_add(y), x >> (y as u32 & 127), x.min(y)]
    });
    let (x, y) = (rng.u32s(N), rng.u64s(N));
    let want: Vec<u64> = x
        .iter()
        .zip(&y)
        .enumerate()
        .flat_map(|(i, (&x, &y))| {
            let sum = x.overflowing_add(y as u32);
            let divisor = u64::from(x | 1);
            // Products of the low parts are int; a conversion to 64 bits extends their sign.
            let small = i32::from(x as i8) * i32::from(y as i16) + i32::from((y >> 7) as u16);
            [
                u64::from(x.count_ones() + (x | 1).leading_zeros() + (x | 2).trailing_zeros()),
                u64::from(x.reverse_bits().wrapping_add(x.swap_bytes())),
                u64::from(x.rotate_left(5) ^ x.rotate_right(i as u32)),
                u64::from(y.count_ones() + (y | 1).leading_zeros()),
                y.rotate_left(17).wrapping_add(y.swap_bytes()),
                y / divisor + y % divisor,
                i64::from(small) as u64,
                u64::from(sum.0.wrapping_add(u32::from(sum.1))),
            ]
        })
        .collect();
    let bits = launch("bits", 3, 64).input(&x).input(&y).output(exactly(&want)).scalar(N as i32);

    // One thread: stores to `f` and `q` of several would race.
    let d = [2.25f64, 1.5, -3.5, 2.5, -7.9];
    let f = [9f32, 1.25, 2.5, 4.0, -3.0, 1.0, 5.0, -6.0, 7.75];
    let mut d_after = d;
    d_after[0] = 1.5 + 1.0 + 3.5 + 2.0 - 7.0;
    let mut f_after = f;
    f_after[0] = 3.0 / 4.0 + 3.0 - 6.0 + 7.0 + 11.0;
    let atomics = launch("atomics", 1, 1)
        .inout(&[41i32, -7], exactly(&[42i32, 0]))
        .inout(&[3u64, 0, 1, 5, 11], exactly(&[6u64, 7, 5, 0, 11]))
        .inout(&f, exactly(&f_after))
        .inout(&d, exactly(&d_after));
    vec![wide, bits, atomics]
}

fn integers_numba(file: &File) -> Vec<Case> {
    let mut rng = Rng::new(1110);
    let (a, mut b) = (sizes(&mut rng, N), sizes(&mut rng, N));
    (b[1], b[2]) = (0, 0);
    let want: Vec<i64> = a
        .iter()
        .zip(&b)
        .map(|(&x, &y)| {
            if y == 0 {
                return (i64::from(x.count_ones() + x.leading_zeros())).wrapping_add(x.reverse_bits());
            }
            // Rounded down, as Python divides.
            let (mut quotient, mut rest) = (x.wrapping_div(y), x.wrapping_rem(y));
            if rest != 0 && (rest < 0) != (y < 0) {
                (quotient, rest) = (quotient - 1, rest + y);
            }
            quotient.wrapping_add(rest).wrapping_add(x << 3) ^ (y >> 2)
        })
        .collect();
    let mut case = launch(&file.entries[0], 3, 64);
    let x = case.add(Some(crate::data::bytes(&a)), crate::case::Expect::Same);
    let y = case.add(Some(crate::data::bytes(&b)), crate::case::Expect::Same);
    let out = case.add(None, exactly(&want));
    vec![case.array(x, N, 8).array(y, N, 8).array(out, N, 8)]
}
