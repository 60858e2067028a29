//! A launch of the corpus: an entry, its arguments, and what must be in memory afterwards.

use crate::data::{Format, Number, bytes, numbers};
use warpwright_vm::{ArrayShape, Sampler};

/// A file of the corpus; what a kernel must give may depend on it.
pub(crate) struct File {
    /// `reduce_shared-debug.nvcc.sm_80.ptx`
    pub(crate) name: String,
    /// `reduce_shared.nvcc`: the source and the family of its compiler.
    pub(crate) source: String,
    /// `debug`, or nothing.
    pub(crate) variant: String,
    /// 80
    pub(crate) arch: u32,
    pub(crate) text: String,
    pub(crate) entries: Vec<String>,
}

/// The kernels of one source, and what they are given in one of its files.
pub(crate) struct Source {
    pub(crate) name: &'static str,
    pub(crate) cases: fn(&File) -> Vec<Case>,
}

pub(crate) const fn source(name: &'static str, cases: fn(&File) -> Vec<Case>) -> Source {
    Source { name, cases }
}

/// What must be in a buffer after the launch.
pub(crate) enum Expect {
    /// What was there before.
    Same,
    /// Exactly these bytes.
    Bytes(Vec<u8>),
    /// Each number is within its bound.
    Near(Format, Vec<Near>),
    /// A rule about the bytes; the second part is how many there are.
    Rule(Rule, usize),
}

pub(crate) type Rule = Box<dyn Fn(&[u8]) -> Result<(), String>>;

/// A number and how far off a kernel's may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Near {
    pub(crate) value: f64,
    pub(crate) bound: f64,
}

impl Expect {
    pub(crate) fn size(&self) -> usize {
        match self {
            Expect::Same => 0,
            Expect::Bytes(bytes) => bytes.len(),
            Expect::Near(format, numbers) => format.size() * numbers.len(),
            Expect::Rule(_, size) => *size,
        }
    }

    pub(crate) fn check(&self, before: Option<&[u8]>, after: &[u8]) -> Result<(), String> {
        match self {
            Expect::Same => same_bytes(before.unwrap_or(after), after, "an input was changed: "),
            Expect::Bytes(want) => same_bytes(want, after, ""),
            Expect::Near(format, want) => near(*format, want, after),
            Expect::Rule(rule, _) => rule(after),
        }
    }
}

