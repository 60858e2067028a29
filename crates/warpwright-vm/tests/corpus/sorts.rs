//! Sorts, selections and searches.

use crate::case::{Case, File, Source, any_order, exactly, launch, source};
use crate::data::Rng;

pub(crate) const SOURCES: &[Source] = &[
    source("bitonic_sort.nvcc", bitonic_sort),
    source("radix_sort.nvcc", radix_sort),
    source("sort_rows.triton", sort_rows),
    source("top_k.triton", top_k),
    source("recursion.nvcc", recursion),
    source("plain_c.clang", plain_c),
    source("string_match.nvcc", string_match),
];

fn sorted<T: Ord + Clone>(x: &[T], width: usize) -> Vec<T> {
    let mut x = x.to_vec();
    x.chunks_mut(width).for_each(|row| row.sort());
    x
}

fn bitonic_sort(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(301);
    let keys: Vec<u32> = (0..2048).map(|i| if i % 3 == 0 { rng.u32() % 5 } else { rng.u32() }).collect();
    let floats = rng.f32s(200, -1.0, 1.0);
    let values: Vec<i32> = (0..200).collect();
    // The step of distance 4 of runs of 8; partners beyond the end stay.
    let (mut k, mut v) = (floats.clone(), values.clone());
    for i in 0..200usize {
        let p = i ^ 4;
        if p > i && p < 200 && (k[i] > k[p]) == (i & 8 == 0) {
            k.swap(i, p);
            v.swap(i, p);
        }
    }
    let step = launch("bitonic_step", 4, 64).inout(&floats, exactly(&k)).inout(&values, exactly(&v));
    vec![
        launch("bitonic_sort", 2, 512).inout(&keys, exactly(&sorted(&keys, 1024))),
        step.scalar(4i32).scalar(8i32).scalar(200i32),
    ]
}

fn radix_sort(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(302);
    let (n, blocks, shift) = (1000usize, 4usize, 8);
    let keys = rng.u32s(n);
    let digit = |key: u32| (key >> shift & 15) as usize;
    let mut counts = vec![0u32; 16 * blocks];
    keys.iter().enumerate().for_each(|(i, &key)| counts[digit(key) * blocks + i / 256] += 1);
    let mut offsets = vec![0u32; counts.len()];
    (1..counts.len()).for_each(|i| offsets[i] = offsets[i - 1] + counts[i - 1]);
    let mut stable = keys.clone();
    stable.sort_by_key(|&key| digit(key));
    let count = launch("radix_count", blocks as u32, 256).input(&keys).output(exactly(&counts));
    let scatter =
        launch("radix_scatter", blocks as u32, 256).input(&keys).output(exactly(&stable)).input(&offsets);
    vec![count.scalar(n as u32).scalar(8u32), scatter.scalar(n as u32).scalar(8u32)]
}

fn sort_rows(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(303);
    let (rows, cols) = (3usize, 101usize);
    let x = rng.f32s(rows * cols, -5.0, 5.0);
    let mut want = x.clone();
    want.chunks_mut(cols).for_each(|row| row.sort_by(f32::total_cmp));
    vec![launch("sort_rows", rows as u32, 128).input(&x).output(exactly(&want)).scalar(cols as i32).triton()]
}

fn top_k(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(304);
    let (rows, cols) = (3usize, 99usize);
    let x = rng.f32s(rows * cols, -5.0, 5.0);
    let top = |row: &[f32]| {
        let mut row = row.to_vec();
        row.sort_by(|a, b| b.total_cmp(a));
        row.truncate(8);
        row
    };
    let want: Vec<f32> = x.chunks(cols).flat_map(top).collect();
    vec![launch("top_k", rows as u32, 128).input(&x).output(exactly(&want)).scalar(cols as i32).triton()]
}

fn recursion(_: &File) -> Vec<Case> {
    fn fibonacci(n: i32) -> i32 {
        if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
    }
    // Ackermann's function of 2 and n is 2n + 3.
    let want: Vec<[i32; 3]> =
        (0..30).map(|i| [fibonacci(i % 12), 2 * (i % 4) + 3, i32::from(i % 2 == 0)]).collect();
    let mut rng = Rng::new(305);
    let data = rng.ints(40 * 32, -50, 50);
    vec![
        launch("recurse", 1, 32)
            .inout(&[[-1i32; 3]; 32], {
                let mut all = want;
                all.resize(32, [-1; 3]);
                exactly(&all)
            })
            .scalar(30i32),
        launch("sort_rows", 1, 40).inout(&data, exactly(&sorted(&data, 32))),
    ]
}

fn plain_c(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(306);
    let x = rng.ints(128, -1000, 1000);
    let reversed: Vec<i32> = (0..128).rev().map(|t| x[t] * [7, 11, 13, 17][t & 3]).collect();
    let rows = rng.ints(16 * 24, -100, 100);
    let mut want = rows.clone();
    want.chunks_mut(16).for_each(|row| row[..13].sort());
    vec![
        launch("reverse", 1, 128).input(&x).output(exactly(&reversed)),
        launch("local_sort", 1, 24).inout(&rows, exactly(&want)).scalar(13i32),
    ]
}

fn string_match(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(307);
    let text: Vec<u8> = (0..500).map(|_| b'a' + (rng.u32() % 2) as u8).collect();
    let pattern = b"abba";
    let mut hits: Vec<i32> =
        (0..=text.len() - 4).filter(|&i| &text[i..i + 4] == pattern).map(|i| i as i32).collect();
    let count = hits.len() as i32;
    hits.resize(text.len(), -1);
    let find = launch("find_all", 8, 64).input(&text).scalar(500i32).input(pattern).scalar(4i32);
    let find = find.inout(&vec![-1i32; 500], any_order(hits)).inout(&[0i32], exactly(&[count]));

    let (a, b) = (&text[..37], &text[100..151]);
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut corner = row[0];
        row[0] = i;
        for j in 1..=b.len() {
            let changed = corner + usize::from(a[i - 1] != b[j - 1]);
            corner = row[j];
            row[j] = changed.min(row[j] + 1).min(row[j - 1] + 1);
        }
    }
    let distance =
        launch("edit_distance", 1, 64).shared(3 * 38 * 4).input(a).scalar(37i32).input(b).scalar(51i32);
    let distance = distance.output(exactly(&[row[b.len()] as i32]));

    let binary = rng.bytes(3 * 70);
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letters: Vec<u8> = binary
        .chunks(3)
        .flat_map(|group| {
            let v = usize::from(group[0]) << 16 | usize::from(group[1]) << 8 | usize::from(group[2]);
            [v >> 18, v >> 12 & 63, v >> 6 & 63, v & 63].map(|i| alphabet[i])
        })
        .collect();
    let words = "naïve façade — ünïcödé 漢字 🦀 text, again and again ".repeat(3);
    let chars = words.chars().count() as u64;
    let utf8 = launch("utf8_count", 4, 64).input(words.as_bytes()).scalar(words.len() as i32);
    vec![
        find,
        distance,
        launch("base64", 2, 64).input(&binary).output(exactly(&letters)).scalar(70i32),
        utf8.inout(&[0u64], exactly(&[chars])),
    ]
}
