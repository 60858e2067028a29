//! `tcgen05.mma`: factors are put into shared and tensor memory by the ISA's layouts, element by element, and the sums are
//! compared with those of `f64`, which are exact. Tensor memory goes through registers before and after.

use crate::run::{Numbers, device};
use crate::wgmma::Placement;
use warpwright_vm::{Arg, LaunchConfig, Options, Report};

/// The tensor memory of a block: 128 lanes of 512 columns.
const LANES: usize = 128;
const COLUMNS: usize = 512;

/// A type of factors, in sums that are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    /// Bits of exponent and fraction, and the number in the descriptor.
    Float(u32, u32, u32),
    Tf32,
    Signed,
    Unsigned,
}
use Element::{Float, Signed, Tf32, Unsigned};

const F16: Element = Float(5, 10, 0);
const BF16: Element = Float(8, 7, 1);
const E4M3: Element = Float(4, 3, 0);
const E5M2: Element = Float(5, 2, 1);
const E2M3: Element = Float(2, 3, 3);
const E3M2: Element = Float(3, 2, 4);
const E2M1: Element = Float(2, 1, 5);

impl Element {
    fn bits(self) -> usize {
        match self {
            Float(exponent, fraction, _) => 1 + (exponent + fraction) as usize,
            Tf32 => 32,
            Signed | Unsigned => 8,
        }
    }

    /// A bit pattern of a small number, and its value: of a whole one, if sums have few bits.
    fn some(self, numbers: &mut Numbers, whole: bool) -> (u64, f64) {
        match self {
            Signed => {
                let value = numbers.next(-128, 127);
                (value as u8 as u64, value as f64)
            }
            Unsigned => {
                let value = numbers.next(0, 255);
                (value as u64, value as f64)
            }
            Tf32 => {
                let value = numbers.next(-7, 7) as f32;
                (u64::from(value.to_bits() | 0xabc), value.into())
            }
            Float(exponent_bits, fraction_bits, _) => {
                let bias = (1 << (exponent_bits - 1)) - 1;
                // Numbers from a half to below eight, and the subnormal ones of the narrow types; or zero.
                let (least, most) = if whole { (bias, bias + 1) } else { ((bias - 1).max(0), bias + 2) };
                let exponent = numbers.next(i64::from(least), i64::from(most.min((1 << exponent_bits) - 1)));
                let digits = if whole { 0 } else { fraction_bits.min(2) };
                let fraction = numbers.next(0, (1 << digits) - 1) << (fraction_bits - digits);
                let (exponent, fraction) =
                    if numbers.next(0, 7) == 0 { (0, 0) } else { (exponent, fraction) };
                let sign = numbers.next(0, 1);
                let scale = 2f64.powi(exponent.max(1) as i32 - bias - fraction_bits as i32);
                let whole = fraction + if exponent == 0 { 0 } else { 1 << fraction_bits };
                let bits =
                    (sign << (exponent_bits + fraction_bits) | exponent << fraction_bits | fraction) as u64;
                (bits, whole as f64 * scale * (1 - 2 * sign) as f64)
            }
        }
    }
}

/// How blocks are scaled: how many scales along k, and whether they have fractions.
type Scales = Option<(usize, bool)>;

#[derive(Clone, Copy, Debug)]
struct Kind {
    name: &'static str,
    scales: Scales,
    /// Dense, in elements.
    k: usize,
    half_sums: bool,
    a: Element,
    b: Element,
}

impl Kind {
    /// 48 bytes along k, which `sm_103a` has.
    fn is_long(&self) -> bool {
        self.k == 96
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    kind: Kind,
    m: usize,
    n: usize,
    blocks: usize,
    sparse: bool,
    stationary: bool,
    left_in_tensor: bool,
}

impl Case {
    /// Rows of a block.
    fn rows(&self) -> usize {
        self.m / self.blocks
    }

    fn k(&self) -> usize {
        self.kind.k << usize::from(self.sparse)
    }