fn same_bytes(want: &[u8], got: &[u8], what: &str) -> Result<(), String> {
    let wrong = want.iter().zip(got).filter(|(want, got)| want != got).count();
    let Some(at) = want.iter().zip(got).position(|(want, got)| want != got) else { return Ok(()) };
    let word = at / 8 * 8;
    let show = |bytes: &[u8]| {
        let word = &bytes[word..bytes.len().min(word + 8)];
        word.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let (want, got) = (show(want), show(got));
    Err(format!("{what}{wrong} bytes differ, the first at offset {at}: word 0x{got}, expected 0x{want}"))
}

fn near(format: Format, want: &[Near], got: &[u8]) -> Result<(), String> {
    let got = format.load(got);
    let off = |near: &Near, got: f64| {
        if near.value.is_nan() || near.value.is_infinite() {
            near.value.to_bits() != got.to_bits() && !(near.value.is_nan() && got.is_nan())
        } else {
            let error = (got - near.value).abs();
            error.is_nan() || error > near.bound
        }
    };
    let wrong = want.iter().zip(&got).filter(|&(near, &got)| off(near, got)).count();
    match want.iter().zip(&got).position(|(near, &got)| off(near, got)) {
        None => Ok(()),
        Some(at) => {
            let Near { value, bound } = want[at];
            let of = want.len();
            Err(format!(
                "{wrong} of {of} numbers are off, the first at {at}: {}, expected {value} ± {bound:e}",
                got[at]
            ))
        }
    }
}

/// These numbers exactly.
pub(crate) fn exactly<T: Number>(numbers: &[T]) -> Expect {
    Expect::Bytes(bytes(numbers))
}

/// `numbers` with the absolute errors that their bounds allow, beyond one rounding to `format`.
pub(crate) fn within(format: Format, numbers: impl IntoIterator<Item = (f64, f64)>) -> Expect {
    let smallest = match format {
        Format::F16 => 2f64.powi(-25),
        Format::E4m3 => 2f64.powi(-10),
        Format::E5m2 => 2f64.powi(-17),
        _ => 1e-37,
    };
    let near = numbers.into_iter().map(|(value, bound)| Near {
        value,
        bound: bound + format.unit() * (value.abs() + bound) + if bound == 0.0 { 0.0 } else { smallest },
    });
    Expect::Near(format, near.collect())
}

/// `numbers` to within `units` in the last place of f32 or f64 (a unit is the distance from 1 to the
/// next number, relative to the number).
pub(crate) fn ulps(format: Format, units: f64, numbers: impl IntoIterator<Item = f64>) -> Expect {
    within(format, numbers.into_iter().map(|x| (x, x.abs() * units * 2.0 * format.unit())))
}

/// A rule about numbers.
pub(crate) fn rule<T: Number>(n: usize, check: impl Fn(&[T]) -> Result<(), String> + 'static) -> Expect {
    Expect::Rule(Box::new(move |bytes| check(&numbers(bytes))), n * T::SIZE)
}

/// These numbers, in any order.
pub(crate) fn any_order<T: Number + Ord + std::fmt::Debug + 'static>(mut want: Vec<T>) -> Expect {
    want.sort();
    rule(want.len(), move |got: &[T]| {
        let mut got = got.to_vec();
        got.sort();
        if got == want { Ok(()) } else { Err(format!("got {got:?}, expected {want:?} in some order")) }
    })
}

pub(crate) struct Buffer {
    /// Nothing: the kernel must write before it reads.
    pub(crate) init: Option<Vec<u8>>,
    /// Addresses of buffers that lie in this one: offset, buffer.
    pub(crate) pointers: Vec<(usize, usize)>,
    pub(crate) expect: Expect,
}

pub(crate) struct Argument {
    pub(crate) bytes: Vec<u8>,
    /// Addresses of buffers in the bytes: offset, buffer.
    pub(crate) pointers: Vec<(usize, usize)>,
    /// The variable of the module whose address it is.
    pub(crate) symbol: Option<&'static str>,
    /// The image whose texture or surface it is.
    pub(crate) image: Option<usize>,
}

/// An array.
pub(crate) struct CaseImage {
    pub(crate) shape: ArrayShape,
    pub(crate) texels: Vec<u8>,
    /// How it is sampled as a texture; nothing for a surface.
    pub(crate) sampler: Option<Sampler>,
    pub(crate) expect: Expect,
}

pub(crate) struct Global {
    pub(crate) name: &'static str,
    pub(crate) init: Option<Vec<u8>>,
    pub(crate) expect: Expect,
}

/// A finding that is right: the source has the fault.
pub(crate) struct Deserved {
    /// `race`
    pub(crate) kind: &'static str,
    /// Those of its accesses, in the order of the alphabet.
    pub(crate) opcodes: &'static [&'static str],
    pub(crate) why: &'static str,
    /// In every schedule.
    pub(crate) always: bool,
}

/// How a launch ends.
pub(crate) enum End {
    /// All threads exit.
    Normal,
    /// A trap, or a launch that is refused, with one of these words in the text; memory is not looked at.
    Trap(&'static [&'static str]),
    /// The module cannot be loaded, and the reason has these words.
    Refused(&'static str),
}

