//! What caches would be asked for, and samples of a grid, against numbers worked out by hand.

use warpwright_vm::*;

/// A kernel of a parameter, in `%rd0`, with the thread's number in `%r0` and the block's in `%r1`.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{{
    .shared .align 16 .b8 tile[512];
    .reg .pred %p<4>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd0, [p];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
{body}
    ret;
}}"
    )
}

/// What is counted, and nothing is checked.
fn counted() -> Options {
    Options { counters: true, fetches: true, ..Options::default() }
}

/// Runs a kernel on that many words of zeros: what it counts and what it leaves.
fn run(body: &str, config: LaunchConfig, words: usize, options: Options) -> (Counters, Vec<u32>) {
    let mut device = DeviceConfig::default();
    device.workers = 2;
    let device = Device::new(device).expect("there is a device");
    let module = device.load_ptx(&kernel(body)).expect("it can be loaded");
    let buffer = device.alloc_zeros::<u32>(words).expect("there is room");
    let running = device.launch(&module, "k", &config, &[Arg::buffer(&buffer)], &options);
    let report = running.expect("it starts").wait();
    assert!(report.is_clean(), "{report}");
    (report.counters, buffer.read())
}

/// What a kernel asks of caches for the only buffer that it has.
fn fetches(body: &str, config: LaunchConfig) -> Fetches {
    let (counters, _) = run(body, config, 4096, counted());
    let [(_, bytes, fetches)] = counters.fetches[..] else { panic!("{:?}", counters.fetches) };
    assert_eq!(bytes, 4 * 4096);
    // The instructions ask for no more and no less than the buffer is asked for.
    let sum = |of: fn(&Fetches) -> u64| counters.lines.iter().map(|line| of(&line.fetches)).sum::<u64>();
    assert_eq!(sum(|all| all.lines), fetches.lines);
    assert_eq!(sum(|all| all.passes), fetches.passes);
    assert_eq!(sum(|all| all.loaded[0]), fetches.loaded[0]);
    assert_eq!(sum(|all| all.first_loaded), fetches.first_loaded);
    assert_eq!(sum(|all| all.first_written), fetches.first_written);
    fetches
}

/// Each lane of a warp loads from `stride` bytes times its number on, with this instruction.
fn load_with_stride(load: &str, stride: u32) -> String {
    format!(
        "
    and.b32 %r2, %r0, 31;
    mul.wide.u32 %rd1, %r2, {stride};
    add.u64 %rd1, %rd0, %rd1;
    {load}"
    )
}

const LOAD: &str = "ld.global.u32 %r3, [%rd1];";

#[test]
fn lines_passes_and_sectors_depend_on_the_addresses_of_a_warp() {
    let wide = "ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd1];";
    for (load, stride, lines, passes, sectors) in [
        // All lanes want one word.
        (LOAD, 0, 1, 1, 1),
        // Lane beside lane.
        (LOAD, 4, 1, 1, 4),
        // Every second word: two lanes meet in a bank.
        (LOAD, 8, 2, 2, 8),
        // 32 rows: a line, and a pass, for each lane.
        (LOAD, 128, 32, 32, 32),
        // A padded row apart: lines of their own, and no two lanes meet in a bank.
        (LOAD, 132, 32, 1, 32),
        // Four words a lane go by quarters of a warp.
        (wide, 16, 4, 4, 16),
    ] {
        let all = fetches(&load_with_stride(load, stride), LaunchConfig::new(1, 32));
        assert_eq!((all.lines, all.passes), (lines, passes), "{load} {stride}");
        assert_eq!(all.loaded, [sectors; WINDOWS.len()], "{load} {stride}: the block has none of them yet");
        assert_eq!((all.first_loaded, all.first_written), (sectors, 0), "{load} {stride}");
    }
}

#[test]
fn what_several_warps_of_a_block_load_together_is_loaded_once() {
    for warps in [1, 2, 8] {
        let all = fetches(&load_with_stride(LOAD, 4), LaunchConfig::new(1, 32 * warps));
        assert_eq!(all.loaded, [4; WINDOWS.len()], "{warps} warps");
        // Each of them is a request all the same.
        assert_eq!((all.lines, all.passes), (u64::from(warps), u64::from(warps)));
    }
}

