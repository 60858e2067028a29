//! `ldmatrix`, `stmatrix` and `movmatrix`: where each element goes.

use crate::run::{device, device_for, kernel, try_warp, warp};
use warpwright_vm::FaultKind;
use warpwright_vm::check::{FindingKind, Tool};

/// Shared memory of 1024 bytes, in which byte i has the value of `byte(i)`.
fn bytes(byte: impl Fn(usize) -> u8) -> Vec<u32> {
    (0..256).map(|word| u32::from_le_bytes([0, 1, 2, 3].map(|i| byte(4 * word + i)))).collect()
}

/// Where row `i`, which lane `i` gives the address of, is in shared memory: not in order.
fn row_at(row: usize) -> usize {
    (row * 7 % 32) * 32
}

/// Fills shared memory from the first buffer (1024 bytes), and leaves in `%r2` the address of this lane's row.
const FILL: &str = ".shared .align 128 .b8 tile[1024]; .reg .b32 %x<9>; .reg .pred %p;\n\
    mov.u32 %r1, tile;\nmad.lo.u32 %r3, %r0, 32, %r1;\nmul.wide.u32 %rd8, %r0, 28;\nadd.u64 %rd9, %rd0, %rd8;\n\
    ld.global.v4.b32 {%x0, %x1, %x2, %x3}, [%rd9];\nld.global.v4.b32 {%x4, %x5, %x6, %x7}, [%rd9+16];\n\
    st.shared.v4.b32 [%r3], {%x0, %x1, %x2, %x3};\nst.shared.v4.b32 [%r3+16], {%x4, %x5, %x6, %x7};\n\
    bar.warp.sync -1;\nmul.lo.u32 %r2, %r0, 7;\nand.b32 %r2, %r2, 31;\nmad.lo.u32 %r2, %r2, 32, %r1;\n\
    cvt.u64.u32 %rd10, %r2;\ncvta.shared.u64 %rd10, %rd10;\n";

/// Loads matrices with `name` and returns its registers, of all lanes.
fn load(version: &str, target: &str, name: &str, count: usize, data: &[u32]) -> Vec<u32> {
    let names: Vec<String> = (0..count).map(|i| format!("%d{i}")).collect();
    // Without a space the address is a generic one.
    let row = if name.contains("shared") { "%r2" } else { "%rd10" };
    let mut body = format!("{FILL}.reg .b32 %d<{count}>;\n{name} {{{}}}, [{row}];\n", names.join(", "));
    for (i, name) in names.iter().enumerate() {
        body += &format!("st.global.b32 [%rd1+{}], {name};\n", 128 * i);
    }
    let text = kernel(version, target, 2, 4, &body);
    warp(&device_for(target), &text, &[data.to_vec()], 32 * count)
}

#[test]
fn ldmatrix_gives_each_lane_a_part_of_a_row_or_of_a_column() {
    let value = |at: usize| (at * 37 % 251) as u8;
    let data = bytes(value);
    let half = |row: usize, column: usize| {
        let at = row_at(row) + 2 * column;
        u32::from(value(at)) | u32::from(value(at + 1)) << 8
    };
    for count in [1, 2, 4] {
        for space in ["", ".shared", ".shared::cta"] {
            let name = format!("ldmatrix.sync.aligned.m8n8.x{count}{space}.b16");
            let found = load("7.8", "sm_80", &name, count, &data);
            let name = format!("ldmatrix.sync.aligned.m8n8.x{count}.trans{space}.b16");
            let transposed = load("7.8", "sm_80", &name, count, &data);
            for matrix in 0..count {
                for lane in 0..32 {
                    let (row, column) = (lane / 4, 2 * (lane % 4));
                    let expected = half(8 * matrix + row, column) | half(8 * matrix + row, column + 1) << 16;
                    assert_eq!(found[32 * matrix + lane], expected, "{name}, lane {lane}");
                    let expected = half(8 * matrix + column, row) | half(8 * matrix + column + 1, row) << 16;
                    assert_eq!(transposed[32 * matrix + lane], expected, "{name}, lane {lane}");
                }
            }
        }
    }
}

