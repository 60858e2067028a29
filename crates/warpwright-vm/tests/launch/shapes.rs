//! Blocks and grids of every shape.

use crate::*;

/// Thread `i` of the grid, counted x first, adds its number plus one to word `i`.
fn numbers() -> String {
    kernel(
        "    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    mov.u32 %r3, %tid.z;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %ntid.y;
    mov.u32 %r6, %ntid.z;
    mad.lo.u32 %r7, %r3, %r5, %r2;
    mad.lo.u32 %r7, %r7, %r4, %r1;
    mul.lo.u32 %r8, %r4, %r5;
    mul.lo.u32 %r8, %r8, %r6;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ctaid.y;
    mov.u32 %r3, %ctaid.z;
    mov.u32 %r4, %nctaid.x;
    mov.u32 %r5, %nctaid.y;
    mad.lo.u32 %r9, %r3, %r5, %r2;
    mad.lo.u32 %r9, %r9, %r4, %r1;
    mad.lo.u32 %r7, %r9, %r8, %r7;
    bar.sync 0;
    mul.wide.u32 %rd2, %r7, 4;
    add.u64 %rd2, %rd1, %rd2;
    add.u32 %r7, %r7, 1;
    red.global.add.u32 [%rd2], %r7;
    bar.sync 0;
    ret;",
    )
}

/// The same of a function, which lanes of even and of odd numbers call one after the other.
fn numbers_of_a_function() -> String {
    let numbers = numbers();
    let (head, body) = numbers.split_once(".visible .entry k(.param .u64 p)").unwrap();
    format!(
        "{head}.func of_thread(.reg .b64 %to){}
        .visible .entry k(.param .u64 p)
        {{
            .reg .pred %p<2>;
            .reg .b32 %r<2>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [p];
            mov.u32 %r1, %tid.x;
            and.b32 %r1, %r1, 1;
            setp.eq.u32 %p1, %r1, 1;
            @%p1 bra odd;
            call of_thread, (%rd1);
            ret;
            odd:
            call of_thread, (%rd1);
            ret;
        }}",
        body.replace("ld.param.u64 %rd1, [p]", "mov.b64 %rd1, %to").replace("bar.sync 0;", "")
    )
}

#[test]
fn every_thread_of_every_shape_runs_once() {
    let device = device();
    for text in [numbers(), numbers_of_a_function()] {
        threads_run_once(&device, &load(&device, &text));
    }
}

fn threads_run_once(device: &Device, module: &Module) {
    for (grid, block) in [
        ((1, 1, 1), (1, 1, 1)),
        ((1, 1, 1), (33, 1, 1)),
        ((2, 1, 1), (7, 5, 3)),
        ((3, 2, 2), (1, 31, 1)),
        ((1, 3, 5), (2, 3, 7)),
        ((1, 1, 1), (1024, 1, 1)),
        ((2, 1, 1), (1, 1024, 1)),
        ((1, 2, 1), (1, 16, 64)),
        ((1, 1, 2), (4, 4, 64)),
        ((4, 1, 1), (10, 10, 10)),
    ] {
        let threads = [grid.0, grid.1, grid.2, block.0, block.1, block.2].iter().product::<u32>();
        let buffer = device.alloc_zeros::<u32>(threads as usize).unwrap();
        let config = LaunchConfig { grid_dim: grid, block_dim: block, ..LaunchConfig::new(1, 1) };
        for schedule in [Schedule::Parallel, Schedule::Seeded(3)] {
            buffer.zero();
            let options = Options { schedule, ..Options::checked() };
            let running = device.launch(module, "k", &config, &[Arg::buffer(&buffer)], &options).unwrap();
            let report = running.wait();
            assert!(report.is_clean(), "{grid:?} {block:?}: {report}");
            assert!(buffer.read().into_iter().eq(1..=threads), "{grid:?} {block:?}");
        }
    }
}

#[test]
fn shapes_that_no_device_takes_are_refused() {
    let device = device();
    let module = load(&device, &numbers());
    let buffer = device.alloc_zeros::<u32>(1).unwrap();
    for (grid, block) in [
        ((1, 1, 1), (1025, 1, 1)),
        ((1, 1, 1), (32, 32, 2)),
        ((1, 1, 1), (1, 1, 65)),
        ((1, 1, 1), (0, 1, 1)),
        ((0, 1, 1), (1, 1, 1)),
        ((1, 65536, 1), (1, 1, 1)),
        ((1, 1, 65536), (1, 1, 1)),
        ((0x8000_0000, 1, 1), (1, 1, 1)),
        ((1, 1, 1), (u32::MAX, u32::MAX, 1)),
    ] {
        let config = LaunchConfig { grid_dim: grid, block_dim: block, ..LaunchConfig::new(1, 1) };
        let result = device.launch(&module, "k", &config, &[Arg::buffer(&buffer)], &Options::default());
        assert!(matches!(result, Err(DeviceError::Launch(_))), "{grid:?} {block:?}");
    }
}