#[test]
fn a_sector_is_loaded_again_in_windows_that_are_shorter_than_its_absence() {
    // The loop has three instructions, so the second load is 1 + 3 n instructions behind the first one: that is as long
    // as a window, to the instruction, if n is a third of it.
    for (passes, again) in
        [(0, 0), (20, 0), (21, 1), (84, 1), (85, 2), (340, 2), (341, 3), (1364, 3), (1365, 4), (5461, 5)]
    {
        let wait = format!(
            "
AGAIN:
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p0, %r4, {passes};
    @%p0 bra AGAIN;"
        );
        let wait = if passes == 0 { String::new() } else { wait };
        let body = format!("mov.u32 %r4, 0;\n{}{wait}\n    {LOAD}", load_with_stride(LOAD, 4));
        for warps in [1, 4] {
            let all = fetches(&body, LaunchConfig::new(1, 32 * warps));
            let expected: [u64; WINDOWS.len()] =
                std::array::from_fn(|window| if window < again { 8 } else { 4 });
            assert_eq!(all.loaded, expected, "{passes} passes, {warps} warps");
            assert_eq!(all.first_loaded, 4);
        }
    }
}

#[test]
fn time_is_level_at_barriers() {
    // Warp 1 loads at once and comes back behind the barrier; in between, warp 0 executes 300 instructions.
    let body = format!(
        "
    setp.lt.u32 %p1, %r0, 32;
    mov.u32 %r4, 0;
    @%p1 bra AGAIN;
    {}
    bra MEET;
AGAIN:
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p0, %r4, 100;
    @%p0 bra AGAIN;
MEET:
    bar.sync 0;
    @%p1 bra END;
    {LOAD}
END:",
        load_with_stride(LOAD, 4)
    );
    let all = fetches(&body, LaunchConfig::new(1, 64));
    assert_eq!(all.loaded, [8, 8, 4, 4, 4, 4], "warp 1 has executed few instructions itself");
}

#[test]
fn the_launch_loads_once_what_each_of_its_blocks_loads() {
    for (blocks, schedule) in [(1, Schedule::Parallel), (2, Schedule::Parallel), (7, Schedule::Scattered(3))]
    {
        let options = Options { schedule, ..counted() };
        let (counters, _) = run(&load_with_stride(LOAD, 4), LaunchConfig::new(blocks, 64), 4096, options);
        let (_, _, all) = counters.fetches[0];
        assert_eq!(all.loaded, [4 * u64::from(blocks); WINDOWS.len()], "{blocks} blocks");
        assert_eq!((all.first_loaded, all.first_written), (4, 0), "{blocks} blocks");
    }
}

#[test]
fn stores_and_atomics_count_sectors_that_the_launch_has_not_written() {
    let store = "st.global.u32 [%rd1], %r0;";
    let atomic = "red.global.add.u32 [%rd1], %r0;";
    let apart = format!("{store}\n    {}", atomic.replace("[%rd1]", "[%rd1+4096]"));
    for (what, instructions, written, lines) in [
        ("a store", store.to_string(), 4, 2),
        ("an atomic", atomic.to_string(), 4, 2),
        ("an atomic after a store to the same words", format!("{store}\n    {atomic}"), 4, 4),
        ("an atomic to other words", apart, 8, 4),
    ] {
        let all = fetches(&load_with_stride(&instructions, 4), LaunchConfig::new(2, 32));
        assert_eq!((all.first_written, all.lines), (written, lines), "{what} of two blocks");
        assert_eq!((all.loaded, all.first_loaded), ([0; WINDOWS.len()], 0), "{what} loads nothing");
    }
    // What is loaded is not written by that, nor the other way around.
    let both = fetches(&load_with_stride(&format!("{LOAD}\n    {store}"), 4), LaunchConfig::new(2, 32));
    assert_eq!((both.first_loaded, both.first_written), (4, 4));
}

#[test]
fn asynchronous_copies_load() {
    let copy = "
    mov.u32 %r3, tile;
    mad.lo.u32 %r3, %r2, 16, %r3;
    cp.async.cg.shared.global [%r3], [%rd1], 16;
    cp.async.wait_all;";
    let all = fetches(&load_with_stride(copy, 16), LaunchConfig::new(1, 32));
    assert_eq!((all.loaded, all.first_loaded, all.first_written), ([16; WINDOWS.len()], 16, 0));
    assert_eq!((all.lines, all.passes), (4, 4));
}

#[test]
fn lanes_that_take_no_part_ask_for_nothing() {
    let few = format!("setp.lt.u32 %p1, %r0, 8;\n    {}", load_with_stride(&format!("@%p1 {LOAD}"), 4));
    let all = fetches(&few, LaunchConfig::new(1, 64));
    assert_eq!((all.lines, all.passes, all.first_loaded), (1, 1, 1));
}