#[test]
fn ldmatrix_of_bytes_transposes() {
    let value = |at: usize| (at * 37 % 251) as u8;
    let data = bytes(value);
    for count in [1, 2] {
        let name = format!("ldmatrix.sync.aligned.m16n16.x{count}.trans.shared.b8");
        let found = load("8.6", "sm_100a", &name, 2 * count, &data);
        // Every byte of every matrix comes once; lane ℓ has rows 4t … 4t + 3 of columns g and g + 8.
        for matrix in 0..count {
            for lane in 0..32 {
                let (group, thread) = (lane / 4, lane % 4);
                let row = |i: usize| row_at(16 * matrix + 4 * thread + i);
                for register in 0..2 {
                    let (low, high) = (row(2 * register), row(2 * register + 1));
                    let expected = [low + group, high + group, low + group + 8, high + group + 8].map(value);
                    let word = found[32 * (2 * matrix + register) + lane];
                    assert_eq!(word.to_le_bytes(), expected, "{name}, lane {lane}");
                }
            }
        }
    }
}

#[test]
fn ldmatrix_widens_packed_elements() {
    let value = |at: usize| (at * 37 % 251) as u8;
    let data = bytes(value);
    let forms = [
        ("8.6", "sm_100a", "m8n16.x4.shared.b8x16.b6x16_p32", 6, false),
        ("8.6", "sm_100a", "m8n16.x2.shared.b8x16.b4x16_p64", 4, false),
        ("9.4", "sm_90a", "m8n16.x1.shared.s8.s4", 4, true),
    ];
    for (version, target, form, bits, signed) in forms {
        let count = if form.contains("x4.") {
            4
        } else if form.contains("x2.") {
            2
        } else {
            1
        };
        let found = load(version, target, &format!("ldmatrix.sync.aligned.{form}"), count, &data);
        for matrix in 0..count {
            for lane in 0..32 {
                let row = row_at(8 * matrix + lane / 4);
                let packed = (0..16).fold(0_u128, |all, i| all | u128::from(value(row + i)) << (8 * i));
                let expected = [0, 1, 2, 3].map(|i| {
                    let element = (packed >> (bits * (4 * (lane % 4) + i))) as u8 & ((1 << bits) - 1);
                    if signed && element >= 8 { element | 0xf0 } else { element }
                });
                assert_eq!(found[32 * matrix + lane].to_le_bytes(), expected, "{form}, lane {lane}");
            }
        }
    }
}

/// Stores registers with `name`, and returns shared memory.
fn store(version: &str, target: &str, name: &str, registers: &[u32]) -> Vec<u32> {
    let count = registers.len() / 32;
    let names: Vec<String> = (0..count).map(|i| format!("%d{i}")).collect();
    let mut body = format!("{FILL}.reg .b32 %d<{count}>;\n");
    for (i, name) in names.iter().enumerate() {
        body += &format!("ld.global.b32 {name}, [%rd1+{}];\n", 128 * i);
    }
    body += &format!("{name} [%r2], {{{}}};\nbar.warp.sync -1;\n", names.join(", "));
    for i in 0..8 {
        body += &format!(
            "mad.lo.u32 %r4, %r0, 4, %r1;\nld.shared.b32 %r5, [%r4+{}];\nst.global.b32 [%rd2+{}], %r5;\n",
            128 * i,
            128 * i
        );
    }
    let text = kernel(version, target, 3, 4, &body);
    warp(&device_for(target), &text, &[bytes(|_| 0xee), registers.to_vec()], 256)
}

