//! Copies of tiles of tensors, against an evaluation that knows only where each element of a tile comes from.

use std::fmt::Write;
use warpwright_vm::*;

/// A sequence of numbers without meaning.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, count: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % count
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Bytes of shared memory, of which the tile begins at a given place.
const SHARED: usize = 48 << 10;

/// Kernels for tensors of that rank: `load` copies a tile to shared memory, and all of that to `out`; `store` does the
/// opposite, and so does `reduce`, which adds.
fn kernels(rank: usize, gather: bool) -> String {
    let (coordinates, mode, scatter) = match gather {
        true => (5, ".tile::gather4", ".tile::scatter4"),
        false => (rank, ".tile", ".tile"),
    };
    let mut text = String::from(".version 8.7\n.target sm_100a\n.address_size 64\n");
    let names: Vec<String> = (0..coordinates).map(|at| format!("%c{at}")).collect();
    let names = names.join(", ");
    let load = format!(
        "cp.async.bulk.tensor.{rank}d.shared::cta.global{mode}.mbarrier::complete_tx::bytes [%r1], [%rd1, {{{names}}}], [bar];"
    );
    let store = format!(
        "cp.async.bulk.tensor.{rank}d.global.shared::cta{scatter}.bulk_group [%rd1, {{{names}}}], [%r1];"
    );
    let reduce = format!(
        "cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.add.tile.bulk_group [%rd1, {{{names}}}], [%r1];"
    );
    let to_tile = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd2], %r2, [bar];";
    let from_tile = "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], %r2;";
    for (name, first, second) in
        [("load", &*load, from_tile), ("store", to_tile, &*store), ("reduce", to_tile, &*reduce)]
    {
        if name == "reduce" && gather {
            continue;
        }
        let mut loads = String::new();
        for at in 0..coordinates {
            writeln!(loads, "    ld.param.s32 %c{at}, [c+{}];", 4 * at).unwrap();
        }
        write!(
            text,
            "
.visible .entry {name}(.param .align 64 .b8 map[128], .param .align 4 .b8 c[20], .param .u64 bytes, .param .u32 at,
    .param .u32 size)
{{
    .shared .align 8 .u64 bar;
    .shared .align 1024 .b8 tile[{SHARED}];
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b32 %c<5>;
    .reg .b64 %rd<8>;
    mov.b64 %rd1, map;
    cvta.param.u64 %rd1, %rd1;
    ld.param.u64 %rd2, [bytes];
    ld.param.u32 %r3, [at];
    ld.param.u32 %r2, [size];
    mov.u32 %r1, tile;
    add.u32 %r1, %r1, %r3;
{loads}
    mbarrier.init.shared.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared.b64 %rd3, [bar], %r2;
    {first}
$wait:
    mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
    @!%p1 bra $wait;
    {second}
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}}
"
        )
        .unwrap();
    }
    text
}

/// Where the elements of a tile come from, in the order of the tile: the byte of each in the tensor's memory.
fn sources(map: &TensorMap, at: &[i64], gather: bool) -> Vec<Option<usize>> {
    let rank = map.dims.len();
    let mut counts: Vec<u64> =
        (0..rank).map(|dim| u64::from(map.tile[dim].div_ceil(map.steps[dim]))).collect();
    if gather {
        counts[1] = 4;
    }
    let mut index = vec![0u64; rank];
    let mut all = Vec::new();
    'all: loop {
        let coordinate = |dim: usize| match gather && dim == 1 {
            true => at[1 + index[1] as usize],
            false => at[dim] + (index[dim] * u64::from(map.steps[dim])) as i64,
        };
        let inside = (0..rank).all(|dim| (0..map.dims[dim] as i64).contains(&coordinate(dim)));
        let byte = inside.then(|| {
            let first = coordinate(0) as usize * map.element.bits() as usize / 8;
            (1..rank).fold(first, |byte, dim| byte + coordinate(dim) as usize * map.strides[dim - 1] as usize)
        });
        all.push(byte);
        for dim in 0..rank {
            index[dim] += 1;
            if index[dim] < counts[dim] {
                continue 'all;
            }
            index[dim] = 0;
        }
        return all;
    }
}

