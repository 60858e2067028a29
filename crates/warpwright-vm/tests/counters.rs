//! Counters, against numbers worked out by hand.

use warpwright_vm::*;

const HEADER: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// Runs the kernel `k` of the text with buffers of zeros, of that many words each: its counters and the
/// addresses of the buffers.
fn run(text: &str, config: LaunchConfig, buffers: &[usize]) -> (Counters, Vec<u64>) {
    let module = warpwright_ptx::parse(&format!("{HEADER}{text}")).expect("it is PTX");
    let info = warpwright_ptx::verify(&module).expect("it is valid");
    let device = Device::new(DeviceConfig::default()).expect("there is a device");
    let module = device.load(&module, &info).expect("it can be loaded");
    let buffers: Vec<Buffer<u32>> =
        buffers.iter().map(|&words| device.alloc_zeros(words).expect("there is room")).collect();
    let args: Vec<Arg> = buffers.iter().map(Arg::buffer).collect();
    let report = device.launch(&module, "k", &config, &args, &Options::checked()).expect("it starts").wait();
    assert!(report.is_clean(), "{report}");
    (report.counters, buffers.iter().map(Buffer::address).collect())
}

fn traffic(traffic: Traffic) -> (u64, u64, u64) {
    (traffic.requests, traffic.bytes, traffic.transactions)
}

/// The lines with that opcode.
fn lines(counters: &Counters, opcode: &str) -> Vec<LineCounters> {
    counters.lines.iter().filter(|line| line.opcode == opcode).cloned().collect()
}

/// A kernel in which each thread copies the word at `stride` · its number to the word of its number.
fn copy_with_stride(stride: u32) -> String {
    let bytes = 4 * stride;
    format!(
        "
.visible .entry k(.param .u64 from, .param .u64 to)
{{
    .reg .b32 %r<2>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd0, [from];
    ld.param.u64 %rd1, [to];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %rd2, %r0, {bytes};
    add.s64 %rd3, %rd0, %rd2;
    mul.wide.u32 %rd4, %r0, 4;
    add.s64 %rd5, %rd1, %rd4;
    ld.global.u32 %r1, [%rd3];
    st.global.u32 [%rd5], %r1;
    ret;
}}"
    )
}

#[test]
fn a_coalesced_load_touches_four_sectors_and_a_strided_one_thirty_two() {
    for (stride, sectors) in [(1, 4), (2, 8), (8, 32), (32, 32)] {
        let words = 63 * stride as usize + 1;
        let (counters, addresses) = run(&copy_with_stride(stride), LaunchConfig::new(1, 64), &[words, 64]);
        assert_eq!(traffic(counters.global.loads), (2, 256, 2 * sectors), "stride {stride}");
        assert_eq!(traffic(counters.global.stores), (2, 256, 8), "stride {stride}");
        // Ten instructions of two warps.
        assert_eq!((counters.warp_instructions, counters.instructions), (20, 640));
        let load =
            lines(&counters, "ld").into_iter().find(|line| line.global.requests > 0).expect("it is there");
        assert_eq!(traffic(load.global), (2, 256, 2 * sectors));
        let by_allocation = |address| {
            let found = counters.allocations.iter().find(|(_, base, _)| *base == address);
            found.map(|(_, _, traffic)| (traffic.loads.bytes, traffic.stores.bytes))
        };
        assert_eq!(by_allocation(addresses[0]), Some((256, 0)));
        assert_eq!(by_allocation(addresses[1]), Some((0, 256)));
    }
}

/// A block of 32 × 32 threads transposes 32 × 32 words through shared memory with rows of `pitch` bytes.
fn transpose(pitch: u32) -> String {
    format!(
        "
.visible .entry k(.param .u64 from, .param .u64 to)
{{
    .shared .align 16 .b8 tile[{}];
    .reg .b32 %r<9>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd0, [from];
    ld.param.u64 %rd1, [to];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %tid.y;
    mad.lo.u32 %r2, %r1, 32, %r0;
    mul.wide.u32 %rd2, %r2, 4;
    add.s64 %rd3, %rd0, %rd2;
    ld.global.u32 %r3, [%rd3];
    mov.u32 %r4, tile;
    mad.lo.u32 %r5, %r1, {pitch}, %r4;
    mad.lo.u32 %r6, %r0, 4, %r5;
    st.shared.u32 [%r6], %r3;
    bar.sync 0;
    mad.lo.u32 %r7, %r0, {pitch}, %r4;
    mad.lo.u32 %r8, %r1, 4, %r7;
    ld.shared.u32 %r3, [%r8];
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r3;
    ret;
}}",
        32 * pitch
    )
}