    fn is_half(&self) -> bool {
        self.rows() == 64 && !self.stationary && (self.blocks == 1 || self.sparse)
    }

    /// Parts of the columns that are in lanes of their own.
    fn parts(&self) -> usize {
        if self.is_half() { 1 } else { LANES / self.rows() }
    }

    /// The lane of a block's row, for a part.
    fn lane(&self, row: usize, part: usize) -> usize {
        match self.is_half() {
            true => row / 16 * 32 + row % 16,
            false => part * self.rows() + row,
        }
    }

    /// Where an element of the sums is: block, lane, column.
    fn sum(&self, row: usize, column: usize) -> (usize, usize, usize) {
        let width = self.n / self.parts();
        (row / self.rows(), self.lane(row % self.rows(), column / width), column % width)
    }

    /// Bytes of shared memory of a block.
    fn bytes(&self) -> usize {
        if self.kind.is_long() { 208 << 10 } else { 96 << 10 }
    }

    fn pairs(&self) -> bool {
        self.kind.name.starts_with("mxf4")
    }

    /// Elements of 16 bytes in shared memory, and bits that each takes there.
    fn chunk(&self, element: Element) -> (usize, usize) {
        match element {
            _ if self.pairs() => (32, 4),
            Float(..) if element.bits() < 8 => (16, element.bits()),
            _ => (128 / element.bits(), element.bits()),
        }
    }