#[test]
fn a_million_blocks() {
    let text = kernel(
        "    mov.u32 %r1, %ctaid.x;
    and.b32 %r1, %r1, 63;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd2, %rd1, %rd2;
    red.global.add.u32 [%rd2], 1;
    ret;",
    );
    let device = device();
    let buffer = device.alloc_zeros::<u32>(64).unwrap();
    let config = LaunchConfig { grid_dim: (1 << 15, 32, 1), ..LaunchConfig::new(1, 1) };
    let report = launch(&device, &text, &config, &buffer, &Options::default()).wait();
    assert!(report.is_clean(), "{report}");
    assert_eq!(buffer.read(), [1 << 14; 64]);
}

#[test]
fn a_cooperative_grid_must_fit_on_the_device() {
    let mut config = DeviceConfig::default();
    config.workers = 2;
    config.multiprocessors = 4;
    let device = Device::new(config).unwrap();
    let module = load(&device, &numbers());
    // Two blocks of 1024 threads on each multiprocessor.
    for (blocks, fits) in [(8, true), (9, false)] {
        let buffer = device.alloc_zeros::<u32>(blocks as usize * 1024).unwrap();
        let config = LaunchConfig { cooperative: true, ..LaunchConfig::new(blocks, 1024) };
        let result = device.launch(&module, "k", &config, &[Arg::buffer(&buffer)], &Options::default());
        match result {
            Ok(running) => {
                assert!(fits);
                assert!(running.wait().is_clean());
            }
            Err(error) => {
                assert!(!fits, "{error}");
                assert!(matches!(error, DeviceError::Launch(_)));
            }
        }
    }
}

