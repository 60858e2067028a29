//! Copies of tiles of tensors and of columns of convolutions, against evaluations that know only where each element of a
//! tile comes from.

mod columns;

use columns::some_columns;
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

/// What a copy takes of a tensor.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Tile,
    Gather,
    Columns(Im2colMode),
}

/// Kernels for tensors of that rank: `load` copies a tile to shared memory, and all of that to `out`; `store` does the
/// opposite, and so does `reduce`, which adds.
fn kernels(rank: usize, how: How) -> String {
    let (coordinates, mode, back, offsets) = match how {
        How::Tile => (rank, ".tile", ".tile", 0),
        How::Gather => (5, ".tile::gather4", ".tile::scatter4", 0),
        How::Columns(Im2colMode::Spatial) => (rank, ".im2col", ".im2col_no_offs", rank - 2),
        How::Columns(Im2colMode::Wide) => (rank, ".im2col::w", "", 2),
        How::Columns(Im2colMode::Wide128) => (rank, ".im2col::w::128", "", 2),
    };
    let mut text = String::from(".version 8.7\n.target sm_100a\n.address_size 64\n");
    let list = |letter: char, count: usize| -> String {
        let names: Vec<String> = (0..count).map(|at| format!("%{letter}{at}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let at = format!("[%rd1, {}]", list('c', coordinates));
    let filter = if offsets == 0 { String::new() } else { format!(", {}", list('h', offsets)) };
    let load = format!(
        "cp.async.bulk.tensor.{rank}d.shared::cta.global{mode}.mbarrier::complete_tx::bytes [%r1], {at}, [bar]{filter};"
    );
    let store = format!("cp.async.bulk.tensor.{rank}d.global.shared::cta{back}.bulk_group {at}, [%r1];");
    let reduce =
        format!("cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.add{back}.bulk_group {at}, [%r1];");
    let to_tile = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd2], %r2, [bar];";
    let from_tile = "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], %r2;";
    for (name, first, second) in
        [("load", &*load, from_tile), ("store", to_tile, &*store), ("reduce", to_tile, &*reduce)]
    {
        if back.is_empty() && name != "load" || name == "reduce" && how == How::Gather {
            continue;
        }
        let mut loads = String::new();
        for at in 0..coordinates {
            writeln!(loads, "    ld.param.s32 %c{at}, [c+{}];", 4 * at).unwrap();
        }
        for at in 0..offsets {
            writeln!(loads, "    ld.param.u16 %h{at}, [c+{}];", 20 + 4 * at).unwrap();
        }
        write!(
            text,
            "
.visible .entry {name}(.param .align 64 .b8 map[128], .param .align 4 .b8 c[32], .param .u64 bytes, .param .u32 at,
    .param .u32 size)
{{
    .shared .align 8 .u64 bar;
    .shared .align 1024 .b8 tile[{SHARED}];
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b32 %c<5>;
    .reg .b16 %h<3>;
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
            let first = coordinate(0) as usize * unit_bytes(map);
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

/// Bytes of what lies side by side in dimension 0.
fn unit_bytes(map: &TensorMap) -> usize {
    map.interleave.slice().map_or(map.element.bits() as usize / 8, |slice| slice as usize)
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

const SWIZZLES: [TensorSwizzle; 8] = [
    TensorSwizzle::None,
    TensorSwizzle::B32,
    TensorSwizzle::B64,
    TensorSwizzle::B96,
    TensorSwizzle::B128,
    TensorSwizzle::B128Atom32,
    TensorSwizzle::B128Atom32Flip8,
    TensorSwizzle::B128Atom64,
];

/// A map without dimensions but the first, whose rows fit its swizzling; and bytes of a row.
fn some_row(
    numbers: &mut Numbers,
    swizzles: &[TensorSwizzle],
    interleave: TensorInterleave,
) -> (TensorMap, u64) {
    use TensorElement::*;
    let element = numbers.of(&[U8, U16, U32, S32, U64, S64, F16, F32, F32Ftz, F64, BF16, TF32, TF32Ftz]);
    let bytes = u64::from(element.bits() / 8);
    let swizzle = match interleave {
        TensorInterleave::None => numbers.of(swizzles),
        TensorInterleave::B16 => TensorSwizzle::None,
        TensorInterleave::B32 => TensorSwizzle::B32,
    };
    let span = match swizzle {
        TensorSwizzle::B32 => 32,
        TensorSwizzle::B64 => 64,
        TensorSwizzle::B96 => 96,
        _ => 128,
    };
    let row = (16 * (1 + numbers.below(span / 16))).min(256 * bytes);
    let mut map = TensorMap::dense(0, element, &[1], &[(row / bytes) as u32]);
    map.dims[0] = 1 + numbers.below(2 * row / bytes);
    (map.swizzle, map.interleave) = (swizzle, interleave);
    if interleave != TensorInterleave::None {
        map.dims[0] = 1 + numbers.below(9);
        map.tile[0] = 1 + numbers.below(7) as u32;
        map.steps[0] = 1 + numbers.below(3) as u32;
    }
    map.nan_fill =
        numbers.below(2) == 0 && matches!(element, F16 | F32 | F32Ftz | F64 | BF16 | TF32 | TF32Ftz);
    (map, row)
}

/// More dimensions, with gaps between rows.
fn with_dims(numbers: &mut Numbers, map: &mut TensorMap, sizes: &[u64]) {
    let mut stride = (map.dims[0] * unit_bytes(map) as u64).next_multiple_of(32);
    for &size in sizes {
        stride += 32 * numbers.below(2);
        map.strides.push(stride);
        map.dims.push(size);
        map.steps.push(1);
        stride *= size;
    }
}

fn some_map(numbers: &mut Numbers, gather: bool) -> TensorMap {
    use TensorInterleave::{B16, B32, None};
    let rank = if gather { 2 } else { 1 + numbers.below(5) as usize };
    let interleave = if rank < 3 { None } else { numbers.of(&[None, None, B16, B32]) };
    let (mut map, _) = some_row(numbers, &SWIZZLES, interleave);
    let sizes: Vec<u64> = (1..rank).map(|_| 1 + numbers.below(9)).collect();
    with_dims(numbers, &mut map, &sizes);
    for dim in 1..rank {
        let is_one = gather || interleave != None && dim == rank - 2;
        map.tile.push(if is_one { 1 } else { 1 + numbers.below(7) as u32 });
        map.steps[dim] = if gather { 1 } else { 1 + numbers.below(3) as u32 };
    }
    map
}

fn checked() -> Options {
    Options { checks: Checks::ALL, ..Options::default() }
}

struct Modules {
    device: Device,
    tiles: Vec<Module>,
    gathers: Module,
    columns: Vec<[Module; 3]>,
}

impl Modules {
    fn new() -> Modules {
        let mut config = DeviceConfig::default();
        config.arch.sm = 100;
        let device = Device::new(config).unwrap();
        let load = |rank, how| device.load_ptx(&kernels(rank, how)).unwrap();
        let modes = [Im2colMode::Spatial, Im2colMode::Wide, Im2colMode::Wide128];
        Modules {
            tiles: (1..=5).map(|rank| load(rank, How::Tile)).collect(),
            gathers: load(2, How::Gather),
            columns: (3..=5).map(|rank| modes.map(|mode| load(rank, How::Columns(mode)))).collect(),
            device,
        }
    }

    fn of(&self, how: How, rank: usize) -> &Module {
        match how {
            How::Tile => &self.tiles[rank - 1],
            How::Gather => &self.gathers,
            How::Columns(mode) => &self.columns[rank - 3][mode as usize - 1],
        }
    }
}

/// The bytes of a map and of a copy's place.
fn arguments(map: &TensorMap, at: &[i64], offsets: &[i64]) -> [Arg; 2] {
    let numbers = at.iter().chain([0; 5].iter()).take(5).chain(offsets).chain([0; 3].iter()).take(8);
    [
        Arg::Bytes(map.to_bytes().unwrap().to_vec()),
        Arg::Bytes(numbers.flat_map(|&number| (number as i32).to_le_bytes()).collect()),
    ]
}

#[test]
fn tiles_are_where_their_elements_say() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let modules = Modules::new();
    let device = &modules.device;
    let (mut outside, mut halves, mut sliced, mut stored) = (0, 0, 0, [0; 2]);
    for round in 0..900 {
        let gather = round % 5 == 0;
        let (mut map, mut at, offsets, sources, how) = match round % 2 {
            0 => {
                let (map, at, offsets, sources) = some_columns(&mut numbers);
                let how = How::Columns(map.im2col.as_ref().unwrap().mode);
                (map, at, offsets, sources, how)
            }
            _ => {
                let map = some_map(&mut numbers, gather);
                let mut at: Vec<i64> =
                    map.dims.iter().map(|size| numbers.below(size + 4) as i64 - 2).collect();
                if gather {
                    at.truncate(1);
                    at.extend((0..4).map(|_| numbers.below(map.dims[1] + 2) as i64 - 1));
                }
                let sources = sources(&map, &at, gather);
                (map, at, Vec::new(), sources, if gather { How::Gather } else { How::Tile })
            }
        };
        let rank = map.dims.len();
        let unit = unit_bytes(&map);
        let row = map.dims[0] * unit as u64;
        let bytes = (1..rank).fold(row, |sum, dim| sum + (map.dims[dim] - 1) * map.strides[dim - 1]);
        let contents: Vec<u8> = (0..bytes).map(|_| numbers.below(256) as u8).collect();
        let tensor = device.alloc_zeros::<u8>(contents.len()).unwrap();
        tensor.write(&contents).unwrap();
        map.address = tensor.address();
        let bytes = map.element.bits() as usize / 8;
        let total = sources.len() * unit;
        let first = 128 * numbers.below(9) as usize;
        if total + first > SHARED {
            continue;
        }
        outside += usize::from(sources.iter().any(Option::is_none));
        sliced += usize::from(map.interleave != TensorInterleave::None);
        let nan = match map.element {
            TensorElement::F16 | TensorElement::BF16 => 0x7fff_u64,
            TensorElement::F64 => 0x7fff_ffff_ffff_ffff,
            _ => 0x7fff_ffff,
        };
        let fill = if map.nan_fill { nan } else { 0 };
        let rounds = matches!(map.element, TensorElement::TF32 | TensorElement::TF32Ftz);
        // The tile in shared memory, swizzling undone.
        let place = |byte: usize| swizzled(map.swizzle, first + byte) - first;
        let mut tile = vec![0; total.next_multiple_of(128) + 128];
        for (index, source) in sources.iter().enumerate() {
            for byte in 0..unit {
                let value = source.map_or((fill >> (8 * (byte % bytes))) as u8, |source| match rounds {
                    true => rounded(&contents[source + byte / 4 * 4..][..4])[byte % 4],
                    false => contents[source + byte],
                });
                let there = place(index * unit + byte);
                tile.resize(tile.len().max(there + 1), 0);
                tile[there] = value;
            }
        }
        // What has 8 bits may be two elements of 4.
        let mut said = map.clone();
        let is_sliced = map.interleave != TensorInterleave::None;
        if map.element == TensorElement::U8 && !is_sliced && map.tile[0] <= 128 && numbers.below(2) == 0 {
            said.element = TensorElement::B4x16;
            (said.dims[0], said.tile[0], at[0]) = (2 * map.dims[0], 2 * map.tile[0], 2 * at[0]);
            halves += 1;
        }
        let launch = |kernel: &str, memory: &Buffer<u8>| {
            let [said, at] = arguments(&said, &at, &offsets);
            let args = [said, at, Arg::buffer(memory), Arg::U32(first as u32), Arg::U32(total as u32)];
            let config = LaunchConfig::new(1, 1);
            device.launch(modules.of(how, rank), kernel, &config, &args, &checked()).unwrap().wait()
        };
        let run = |kernel: &str, memory: &Buffer<u8>| {
            let report = launch(kernel, memory);
            assert!(report.is_clean(), "round {round}, {kernel}: {map:?} at {at:?} + {offsets:?}: {report}");
        };
        // A swizzled tile that does not fill its lines leaves holes within, which nothing else may touch.
        let is_whole = (0..total).all(|byte| place(byte) < total);
        if !is_whole {
            continue;
        }
        let memory = device.alloc_zeros::<u8>(total).unwrap();
        run("load", &memory);
        assert_eq!(memory.read(), tile[..total], "round {round}: {map:?} at {at:?} + {offsets:?}");
        if let Some(im2col) = &map.im2col {
            let is_within = im2col.mode == Im2colMode::Spatial
                && im2col.lower.iter().all(|&corner| corner >= 0)
                && im2col.upper.iter().all(|&corner| corner <= 0)
                && at.iter().chain(&offsets).all(|&at| at >= 0);
            if !is_within || offsets.iter().any(|&offset| offset != 0) {
                continue;
            }
        }
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
        if rounds {
            // What a load rounds is no other tile's contents.
            continue;
        }
        let changed: Vec<u8> = tile[..total].iter().map(|byte| byte.wrapping_add(1)).collect();
        memory.write(&changed).unwrap();
        run("store", &memory);
        stored[usize::from(map.im2col.is_some())] += 1;
        let mut want = contents.clone();
        for source in sources.iter().flatten() {
            want[*source..source + unit].iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
        }
        assert_eq!(tensor.read(), want, "round {round}: {map:?} at {at:?}");
        if map.element == TensorElement::U32 && !gather {
            run("reduce", &memory);
            for source in sources.iter().flatten().flat_map(|source| (*source..source + unit).step_by(4)) {
                let value = &mut want[source..source + 4];
                let sum = u32::from_le_bytes((&*value).try_into().unwrap()).wrapping_mul(2);
                value.copy_from_slice(&sum.to_le_bytes());
            }
            assert_eq!(tensor.read(), want, "round {round}: {map:?} at {at:?}");
        }
    }
    assert!(outside > 200, "{outside} of the tiles were partly outside");
    assert!(halves > 5, "{halves} of the maps had elements of 4 bits");
    assert!(sliced > 100, "{sliced} of the maps had slices of channels");
    assert!(stored.iter().all(|&stored| stored > 20), "{stored:?} of tiles and columns were stored");
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

/// 16 elements that are padded have 16 bytes in shared memory; stores of those of 6 bits take the lower bits of bytes.
#[test]
fn padded_elements_have_gaps() {
    let mut numbers = Numbers(0x0dd0_cafe_f00d_1dea);
    let modules = Modules::new();
    let device = &modules.device;
    for round in 0..60 {
        let element = numbers.of(&[TensorElement::B4x16P64, TensorElement::B6x16P32]);
        let bits = element.bits() as usize;
        let swizzles = [TensorSwizzle::None, TensorSwizzle::B128, TensorSwizzle::B128Atom32];
        let rows = 1 + numbers.below(5);
        let mut map = TensorMap::dense(
            0,
            element,
            &[128 * (1 + numbers.below(3)), 1 + numbers.below(5)],
            &[128, rows as u32],
        );
        map.swizzle = numbers.of(&swizzles);
        map.strides[0] += 32 * numbers.below(2);
        let is_columns = round % 3 == 0;
        let rank = if is_columns { 3 } else { 2 };
        if is_columns {
            // The same rows, each a pixel of one image.
            let corners = Im2col { mode: Im2colMode::Spatial, lower: vec![0], upper: vec![0] };
            (map.im2col, map.tile[1]) = (Some(corners), rows as u32);
            map.strides.push(map.strides[0] * map.dims[1]);
            map.dims.push(1);
            map.steps.push(1);
        }
        let bytes = (map.strides[0] * map.dims[1]) as usize;
        let contents: Vec<u8> = (0..bytes).map(|_| numbers.below(256) as u8).collect();
        let tensor = device.alloc_zeros::<u8>(bytes).unwrap();
        tensor.write(&contents).unwrap();
        map.address = tensor.address();
        let mut at = vec![128 * numbers.below(4) as i64 - 128 * i64::from(!is_columns), 0, 0];
        at.truncate(rank);
        at[1] = numbers.below(map.dims[1]) as i64;
        // The bit where an element is in memory.
        let element_at = |memory: &[u8], bit: usize| {
            (0..bits).fold(0u8, |value, at| value | (memory[(bit + at) / 8] >> ((bit + at) % 8) & 1) << at)
        };
        let places: Vec<Option<usize>> = (0..rows as i64 * 128)
            .map(|index| {
                let (row, column) = (at[1] + index / 128, at[0] + index % 128);
                let inside =
                    (0..map.dims[1] as i64).contains(&row) && (0..map.dims[0] as i64).contains(&column);
                inside.then(|| 8 * row as usize * map.strides[0] as usize + column as usize * bits)
            })
            .collect();
        let count = places.len();
        let launch = |kernel: &str, memory: &Buffer<u8>, size: usize, options: &Options| {
            let [map_bytes, at] = arguments(&map, &at, &[0; 3]);
            let args = [map_bytes, at, Arg::buffer(memory), Arg::U32(0), Arg::U32(size as u32)];
            let how = if is_columns { How::Columns(Im2colMode::Spatial) } else { How::Tile };
            device
                .launch(modules.of(how, rank), kernel, &LaunchConfig::new(1, 1), &args, options)
                .unwrap()
                .wait()
        };
        // An mbarrier counts bytes of elements, and the second half of the tile is copied with the same number.
        let memory = device.alloc_zeros::<u8>(count).unwrap();
        let report = launch("load", &memory, count * bits / 8, &Options::default());
        assert_eq!(report.trap.map(|trap| trap.message), None, "round {round}: {map:?} at {at:?}");
        let (loaded, mut is_sound) = (memory.read(), true);
        for (index, place) in
            places.iter().enumerate().filter(|(index, _)| index / 16 * 16 + 16 <= count * bits / 8)
        {
            let there = swizzled(map.swizzle, index / 16 * 16);
            if there + 16 <= count * bits / 8 {
                let unit = &loaded[there..there + 16];
                is_sound &=
                    element_at(unit, index % 16 * bits) == place.map_or(0, |bit| element_at(&contents, bit));
            }
        }
        assert!(is_sound, "round {round}: {map:?} at {at:?}");
        // What stands behind 16 elements is nothing that a program may read.
        let fresh = device.alloc::<u8>(count * bits / 8).unwrap();
        assert!(launch("load", &fresh, count * bits / 8, &checked()).is_clean());
        let is_written = |data| fresh.unwritten_output("load", "memory", 16, &[data]).is_none();
        let data = 2 * bits as u64;
        assert!(is_written((0, data)), "round {round}: {map:?} at {at:?}");
        assert!(!is_written((data, 16 - data)), "round {round}: {map:?} at {at:?}");
        if element == TensorElement::B4x16P64 || at[0] < 0 {
            let trap = launch("store", &memory, count, &checked()).trap;
            let for_loads = element == TensorElement::B4x16P64;
            assert_eq!(trap.map(|trap| trap.kind), for_loads.then_some(TrapKind::BadOperand));
            continue;
        }
        let tile: Vec<u8> = (0..count).map(|_| numbers.below(256) as u8).collect();
        memory.write(&tile).unwrap();
        let report = launch("store", &memory, count, &checked());
        assert!(report.is_clean(), "round {round}: {map:?} at {at:?}: {report}");
        let mut want = contents.clone();
        for (index, bit) in places.iter().enumerate().filter_map(|(index, place)| Some((index, (*place)?))) {
            let value = tile[swizzled(map.swizzle, index)];
            for at in 0..6 {
                let (byte, shift) = ((bit + at) / 8, (bit + at) % 8);
                want[byte] = want[byte] & !(1 << shift) | (value >> at & 1) << shift;
            }
        }
        assert_eq!(tensor.read(), want, "round {round}: {map:?} at {at:?}");
    }
}

/// Sums of numbers too small to be normal stay, or become zero where the type says so.
#[test]
fn flushing_types_flush_sums() {
    let modules = Modules::new();
    let memory = modules.device.alloc_zeros::<u8>(64).unwrap();
    let tensor = modules.device.alloc_zeros::<u32>(16).unwrap();
    for (element, sum) in [(TensorElement::F32, 3), (TensorElement::F32Ftz, 0)] {
        tensor.write(&[1; 16]).unwrap();
        memory.write(&[2, 0, 0, 0].repeat(16)).unwrap();
        let map = TensorMap::dense(tensor.address(), element, &[16], &[16]);
        let [map, at] = arguments(&map, &[0], &[]);
        let args = [map, at, Arg::buffer(&memory), Arg::U32(0), Arg::U32(64)];
        let launch =
            modules.device.launch(&modules.tiles[0], "reduce", &LaunchConfig::new(1, 1), &args, &checked());
        assert!(launch.unwrap().wait().is_clean());
        assert_eq!(tensor.read(), [sum; 16], "{element:?}");
    }
}

/// Whatever a map and coordinates say, the launch ends, with findings or without.
#[test]
fn maps_that_mean_nothing_end() {
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    let mut config = DeviceConfig::default();
    config.arch.sm = 100;
    let device = Device::new(config).unwrap();
    let modules: Vec<_> = (1..=5).map(|rank| device.load_ptx(&kernels(rank, How::Tile)).unwrap()).collect();
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
        let coordinates: Vec<u8> = (0..8).flat_map(|_| numbers.of(&extremes).to_le_bytes()).collect();
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
    let module = device.load_ptx(&kernels(2, How::Tile)).unwrap();
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
        (changed(29, 16), false),
        (changed(31, 9), false),
        (changed(28, 7), false),
        (changed(0, 8), false),
    ] {
        let args = [
            Arg::Bytes(bytes.to_vec()),
            Arg::Bytes(vec![0; 32]),
            Arg::buffer(&memory),
            Arg::U32(0),
            Arg::U32(256),
        ];
        let launched = device.launch(&module, "load", &LaunchConfig::new(1, 1), &args, &checked());
        let trap = launched.unwrap().wait().trap;
        assert_eq!(trap.as_ref().map(|trap| trap.kind), (!is_good).then_some(TrapKind::BadOperand));
    }
}
