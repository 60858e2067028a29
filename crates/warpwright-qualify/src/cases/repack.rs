//! Repacking on the virtual GPU with every check on, against the page that defines the planes, read here one
//! bit at a time. Bytes are any bytes: nothing may depend on their being numbers.

use crate::common::gguf::bytes;
use crate::common::ops::full;
use warpwright_kernels::weights::{Planes, Repack, Unpack, WeightFormat};
use warpwright_test::KernelTest;
use warpwright_testing::{RunHere, orders};

/// What lies where no plane is, and where a kernel has not written.
const POISON: u8 = 0xa5;

/// Byte and bit of the lowest of the bits of weight `i` of a block in the file, for each of its fields, and their width.
fn in_file(format: WeightFormat, i: usize) -> Vec<(usize, usize, usize)> {
    let (half, l) = (i / 128, i % 32);
    let nibbles = |at: usize, run: usize| (at + i / (2 * run) * run + i % run, i / run % 2 * 4, 4);
    let twos = |at: usize| (at + half * 32 + l, i % 128 / 32 * 2, 2);
    let ones = |at: usize| (at + l, i / 32, 1);
    match format {
        WeightFormat::Q8_0 => vec![(2 + i, 0, 8)],
        WeightFormat::Q4_0 | WeightFormat::Iq4Nl => vec![nibbles(2, 16)],
        WeightFormat::Q4_1 => vec![nibbles(4, 16)],
        WeightFormat::Q5_0 => vec![nibbles(6, 16), (2 + i / 8, i % 8, 1)],
        WeightFormat::Q5_1 => vec![nibbles(8, 16), (4 + i / 8, i % 8, 1)],
        WeightFormat::Q2K => vec![twos(16)],
        WeightFormat::Q3K => vec![twos(32), ones(0)],
        WeightFormat::Q4K => vec![nibbles(16, 32)],
        WeightFormat::Q5K => vec![nibbles(48, 32), ones(16)],
        WeightFormat::Q6K => vec![nibbles(0, 64), twos(128)],
        WeightFormat::Iq4Xs => vec![nibbles(8, 16)],
        WeightFormat::Mxfp4 => vec![nibbles(1, 16)],
        WeightFormat::Nvfp4 => vec![nibbles(4, 8)],
        WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => panic!("{format} has no codes"),
    }
}

/// Where the planes beside the codes come from: names, first byte of the block, bytes.
fn records(format: WeightFormat) -> &'static [(&'static str, usize, usize)] {
    match format {
        WeightFormat::Q8_0 | WeightFormat::Q4_0 | WeightFormat::Q5_0 | WeightFormat::Iq4Nl => {
            &[("scales", 0, 2)]
        }
        WeightFormat::Q4_1 | WeightFormat::Q5_1 => &[("scales", 0, 4)],
        WeightFormat::Q2K => &[("scales", 0, 16), ("d", 80, 4)],
        WeightFormat::Q3K => &[("lower", 96, 8), ("upper", 104, 4), ("d", 108, 2)],
        WeightFormat::Q4K | WeightFormat::Q5K => &[("headers", 0, 16)],
        WeightFormat::Q6K => &[("scales", 192, 16), ("d", 208, 2)],
        WeightFormat::Iq4Xs => &[("headers", 0, 8)],
        WeightFormat::Mxfp4 => &[("exponents", 0, 1)],
        WeightFormat::Nvfp4 => &[("scales", 0, 4)],
        WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => &[],
    }
}

/// The bits of a code in `codes` and in `rest`, by level: how far the code is raised, its bits of a byte of each, and how
/// far and for how many words those of `rest` are turned: the table of the page.
fn levels(bits: usize) -> &'static [(usize, u8, u8, usize, usize)] {
    match bits {
        8 => &[(0, 0xff, 0, 0, 1)],
        4 => &[(0, 0x0f, 0, 0, 1), (4, 0xf0, 0, 0, 1)],
        2 => &[(0, 0x03, 0, 0, 1), (2, 0x0c, 0, 0, 1), (4, 0x30, 0, 0, 1), (6, 0xc0, 0, 0, 1)],
        5 => &[(0, 0x0f, 0x10, 2, 4), (3, 0xf0, 0x08, 2, 4)],
        6 => &[(0, 0x0f, 0x30, 4, 2), (2, 0xf0, 0x0c, 4, 2)],
        3 => &[(0, 0x03, 0x04, 2, 2), (1, 0x0c, 0x02, 2, 2), (4, 0x30, 0x40, 2, 2), (5, 0xc0, 0x20, 2, 2)],
        _ => panic!("{bits} bits"),
    }
}

