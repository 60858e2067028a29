//! Launches that no device can do, and arguments that are not the kernel's.

use crate::attack::{Answer::*, Attack, check};
use warpwright_vm::{Arg, LaunchConfig, TrapKind};

fn shaped(grid_dim: (u32, u32, u32), block_dim: (u32, u32, u32)) -> Attack {
    let config =
        LaunchConfig { grid_dim, block_dim, shared_mem_bytes: 0, cooperative: false, cluster_dim: None };
    Attack { config, ..Attack::body("") }
}

fn shared(bytes: u32) -> Attack {
    let config = LaunchConfig { shared_mem_bytes: bytes, ..LaunchConfig::new(1, 32) };
    Attack { config, ..Attack::with(".extern .shared .align 16 .b8 dynamic[];", "") }
}

#[test]
fn shapes() {
    const MAX: u32 = u32::MAX;
    check([
        ("no blocks", shaped((0, 1, 1), (32, 1, 1)), Launch),
        ("no blocks along y", shaped((1, 0, 1), (32, 1, 1)), Launch),
        ("no blocks along z", shaped((1, 1, 0), (32, 1, 1)), Launch),
        ("no threads", shaped((1, 1, 1), (0, 1, 1)), Launch),
        ("no threads along z", shaped((1, 1, 1), (32, 1, 0)), Launch),
        ("threads beyond 2^32", shaped((1, 1, 1), (65536, 65536, 1)), Launch),
        ("threads that are 0 mod 2^32", shaped((1, 1, 1), (1 << 16, 1 << 16, 1 << 16)), Launch),
        ("all threads", shaped((1, 1, 1), (MAX, MAX, MAX)), Launch),
        ("a block that is too deep", shaped((1, 1, 1), (1, 1, 65)), Launch),
        ("one thread too many", shaped((1, 1, 1), (1025, 1, 1)), Launch),
        ("the largest block", shaped((1, 1, 1), (1024, 1, 1)), Nothing),
        ("a block along y", shaped((1, 1, 1), (1, 1024, 1)), Nothing),
        ("a grid beyond its limits", shaped((MAX, 1, 1), (1, 1, 1)), Launch),
        ("a grid beyond its limits along y", shaped((1, 65536, 1), (1, 1, 1)), Launch),
        ("the largest grid", shaped((0x7fff_ffff, 65535, 65535), (1024, 1, 1)), Trap(TrapKind::Budget)),
        ("a large cooperative grid", shaped((1 << 30, 1, 1), (32, 1, 1)).cooperative(), Launch),
        ("all of shared memory", shared(MAX), Launch),
        ("a byte too many of shared memory", shared((227 << 10) - 63), Launch),
        ("as much shared memory as there is", shared((227 << 10) - 64), Nothing),
    ]);
}

#[test]
fn directives() {
    let with = |directive: &str| {
        Attack::module(format!(
            ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {directive} {{ ret; }}\n"
        ))
    };
    check([
        ("another block than required", with(".reqntid 64"), Launch),
        ("a required block that is no block", with(".reqntid 4096"), Launch),
        ("more threads than allowed", with(".maxntid 16"), Launch),
        ("a product of 2^32 threads", with(".maxntid 65536, 65536"), Nothing),
        ("a product beyond 2^64 threads", with(".maxntid 4294967295, 4294967295, 4294967295"), Nothing),
    ]);
}

#[test]
fn arguments() {
    let none: [Arg; 0] = [];
    let wild = |address: u64| Attack::body("ld.global.u32 %r1, [%d0];").args([Arg::U64(address)]);
    let structure = |bytes: usize| {
        Attack::module(
            ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(.param .align 8 .b8 s[24])
            { .reg .b64 %d<2>; ld.param.u64 %d0, [s+16]; ret; }",
        )
        .args([Arg::Bytes(vec![0xff; bytes])])
    };
    check([
        ("no argument", Attack::body("").args(none), Launch),
        ("two arguments", Attack::body("").args([Arg::U64(0), Arg::U64(0)]), Launch),
        ("a thousand arguments", Attack::body("").args(vec![Arg::U64(0); 1000]), Launch),
        ("a short argument", Attack::body("").args([Arg::U32(0)]), Launch),
        ("a byte", Attack::body("").args([Arg::I8(-1)]), Launch),
        ("no bytes", Attack::body("").args([Arg::Bytes(Vec::new())]), Launch),
        ("a megabyte", Attack::body("").args([Arg::Bytes(vec![0; 1 << 20])]), Launch),
        ("a number for a pointer", wild(7), Finding("misaligned")),
        ("a null pointer", wild(0), Finding("null")),
        ("the last address", wild(u64::MAX - 3), Finding("out-of-bounds")),
        ("an address of nothing", wild(0x1234_5678_9abc_def0), Finding("out-of-bounds")),
        ("a short structure", structure(23), Launch),
        ("a long structure", structure(25), Launch),
        ("a structure", structure(24), Nothing),
    ]);
}

/// Options and configurations at their ends.
#[test]
fn options() {
    let endless = "again: bra again;";
    check([
        ("no instruction allowed", Attack::body("").budget(0), Trap(TrapKind::Budget)),
        ("any number of instructions allowed", Attack::body("").budget(u64::MAX), Nothing),
        ("an endless loop", Attack::body(endless), Trap(TrapKind::Budget)),
        ("an endless loop of one thread", Attack::body(endless).threads(1), Trap(TrapKind::Deadlock)),
        (
            "endless loops of many",
            Attack::body(endless).threads(1024).blocks(100_000),
            Trap(TrapKind::Budget),
        ),
    ]);
}
