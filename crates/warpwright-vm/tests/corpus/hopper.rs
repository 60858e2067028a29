//! What sm_90 and later added: the part that is executed, and traps that name the rest.

use crate::case::{Case, Expect, File, Source, exactly, launch, source};
use crate::data::{Format, Rng, bytes};
use warpwright_vm::{TENSOR_MAP_BYTES, TensorElement, TensorMap, TensorSwizzle};

pub(crate) const SOURCES: &[Source] = &[
    source("clusters.nvcc", clusters),
    source("barrier_tx.nvcc", barrier_tx),
    source("async_stores.nvcc", async_stores),
    source("tma_bulk.nvcc", tma_bulk),
    source("tma_tensor.nvcc", tma_tensor),
    source("wgmma.nvcc", wgmma),
    source("wgmma_pipeline.nvcc", wgmma_pipeline),
    source("copy_2d_descriptor.triton", copy_2d_descriptor),
    source("mma_scaled.nvcc", mma_scaled),
    source("tensormap_replace.nvcc", tensormap_replace),
    source("tcgen05.nvcc", tcgen05),
    source("dynamic_parallel.nvcc", dynamic_parallel),
    source("rdc_extern.nvcc", rdc_extern),
];

fn clusters(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1701);
    let x = rng.u32s(128);
    let half = |register: usize, row: usize, column: usize| {
        let word = x[(row * 4 + column / 2) * 4 + register];
        word >> (16 * (column % 2)) & 0xffff
    };
    let mut want = vec![0u32; 64];
    for t in 0..32 {
        // The elected lane is the first one: its number is 0, and its predicate 1.
        want[t] = half(0, t / 8, t % 8) + u32::from(t == 0);
        want[32 + t] = half(1, 2 * t % 8, 2 * t / 8);
    }
    let misc = launch("hopper_misc", 1, 32).input(&x).output(exactly(&want));
    let why = "the second matrices are stored where other lanes may still read the first";
    let misc = misc.finds("race", &["ld", "stmatrix.sync.aligned"], why);
    let floats = rng.f32s(256, -1.0, 1.0);
    let ring: Vec<f32> = (0..256).map(|i| floats[if i % 128 < 64 { i + 64 } else { i - 64 }]).collect();
    let numbers = rng.ints(500, 0, 1000);
    let mut bins = [0i32; 256];
    numbers.iter().for_each(|number| bins[(number & 255) as usize] += 1);
    let histogram = launch("cluster_histogram", 4, 64).input(&numbers).inout(&[0i32; 256], exactly(&bins));
    vec![
        misc,
        launch("bounded_cluster", 3, 32).inout(&[0i32], exactly(&[96i32])),
        launch("bounded_cluster", 8, 32).cluster(4).inout(&[0i32], exactly(&[1024i32])),
        histogram.scalar(500i32),
        launch("cluster_asm", 4, 64).cluster(2).input(&floats).output(exactly(&ring)),
        // Each block is its own neighbour.
        launch("cluster_asm", 2, 64).input(&floats[..128]).output(exactly(&floats[..128])),
    ]
}

fn barrier_tx(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1702);
    let n = 100usize;
    let x = rng.f32s(n, -1.0, 1.0);
    let doubled: Vec<f32> = x.iter().map(|x| x * 2.0).collect();
    let mut annotated = launch("annotated", 2, 64);
    let (a, b) = (annotated.add(Some(bytes(&x)), Expect::Same), annotated.add(None, exactly(&doubled)));
    let input = rng.ints(256, -5, 5);
    let reversed: Vec<i32> = input.iter().rev().copied().collect();
    vec![
        annotated.raw(&[0u64], &[(0, a)]).raw(&[0u64], &[(0, b)]).scalar(n as i32),
        launch("barrier_tx", 1, 256).input(&input).output(exactly(&reversed)),
    ]
}

fn async_stores(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1705);
    let input = rng.ints(128, -500, 500);
    // Each of the two blocks gets what the other one has.
    let got = |i: usize| input[i ^ 64];
    let want: Vec<i32> =
        (0..256).map(|i| got(i % 128) + if i < 128 { 0 } else { 5 + i as i32 % 64 }).collect();
    // One thread, since several would race: its lanes store where others read.
    let sum = launch("multimem_sum", 1, 1).inout(&[1f32, 2.0, 3.0, 4.0], exactly(&[10f32, 2.0, 3.0, 4.0]));
    let sum = sum.multimem().input(&[0x20u32]).multimem();
    vec![launch("push_next", 2, 64).input(&input).output(exactly(&want)), sum.output(exactly(&[33f32]))]
}