#[test]
fn a_device_refuses_what_its_architecture_has_not() {
    let text = ".version 7.8
.target sm_86
.address_size 64
.visible .entry k() { ret; }
";
    let on = |sm| {
        let mut config = DeviceConfig::default();
        (config.arch, config.workers) = (warpwright_ptx::ir::Arch::sm(sm), 1);
        Device::new(config).unwrap()
    };
    let refused = on(80).load_ptx(text).map(|_| ());
    assert!(
        matches!(refused, Err(DeviceError::Target { module, device }) if (module.sm, device.sm) == (86, 80))
    );
    for (sm, max) in [(86, 99), (89, 99), (90, 227)] {
        let device = on(sm);
        let module = device.load_ptx(text).unwrap();
        for (bytes, fits) in [(max << 10, true), ((max << 10) + 1, false)] {
            let config = LaunchConfig { shared_mem_bytes: bytes, ..LaunchConfig::new(1, 32) };
            match device.launch(&module, "k", &config, &[], &Options::default()) {
                Ok(running) => assert!(fits && running.wait().is_clean(), "sm_{sm}, {bytes} bytes"),
                Err(DeviceError::Launch(LaunchError::SharedMemory { max, .. })) => {
                    assert!(!fits && max == u64::from(bytes) - 1, "sm_{sm}, {bytes} bytes");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn kernels_say_what_their_frames_take() {
    let device = device();
    let text = kernel(
        "    .local .align 4 .b8 few[12];
    .local .align 8 .b8 more[40];
    ld.global.u32 %r1, [%rd1];
    ld.global.u32 %r2, [%rd1+4];
    ld.global.u32 %r3, [%rd1+8];
    add.u32 %r4, %r1, %r2;
    add.u32 %r4, %r4, %r3;
    st.global.u32 [%rd1], %r4;
    ret;",
    );
    let module = load(&device, &text);
    let kernel = module.kernel("k").unwrap();
    assert_eq!(kernel.local_bytes, 52);
    // The address, and three words with the first sum: a result takes no register that its operands are read from.
    assert_eq!(kernel.registers, 2 + 4);
}

#[test]
fn clusters_have_the_shape_that_the_kernel_asks_for() {
    use ClusterRule::{AtMost, NotOn, Required, Said, Whole};
    let body = ".reg .b32 %r1; mov.u32 %r1, %cluster_ctarank; barrier.cluster.arrive; barrier.cluster.wait;";
    let x = |blocks: u32| Some((blocks, 1, 1));
    for (directives, grid, cluster, refused) in [
        ("", (4, 1, 1), None, None),
        ("", (4, 6, 1), Some((2, 3, 1)), None),
        ("", (16, 1, 1), x(16), None),
        ("", (34, 1, 1), x(17), Some(AtMost(16))),
        ("", (4, 1, 1), x(0), Some(AtMost(16))),
        ("", (u32::MAX >> 1, 1, 1), Some((1 << 16, 1 << 16, 1)), Some(AtMost(16))),
        ("", (4, 1, 1), x(3), Some(Whole { grid: [4, 1, 1] })),
        ("", (4, 5, 1), Some((2, 2, 1)), Some(Whole { grid: [4, 5, 1] })),
        (".maxclusterrank 4", (8, 1, 1), x(4), None),
        (".maxclusterrank 4", (8, 1, 1), x(8), Some(AtMost(4))),
        (".reqnctapercluster 2", (4, 1, 1), None, None),
        (".reqnctapercluster 2", (4, 1, 1), x(2), None),
        (".reqnctapercluster 2", (4, 1, 1), x(4), Some(Required([2, 1, 1]))),
        (".reqnctapercluster 1, 2, 4", (3, 2, 4), None, None),
        (".reqnctapercluster 0", (4, 1, 1), None, Some(AtMost(16))),
        (".reqnctapercluster 2", (5, 1, 1), None, Some(Whole { grid: [5, 1, 1] })),
        (".explicitcluster", (4, 1, 1), None, Some(Said)),
        (".explicitcluster", (4, 1, 1), x(2), None),
        (".explicitcluster\n.reqnctapercluster 3", (3, 1, 1), None, None),
    ] {
        let text = format!(
            ".version 7.8\n.target sm_90\n.address_size 64\n.entry k() {directives} {{ {body} ret; }}"
        );
        let device = device();
        let module = device.load_ptx(&text).unwrap();
        let config = LaunchConfig { grid_dim: grid, cluster_dim: cluster, ..LaunchConfig::new(1, 32) };
        let launched = device.launch(&module, "k", &config, &[], &Options::default());
        match launched.map(|running| running.wait().is_clean()) {
            Ok(clean) => assert!(clean && refused.is_none(), "{directives} {cluster:?}"),
            Err(DeviceError::Launch(LaunchError::Clusters { rule, .. })) => {
                assert_eq!(Some(rule), refused, "{directives} {cluster:?}");
            }
            Err(error) => panic!("{directives}: {error}"),
        }
    }
    let mut old = DeviceConfig::default();
    old.arch = warpwright_ptx::ir::Arch::sm(80);
    let device = Device::new(old).unwrap();
    let module =
        device.load_ptx(".version 7.8\n.target sm_80\n.address_size 64\n.entry k() { ret; }").unwrap();
    let launch = |cluster_dim| {
        let config = LaunchConfig { cluster_dim, ..LaunchConfig::new(2, 32) };
        device
            .launch(&module, "k", &config, &[], &Options::default())
            .map(|running| running.wait().is_clean())
    };
    assert!(matches!(launch(x(1)), Ok(true)));
    let Err(DeviceError::Launch(LaunchError::Clusters { rule, .. })) = launch(x(2)) else {
        panic!("refused")
    };
    assert_eq!(rule, NotOn(warpwright_ptx::ir::Arch::sm(80)));
}

/// `.blocksareclusters`: the grid counts clusters.
#[test]
fn a_grid_may_count_clusters() {
    let device = device();
    let module = device.load_ptx(
        ".version 9.0\n.target sm_90\n.address_size 64
        .entry k(.param .u64 x) .reqntid 1 .reqnctapercluster 2, 3 .blocksareclusters
        {
            .reg .b32 %r<4>;
            .reg .b64 %rd1;
            ld.param.u64 %rd1, [x];
            mov.u32 %r1, %nctaid.x;
            mov.u32 %r2, %nctaid.y;
            mad.lo.u32 %r3, %r1, 100, %r2;
            atom.global.max.u32 %r1, [%rd1], %r3;
            atom.global.add.u32 %r1, [%rd1+4], 1;
            ret;
        }",
    );
    let counts = device.clone_htod(&[0u32; 2]).unwrap();
    let config = LaunchConfig { grid_dim: (2, 4, 1), ..LaunchConfig::new(1, 1) };
    let args = [Arg::Pointer(counts.address())];
    let report = device.launch(&module.unwrap(), "k", &config, &args, &Options::default()).unwrap().wait();
    assert!(report.is_clean(), "{report}");
    assert_eq!(counts.read(), [412, 48]);
}

/// A host thread runs block after block, in the registers of the one before: what a block finds is its own. A clock goes on
/// within a block.
#[test]
fn special_registers_are_those_of_the_block_and_of_the_moment() {
    let text = kernel(
        "    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %smid;
    mov.u32 %r3, %nsmid;
    rem.u32 %r3, %r1, %r3;
    sub.u32 %r2, %r2, %r3;
    mov.u32 %r4, %clock;
    mov.u64 %rd3, %clock64;
    add.u32 %r5, %r1, 1;
    mov.u32 %r6, %clock;
    sub.u32 %r6, %r6, %r4;
    mov.u64 %rd4, %clock64;
    sub.u64 %rd4, %rd4, %rd3;
    cvt.u32.u64 %r7, %rd4;
    min.s32 %r6, %r6, %r7;
    min.s32 %r6, %r6, 1;
    mad.lo.u32 %r2, %r2, 1000, %r6;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd2, %rd1, %rd2;
    st.global.u32 [%rd2], %r2;
    ret;",
    );
    for native in [Native::Off, Native::Always] {
        let mut config = DeviceConfig::default();
        (config.workers, config.native) = (1, native);
        let device = Device::new(config).unwrap();
        let buffer = device.alloc_zeros::<u32>(500).unwrap();
        let report = launch(&device, &text, &LaunchConfig::new(500, 1), &buffer, &Options::checked()).wait();
        assert!(report.is_clean(), "{report}");
        assert_eq!(buffer.read(), [1; 500], "{native:?}");
    }
}