pub(crate) struct Case {
    pub(crate) entry: String,
    pub(crate) grid: Dim,
    pub(crate) block: Dim,
    pub(crate) shared: u32,
    pub(crate) cooperative: bool,
    /// Blocks of a cluster, along x, where the launch says them.
    pub(crate) cluster: Option<u32>,
    pub(crate) buffers: Vec<Buffer>,
    /// Those that the kernel knows by multimem addresses.
    pub(crate) multimem: Vec<usize>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) images: Vec<CaseImage>,
    pub(crate) globals: Vec<Global>,
    /// The lines that the kernel prints, in any order; addresses are written `0x…`.
    pub(crate) prints: Vec<String>,
    /// Findings that the source deserves.
    pub(crate) findings: Vec<Deserved>,
    pub(crate) end: End,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Dim(pub(crate) u32, pub(crate) u32, pub(crate) u32);

impl From<u32> for Dim {
    fn from(x: u32) -> Self {
        Dim(x, 1, 1)
    }
}

impl From<(u32, u32)> for Dim {
    fn from((x, y): (u32, u32)) -> Self {
        Dim(x, y, 1)
    }
}

impl From<(u32, u32, u32)> for Dim {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Dim(x, y, z)
    }
}

/// A launch of `entry`.
pub(crate) fn launch(entry: &str, grid: impl Into<Dim>, block: impl Into<Dim>) -> Case {
    Case {
        entry: entry.to_owned(),
        grid: grid.into(),
        block: block.into(),
        shared: 0,
        cooperative: false,
        cluster: None,
        buffers: Vec::new(),
        multimem: Vec::new(),
        arguments: Vec::new(),
        images: Vec::new(),
        globals: Vec::new(),
        prints: Vec::new(),
        findings: Vec::new(),
        end: End::Normal,
    }
}

impl Case {
    /// The kernel knows the last buffer by a multimem address.
    pub(crate) fn multimem(mut self) -> Self {
        self.multimem.push(self.buffers.len() - 1);
        self
    }

    pub(crate) fn shared(mut self, bytes: u32) -> Self {
        self.shared = bytes;
        self
    }

    pub(crate) fn cluster(mut self, blocks: u32) -> Self {
        self.cluster = Some(blocks);
        self
    }

    pub(crate) fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// A buffer that the kernel reads only.
    pub(crate) fn input<T: Number>(self, numbers: &[T]) -> Self {
        self.inout(numbers, Expect::Same)
    }

    /// Numbers rounded to a narrow format, to be read only.
    pub(crate) fn floats(self, format: Format, numbers: &[f64]) -> Self {
        self.input(&format.store(numbers))
    }

    pub(crate) fn inout<T: Number>(mut self, numbers: &[T], expect: Expect) -> Self {
        let buffer = self.add(Some(bytes(numbers)), expect);
        self.pass(buffer)
    }

    /// A buffer that holds nothing before the launch, and is written in full.
    pub(crate) fn output(mut self, expect: Expect) -> Self {
        let buffer = self.add(None, expect);
        self.pass(buffer)
    }

    /// Adds a buffer without passing it.
    pub(crate) fn add(&mut self, init: Option<Vec<u8>>, expect: Expect) -> usize {
        self.buffers.push(Buffer { init, pointers: Vec::new(), expect });
        self.buffers.len() - 1
    }

    /// Passes a buffer's address.
    pub(crate) fn pass(self, buffer: usize) -> Self {
        self.raw(&[0u64], &[(0, buffer)])
    }

    /// Passes the address of a table of addresses of buffers.
    pub(crate) fn table(mut self, buffers: &[usize]) -> Self {
        let table = self.add(Some(vec![0; 8 * buffers.len()]), Expect::Same);
        self.buffers[table].pointers =
            buffers.iter().enumerate().map(|(i, &buffer)| (8 * i, buffer)).collect();
        self.pass(table)
    }

    pub(crate) fn scalar<T: Number>(self, value: T) -> Self {
        self.raw(&[value], &[])
    }

    pub(crate) fn null(self) -> Self {
        self.scalar(0u64)
    }

    /// Passes the address of a variable of the module.
    pub(crate) fn symbol(mut self, name: &'static str) -> Self {
        self.arguments.push(Argument {
            bytes: vec![0; 8],
            pointers: Vec::new(),
            symbol: Some(name),
            image: None,
        });
        self
    }

