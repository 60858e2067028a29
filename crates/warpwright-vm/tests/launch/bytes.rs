//! Ranges of bytes, and what the host asks a device that orders its operations itself.

use crate::*;

/// Numbers that look random: a generator by Marsaglia (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

#[test]
fn ranges_of_bytes_are_those_of_a_slice() {
    const LEN: u64 = 9001;
    let device = device();
    let buffers =
        [device.alloc_zeros::<u8>(LEN as usize).unwrap(), device.alloc_zeros(LEN as usize).unwrap()];
    let mut model = [vec![0u8; LEN as usize], vec![0; LEN as usize]];
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for round in 0..400 {
        let which = random.below(2) as usize;
        let bytes = random.below(if round % 4 == 0 { LEN } else { 20 }) as usize;
        let mut place = || random.below(LEN - bytes as u64 + 1);
        let (at, from) = (place(), place());
        let range = at as usize..at as usize + bytes;
        match random.below(4) {
            0 => {
                let data: Vec<u8> = (0..bytes).map(|_| random.below(256) as u8).collect();
                buffers[which].write_bytes(at, &data).unwrap();
                model[which][range].copy_from_slice(&data);
            }
            1 => {
                let value = random.below(256) as u8;
                buffers[which].fill_bytes(at, bytes as u64, value).unwrap();
                model[which][range].fill(value);
            }
            2 => {
                buffers[which].copy_bytes(at, &buffers[which], from, bytes as u64).unwrap();
                model[which].copy_within(from as usize..from as usize + bytes, at as usize);
            }
            _ => {
                buffers[which].copy_bytes(at, &buffers[1 - which], from, bytes as u64).unwrap();
                let source = model[1 - which][from as usize..][..bytes].to_vec();
                model[which][range].copy_from_slice(&source);
            }
        }
        let mut data = vec![0; bytes];
        buffers[which].read_bytes(from, &mut data).unwrap();
        assert_eq!(data, model[which][from as usize..][..bytes]);
    }
    assert_eq!([buffers[0].read(), buffers[1].read()], model);
}

#[test]
fn ranges_that_are_not_inside_are_refused() {
    let device = device();
    let (small, large) = (device.alloc_zeros::<u32>(2).unwrap(), device.alloc_zeros::<u8>(20).unwrap());
    let outside = |result: Result<(), DeviceError>, expected: (u64, u64, u64)| match result {
        Err(DeviceError::Range { offset, bytes, buffer }) => assert_eq!((offset, bytes, buffer), expected),
        other => panic!("{other:?}"),
    };
    outside(small.write_bytes(1, &[1; 8]), (1, 8, 8));
    outside(small.read_bytes(9, &mut []), (9, 0, 8));
    outside(small.fill_bytes(u64::MAX, 2, 0), (u64::MAX, 2, 8));
    outside(small.copy_bytes(0, &large, 0, 9), (0, 9, 8));
    outside(large.copy_bytes(0, &small, 4, 5), (4, 5, 8));
    assert!(small.write_bytes(8, &[]).is_ok());
    assert_eq!((small.read(), large.read()), (vec![0; 2], vec![0; 20]));
}

/// For each of the first words, whether a kernel that reads and uses all of it finds bytes uninitialised.
fn unwritten(device: &Device, buffer: &Buffer<u32>, words: usize) -> Vec<bool> {
    let one = |word: usize| {
        let text = kernel(&format!(
            "    .reg .pred %used;\n    ld.global.u32 %r1, [%rd1+{}];\n    setp.eq.u32 %used, %r1, 0;\n    @%used ret;\n    ret;",
            4 * word
        ));
        let report = launch(device, &text, &LaunchConfig::new(1, 1), buffer, &Options::checked()).wait();
        assert!(report.findings.iter().all(|f| f.kind.name() == "uninitialized"));
        !report.findings.is_empty()
    };
    (0..words).map(one).collect()
}