/// The planes of `docs/weights.md`, with poison between them.
fn by_the_page(format: WeightFormat, n: u32, k: u32, file: &[u8]) -> Vec<u8> {
    let planes = Planes::new(format, n, k);
    let mut all = vec![POISON; planes.bytes() as usize];
    let row_bytes = format.row_bytes(k) as usize;
    for plane in planes.iter() {
        all[plane.offset as usize..][..(u64::from(plane.rows) * plane.row_bytes) as usize].fill(0);
        if plane.name == "tensor_scale" {
            all[plane.offset as usize..][..4].copy_from_slice(&file[n as usize * row_bytes..]);
        }
    }
    for row in 0..n as usize {
        let in_row = &file[row * row_bytes..][..row_bytes];
        let begin =
            |name: &str| planes.get(name).map(|plane| plane.offset as usize + row * plane.row_bytes as usize);
        if let Some(at) = begin("values") {
            all[at..at + in_row.len()].copy_from_slice(in_row);
            continue;
        }
        let blocks: Vec<_> = in_row.chunks_exact(format.block_bytes() as usize).collect();
        for &(name, from, count) in records(format) {
            let at = begin(name).expect("a plane of the format");
            for (b, block) in blocks.iter().enumerate() {
                all[at + b * count..][..count].copy_from_slice(&block[from..from + count]);
            }
        }
        let stride = planes.get("codes").expect("codes").row_bytes as usize;
        // What fills up the last unit is zeros of the file.
        for i in 0..k.next_multiple_of(64) as usize {
            let (block, within) = (i / format.block() as usize, i % format.block() as usize);
            let (mut code, mut bits) = (0u8, 0);
            for (byte, bit, width) in in_file(format, within) {
                let mask = (1u16 << width) - 1;
                let byte = blocks.get(block).map_or(0, |block| block[byte]);
                code |= ((u16::from(byte) >> bit & mask) << bits) as u8;
                bits += width;
            }
            if format == WeightFormat::Q8_0 {
                code ^= 0x80;
            }
            let levels = levels(bits);
            let pieces = 4 / levels.len();
            let (unit, run, word, byte) = (i / 64, i % 64 / 16, i % 16 / 4, i % 4);
            let (piece, level) = (run % pieces, run / pieces);
            let (raise, main, rest, turn, shared) = levels[level];
            let raised = code << raise;
            let at = begin("codes").expect("codes") + piece * (stride / pieces) + unit * 16 + word * 4 + byte;
            all[at] |= raised & main;
            if rest == 0 {
                continue;
            }
            // The word of `rest`, turned left.
            let words = 4 / shared;
            let at = begin("rest").expect("rest") + ((unit * pieces + piece) * words + word / shared) * 4;
            let place = &mut all[at..at + 4];
            let before = u32::from_le_bytes([place[0], place[1], place[2], place[3]]);
            let turned = (u32::from(raised & rest) << (8 * byte)).rotate_left((word % shared * turn) as u32);
            place.copy_from_slice(&(before | turned).to_le_bytes());
        }
    }
    all
}

fn sizes(format: WeightFormat) -> Vec<(u32, u32)> {
    let mut sizes = match format.block() {
        1 => vec![(1, 1), (3, 5), (7, 8), (2, 13), (5, 16), (130, 7)],
        32 => vec![(1, 32), (3, 96), (5, 32 * 33), (131, 32)],
        64 => vec![(1, 64), (3, 192), (5, 64 * 17), (131, 64)],
        _ => vec![(1, 256), (3, 768), (5, 256 * 9), (130, 256)],
    };
    if full() {
        sizes.extend([(2048, 2048), (1000, 8192)]);
    }
    sizes
}

fn planes_are_those_of_the_page() {
    for format in WeightFormat::ALL {
        for (n, k) in sizes(format) {
            let file = bytes(format.matrix_bytes(n.into(), k), u64::from(n + k));
            let expected = by_the_page(format, n, k, &file);
            for &seed in orders(&[1, 2]) {
                let kernel = Repack::new(format, n, k);
                let run = KernelTest::new(&kernel)
                    .seed(seed)
                    .input("gguf", &file)
                    .input("planes", &vec![POISON; expected.len()])
                    .run_here()
                    .unwrap_or_else(|error| panic!("{format}, {n} x {k}: {error}"));
                let found = run.output::<u8>("planes");
                let wrong = found.iter().zip(&expected).position(|(found, expected)| found != expected);
                assert_eq!(wrong, None, "{format}, {n} x {k}: the first byte that differs");
            }
        }
    }
}

fn unpacking_is_the_inverse() {
    for format in WeightFormat::ALL {
        for (n, k) in sizes(format) {
            let file = bytes(format.matrix_bytes(n.into(), k), u64::from(n + k));
            for &seed in orders(&[1, 2]) {
                let kernel = Unpack::new(format, n, k);
                let run = KernelTest::new(&kernel)
                    .seed(seed)
                    .input("planes", &by_the_page(format, n, k, &file))
                    .input("gguf", &vec![POISON; file.len()])
                    .run_here()
                    .unwrap_or_else(|error| panic!("{format}, {n} x {k}: {error}"));
                let found = run.output::<u8>("gguf");
                let wrong = found.iter().zip(&file).position(|(found, expected)| found != expected);
                assert_eq!(wrong, None, "{format}, {n} x {k}: the first byte that differs");
            }
        }
    }
}

crate::case_list! {
    planes_are_those_of_the_page,
    unpacking_is_the_inverse,
}
