//! Warps and barriers, asynchronous copies, the memory model, clocks.

use crate::case::{Case, File, Source, exactly, launch, rule, source};
use crate::data::Rng;
use crate::reductions::dyadic;

pub(crate) const SOURCES: &[Source] = &[
    source("warp_ops.nvcc", warp_ops),
    source("barrier_block.nvcc", barrier_block),
    source("mbarrier_asm.nvcc", mbarrier_asm),
    source("cp_async.nvcc", cp_async),
    source("pipeline_async.nvcc", pipeline_async),
    source("memory_model.nvcc", memory_model),
    source("clocks.nvcc", clocks),
    source("timers.triton", timers),
];

fn warp_ops(file: &File) -> Vec<Case> {
    let mut rng = Rng::new(1601);
    let n = 50usize;
    // The second warp holds one number only.
    let x: Vec<i32> = (0..64).map(|i| if i < 32 { rng.int(-2, 15) as i32 } else { 0 }).collect();
    let mask =
        |warp: &[i32], of: &dyn Fn(i32) -> bool| (0..32).fold(0u32, |m, i| m | u32::from(of(warp[i])) << i);
    let mut votes = Vec::new();
    for warp in x.chunks(32) {
        for &v in warp {
            let same = mask(warp, &|x| x == v);
            let all = mask(warp, &|x| x > 0) == u32::MAX;
            let any = mask(warp, &|x| x > 10) != 0;
            let uniform = same == u32::MAX;
            let odd = mask(warp, &|x| x & 1 == 1);
            let matched = if uniform { u32::MAX } else { 0 };
            votes.extend([all.into(), any.into(), odd, same, matched, uniform.into(), same, u32::MAX]);
        }
    }
    let votes = launch("votes", 1, 64).input(&x[..n]).output(exactly(&votes)).scalar(n as i32);

    let f: Vec<f32> = (0..32).map(|_| rng.int(-1000, 1000) as f32).collect();
    let d = rng.f64s(32, -1.0, 1.0);
    let l: Vec<i64> = (0..32).map(|_| rng.u64() as i64).collect();
    let h = rng.u32s(32);
    let moved: Vec<f32> = (0..32usize)
        .map(|t| {
            let up = if t < 2 { t } else { t - 2 };
            let down = if t % 16 + 4 > 15 { t } else { t + 4 };
            // In segments of eight, a lane above the segment keeps its own; one below is read.
            let xor = if t ^ 8 > t | 7 { t } else { t ^ 8 };
            f[(t + 3) & 31] + f[up] + f[down] + f[xor]
        })
        .collect();
    let ups: Vec<i32> = (0..32).map(|t| if t == 0 { -1 } else { (t - 1) * 5 }).collect();
    let shuffles = launch("shuffles", 1, 32)
        .inout(&f, exactly(&moved))
        .inout(&d, exactly(&[d[0]; 32]))
        .inout(&l, exactly(&(0..32).map(|t| l[t ^ 16]).collect::<Vec<i64>>()))
        .inout(&h, exactly(&(0..32).map(|t| h[(t + 1).min(31)]).collect::<Vec<u32>>()))
        .output(exactly(&ups));

    let (x, u) = (rng.ints(32, -1000, 1000), rng.u32s(32));
    let (sum, least, most) = (x.iter().sum::<i32>(), x.iter().min().copied(), x.iter().max().copied());
    let reduced: Vec<i32> = (0..32).flat_map(|_| [sum, least.unwrap_or(0), most.unwrap_or(0)]).collect();
    let (and, or, xor) = u.iter().fold((!0, 0, 0), |(a, o, x), &u| (a & u, o | u, x ^ u));
    let low = u[..16].iter().max().copied().unwrap_or(0);
    let bits = rule(128, move |got: &[u32]| {
        for (lane, got) in got.chunks(4).enumerate() {
            if got[..3] != [and, or, xor] || lane < 16 && got[3] != low {
                return Err(format!("lane {lane}: {got:x?}, expected {:x?}", [and, or, xor, low]));
            }
        }
        Ok(())
    });
    let reduce = launch("reduce_sync", 1, 32).input(&x).input(&u);
    let reduce = if file.arch >= 80 {
        let why = "the upper half of the warp executes a reduction whose mask names the lower half";
        reduce.output(exactly(&reduced)).inout(&[0u32; 128], bits).finds("missing-lane", &["redux.sync"], why)
    } else {
        reduce.inout(&[0i32], exactly(&[0i32])).inout(&[0u32], exactly(&[0u32]))
    };

    let y = rng.ints(128, -3, 10);
    let count = y.iter().filter(|&&y| y > 0).count() as i32;
    let (all, any) = (y.iter().all(|&y| y > 1), y.iter().any(|&y| y > 2));
    let kinds: Vec<i32> = (0..128)
        .flat_map(|t| {
            let lane = t % 32;
            // Of the five masks only the lane's own bit is left; two comparisons hold.
            [count, i32::from(all), i32::from(any), (1i32 << lane).wrapping_add(lane + 2)]
        })
        .collect();
    let barriers = launch("sync_kinds", 1, 128).input(&y).output(exactly(&kinds)).scalar(64i32);
    vec![votes, shuffles, reduce, barriers]
}