fn tma_bulk(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1706);
    let (blocks, tiles, factor) = (2, 5, 2f32);
    let x: Vec<f32> = rng.ints(blocks * tiles * 1024, -100, 100).iter().map(|&x| x as f32).collect();
    let scaled: Vec<f32> = x.iter().map(|x| x * factor).collect();
    let sums: Vec<f32> = (0..1024).map(|i| 1.0 + scaled.iter().skip(i).step_by(1024).sum::<f32>()).collect();
    let case = launch("bulk_scale", blocks as u32, 128).input(&x).output(exactly(&scaled));
    vec![case.inout(&[1f32; 1024], exactly(&sums)).scalar(factor).scalar(tiles as i32)]
}

fn tma_tensor(_: &File) -> Vec<Case> {
    let (width, height, x, y) = (72usize, 20usize, 3i32, -2i32);
    let matrix: Vec<i32> = (0..(width * height) as i32).collect();
    // Each of the blocks adds one to its tile. The last ones are partly outside.
    let is_inside = |i: usize| (i % width) as i32 >= x && (i / width) as i32 - y < 32;
    let want: Vec<i32> =
        matrix.iter().enumerate().map(|(i, &value)| if is_inside(i) { value + 1 } else { -1 }).collect();
    let map = TensorMap::dense(0, TensorElement::S32, &[width as u64, height as u64], &[32, 16]);
    let map = map.to_bytes().expect("there is such a map");
    let mut case = launch("tensor_2d", (3, 2), 128);
    let source = case.add(Some(bytes(&matrix)), Expect::Same);
    let result = case.add(Some(bytes(&vec![-1i32; width * height])), exactly(&want));
    let case = case.raw(&map, &[(0, source)]).raw(&map, &[(0, result)]).scalar(x).scalar(y);
    // One map cannot be of tensors of all those ranks.
    let kinds = launch("tensor_kinds", 1, 32).raw(&map, &[]).scalar(0i32);
    vec![case, kinds.traps(&["im2col", "dimensions"])]
}

fn wgmma(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1704);
    let k = 64;
    // Quarters: every sum is exact.
    let mut quarters = |n| (0..n).map(|_| rng.int(-8, 8) as f64 / 4.0).collect::<Vec<f64>>();
    let (a, b) = (quarters(64 * k), quarters(16 * k));
    let sum = |at: usize| (0..k).map(|l| a[at / 16 * k + l] * b[at % 16 * k + l]).sum::<f64>() as f32;
    let want: Vec<f32> = (0..64 * 16).map(sum).collect();
    let gemm = launch("wgmma_f16", 1, 128).floats(Format::F16, &a).floats(Format::F16, &b);
    let gemm = gemm.output(exactly(&want)).scalar(k as i32);
    let x = rng.f32s(256, -1.0, 1.0);
    let reversed: Vec<f32> = x.chunks(128).flat_map(|block| block.iter().rev().map(|x| x * 2.0)).collect();
    // Bytes 0 and 60 in turn: 1.5 in e4m3, 1 in e5m2, and 1 as f16. In fp8, what the products before have left is below
    // the last bit of 24.
    let words = [0x3c00_3c00_u32; 512];
    let types = launch("wgmma_types", 1, 128).input(&words).input(&words[..256]);
    let types = types.output(exactly(&[24f32; 512])).output(exactly(&[60 * 60 * 16 + 0x4c00_4c00_i32; 512]));
    vec![gemm, types, launch("specialise", 2, 256).input(&x).output(exactly(&reversed))]
}

fn wgmma_pipeline(_: &File) -> Vec<Case> {
    let (rows, columns, depth) = (128usize, 192usize, 320usize);
    let mut rng = Rng::new(1708);
    let mut matrix = |rows: usize| -> Vec<i32> { rng.ints(rows * depth, -4, 5) };
    let (a, b) = (matrix(rows), matrix(columns));
    let product: Vec<f32> = (0..rows * columns)
        .map(|at| {
            let row = &a[at / columns * depth..][..depth];
            let column = &b[at % columns * depth..][..depth];
            row.iter().zip(column).map(|(a, b)| a * b).sum::<i32>() as f32
        })
        .collect();
    let halves = |matrix: &[i32]| -> Vec<u16> {
        matrix.iter().map(|&value| ((value as f32).to_bits() >> 16) as u16).collect()
    };
    let map = |rows: usize| {
        let mut map = TensorMap::dense(0, TensorElement::BF16, &[depth as u64, rows as u64], &[64, 64]);
        map.swizzle = TensorSwizzle::B128;
        map.to_bytes().expect("there is such a map")
    };
    let mut case = launch("wgmma_pipeline", (3, 2), 256).shared(96 << 10);
    let (a, b) =
        (case.add(Some(bytes(&halves(&a))), Expect::Same), case.add(Some(bytes(&halves(&b))), Expect::Same));
    let case = case.raw(&map(rows), &[(0, a)]).raw(&map(columns), &[(0, b)]).output(exactly(&product));
    vec![case.scalar(columns as i32).scalar(depth as i32)]
}

