//! The order of warps and blocks: the same for a seed, another one for other seeds.

use crate::*;
use std::collections::BTreeSet;

fn outcome(text: &str, config: &LaunchConfig, words: usize, seed: u64) -> (Vec<u32>, String) {
    let device = device();
    let buffer = device.alloc_zeros::<u32>(words).unwrap();
    let options = Options { schedule: Schedule::Seeded(seed), ..Options::checked() };
    let report = launch(&device, text, config, &buffer, &options).wait();
    assert!(report.trap.is_none(), "{report}");
    // All that was found, in all detail.
    let told: Vec<String> = report
        .findings
        .iter()
        .map(|f| format!("{:?} {} {:?} {}", f.kind, f.count, f.accesses, f.message))
        .collect();
    (buffer.read(), format!("{told:?} {:?}", report.counters))
}

/// Every thread adds one to a word, with a load and a store, a hundred times.
fn lost_updates() -> String {
    kernel(
        "    mov.u32 %r2, 0;
$trip:
    ld.global.u32 %r1, [%rd1];
    add.u32 %r1, %r1, 1;
    st.global.u32 [%rd1], %r1;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, 100;
    @%p1 bra $trip;
    ret;",
    )
}

#[test]
fn a_seed_gives_the_same_every_time() {
    let config = LaunchConfig::new(3, 64);
    for seed in [0, 1, u64::MAX] {
        let first = outcome(&lost_updates(), &config, 1, seed);
        assert_eq!(outcome(&lost_updates(), &config, 1, seed), first, "seed {seed}");
    }
}

#[test]
fn other_seeds_lose_other_updates() {
    // Two blocks, or two warps of one block: 200 where no update is lost.
    for config in [LaunchConfig::new(2, 1), LaunchConfig::new(1, 64)] {
        let totals: BTreeSet<u32> =
            (0..40).map(|seed| outcome(&lost_updates(), &config, 1, seed).0[0]).collect();
        assert!(totals.len() > 3, "{totals:?}");
        assert!(totals.iter().all(|total| (100..=200).contains(total)), "{totals:?}");
        assert!(totals.iter().any(|&total| total < 200), "a lost update is seen: {totals:?}");
    }
}

/// Warps take numbers in the order in which they come.
fn order_of_warps() -> String {
    kernel(
        "    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 31;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra $end;
    atom.global.add.u32 %r3, [%rd1], 1;
    shr.u32 %r4, %r1, 5;
    mov.u32 %r5, %ctaid.x;
    shl.b32 %r5, %r5, 2;
    add.u32 %r4, %r4, %r5;
    mul.wide.u32 %rd2, %r3, 4;
    add.u64 %rd2, %rd1, %rd2;
    st.global.u32 [%rd2+4], %r4;
$end:
    ret;",
    )
}

#[test]
fn warps_and_blocks_come_in_many_orders() {
    let config = LaunchConfig::new(2, 128);
    let mut orders = BTreeSet::new();
    let mut first_warps = BTreeSet::new();
    for seed in 0..60 {
        let (words, _) = outcome(&order_of_warps(), &config, 9, seed);
        let mut warps = words[1..].to_vec();
        first_warps.insert(warps[0]);
        orders.insert(warps.clone());
        warps.sort_unstable();
        assert_eq!(warps, (0..8).collect::<Vec<u32>>(), "every warp comes once");
    }
    assert!(orders.len() > 30, "{} orders", orders.len());
    assert_eq!(first_warps.len(), 8, "any warp may be the first: {first_warps:?}");
}

#[test]
fn an_outcome_that_depends_on_the_order_is_reached() {
    // Block 0 writes 1 and block 1 writes 2, with no order between them; both outcomes are seen.
    let text = kernel(
        "    mov.u32 %r1, %ctaid.x;
    add.u32 %r1, %r1, 1;
    st.relaxed.gpu.global.u32 [%rd1], %r1;
    ret;",
    );
    let last: BTreeSet<u32> =
        (0..20).map(|seed| outcome(&text, &LaunchConfig::new(2, 1), 1, seed).0[0]).collect();
    assert_eq!(last, BTreeSet::from([1, 2]));
}

/// Each block waits until the one before it has set its flag, then sets its own. Which block it is, is its index or the
/// ticket that it takes.
fn look_back(number: &str) -> String {
    kernel(&format!(
        "    {number}
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd2, %rd1, %rd2;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra $own;
$trip:
    ld.acquire.gpu.global.u32 %r2, [%rd2];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra $trip;
$own:
    mov.u32 %r2, 1;
    st.release.gpu.global.u32 [%rd2+4], %r2;
    ret;"
    ))
}