/// Where a byte of a tile is in shared memory, by the tables of the ISA: lines of 128 bytes, and which unit of its
/// line each goes to.
fn swizzled(swizzle: TensorSwizzle, at: usize) -> usize {
    let (line, within) = (at / 128, at % 128);
    let exchange = |unit: usize, by: usize| {
        let (number, rest) = (within / unit, within % unit);
        line * 128 + (number ^ by) * unit + rest
    };
    match swizzle {
        TensorSwizzle::None => at,
        TensorSwizzle::B32 | TensorSwizzle::B96 => exchange(16, line % 2),
        TensorSwizzle::B64 => exchange(16, line % 4),
        TensorSwizzle::B128 => exchange(16, line % 8),
        TensorSwizzle::B128Atom32 => exchange(32, line % 4),
        TensorSwizzle::B128Atom32Flip8 => {
            let there = exchange(32, line % 4);
            if line % 2 == 1 { there ^ 8 } else { there }
        }
        TensorSwizzle::B128Atom64 => exchange(64, line % 2),
    }
}

fn some_map(numbers: &mut Numbers, gather: bool) -> TensorMap {
    use TensorElement::*;
    let element = numbers.of(&[U8, U16, U32, S32, U64, S64, F16, F32, F64, BF16, TF32]);
    let rank = if gather { 2 } else { 1 + numbers.below(5) as usize };
    let bytes = u64::from(element.bits() / 8);
    let swizzle = numbers.of(&[
        TensorSwizzle::None,
        TensorSwizzle::B32,
        TensorSwizzle::B64,
        TensorSwizzle::B96,
        TensorSwizzle::B128,
        TensorSwizzle::B128Atom32,
        TensorSwizzle::B128Atom32Flip8,
        TensorSwizzle::B128Atom64,
    ]);
    let span = match swizzle {
        TensorSwizzle::B32 => 32,
        TensorSwizzle::B64 => 64,
        TensorSwizzle::B96 => 96,
        _ => 128,
    };
    let row = (16 * (1 + numbers.below(span / 16))).min(256 * bytes);
    let mut map = TensorMap::dense(0, element, &[1; 5][..rank], &[1; 5][..rank]);
    map.dims[0] = 1 + numbers.below(2 * row / bytes);
    map.tile[0] = (row / bytes) as u32;
    let mut stride = (map.dims[0] * bytes).next_multiple_of(16);
    for dim in 1..rank {
        map.dims[dim] = 1 + numbers.below(9);
        map.tile[dim] = if gather { 1 } else { 1 + numbers.below(7) as u32 };
        map.steps[dim] = if gather { 1 } else { 1 + numbers.below(3) as u32 };
        map.strides[dim - 1] = stride + 16 * numbers.below(2);
        stride = map.strides[dim - 1] * map.dims[dim];
    }
    map.swizzle = swizzle;
    map.nan_fill = numbers.below(2) == 0 && matches!(element, F16 | F32 | F64 | BF16 | TF32);
    map
}

fn checked() -> Options {
    Options { checks: Checks::ALL, ..Options::default() }
}