    /// The two pointers to scratch memory that Triton's kernels end with and ours do not use.
    pub(crate) fn triton(mut self) -> Self {
        if self.shared == 0 {
            // As much as any of the kernels that do not say needs.
            self.shared = 16 << 10;
        }
        self.null().null()
    }

    /// The same for kernels that make tensor maps in their scratch memory: 1 KiB for each block of the grid.
    pub(crate) fn triton_with_scratch(mut self, blocks: usize) -> Self {
        let size = 1024 * blocks;
        let scratch = self.add(None, Expect::Rule(Box::new(|_| Ok(())), size));
        self.pass(scratch).null()
    }

    /// A parameter of these bytes, with addresses of buffers at some offsets.
    pub(crate) fn raw<T: Number>(mut self, numbers: &[T], pointers: &[(usize, usize)]) -> Self {
        self.arguments.push(Argument {
            bytes: bytes(numbers),
            pointers: pointers.to_vec(),
            symbol: None,
            image: None,
        });
        self
    }

    /// A texture.
    pub(crate) fn texture<T: Number>(self, shape: ArrayShape, texels: &[T], sampler: Sampler) -> Self {
        self.image(CaseImage { shape, texels: bytes(texels), sampler: Some(sampler), expect: Expect::Same })
    }

    /// A surface.
    pub(crate) fn surface<T: Number>(self, shape: ArrayShape, texels: &[T], expect: Expect) -> Self {
        self.image(CaseImage { shape, texels: bytes(texels), sampler: None, expect })
    }

    fn image(mut self, image: CaseImage) -> Self {
        self.images.push(image);
        let image = Some(self.images.len() - 1);
        self.arguments.push(Argument { bytes: vec![0; 8], pointers: Vec::new(), symbol: None, image });
        self
    }

    /// A Numba array of one dimension: two owners, length, size of an item, data, shape, strides.
    pub(crate) fn array(self, buffer: usize, length: usize, item: usize) -> Self {
        self.null()
            .null()
            .scalar(length as u64)
            .scalar(item as u64)
            .pass(buffer)
            .scalar(length as u64)
            .scalar(item as u64)
    }

    /// A Numba matrix, rows first.
    pub(crate) fn matrix(self, buffer: usize, rows: usize, columns: usize, item: usize) -> Self {
        let of = |x: usize| x as u64;
        let case = self.null().null().scalar(of(rows * columns)).scalar(of(item)).pass(buffer);
        case.scalar(of(rows)).scalar(of(columns)).scalar(of(columns * item)).scalar(of(item))
    }

    /// A variable of the module, written before the launch if there is something to write.
    pub(crate) fn global(mut self, name: &'static str, init: Option<Vec<u8>>, expect: Expect) -> Self {
        self.globals.push(Global { name, init, expect });
        self
    }

    pub(crate) fn prints(mut self, mut lines: Vec<String>) -> Self {
        lines.sort();
        self.prints = lines;
        self
    }

    /// The source has a fault that is found in every schedule.
    pub(crate) fn finds(
        mut self,
        kind: &'static str,
        opcodes: &'static [&'static str],
        why: &'static str,
    ) -> Self {
        self.findings.push(Deserved { kind, opcodes, why, always: true });
        self
    }

    /// The source has a fault that shows in some schedules.
    pub(crate) fn may_find(
        mut self,
        kind: &'static str,
        opcodes: &'static [&'static str],
        why: &'static str,
    ) -> Self {
        self.findings.push(Deserved { kind, opcodes, why, always: false });
        self
    }

    /// The launch must end with a trap whose text has one of these words.
    pub(crate) fn traps(mut self, words: &'static [&'static str]) -> Self {
        self.end = End::Trap(words);
        self
    }

    /// The module must be refused with a reason that has these words.
    pub(crate) fn refused(mut self, words: &'static str) -> Self {
        self.end = End::Refused(words);
        self
    }
}