fn barrier_block(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1602);
    let n = 150usize;
    let x: Vec<f32> = (0..192).map(|i| if i < n { rng.int(-100, 100) as f32 } else { 0.0 }).collect();
    let want: Vec<f32> = (0..n).map(|i| 2.0 * x[i] + x[i / 96 * 96 + (i + 1) % 96]).collect();
    let split = launch("barrier_split", 2, 96).input(&x[..n]).output(exactly(&want)).scalar(n as i32);
    let v: Vec<[u32; 4]> = (0..256).map(|_| std::array::from_fn(|_| rng.u32())).collect();
    let reversed: Vec<[u32; 4]> = v.chunks(128).flat_map(|block| block.iter().rev().copied()).collect();
    let copy = launch("barrier_copy", 2, 128).input(&v).output(exactly(&reversed));
    vec![split, copy]
}

fn mbarrier_asm(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1603);
    let x = rng.ints(256, -1000, 1000);
    let want: Vec<i32> = x.chunks(128).flat_map(|block| block.iter().rev().copied()).collect();
    vec![launch("mbarrier_asm", 2, 128).input(&x).output(exactly(&want))]
}

fn cp_async(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1604);
    let (blocks, tiles) = (3usize, 5usize);
    let x = dyadic(&mut rng, blocks * tiles * 128 * 4);
    let sums: Vec<f32> = x.chunks(tiles * 512).map(|x| x.iter().sum()).collect();
    let sum = launch("cp_async_sum", blocks as u32, 128).input(&x).inout(&vec![0f32; blocks], exactly(&sums));
    let words = rng.ints(1024 + 256, -1000, 1000);
    let keep = 37usize;
    let buffer = |i: usize| match i {
        0..768 => words[i],
        _ if (i - 768) / 4 < keep => words[i + 256],
        _ => 0,
    };
    let want: Vec<i32> = (0..1024).rev().map(buffer).collect();
    let sizes = launch("cp_async_sizes", 1, 256).input(&words).output(exactly(&want)).scalar(keep as i32);
    vec![sum.scalar(tiles as i32), sizes]
}

fn pipeline_async(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1605);
    let (blocks, tiles) = (2usize, 5usize);
    let x = rng.ints(blocks * tiles * 256, -1000, 1000);
    let want: Vec<i32> = (0..blocks * 256)
        .map(|at| {
            let (block, t) = (at / 256, at % 256);
            (0..tiles).map(|tile| x[(block * tiles + tile) * 256 + 255 - t]).sum()
        })
        .collect();
    let f = rng.f32s(3 * 96, -1.0, 1.0);
    let n = 250usize;
    let reversed: Vec<f32> = (0..n).map(|i| f[i / 96 * 96 + 95 - i % 96]).collect();
    let copy = launch("cg_memcpy_async", 3, 96).shared(96 * 4).input(&f).output(exactly(&reversed));
    vec![
        launch("pipeline_async", 2, 256).input(&x).output(exactly(&want)).scalar(tiles as i32),
        copy.scalar(n as i32),
    ]
}