#[test]
fn tiles_are_where_their_elements_say() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut config = DeviceConfig::default();
    config.arch.sm = 100;
    let device = Device::new(config).unwrap();
    let modules: Vec<_> = (1..=5).map(|rank| device.load_ptx(&kernels(rank, false)).unwrap()).collect();
    let gathers = device.load_ptx(&kernels(2, true)).unwrap();
    let (mut outside, mut halves) = (0, 0);
    for round in 0..400 {
        let gather = round % 5 == 0;
        let mut map = some_map(&mut numbers, gather);
        let rank = map.dims.len();
        let row = map.dims[0] * u64::from(map.element.bits() / 8);
        let bytes = (1..rank).fold(row, |sum, dim| sum + (map.dims[dim] - 1) * map.strides[dim - 1]);
        let contents: Vec<u8> = (0..bytes).map(|_| numbers.below(256) as u8).collect();
        let tensor = device.alloc_zeros::<u8>(contents.len()).unwrap();
        tensor.write(&contents).unwrap();
        map.address = tensor.address();
        let mut at: Vec<i64> = (0..rank).map(|dim| numbers.below(map.dims[dim] + 4) as i64 - 2).collect();
        if gather {
            at = [at[0]]
                .into_iter()
                .chain((0..4).map(|_| numbers.below(map.dims[1] + 2) as i64 - 1))
                .collect();
        }
        let bytes = map.element.bits() as usize / 8;
        let sources = sources(&map, &at, gather);
        let total = sources.len() * bytes;
        let first = 128 * numbers.below(9) as usize;
        if total + first > SHARED {
            continue;
        }
        outside += usize::from(sources.iter().any(Option::is_none));
        let nan = match map.element {
            TensorElement::F16 | TensorElement::BF16 => 0x7fff_u64,
            TensorElement::F64 => 0x7fff_ffff_ffff_ffff,
            _ => 0x7fff_ffff,
        };
        let fill = if map.nan_fill { nan } else { 0 };
        // The tile in shared memory, swizzling undone.
        let place = |byte: usize| swizzled(map.swizzle, first + byte) - first;
        let mut tile = vec![0; total.next_multiple_of(128) + 128];
        for (index, source) in sources.iter().enumerate() {
            for byte in 0..bytes {
                let value = source.map_or((fill >> (8 * byte)) as u8, |source| match map.element {
                    TensorElement::TF32 => rounded(&contents[source..source + 4])[byte],
                    _ => contents[source + byte],
                });
                let there = place(index * bytes + byte);
                tile.resize(tile.len().max(there + 1), 0);
                tile[there] = value;
            }
        }
        // What has 8 bits may be two elements of 4.
        let mut said = map.clone();
        if map.element == TensorElement::U8 && map.tile[0] <= 128 && numbers.below(2) == 0 {
            said.element = TensorElement::B4x16;
            (said.dims[0], said.tile[0], at[0]) = (2 * map.dims[0], 2 * map.tile[0], 2 * at[0]);
            halves += 1;
        }
        let module = if gather { &gathers } else { &modules[rank - 1] };
        let coordinates = at.iter().map(|&at| at as i32).chain([0; 5]).take(5);
        let coordinates: Vec<u8> = coordinates.flat_map(i32::to_le_bytes).collect();
        let launch = |kernel: &str, memory: &Buffer<u8>| {
            let args = [
                Arg::Bytes(said.to_bytes().unwrap().to_vec()),
                Arg::Bytes(coordinates.clone()),
                Arg::buffer(memory),
                Arg::U32(first as u32),
                Arg::U32(total as u32),
            ];
            let config = LaunchConfig::new(1, 1);
            device.launch(module, kernel, &config, &args, &checked()).unwrap().wait()
        };
        let run = |kernel: &str, memory: &Buffer<u8>| {
            let report = launch(kernel, memory);
            assert!(report.is_clean(), "round {round}, {kernel}: {map:?} at {at:?}: {report}");
        };
        // A swizzled tile that does not fill its lines leaves holes within, which nothing else may touch.
        let is_whole = (0..total).all(|byte| place(byte) < total);
        if !is_whole {
            continue;
        }
        let memory = device.alloc_zeros::<u8>(total).unwrap();
        run("load", &memory);
        assert_eq!(memory.read(), tile[..total], "round {round}: {map:?} at {at:?}");
        if map.swizzle == TensorSwizzle::B128Atom32Flip8 {
            let trap = launch("store", &memory).trap;
            assert_eq!(trap.map(|trap| trap.kind), Some(TrapKind::BadOperand), "that is for loads");
            continue;
        }
        if !distinct(&sources) {
            // Rows that are there twice would race.
            continue;
        }
        // Back to where it came from, each byte one more.
        if map.element == TensorElement::TF32 {
            // What a load rounds is no other tile's contents.
            continue;
        }
        let changed: Vec<u8> = tile[..total].iter().map(|byte| byte.wrapping_add(1)).collect();
        memory.write(&changed).unwrap();
        run("store", &memory);
        let mut want = contents.clone();
        for source in sources.iter().flatten() {
            want[*source..source + bytes].iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
        }
        assert_eq!(tensor.read(), want, "round {round}: {map:?} at {at:?}");
        if map.element == TensorElement::U32 && !gather {
            run("reduce", &memory);
            for source in sources.iter().flatten() {
                let value = &mut want[*source..source + 4];
                let sum = u32::from_le_bytes((&*value).try_into().unwrap()).wrapping_mul(2);
                value.copy_from_slice(&sum.to_le_bytes());
            }
            assert_eq!(tensor.read(), want, "round {round}: {map:?} at {at:?}");
        }
    }
    assert!(outside > 100, "{outside} of the tiles were partly outside");
    assert!(halves > 5, "{halves} of the maps had elements of 4 bits");
}