#[test]
fn a_transpose_without_padding_has_conflicts_of_thirty_two_ways() {
    let config = LaunchConfig { block_dim: (32, 32, 1), ..LaunchConfig::new(1, 1) };
    let (counters, _) = run(&transpose(128), config, &[1024, 1024]);
    assert_eq!(traffic(counters.shared.stores), (32, 4096, 32), "a row a pass");
    assert_eq!(traffic(counters.shared.loads), (32, 4096, 32 * 32), "a column takes 32 passes");
    assert_eq!(counters.bank_conflicts, 32 * 31);
    let conflicts = |opcode| lines(&counters, opcode).iter().map(|line| line.bank_conflicts).sum::<u64>();
    assert_eq!((conflicts("ld"), conflicts("st")), (32 * 31, 0));

    let (counters, _) = run(&transpose(132), config, &[1024, 1024]);
    assert_eq!(traffic(counters.shared.loads), (32, 4096, 32));
    assert_eq!(counters.bank_conflicts, 0, "a word of padding a row");
    assert_eq!(traffic(counters.global.loads), (32, 4096, 128));

    // All 32 warps come to the barrier after as many instructions: 31 wait, and none of them long. It counts
    // once a warp, although all but the last execute it in two goes.
    assert_eq!((counters.barrier.waits, counters.barrier.instructions), (31, 0));
    let [barrier] = &lines(&counters, "bar.sync")[..] else { panic!("there is one") };
    assert_eq!((barrier.warps, barrier.lanes, barrier.barrier), (32, 1024, counters.barrier));
    assert_eq!(counters.warp_instructions, 32 * 19);
}

#[test]
fn warps_wait_for_the_slowest() {
    // Warp 0 adds a hundred times, in a loop of three instructions, and the others go round it.
    let text = "
.visible .entry k()
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    mov.u32 %r0, %tid.x;
    setp.ge.u32 %p0, %r0, 32;
    @%p0 bra MEET;
    mov.u32 %r1, 0;
AGAIN:
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 100;
    @%p1 bra AGAIN;
MEET:
    bar.sync 0;
    bar.sync 0;
    ret;
}";
    let (counters, _) = run(text, LaunchConfig::new(1, 128), &[]);
    let barriers = lines(&counters, "bar.sync");
    // The others come 301 instructions earlier. After the barrier all go on from there.
    assert_eq!((barriers[0].barrier.waits, barriers[0].barrier.instructions), (3, 3 * 301));
    assert_eq!((barriers[1].barrier.waits, barriers[1].barrier.instructions), (3, 0));
    assert_eq!(counters.divergent_branches, 0, "whole warps take each branch");
    let (alone, _) = run(text, LaunchConfig::new(4, 32), &[]);
    assert_eq!(alone.barrier, BarrierWaits::default(), "a warp alone waits for nobody");
}

#[test]
fn what_divides_a_warp_is_counted() {
    // Lanes with an odd number take another way, then lanes 0 and 2 to 30 go on to the end together.
    let text = "
.visible .entry k()
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    mov.u32 %r0, %tid.x;
    and.b32 %r1, %r0, 1;
    setp.eq.u32 %p0, %r1, 1;
    @%p0 bra ODD;
    add.u32 %r2, %r0, 1;
    bra MEET;
ODD:
    sub.u32 %r2, %r0, 1;
MEET:
    xor.b32 %r2, %r2, %r0;
    ret;
}";
    let (counters, _) = run(text, LaunchConfig::new(3, 64), &[]);
    assert_eq!(counters.divergent_branches, 6, "once in each of six warps");
    let executed =
        |opcode| lines(&counters, opcode).iter().map(|line| (line.warps, line.lanes)).collect::<Vec<_>>();
    assert_eq!(executed("add"), [(6, 96)], "by half of the lanes");
    assert_eq!(executed("sub"), [(6, 96)]);
    assert_eq!(executed("xor"), [(6, 192)], "by all of them together again");
}

#[test]
fn atomics_constants_local_memory_and_copies_are_told_apart() {
    let text = "
.const .align 4 .b32 table[4] = {1, 2, 3, 4};
.visible .entry k(.param .u64 from, .param .u64 count)
{
    .shared .align 16 .b8 tile[512];
    .local .align 4 .b8 own[8];
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd0, [from];
    ld.param.u64 %rd1, [count];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %rd2, %r0, 16;
    add.s64 %rd3, %rd0, %rd2;
    mov.u32 %r1, tile;
    mad.lo.u32 %r2, %r0, 16, %r1;
    cp.async.cg.shared.global [%r2], [%rd3], 16;
    cp.async.wait_all;
    ld.const.u32 %r3, [table+4];
    st.local.u32 [own], %r3;
    ld.local.u32 %r4, [own];
    red.global.add.u32 [%rd1], %r4;
    ret;
}";
    let (counters, addresses) = run(text, LaunchConfig::new(1, 32), &[128, 1]);
    assert_eq!(traffic(counters.global.loads), (1, 512, 16), "the copy reads");
    assert_eq!(traffic(counters.shared.stores), (1, 512, 4), "and writes");
    assert_eq!(traffic(counters.global.stores), (0, 0, 0));
    assert_eq!(traffic(counters.global.atomics), (1, 128, 1), "32 lanes, one word");
    assert_eq!(traffic(counters.constant.loads), (1, 128, 1), "one word for all");
    assert_eq!(traffic(counters.local.loads), (1, 128, 4));
    assert_eq!(traffic(counters.local.stores), (1, 128, 4));
    assert_eq!(counters.bank_conflicts, 0);
    let (_, _, count) =
        counters.allocations.iter().find(|(_, base, _)| *base == addresses[1]).expect("it is there");
    assert_eq!(
        (traffic(count.atomics), count.loads, count.stores),
        ((1, 128, 1), Traffic::default(), Traffic::default())
    );
}