#[test]
fn stmatrix_puts_rows_or_columns_where_the_lanes_say() {
    for count in [1, 2, 4] {
        let registers: Vec<u32> = (0..32 * count as u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
        for (trans, name) in [(false, ""), (true, ".trans")] {
            let name = format!("stmatrix.sync.aligned.m8n8.x{count}{name}.shared.b16");
            let mut expected = vec![0xeeee_u16; 512];
            for matrix in 0..count {
                for lane in 0..32 {
                    let word = registers[32 * matrix + lane];
                    for (i, half) in [word as u16, (word >> 16) as u16].into_iter().enumerate() {
                        let (row, column) = (lane / 4, 2 * (lane % 4) + i);
                        let (row, column) = if trans { (column, row) } else { (row, column) };
                        expected[row_at(8 * matrix + row) / 2 + column] = half;
                    }
                }
            }
            let found = store("7.8", "sm_90", &name, &registers);
            let found: Vec<u16> = found.iter().flat_map(|&word| [word as u16, (word >> 16) as u16]).collect();
            assert_eq!(found, expected, "{name}");
        }
        let name = format!("stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8");
        let mut expected = vec![0xee_u8; 1024];
        for matrix in 0..count {
            for lane in 0..32 {
                for (i, byte) in registers[32 * matrix + lane].to_le_bytes().into_iter().enumerate() {
                    // Where an accumulator of 16 × 8 has its elements.
                    let (row, column) = (lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2);
                    expected[row_at(8 * matrix + column) + row] = byte;
                }
            }
        }
        let found = store("8.6", "sm_100a", &name, &registers);
        let found: Vec<u8> = found.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn movmatrix_transposes() {
    let data: Vec<u32> = (0..32).map(|lane| (2 * lane + 1) << 16 | 2 * lane).collect();
    let text = kernel(
        "7.8",
        "sm_80",
        2,
        4,
        ".reg .b32 %a, %d;\nld.global.b32 %a, [%rd0];\nmovmatrix.sync.aligned.m8n8.trans.b16 %d, %a;\n\
         st.global.b32 [%rd1], %d;",
    );
    let found = warp(&device(80, None), &text, &[data], 32);
    for lane in 0..32 {
        let (row, column) = (lane / 4, 2 * (lane % 4));
        assert_eq!(found[lane as usize], (column * 8 + row) | ((column + 1) * 8 + row) << 16, "lane {lane}");
    }
}

#[test]
fn a_row_that_is_not_aligned_or_not_there_is_a_finding_at_the_lane_that_gave_it() {
    // Lane 9 gives the address of no row of a single matrix.
    let cases = [
        (5, 0, None),
        (5, 8, Some(FaultKind::Misaligned)),
        (5, 1024, Some(FaultKind::OutOfBounds)),
        (9, 8, None),
    ];
    for (lane, offset, expected) in cases {
        for name in [
            "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d}, [%r2]",
            "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%d}",
        ] {
            let body = format!(
                "{FILL}.reg .b32 %d;\nmov.u32 %d, %r0;\nsetp.eq.u32 %p, %r0, {lane};\n\
                 @%p add.u32 %r2, %r2, {offset};\n{name};\nst.global.b32 [%rd1], %d;"
            );
            let text = kernel("7.8", "sm_90", 2, 4, &body);
            let (_, report) = try_warp(&device(90, None), &text, &[bytes(|_| 1)], 32);
            assert_eq!(
                report.findings.iter().map(|finding| finding.kind.clone()).collect::<Vec<_>>(),
                Vec::from_iter(expected.map(FindingKind::Access)),
                "{report}"
            );
            for finding in &report.findings {
                let site = &finding.accesses[0];
                let bytes = site.memory.as_ref().map(|memory| memory.bytes);
                assert_eq!((site.thread, bytes), ([lane, 0, 0], Some(16)), "{report}");
            }
        }
    }
}

#[test]
fn a_row_that_another_lane_writes_at_the_same_time_is_a_race() {
    let race = |sync: &str| {
        let body = format!(
            "{FILL}.reg .b32 %d;\nst.shared.b32 [%r3], %r0;\n{sync}\n\
             ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%d, %x0, %x1, %x2}}, [%r2];\nst.global.b32 [%rd1], %d;"
        );
        let text = kernel("7.8", "sm_80", 2, 4, &body);
        try_warp(&device(80, None), &text, &[bytes(|_| 1)], 32).1
    };
    let report = race("");
    assert!(report.findings.iter().any(|finding| finding.tool == Tool::Racecheck), "{report}");
    assert!(race("bar.warp.sync -1;").is_clean());
}
