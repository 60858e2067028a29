//! Repacking on the virtual GPU with every check on, against the page that defines the planes, read here one
//! weight at a time. Bytes are any bytes: nothing may depend on their being numbers.

mod common;

use common::gguf::{six_bits, weight};
use warpwright_kernels::weights::{Part, Planes, Repack, Unpack, WeightFormat};
use warpwright_test::KernelTest;
use warpwright_testing::{RunHere, orders};

/// What lies where no plane is, and where a kernel has not written.
const POISON: u8 = 0xa5;

/// Random bytes, the same every time for a seed.
fn bytes(count: u64, seed: u64) -> Vec<u8> {
    let numbers = common::numbers(count as usize, seed);
    numbers.into_iter().map(|x| ((x + 1.0) * 32_768.0) as u32 as u8).collect()
}

/// The planes of `docs/weights.md`, with poison between them.
fn by_the_page(format: WeightFormat, n: u32, k: u32, file: &[u8]) -> Vec<u8> {
    let planes = Planes::new(format, n, k);
    let mut all = vec![POISON; planes.bytes() as usize];
    for row in 0..n {
        let row_bytes = format.row_bytes(k) as usize;
        let in_file = &file[row as usize * row_bytes..][..row_bytes];
        let mut of = |part: Part, fill: &mut dyn FnMut(&mut [u8])| {
            let plane = planes.get(part).expect("a plane of the format");
            let start = plane.offset + u64::from(row) * plane.row_bytes;
            let row = &mut all[start as usize..][..plane.row_bytes as usize];
            row.fill(0);
            fill(row);
        };
        if format.is_float() {
            of(Part::Values, &mut |row| row[..in_file.len()].copy_from_slice(in_file));
            continue;
        }
        let blocks: Vec<_> = in_file.chunks_exact(format.block_bytes() as usize).collect();
        let quant = |i: usize| {
            let weights = format.block() as usize;
            let zero = match format {
                WeightFormat::Q4_0 => 8,
                WeightFormat::Q6K => 32,
                _ => 0,
            };
            (weight(format, blocks[i / weights], i % weights).quant + zero) as u8
        };
        match format {
            WeightFormat::Q8_0 => of(Part::Quants, &mut |row| {
                (0..).zip(row).for_each(|(i, byte)| *byte = quant(i));
            }),
            WeightFormat::Q4_0 => of(Part::Quants, &mut |row| {
                for (i, byte) in row.iter_mut().enumerate() {
                    let first = i / 16 * 32 + i % 16;
                    *byte = quant(first) | quant(first + 16) << 4;
                }
            }),
            _ => of(Part::Quants, &mut |row| {
                for unit in 0..k as usize / 64 {
                    for i in 0..32 {
                        let place = unit / 4 * 128 + i / 16 * 64 + unit % 4 * 16 + i % 16;
                        row[place] = (quant(64 * unit + i) & 15) | (quant(64 * unit + i + 32) & 15) << 4;
                    }
                }
            }),
        }
        let blocks = || blocks.iter().enumerate();
        match format {
            WeightFormat::Q8_0 | WeightFormat::Q4_0 => of(Part::Scales, &mut |row| {
                blocks().for_each(|(b, block)| row[2 * b..][..2].copy_from_slice(&block[..2]));
            }),
            WeightFormat::Q4K | WeightFormat::Q5K => of(Part::Headers, &mut |row| {
                for (b, block) in blocks() {
                    for unit in 0..4 {
                        let (first, second) = (2 * unit, 2 * unit + 1);
                        let ((sc, m), (sc_2, m_2)) =
                            (six_bits(&block[4..], first), six_bits(&block[4..], second));
                        for (i, six) in [sc, m, sc_2, m_2].into_iter().enumerate() {
                            row[16 * b + 4 * unit + i] = six | (block[i] >> (2 * unit) & 3) << 6;
                        }
                    }
                }
            }),
            _ => {
                of(Part::Scales, &mut |row| {
                    blocks().for_each(|(b, block)| row[16 * b..][..16].copy_from_slice(&block[192..208]));
                });
                of(Part::D, &mut |row| {
                    blocks().for_each(|(b, block)| row[2 * b..][..2].copy_from_slice(&block[208..]));
                });
            }
        }
        if format == WeightFormat::Q5K {
            of(Part::Fifth, &mut |row| {
                for i in 0..k as usize {
                    let (unit, within) = (i / 64, i % 64);
                    let (p, byte) = (within / 32, within % 32);
                    let (half, w, b) = (byte / 16, byte % 16 / 4, byte % 4);
                    row[8 * unit + 4 * half + b] |= (quant(i) >> 4) << (2 * w + p);
                }
            });
        }
        if format == WeightFormat::Q6K {
            of(Part::Upper, &mut |row| {
                for i in 0..k as usize {
                    let (unit, within) = (i / 64, i % 64);
                    let (p, byte) = (within / 32, within % 32);
                    let (w, b) = (byte / 4, byte % 4);
                    row[16 * unit + 4 * (w / 2) + b] |= (quant(i) >> 4) << (4 * (w % 2) + 2 * p);
                }
            });
        }
    }
    all
}

fn sizes(format: WeightFormat) -> Vec<(u32, u32)> {
    let mut sizes = match format.block() {
        1 => vec![(1, 1), (3, 5), (7, 8), (2, 13), (5, 16), (130, 7)],
        32 => vec![(1, 32), (3, 96), (5, 32 * 33), (131, 32)],
        _ => vec![(1, 256), (3, 768), (5, 256 * 9), (130, 256)],
    };
    if std::env::var_os("WARPWRIGHT_FULL").is_some() {
        sizes.extend([(2048, 2048), (1000, 8192)]);
    }
    sizes
}

#[test]
fn planes_are_those_of_the_page() {
    for format in WeightFormat::ALL {
        for (n, k) in sizes(format) {
            let file = bytes(u64::from(n) * format.row_bytes(k), u64::from(n + k));
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

#[test]
fn unpacking_is_the_inverse() {
    for format in WeightFormat::ALL {
        for (n, k) in sizes(format) {
            let file = bytes(u64::from(n) * format.row_bytes(k), u64::from(n + k));
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