/// The bytes of a number, rounded to 10 bits of the fraction.
fn rounded(bytes: &[u8]) -> [u8; 4] {
    let value = f32::from_le_bytes(bytes.try_into().unwrap());
    if !value.is_finite() {
        return value.to_bits().to_le_bytes();
    }
    // The distance of what can be had, in units of the last place.
    let bits = value.to_bits();
    let (below, part) = (bits & !0x1fff, bits & 0x1fff);
    let up = part > 0x1000 || (part == 0x1000 && below & 0x2000 != 0);
    (if up { below + 0x2000 } else { below }).to_le_bytes()
}

/// Whether no element is there twice.
fn distinct(sources: &[Option<usize>]) -> bool {
    let mut all: Vec<usize> = sources.iter().flatten().copied().collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    all.len() == count
}

/// Whatever a map and coordinates say, the launch ends, with findings or without.
#[test]
fn maps_that_mean_nothing_end() {
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    let mut config = DeviceConfig::default();
    config.arch.sm = 100;
    let device = Device::new(config).unwrap();
    let modules: Vec<_> = (1..=5).map(|rank| device.load_ptx(&kernels(rank, false)).unwrap()).collect();
    let memory = device.alloc_zeros::<u8>(4096).unwrap();
    let mut valid = 0;
    for _ in 0..600 {
        let mut map = some_map(&mut numbers, false);
        map.address = memory.address();
        let rank = map.dims.len();
        let mut bytes = map.to_bytes().unwrap();
        for _ in 0..numbers.below(4) {
            bytes[numbers.below(84) as usize] = numbers.of(&[0, 1, 15, 16, 127, 128, 255]);
        }
        valid += usize::from(TensorMap::from_bytes(&bytes).is_ok());
        let extremes = [0, 1, -1, i32::MAX, i32::MIN, 1 << 20];
        let coordinates: Vec<u8> = (0..5).flat_map(|_| numbers.of(&extremes).to_le_bytes()).collect();
        let args = [
            Arg::Bytes(bytes.to_vec()),
            Arg::Bytes(coordinates),
            Arg::buffer(&memory),
            Arg::U32(0),
            Arg::U32(16),
        ];
        for kernel in ["load", "store", "reduce"] {
            let launch =
                device.launch(&modules[rank - 1], kernel, &LaunchConfig::new(1, 1), &args, &checked());
            launch.unwrap().wait();
        }
    }
    assert!((100..500).contains(&valid), "{valid} of the maps were maps");
}

#[test]
fn what_is_no_map_is_named() {
    let mut config = DeviceConfig::default();
    config.arch.sm = 100;
    let device = Device::new(config).unwrap();
    let module = device.load_ptx(&kernels(2, false)).unwrap();
    let memory = device.alloc_zeros::<u8>(4096).unwrap();
    let map = TensorMap::dense(memory.address(), TensorElement::F32, &[16, 16], &[16, 4]);
    let good = map.to_bytes().unwrap();
    let other = TensorMap::dense(memory.address(), TensorElement::F32, &[16], &[16]).to_bytes().unwrap();
    let changed = |at: usize, value: u8| {
        let mut bytes = good;
        bytes[at] = value;
        bytes
    };
    for (bytes, is_good) in [
        (good, true),
        ([0; 128], false),
        (other, false),
        // Interleaving, a type, swizzling and a rank that are not there, and an address.
        (changed(30, 1), false),
        (changed(29, 8), false),
        (changed(31, 9), false),
        (changed(28, 7), false),
        (changed(0, 8), false),
    ] {
        let args = [
            Arg::Bytes(bytes.to_vec()),
            Arg::Bytes(vec![0; 20]),
            Arg::buffer(&memory),
            Arg::U32(0),
            Arg::U32(256),
        ];
        let launched = device.launch(&module, "load", &LaunchConfig::new(1, 1), &args, &checked());
        let trap = launched.unwrap().wait().trap;
        assert_eq!(trap.as_ref().map(|trap| trap.kind), (!is_good).then_some(TrapKind::BadOperand));
    }
}