#[test]
fn bytes_are_written_where_they_came_from_written_ones() {
    let device = device();
    let new = || device.alloc::<u32>(100).unwrap();
    let (x, y) = (new(), new());
    x.write_bytes(4, &[1; 7]).unwrap();
    assert_eq!(unwritten(&device, &x, 4), [true, false, true, true], "three bytes are not a word");
    x.fill_bytes(11, 1, 0).unwrap();
    y.fill_bytes(0, 400, 0).unwrap();
    assert_eq!(unwritten(&device, &y, 4), [false; 4]);
    // Words 0 to 29 of `x`, of which 1 and 2 are written, become words 1 to 30 of `y`, which was all written.
    y.copy_bytes(4, &x, 0, 120).unwrap();
    assert_eq!(unwritten(&device, &y, 5), [false, true, false, false, true]);
    assert_eq!(unwritten(&device, &y, 33)[30..], [true, false, false]);
    y.forget();
    assert_eq!(unwritten(&device, &y, 33), [true; 33]);
    y.copy_bytes(4, &x, 4, 8).unwrap();
    assert_eq!(unwritten(&device, &y, 4), [true, false, false, true]);

    // Mapped memory is the host's: it is always written.
    let mapped = device.alloc_mapped::<u32>(100).unwrap();
    mapped.forget();
    mapped.copy_bytes(0, &new(), 0, 400).unwrap();
    assert_eq!(unwritten(&device, &mapped, 2), [false; 2]);
}

#[test]
fn occupancy_is_what_a_cooperative_launch_gets() {
    let mut config = DeviceConfig::default();
    (config.workers, config.multiprocessors) = (2, 3);
    let device = Device::new(config).unwrap();
    let module = load(&device, &kernel("    ret;"));
    let info = module.kernel("k").unwrap();
    let buffer = device.alloc_zeros::<u32>(1).unwrap();
    for (threads, shared) in [(1, 0), (32, 0), (33, 0), (256, 20_000), (1024, 0), (64, 227 << 10)] {
        let blocks = device.occupancy(info, threads, shared);
        assert!(blocks > 0, "{threads} threads, {shared} bytes");
        for (more, fits) in [(0, true), (1, false)] {
            let grid = 3 * blocks + more;
            let config = LaunchConfig {
                shared_mem_bytes: shared,
                cooperative: true,
                ..LaunchConfig::new(grid, threads)
            };
            let result = device.launch(&module, "k", &config, &[Arg::buffer(&buffer)], &Options::default());
            assert_eq!(result.is_ok(), fits, "{threads} threads, {shared} bytes, {grid} blocks");
        }
    }
    for (threads, shared) in [(0, 0), (1025, 0), (u32::MAX, 0), (1, (227 << 10) + 1), (1, u32::MAX)] {
        assert_eq!(device.occupancy(info, threads, shared), 0, "{threads} threads, {shared} bytes");
    }
    let bound = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k() .reqntid 64 { ret; }\n";
    let module = load(&device, bound);
    let info = module.kernel("k").unwrap();
    assert_eq!([63, 64, 65].map(|threads| device.occupancy(info, threads, 0) > 0), [false, true, false]);
}

#[test]
fn a_device_counts_its_launches_and_ends_them() {
    let device = device();
    let flag = device.alloc_mapped::<u32>(1).unwrap();
    let forever = kernel("$trip:\n    ld.volatile.global.u32 %r1, [%rd1];\n    bra $trip;");
    let once = kernel("    st.global.u32 [%rd1], 7;\n    ret;");
    let (shape, options) = (LaunchConfig::new(1, 1), Options::default());
    assert_eq!(device.launches(), 0);
    let first = launch(&device, &forever, &shape, &flag, &options);
    let second = launch(&device, &once, &shape, &flag, &options);
    assert_eq!((first.number(), second.number(), device.launches()), (0, 1, 2));
    device.cancel();
    first.wait();
    second.wait();
    assert_eq!(flag.read(), [0], "a launch that waits for its turn ends too");
    let third = launch(&device, &once, &shape, &flag, &options);
    assert_eq!(third.number(), 2);
    third.wait();
    assert_eq!(flag.read(), [7]);
    let module = load(&device, &once);
    assert!(device.launch(&module, "k", &shape, &[], &options).is_err());
    assert_eq!(device.launches(), 3, "what was refused does not count");
}