fn copy_2d_descriptor(_: &File) -> Vec<Case> {
    let (rows, columns) = (61usize, 60usize);
    let x = Rng::new(1707).f32s(rows * columns, -1.0, 1.0);
    let doubled: Vec<f32> = x.iter().map(|x| x * 2.0).collect();
    let case = launch("copy_2d_descriptor", (2, 2), 128).shared(32 << 10).input(&x).output(exactly(&doubled));
    vec![case.scalar(rows as i32).scalar(columns as i32).triton_with_scratch(4)]
}

fn mma_scaled(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1712);
    // As bytes no NaN of e4m3, and in the middle of a byte an e2m1 that is not below zero.
    let mut words = |n: usize| -> Vec<u32> { rng.u32s(n).iter().map(|word| word & 0xd7d7_d7d7).collect() };
    let (a, b) = (words(128), words(64));
    let near_one =
        |words: Vec<u32>| -> Vec<u32> { words.iter().map(|word| 0x7d7d + (word & 0x0303)).collect() };
    let (a_scales, b_scales) = (near_one(words(32)), near_one(words(32)));
    // Registers of a row or column along k: those of four lanes, twice.
    let left = |row: usize, i: usize| a[(row % 8 * 4 + i % 4) * 4 + row / 8 + 2 * (i / 4)];
    let right = |column: usize, i: usize| b[(column * 4 + i % 4) * 2 + i / 4];
    let scale = |word: u32, block: usize| (f64::from(word >> (8 * block) & 0xff) - 127.0).exp2();
    let mut want = vec![0f32; 128];
    for (at, want) in want.iter_mut().enumerate() {
        let (lane, i) = (at / 4, at % 4);
        let (row, column) = (lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2);
        let (mut first, mut second) = (0.0, 0.0);
        for word in 0..8 {
            let (x, y) = (left(row, word), right(column, word));
            let scales =
                scale(a_scales[row % 8 * 4 + row / 8], word / 4) * scale(b_scales[column * 4], word / 4);
            let four = |word: u32, i: u32| Format::E2m1.value((word >> i & 15).into());
            first += (0..8).map(|i| four(x, 4 * i) * four(y, 4 * i) * scales).sum::<f64>();
            let eight = |i: u32| Format::E4m3.value((x >> i & 255).into());
            second += (0..4).map(|i| eight(8 * i) * four(y, 8 * i + 2)).sum::<f64>();
        }
        // All sums are exact in f64.
        *want = (f64::from(first as f32) + second) as f32;
    }
    let case = launch("mma_mxf4", 1, 32).input(&a).input(&b).input(&a_scales).input(&b_scales);
    vec![case.output(exactly(&want))]
}

fn tensormap_replace(_: &File) -> Vec<Case> {
    let before = TensorMap::dense(0x1000, TensorElement::U8, &[64, 4, 2], &[32, 4, 1]);
    let mut map = launch("tensormap_replace", 1, 128);
    let data = map.add(Some(bytes(&[0f32; 64])), Expect::Same);
    let published = map.add(
        Some(before.to_bytes().expect("there is such a map").to_vec()),
        Expect::Rule(
            Box::new(|bytes| {
                let map = TensorMap::from_bytes(bytes.try_into().map_err(|_| "128 bytes")?);
                let map = map.map_err(|wrong| wrong.to_string())?;
                let is = map.dims == [8, 9] && map.element == TensorElement::F32 && map.tile == [32, 4];
                if is { Ok(()) } else { Err(format!("{map:?}")) }
            }),
            TENSOR_MAP_BYTES,
        ),
    );
    vec![map.pass(published).pass(data).scalar(8i32).scalar(9i32)]
}

fn tcgen05(_: &File) -> Vec<Case> {
    // Without an instruction descriptor there is no product: what goes to tensor memory comes back.
    let words: Vec<u32> = (0..512).map(|at| at * at + 7).collect();
    let case = launch("tcgen05_tmem", 1, 128).input(&words).output(exactly(&words));
    vec![case.scalar(0u64).scalar(0u64).scalar(0u32)]
}

fn dynamic_parallel(_: &File) -> Vec<Case> {
    let missing = "__cudaCDP2GetParameterBufferV2";
    vec![launch("child", 1, 32).refused(missing), launch("parent", 1, 32).refused(missing)]
}

fn rdc_extern(_: &File) -> Vec<Case> {
    vec![launch("rdc_kernel", 1, 32).refused("external_")]
}
