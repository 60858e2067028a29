//! `wgmma.mma_async`: factors are put into shared memory by the ISA's layouts, element by element, and the sums are
//! compared with those of integers.

use crate::run::{Numbers, Ty, device, product};
use warpwright_vm::{Arg, Device, LaunchConfig, Options, Report};

const THREADS: usize = 128;
/// Bytes of shared memory.
const BYTES: usize = 80 << 10;

/// Launches the kernel `k` with a warpgroup in each block.
fn launch(device: &Device, text: &str, blocks: u32, inputs: &[Vec<u32>], len: usize) -> (Vec<u32>, Report) {
    let module = warpwright_ptx::parse(text).unwrap_or_else(|found| panic!("{found:?}\n{text}"));
    let info = warpwright_ptx::verify(&module).unwrap_or_else(|found| panic!("{found:?}\n{text}"));
    let module = device.load(&module, &info).expect("it loads");
    let buffers: Vec<_> = inputs.iter().map(|data| device.clone_htod(data).expect("memory")).collect();
    let out = device.alloc_zeros::<u32>(len).expect("memory");
    let args: Vec<Arg> = buffers.iter().chain([&out]).map(Arg::buffer).collect();
    let config = LaunchConfig::new(blocks, THREADS as u32);
    let report = device.launch(&module, "k", &config, &args, &Options::checked()).expect("it starts").wait();
    (out.read(), report)
}

/// A layout of one factor: the mode of swizzling, which index is contiguous, and the offsets of a descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    /// Chunks of 16 bytes in the swizzled width, or 1.
    pub(crate) width: usize,
    pub(crate) transposed: bool,
    /// Pairs of chunks are exchanged, and four steps along k are together, not eight.
    pub(crate) pairs: bool,
    /// Where the pattern of swizzling begins.
    pattern: usize,
    /// Where the factor begins in it.
    start: usize,
    /// Where the chunks along k go on that do not fit into the swizzled width, which `leading` says.
    pub(crate) goes_on: Option<usize>,
    leading: usize,
    stride: usize,
}

impl Placement {
    /// Some layout of `count` rows or columns with `depth` elements of `bits` bits each, from byte `first` on.
    pub(crate) fn choose(
        numbers: &mut Numbers,
        (count, depth, bits): (usize, usize, usize),
        may_be_transposed: bool,
        first: usize,
    ) -> (Self, usize) {
        let bytes = depth * bits / 8;
        let transposed = may_be_transposed && numbers.next(0, 1) == 1;
        let pairs = transposed && bits == 32;
        let widths: &[usize] = match () {
            () if pairs => &[8],
            () if bytes > 32 && !transposed => &[1, 4, 8],
            () => &[1, 2, 4, 8],
        };
        let width = widths[numbers.next(0, widths.len() as i64 - 1) as usize];
        // Patterns begin at a multiple of their size, or elsewhere, which the base offset then says.
        let shift = if width == 1 { 16 * numbers.next(0, 3) } else { 128 * numbers.next(0, 7) };
        let pattern = first.next_multiple_of(1024) + shift as usize;
        // Another part along k of the swizzled width.
        let within = if transposed || width == 1 { 0 } else { 16 * width - bytes };
        let start = pattern + 32 * numbers.next(0, within as i64 / 32) as usize;
        let outer_first = numbers.next(0, 1) == 1;
        let pad = 16 * numbers.next(0, 2) as usize;
        let lines = if pairs { 4 } else { 8 };
        let atom = 16 * lines * width;
        let (inner, outer) =
            if transposed { (count * bits / 128, depth / lines) } else { (count / 8, bytes / 16) };
        let (leading, stride, end) = match (transposed, width) {
            // Core matrices of 128 bytes, in either order.
            (false, 1) if outer_first => (128 + pad, (128 + pad) * outer + pad, 0),
            (false, 1) => ((128 + pad) * inner + pad, 128 + pad, 0),
            (false, _) => (16 * numbers.next(0, 500) as usize, atom + atom * numbers.next(0, 1) as usize, 0),
            // Transposed, `leading` is along k and `stride` across.
            (true, 1) if outer_first => (128 + pad, (128 + pad) * outer + pad, 0),
            (true, 1) => ((128 + pad) * inner + pad, 128 + pad, 0),
            // Swizzled, the other way round.
            (true, _) => {
                let atoms = inner.div_ceil(width);
                if outer_first { (atom * outer, atom, 0) } else { (atom, atom * atoms, 0) }
            }
        };
        let mut placed =
            Placement { width, transposed, pairs, pattern, start, goes_on: None, leading, stride };
        // Of 48 bytes, some may stand elsewhere. Both patterns begin at a multiple of their size.
        if bytes == 48 && width == 8 && numbers.next(0, 2) > 0 {
            placed.pattern = first.next_multiple_of(1024);
            placed.start = placed.pattern + 16 * numbers.next(0, 7) as usize;
            let behind = placed.pattern + (stride * inner).next_multiple_of(1024);
            placed.leading = behind + 16 * numbers.next(0, 5) as usize;
            placed.goes_on = Some(placed.leading);
        }
        let reaches = (0..count).flat_map(|row| (0..depth).map(move |k| (row, k)));
        let last = reaches.map(|(row, k)| placed.byte(row, k, bits)).max().unwrap_or(end);
        (placed, last + 16)
    }