#[test]
fn nothing_is_counted_that_is_not_asked_for() {
    let body = load_with_stride(LOAD, 4);
    for counters in [false, true] {
        let options = Options { counters, ..Options::default() };
        let (counted, _) = run(&body, LaunchConfig::new(3, 32), 4096, options);
        assert_eq!(counted.fetches, [], "counters: {counters}");
        assert!(counted.lines.iter().all(|line| line.fetches == Fetches::default()));
        assert_eq!((counted.blocks, counted.warp_instructions), (3, 3 * 8), "instructions always are");
    }
    // Fetches are beside counters, so who asks for them gets both.
    let options = Options { fetches: true, ..Options::default() };
    let (counted, _) = run(&body, LaunchConfig::new(3, 32), 4096, options);
    assert_eq!((counted.global.loads.requests, counted.fetches[0].2.first_loaded), (3, 4));
}

/// Each block adds its number plus one to the word of its number, x first.
const NUMBERS: &str = "
    mov.u32 %r2, %ctaid.y;
    mov.u32 %r3, %nctaid.x;
    mad.lo.u32 %r1, %r2, %r3, %r1;
    mul.wide.u32 %rd1, %r1, 4;
    add.u64 %rd1, %rd0, %rd1;
    add.u32 %r1, %r1, 1;
    red.global.add.u32 [%rd1], %r1;";

/// The numbers of the blocks that a launch has executed, each once, and how many the counters say.
fn executed(config: LaunchConfig, options: Options) -> (Vec<u32>, u64) {
    let config = LaunchConfig { block_dim: (1, 1, 1), ..config };
    let blocks = config.grid_dim.0 * config.grid_dim.1;
    let (counters, words) = run(NUMBERS, config, blocks as usize, options);
    let numbers: Vec<u32> = (0..blocks).filter(|&block| words[block as usize] != 0).collect();
    assert!(numbers.iter().all(|&block| words[block as usize] == block + 1), "none is executed twice");
    (numbers, counters.blocks)
}

#[test]
fn a_sample_executes_so_many_different_blocks_from_the_whole_grid() {
    for (grid, sample, expected) in [
        // Four runs of neighbours, each in the middle of a quarter of the grid.
        ((800, 1, 1), 8, vec![99, 100, 299, 300, 499, 500, 699, 700]),
        // Rows count too.
        ((10, 8, 1), 4, vec![9, 29, 49, 69]),
        // Fewer blocks than runs.
        ((9, 1, 1), 1, vec![4]),
        ((5, 1, 1), 5, (0..5).collect()),
        ((5, 1, 1), u64::MAX, (0..5).collect()),
        // A sample has a block at least.
        ((9, 1, 1), 0, vec![4]),
    ] {
        let config = LaunchConfig { grid_dim: grid, ..LaunchConfig::new(1, 1) };
        for schedule in [Schedule::Parallel, Schedule::Seeded(1)] {
            let options = Options { sample: Some(sample), schedule, ..Options::default() };
            let counted = expected.len() as u64;
            assert_eq!(executed(config, options), (expected.clone(), counted), "{sample} of {grid:?}");
        }
        // Blocks begin elsewhere, and are as many.
        let schedule = Schedule::Scattered(5);
        let (numbers, blocks) =
            executed(config, Options { sample: Some(sample), schedule, ..Options::default() });
        assert_eq!((numbers.len(), blocks), (expected.len(), expected.len() as u64), "{sample} of {grid:?}");
    }
}

#[test]
fn a_grid_is_executed_whole_if_its_blocks_may_wait_for_each_other_or_no_sample_is_asked_for() {
    for (cooperative, sample) in [(true, Some(2)), (true, None), (false, None)] {
        let config = LaunchConfig { cooperative, ..LaunchConfig::new(12, 1) };
        let options = Options { sample, ..Options::default() };
        assert_eq!(executed(config, options), ((0..12).collect(), 12), "{cooperative}, {sample:?}");
    }
}

/// The longest warp is one that works, and those that wait for it at a barrier are as long.
#[test]
fn the_longest_warp_is_known() {
    // Warp 0 of block 1 goes round as often as it says.
    let body = |rounds: u32| {
        format!(
            "    shr.u32 %r2, %r0, 5;\n    setp.ne.u32 %p0, %r2, 0;\n    @%p0 bra WAIT;\n    setp.ne.u32 %p0, %r1, 1;\n    \
             @%p0 bra WAIT;\n    mov.u32 %r3, 0;\nLOOP:\n    add.u32 %r3, %r3, 1;\n    setp.lt.u32 %p1, %r3, {rounds};\n    \
             @%p1 bra LOOP;\nWAIT:\n    bar.sync 0;"
        )
    };
    let longest =
        |rounds, blocks| run(&body(rounds), LaunchConfig::new(blocks, 64), 64, counted()).0.longest_warp;
    let (few, many) = (longest(10, 2), longest(1010, 2));
    assert_eq!(many - few, 3 * 1000);
    assert_eq!(longest(1010, 1), longest(10, 1), "without block 1 nobody goes round");
    assert!(longest(10, 1) < few);
}