    /// The instruction descriptor.
    fn descriptor(&self, negated: [bool; 2], transposed: [bool; 2], ids: [usize; 2], selector: usize) -> u32 {
        let number = |element| match element {
            Float(_, _, number) => number,
            Tf32 => 2,
            Signed => 1,
            Unsigned => 0,
        };
        let types = match (self.pairs(), self.kind.a, self.kind.b) {
            (true, ..) => 1 << 7 | 1 << 10,
            (_, a, b) => number(a) << 7 | number(b) << 10,
        };
        let bit = |set: bool, at: u32| u32::from(set) << at;
        let common = bit(self.sparse, 2)
            | types
            | bit(negated[0], 13)
            | bit(negated[1], 14)
            | bit(transposed[0], 15)
            | bit(transposed[1], 16)
            | (self.n as u32 / 8) << 17;
        match self.kind.scales {
            Some((_, fractions)) => {
                let ty = if fractions { 0 } else { 1 << 23 };
                let ids = (ids[1] as u32) << 4 | (ids[0] as u32) << 29;
                common | ids | ty | (self.m as u32 / 128) << 27 | bit(self.kind.is_long(), 31)
            }
            None => {
                let sums = match self.kind {
                    Kind { a: Signed | Unsigned, .. } => 2,
                    kind => u32::from(!kind.half_sums),
                };
                common | selector as u32 | sums << 4 | (self.m as u32 / 16) << 24
            }
        }
    }
}

/// Columns of tensor memory where the matrices are.
const SUMS: usize = 32;
const LEFT: usize = 320;
const METADATA: usize = 352;
const SCALES: [usize; 2] = [384, 416];

/// The words of the tensor memory of a block.
struct Tensor(Vec<u32>);

impl Tensor {
    fn put(&mut self, lane: usize, bit: usize, bits: usize, value: u64) {
        assert!(bit % 32 + bits <= 32);
        let word = &mut self.0[lane * COLUMNS + bit / 32];
        let mask = (u64::MAX >> (64 - bits)) as u32;
        *word = *word & !(mask << (bit % 32)) | (value as u32 & mask) << (bit % 32);
    }
}

fn run(case: Case, numbers: &mut Numbers) {
    let Case { kind, m, n, blocks, sparse, stationary, left_in_tensor } = case;
    let (k, rows, kept) = (case.k(), case.rows(), kind.k);
    let random =
        |numbers: &mut Numbers, len| (0..len).map(|_| numbers.next(0, u32::MAX.into()) as u32).collect();
    let mut tensors: Vec<Tensor> = (0..blocks).map(|_| Tensor(random(numbers, LANES * COLUMNS))).collect();
    let mut shared: Vec<Vec<u32>> = (0..blocks).map(|_| random(numbers, case.bytes() / 4)).collect();
    let first = if case.is_half() && numbers.next(0, 1) == 1 { 16 } else { 0 };

    // The left factor, and where its elements stand if it is sparse.
    let mut left: Vec<(u64, f64)> = (0..m * kept).map(|_| kind.a.some(numbers, kind.half_sums)).collect();
    let right: Vec<(u64, f64)> = (0..n * k).map(|_| kind.b.some(numbers, kind.half_sums)).collect();
    let mut whole = vec![0.0; m * k];
    let selector = if sparse && kind.k <= 16 { numbers.next(0, 3) as usize } else { 0 };
    let (width, bits) = match kind.k {
        8 => (2, 32),
        16 => (4, 16),
        64 => (8, 4),
        _ => (4, 8),
    };
    for row in 0..m {
        if !sparse {
            (0..k).for_each(|at| whole[row * k + at] = left[row * k + at].1);
            continue;
        }
        for chunk in 0..k / width {
            let (one, two) = (numbers.next(0, 2) as usize, numbers.next(1, 3) as usize);
            let mut two = two.max(one + 1);
            // A chunk of zeros may have equal positions.
            if bits != 32 && numbers.next(0, 7) == 0 {
                left[row * kept + chunk * width / 2..][..width / 2].fill((0, 0.0));
                two = one;
            }
            let (code, columns) = match bits {
                32 => [(0b0100, vec![0]), (0b1110, vec![1])][one % 2].clone(),
                4 => (one | two << 2, vec![2 * one, 2 * one + 1, 2 * two, 2 * two + 1]),
                _ => (one | two << 2, vec![one, two]),
            };
            for (number, column) in columns.iter().enumerate() {
                whole[row * k + width * chunk + column] = left[row * kept + chunk * width / 2 + number].1;
            }
            let r = row % rows;
            for part in 0..case.parts() {
                let (lane, bit) = match bits {
                    // Sixteen rows are together: eight lanes for each half of the chunks.
                    16 | 32 => (
                        case.lane(r - r % 16, part) + r % 8 + 8 * (chunk / 4),
                        32 * selector + 16 * (r % 16 / 8) + 4 * (chunk % 4),
                    ),
                    _ => (case.lane(r, part), 4 * chunk),
                };
                tensors[row / rows].put(first + lane, 32 * METADATA + bit, 4, code as u64);
            }
        }
    }

    // Shared memory: rows of `a`, columns of `b`, each half in its block.
    let mut end = 0;
    let mut place = |numbers: &mut Numbers,
                     element: Element,
                     lines: usize,
                     depth: usize,
                     value: &dyn Fn(usize, usize, usize) -> u64| {
        let (per, bits) = case.chunk(element);
        let may = !case.pairs();
        let (placement, last) = Placement::choose(numbers, (lines, depth, 128 / per), may, end);
        end = last;
        assert!(end <= case.bytes(), "{placement:?}");
        for (block, memory) in shared.iter_mut().enumerate() {
            for line in 0..lines {
                for at in 0..depth {
                    let within = if placement.transposed { line } else { at } % per;
                    let (line_0, at_0) =
                        if placement.transposed { (line - within, at) } else { (line, at - within) };
                    let bit = 8 * placement.byte(line_0, at_0, 128 / per) + within * bits;
                    let value = value(block, line, at) & (u64::MAX >> (64 - bits));
                    for (bit, value) in (bit..).zip((0..bits).map(|at| (value >> at & 1) as u32)) {
                        memory[bit / 32] = memory[bit / 32] & !(1 << (bit % 32)) | value << (bit % 32);
                    }
                }
            }
        }
        let mode = match placement.width {
            _ if placement.pairs => 1,
            1 => 0,
            2 => 6,
            4 => 4,
            _ => 2u64,
        };
        // Addresses are those from the beginning of the shared memory on.
        let addresses = if placement.goes_on.is_some() { 1 << 16 | 1 } else { 1 };
        (placement.fields() | 1 << 46 | mode << 61, addresses, placement.transposed)
    };
    let (mut a_descriptor, mut a_addresses, mut a_transposed) = (0, 1, false);
    if left_in_tensor {
        let bits = if case.pairs() { 4 } else { 256 / kept };
        // Elements of four bits stand in the middle of bytes.
        let shift = if kind.a.bits() == 4 && bits == 8 { 2 } else { 0 };
        for row in 0..m {
            for part in 0..case.parts() {
                for at in 0..kept {
                    let value = left[row * kept + at].0 << shift;
                    tensors[row / rows].put(
                        first + case.lane(row % rows, part),
                        32 * LEFT + at * bits,
                        bits,
                        value,
                    );
                }
            }
        }
    } else {
        let value = |block: usize, row: usize, at: usize| left[(block * rows + row) * kept + at].0;
        (a_descriptor, a_addresses, a_transposed) = place(numbers, kind.a, rows, kept, &value);
    }
    let own = n / blocks;
    let value = |block: usize, column: usize, at: usize| right[(block * own + column) * k + at].0;
    let (b_descriptor, b_addresses, b_transposed) = place(numbers, kind.b, own, k, &value);

    // Scales: of each row in its lane, of each column in each 32 lanes.
    let count = kind.scales.map_or(1, |(count, _)| count);
    let fractions = kind.scales.is_some_and(|(_, fractions)| fractions);
    let apart = match count {
        3 => 1,
        6 => 2,
        _ => count,
    };
    let ids = [0, 1].map(|_| apart * numbers.next(0, 4 / apart as i64 - 1) as usize);
    let mut scales = [vec![1.0; m * count], vec![1.0; n * count]];
    if kind.scales.is_some() {
        let some = |numbers: &mut Numbers| match fractions {
            true => {
                let (bits, value) = E4M3.some(numbers, false);
                (bits & 0x7f, value.abs())
            }
            false => {
                let exponent = numbers.next(-2, 2);
                ((127 + exponent) as u64, 2f64.powi(exponent as i32))
            }
        };
        let parts = case.parts();
        for (which, lines) in [m, n].into_iter().enumerate() {
            for line in 0..lines {
                for at in 0..count {
                    let (bits, value) = some(numbers);
                    scales[which][line * count + at] = value;
                    // Behind a word, in the columns behind those of 128 or 256 lines.
                    let behind = 4 * if which == 0 { 1 } else { n.div_ceil(128) };
                    let byte = ids[which] + at;
                    let column = SCALES[which] + behind * (byte / 4);
                    let bit = |line: usize| 32 * (column + line / 32) + 8 * (byte % 4);
                    if which == 0 {
                        let row = line % rows;
                        for part in 0..parts {
                            tensors[line / rows].put(case.lane(row, part), bit(row), 8, bits);
                        }
                        continue;
                    }
                    let (part, line) = (line / (n / parts), line % (n / parts));
                    for quarter in 0..4 / parts {
                        let lane = 128 / parts * part + 32 * quarter + line % 32;
                        tensors.iter_mut().for_each(|tensor| tensor.put(lane, bit(line), 8, bits));
                    }
                }
            }
        }
    }

    // The sums before.
    let is_integer = matches!(kind.a, Signed | Unsigned);
    let mut before = vec![0.0; m * n];
    for (at, value) in before.iter_mut().enumerate() {
        *value = numbers.next(-60, 60) as f64;
        let bits = match () {
            () if is_integer => *value as i32 as u32,
            () if kind.half_sums => half(*value as f32).into(),
            () => (*value as f32).to_bits(),
        };
        let (block, lane, column) = case.sum(at / n, at % n);
        tensors[block].put(first + lane, 32 * (SUMS + column), 32, bits.into());
    }
    let is_float = !is_integer;
    let negated = [0, 1].map(|_| is_float && numbers.next(0, 1) == 1);
    let adds = numbers.next(0, 3) != 0;
    let may_lower = matches!(kind.name, "f16" | "tf32") && !stationary && !kind.half_sums;
    let lowered = if may_lower { numbers.next(0, 2) } else { 0 };
    let may_disable = kind.scales.is_none() && !stationary;
    let disabled: Vec<u32> =
        if may_disable && numbers.next(0, 1) == 1 { random(numbers, 4 * blocks) } else { Vec::new() };

    let descriptor = case.descriptor(negated, [a_transposed, b_transposed], ids, selector);
    let masks: Vec<String> = (0..disabled.len()).map(|at| format!("%m{at}")).collect();
    let instruction = format!(
        "tcgen05.mma{ws}{sp}.cta_group::{blocks}.kind::{kind}{scales} [%d], {a}, %b, {meta}%id, {sf}{masks}%adds{low};",
        ws = if stationary { ".ws" } else { "" },
        sp = if sparse { ".sp" } else { "" },
        kind = kind.name,
        scales = match (kind.scales, kind.name) {
            (None, _) => "",
            (Some(_), "mxf8f6f4") => ".block_scale.scale_vec::1X",
            (Some((2, _)), _) => ".block_scale.scale_vec::2X",
            (Some((3, _)), _) => ".block_scale.block32",
            _ => ".block_scale.block16",
        },
        a = if left_in_tensor { "[%ta]" } else { "%a" },
        meta = if sparse { "[%meta], " } else { "" },
        sf = if kind.scales.is_some() { "[%sfa], [%sfb], " } else { "" },
        masks = if masks.is_empty() { String::new() } else { format!("{{{}}}, ", masks.join(", ")) },
        low = if lowered > 0 { format!(", {lowered}") } else { String::new() },
    );
    let moves: String =
        disabled.iter().enumerate().map(|(at, mask)| format!("mov.b32 %m{at}, {mask};\n")).collect();
    let meet = match blocks {
        1 => "bar.sync 0;",
        _ => "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    };
    let commit = match blocks {
        1 => "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];",
        _ => {
            "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%bar], 3;"
        }
    };
    let at = |column: usize| (first << 16) + column;
    let sm = if kind.is_long() { 103 } else { 100 };
    let text = format!(
        ".version 8.8\n.target sm_{sm}a\n.address_size 64\n.shared .align 1024 .b8 memory[{bytes}];\n\
         .shared .align 8 .b64 bar;\n.shared .align 4 .b32 tensor;\n\
         .visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2) .reqntid {LANES}\n\
         .reqnctapercluster {blocks}\n{{\n\
         .reg .pred %p<4>; .reg .pred %adds; .reg .pred %first; .reg .b32 %t; .reg .b32 %rank; .reg .b32 %s;\n\
         .reg .b32 %v<8>; .reg .b32 %i; .reg .b32 %x; .reg .b32 %bar; .reg .b32 %lanes; .reg .b32 %warp; .reg .b64 %base;\n\
         .reg .b64 %from; .reg .b64 %to; .reg .b64 %lane; .reg .b64 %a; .reg .b64 %b; .reg .b32 %id; .reg .b32 %m<8>;\n\
         .reg .b32 %d; .reg .b32 %ta; .reg .b32 %meta; .reg .b32 %sfa; .reg .b32 %sfb; .reg .b32 %tm;\n\
         mov.u32 %t, %tid.x;\nmov.u32 %rank, %cluster_ctarank;\nshr.u32 %warp, %t, 5;\nmov.u32 %s, memory;\n\
         cvt.u64.u32 %base, %s;\nand.b64 %base, %base, 0x3ffff;\nshr.u64 %base, %base, 4;\n\
         ld.param.u64 %from, [p0];\nmul.wide.u32 %lane, %rank, {bytes};\nadd.u64 %from, %from, %lane;\n\
         mul.wide.u32 %lane, %t, 4;\nadd.u64 %from, %from, %lane;\nmad.lo.u32 %s, %t, 4, %s;\nmov.u32 %i, {rounds};\n\
         copy:\nld.global.b32 %x, [%from];\nst.shared.b32 [%s], %x;\nadd.u64 %from, %from, 512;\n\
         add.u32 %s, %s, 512;\nsub.u32 %i, %i, 1;\nsetp.ne.u32 %p0, %i, 0;\n@%p0 bra copy;\n\
         mov.u32 %bar, bar;\nmov.u32 %s, tensor;\nsetp.eq.u32 %p1, %t, 0;\n@%p1 mbarrier.init.shared::cta.b64 [%bar], 1;\n\
         setp.ne.u32 %p2, %warp, 0;\n@%p2 bra allocated;\n\
         tcgen05.alloc.cta_group::{blocks}.sync.aligned.shared::cta.b32 [%s], 512;\n\
         allocated:\nfence.proxy.async.shared::cta;\nbar.sync 0;\ntcgen05.fence::after_thread_sync;\n\
         ld.shared.b32 %tm, [%s];\n\
         shl.b32 %lanes, %warp, 21;\nadd.u32 %lanes, %lanes, %tm;\n\
         mad.lo.u32 %x, %rank, {LANES}, %t;\nmul.wide.u32 %lane, %x, {row_bytes};\nld.param.u64 %from, [p1];\n\
         add.u64 %from, %from, %lane;\nld.param.u64 %to, [p2];\nadd.u64 %to, %to, %lane;\nmov.u32 %i, 64;\n\
         mov.u32 %x, %lanes;\n\
         fill:\nld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%from];\nld.global.v4.b32 {{%v4, %v5, %v6, %v7}}, [%from+16];\n\
         tcgen05.st.sync.aligned.32x32b.x8.b32 [%x], {{%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}};\n\
         add.u32 %x, %x, 8;\nadd.u64 %from, %from, 32;\nsub.u32 %i, %i, 1;\nsetp.ne.u32 %p0, %i, 0;\n@%p0 bra fill;\n\
         tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync;\n{meet}\ntcgen05.fence::after_thread_sync;\n\
         or.b32 %x, %t, %rank;\nsetp.ne.u32 %p3, %x, 0;\n@%p3 bra issued;\n\
         setp.eq.u32 %adds, {adds}, 1;\nmad.lo.u64 %a, %base, {a_addresses}, {a_descriptor};\n\
         mad.lo.u64 %b, %base, {b_addresses}, {b_descriptor};\n\
         mov.b32 %id, {descriptor};\nadd.u32 %d, %tm, {sums};\nadd.u32 %ta, %tm, {left};\nadd.u32 %meta, %tm, {metadata};\n\
         add.u32 %sfa, %tm, {sfa};\nadd.u32 %sfb, %tm, {sfb};\n{moves}{instruction}\n{commit}\n\
         issued:\nwait:\nmbarrier.try_wait.parity.shared::cta.b64 %p0, [%bar], 0;\n@!%p0 bra wait;\n\
         tcgen05.fence::after_thread_sync;\nmov.u32 %i, 64;\nmov.u32 %x, %lanes;\n\
         drain:\ntcgen05.ld.sync.aligned.32x32b.x8.b32 {{%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}}, [%x];\n\
         tcgen05.wait::ld.sync.aligned;\n\
         st.global.v4.b32 [%to], {{%v0, %v1, %v2, %v3}};\nst.global.v4.b32 [%to+16], {{%v4, %v5, %v6, %v7}};\n\
         add.u32 %x, %x, 8;\nadd.u64 %to, %to, 32;\nsub.u32 %i, %i, 1;\nsetp.ne.u32 %p0, %i, 0;\n@%p0 bra drain;\n\
         tcgen05.fence::before_thread_sync;\n{meet}\n@%p2 bra freed;\n\
         tcgen05.dealloc.cta_group::{blocks}.sync.aligned.b32 %tm, 512;\n\
         tcgen05.relinquish_alloc_permit.cta_group::{blocks}.sync.aligned;\nfreed:\nret;\n}}\n",
        bytes = case.bytes(),
        rounds = case.bytes() / 512,
        row_bytes = 4 * COLUMNS,
        adds = u32::from(adds),
        a_descriptor = a_descriptor as i64,
        b_descriptor = b_descriptor as i64,
        sums = at(SUMS),
        left = at(LEFT),
        metadata = at(METADATA),
        sfa = at(SCALES[0]),
        sfb = at(SCALES[1]),
    );
    let inputs = [shared.concat(), tensors.iter().flat_map(|tensor| tensor.0.clone()).collect::<Vec<u32>>()];
    let (out, report) = launch(&text, sm, blocks, &inputs, blocks * LANES * COLUMNS);
    assert!(report.is_clean(), "{case:?}\n{instruction}\n{report}");

    let mut expected = inputs[1].clone();
    let sign = if negated[0] == negated[1] { 1.0 } else { -1.0 };
    for row in 0..m {
        for column in 0..n {
            let mut sum = if adds { before[row * n + column] * 2f64.powi(-(lowered as i32)) } else { 0.0 };
            for at in 0..k {
                let scale =
                    scales[0][row * count + at * count / k] * scales[1][column * count + at * count / k];
                sum += sign * whole[row * k + at] * right[column * k + at].1 * scale;
            }
            let (block, lane, column) = case.sum(row, column);
            let lane = first + lane;
            if disabled.get(4 * block + lane / 32).is_some_and(|mask| mask >> (lane % 32) & 1 != 0) {
                continue;
            }
            expected[(block * LANES + lane) * COLUMNS + SUMS + column] = match () {
                () if is_integer => sum as i32 as u32,
                () if kind.half_sums => half(sum as f32).into(),
                () => (sum as f32).to_bits(),
            };
        }
    }
    for (at, (found, expected)) in out.iter().zip(&expected).enumerate() {
        let (lane, column) = (at / COLUMNS, at % COLUMNS);
        assert_eq!(
            found, expected,
            "{case:?} lane {lane}, column {column}: {found:#x}, {expected:#x}\n{instruction}"
        );
    }
}

/// The `f16` of a small number that has one, or of one that is too large for it.
fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    let (sign, exponent, fraction) =
        ((bits >> 16 & 0x8000) as u16, (bits >> 23 & 0xff) as i32 - 127, bits & 0x7f_ffff);
    match exponent {
        -127 => sign,
        _ => {
            assert!((-14..16).contains(&exponent) && fraction & 0x1fff == 0, "{value}");
            sign | ((exponent + 15) as u16) << 10 | (fraction >> 13) as u16
        }
    }
}

fn launch(text: &str, sm: u16, blocks: usize, inputs: &[Vec<u32>], len: usize) -> (Vec<u32>, Report) {
    let device = device(sm, None);
    let module = warpwright_ptx::parse(text).unwrap_or_else(|found| panic!("{found:?}\n{text}"));
    let info = warpwright_ptx::verify(&module).unwrap_or_else(|found| panic!("{found:?}\n{text}"));
    let module = device.load(&module, &info).expect("it loads");
    let buffers: Vec<_> = inputs.iter().map(|data| device.clone_htod(data).expect("memory")).collect();
    let out = device.alloc_zeros::<u32>(len).expect("memory");
    let args: Vec<Arg> = buffers.iter().chain([&out]).map(Arg::buffer).collect();
    let config = LaunchConfig::new(blocks as u32, LANES as u32);
    let report = device.launch(&module, "k", &config, &args, &Options::checked()).expect("it starts").wait();
    (out.read(), report)
}

/// Kinds, with types of their factors.
fn kinds() -> Vec<Kind> {
    let kind = |name, k, half_sums, scales, a, b| Kind { name, scales, k, half_sums, a, b };
    let mut all = vec![
        kind("f16", 16, false, None, F16, F16),
        kind("f16", 16, true, None, F16, F16),
        kind("f16", 16, false, None, BF16, BF16),
        kind("f16", 16, false, None, F16, BF16),
        kind("tf32", 8, false, None, Tf32, Tf32),
        kind("i8", 32, false, None, Signed, Signed),
        kind("i8", 32, false, None, Signed, Unsigned),
        kind("i8", 32, false, None, Unsigned, Unsigned),
        kind("mxf4", 64, false, Some((2, false)), E2M1, E2M1),
        kind("mxf4nvf4", 64, false, Some((2, false)), E2M1, E2M1),
        kind("mxf4nvf4", 64, false, Some((4, false)), E2M1, E2M1),
        kind("mxf4nvf4", 64, false, Some((4, true)), E2M1, E2M1),
        kind("f8f6f4", 32, true, None, E2M1, E2M1),
    ];
    let narrow = [E4M3, E5M2, E2M3, E3M2, E2M1];
    for (at, a) in narrow.into_iter().enumerate() {
        for b in [narrow[at], narrow[(at + 2) % 5]] {
            all.push(kind("f8f6f4", 32, false, None, a, b));
            all.push(kind("mxf8f6f4", 32, false, Some((1, false)), a, b));
        }
    }
    all
}

/// A number of columns that a product may have.
fn columns(numbers: &mut Numbers, kind: Kind, blocks: usize, stationary: bool, sparse: bool) -> usize {
    let widest = if stationary && sparse { 1 } else { 2 };
    match (stationary, kind.name, blocks) {
        (true, ..) => 64 << numbers.next(0, widest),
        // Transposed bytes come in sixteens.
        (_, "i8" | "f8f6f4" | "mxf8f6f4", 1) => 16 * numbers.next(1, 8) as usize,
        (_, "i8" | "f8f6f4" | "mxf8f6f4", _) => 32 * numbers.next(1, 4) as usize,
        (_, _, 1) => 8 * numbers.next(1, 16) as usize,
        _ => 16 * numbers.next(1, 8) as usize,
    }
}

fn all(blocks: usize, stationary: bool, seed: u64) {
    let mut numbers = Numbers::new(seed);
    for kind in kinds() {
        if stationary && kind.scales.is_some() {
            continue;
        }
        for sparse in [false, true] {
            let rows: &[usize] = match (blocks, stationary, kind.scales) {
                (1, true, _) => &[32, 64, 128],
                (1, false, None) => &[64, 128],
                (1, false, Some(_)) => &[128],
                (_, _, Some(_)) if sparse => &[256],
                _ => &[128, 256],
            };
            for &m in rows {
                let n = columns(&mut numbers, kind, blocks, stationary, sparse);
                let left_in_tensor = numbers.next(0, 1) == 1;
                run(Case { kind, m, n, blocks, sparse, stationary, left_in_tensor }, &mut numbers);
            }
        }
    }
}

#[test]
fn products_of_a_block() {
    all(1, false, 100);
}

#[test]
fn products_of_a_pair_of_blocks() {
    all(2, false, 101);
}

#[test]
fn products_with_b_stationary() {
    all(1, true, 102);
}

#[test]
fn products_of_a_longer_k() {
    let mut numbers = Numbers::new(103);
    let forms = [("mxf4", 3, false), ("mxf4nvf4", 3, false), ("mxf4nvf4", 6, false), ("mxf4nvf4", 6, true)];
    for (name, scales, fractions) in forms {
        let kind =
            Kind { name, scales: Some((scales, fractions)), k: 96, half_sums: false, a: E2M1, b: E2M1 };
        for blocks in [1, 1, 1, 2, 2] {
            let n = 8 * blocks * numbers.next(1, 32 / blocks as i64) as usize;
            let left_in_tensor = numbers.next(0, 3) == 0;
            let case =
                Case { kind, m: 128 * blocks, n, blocks, sparse: false, stationary: false, left_in_tensor };
            run(case, &mut numbers);
        }
    }
}