    /// The byte with an element: the ISA's canonical layouts, in chunks of 16 bytes, and then the swizzling.
    pub(crate) fn byte(&self, row: usize, k: usize, bits: usize) -> usize {
        let (chunk, w) = (128 / bits, self.width);
        let (leading, stride) = (self.leading / 16, self.stride / 16);
        let (contiguous, other) = if self.transposed { (row, k) } else { (k, row) };
        let within = contiguous % chunk * bits / 8;
        let at = match (self.transposed, w) {
            // ((8, m), (T, 2)) : ((1, stride), (1, leading))
            (false, 1) => other % 8 + other / 8 * stride + contiguous / chunk * leading,
            // ((8, m), (T, 2)) : ((w, stride), (1, T))
            (false, _) => other % 8 * w + other / 8 * stride + contiguous / chunk,
            // ((T, 1, m), (8, k)) : ((1, T, stride), (1, leading))
            (true, 1) => contiguous / chunk * stride + other % 8 + other / 8 * leading,
            // ((T, 8, m), (4, k)) : ((1, T, leading), (8, stride))
            (true, _) if self.pairs => {
                contiguous / chunk % 8 + contiguous / chunk / 8 * leading + other % 4 * 8 + other / 4 * stride
            }
            // ((T, w, m), (8, k)) : ((1, T, leading), (w, stride))
            (true, _) => {
                contiguous / chunk % w + contiguous / chunk / w * leading + other % 8 * w + other / 8 * stride
            }
        };
        let fits = 8 - self.start / 16 % 8;
        let linear = match self.goes_on {
            Some(start) if contiguous / chunk >= fits => start + 16 * (at - fits),
            _ => self.start + 16 * at,
        };
        // Of each 128 bytes of the pattern, the chunks are exchanged.
        let line = (linear - self.pattern) / 128 % 8;
        let line = if self.pairs { line % 4 * 2 } else { line % w };
        ((linear / 16) ^ line) * 16 + within
    }

    /// The descriptor, but for the address of the shared memory.
    fn descriptor(&self) -> u64 {
        let mode = match self.width {
            1 => 0,
            2 => 3,
            4 => 2,
            _ => 1u64,
        };
        self.fields() | mode << 62
    }

    /// Its fields but for the mode of swizzling.
    pub(crate) fn fields(&self) -> u64 {
        let base = if self.width == 1 { 0 } else { self.pattern as u64 >> 7 & 7 };
        (self.start as u64 >> 4)
            | (self.leading as u64 >> 4) << 16
            | (self.stride as u64 >> 4) << 32
            | base << 49
            | u64::from(self.goes_on.is_some()) << 52
    }
}