/// Only what follows the order in which blocks begin depends on no promise that nobody makes.
#[test]
fn a_look_back_by_index_hangs_when_blocks_begin_in_another_order() {
    let config = LaunchConfig::new(40, 1);
    let trap = |text: &str, schedule| {
        let device = device();
        // A word for tickets behind the flags.
        let buffer = device.alloc_zeros::<u32>(48).unwrap();
        let options = Options { schedule, ..Options::checked() };
        let report = launch(&device, text, &config, &buffer, &options).wait();
        assert!(report.findings.is_empty(), "{report}");
        report.trap.map(|trap| trap.kind)
    };
    let by_index = look_back("mov.u32 %r1, %ctaid.x;");
    let by_ticket = look_back("atom.relaxed.gpu.global.add.u32 %r1, [%rd1+180], 1;");
    for seed in 0..10 {
        assert_eq!(trap(&by_ticket, Schedule::Scattered(seed)), None, "seed {seed}");
        assert_eq!(trap(&by_index, Schedule::Scattered(seed)), Some(TrapKind::Deadlock), "seed {seed}");
        assert_eq!(trap(&by_index, Schedule::Seeded(seed)), None, "seed {seed}");
    }
    assert_eq!(trap(&by_ticket, Schedule::Reversed), None);
    assert_eq!(trap(&by_index, Schedule::Reversed), Some(TrapKind::Deadlock));
    assert_eq!(trap(&by_index, Schedule::Parallel), None);
}

/// Every block begins, once, and one after the other as the seed says.
#[test]
fn scattered_blocks_all_begin() {
    let text = kernel(
        "    mov.u32 %r1, %ctaid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd2, %rd1, %rd2;
    ld.global.u32 %r2, [%rd2];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%rd2], %r2;
    ret;",
    );
    for blocks in [1, 2, 3, 4, 64, 97] {
        for seed in 0..5 {
            let device = device();
            let buffer = device.alloc_zeros::<u32>(blocks as usize).unwrap();
            let options = Options { schedule: Schedule::Scattered(seed), ..Options::checked() };
            let config = LaunchConfig::new(blocks, 1);
            assert!(launch(&device, &text, &config, &buffer, &options).wait().is_clean());
            assert_eq!(buffer.read(), vec![1; blocks as usize], "seed {seed}");
        }
    }
}

/// Each block takes a ticket and writes its index there.
#[test]
fn reversed_blocks_begin_with_the_last() {
    let text = kernel(
        "    mov.u32 %r1, %ctaid.x;
    atom.relaxed.gpu.global.add.u32 %r2, [%rd1], 1;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd2, %rd1, %rd2;
    st.global.u32 [%rd2+4], %r1;
    ret;",
    );
    for blocks in [1, 2, 5, 90] {
        let device = device();
        let buffer = device.alloc_zeros::<u32>(blocks as usize + 1).unwrap();
        let options = Options { schedule: Schedule::Reversed, ..Options::checked() };
        assert!(launch(&device, &text, &LaunchConfig::new(blocks, 1), &buffer, &options).wait().is_clean());
        let mut order = buffer.read().split_off(1);
        // A few are resident at once, and take turns.
        let first = order[0];
        assert!(first + 4 >= blocks, "block {first} of {blocks} is the first");
        let (early, late) = order.split_at_mut(blocks as usize / 2);
        assert!(
            blocks < 90 || early.iter().min().unwrap() + 8 > *late.iter().max().unwrap(),
            "{early:?} {late:?}"
        );
        order.sort_unstable();
        assert_eq!(order, (0..blocks).collect::<Vec<_>>());
    }
}

/// Two warps, of a block or of two blocks of a cluster, wait for four phases, one after the other. The first one ends each,
/// and does not ask whether the second one has noticed.
fn unasked() -> String {
    let text = kernel(
        "    .shared .align 8 .b64 bar;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p2, %r1, 0;
    mov.u32 %r4, %cluster_ctarank;
    add.u32 %r4, %r4, %r1;
    setp.ne.u32 %p1, %r4, 0;
    mov.u32 %r5, %cluster_nctarank;
    sub.u32 %r5, %r5, 1;
    mapa.shared::cluster.u32 %r5, bar, %r5;
    @%p2 bra $started;
    mbarrier.init.shared.b64 [bar], 1;
$started:
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;
    mov.u32 %r2, 0;
$phase:
    @%p1 bra $wait;
    mbarrier.arrive.shared.b64 %rd2, [bar];
    mov.u32 %r6, bar;
    setp.eq.u32 %p4, %r6, %r5;
    @%p4 bra $wait;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];
$wait:
    and.b32 %r3, %r2, 1;
    mbarrier.try_wait.parity.shared.b64 %p2, [bar], %r3;
    @!%p2 bra $wait;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p3, %r2, 4;
    @%p3 bra $phase;
    ret;",
    );
    text.replace("sm_80", "sm_90").replace(".version 7.8", ".version 8.0")
}

#[test]
fn warps_see_the_same_phases_and_some_seeds_let_one_come_too_late() {
    let device = device();
    let buffer = device.alloc_zeros::<u32>(1).unwrap();
    let cluster = LaunchConfig { cluster_dim: Some((2, 1, 1)), ..LaunchConfig::new(2, 1) };
    for config in [LaunchConfig::new(1, 64), cluster] {
        let trap = |schedule| {
            let options = Options { schedule, ..Options::checked() };
            let report = launch(&device, &unasked(), &config, &buffer, &options).wait();
            report.trap.map(|trap| trap.kind)
        };
        assert_eq!(trap(Schedule::Parallel), None, "{config:?}");
        let traps: Vec<_> = (0..40).filter_map(|seed| trap(Schedule::Seeded(seed))).collect();
        assert!((1..40).contains(&traps.len()), "{config:?}: {}", traps.len());
        assert!(traps.iter().all(|kind| *kind == TrapKind::Deadlock), "{traps:?}");
    }
}