fn memory_model(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1606);
    // One thread: three loads of 3, then 9 and 10 are stored; the swap wants 5 and finds 10.
    let alone = launch("orders", 1, 1)
        .inout(&[3i32, 20], exactly(&[10i32, (21 ^ 3) & 15]))
        .inout(&[4i64], exactly(&[7i64]))
        .output(exactly(&[10u32 + (21 ^ 3)]));
    // Many threads: anything may come out, but all accesses are atomic.
    let crowd = launch("orders", 2, 64)
        .inout(&[3i32, 20], rule(2, |_: &[i32]| Ok(())))
        .inout(&[4i64], rule(1, |_: &[i64]| Ok(())))
        .output(rule(64, |_: &[u32]| Ok(())))
        .finds("race", &["atom", "atom"], "what one block's atomics do is atomic to that block only")
        .may_find("race", &["st", "st"], "both blocks store their results in the same words");
    let n = 64usize;
    let a = rng.ints(n, 0, 60_000);
    let both = [a.clone(), vec![0; n]].concat();
    let b: Vec<i8> = (0..n).map(|_| rng.u32() as i8).collect();
    let d = rng.f64s(n, -1.0, 1.0);
    let f: Vec<[f32; 4]> = (0..n).map(|_| std::array::from_fn(|_| rng.f64(-1.0, 1.0) as f32)).collect();
    let neighbours = rule(2 * n, move |got: &[i32]| {
        // A neighbour in the same warp has stored; the next warp's may not have.
        let wrong = (0..n).find(|&t| got[t] != a[t] || t % 32 != 31 && got[n + t] != a[t + 1]);
        wrong.map_or(Ok(()), |t| Err(format!("thread {t} has {}, then {}", got[t], got[n + t])))
    });
    let bumped: Vec<i8> = b.iter().map(|b| b.wrapping_add(1)).collect();
    let doubled: Vec<f64> = d.iter().map(|d| d * 2.0).collect();
    let copied: Vec<[f32; 4]> = f.iter().map(|f| [f[3], f[1], f[2], f[3]]).collect();
    let volatile = launch("volatile_mix", 1, 64)
        .inout(&both, neighbours)
        .inout(&b, exactly(&bumped))
        .inout(&d, exactly(&doubled))
        .inout(&f, exactly(&copied))
        .scalar(n as i32)
        .may_find(
            "uninitialized",
            &["ld"],
            "what the first thread of the next warp stores is read without a barrier",
        );
    let threads = 40i32;
    let published: Vec<i32> =
        (0..4 * threads).map(|i| if i < threads { -1 } else { i % threads * 3 }).collect();
    let data: Vec<i32> = (0..threads).map(|t| t * 3).collect();
    vec![
        alone,
        crowd,
        launch("spin_lock", 8, 32).cooperative().inout(&[0i32], exactly(&[8i32])),
        volatile,
        launch("fences", 4, threads as u32)
            .cooperative()
            .output(exactly(&data))
            .inout(&[0i32], exactly(&[1i32]))
            .inout(&vec![-1i32; 4 * threads as usize], exactly(&published)),
    ]
}

fn clocks(_: &File) -> Vec<Case> {
    let times = rule(4 * 32, |got: &[i64]| {
        let wrong = got.chunks(4).position(|thread| thread[0] <= 0);
        wrong.map_or(Ok(()), |t| Err(format!("thread {t} took {} cycles", got[4 * t])))
    });
    let order: Vec<i32> = (0..2 * 3 * 2 * 4 * 3 * 2).map(|id| 32 * id).collect();
    vec![
        launch("clocks", 1, 32).output(times).scalar(10i32),
        launch("dims", (2, 3, 2), (4, 3, 2)).output(exactly(&order)),
    ]
}

fn timers(_: &File) -> Vec<Case> {
    let times = rule(2 * 3, |got: &[i64]| {
        // The multiprocessor's number, and a grid of depth 1.
        let wrong = got.chunks(2).position(|block| block[0] <= 0 || !(1..1 << 16).contains(&block[1]));
        wrong.map_or(Ok(()), |block| Err(format!("block {block}: {:?}", &got[2 * block..][..2])))
    });
    vec![launch("timers", 3, 32).output(times).triton()]
}