/// A form of the instruction.
#[derive(Clone, Copy, Debug)]
struct Form {
    d: Ty,
    a: Ty,
    b: Ty,
    sparse: bool,
    n: usize,
    registers: bool,
}

/// Row and column of element `i` of a thread, in a fragment with `per` elements in a register.
fn of_left(thread: usize, i: usize, per: usize) -> (usize, usize) {
    let (warp, g, t) = (thread / 32, thread % 32 / 4, thread % 4);
    (16 * warp + g + 8 * (i / per % 2), per * t + i % per + 4 * per * (i / (2 * per)))
}

fn of_sums(thread: usize, i: usize) -> (usize, usize) {
    let (warp, g, t) = (thread / 32, thread % 32 / 4, thread % 4);
    (16 * warp + g + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * t + i % 2)
}

fn put(words: &mut [u32], bit: usize, bits: usize, value: u64) {
    words[bit / 32] |= (value << (bit % 32)) as u32;
    assert!(bit % 32 + bits <= 32);
}

fn run(form: Form, numbers: &mut Numbers) {
    let Form { d, a: a_ty, b: b_ty, sparse, n, registers } = form;
    let bits = a_ty.bits();
    let k = 256 / bits * if sparse { 2 } else { 1 };
    let kept = 256 / bits;
    let half = d == Ty::F16;
    let b = numbers.fill(k * n, b_ty.range(half));
    let c = numbers.fill(64 * n, (-500, 500));
    // What is kept of `a`, and where it stands.
    let mut values = numbers.fill(64 * kept, a_ty.range(half));
    let mut metadata: Vec<u32> = (0..THREADS).map(|_| numbers.next(0, u32::MAX.into()) as u32).collect();
    let selector = if sparse && bits >= 16 { numbers.next(0, 1) as usize } else { 0 };
    let mut a = vec![0; 64 * k];
    for row in 0..64 {
        if !sparse {
            a[row * k..][..k].copy_from_slice(&values[row * k..][..k]);
            continue;
        }
        let width = if bits == 32 { 2 } else { 4 };
        for chunk in 0..k / width {
            let (first, second) = (numbers.next(0, 2) as usize, numbers.next(1, 3) as usize);
            let mut second = second.max(first + 1);
            // A chunk of zeros may have equal positions.
            if bits != 32 && numbers.next(0, 7) == 0 {
                values[row * kept + chunk * width / 2..][..2].fill(0);
                second = first;
            }
            let (code, columns): (usize, Vec<usize>) = match bits {
                32 => [(0b0100, vec![0]), (0b1110, vec![1])][first % 2].clone(),
                _ => (first | second << 2, vec![first, second]),
            };
            for (number, column) in columns.iter().enumerate() {
                a[row * k + width * chunk + column] = values[row * kept + chunk * width / 2 + number];
            }
            let (g, upper) = (row % 8, row % 16 / 8);
            let (lane, shift) = match bits {
                8 => (4 * g + 2 * (chunk / 8) + upper, 4 * (chunk % 8)),
                _ => (4 * g + 2 * selector + chunk / 4, 16 * upper + 4 * (chunk % 4)),
            };
            let word = &mut metadata[row / 16 * 32 + lane];
            *word = *word & !(15 << shift) | (code as u32) << shift;
        }
    }
    let mut memory = vec![0u32; BYTES / 4];
    let mut end = 0;
    let mut descriptors = [0u64; 2];
    let mut trans = [0, 0];
    let mut place = |rows: usize, depth: usize, which: usize, ty: Ty, value: &dyn Fn(usize, usize) -> i64| {
        let (placement, last) = Placement::choose(numbers, (rows, depth, bits), bits == 16, end);
        end = last;
        assert!(end <= BYTES, "{placement:?}");
        for row in 0..rows {
            for k in 0..depth {
                let bit = 8 * placement.byte(row, k, bits) + if bits == 1 { k % 8 } else { 0 };
                put(&mut memory, bit, bits, ty.encode(value(row, k)));
            }
        }
        descriptors[which] = placement.descriptor();
        trans[which] = usize::from(placement.transposed);
    };
    if !registers {
        place(64, kept, 0, a_ty, &|row, k| values[row * kept + k]);
    }
    place(n, k, 1, b_ty, &|column, k| b[k * n + column]);
    let per = 32 / bits;
    let mut fragments = vec![0u32; 4 * THREADS];
    for thread in 0..THREADS {
        for i in 0..4 * per {
            let (row, column) = of_left(thread, i, per);
            let value = a_ty.encode(values[row * kept + column]);
            put(&mut fragments[4 * thread..][..4], i * bits, bits, value);
        }
    }
    let (sum_bits, held) = (if half { 16 } else { 32 }, n / 2);
    let words = held * sum_bits / 32;
    let mut added = vec![0u32; words * THREADS];
    for thread in 0..THREADS {
        for i in 0..held {
            let (row, column) = of_sums(thread, i);
            let value = d.encode(c[row * n + column]);
            put(&mut added[words * thread..][..words], i * sum_bits, sum_bits, value);
        }
    }
    let is_float = !matches!(a_ty, Ty::S8 | Ty::U8 | Ty::B1);
    let signs = [0, 1].map(|_| if is_float { 1 - 2 * numbers.next(0, 1) } else { 1 });
    let (adds, predicate) = (numbers.next(0, 3) != 0, numbers.next(0, 1) == 1);
    let mut tail = match (predicate, adds) {
        (true, _) => "%adds".to_owned(),
        (false, adds) => u32::from(adds).to_string(),
    };
    if is_float {
        tail += &format!(", {}, {}", signs[0], signs[1]);
    }
    if bits == 16 {
        let a = if registers { String::new() } else { format!(", {}", trans[0]) };
        tail += &format!("{a}, {}", trans[1]);
    }
    let list = |name: &str, count: usize| {
        let names: Vec<String> = (0..count).map(|i| format!("%{name}{i}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let satfinite =
        if matches!(a_ty, Ty::S8 | Ty::U8) && numbers.next(0, 1) == 1 { ".satfinite" } else { "" };
    // The modifiers of integers stand in another order than those of bits.
    let suffix = if bits == 1 { ".and.popc" } else { satfinite };
    let instruction = format!(
        "wgmma.mma_async{}.sync.aligned.m64n{n}k{k}.{}.{}.{}{suffix} {}, {}, %db{}, {tail};",
        if sparse { ".sp" } else { "" },
        d.name(),
        a_ty.name(),
        b_ty.name(),
        list("d", words),
        if registers { list("a", 4) } else { "%da".to_owned() },
        if sparse { format!(", %m, {selector}") } else { String::new() },
    );
    let mut body = String::new();
    for i in 0..words {
        body += &format!("ld.global.b32 %d{i}, [%added + {}];\n", 4 * i);
    }
    for i in 0..4 {
        body += &format!("ld.global.b32 %a{i}, [%left + {}];\n", 4 * i);
    }
    let mut stores = String::new();
    for i in 0..words {
        stores += &format!("st.global.b32 [%out + {}], %d{i};\n", 4 * i);
    }
    let text = format!(
        ".version 8.7\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 memory[{BYTES}];\n\
         .visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3, .param .u64 p4)\n{{\n\
         .reg .b32 %d<{words}>; .reg .b32 %a<4>; .reg .b64 %da; .reg .b64 %db; .reg .b32 %m; .reg .pred %adds;\n\
         .reg .pred %p; .reg .b32 %t; .reg .b32 %s; .reg .b32 %v; .reg .b64 %from; .reg .b64 %lane;\n\
         .reg .b64 %added; .reg .b64 %left; .reg .b64 %out; .reg .b64 %mm; .reg .b64 %base; .reg .b32 %i;\n\
         mov.u32 %t, %tid.x;\nld.param.u64 %from, [p0];\nld.param.u64 %left, [p1];\nld.param.u64 %added, [p2];\n\
         ld.param.u64 %mm, [p3];\nld.param.u64 %out, [p4];\n\
         mul.wide.u32 %lane, %t, 16;\nadd.u64 %left, %left, %lane;\n\
         mul.wide.u32 %lane, %t, {stride};\nadd.u64 %added, %added, %lane;\nadd.u64 %out, %out, %lane;\n\
         mul.wide.u32 %lane, %t, 4;\nadd.u64 %mm, %mm, %lane;\nld.global.b32 %m, [%mm];\n\
         add.u64 %from, %from, %lane;\nmov.u32 %s, memory;\ncvt.u64.u32 %base, %s;\nand.b64 %base, %base, 0x3ffff;\n\
         shr.u64 %base, %base, 4;\nadd.u64 %da, %base, {da};\nadd.u64 %db, %base, {db};\n\
         shl.b32 %i, %t, 2;\nadd.u32 %s, %s, %i;\nmov.u32 %i, {rounds};\nsetp.eq.u32 %adds, {adds}, 1;\n\
         copy:\nld.global.b32 %v, [%from];\nst.shared.b32 [%s], %v;\nadd.u64 %from, %from, 512;\n\
         add.u32 %s, %s, 512;\nsub.u32 %i, %i, 1;\nsetp.ne.u32 %p, %i, 0;\n@%p bra copy;\n\
         {body}fence.proxy.async.shared::cta;\nbar.sync 0;\nwgmma.fence.sync.aligned;\n{instruction}\n\
         wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n{stores}ret;\n}}\n",
        stride = 4 * words,
        da = descriptors[0] as i64,
        db = descriptors[1] as i64,
        rounds = BYTES / 512,
        adds = u32::from(adds),
    );
    let inputs = [memory, fragments, added, metadata];
    let (out, report) = launch(&device(90, None), &text, 1, &inputs, words * THREADS);
    assert!(report.is_clean(), "{form:?}\n{instruction}\n{report}");
    let sign = signs[0] * signs[1];
    let left: Vec<i64> = a.iter().map(|value| value * sign).collect();
    let c: Vec<i64> = c.iter().map(|value| if adds { *value } else { 0 }).collect();
    let expected = product((64, n, k), &left, &b, &c);
    for thread in 0..THREADS {
        for i in 0..held {
            let word = out[words * thread + i * sum_bits / 32] >> (i * sum_bits % 32);
            let value = d.decode(if half { word & 0xffff } else { word }.into());
            let (row, column) = of_sums(thread, i);
            assert_eq!(
                value,
                expected[row * n + column],
                "{form:?} row {row}, column {column}\n{instruction}"
            );
        }
    }
}

/// Types of d, a and b, and whether there is a sparse form.
const TYPES: [(Ty, Ty, Ty, bool); 17] = [
    (Ty::F32, Ty::F16, Ty::F16, true),
    (Ty::F16, Ty::F16, Ty::F16, true),
    (Ty::F32, Ty::BF16, Ty::BF16, true),
    (Ty::F32, Ty::TF32, Ty::TF32, true),
    (Ty::F32, Ty::E4M3, Ty::E4M3, true),
    (Ty::F32, Ty::E4M3, Ty::E5M2, true),
    (Ty::F32, Ty::E5M2, Ty::E4M3, true),
    (Ty::F32, Ty::E5M2, Ty::E5M2, true),
    (Ty::F16, Ty::E4M3, Ty::E4M3, true),
    (Ty::F16, Ty::E4M3, Ty::E5M2, true),
    (Ty::F16, Ty::E5M2, Ty::E4M3, true),
    (Ty::F16, Ty::E5M2, Ty::E5M2, true),
    (Ty::S32, Ty::S8, Ty::S8, true),
    (Ty::S32, Ty::S8, Ty::U8, true),
    (Ty::S32, Ty::U8, Ty::S8, true),
    (Ty::S32, Ty::U8, Ty::U8, true),
    (Ty::S32, Ty::B1, Ty::B1, false),
];

#[test]
fn every_shape_type_and_layout_is_the_product_of_integers() {
    let mut numbers = Numbers::new(90);
    for (d, a, b, has_sparse) in TYPES {
        let rounds = if a.bits() == 16 { 24 } else { 8 };
        for sparse in [false, true].into_iter().take(1 + usize::from(has_sparse)) {
            for round in 0..rounds {
                let n = match round {
                    0 => 8,
                    1 => 24,
                    // Integers have no odd multiples of 8 but these.
                    2 => 224,
                    _ => 16 * numbers.next(1, 8) as usize + if d == Ty::S32 { 0 } else { 8 },
                };
                run(Form { d, a, b, sparse, n, registers: numbers.next(0, 2) == 0 }, &mut numbers);
            }
        }
    }
    run(Form { d: Ty::F32, a: Ty::F16, b: Ty::F16, sparse: false, n: 256, registers: false }, &mut numbers);
}

/// A measured row: steps, factors by position, c and d, as bits.
struct Measured {
    steps: usize,
    factors: Vec<(usize, u64, u64)>,
    c: u32,
    d: u32,
    line: String,
}

fn measured(text: &str, kept: usize) -> Vec<Measured> {
    let hex = |digits: &str| u64::from_str_radix(digits, 16).expect("a bit pattern");
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(' ').filter(|field| !field.is_empty()).collect();
        let factor = |term: &&str| {
            let [at, a, b] = term.split(':').collect::<Vec<_>>()[..] else { panic!("{line}") };
            (at.parse().expect("a position"), hex(a), hex(b))
        };
        Measured {
            steps: fields[0].parse::<usize>().expect("a number of factors") / kept,
            c: hex(fields[1]) as u32,
            d: hex(fields[2]) as u32,
            factors: fields[3..].iter().map(factor).collect(),
            line: line.to_owned(),
        }
    };
    text.lines().filter(|line| !line.starts_with('#')).map(row).collect()
}

/// Bytes that hold eight rows or columns of a step.
const EIGHT: usize = 256;

/// `wgmma` of eight rows with eight columns, one or two steps; the other rows are the same again.
fn measuring(types: &str, kept: usize, steps: usize, words: usize, tail: &str) -> String {
    let sums: Vec<String> = (0..words).map(|i| format!("%d{i}")).collect();
    let each = |line: &dyn Fn(usize) -> String| (0..words).map(line).collect::<String>();
    let product = |step: usize| {
        format!(
            "add.u64 %da, %base, {};\nadd.u64 %db, %base, {};\n\
             wgmma.mma_async.sync.aligned.m64n8k{kept}.{types} {{{}}}, %da, %db, 1{tail};\n",
            EIGHT / 16 * step,
            EIGHT / 16 * (2 + step),
            sums.join(", ")
        )
    };
    format!(
        ".version 8.7\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 memory[{bytes}];\n\
         .visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2)\n{{\n\
         .reg .b32 %d<{words}>; .reg .b64 %da; .reg .b64 %db; .reg .b64 %base; .reg .b32 %t; .reg .b32 %s;\n\
         .reg .b32 %v<2>; .reg .b64 %from; .reg .b64 %lane; .reg .b64 %sums; .reg .b64 %out; .reg .b32 %b;\n\
         ld.param.u64 %from, [p0];\nld.param.u64 %sums, [p1];\nld.param.u64 %out, [p2];\n\
         mov.u32 %t, %tid.x;\nmov.u32 %b, %ctaid.x;\nmad.lo.u32 %b, %b, 128, %t;\n\
         mul.wide.u32 %lane, %b, 8;\nadd.u64 %from, %from, %lane;\nld.global.v2.b32 {{%v0, %v1}}, [%from];\n\
         mov.u32 %s, memory;\ncvt.u64.u32 %base, %s;\nand.b64 %base, %base, 0x3ffff;\nshr.u64 %base, %base, 4;\n\
         or.b64 %base, %base, 0x80000;\nmad.lo.u32 %s, %t, 8, %s;\nst.shared.v2.b32 [%s], {{%v0, %v1}};\n\
         mul.wide.u32 %lane, %b, {stride};\nadd.u64 %sums, %sums, %lane;\nadd.u64 %out, %out, %lane;\n\
         {loads}fence.proxy.async.shared::cta;\nbar.sync 0;\nwgmma.fence.sync.aligned;\n{products}\
         wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n{stores}ret;\n}}\n",
        bytes = 4 * EIGHT,
        stride = 4 * words,
        loads = each(&|i| format!("ld.global.b32 %d{i}, [%sums + {}];\n", 4 * i)),
        products = (0..steps).map(product).collect::<String>(),
        stores = each(&|i| format!("st.global.b32 [%out + {}], %d{i};\n", 4 * i)),
    )
}

/// Rows of an H200, see `data/wgmma/README.md`.
#[test]
fn measured_products_are_reproduced_bit_for_bit() {
    let folder = format!("{}/tests/data/wgmma", env!("CARGO_MANIFEST_DIR"));
    let (mut files, device) = (0, device(90, None));
    for path in std::fs::read_dir(folder).expect("a folder of measurements") {
        let path = path.expect("a file").path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
        let [d, a, b] = name.split('.').collect::<Vec<_>>()[..] else { continue };
        files += 1;
        let bits = Ty::named(a).bits();
        let kept = 256 / bits;
        let half = d == "f16";
        let words = if half { 2 } else { 4 };
        let tail = match bits {
            16 => ", 1, 1, 0, 0",
            8 if d == "s32" => "",
            _ => ", 1, 1",
        };
        let rows = measured(&std::fs::read_to_string(&path).expect("the measurements can be read"), kept);
        for steps in [1, 2] {
            let rows: Vec<&Measured> = rows.iter().filter(|row| row.steps == steps).collect();
            let blocks = rows.len().div_ceil(8);
            // Element `at` of the diagonal: its word, and its lowest bit.
            let place = |number: usize| {
                let (block, at) = (number / 8, number % 8);
                let thread = THREADS * block + 4 * at + at / 2;
                if half { (words * thread, 16 * (at % 2)) } else { (words * thread + at % 2, 0) }
            };
            let mut memory = vec![0u32; blocks * EIGHT];
            let mut added = vec![0u32; blocks * THREADS * words];
            for (number, row) in rows.iter().enumerate() {
                let (word, shift) = place(number);
                added[word] |= row.c << shift;
                for &(at, left, right) in &row.factors {
                    let (step, byte) = (at / kept, at % kept * bits / 8);
                    let within = step * EIGHT + byte / 16 * 128 + number % 8 * 16 + byte % 16;
                    let image = &mut memory[number / 8 * EIGHT..][..EIGHT];
                    put(image, 8 * within, bits, left);
                    put(image, 8 * (within + 2 * EIGHT), bits, right);
                }
            }
            if blocks == 0 {
                continue;
            }
            let text = measuring(&format!("{d}.{a}.{b}"), kept, steps, words, tail);
            let len = added.len();
            let (out, report) = launch(&device, &text, blocks as u32, &[memory, added], len);
            assert!(report.is_clean(), "{report}");
            for (number, row) in rows.iter().enumerate() {
                let (word, shift) = place(number);
                let found = out[word] >> shift & if half { 0xffff } else { u32::MAX };
                assert_eq!(found, row.d, "{name}: {found:#x}, {}", row.line);
            }
        }
    }
    assert_eq!(files, 16);
}
